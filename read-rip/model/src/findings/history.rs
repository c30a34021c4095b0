//! A thread's known steps, replayed: which locks it held at each of them.
//!
//! It makes no findings. What a thread held before its first known step is not guessed: each such lock either is
//! released in the known steps, or is still in the thread's table of held locks. This does not hold for a thread
//! whose table overflowed, or changed while it was read; see [`is_complete`].

use foldhash::HashSet;

use super::per_lock::PerLock;
use crate::locations::LocationId;
use crate::locks::{Hold, HoldState, LockId, LockModel, Ownership, Step, StepKind, ThreadId, ThreadLocks};

/// A lock that a thread holds at some step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) lock: LockId,
    pub(super) is_shared: bool,
    /// Where the thread acquired it, or where it was first seen to hold it.
    pub(super) location: LocationId,
    /// How often: the holder of a recursive lock can acquire it again.
    pub(super) times: u32,
    /// The thread waits on a condition variable, and the lock is released meanwhile.
    pub(super) is_in_condition_wait: bool,
    /// The sequence of the acquisition; 0 if the thread held it before the first known step.
    pub(super) since: u64,
    /// The thread held it before the first known step.
    pub(super) is_older: bool,
}

/// Whether all that a thread holds is known, now and at each of its known steps.
pub(super) fn is_complete(thread: &ThreadLocks) -> bool {
    thread.overflowed == 0 && thread.in_flux == 0
}

/// Whether a step acquires a lock.
pub(super) fn is_acquisition(step: &Step) -> bool {
    matches!(step.kind, StepKind::Acquired | StepKind::AcquireBegin)
}

