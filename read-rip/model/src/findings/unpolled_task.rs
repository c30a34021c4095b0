//! Tasks that were woken or made, and that nobody polls.
//!
//! # Question
//!
//! Which tasks are ready to run, and are not run, although their executor has workers that could?
//!
//! # Method
//!
//! A task counts its wakes. One that was woken since its last poll, or was never polled, is ready. If it has been for
//! a tenth of `threshold`, is the same in two readings, and its executor is not starved (`starved_runtime`), then
//! whoever should poll it does not: a `LocalSet` that is not awaited, a `FuturesUnordered` that its task has left, an
//! executor that has ended. A worker in a poll may keep a task in its queue, if nobody asks for events (`undriven`).
//!
//! # Blind spots
//!
//! A task whose wakes are not counted is never called ready. On a machine without free processors a ready task may wait
//! for long.
//!
//! # Example output
//!
//! ```text
//! suspected unpolled-task: 2 tasks are ready to run, and nobody polls them
//!     ticker[task 7] was woken and is not polled, for 4.0 s
//!     ticker[task 8] was made and never polled, for 4.1 s
//! ```

use read_rip_ring::TaskKind;
use serde::Serialize;

use super::pollers::Pollers;
use super::starved_runtime::{BusyRuntime, ReadyTasks};
use super::starved_runtime::{is_long_ready, ready_tasks};
use super::task_waits::task_of;
use super::{
    About, Advice, Analysis, Basis, Confidence, Doubt, Evidence, Finding, Kind, Paragraph, View, Words,
};
use crate::locks::ThreadId;
use crate::units::{agree, counted};

/// See the file's description.
pub(super) struct UnpolledTask;

/// Tasks that were woken, and that nobody polls.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unpolled {
    /// The tasks.
    pub ready: ReadyTasks,
    /// The task that polls the first of them, if it is part of another task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outer: Option<ThreadId>,
}

impl Analysis for UnpolledTask {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let starved: Vec<&BusyRuntime> = found
            .iter()
            .filter_map(|finding| match &finding.evidence {
                Evidence::BusyRuntime(busy) if !busy.is_blocking => Some(busy),
                _ => None,
            })
            .collect();
        // What a worker has in its queue, it has to itself while it is in a poll and nobody is woken.
        let is_undriven = found.iter().any(|finding| matches!(finding.evidence, Evidence::Undriven(_)));
        let is_explained = |id: ThreadId| {
            let only_thread = match Pollers::of(view, id) {
                Some(Pollers::Thread(thread)) => Some(thread),
                _ => None,
            };
            let runtime = task_of(&view.now.threads[id]).and_then(|task| task.runtime);
            let number = runtime.map(|runtime| runtime.number).filter(|_| only_thread.is_none());
            let of_it = (number, only_thread);
            if is_undriven && only_thread.is_none() {
                return true;
            }
            of_it != (None, None) && starved.iter().any(|busy| (busy.runtime, busy.only_thread) == of_it)
        };
        let tasks: Vec<ThreadId> = (0..view.now.threads.len())
            .filter(|&id| task_of(&view.now.threads[id]).is_some_and(|task| task.kind == TaskKind::Async))
            .filter(|&id| is_long_ready(view, id) && !is_explained(id))
            .collect();
        if tasks.is_empty() {
            return;
        }
        let ready = ready_tasks(view, tasks);
        let first = ready.first.first().map(|one| one.task);
        let outer = first.and_then(|id| task_of(&view.now.threads[id])?.outer);
        let since_ns = first.and_then(|id| {
            let thread = &view.now.threads[id];
            task_of(thread)?.ready_ns(thread.claimed_ns)
        });
        let hurt = ready.count;
        let evidence = Unpolled { ready, outer };
        let mut finding =
            Finding::new(Kind::UnpolledTask, Confidence::Suspected, evidence, Advice::FindExecutor);
        finding.doubts.push(Doubt::UnrecordedWorker);
        finding.threads_hurt = hurt;
        finding.since_ns = since_ns;
        found.push(finding);
    }
}

impl Basis for Unpolled {
    fn about(&self, all: &mut About<'_>) {
        all.mentions.threads.extend(self.ready.first.iter().map(|ready| ready.task));
        all.mentions.threads.extend(self.outer);
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let count = self.ready.count;
        let summary = format!(
            "{} {} ready to run, and nobody polls {}",
            counted(count as u64, "task"),
            agree(count, "is", "are"),
            agree(count, "it", "them")
        );
        let mut evidence = self.ready.lines(words);
        if let (Some(outer), Some(first)) = (self.outer, self.ready.first.first()) {
            let (first, outer) = (words.thread(first.task), words.thread(outer));
            evidence.push(format!("{first} is a part of {outer}, which polls it"));
        }
        Paragraph { summary, evidence }
    }
}
