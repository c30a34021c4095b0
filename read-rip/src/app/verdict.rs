//! The verdict on a ring in one line, for the end of the condensed view. `check` explains it.
//!
//! It analyses nothing itself: `findings` does.

use std::path::Path;

use super::check::Readings;
use super::error::AppError;
use crate::cli::{CheckArgs, Common, RingArgs, THRESHOLD};
use crate::findings::{self, Balance, Finding, Memo, Outcome, View};
use crate::locations::{Location, Locations};
use crate::locks::LockModel;
use crate::process::Ends;

/// A ring with more threads than this is not judged unasked: that takes several times as long as the view.
const THREADS_MAX: usize = 20_000;

/// Judges a ring whose view showed this many threads. `None` if nothing was recorded that can be judged.
pub(super) fn verdict(
    path: &Path,
    threads: usize,
    ring: &RingArgs,
    wanted: &Common,
) -> Result<Option<String>, AppError> {
    let name = ring.name().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy());
    let command = format!("read-rip check {name}");
    if threads > THREADS_MAX {
        return Ok(Some(format!("check: not done unasked for so many threads; next: {command}")));
    }
    let args = CheckArgs::of(RingArgs::default());
    let mut readings = Readings::of(path, &args, &Ends::default(), wanted)?;
    let words = readings.reading.snapshot.take_words();
    let reading = &readings.reading;
    let mut locations = Locations::new(&reading.snapshot, reading.resolver(wanted));
    let now = readings.model(words, &mut locations);
    Ok(of_model(&readings, &now, &locations, &command))
}

/// Judges a model of the locks of a process.
pub(super) fn of_model(
    readings: &Readings,
    now: &LockModel,
    locations: &Locations<'_>,
    command: &str,
) -> Option<String> {
    let Readings { earlier, reading, .. } = readings;
    let by_id: Vec<&Location> = locations.iter().collect();
    let view = View {
        now,
        before: earlier.as_ref().map(|earlier| &earlier.model),
        locations: &by_id,
        threshold_ns: u64::try_from(THRESHOLD.as_nanos()).unwrap_or(u64::MAX),
        memo: Memo::default(),
    };
    let (mut found, _) = findings::run_bounded(&view);
    if reading.is_copy() {
        findings::doubt_copy(&mut found);
    }
    let what = match reading.outcome(Balance::of(&view, &found).outcome) {
        Outcome::NothingRecorded => return None,
        Outcome::Hidden => "not judged, because this user may not look into the process".to_owned(),
        Outcome::AllWait => "all recorded threads wait, and no finding says why".to_owned(),
        Outcome::Findings | Outcome::NothingFound => sentence(&found),
    };
    Some(format!("check: {what}; next: {command}"))
}

/// The worst finding, and how many there are besides.
fn sentence(found: &[Finding]) -> String {
    let Some(worst) = found.first() else { return "no findings".to_owned() };
    let threads = match worst.mentions.threads.len() {
        0 => String::new(),
        1 => " of 1 thread".to_owned(),
        count => format!(" of {count} threads"),
    };
    let others = match found.len() - 1 {
        0 => String::new(),
        1 => ", and 1 more finding".to_owned(),
        count => format!(", and {count} more findings"),
    };
    format!("{} {}{threads}{others}", worst.confidence.name(), worst.kind.name())
}
