//! A thread's known steps, replayed: which locks it had at each of them.
//!
//! It knows no findings. What a thread held before its first known step is not guessed but follows: each lock of
//! that time either is released in the known steps, or is in its table of held locks still. Only for a thread
//! whose table overflowed, or was in motion while it was read, that is not so; see [`is_complete`].

use std::collections::{HashMap, HashSet};

use crate::locations::LocationId;
use crate::locks::{HoldState, LockId, LockModel, Step, StepKind, ThreadLocks};

/// A lock that a thread has at some step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) lock: LockId,
    pub(super) is_shared: bool,
    /// Where it was taken, or where it was first seen to be held.
    pub(super) location: LocationId,
    /// How often: a lock can be taken again by its holder.
    pub(super) times: u32,
    /// Lent: it waits for a condition.
    pub(super) is_lent: bool,
    /// It was held before the first known step.
    pub(super) is_older: bool,
}

/// Whether all that a thread holds is known, now and at each of its known steps.
pub(super) fn is_complete(thread: &ThreadLocks) -> bool {
    thread.overflowed == 0 && thread.in_flux == 0
}

/// Whether a step gets a lock.
pub(super) fn is_acquisition(step: &Step) -> bool {
    matches!(step.kind, StepKind::Acquired | StepKind::AcquireBegin)
}

/// Calls `visit` with each step, and with what the thread holds before it.
pub(super) fn replay(thread: &ThreadLocks, mut visit: impl FnMut(&Step, &[Held])) -> Vec<Held> {
    let mut held = before_first(thread);
    for step in &thread.steps {
        visit(step, &held);
        let Some(lock) = step.lock else { continue };
        let at = held.iter().position(|held| held.lock == lock);
        match step.kind {
            StepKind::Acquired | StepKind::AcquireBegin => match at {
                Some(at) => held[at].times = held[at].times.saturating_add(1),
                None => held.push(Held {
                    lock,
                    is_shared: step.is_shared,
                    location: step.location,
                    times: 1,
                    is_lent: false,
                    is_older: false,
                }),
            },
            StepKind::Released | StepKind::Destroyed => {
                if let Some(at) = at {
                    held[at].times -= 1;
                    if held[at].times == 0 {
                        held.remove(at);
                    }
                }
            }
            StepKind::ConditionWait | StepKind::ConditionWoken => {
                if let Some(at) = at {
                    held[at].is_lent = step.kind == StepKind::ConditionWait;
                }
            }
            StepKind::Snap
            | StepKind::Progress
            | StepKind::Ambiguous
            | StepKind::Wait
            | StepKind::TryFailed => {}
        }
    }
    held
}

/// What a thread held before its first known step.
fn before_first(thread: &ThreadLocks) -> Vec<Held> {
    let mut held = Vec::new();
    if thread.overwritten == 0 {
        return held;
    }
    let mut seen = HashSet::new();
    for step in &thread.steps {
        let Some(lock) = step.lock else { continue };
        // A wait, or a try that failed, says nothing of what was held before: a reader may wait again.
        if matches!(step.kind, StepKind::Wait | StepKind::TryFailed)
            || !seen.insert(lock)
            || is_acquisition(step)
        {
            continue;
        }
        held.push(Held {
            lock,
            is_shared: step.is_shared,
            location: step.location,
            times: 1,
            is_lent: step.kind == StepKind::ConditionWoken,
            is_older: true,
        });
    }
    for hold in thread.holds.iter().filter(|hold| hold.state == HoldState::Held) {
        if !seen.contains(&hold.lock) {
            held.push(Held {
                lock: hold.lock,
                is_shared: hold.is_shared,
                location: hold.location,
                times: u32::from(hold.recursion) + 1,
                is_lent: false,
                is_older: true,
            });
        }
    }
    held
}

/// The locks that some thread released which had not taken them: they go from hand to hand, and who has taken
/// one is not the only one who can release it.
pub(super) fn handed_over(model: &LockModel) -> HashSet<LockId> {
    let mut handed_over = HashSet::new();
    for thread in &model.threads {
        // How often each lock was taken; it is listed with 0 from its first release on.
        let mut taken: HashMap<LockId, u32> = HashMap::new();
        for step in &thread.steps {
            let Some(lock) = step.lock.filter(|&lock| !model.locks[lock].nature.is_owned) else { continue };
            if is_acquisition(step) {
                *taken.entry(lock).or_default() += 1;
            } else if step.kind == StepKind::ConditionWoken {
                let times = taken.entry(lock).or_default();
                *times = (*times).max(1);
            } else if step.kind == StepKind::Released {
                let may_be_older =
                    thread.overwritten > 0 && (model.locks[lock].nature.is_reentrant || step.is_shared);
                match taken.get_mut(&lock) {
                    Some(times) if *times > 0 => *times -= 1,
                    // The first release in a history that has lost its beginning may belong to what was lost.
                    // Or, in a child, to what its parent had locked at the fork.
                    None if thread.overwritten > 0 || thread.pid != model.pid => {
                        taken.insert(lock, 0);
                    }
                    _ if may_be_older => {}
                    _ => {
                        handed_over.insert(lock);
                    }
                }
            }
        }
    }
    handed_over
}
