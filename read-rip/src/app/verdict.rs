//! The verdict on a ring in one line, for the end of the condensed view. `check` explains it.
//!
//! It analyses nothing itself: `findings` does.

use std::path::Path;

use super::check::Readings;
use super::error::AppError;
use crate::cli::{CheckArgs, Common, RingArgs, THRESHOLD};
use crate::findings::{self, Balance, Memo, Outcome, View};
use crate::locations::{FileNames, Location, Locations};
use crate::process::Ends;
use crate::report::{self, LockNames, SeenNames};

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
    let objects = reading.objects(&mut locations);
    let files = FileNames::choose(locations.iter());
    let texts = report::location_texts(&locations, &files, false);
    let seen = reading.seen.as_ref().map(|standings| SeenNames { standings, objects: &objects });
    let names = LockNames { model: &now, locations: &locations, texts: &texts, seen };
    Ok(of_model(&readings, &names, &command))
}

/// Judges a model of the locks of a process, with the names of what is in it.
pub(super) fn of_model(readings: &Readings, names: &LockNames<'_>, command: &str) -> Option<String> {
    let Readings { earlier, reading, .. } = readings;
    let by_id: Vec<&Location> = names.locations.iter().collect();
    let view = View {
        now: names.model,
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
        Outcome::AllWait if !names.model.is_recorded() => {
            "all threads wait, and no finding says why".to_owned()
        }
        Outcome::AllWait => "all recorded threads wait, and no finding says why".to_owned(),
        Outcome::Findings | Outcome::NothingFound => {
            report::brief(&found, names).unwrap_or_else(|| "no findings".to_owned())
        }
    };
    Some(format!("check: {what}; next: {command}"))
}
