//! The tasks of tokio that nobody recorded, as text: how many run which function, and what they do.
//!
//! It groups nothing: `locks` does.

use std::io::{self, Write};

use read_rip_evidence::runtimes::{TaskStage, TokioTasks};
use read_rip_evidence::standing::Standings;
use read_rip_model::locks::{TokioDoes, TokioGroup, TokioPart, tokio_groups};

use super::names::{LockNames, SeenNames};
use super::units::{agree, counted, duration};
use crate::printable;

/// So many groups are shown after other results.
const GROUPS_MAX: usize = 8;

/// The process, if tasks of tokio are known in it, and nothing has recorded any.
pub(super) fn seen_tasks<'a>(names: &LockNames<'a>) -> Option<&'a Standings> {
    let seen = names.seen.map(|seen| seen.standings).filter(|_| !names.model.has_tasks())?;
    seen.tokio.as_ref().map(|_| seen)
}

/// Writes what the tasks of tokio do: a heading, and a line for each function; of many functions the first ones, unless
/// all are wanted. Nothing if none are known.
///
/// # Errors
///
/// Those of `out`.
pub fn tokio_tasks(out: &mut dyn Write, names: &LockNames<'_>, wants_all: bool) -> io::Result<()> {
    lines(names, if wants_all { usize::MAX } else { GROUPS_MAX })
        .iter()
        .try_for_each(|line| writeln!(out, "{line}"))
}

/// The same as lines for the end of another result.
pub(super) fn tokio_lines(names: &LockNames<'_>) -> Vec<String> {
    lines(names, GROUPS_MAX)
}

/// What is said of tasks that are not found.
const STRANGE: &str = "the tasks of tokio are not found: read-rip does not understand its version, or no stack leads to \
                       its runtime";

fn lines(names: &LockNames<'_>, at_most: usize) -> Vec<String> {
    let is_strange = |seen: &SeenNames<'_>| seen.standings.has_strange_tokio();
    if !names.model.has_tasks() && names.seen.as_ref().is_some_and(is_strange) {
        return vec![STRANGE.to_owned()];
    }
    let Some(seen) = seen_tasks(names) else { return Vec::new() };
    let Some(tasks) = &seen.tokio else { return Vec::new() };
    let groups = tokio_groups(tasks);
    let mut lines = vec![heading(tasks, &groups)];
    let indent = if groups.is_empty() { "" } else { "  " };
    lines.extend(groups.iter().take(at_most).map(|group| format!("{indent}{}", group_line(group, names))));
    let more = groups.len().saturating_sub(at_most);
    if more > 0 {
        let tasks: usize = groups[at_most..].iter().map(|group| group.count).sum();
        let (tasks, more) = (counted(tasks as u64, "task"), counted(more as u64, "more function"));
        lines.push(format!("{indent}and {tasks} of {more}"));
    }
    lines
}

/// `of 47 tasks (tokio, by its memory): 45 are suspended, 1 is polled; 44 stood still for 201 ms`.
fn heading(tasks: &TokioTasks, groups: &[TokioGroup<'_>]) -> String {
    if tasks.tasks.is_empty() && tasks.unread == 0 {
        return "the runtime of tokio has no tasks".to_owned();
    }
    let parts = || groups.iter().flat_map(|group| &group.parts);
    let stages = [
        (TaskStage::Suspended, ["is suspended", "are suspended"]),
        (TaskStage::Ready, ["is ready and not polled", "are ready and not polled"]),
        (TaskStage::Polled, ["is polled", "are polled"]),
        (TaskStage::Aborted, ["is aborted and not polled since", "are aborted and not polled since"]),
        (TaskStage::Ended, ["has ended", "have ended"]),
    ];
    let counts = stages.into_iter().filter_map(|(stage, [one, several])| {
        let count: usize = parts().filter(|part| part.does.stage == stage).map(|part| part.count).sum();
        (count > 0).then(|| format!("{count} {}", agree(count, one, several)))
    });
    let unread = match tasks.unread {
        0 => None,
        unread => {
            Some(format!("{unread} began meanwhile, or {} not looked at", agree(unread, "was", "were")))
        }
    };
    let counts: Vec<String> = counts.chain(unread).collect();
    let still: usize = parts().map(|part| part.still).sum();
    let still = tasks.apart_ns.map(|ns| format!("; nothing of {still} changed within {}", duration(ns)));
    let all = counted((tasks.tasks.len() + tasks.unread) as u64, "task");
    format!("of {all} (tokio, by its memory): {}{}", counts.join(", "), still.unwrap_or_default())
}

/// `shop::handle : 41 tasks: 40 suspended, 1 polled`.
fn group_line(group: &TokioGroup<'_>, names: &LockNames<'_>) -> String {
    let function = match group.function {
        Some(function) => function_name(function, names),
        None => format!("a function without a name ({:#x})", group.poll),
    };
    let all = counted(group.count as u64, "task");
    match &group.parts[..] {
        [part] => format!("{function} : {all} {}", part_words(part, names)),
        parts => {
            let parts = parts.iter().map(|part| format!("{} {}", part.count, part_words(part, names)));
            format!("{function} : {all}: {}", parts.collect::<Vec<_>>().join(", "))
        }
    }
}

/// The name of a function, without type arguments unless texts are verbose.
fn function_name(function: &str, names: &LockNames<'_>) -> String {
    match names.texts.is_verbose {
        true => printable(function).into_owned(),
        false => printable(&read_rip_model::locations::without_arguments(function)).into_owned(),
    }
}

fn part_words(part: &TokioPart<'_>, names: &LockNames<'_>) -> String {
    let TokioDoes { stage, has_no_waker, wakes_after } = part.does;
    let state = tokio_stage(stage);
    let them = agree(part.count, "it", "them");
    match wakes_after {
        Some(Some(function)) => format!("{state} until a task of {} ends", function_name(function, names)),
        Some(None) => format!("{state} until another task ends"),
        None if has_no_waker => format!("{state}, and nobody has a waker of {them}"),
        None => state.to_owned(),
    }
}

/// What a task of tokio does, in words.
pub fn tokio_stage(stage: TaskStage) -> &'static str {
    match stage {
        TaskStage::Polled => "polled",
        TaskStage::Ready => "ready and not polled",
        TaskStage::Suspended => "suspended",
        TaskStage::Aborted => "aborted and not polled since",
        TaskStage::Ended => "ended",
    }
}
