//! Lost owners: a forked child waits for a lock that was held in its parent.
//!
//! # Question
//!
//! Does a thread of a forked child wait for a lock that no thread of the child holds?
//!
//! # Method
//!
//! fork copies the memory with its locks, but only one thread: the one that calls it. A lock that another thread
//! held at that moment stays locked in the child, and no table of the child says who holds it. So this analysis
//! looks for a thread of a process other than the ring's first one that waits for a lock, where no thread of that
//! process holds the lock, may hold it, or waits on a condition variable with it, and where the lock is not shared
//! between processes.
//!
//! The finding is proven if nothing in the child can be unknown: wrappers record all operations on the lock, no
//! thread was refused, no table overflowed or changed while it was read, and the complete history of every thread
//! of the child shows that no thread there ever held the lock (a lock that was just released has no holder either).
//! A lock that a thread of the child held exclusively was free after the fork: that is no finding.
//!
//! A process that recorded nothing is known to be a fork by the kernel, and the memory of the lock names the owner: a
//! thread that the process does not have. Only the thread that forked may have had the lock at the fork, and may
//! release it. So that is proven if this thread, the first one of the process, waits for the lock, or has ended.
//!
//! # Blind spots
//!
//! The finding names the thread of the parent that held the lock at the fork only if that thread still holds it.
//!
//! # Example output
//!
//! ```text
//! proven lost-owner: 1 thread of the forked process 4712 waits for MALLOC, which no thread there holds
//!     main[4712] waits for it at reply server.rs:80, for 12 s
//!     a thread of the parent held it at the fork; that thread does not exist in the child
//! ```

use foldhash::HashMap;
use serde::Serialize;

use super::history::is_acquisition;
use super::{
    About, Advice, Analysis, Basis, Confidence, Doubt, Finding, HoldFact, Kind, Paragraph, View, Waiters,
    Words,
};
use crate::locks::{Lock, LockId, LockModel, Step, StepKind, ThreadLocks};
use crate::threads::ThreadState;
use crate::units::agree;

/// See the file's description.
pub(super) struct LostOwner;

/// A lock of a forked child that is locked, and that no thread of the child holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Orphan {
    /// The child.
    pub pid: u32,
    /// The lock.
    pub lock: LockId,
    /// The threads that wait for it.
    pub waiters: Waiters,
    /// Whether a thread of the parent certainly held it at the fork.
    pub locked_at_fork: bool,
    /// The id of the owner by the memory of the lock: the process has no such thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_in_memory: Option<u32>,
    /// The holder of the same lock in the parent now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<HoldFact>,
}

impl Analysis for LostOwner {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let model = view.now;
        let is_waited_for = |lock: LockId| view.waits(lock).any(|wait| wait.is_steady && !wait.is_timed);
        let candidates: Vec<LockId> = (0..model.locks.len())
            .filter(|&lock| {
                let of = &model.locks[lock];
                (is_free_in_child(model, of) || is_orphan_in_memory(of) && of.holders.is_empty())
                    && is_waited_for(lock)
            })
            .collect();
        if candidates.is_empty() {
            return;
        }
        let past = Past::new(model);
        // The locks of the parent, by address: fork keeps addresses.
        let parents: HashMap<u64, LockId> = (model.locks.iter().enumerate())
            .filter(|(_, lock)| lock.pid == model.pid)
            .map(|(id, lock)| (lock.address, id))
            .collect();
        for id in candidates.into_iter().filter(|&id| past.held[id] != Some(Mode::Exclusive)) {
            let lock = &model.locks[id];
            let is_orphan = is_orphan_in_memory(lock);
            let doubt = match is_orphan {
                true => doubt_of_memory(view, id),
                false => past.doubt(model, id),
            };
            let confidence = if doubt.is_some() { Confidence::Suspected } else { Confidence::Proven };
            let parent = parents.get(&lock.address).and_then(|&parent| model.locks[parent].holders.first());
            let waiters = view.waiters(id);
            let threads_hurt = waiters.count;
            let evidence = Orphan {
                pid: lock.pid,
                lock: id,
                waiters,
                // The thread that the memory names may be one of the fork that has ended.
                locked_at_fork: doubt.is_none() && !is_orphan,
                owner_in_memory: lock.absent_owner.map(|owner| owner.tid).filter(|_| is_orphan),
                parent: parent.map(|hold| view.hold_fact(hold)),
            };
            let mut finding = Finding::new(Kind::LostOwner, confidence, evidence, Advice::ExecAfterFork);
            finding.doubts.extend(doubt);
            finding.premises.extend(view.premises(id).filter(|_| is_orphan && doubt.is_none()));
            finding.since_ns = view.first_wait_ns(id);
            finding.threads_hurt = threads_hurt;
            found.push(finding);
        }
    }
}

