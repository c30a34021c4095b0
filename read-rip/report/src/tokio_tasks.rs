//! The tasks of tokio that nobody recorded, as text: how many run which function, and what they do.
//!
//! It groups nothing: `locks` does.

use std::io::{self, Write};

use read_rip_evidence::runtimes::{AwaitChain, AwaitStep, TaskStage, TokioTask, TokioTasks};
use read_rip_evidence::standing::Standings;
use read_rip_model::locks::{
    TokioDoes, TokioGroup, TokioPart, task_function, tokio_groups, tokio_lock_type, users_await,
};
use read_rip_symbols::Whose;

use super::names::{LockNames, SeenNames};
use super::units::{agree, counted, duration};
use crate::printable;

/// So many groups are shown after other results.
const GROUPS_MAX: usize = 8;
/// So many locks.
const LOCKS_MAX: usize = 8;
/// So many tasks of a lock are named, of those that hold it and of those that await it.
const NAMED_MAX: usize = 3;
/// So many places of a function.
const PARTS_MAX: usize = 8;

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
    lines(names, if wants_all { usize::MAX } else { GROUPS_MAX }, wants_all)
        .iter()
        .try_for_each(|line| writeln!(out, "{line}"))
}

/// The same as lines for the end of another result.
pub(super) fn tokio_lines(names: &LockNames<'_>) -> Vec<String> {
    lines(names, GROUPS_MAX, false)
}

/// What is said of tasks that are not found.
const STRANGE: &str = "the tasks of tokio are not found: read-rip does not understand its version, or no stack leads to \
                       its runtime";

