//! Tasks as text: what they do and where, in groups or one by one with the tree of their awaits.
//!
//! Every view takes the words for what a task does from here. It groups nothing and orders nothing: `locks` does.

use std::io::{self, Write};

use read_rip_model::locks::{
    LockId, Object, Peer, Rest, TaskDoes, TaskFacts, TaskGroup, TaskPlace, TaskWait, ThreadId, ThreadLocks,
    task_does, task_place, task_since,
};
use read_rip_ring::{FUTURES_LEFT_OUT_MAX, FUTURES_MAX, TaskKind, task_number};

use super::names::{LockNames, awaited_words, lock_type};
use super::units::{counted, duration, lasted, lasted_at_least};

/// What a group of tasks does and where; how many they are: `2 tasks`; and how long: `the longest for 3.0 s`.
pub fn task_group(group: &TaskGroup, names: &LockNames<'_>) -> (String, String, Option<String>) {
    let does = task_state(group.does, group.kind);
    let place = match group.locks[..] {
        [first, _, ..] => many_in_words(group, first, names),
        _ => place_in_words(group.does, group.place.object, group.place, names),
    };
    let longest = group.tasks.first().and_then(|&id| lasting(id, names)).map(|lasting| {
        let longest = if group.tasks.len() > 1 { "the longest " } else { "" };
        format!("{longest}{lasting}")
    });
    (format!("{does}{place}"), what_they_are(group.kind, group.tasks.len()), longest)
}

/// Writes groups of tasks, a line each. With `all_names`, the tasks of each group follow it.
///
/// # Errors
///
/// Those of `out`.
pub fn task_groups(
    out: &mut dyn Write,
    groups: &[TaskGroup],
    names: &LockNames<'_>,
    all_names: bool,
) -> io::Result<()> {
    let bold = anstyle::Style::new().bold();
    for group in groups {
        let (does, what, longest) = task_group(group, names);
        let longest = longest.map(|longest| format!(", {longest}")).unwrap_or_default();
        writeln!(out, "{bold}{does}{bold:#} : {what}{longest}")?;
        if all_names {
            let all: Vec<String> = group.tasks.iter().map(|&id| names.thread(id)).collect();
            writeln!(out, "    {}", all.join(", "))?;
        }
    }
    Ok(())
}

fn what_they_are(kind: TaskKind, count: usize) -> String {
    let noun = match kind {
        TaskKind::Async | TaskKind::Unknown(_) => "task",
        TaskKind::Blocking => "blocking call",
        TaskKind::Coroutine => "coroutine",
    };
    counted(count as u64, noun)
}

/// What a task of this kind does, in words.
pub fn task_state(does: TaskDoes, kind: TaskKind) -> &'static str {
    match (does, kind) {
        (TaskDoes::Runs, TaskKind::Async | TaskKind::Unknown(_)) => "polled",
        (TaskDoes::Runs, _) => "runs",
        (TaskDoes::Ready, TaskKind::Blocking) => "waits for a thread of the pool",
        (TaskDoes::Ready, TaskKind::Coroutine) => "never resumed",
        (TaskDoes::Ready, _) => "ready and not polled",
        (TaskDoes::Suspended, _) => "suspended",
        (TaskDoes::Ended, _) => "ended",
    }
}

/// What a task does, and who polls it: `polled by worker[10]`. Nothing of a thread.
pub(crate) fn task_doing(id: ThreadId, names: &LockNames<'_>) -> String {
    let thread = &names.model.threads[id];
    let Some(task) = thread.task.as_deref() else { return String::new() };
    let mut doing = task_state(task_does(thread, task), task.kind).to_owned();
    if let (true, Some(by)) = (task.is_polled, task.thread) {
        let by_or_on = if task.kind == TaskKind::Async { "by" } else { "on" };
        doing += &format!(" {by_or_on} {}", names.thread(by));
    }
    if let Some(outer) = task.outer {
        doing += &format!(" within {}", names.thread(outer));
    }
    doing
}

/// The same with the await where it is suspended, if that is known: `suspended at serve main.rs:20`. It stands beside
/// when that began, and says so if it may have been later.
pub fn task_doing_at(id: ThreadId, names: &LockNames<'_>) -> String {
    let (thread, mut doing) = (&names.model.threads[id], task_doing(id, names));
    let Some(task) = thread.task.as_deref() else { return doing };
    let place = task_place(thread, task);
    if let (TaskDoes::Suspended, true, Some(at)) = (task_does(thread, task), place.is_await, place.location) {
        doing += &format!(" at {}", names.location(at));
    }
    let (_, is_at_most) = task_since(thread, task);
    doing + if is_at_most { ", since then or later" } else { "" }
}