/// Whether the memory of a lock says that no thread of its forked process has it.
fn is_orphan_in_memory(lock: &Lock) -> bool {
    lock.absent_owner.is_some_and(|owner| owner.is_of_fork == Some(true))
}

/// Why a thread of a fork may have a lock whose memory names a thread that the fork does not have.
fn doubt_of_memory(view: &View<'_>, lock: LockId) -> Option<Doubt> {
    let model = view.now;
    let pid = model.locks[lock].pid;
    // The one that forked has the id of its process.
    let is_forked = |thread: &ThreadLocks| {
        thread.pid == pid
            && thread.tid == pid
            && thread.state == ThreadState::Present
            && thread.task.is_none()
    };
    let forked = model.threads.iter().position(is_forked);
    let is_stuck = |thread| view.wait(thread).is_some_and(|wait| wait.lock == lock && wait.is_steady);
    (!forked.is_none_or(is_stuck)).then_some(Doubt::MaybeForked)
}

/// Whether a lock belongs to a forked child, and no thread of the child can hold it now.
fn is_free_in_child(model: &LockModel, lock: &Lock) -> bool {
    let is_free = lock.holders.is_empty()
        && lock.possible_holders.is_empty()
        && lock.condition_waiters.is_empty()
        && lock.semaphore_waiters.is_empty();
    lock.pid != model.pid && is_free && !lock.nature.is_process_shared
}

/// In ascending order, so that the maximum is the strongest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mode {
    Shared,
    Exclusive,
}

/// What the histories of all processes show.
struct Past {
    /// For each process, whether all is known of it.
    is_complete: HashMap<u32, bool>,
    /// For each lock, the strongest mode in which a thread of its process ever held it.
    held: Vec<Option<Mode>>,
}

impl Past {
    fn new(model: &LockModel) -> Past {
        let mut past = Past { is_complete: HashMap::default(), held: vec![None; model.locks.len()] };
        for thread in &model.threads {
            let all = thread.overwritten == 0 && thread.overflowed == 0 && thread.in_flux == 0;
            *past.is_complete.entry(thread.pid).or_insert(true) &= all;
            for step in thread.steps.iter().filter(shows_a_hold) {
                if let Some(lock) = step.lock {
                    // A lock that was initialised was free, as one that was held exclusively.
                    let mode = if step.is_shared { Mode::Shared } else { Mode::Exclusive };
                    past.held[lock] = past.held[lock].max(Some(mode));
                }
            }
        }
        past
    }

    /// Why a thread of the child may hold the lock after all.
    fn doubt(&self, model: &LockModel, id: LockId) -> Option<Doubt> {
        let lock = &model.locks[id];
        let is_recorded = model.threads_refused == 0 && model.held_overflows == 0 && model.slots_reused == 0;
        if self.held[id].is_some() {
            Some(Doubt::SharedInChild)
        } else if !lock.nature.is_wrapped {
            Some(Doubt::UnmarkedHolder)
        } else if !model.threads.iter().any(|thread| (thread.pid, thread.tid) == (lock.pid, lock.pid)) {
            // Its first thread, which forked, has recorded nothing since: not even what it held then.
            Some(Doubt::MaybeForked)
        } else if !is_recorded || self.is_complete.get(&lock.pid) != Some(&true) {
            Some(Doubt::ChildHistoryIncomplete)
        } else {
            None
        }
    }
}

/// Whether only a thread that holds the lock can take this step.
fn shows_a_hold(step: &Step) -> bool {
    let is_end = matches!(
        step.kind,
        StepKind::Released
            | StepKind::ConditionWait
            | StepKind::ConditionWoken
            | StepKind::Destroyed
            | StepKind::Initialised
    );
    is_end || is_acquisition(step)
}

