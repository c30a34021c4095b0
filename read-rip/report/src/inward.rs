//! Where threads are that only the runtime of their language could judge.

use std::collections::BTreeMap;

use read_rip_evidence::standing::Inward;
use read_rip_model::locations::LocationId;

use super::names::LockNames;
use super::units::{agree, counted};

/// At most this many places are listed.
const PLACES_MAX: usize = 8;

/// A line for each thing that threads do in their runtime, with the places.
pub(super) fn inward(names: &LockNames<'_>) -> Vec<String> {
    let mut all: BTreeMap<Inward, (usize, Vec<LocationId>)> = BTreeMap::new();
    for seen in names.model.threads.iter().filter_map(|thread| thread.seen) {
        if let Some(inward) = seen.inward {
            let (count, places) = all.entry(inward).or_default();
            *count += 1;
            places.extend(seen.place.filter(|place| !places.contains(place)));
        }
    }
    let line = |(inward, (count, places)): (Inward, (usize, Vec<LocationId>))| {
        let threads = counted(count as u64, "thread");
        let what = match inward {
            Inward::WaitsForLock => format!(
                "{threads} {} for {} that {} not store {} holder",
                agree(count, "waits", "wait"),
                agree(count, "a lock", "locks"),
                agree(count, "does", "do"),
                agree(count, "its", "their")
            ),
            Inward::RunsLoop => {
                format!("{threads} {} an event loop, whose tasks are not seen", agree(count, "runs", "run"))
            }
        };
        let mut at: Vec<String> =
            places.iter().take(PLACES_MAX).map(|&place| names.location(place).to_string()).collect();
        if places.len() > PLACES_MAX {
            at.push(counted((places.len() - PLACES_MAX) as u64, "more place"));
        }
        if at.is_empty() { what } else { format!("{what}: {}", at.join("; ")) }
    };
    all.into_iter().map(line).collect()
}
