//! The tasks of tokio that nobody recorded, as JSON: in groups, and one by one. It computes nothing.

use std::io::{self, Write};

use read_rip_evidence::runtimes::{AwaitStep, TaskStage, TokioTask, TokioTasks};
use read_rip_model::locks::{task_function, tokio_groups, tokio_lock_type, users_await};
use serde::Serialize;

use super::values::Address;
use super::{Json, Line};
use crate::names::LockNames;
use crate::tokio_tasks::seen_tasks;

/// Tasks of tokio that nobody recorded, by its memory: those that run one function and do the same.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct SeenTasks<'a> {
    /// How many.
    count: usize,
    /// The function that they run.
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
    /// Where tokio's function begins that polls them.
    poll: Address,
    /// What they do. aborted: they end with their next poll.
    #[cfg_attr(test, schemars(extend("enum" = stages())))]
    state: &'static str,
    /// How many of them were suspended in both readings, with nothing changed. Left out if there was one reading.
    #[serde(skip_serializing_if = "Option::is_none")]
    still: Option<usize>,
    /// They are suspended, and nobody has a waker of them.
    no_waker: bool,
    /// The end of another task wakes each of them.
    awaits_end: bool,
    /// The function of a task whose end wakes one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    awaited_function: Option<&'a str>,
    /// The function in whose await they are suspended, by debug information: the one of the program's own code that is
    /// furthest in.
    #[serde(skip_serializing_if = "Option::is_none")]
    suspended_in: Option<Await<'a>>,
}

/// An async function, and the line of the await in which it is suspended.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Await<'a> {
    /// The function.
    function: &'a str,
    /// The source file.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    /// The line.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

/// A lock of tokio, and what a task has to do with it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SeenLock<'a> {
    /// The address of the semaphore in it.
    lock: Address,
    /// What it is: mutex, read-write lock, semaphore, or something else that has a semaphore.
    #[serde(rename = "type")]
    lock_type: &'static str,
    /// The variable with the guard or the permit. Left out of a lock that is awaited.
    #[serde(skip_serializing_if = "Option::is_none")]
    variable: Option<&'a str>,
    /// Whether the guard lives for certain: it was neither moved nor dropped. Left out of a lock that is awaited.
    #[serde(skip_serializing_if = "Option::is_none")]
    certain: Option<bool>,
}

/// A task of tokio that nobody recorded, by its memory.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct SeenTask<'a> {
    /// The number that tokio has given it.
    number: u64,
    /// The function that it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
    /// What it does. aborted: it ends with its next poll.
    #[cfg_attr(test, schemars(extend("enum" = stages())))]
    state: &'static str,
    /// Whether it was suspended in both readings, with nothing changed. Left out if there was one reading.
    #[serde(skip_serializing_if = "Option::is_none")]
    still: Option<bool>,
    /// Whether its `JoinHandle` exists.
    join_handle: bool,
    /// How many wakers and abort handles of it exist.
    wakers: u64,
    /// The number of the task that its end wakes.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_wakes: Option<u64>,
    /// The async functions that it is suspended in, outermost first: each awaits the next one. By debug information.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    awaits: Vec<Await<'a>>,
    /// The type of the future that the last of these functions awaits.
    #[serde(skip_serializing_if = "Option::is_none")]
    awaited_type: Option<&'a str>,
    /// The lock that it awaits.
    #[serde(skip_serializing_if = "Option::is_none")]
    awaited_lock: Option<SeenLock<'a>>,
    /// The locks whose guards it has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    held_locks: Vec<SeenLock<'a>>,
}

impl<W: Write> Json<W> {
    /// A line for each function and state of tasks of tokio that nobody recorded.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn tokio_groups(&mut self, names: &LockNames<'_>) -> io::Result<()> {
        let Some(tasks) = seen_tasks(names).and_then(|seen| seen.tokio.as_ref()) else { return Ok(()) };
        let is_compared = tasks.tasks.iter().any(|task| task.is_still.is_some());
        for group in tokio_groups(tasks) {
            for part in &group.parts {
                self.line(Line::SeenTasks(SeenTasks {
                    count: part.count,
                    function: group.function,
                    poll: Address(group.poll),
                    state: stage_name(part.does.stage),
                    still: is_compared.then_some(part.still),
                    no_waker: part.does.has_no_waker,
                    awaits_end: part.does.wakes_after.is_some(),
                    awaited_function: part.does.wakes_after.flatten(),
                    suspended_in: part
                        .does
                        .chain
                        .and_then(|at| Some(step(users_await(tasks.chains.get(at)?)?))),
                }))?;
            }
        }
        Ok(())
    }

    /// A line for each task of tokio that nobody recorded.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn tokio_tasks(&mut self, names: &LockNames<'_>) -> io::Result<()> {
        let Some(tasks) = seen_tasks(names).and_then(|seen| seen.tokio.as_ref()) else { return Ok(()) };
        for task in &tasks.tasks {
            self.line(Line::SeenTask(SeenTask {
                number: task.id,
                function: task_function(tasks, task),
                state: stage_name(task.stage),
                still: task.is_still,
                join_handle: task.has_handle,
                wakers: task.wakers,
                end_wakes: task.wakes.map(|at| tasks.tasks[at].id),
                awaits: tasks.chain(task).into_iter().flat_map(|chain| &chain.steps).map(step).collect(),
                awaited_type: tasks.chain(task).map(|chain| &*chain.awaited).filter(|of| !of.is_empty()),
                awaited_lock: awaited_lock(tasks, task),
                held_locks: held_locks(tasks, task),
            }))?;
        }
        Ok(())
    }
}

fn step(of: &AwaitStep) -> Await<'_> {
    Await { function: &of.function, file: of.file.as_deref(), line: of.line }
}

fn awaited_lock<'a>(tasks: &'a TokioTasks, task: &'a TokioTask) -> Option<SeenLock<'a>> {
    let lock = &tasks.locks[task.awaits.as_ref()?.lock];
    let lock_type = tokio_lock_type(lock.kind);
    Some(SeenLock { lock: Address(lock.address), lock_type, variable: None, certain: None })
}

fn held_locks<'a>(tasks: &'a TokioTasks, task: &'a TokioTask) -> Vec<SeenLock<'a>> {
    let held = task.holds.iter().map(|held| {
        let lock = &tasks.locks[held.lock];
        SeenLock {
            lock: Address(lock.address),
            lock_type: tokio_lock_type(lock.kind),
            variable: Some(&*held.variable).filter(|variable| !variable.is_empty()),
            certain: Some(held.is_certain),
        }
    });
    held.collect()
}

/// The name of what a task does.
fn stage_name(stage: TaskStage) -> &'static str {
    match stage {
        TaskStage::Polled => "polled",
        TaskStage::Ready => "ready",
        TaskStage::Suspended => "suspended",
        TaskStage::Aborted => "aborted",
        TaskStage::Ended => "ended",
    }
}

/// All names of what tasks do.
#[cfg(test)]
fn stages() -> [&'static str; 5] {
    use TaskStage::{Aborted, Ended, Polled, Ready, Suspended};
    [Polled, Ready, Suspended, Aborted, Ended].map(stage_name)
}