/// The same as `task_doing`, with for how long, and what it waits for. The place stands beside it, except for the one
/// where it was made.
pub fn task_doing_since(id: ThreadId, names: &LockNames<'_>) -> String {
    let thread = &names.model.threads[id];
    let doing = [task_doing(id, names)].into_iter().chain(lasting(id, names)).collect::<Vec<_>>().join(" ");
    let place = thread.task.as_deref().map(|task| task_place(thread, task)).unwrap_or_default();
    let awaited =
        thread.awaited().map(|awaited| format!("waiting {}", awaited_words(awaited.object(), names)));
    let made_at = place.location.filter(|_| place.is_where_made);
    let made_at = made_at.map(|made_at| format!("made at {}", names.line(made_at)));
    [doing].into_iter().chain(awaited).chain(made_at).collect::<Vec<_>>().join(", ")
}

/// Where the tasks of a group wait for several objects, of which one is `first`.
fn many_in_words(group: &TaskGroup, first: LockId, names: &LockNames<'_>) -> String {
    let objects = counted(group.locks.len() as u64, lock_type(&names.model.locks[first]));
    let line = group.place.location.map(|location| names.location(location));
    format!(", waiting for {objects}{}", line.map_or_else(String::new, |line| format!(" at {line}")))
}

/// What a task waits for, and where it is.
fn place_in_words(
    does: TaskDoes,
    awaited: Option<Object>,
    place: TaskPlace,
    names: &LockNames<'_>,
) -> String {
    let waiting = awaited.map(|object| format!(", waiting {}", awaited_words(object, names)));
    let waiting = waiting.unwrap_or_default();
    let Some(location) = place.location else { return waiting };
    let line = names.location(location);
    let is_there = does == TaskDoes::Suspended || place.object.is_some();
    match (place.is_where_made, is_there) {
        (true, _) => format!("{waiting}, made at {line}"),
        (false, true) => format!("{waiting} at {line}"),
        (false, false) => format!("{waiting}, last at {line}"),
    }
}

/// Who has used the other side of the channel at which a task waits, if that is known.
fn peer_in_words(peer: &Peer, names: &LockNames<'_>) -> String {
    let side = if peer.receives { "receiver" } else { "sender" };
    if peer.is_presumed {
        let user = peer.present.map(|user| format!(" ({} is presumed to answer)", names.thread(user)));
        return user.unwrap_or_default();
    }
    match (peer.present, peer.user.and_then(task_number), peer.ends) {
        (Some(user), ..) => format!(" (only {} has used its {side})", names.thread(user)),
        (None, Some(number), _) => format!(" (only task {number} has used its {side}, and has ended)"),
        (None, None, 0 | 1) => String::new(),
        (None, None, ends) => format!(" ({ends} {side}s)"),
    }
}

/// For how long a task has done what it does.
fn lasting(id: ThreadId, names: &LockNames<'_>) -> Option<String> {
    let (model, thread) = (names.model, &names.model.threads[id]);
    let (since_ns, is_at_most) = task_since(thread, thread.task.as_deref()?);
    let length_ns = model.now_ns?.checked_sub(since_ns?)?;
    // If the process died at an unknown time, the task may have gone on after what the record ends with.
    match (model.is_end_unknown, is_at_most) {
        (true, is_at_most) => Some(lasted_at_least(Some(length_ns).filter(|_| !is_at_most))),
        (false, true) => Some(format!("for at most {}", duration(length_ns))),
        (false, false) => lasted(false, Some(length_ns)),
    }
}

/// Writes what the threads of executors do that say when they sleep: a line for each that is awake, and one for all
/// others. With `all_names`, each has a line.
///
/// # Errors
///
/// Those of `out`.
pub fn workers(out: &mut dyn Write, names: &LockNames<'_>, all_names: bool) -> io::Result<()> {
    let rests = names.model.present().filter_map(|(id, thread)| Some((id, thread.rest.as_deref()?)));
    let (mut asleep, awake): (Vec<_>, Vec<_>) = rests.partition(|(_, rest)| rest.is_asleep);
    for (id, rest) in &awake {
        worker(out, *id, rest, names)?;
    }
    asleep.sort_by_key(|(id, rest)| (rest.since_ns, *id));
    match asleep[..] {
        [(_, first), _, ..] if !all_names => {
            let bold = anstyle::Style::new().bold();
            let lasting = lasting_since(first.since_ns, names);
            let lasting = lasting.map_or_else(String::new, |lasting| format!(", the longest {lasting}"));
            writeln!(out, "{bold}{} workers{bold:#}: asleep{lasting}", asleep.len())
        }
        _ => asleep.iter().try_for_each(|(id, rest)| worker(out, *id, rest, names)),
    }
}

fn worker(out: &mut dyn Write, id: ThreadId, rest: &Rest, names: &LockNames<'_>) -> io::Result<()> {
    let bold = anstyle::Style::new().bold();
    let polled = names.model.polled_by(id);
    let does = match polled {
        Some(task) => format!("polls {}", names.thread(task)),
        None if rest.is_asleep => "asleep".to_owned(),
        None => "awake".to_owned(),
    };
    let lasting = polled.map_or_else(|| lasting_since(rest.since_ns, names), |task| lasting(task, names));
    let lasting = lasting.map_or_else(String::new, |lasting| format!(" {lasting}"));
    let share = rest.awake_percent().map(|percent| format!(", awake for {percent}% of the time before"));
    writeln!(out, "{bold}{}{bold:#}: {does}{lasting}{}", names.thread(id), share.unwrap_or_default())
}

