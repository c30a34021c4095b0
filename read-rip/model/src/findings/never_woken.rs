//! Tasks that nobody can wake.
//!
//! # Question
//!
//! Which tasks are suspended for good, because nobody has a waker of them?
//!
//! # Method
//!
//! A task counts the clones of its waker. If there was none when its last poll ended, and nobody has woken it since,
//! then nobody can: a waker is only made in a poll. So a future of it returned `Pending` and did not keep the waker, or
//! what kept it was dropped in that poll. It is reported if others wait for a lock that the task holds. A task that
//! waits for nothing on purpose, as `pending()` does, hurts nobody: `read-rip tasks` shows it.
//!
//! # Blind spots
//!
//! A parent that is not recorded may poll the task without a wake, as a time limit around it does. So it is suspected.
//! Tasks whose wakes are not counted, and those that are a part of another recorded task, are left out. A waker that
//! was dropped after the poll counts as one. A guard that can be sent to another task counts as no hold.
//!
//! # Example output
//!
//! ```text
//! suspected never-woken: 1 task is suspended, and nobody can wake it
//!     reader[task 7] holds CACHE, for which others wait, and was last at read server.rs:20, for 41 s
//! ```

use read_rip_ring::TaskKind;
use serde::Serialize;

use super::task_waits::{suspended, task_of};
use super::words::and_more;
use super::{
    About, Advice, Analysis, Basis, Confidence, Doubt, Finding, Kind, Paragraph, SuspendedFact, View, Words,
};
use crate::locks::{LockId, Ownership, ThreadId};
use crate::units::{agree, counted};

/// See the file's description.
pub(super) struct NeverWokenTask;

/// At most this many tasks are listed.
const LISTED_MAX: usize = 5;

/// Tasks that are suspended, and that nobody can wake.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NeverWoken {
    /// How many.
    pub count: usize,
    /// How many others wait for locks that they hold.
    pub waiting: usize,
    /// The first of them, those that have slept longest first.
    pub first: Vec<SleeperFact>,
}

/// A task that nobody can wake.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SleeperFact {
    /// The task.
    pub task: ThreadId,
    /// Where, and for how long.
    #[serde(flatten)]
    pub suspended: SuspendedFact,
    /// A lock that it holds and for which others wait.
    pub lock: LockId,
}

impl Analysis for NeverWokenTask {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let sleepers = (0..view.now.threads.len()).filter_map(|id| sleeper(view, id)).collect();
        found.extend(finding(view, sleepers));
    }
}

/// A task that nobody can wake, and that holds a lock for which others wait.
fn sleeper(view: &View<'_>, id: ThreadId) -> Option<SleeperFact> {
    let thread = &view.now.threads[id];
    let task = task_of(thread).filter(|task| task.kind == TaskKind::Async && task.has_no_waker())?;
    let is_waited_for = |lock: LockId| view.waits(lock).any(|wait| wait.is_steady && wait.thread != id);
    let is_kept = |lock: LockId| view.now.locks[lock].nature.ownership != Ownership::Anyone;
    let kept = task.holds.iter().filter(|hold| hold.hold.is_steady && is_kept(hold.lock));
    let lock = kept.map(|hold| hold.lock).find(|&lock| is_waited_for(lock))?;
    Some(SleeperFact { task: id, suspended: suspended(view, id)?, lock })
}

fn finding(view: &View<'_>, mut sleepers: Vec<SleeperFact>) -> Option<Finding> {
    sleepers.sort_by_key(|one| std::cmp::Reverse(one.suspended.for_ns));
    let longest = sleepers.first()?.suspended;
    let since_ns = view.now.now_ns.zip(longest.for_ns).and_then(|(now, for_ns)| now.checked_sub(for_ns));
    let waiting = sleepers.iter().map(|one| view.waits(one.lock).count()).sum();
    let count = sleepers.len();
    sleepers.truncate(LISTED_MAX);
    let evidence = NeverWoken { count, waiting, first: sleepers };
    let mut finding = Finding::new(Kind::NeverWoken, Confidence::Suspected, evidence, Advice::KeepWaker);
    finding.doubts = vec![Doubt::UnrecordedParent];
    finding.threads_hurt = count + waiting;
    finding.since_ns = since_ns;
    Some(finding)
}

impl Basis for NeverWoken {
    fn about(&self, all: &mut About<'_>) {
        for one in &self.first {
            all.thread_and_lock(one.task, one.lock, one.suspended.location);
            all.main(one.suspended.location, |words| {
                format!("{} was last here, and nobody can wake it", words.thread(one.task))
            });
        }
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let (tasks, are) = (counted(self.count as u64, "task"), agree(self.count, "is", "are"));
        let summary =
            format!("{tasks} {are} suspended, and nobody can wake {}", agree(self.count, "it", "them"));
        let line = |SleeperFact { task, suspended, lock }: &SleeperFact| {
            let (task, lock) = (words.thread(*task), words.lock(*lock));
            let at = match suspended.location {
                Some(location) if suspended.is_await => {
                    format!("is suspended at {}", words.location(location))
                }
                Some(location) => format!("was last at {}", words.location(location)),
                None => "sleeps".to_owned(),
            };
            let lasting = words.lasting_at_most(", for", suspended.is_at_most, suspended.for_ns);
            format!("{task} holds {lock}, for which others wait, and {at}{lasting}")
        };
        let mut evidence: Vec<String> = self.first.iter().map(line).collect();
        evidence.extend(and_more(self.count, self.first.len(), "more task"));
        Paragraph { summary, evidence }
    }
}
