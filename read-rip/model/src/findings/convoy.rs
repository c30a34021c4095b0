//! Convoys: a queue at a lock that moves and never drains.
//!
//! # Question
//!
//! Do most threads that use a lock wait for it, although it changes hands?
//!
//! # Method
//!
//! At least four threads wait for the lock, and they are more than half of the threads that are known to use it:
//! threads that do other things do not count. The lock changes hands. In a living process: the holder is another one
//! than in the earlier reading, or has acquired the lock again. In a dead one: the holder acquired it after the first
//! of the waiting threads began to wait, or a release since then is known. Also, at least sixteen threads wait, or one
//! has waited for 100 ms or from one reading to the next.
//!
//! A lock whose ownership stands still is a case for `long_wait`. So is a lock that a thread held when its process died
//! at an unknown moment: nothing shows that it changed hands after that thread had acquired it. Threads that wait on a
//! condition variable (an idle pool) do not wait for a lock.
//!
//! # Blind spots
//!
//! A queue at a lock that changes hands fast, and that is the only work of the program, looks the same. So the
//! finding is only suspected.
//!
//! # Example output
//!
//! ```text
//! suspected convoy: 19 of the 20 threads that use TABLE wait for it
//!     client 3[88] holds it, acquired at get table.rs:91; it recorded 12 words between the readings
//!     client 7[90] waits for it at get table.rs:91, for 2.0 s
//! ```

use serde::Serialize;

use super::finding::locks_of;
use super::pasts::Past;
use super::words::lasting;
use super::{
    About, Advice, Analysis, Basis, Confidence, Finding, HoldFact, Kind, LockHistory, Paragraph, View,
    Waiters, Words,
};
use crate::locations::LocationId;
use crate::locks::{Hold, HoldState, LockId};

/// See the file's description.
pub(super) struct Convoy;

/// Minimum number of waiting threads.
const WAITERS_MIN: usize = 4;
/// From this number on, the length of the waits does not matter.
const WAITERS_MANY: usize = 16;
/// A wait is long from here on, ns.
const LONG_NS: u64 = 100_000_000;

/// A lock for which most of the threads that use it wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Queue {
    /// The lock.
    pub lock: LockId,
    /// The threads that wait for it.
    pub waiters: Waiters,
    /// How many threads are known to use it.
    pub users: usize,
    /// The holder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<ActiveHolder>,
    /// The known acquisitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<LockHistory>,
}

/// A holder and what it does.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActiveHolder {
    /// The hold.
    pub hold: HoldFact,
    /// How many words it recorded between two readings; `None` without two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words_recorded: Option<u64>,
    /// The time between the two readings, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<u64>,
    /// Where it was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LocationId>,
}

impl Analysis for Convoy {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let explained =
            locks_of(found, &[Kind::Deadlock, Kind::Futurelock, Kind::Unreleased, Kind::LostOwner]);
        let is_queue = |&lock: &LockId| {
            let waiters = view.waits(lock).count();
            waiters >= WAITERS_MIN
                && !explained.contains(&lock)
                && (waiters >= WAITERS_MANY || is_long(view, lock))
        };
        let queues: Vec<LockId> = (0..view.now.locks.len()).filter(is_queue).collect();
        let pasts = view.pasts();
        for lock in queues {
            let Some(past) = pasts.get(lock) else { continue };
            let holder = view.now.locks[lock].holders.iter().find(|hold| hold.state == HoldState::Held);
            let holder_waits = holder.is_some_and(|hold| view.wait(hold.thread).is_some());
            if holder.is_some() && view.now.is_end_unknown {
                continue;
            }
            let is_most = view.waits(lock).count() * 2 > past.users.len();
            if is_most && !holder_waits && has_moved(view, lock, holder, past) == Some(true) {
                found.push(finding(view, lock, holder, past.users.len()));
            }
        }
    }
}

/// Whether a thread has waited for a lock for long.
fn is_long(view: &View<'_>, lock: LockId) -> bool {
    let long_window = view.is_window_at_least(LONG_NS);
    view.waits(lock).any(|wait| {
        view.ago_ns(wait.since_ns).is_some_and(|waited_ns| waited_ns >= LONG_NS)
            || (long_window && wait.is_steady)
    })
}

/// Whether a lock changed hands while threads waited for it; `None`: not known.
pub(super) fn has_moved(view: &View<'_>, lock: LockId, holder: Option<&Hold>, past: &Past) -> Option<bool> {
    // A future without a task is no holder that a finding could name. But it may keep the lock.
    let holder = holder.or_else(|| view.now.locks[lock].holds_of_futures().next());
    if holder.is_none() && view.now.locks[lock].is_from_memory {
        // The record does not have the lock, and the memory does not name a holder.
        return None;
    }
    if view.now.window_ns.is_some() && !view.now.is_final {
        return Some(holder.is_none_or(|holder| !holder.is_steady));
    }
    let first_ns = view.first_wait_ns(lock)?;
    if past.released_ns.is_some_and(|released_ns| released_ns > first_ns) {
        return Some(true);
    }
    Some(holder?.since_ns? > first_ns)
}