impl Basis for Orphan {
    fn about(&self, all: &mut About<'_>) {
        all.lock(self.lock);
        all.waiters(&self.waiters);
        self.parent.iter().for_each(|hold| all.hold(hold));
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let count = self.waiters.count;
        let summary = format!(
            "{} of the forked process {} {} for {}, which no thread there holds",
            words.threads(count),
            self.pid,
            agree(count, "waits", "wait"),
            words.lock(self.lock)
        );
        let mut evidence = words.waiters(&self.waiters);
        if self.locked_at_fork {
            let why = "a thread of the parent held it at the fork; that thread does not exist in the child";
            evidence.push(why.to_owned());
        }
        if let Some(tid) = self.owner_in_memory {
            evidence.push(format!(
                "thread {tid} has it, which the process does not have: a thread of the parent held it at the fork, or a \
                 thread has ended without releasing it"
            ));
        }
        if let Some(hold) = &self.parent {
            let (thread, acquired) = (words.thread(hold.thread), words.acquired(hold));
            evidence.push(format!("in the parent, {thread} holds it now{acquired}"));
        }
        Paragraph { summary, evidence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::Scene;
    use crate::locks::AbsentOwner;

    fn forked() -> Scene {
        let mut scene = Scene::new();
        let owner = scene.thread("owner");
        let lock = scene.lock("SHARED");
        scene.holds(owner, lock);
        let (child, copy) = (scene.thread("main"), scene.lock("SHARED"));
        scene.waits(child, copy);
        scene.model.threads[child].pid += 1;
        scene.model.threads[child].tid = scene.model.threads[child].pid;
        scene.model.locks[copy].pid += 1;
        scene.model.locks[copy].address = scene.model.locks[lock].address;
        scene
    }

    #[test]
    fn a_lock_that_no_thread_of_the_child_ever_held_lost_its_owner() {
        let found = forked().run(&LostOwner);
        assert_eq!((found.len(), found[0].confidence), (1, Confidence::Proven));
        assert!(found[0].mentions.threads.contains(&0), "the holder in the parent is evidence");
    }

    /// The child recorded nothing. The memory of the lock has the id of a thread of its parent.
    fn forked_unprepared() -> Scene {
        let mut scene = Scene::new();
        let (child, lock) = (scene.thread("child"), scene.lock("CONFIG"));
        scene.waits(child, lock);
        scene.model.threads[child].tid = scene.model.pid;
        scene.model.locks[lock].absent_owner = Some(AbsentOwner { tid: 3, is_of_fork: Some(true) });
        scene
    }

    #[test]
    fn the_memory_of_a_lock_says_that_no_thread_of_a_fork_has_it() {
        let found = forked_unprepared().run(&LostOwner);
        assert_eq!((found.len(), found[0].confidence), (1, Confidence::Proven));
        let mut scene = forked_unprepared();
        scene.model.locks[0].absent_owner.as_mut().unwrap().is_of_fork = Some(false);
        assert!(scene.run(&LostOwner).is_empty(), "a thread of its own has ended");
    }

    #[test]
    fn the_thread_that_forked_may_release_what_it_had_at_the_fork() {
        let mut scene = forked_unprepared();
        let (worker, forked) = (0, scene.thread("main"));
        scene.model.threads[worker].tid = 77;
        scene.model.threads[forked].tid = scene.model.pid;
        let found = scene.run(&LostOwner);
        assert_eq!(
            (found[0].confidence, &found[0].doubts[..]),
            (Confidence::Suspected, &[Doubt::MaybeForked][..])
        );
        // So it is if the process is a child of the one that was asked for.
        scene.model.threads[worker].pid += 1;
        scene.model.locks[0].pid += 1;
        (scene.model.threads[forked].pid, scene.model.threads[forked].tid) =
            (scene.model.pid + 1, scene.model.pid + 1);
        assert_eq!(scene.run(&LostOwner)[0].doubts, [Doubt::MaybeForked]);
        // It has ended, or waits too.
        scene.model.threads[forked].state = ThreadState::Exited;
        assert_eq!(scene.run(&LostOwner)[0].confidence, Confidence::Proven);
    }

    #[test]
    fn anything_unknown_makes_it_suspected() {
        type Change = fn(&mut Scene);
        let changes: [Change; 8] = [
            |scene| scene.model.threads[1].tid += 1,
            |scene| scene.model.threads_refused = 1,
            |scene| scene.model.held_overflows = 1,
            |scene| scene.model.threads[1].overwritten = 1,
            |scene| scene.model.threads[1].in_flux = 1,
            |scene| scene.model.threads[1].overflowed = 1,
            |scene| scene.by_hand(1),
            |scene| {
                scene.nests(1, &[1]);
                scene.steps(1).iter_mut().for_each(|step| step.is_shared = true);
            },
        ];
        for (at, change) in changes.into_iter().enumerate() {
            let mut scene = forked();
            change(&mut scene);
            let found = scene.run(&LostOwner);
            assert_eq!((found.len(), found[0].confidence), (1, Confidence::Suspected), "change {at}");
            assert!(!found[0].doubts.is_empty());
        }
    }

    #[test]
    fn a_lock_acquired_in_the_child_was_free_at_the_fork() {
        let mut scene = forked();
        scene.nests(1, &[1]);
        assert!(scene.run(&LostOwner).is_empty());
    }

    #[test]
    fn a_lock_with_a_holder_in_the_child_is_an_ordinary_wait() {
        let mut scene = forked();
        let other = scene.thread("other");
        scene.model.threads[other].pid += 1;
        scene.holds(other, 1);
        assert!(scene.run(&LostOwner).is_empty());
    }

    #[test]
    fn in_the_first_process_a_lock_without_a_holder_is_no_finding() {
        let mut scene = Scene::new();
        let (thread, lock) = (scene.thread("main"), scene.lock("FREE"));
        scene.waits(thread, lock);
        assert!(scene.run(&LostOwner).is_empty());
    }
}
