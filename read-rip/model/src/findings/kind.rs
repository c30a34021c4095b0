//! The kinds of findings, and how certain a finding is: stable names.
//!
//! It contains no sentences: each analysis has its own, and `remarks` has those of doubts and advice.

use read_rip_ring::IncidentKind;

use super::named::named;

named! {
    /// What is wrong. The name is what suppression files and scripts use.
    pub enum Kind {
        /// Threads wait for one another in a cycle.
        Deadlock = "deadlock",
        /// A task waits for what another future of its own holds, or is next to get, and does not poll that future.
        Futurelock = "futurelock",
        /// All workers of an executor are in polls that do not return, and tasks wait to be polled.
        StarvedRuntime = "starved-runtime",
        /// A poll of a task does not return.
        LongPoll = "long-poll",
        /// Tasks were woken, and nobody polls them.
        UnpolledTask = "unpolled-task",
        /// A task is suspended, and nobody has a waker of it.
        NeverWoken = "never-woken",
        /// Tasks wait for room in a channel, and who received from it has ended.
        AbandonedChannel = "abandoned-channel",
        /// A thread that no longer exists holds a lock.
        Unreleased = "unreleased",
        /// A thread of a forked child waits for a lock that was held in the parent at the fork.
        LostOwner = "lost-owner",
        /// A lock was destroyed while a thread held it.
        DestroyedLock = "destroyed-lock",
        /// A call on a lock failed, or is forbidden.
        Misuse = "misuse",
        /// A thread released a lock that no thread held.
        UnlockWithoutLock = "unlock-without-lock",
        /// A thread acquired a lock that it already held.
        DoubleLock = "double-lock",
        /// Threads acquire the same locks in different orders.
        LockOrder = "lock-order",
        /// A thread acquires a lock shared while it holds it shared, and a writer may come in between.
        NestedRead = "nested-read",
        /// Threads are busy and make no progress.
        Livelock = "livelock",
        /// Threads wait for a lock whose holder is ready to run and hardly gets a processor.
        StarvedHolder = "starved-holder",
        /// Threads wait for long for what a holder keeps, or nobody can give.
        LongWait = "long-wait",
        /// A thread waits on a condition variable that was signalled before it waited, and no thread is left to signal.
        LostWakeup = "lost-wakeup",
        /// No thread of a process moves, and threads wait for locks or for one another.
        Stall = "stall",
        /// Most threads that use a lock wait for it, and its holder keeps it.
        PileUp = "pile-up",
        /// Most threads that use a lock wait for it, and it changes hands.
        Convoy = "convoy",
        /// A thread holds a lock for long and does nothing.
        LongHold = "long-hold",
        /// A thread waits for a lock while others overtake it.
        Starvation = "starvation",
        /// Threads lose time at a lock.
        Contention = "contention",
        /// Most threads wait at one source line, as far as plain marks show.
        LockLine = "lock-line",
    }
}

impl Kind {
    /// The kind of this name.
    pub fn of_name(name: &str) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

named! {
    /// Why a call on a lock failed, or is forbidden.
    pub enum Refusal {
        /// A lock was refused: its owner is the caller, or waits for the caller.
        Relock = "relock",
        /// An unlock was refused: the caller does not own the lock.
        Unlock = "unlock-by-other",
        /// A lock was not destroyed: it is in use.
        Destroy = "destroy-in-use",
        /// A robust lock was acquired whose owner has ended.
        OwnerDied = "owner-died",
        /// A robust lock was refused, because nobody repaired it.
        NotRecoverable = "not-recoverable",
        /// A lock was refused: it is held as often as it can be.
        TooOften = "too-often",
        /// A call was refused: the lock was destroyed.
        Destroyed = "destroyed",
        /// A unit was refused: the semaphore has as many as it can have.
        SemaphoreFull = "semaphore-full",
        /// A wait on a condition variable with a mutex that the caller did not hold.
        WaitWithoutLock = "wait-without-lock",
        /// A lock was initialised while a thread waited for it.
        InitialisedInUse = "initialised-in-use",
        /// A condition variable was destroyed while a thread waited on it.
        DestroyedInUse = "destroyed-in-use",
    }
}

impl From<IncidentKind> for Refusal {
    fn from(kind: IncidentKind) -> Refusal {
        match kind {
            IncidentKind::Relock => Refusal::Relock,
            IncidentKind::Unlock => Refusal::Unlock,
            IncidentKind::Destroy => Refusal::Destroy,
            IncidentKind::OwnerDied => Refusal::OwnerDied,
            IncidentKind::NotRecoverable => Refusal::NotRecoverable,
            IncidentKind::TooOften => Refusal::TooOften,
            IncidentKind::Destroyed => Refusal::Destroyed,
            IncidentKind::SemaphoreFull => Refusal::SemaphoreFull,
            IncidentKind::WaitWithoutLock => Refusal::WaitWithoutLock,
        }
    }
}

impl Refusal {
    /// The error that the C library returned; `None` if it returned none.
    pub fn error(self) -> Option<&'static str> {
        Some(match self {
            Refusal::Relock => "EDEADLK",
            Refusal::Unlock => "EPERM",
            Refusal::Destroy => "EBUSY",
            Refusal::OwnerDied => "EOWNERDEAD",
            Refusal::NotRecoverable => "ENOTRECOVERABLE",
            Refusal::TooOften => "EAGAIN",
            Refusal::Destroyed => "EINVAL",
            Refusal::SemaphoreFull => "EOVERFLOW",
            Refusal::WaitWithoutLock | Refusal::InitialisedInUse | Refusal::DestroyedInUse => return None,
        })
    }
}

named! {
    /// How certain a finding is.
    pub enum Confidence {
        /// It may be so: the pattern has other explanations too.
        Suspected = "suspected",
        /// It can happen: what leads to it was recorded, the problem itself was not.
        Potential = "potential",
        /// It is so: what was recorded allows no other explanation.
        Proven = "proven",
    }
}