fn finding(view: &View<'_>, lock: LockId, holder: Option<&Hold>, users: usize) -> Finding {
    let active = |hold: &Hold| {
        let thread = &view.now.threads[hold.thread];
        ActiveHolder {
            hold: view.hold_fact(hold),
            words_recorded: thread.advanced,
            window_ns: view.now.window_ns,
            last: thread.last,
        }
    };
    let waiters = view.waiters(lock);
    let threads_hurt = waiters.count;
    let evidence =
        Queue { lock, waiters, users, holder: holder.map(active), history: view.lock_history(lock) };
    let mut finding = Finding::new(Kind::Convoy, Confidence::Suspected, evidence, Advice::ShortenHold);
    finding.threads_hurt = threads_hurt;
    finding.since_ns = view.first_wait_ns(lock);
    finding
}

impl Basis for Queue {
    fn about(&self, all: &mut About<'_>) {
        all.lock(self.lock);
        if let Some(holder) = &self.holder {
            all.hold(&holder.hold);
            all.mentions.locations.extend(holder.last);
        }
        all.waiters(&self.waiters);
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let (waiting, lock) = (self.waiters.count, words.lock(self.lock));
        let summary = format!("{waiting} of the {} that use {lock} wait for it", words.threads(self.users));
        let mut evidence = match &self.holder {
            Some(holder) => vec![holder.line(words)],
            None => vec!["no thread is known to hold it now".to_owned()],
        };
        evidence.extend(self.holder.as_ref().and_then(|holder| words.doing(holder.hold.thread)));
        evidence.extend(words.waiters(&self.waiters));
        evidence.extend(self.history.as_ref().map(|known| words.history(known)));
        Paragraph { summary, evidence }
    }
}

impl ActiveHolder {
    fn line(&self, words: &Words<'_>) -> String {
        let mut line = words.holder(&self.hold);
        match self.words_recorded {
            Some(0) => line += &lasting("; no mark for ", self.window_ns),
            Some(count) => line += &format!("; it recorded {count} words between the readings"),
            None => {}
        }
        if let Some(last) = self.last.filter(|&last| Some(last) != self.hold.location) {
            line += &format!(", last at {}", words.location(last));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{MILLISECOND, NOW, SECOND, Scene};
    use crate::locks::StepKind;

    /// Threads wait for a lock that has just got another holder.
    fn queue(mut scene: Scene, waiters: usize) -> Scene {
        let (owner, lock) = (scene.thread("owner"), scene.lock("TABLE"));
        let since_ns = Some(NOW - MILLISECOND);
        scene.holds_with(owner, lock, |hold| (hold.is_steady, hold.since_ns) = (false, since_ns));
        for _ in 0..waiters {
            let thread = scene.thread("worker");
            scene.waits(thread, lock);
        }
        scene
    }

    fn count(scene: &Scene) -> usize {
        scene.run(&Convoy).len()
    }

    #[test]
    fn a_queue_that_moves_is_a_convoy_however_many_threads_are_idle() {
        let mut scene = queue(Scene::new(), 100);
        for _ in 0..5000 {
            scene.thread("idle");
        }
        let found = scene.run(&Convoy);
        assert_eq!((found.len(), found[0].kind, found[0].threads_hurt), (1, Kind::Convoy, 100));
        scene.model.locks[0].holders.clear();
        assert_eq!(count(&scene), 1, "between two owners");
        assert_eq!(count(&queue(Scene::dead(), 100)), 1);
    }

    #[test]
    fn the_last_holder_of_a_process_that_died_at_an_unknown_moment_may_have_kept_the_lock() {
        let mut scene = queue(Scene::killed(), 100);
        assert_eq!(count(&scene), 0);
        scene.step(1, StepKind::Released, 0).time_ns = Some(NOW);
        assert_eq!(count(&scene), 0, "before that holder acquired it");
        scene.model.locks[0].holders.clear();
        assert_eq!(count(&scene), 1, "nobody holds it");
    }

    #[test]
    fn a_lock_that_stands_still_is_no_convoy() {
        let mut scene = queue(Scene::new(), 100);
        scene.model.locks[0].holders[0].is_steady = true;
        assert_eq!(count(&scene), 0);
        let mut dead = queue(Scene::dead(), 100);
        dead.model.locks[0].holders[0].since_ns = Some(NOW - 30 * SECOND);
        assert_eq!(count(&dead), 0);
        dead.model.locks[0].holders[0].since_ns = None;
        assert_eq!(count(&dead), 0, "not known");
    }

    #[test]
    fn a_queue_of_less_than_half_of_the_users_is_no_convoy() {
        let mut scene = queue(Scene::new(), 100);
        for _ in 0..100 {
            let thread = scene.thread("user");
            scene.nests(thread, &[0]);
        }
        assert_eq!(count(&scene), 0);
    }

    #[test]
    fn an_owner_that_waits_itself_is_not_the_cause() {
        let mut scene = queue(Scene::new(), 100);
        let other = scene.lock("OTHER");
        scene.waits(0, other);
        assert_eq!(count(&scene), 0);
    }

    #[test]
    fn a_few_threads_that_wait_for_a_moment_are_no_convoy() {
        let mut scene = queue(Scene::new(), 5);
        for wait in &mut scene.model.locks[0].waiters {
            (wait.is_steady, wait.since_ns) = (false, Some(NOW - MILLISECOND));
        }
        assert_eq!(count(&scene), 0);
        assert_eq!(count(&queue(Scene::new(), 3)), 0, "three");
    }
}
