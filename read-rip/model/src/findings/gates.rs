//! Gates: what lets one thread in at a time besides the locks that threads hold in the usual way.
//!
//! It makes no findings. There are two kinds:
//!
//! * *A semaphore of one unit*, from the step that took the unit to the step of the same thread that posted it. If a
//!   thread ever found another unit left, the semaphore is none.
//! * *A lock that is handed over.* The thread that acquired it has it until it acquires it again, as far as its history
//!   shows. A thread that releases it without having acquired it had it since its step before with that lock: it is
//!   not known when it was handed over, so it may have had the lock all the time.
//!
//! Who handed over a lock, and when, is not known. So such a lock keeps others out, but has no order with other locks.

use foldhash::{HashMap, HashSet};

use super::View;
use super::history::HandedOver;
use super::nesting::Mode;
use crate::locks::{LockId, StepKind, ThreadLocks};

/// What is known of all gates.
pub(super) struct Gates<'v> {
    handed_over: &'v HandedOver,
    /// Semaphores that let in more than one thread.
    wide: HashSet<LockId>,
}

/// A gate that a thread passed, and the sequences between which it was inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    gate: LockId,
    from: u64,
    to: u64,
}

impl<'v> Gates<'v> {
    pub(super) fn new(view: &'v View<'_>) -> Gates<'v> {
        let takes_units =
            |thread: &&ThreadLocks| thread.steps.locations().any(|(kind, _)| kind == StepKind::UnitTaken);
        let steps = view.now.threads.iter().filter(takes_units).flat_map(|thread| &thread.steps);
        let wide = steps.filter(|step| step.kind == StepKind::UnitTaken && step.is_shared);
        Gates { wide: wide.filter_map(|step| step.lock).collect(), handed_over: view.handed_over() }
    }

    /// Whether a lock is one that threads hand over.
    pub(super) fn is_handed_over(&self, lock: LockId) -> bool {
        self.handed_over.contains(lock)
    }

    /// The gates that a thread passed, in addition to the locks that its history shows.
    pub(super) fn passages(&self, thread: &ThreadLocks) -> Vec<Passage> {
        let mut passages = Vec::new();
        // When the thread took a unit that it has not posted yet, and when it last did something with a lock.
        let mut taken: HashMap<LockId, u64> = HashMap::default();
        let mut acquired: HashMap<LockId, (u64, bool)> = HashMap::default();
        // Semaphores of which the thread posted a unit that it had taken.
        let mut posted: HashSet<LockId> = HashSet::default();
        for step in &thread.steps {
            let (Some(gate), to) = (step.lock, step.sequence) else { continue };
            match step.kind {
                StepKind::UnitTaken => drop(taken.insert(gate, step.sequence)),
                StepKind::UnitPosted => {
                    if let Some(from) = taken.remove(&gate).filter(|_| !self.wide.contains(&gate)) {
                        posted.insert(gate);
                        passages.push(Passage { gate, from, to });
                    }
                }
                StepKind::Acquired | StepKind::AcquireBegin if self.is_handed_over(gate) => {
                    acquired.insert(gate, (step.sequence, true));
                }
                StepKind::Released if self.is_handed_over(gate) => {
                    let before = acquired.insert(gate, (step.sequence, false));
                    if !matches!(before, Some((_, true))) {
                        let from = before.map_or(0, |(sequence, _)| sequence);
                        passages.push(Passage { gate, from, to });
                    }
                }
                _ => {}
            }
        }
        let inside = taken.into_iter().filter(|(gate, _)| posted.contains(gate));
        passages.extend(inside.map(|(gate, from)| Passage { gate, from, to: u64::MAX }));
        passages
    }
}

/// The gates in which a thread was at a step.
pub(super) fn passed(passages: &[Passage], sequence: u64) -> impl Iterator<Item = Mode> {
    let inside = passages.iter().filter(move |passage| (passage.from..=passage.to).contains(&sequence));
    inside.map(|passage| (passage.gate, false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::Scene;

    fn passages(scene: &Scene, thread: usize) -> Vec<(LockId, u64, u64)> {
        scene.with_view(|view| {
            let passages = Gates::new(view).passages(&view.now.threads[thread]);
            passages.iter().map(|passage| (passage.gate, passage.from, passage.to)).collect()
        })
    }

    #[test]
    fn a_thread_is_in_a_gate_from_taking_the_unit_to_posting_it() {
        let mut scene = Scene::of_two_threads_and_a_lock();
        scene.step(0, StepKind::UnitTaken, 0);
        assert_eq!(passages(&scene, 0), [], "it may wait for work");
        scene.step(0, StepKind::UnitPosted, 0);
        scene.step(0, StepKind::UnitTaken, 0);
        assert_eq!(passages(&scene, 0), [(0, 0, 1), (0, 2, u64::MAX)], "it posts what it takes");
        scene.step(1, StepKind::UnitTaken, 0).is_shared = true;
        assert_eq!(passages(&scene, 0), [], "others are let in too");
    }

    #[test]
    fn a_thread_that_releases_a_lock_of_another_one_may_have_had_it_since_it_last_released_it() {
        let mut scene = Scene::of_two_threads_and_a_lock();
        scene.nests(1, &[0]);
        scene.step(1, StepKind::Released, 0);
        assert_eq!(passages(&scene, 1), [(0, 1, 2)]);
    }
}
