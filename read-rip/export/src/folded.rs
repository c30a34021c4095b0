//! Where threads and tasks are now, one line for each place: the format of Brendan Gregg's `flamegraph.pl`, which
//! `inferno` and speedscope read too. The frames of a stack come from the outermost on, with semicolons between them,
//! and then a space and the number of threads or tasks.
//!
//! The first frame is the process. The last one, in brackets, is what the threads wait for. Between them are the
//! functions of the stack if the kernel was asked, or else the place of the last mark. If the user wants the lines by
//! lock, what the threads wait for is the second frame.
//!
//! All tasks of a process stand upon a frame `tasks`. Upon it are the awaits of a task, or the last mark, or where it
//! was made. What a task does comes last, in brackets, if it does not wait for a lock or the like.

use std::collections::BTreeMap;
use std::io::{self, Write};

use read_rip_model::locations::is_shared_name;
use read_rip_model::locks::{TaskDoes, TaskFacts, ThreadId, ThreadLocks, task_awaits, task_does, task_place};
use read_rip_model::threads::ThreadState;
use read_rip_report::printable;
use read_rip_report::{LockNames, StackFrames, awaited_words, task_state};

use super::scene::Scene;

/// The frame upon which tasks stand.
const TASKS: &str = "tasks";

/// Writes the lines, in the order of their frames. With `by_lock`, what threads wait for comes before the places.
///
/// # Errors
///
/// Those of `out`.
pub fn folded(out: &mut dyn Write, scene: &Scene<'_>, by_lock: bool) -> io::Result<()> {
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for (stack, threads) in stacks_now(scene, by_lock) {
        let frames: Vec<String> = stack.iter().map(|frame| frame.replace(';', ":")).collect();
        *lines.entry(frames.join(";")).or_default() += threads;
    }
    lines.iter().try_for_each(|(line, threads)| writeln!(out, "{line} {threads}"))
}

/// The stacks of all threads and tasks that exist, with the outermost frame first, and how many have each. With
/// `by_lock`, what they wait for comes before the places.
fn stacks_now(
    &Scene { program, names, frames, .. }: &Scene<'_>,
    by_lock: bool,
) -> BTreeMap<Vec<String>, usize> {
    let mut stacks: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for (id, thread) in names.model.threads.iter().enumerate() {
        if thread.state == ThreadState::Present {
            let mut stack = vec![format!("{}[{}]", printable(program), thread.pid)];
            let awaited = awaited(id, names);
            stack.extend(awaited.iter().filter(|_| by_lock).cloned());
            stack.extend(thread.task.as_ref().map(|_| TASKS.to_owned()));
            stack.extend(places(id, names, frames));
            stack.extend(awaited.filter(|_| !by_lock));
            *stacks.entry(stack).or_default() += 1;
        }
    }
    stacks
}

/// The functions of a thread's stack, from the outermost on, or the place of its last mark; the awaits of a task.
pub(super) fn places(id: ThreadId, names: &LockNames<'_>, frames: &StackFrames) -> Vec<String> {
    let thread = &names.model.threads[id];
    if let Some(task) = thread.task.as_deref() {
        return awaits(thread, task, names);
    }
    let stack = names.seen.zip(thread.seen).map(|(seen, of)| seen.of(&of).stack(of.index));
    match stack {
        Some(stack) if !stack.frames.is_empty() => {
            let known = |frame| frames.get(frame).map_or(&[][..], Vec::as_slice);
            let functions = stack.frames.iter().rev().flat_map(|frame| {
                let unknown = known(frame).is_empty().then(|| format!("{:#x}", frame.pc));
                let named = known(frame).iter().rev().map(|one| {
                    let function = one.function.as_deref().map_or("unknown".into(), printable);
                    match (&one.file, one.line) {
                        (Some(file), Some(line)) if is_shared_name(&function) => {
                            format!("{function} {}", names.texts.source_line(file, line))
                        }
                        _ => function.into_owned(),
                    }
                });
                unknown.into_iter().chain(named).collect::<Vec<_>>()
            });
            functions.collect()
        }
        _ => thread.last.map(|location| names.location(location)).into_iter().collect(),
    }
}

/// The awaits of a task, from the outermost on, or the one place that is known of it.
fn awaits(thread: &ThreadLocks, task: &TaskFacts, names: &LockNames<'_>) -> Vec<String> {
    let awaits = task_awaits(thread, task);
    if !awaits.is_empty() {
        return awaits.into_iter().map(|location| names.location(location)).collect();
    }
    let place = task_place(thread, task);
    let made = if place.is_where_made { "made at " } else { "" };
    place.location.map(|location| format!("{made}{}", names.location(location))).into_iter().collect()
}

/// What a thread waits for, or what a task does, in brackets.
pub(super) fn awaited(id: ThreadId, names: &LockNames<'_>) -> Option<String> {
    let thread = &names.model.threads[id];
    let Some(task) = thread.task.as_deref() else { return awaited_object(id, names) };
    let does = task_does(thread, task);
    let object = awaited_object(id, names).filter(|_| does == TaskDoes::Suspended);
    // By which thread it is polled would make a stack of its own for each.
    object.or_else(|| Some(format!("[{}]", task_state(does, task.kind))))
}

fn awaited_object(id: ThreadId, names: &LockNames<'_>) -> Option<String> {
    let awaited = names.model.threads[id].awaited()?;
    Some(format!("[waits {}]", awaited_words(awaited.object(), names)))
}
