//! Reads the history and the stack of one thread, or the awaits of one task, because the user wants to see it.

use std::path::Path;

use read_rip_model::locations::{self, FileNames, Locations};
use read_rip_model::locks::{self, ThreadLocks};
use read_rip_report::ThreadKey;
use read_rip_report::{self as report, ActivityWords, LockNames, Shown};

use crate::app::bare::functions;
use crate::app::check::Readings;
use crate::app::error::AppError;
use crate::cli::Common;

/// The lines about a thread or task: what it does and its stack or its awaits, then its events, the newest first.
pub(super) fn thread(path: &Path, key: ThreadKey, wanted: &Common) -> Result<Vec<String>, AppError> {
    let reading = Readings::at_present(path, wanted)?.reading;
    let mut locations = Locations::new(&reading.snapshot, reading.resolver(wanted));
    let threads = reading.threads();
    // A thread id may have been used before: the last owner is the present one.
    let thread = threads.iter().rfind(|of| of.slot.tid == key.tid && of.slot.pid == key.pid);
    let events = thread.map(|thread| {
        let (events, _) = locations::dated_history(thread.slot, &mut locations, reading.horizon());
        events.iter().for_each(|dated| locations.find_lock(thread.slot, &dated.event));
        events
    });
    let mut model = locks::build(&reading.input(None), &mut locations);
    if let Some(seen) = &reading.seen {
        locks::observe(&mut model, seen, &mut locations);
    }
    let objects = reading.objects(&mut locations);
    let index = model.seen.get(&key.tid).and_then(|&id| model.threads[id].seen).map(|seen| seen.index);
    let of_stack = reading.seen.as_ref().zip(index);
    let frames = of_stack.map(|(seen, index)| functions([seen.stack(index)], seen, &mut locations));
    let frames = frames.unwrap_or_default();
    let of_frames = frames.values().flatten().filter_map(|frame| frame.file.as_deref());
    let files = FileNames::choose_with(locations.iter(), of_frames);
    let texts = report::location_texts(&locations, &files, false);
    let seen = reading.seen_names(&objects);
    let names = LockNames { model: &model, locations: &locations, texts: &texts, seen };
    let mut out = Vec::new();
    let is_it = |of: &ThreadLocks| (of.pid, of.tid) == (key.pid, key.tid);
    if let Some(task) = model.threads.iter().rposition(is_it) {
        report::task(&mut out, task, &names)?;
    }
    if let Some((words, index)) = ActivityWords::new(&names).zip(index) {
        let file = |path: &str| files.get(path).to_owned();
        report::stacks(&mut out, &words, |of| of == index, file, &frames)?;
    }
    if let Some((thread, events)) = thread.zip(events) {
        let shown = Shown { thread, events: &events, has_exit: false };
        out.extend_from_slice(b"Recorded, the newest first:\n");
        report::history(&mut out, &shown, &names, reading.snapshot.sequence_mask, reading.horizon())?;
    }
    if out.is_empty() {
        out.extend_from_slice(b"it has ended, and its slot has another owner\n");
    }
    Ok(report::plain_lines(&out))
}