/// Calls `visit` with each step and what the thread holds before it. Returns what the thread holds at the end.
pub(super) fn replay(thread: &ThreadLocks, mut visit: impl FnMut(&Step, &[Held])) -> Vec<Held> {
    let mut held = before_first(thread);
    for step in &thread.steps {
        visit(&step, &held);
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
                    is_in_condition_wait: false,
                    since: step.sequence,
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
            StepKind::Initialised => held.retain(|held| held.lock != lock),
            StepKind::ConditionWait | StepKind::ConditionWoken => {
                if let Some(at) = at {
                    held[at].is_in_condition_wait = step.kind == StepKind::ConditionWait;
                }
            }
            StepKind::Snap
            | StepKind::Blocked
            | StepKind::Progress
            | StepKind::Ambiguous
            | StepKind::UnitTaken
            | StepKind::UnitPosted
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
    let mut seen = HashSet::default();
    for step in &thread.steps {
        let Some(lock) = step.lock else { continue };
        // A wait or a failed try does not show what was held before: a reader may wait again.
        if matches!(step.kind, StepKind::Wait | StepKind::TryFailed)
            || !seen.insert(lock)
            || is_acquisition(&step)
            || matches!(step.kind, StepKind::Initialised | StepKind::UnitTaken | StepKind::UnitPosted)
        {
            continue;
        }
        held.push(Held {
            lock,
            is_shared: step.is_shared,
            location: step.location,
            times: 1,
            is_in_condition_wait: step.kind == StepKind::ConditionWoken,
            since: 0,
            is_older: true,
        });
    }
    for hold in thread.holds.iter().filter(|hold| hold.state == HoldState::Held) {
        if !seen.contains(&hold.lock)
            && let Some(location) = hold.location
        {
            held.push(Held {
                lock: hold.lock,
                is_shared: hold.is_shared,
                location,
                times: u32::from(hold.recursion) + 1,
                is_in_condition_wait: false,
                since: 0,
                is_older: true,
            });
        }
    }
    held
}

/// For each thread, whether it ever acquired a lock, tried to, or waits for one, while it held one. Most threads do
/// not.
pub(super) fn nesting_threads(model: &LockModel) -> Vec<bool> {
    let acquires = |step: &Step| {
        is_acquisition(step) || matches!(step.kind, StepKind::TryFailed | StepKind::ConditionWoken)
    };
    let nests = |thread: &ThreadLocks| {
        let mut nests = thread.wait.is_some() && !thread.holds.is_empty();
        replay(thread, |step, held| nests |= !held.is_empty() && acquires(step));
        nests
    };
    model.threads.iter().map(nests).collect()
}

/// The locks at whose address a lock was destroyed in the known histories.
pub(super) fn destroyed(model: &LockModel) -> HashSet<LockId> {
    let destroys =
        |thread: &&ThreadLocks| thread.steps.locations().any(|(kind, _)| kind == StepKind::Destroyed);
    let steps = model.threads.iter().filter(destroys).flat_map(|thread| &thread.steps);
    steps.filter(|step| step.kind == StepKind::Destroyed).filter_map(|step| step.lock).collect()
}

/// A release of a lock that the thread did not hold.
pub(super) struct Stray {
    pub(super) lock: LockId,
    pub(super) step: Step,
    /// The thread released the same lock before.
    pub(super) released_before: bool,
}

/// Visits each release by a thread that certainly did not hold the lock. Locks that only their owner can release have
/// none.
pub(super) fn stray_releases(model: &LockModel, mut visit: impl FnMut(ThreadId, Stray)) {
    // How often the thread holds each lock; a lock has a value from its first acquisition or release on.
    let mut holds: PerLock<u32> = PerLock::new(model.locks.len());
    for (id, thread) in model.threads.iter().enumerate() {
        holds.forget();
        // The first release in a history that lost its beginning may belong to what was lost, and in a child to what
        // its parent held at the fork.
        let may_have_held = thread.overwritten > 0 || thread.pid != model.pid;
        for step in &thread.steps {
            let Some(lock) =
                step.lock.filter(|&lock| model.locks[lock].nature.ownership != Ownership::Enforced)
            else {
                continue;
            };
            match step.kind {
                StepKind::Acquired | StepKind::AcquireBegin => {
                    holds.set(lock, holds.get(lock).unwrap_or(0).saturating_add(1));
                }
                StepKind::ConditionWait | StepKind::ConditionWoken => {
                    holds.set(lock, holds.get(lock).unwrap_or(0).max(1));
                }
                StepKind::Released => match holds.get(lock) {
                    Some(times) if times > 0 => holds.set(lock, times - 1),
                    None if may_have_held => holds.set(lock, 0),
                    // The thread may have acquired the lock several times in the part that is lost.
                    _ if thread.overwritten > 0
                        && (model.locks[lock].nature.is_reentrant || step.is_shared) => {}
                    before => visit(id, Stray { lock, step, released_before: before.is_some() }),
                },
                StepKind::Initialised => holds.set(lock, 0),
                _ => {}
            }
        }
    }
}

/// The locks that threads hand over: a thread other than the one that acquired the lock may release it.
#[derive(Debug)]
pub(super) struct HandedOver {
    locks: HashSet<LockId>,
    /// Locks that were initialised where one of those was.
    alike: HashSet<LockId>,
    /// The histories show a release by a thread that did not hold the lock.
    has_stray_releases: bool,
}

impl HandedOver {
    /// Finds the locks that some thread released without having acquired them, by the histories and by what the
    /// recorder remembers.
    pub(super) fn new(model: &LockModel) -> HandedOver {
        let remembered = (0..model.locks.len()).filter(|&lock| {
            let lock = &model.locks[lock];
            lock.is_handed_over && lock.nature.ownership != Ownership::Enforced
        });
        let mut locks: HashSet<LockId> = remembered.collect();
        let mut has_stray_releases = false;
        stray_releases(model, |_, stray| {
            has_stray_releases = true;
            locks.insert(stray.lock);
        });
        let places: HashSet<LocationId> =
            locks.iter().filter_map(|&lock| model.locks[lock].initialised_at).collect();
        let is_alike = |&lock: &LockId| {
            let lock = &model.locks[lock];
            lock.nature.ownership != Ownership::Enforced
                && lock.initialised_at.is_some_and(|place| places.contains(&place))
        };
        let alike = (0..model.locks.len()).filter(is_alike).collect();
        HandedOver { locks, alike, has_stray_releases }
    }

    /// Whether `stray_releases` has any.
    pub(super) fn has_stray_releases(&self) -> bool {
        self.has_stray_releases
    }

    /// Whether a lock was handed over.
    pub(super) fn contains(&self, lock: LockId) -> bool {
        self.locks.contains(&lock)
    }

    /// Whether a lock that is held may be handed over: it was before, or another lock that was acquired at the same
    /// place, or initialised at the same place, was.
    pub(super) fn includes(&self, hold: &Hold) -> bool {
        hold.has_place_of_handed_over || self.contains(hold.lock) || self.alike.contains(&hold.lock)
    }
}
