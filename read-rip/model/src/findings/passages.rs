//! Whether threads have gone on from where a holder was last, and have released its lock. It makes no findings.
//!
//! If a process died at an unknown moment, the record does not say for how long a holder had kept its lock. It says
//! what threads did with that lock before. If some of them passed the same place and released the lock later, the
//! holder was on its usual way when the process died. If threads released the lock, and none of them came from that
//! place, nobody is known to have left that way.
//!
//! A history is short: 64 words have five holds of a lock if another one is acquired within. So a part of the known
//! holds makes a way a usual one, and not a number of them alone.

use foldhash::HashMap;
use serde::Serialize;

use super::View;
use crate::locations::LocationId;
use crate::locks::{Hold, LockId, StepKind, ThreadId, ThreadLocks};

/// If so many known holds went on from where the holder was last, it was on a usual way, whatever others did.
const USUAL_MANY: usize = 8;
/// So it was if at least so many, and half of all known holds, went on from there.
const USUAL_MIN: usize = 3;

/// The known holds of a lock that have ended, and how many of them passed the place where its last holder was last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Passages {
    /// How many known holds of the lock have ended.
    pub ended: usize,
    /// How many of them passed the place.
    pub passed: usize,
}

impl Passages {
    /// Whether holds of the lock have ended, and none of them passed the place.
    pub(super) fn is_new(self) -> bool {
        self.ended > 0 && self.passed == 0
    }

    /// Whether so many holds passed the place that the holder may have been about to go on too.
    pub(super) fn is_usual(self) -> bool {
        self.passed >= USUAL_MANY || self.passed >= USUAL_MIN && 2 * self.passed >= self.ended
    }
}

/// The passages of some locks.
#[derive(Debug, Default)]
pub(super) struct AllPassages {
    of: HashMap<LockId, Asked>,
}

/// What is asked of a lock, and the answer so far.
#[derive(Debug)]
struct Asked {
    holder: ThreadId,
    /// Where the holder was last.
    place: LocationId,
    passages: Passages,
    /// Whether one of the ended holds was the holder's own.
    has_own: bool,
}

/// A hold, while the steps of its thread are read.
struct Open {
    lock: LockId,
    has_passed: bool,
}

impl AllPassages {
    /// The passages of the locks of these holds, from one pass over all steps.
    pub(super) fn of<'h>(view: &View<'_>, holds: impl Iterator<Item = &'h Hold>) -> AllPassages {
        let asked = |hold: &Hold| {
            let (holder, place) = (hold.thread, view.now.threads[hold.thread].last?);
            Some((hold.lock, Asked { holder, place, passages: Passages::default(), has_own: false }))
        };
        let mut all = AllPassages { of: holds.filter_map(asked).collect() };
        if all.of.is_empty() {
            return all;
        }
        for (id, thread) in view.now.threads.iter().enumerate() {
            all.add(id, thread);
        }
        // Perhaps it went this way before, and that was overwritten.
        all.of.retain(|_, asked| asked.has_own || view.now.threads[asked.holder].overwritten == 0);
        all
    }

    /// The passages of a lock; `None` if they are not known.
    pub(super) fn get(&self, lock: LockId) -> Option<Passages> {
        Some(self.of.get(&lock)?.passages)
    }

    fn add(&mut self, id: ThreadId, thread: &ThreadLocks) {
        let mut open: Vec<Open> = Vec::new();
        for step in &thread.steps {
            if let Some((lock, asked)) = step.lock.and_then(|lock| Some((lock, self.of.get_mut(&lock)?))) {
                match step.kind {
                    StepKind::Acquired | StepKind::AcquireBegin | StepKind::ConditionWoken => {
                        open.retain(|hold| hold.lock != lock);
                        open.push(Open { lock, has_passed: false });
                    }
                    StepKind::TryFailed => open.retain(|hold| hold.lock != lock),
                    StepKind::Released | StepKind::ConditionWait => {
                        if let Some(at) = open.iter().position(|hold| hold.lock == lock) {
                            asked.passages.ended += 1;
                            asked.passages.passed += usize::from(open.swap_remove(at).has_passed);
                            asked.has_own |= asked.holder == id;
                        }
                    }
                    _ => {}
                }
            }
            for hold in &mut open {
                hold.has_passed |= self.of.get(&hold.lock).is_some_and(|asked| asked.place == step.location);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::Scene;

    /// A worker has held the lock and released it, after a mark. The owner holds the lock, and has passed another mark.
    fn scene(has_own: bool) -> Scene {
        let mut scene = Scene::killed();
        let (owner, lock, worker) = (scene.thread("owner"), scene.lock("CACHE"), scene.thread("worker"));
        let (usual, new) = (scene.location("usual.rs", 1), scene.location("new.rs", 1));
        for thread in [worker].into_iter().chain(has_own.then_some(owner)) {
            scene.step(thread, StepKind::AcquireBegin, lock);
            scene.snap(thread, usual);
            scene.step(thread, StepKind::Released, lock);
        }
        scene.step(owner, StepKind::AcquireBegin, lock);
        scene.holds(owner, lock);
        scene.snap(owner, new);
        scene
    }

    fn of(scene: &Scene) -> Option<Passages> {
        scene.with_view(|view| AllPassages::of(view, view.now.locks[0].holders.iter()).get(0))
    }

    #[test]
    fn a_place_from_which_nobody_went_on_is_new() {
        let mut scene = scene(false);
        assert_eq!(of(&scene), Some(Passages { ended: 1, passed: 0 }));
        assert!(of(&scene).is_some_and(Passages::is_new));
        let worker = 1;
        scene.step(worker, StepKind::AcquireBegin, 0);
        let place = scene.model.threads[0].last.unwrap();
        scene.snap(worker, place);
        assert_eq!(of(&scene), Some(Passages { ended: 1, passed: 0 }), "it has not released the lock");
        scene.step(worker, StepKind::Released, 0);
        assert_eq!(of(&scene), Some(Passages { ended: 2, passed: 1 }));
        assert!(!of(&scene).is_some_and(Passages::is_new));
    }

    #[test]
    fn the_way_of_a_holder_whose_past_was_overwritten_is_not_known() {
        let mut scene = scene(false);
        scene.model.threads[0].overwritten = 1;
        assert_eq!(of(&scene), None);
        let mut scene = self::scene(true);
        scene.model.threads[0].overwritten = 1;
        assert_eq!(of(&scene), Some(Passages { ended: 2, passed: 0 }));
    }

    #[test]
    fn a_place_is_usual_if_many_or_half_of_the_holds_went_on_from_there() {
        let is_usual = |ended, passed| Passages { ended, passed }.is_usual();
        assert!(is_usual(100, 8) && is_usual(9, 5) && is_usual(3, 3));
        assert!(!is_usual(100, 7) && !is_usual(9, 4) && !is_usual(2, 2) && !is_usual(0, 0));
    }

    #[test]
    fn nothing_is_new_where_no_hold_has_ended() {
        let mut scene = scene(false);
        scene.model.threads[1].steps = crate::locks::Steps::default();
        assert_eq!(of(&scene), Some(Passages::default()));
        assert!(!Passages::default().is_new());
    }
}