fn lines(names: &LockNames<'_>, at_most: usize, wants_all: bool) -> Vec<String> {
    let is_strange = |seen: &SeenNames<'_>| seen.standings.has_strange_tokio();
    if !names.model.has_tasks() && names.seen.as_ref().is_some_and(is_strange) {
        return vec![STRANGE.to_owned()];
    }
    let Some(seen) = seen_tasks(names) else { return Vec::new() };
    let Some(tasks) = &seen.tokio else { return Vec::new() };
    let groups = tokio_groups(tasks);
    let mut lines = vec![heading(tasks, &groups)];
    let indent = if groups.is_empty() { "" } else { "  " };
    for group in groups.iter().take(at_most) {
        let callers = group.parts.iter().filter(|_| wants_all).filter_map(|part| callers(part, tasks, names));
        let of_group = group_lines(group, tasks, names).into_iter().chain(callers);
        lines.extend(of_group.map(|line| format!("{indent}{line}")));
    }
    let more = groups.len().saturating_sub(at_most);
    if more > 0 {
        let tasks: usize = groups[at_most..].iter().map(|group| group.count).sum();
        let (tasks, more) = (counted(tasks as u64, "task"), counted(more as u64, "more function"));
        lines.push(format!("{indent}and {tasks} of {more}"));
    }
    lines.extend(lock_lines(tasks, names, if wants_all { usize::MAX } else { LOCKS_MAX }));
    if tasks.unplaced > 0 {
        let unplaced = counted(tasks.unplaced as u64, "more suspended task");
        lines.push(format!(
            "where {unplaced} {} is not known: that took too long",
            agree(tasks.unplaced, "is", "are")
        ));
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

/// `shop::handle : 41 tasks: 40 suspended, 1 polled`. Where they are suspended in several places, a line each.
fn group_lines(group: &TokioGroup<'_>, tasks: &TokioTasks, names: &LockNames<'_>) -> Vec<String> {
    let function = match group.function {
        Some(function) => function_name(function, names),
        None => format!("a function without a name ({:#x})", group.poll),
    };
    let all = counted(group.count as u64, "task");
    let words = |part: &TokioPart<'_>| part_words(part, group, tasks, names);
    match &group.parts[..] {
        [part] => vec![format!("{function} : {all} {}", words(part))],
        parts if parts.iter().all(|part| part.does.chain.is_none()) => {
            let parts = parts.iter().map(|part| format!("{} {}", part.count, words(part)));
            vec![format!("{function} : {all}: {}", parts.collect::<Vec<_>>().join(", "))]
        }
        parts => {
            let shown = parts.iter().take(PARTS_MAX).map(|part| format!("  {} {}", part.count, words(part)));
            let more = parts.len().saturating_sub(PARTS_MAX);
            let more = (more > 0).then(|| format!("  and in {}", counted(more as u64, "more place")));
            [format!("{function} : {all}:")].into_iter().chain(shown).chain(more).collect()
        }
    }
}

/// Where tasks are suspended, by the await of the program's own code.
fn place(chain: &AwaitChain, group: &TokioGroup<'_>, names: &LockNames<'_>) -> String {
    let Some(step) = users_await(chain) else { return String::new() };
    let within = match group.function {
        Some(function) if function == step.function => String::new(),
        _ => format!(" in {}", function_name(&step.function, names)),
    };
    let at = source(step, names).map(|source| format!(" at {source}")).unwrap_or_default();
    format!("{within}{at}{}", awaited(chain, step, names))
}

/// The functions that await the one in which tasks are suspended, from the inside out.
fn callers(part: &TokioPart<'_>, tasks: &TokioTasks, names: &LockNames<'_>) -> Option<String> {
    let chain = tasks.chains.get(part.does.chain?)?;
    let innermost = users_await(chain)?;
    let around: Vec<String> = chain
        .steps
        .iter()
        .rev()
        .skip_while(|step| *step != innermost)
        .skip(1)
        .map(|step| {
            let at = source(step, names).map(|source| format!(" at {source}")).unwrap_or_default();
            format!("by {}{at}", function_name(&step.function, names))
        })
        .collect();
    (!around.is_empty()).then(|| format!("    awaited {}", around.join(", ")))
}

/// What the program's own code awaits: a function of a library, or a future without an await.
fn awaited(chain: &AwaitChain, users: &AwaitStep, names: &LockNames<'_>) -> String {
    let after = chain.steps.iter().skip_while(|step| *step != users).nth(1);
    match after {
        Some(step) => format!(", awaits {}", function_name(&step.function, names)),
        None if chain.is_open => {
            format!(", awaits {}: what is in it is not known", awaited_type(chain, names))
        }
        None if chain.awaited.is_empty() => String::new(),
        None => format!(", awaits {}", awaited_type(chain, names)),
    }
}

/// The type that a chain ends at, in short.
fn awaited_type(chain: &AwaitChain, names: &LockNames<'_>) -> String {
    match &*chain.awaited {
        of if of.contains("dyn ") => "a `dyn Future`".to_owned(),
        of if of.contains("::poll_fn::PollFn<") => "a `select!` or a `poll_fn`".to_owned(),
        of => function_name(of, names),
    }
}

/// The line of an await, after the package of a library.
fn source(step: &AwaitStep, names: &LockNames<'_>) -> Option<String> {
    let (file, line) = (step.file.as_deref()?, step.line?);
    let line = names.texts.source_line(file, line);
    Some(match Whose::of(None, Some(file), &Whose::User).package_or_language() {
        Some(package) => format!("{} {line}", printable(package)),
        None => line,
    })
}

/// The locks of tokio that tasks await, a line each: who awaits them, and who holds them.
fn lock_lines(tasks: &TokioTasks, names: &LockNames<'_>, at_most: usize) -> Vec<String> {
    let mut awaiting: Vec<Vec<&TokioTask>> = vec![Vec::new(); tasks.locks.len()];
    for task in &tasks.tasks {
        task.awaits.iter().for_each(|awaited| awaiting[awaited.lock].push(task));
    }
    let awaited: Vec<usize> = (0..tasks.locks.len()).filter(|&at| !awaiting[at].is_empty()).collect();
    let lines = awaited.iter().take(at_most).map(|&at| {
        let lock = &tasks.locks[at];
        let holders: Vec<(&TokioTask, bool)> =
            tasks.holders(at).map(|(of, held)| (&tasks.tasks[of], held.is_certain)).collect();
        let certain: Vec<&TokioTask> = holders.iter().filter(|of| of.1).map(|of| of.0).collect();
        let perhaps: Vec<&TokioTask> = holders.iter().filter(|of| !of.1).map(|of| of.0).collect();
        let mut held = Vec::new();
        if !certain.is_empty() {
            held.push(format!("held by {}", task_list(&certain, tasks, names)));
        }
        if !perhaps.is_empty() && certain.is_empty() {
            held.push(format!("held by {}, unless the guard was moved", task_list(&perhaps, tasks, names)));
        }
        if held.is_empty() {
            held.push("held by nobody that is seen".to_owned());
        }
        held.push(format!("awaited by {}", task_list(&awaiting[at], tasks, names)));
        format!("{} of tokio ({:#x}): {}", tokio_lock_type(lock.kind), lock.address, held.join("; "))
    });
    let more = awaited.len().saturating_sub(at_most);
    let more = (more > 0).then(|| {
        format!("and {} of tokio {} awaited", counted(more as u64, "more lock"), agree(more, "is", "are"))
    });
    lines.chain(more).collect()
}

/// `task 7 (shop::pay), task 8 (shop::pay) and 3 more`.
fn task_list(of: &[&TokioTask], tasks: &TokioTasks, names: &LockNames<'_>) -> String {
    let name = |task: &&TokioTask| match task_function(tasks, task) {
        Some(function) => format!("task {} ({})", task.id, function_name(function, names)),
        None => format!("task {}", task.id),
    };
    let named: Vec<String> = of.iter().take(NAMED_MAX).map(name).collect();
    let more = of.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    named.join(", ") + &more
}

/// The name of a function, without type arguments unless texts are verbose.
fn function_name(function: &str, names: &LockNames<'_>) -> String {
    match names.texts.is_verbose {
        true => printable(function).into_owned(),
        false => printable(&read_rip_model::locations::without_arguments(function)).into_owned(),
    }
}

fn part_words(
    part: &TokioPart<'_>,
    group: &TokioGroup<'_>,
    tasks: &TokioTasks,
    names: &LockNames<'_>,
) -> String {
    let TokioDoes { stage, has_no_waker, wakes_after, chain } = part.does;
    let chain = chain.and_then(|at| tasks.chains.get(at));
    let place = chain.map(|chain| place(chain, group, names)).unwrap_or_default();
    let state = format!("{}{place}", tokio_stage(stage));
    let them = agree(part.count, "it", "them");
    match wakes_after {
        Some(Some(function)) => format!("{state} until a task of {} ends", function_name(function, names)),
        Some(None) => format!("{state} until another task ends"),
        None if has_no_waker => format!("{state}, and nobody has a waker of {them}"),
        None => state,
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
