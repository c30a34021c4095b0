//! Reads the history and the stack of one thread, or the awaits of one task, because the user wants to see it.

use read_rip_case::{Case, Options, Readings, Subject};
use read_rip_model::locations;
use read_rip_model::locks::ThreadLocks;
use read_rip_model::threads::Thread;
use read_rip_report::{self as report, ActivityWords, Shown, ThreadKey};

use crate::app::error::AppError;

/// The lines about a thread or task: what it does and its stack or its awaits, then its events, the newest first.
pub(super) fn thread(subject: &Subject, key: ThreadKey, options: &Options) -> Result<Vec<String>, AppError> {
    let mut readings = Readings::at_present(subject, options)?;
    // A thread id may have been used before: the last owner is the present one. The case takes the words.
    let threads = readings.reading.threads();
    let thread = threads.iter().rfind(|of| of.slot.tid == key.tid && of.slot.pid == key.pid);
    let recorded = thread.map(|thread| (thread.slot.clone(), thread.state, thread.position));
    let mut case = Case::of(&mut readings, options);
    let reading = case.reading;
    let events = recorded.as_ref().map(|(slot, ..)| {
        let (events, _) = locations::dated_history(slot, &mut case.locations, reading.horizon());
        events.iter().for_each(|dated| case.locations.find_lock(slot, &dated.event));
        events
    });
    let model = &case.model;
    let seen = model.seen.get(&key.tid).and_then(|&id| model.threads[id].seen);
    let stack = seen.and_then(|seen| Some(reading.standings().nth(seen.process as usize)?.stack(seen.index)));
    case.find_frames(stack);
    let texts = case.texts(false);
    let names = case.names(&texts);
    let mut out = Vec::new();
    let is_it = |of: &ThreadLocks| (of.pid, of.tid) == (key.pid, key.tid);
    if let Some(task) = case.model.threads.iter().rposition(is_it) {
        report::task(&mut out, task, &names)?;
    }
    if let Some((words, seen)) = ActivityWords::new(&names).zip(seen) {
        let file = |path: &str| texts.file(path).to_owned();
        let words = words.of_process(&seen);
        report::stacks(&mut out, &words, |of| of == seen.index, file, &case.frames)?;
    }
    if let Some(((slot, state, position), events)) = recorded.as_ref().zip(events) {
        let thread = Thread { slot, state: *state, position: *position };
        let shown = Shown { thread: &thread, events: &events, has_exit: false };
        out.extend_from_slice(b"Recorded, the newest first:\n");
        report::history(&mut out, &shown, &names, reading.snapshot.sequence_mask, reading.horizon())?;
    }
    if out.is_empty() {
        out.extend_from_slice(b"it has ended, and its slot has another owner\n");
    }
    Ok(report::plain_lines(&out))
}