/// For how long it has been so, if it began then.
fn lasting_since(since_ns: Option<u64>, names: &LockNames<'_>) -> Option<String> {
    let length_ns = names.model.now_ns?.checked_sub(since_ns?)?;
    lasted(names.model.is_end_unknown, Some(length_ns))
}

/// Writes a line about a task, and the tree of its awaits below it.
///
/// # Errors
///
/// Those of `out`.
pub fn task(out: &mut dyn Write, id: ThreadId, names: &LockNames<'_>) -> io::Result<()> {
    let thread = &names.model.threads[id];
    let Some(task) = thread.task.as_deref() else { return Ok(()) };
    let bold = anstyle::Style::new().bold();
    write!(out, "{bold}{}{bold:#}: {}", names.thread(id), task_doing(id, names))?;
    if let Some(lasting) = lasting(id, names) {
        write!(out, " {lasting}")?;
    }
    let awaited = thread.awaited().map(|awaited| awaited.object());
    let place = place_in_words(task_does(thread, task), awaited, task_place(thread, task), names);
    write!(out, "{place}")?;
    if let Some(peer) = &thread.peer {
        write!(out, "{}", peer_in_words(peer, names))?;
    }
    let is_said = thread.name.is_empty() || task_place(thread, task).is_where_made;
    if let Some(made_at) = task.made_at.filter(|_| !is_said) {
        write!(out, ", made at {}", names.line(made_at))?;
    }
    let lost = if task.has_no_waker() { ", and nobody has a waker of it" } else { "" };
    writeln!(out, ", {}{}{lost}", counted(task.polls, "poll"), wakes(task))?;
    for hold in &task.holds {
        let at = hold.hold.location.map(|at| format!(", acquired at {}", names.location(at)));
        writeln!(out, "    holds {}{}", names.lock(&names.model.locks[hold.lock]), at.unwrap_or_default())?;
    }
    tree(out, thread, task, names)
}

fn wakes(task: &TaskFacts) -> String {
    match (task.wakes, task.is_polled || task.is_new()) {
        (0, _) => String::new(),
        (wakes, true) => format!(", woken {} since the poll began", times(wakes)),
        (wakes, false) => format!(", woken {} since", times(wakes)),
    }
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// The futures of a task that were named, with the waits of each below it.
fn tree(
    out: &mut dyn Write,
    thread: &ThreadLocks,
    task: &TaskFacts,
    names: &LockNames<'_>,
) -> io::Result<()> {
    let known = |index: Option<usize>| index.is_some_and(|index| task.future(index).is_some());
    // The one wait of the whole task is on its line.
    let is_shown = |wait: &TaskWait| thread.awaited().and_then(|awaited| awaited.wait()) == Some(&wait.wait);
    let is_simple = task.futures.is_empty() && task.waits.len() <= 1 && task.waits.iter().all(is_shown);
    let roots = task.futures.iter().filter(|future| !known(future.outer));
    // No root leads to futures of a circle: the entry of an outer one was used again, or the table is damaged.
    let mut shown = Vec::new();
    for root in roots.chain(&task.futures) {
        let mut stack = vec![(root, 1)];
        while let Some((future, depth)) = stack.pop() {
            if shown.contains(&future.index) {
                continue;
            }
            shown.push(future.index);
            let place = names.location(future.location);
            writeln!(out, "{:indent$}{place}{}", "", polled(future.is_polled), indent = 4 * depth)?;
            for wait in task.waits.iter().filter(|wait| wait.future == Some(future.index)) {
                self::wait(out, wait, depth + 1, names)?;
            }
            let inner = task.futures.iter().filter(|inner| inner.outer == Some(future.index));
            let mut inner: Vec<_> = inner.map(|inner| (inner, depth + 1)).collect();
            inner.reverse();
            stack.append(&mut inner);
        }
    }
    if task.left_out > 0 {
        let at_least = if task.left_out == FUTURES_LEFT_OUT_MAX { "at least " } else { "" };
        let more = counted(task.left_out, "more await");
        let are = if task.left_out == 1 { "is" } else { "are" };
        writeln!(out, "    {at_least}{more} {are} not shown: a task has room for {FUTURES_MAX}")?;
    }
    if !is_simple {
        for wait in task.waits.iter().filter(|wait| !known(wait.future)) {
            self::wait(out, wait, 1, names)?;
        }
    }
    Ok(())
}

fn wait(out: &mut dyn Write, wait: &TaskWait, depth: usize, names: &LockNames<'_>) -> io::Result<()> {
    let lock = names.lock(&names.model.locks[wait.wait.lock]);
    let location = names.location(wait.wait.location);
    let polled = polled(wait.is_polled);
    writeln!(out, "{:indent$}waits for {lock} at {location}{polled}", "", indent = 4 * depth)
}

fn polled(is_polled: Option<bool>) -> &'static str {
    if is_polled == Some(false) { " (skipped by the last poll of the task)" } else { "" }
}
