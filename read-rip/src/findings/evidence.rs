//! What findings are based on, as data: ids of the model's threads, locks and locations, counts and times.
//!
//! It contains no text and draws no conclusions. `--json` writes these types as they are, with the names of their
//! fields.

use serde::Serialize;

use super::kind::Refusal;
use crate::locations::LocationId;
use crate::locks::{Doing, LockId, Quantiles, ThreadId};

/// What a finding is based on. Each analysis has its own type.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "each type says it")]
pub enum Evidence {
    WaitCycle(WaitCycle),
    DeadHolder(DeadHolder),
    Orphan(Orphan),
    DestroyedWhileHeld(DestroyedWhileHeld),
    RefusedCall(RefusedCall),
    StrayRelease(StrayRelease),
    SecondAcquisition(SecondAcquisition),
    OrderCycle(OrderCycle),
    NestedReads(NestedReads),
    MutualFailure(MutualFailure),
    BusyLoops(BusyLoops),
    Standstill(Standstill),
    Abandoned(Abandoned),
    Unheard(Unheard),
    Stall(Stall),
    Queue(Queue),
    IdleHolder(IdleHolder),
    Overtaken(Overtaken),
    Contended(Contended),
    CrowdedLine(CrowdedLine),
}

/// A thread that holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HoldFact {
    /// The thread.
    pub thread: ThreadId,
    /// The lock.
    pub lock: LockId,
    /// Where the thread acquired it; `None`: only the process's memory says that it holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationId>,
    /// In shared mode.
    #[serde(rename = "shared")]
    pub is_shared: bool,
    /// For how long; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
    /// The thread did not acquire it: the thread that forked its process did.
    #[serde(rename = "inherited", skip_serializing_if = "std::ops::Not::not")]
    pub is_inherited: bool,
}

/// A thread that waits for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WaitFact {
    /// The thread.
    pub thread: ThreadId,
    /// The lock.
    pub lock: LockId,
    /// Where the thread waits.
    pub location: LocationId,
    /// In shared mode.
    #[serde(rename = "shared")]
    pub is_shared: bool,
    /// The wait ends by itself after a time.
    #[serde(rename = "timed")]
    pub is_timed: bool,
    /// The thread waits on a condition variable, and needs the lock to return.
    #[serde(rename = "relock")]
    pub is_relock: bool,
    /// For how long; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
}

/// The threads that wait for a lock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Waiters {
    /// How many.
    pub count: usize,
    /// The first of them, those that have waited longest first.
    pub first: Vec<WaitFact>,
}

/// Threads that wait for one another in a cycle. One edge: a thread that waits for a lock that it holds itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitCycle {
    /// How many threads are on the cycle.
    pub threads: usize,
    /// For how long all of them have waited; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
    /// Each thread of the cycle and what blocks it, in the order of the cycle. Of a long cycle the first ones.
    pub edges: Vec<WaitEdge>,
    /// How many threads outside the cycle can never continue either.
    pub also_blocked: usize,
}

/// A thread of a cycle, and the next thread, which blocks it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum WaitEdge {
    /// It waits for a lock.
    Lock(LockEdge),
    /// It waits for the end of the next thread.
    Join {
        /// The wait.
        join: JoinFact,
    },
}

impl WaitEdge {
    /// The wait for a lock, if it is one.
    pub fn of_lock(&self) -> Option<&LockEdge> {
        match self {
            WaitEdge::Lock(edge) => Some(edge),
            WaitEdge::Join { .. } => None,
        }
    }
}

/// A thread that waits for the end of another one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct JoinFact {
    /// The thread.
    pub thread: ThreadId,
    /// The thread whose end it waits for.
    pub joined: ThreadId,
    /// Where the thread waits.
    pub location: LocationId,
    /// The wait ends by itself after a time.
    #[serde(rename = "timed")]
    pub is_timed: bool,
    /// For how long; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
}

/// A thread of a cycle that waits for a lock, and the next thread, which blocks it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LockEdge {
    /// The wait.
    pub wait: WaitFact,
    /// What blocks it.
    #[serde(flatten)]
    pub blocker: Blocker,
}

/// What blocks a wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Blocker {
    /// A thread holds the lock.
    Holder(HoldFact),
    /// This thread waits to acquire the lock exclusively, and later readers queue after it.
    QueuedWriter(ThreadId),
}

/// A lock held by a thread that no longer exists.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeadHolder {
    /// The hold.
    pub hold: HoldFact,
    /// The thread has exited; otherwise it disappeared without exiting.
    #[serde(rename = "exited")]
    pub has_exited: bool,
    /// The threads that wait for the lock.
    pub waiters: Waiters,
}

/// A lock of a forked child that is locked, and that no thread of the child holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Orphan {
    /// The child.
    pub pid: u32,
    /// The lock.
    pub lock: LockId,
    /// The threads that wait for it.
    pub waiters: Waiters,
    /// Whether a thread of the parent certainly held it at the fork.
    pub locked_at_fork: bool,
    /// The holder of the same lock in the parent now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<HoldFact>,
}

/// A lock that was destroyed while a thread held it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DestroyedWhileHeld {
    /// The hold.
    pub hold: HoldFact,
    /// A new lock was initialised in its place, and nothing else destroyed it.
    #[serde(rename = "initialised", skip_serializing_if = "std::ops::Not::not")]
    pub is_initialised: bool,
}

/// A call on a lock that failed, or that is forbidden.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RefusedCall {
    /// Why.
    pub what: Refusal,
    /// The thread that called first; `None`: its slot has another owner now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// The id of that thread.
    pub tid: u32,
    /// The lock of the first call.
    pub lock: LockId,
    /// Where the call is.
    pub location: LocationId,
    /// How often it failed there.
    pub count: u32,
    /// How long ago it failed first; `None`: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_ago_ns: Option<u64>,
}

/// A release of a lock that the thread did not hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StrayRelease {
    /// The thread.
    pub thread: ThreadId,
    /// The lock.
    pub lock: LockId,
    /// Where the thread released it.
    pub location: LocationId,
    /// The thread released the same lock before.
    pub released_before: bool,
}

/// A lock acquired by the thread that already held it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SecondAcquisition {
    /// The thread.
    pub thread: ThreadId,
    /// The lock.
    pub lock: LockId,
    /// Where the thread acquired it first.
    pub first: LocationId,
    /// Where the thread acquired it again; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second: Option<LocationId>,
}

/// A lock that a thread acquired shared while it held it shared, and a writer of the lock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NestedReads {
    /// The thread.
    pub thread: ThreadId,
    /// The lock.
    pub lock: LockId,
    /// Where the thread acquired it first.
    pub first: LocationId,
    /// Where the thread acquired it again.
    pub second: LocationId,
    /// A thread that acquires the lock exclusively.
    pub writer: ThreadId,
    /// Where the writer acquired the lock, or waits for it.
    pub written: LocationId,
}

/// Threads that acquire locks in orders that form a cycle.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OrderCycle {
    /// In the order of the cycle: each edge acquires the lock that the next one holds.
    pub edges: Vec<OrderEdge>,
    /// How many more sets of locks with the same names form such a cycle.
    pub similar: usize,
    /// How many more cycles no finding describes. Only the last finding counts them.
    pub unlisted: usize,
}

/// A thread that acquired one lock while it held another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OrderEdge {
    /// The thread.
    pub thread: ThreadId,
    /// What it held.
    pub held: Acquisition,
    /// What it acquired while it held that.
    pub acquired: Acquisition,
}

/// A lock, and where and how it was acquired.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Acquisition {
    /// The lock.
    pub lock: LockId,
    /// Where.
    pub location: LocationId,
    /// In shared mode.
    #[serde(rename = "shared")]
    pub is_shared: bool,
}

/// Threads that each fail to acquire what another of them holds, step back, and try again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MutualFailure {
    /// How many threads.
    pub threads: usize,
    /// The first of them.
    pub tries: Vec<FailedTries>,
    /// The program marks progress, and none of these threads made any.
    #[serde(rename = "progress_marked")]
    pub is_progress_marked: bool,
}

/// A thread's tries to acquire a lock while it held another one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FailedTries {
    /// The thread.
    pub thread: ThreadId,
    /// How many tries failed.
    pub count: usize,
    /// The lock.
    pub lock: LockId,
    /// Where the thread tries.
    pub location: LocationId,
    /// Another of the threads, which acquires this lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<ThreadId>,
}

/// Busy threads without any mark of progress.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BusyLoops {
    /// How many threads.
    pub threads: usize,
    /// The first of them.
    pub loops: Vec<BusyLoop>,
}

/// A thread that repeatedly passes the same few locations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BusyLoop {
    /// The thread.
    pub thread: ThreadId,
    /// How many marks of it are known.
    pub marks: usize,
    /// Where it was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LocationId>,
}

/// Threads that wait for a lock whose ownership stands still.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standstill {
    /// The lock.
    pub lock: LockId,
    /// The threads that wait for this very lock.
    pub waiters: Waiters,
    /// How many threads wait for it, or for locks that those threads hold, and so on.
    pub blocked: usize,
    /// For how many locks they wait.
    pub locks: usize,
    /// How many more threads wait on condition variables whose locks these threads have used.
    pub on_conditions: usize,
    /// For how long the first of all these threads has waited, ns. If the end of the process is not known: at least.
    #[serde(rename = "longest_wait_ns", skip_serializing_if = "Option::is_none")]
    pub longest_ns: Option<u64>,
    /// For how long it has waited at most, ns.
    #[serde(rename = "longest_wait_at_most_ns", skip_serializing_if = "Option::is_none")]
    pub longest_at_most_ns: Option<u64>,
    /// The holder; `None`: no recorded thread is known to hold the lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<StandingHolder>,
    /// The known acquisitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<LockHistory>,
    /// How many more groups of waiting threads no finding describes. Only the last finding counts them.
    pub unlisted: usize,
}

/// A holder that keeps its lock, and what it does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StandingHolder {
    /// The hold.
    pub hold: HoldFact,
    /// For how long at least it has held the lock, ns: since the first of the threads that wait for it began to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_at_least_ns: Option<u64>,
    /// Whether it held the lock at both readings, and in between; `None` without two.
    #[serde(rename = "held_throughout", skip_serializing_if = "Option::is_none")]
    pub is_steady: Option<bool>,
    /// How many words it recorded between two readings; `None` without two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words_recorded: Option<u64>,
    /// The time between the two readings, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<u64>,
    /// Where it was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LocationId>,
    /// The condition variable, semaphore, barrier or channel on which it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleep: Option<HolderSleep>,
    /// The thread whose end it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join: Option<JoinFact>,
}

/// A wait of a holder on a condition variable, semaphore, barrier or channel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HolderSleep {
    /// The lock that it has released for the condition variable; or the semaphore, barrier or channel.
    pub lock: LockId,
    /// On what it waits.
    pub what: Asleep,
    /// Where it waits.
    pub location: LocationId,
    /// The wait ends by itself after a time.
    #[serde(rename = "timed")]
    pub is_timed: bool,
    /// For how long; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
}

/// A process in which no thread moves, and threads wait for locks or for one another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stall {
    /// How many threads the process has.
    pub threads: usize,
    /// How many of them wait for locks.
    pub on_locks: usize,
    /// How many wait for the end of a thread, or for an initialisation.
    pub on_threads: usize,
    /// How many wait for what only another thread can bring, as a signal on a condition variable.
    pub inside: usize,
    /// For how long none of them moved, ns: the time between the two readings; `None`: the process is dead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<u64>,
    /// Threads that do the same at the same place, those that wait for locks first. Of many groups the first ones.
    pub first: Vec<StandingFact>,
}

/// Threads that do the same at the same place.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StandingFact {
    /// One of them.
    pub thread: ThreadId,
    /// How many they are.
    pub count: usize,
    /// What they do.
    pub doing: Doing,
    /// Where they stand in the program; `None`: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationId>,
}

/// A process all of whose threads wait, so that no thread is left to wake another one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Abandoned {
    /// How many threads.
    pub threads: usize,
    /// How many of them wait for locks.
    pub on_locks: usize,
    /// How many wait on condition variables.
    pub on_conditions: usize,
    /// How many wait for units of semaphores.
    pub on_semaphores: usize,
    /// How many wait at barriers.
    pub on_barriers: usize,
    /// How many wait for messages, or to be woken by another thread.
    pub on_messages: usize,
    /// For how long all of them have waited, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
    /// The first of them, those that have waited longest first.
    pub first: Vec<SleepFact>,
}

/// Threads that wait on a condition variable after its last signal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unheard {
    /// How many threads wait on it.
    pub waiting: usize,
    /// The one of them that has waited longest.
    pub first: SleepFact,
    /// How many threads the process has. All of them wait.
    pub threads: usize,
    /// A thread that signalled the condition when nobody waited.
    pub signaller: ThreadId,
    /// Where it did that last.
    pub signalled_at: LocationId,
}

/// A thread that waits, and on what.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SleepFact {
    /// The thread.
    pub thread: ThreadId,
    /// The lock for which it waits, or which it has released for a condition variable; or the semaphore, barrier or
    /// channel.
    pub lock: LockId,
    /// On what it waits.
    pub what: Asleep,
    /// Where it waits.
    pub location: LocationId,
    /// For how long; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
}

/// On what a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Asleep {
    /// A lock.
    Lock,
    /// A condition variable.
    Condition,
    /// A semaphore.
    Semaphore,
    /// A barrier.
    Barrier,
    /// A message, or room for one.
    Message,
    /// To be woken by another thread.
    Wake,
    /// The end of a thread.
    Thread,
}

/// A lock for which most of the threads that use it wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
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

/// What is known of the past of a lock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LockHistory {
    /// How often it was acquired.
    pub acquisitions: u64,
    /// How often after a wait.
    pub contended: u64,
    /// By how many threads.
    pub owners: usize,
    /// How long threads waited for it, as far as recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<Quantiles>,
    /// How long threads held it, as far as recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds: Option<Quantiles>,
}

/// A thread that holds a lock and does nothing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IdleHolder {
    /// The hold.
    pub hold: HoldFact,
    /// For how long at least, ns: without a recorded time, the time between two readings.
    pub at_least_ns: u64,
    /// Where the thread was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LocationId>,
    /// The threads that wait for the lock.
    pub waiters: Waiters,
}

/// Threads that wait for a lock while others overtake them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overtaken {
    /// The lock.
    pub lock: LockId,
    /// How many threads.
    pub threads: usize,
    /// The first of them: those that were overtaken most often.
    pub first: Vec<OvertakenWait>,
}

/// A wait, and how often other threads overtook it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OvertakenWait {
    /// The wait.
    pub wait: WaitFact,
    /// How often at least a thread that came later acquired the lock.
    pub overtakes: usize,
}

/// A lock at which threads lose time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contended {
    /// The lock.
    pub lock: LockId,
    /// The holder; the first if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<HoldFact>,
    /// The threads that wait for it.
    pub waiters: Waiters,
    /// The known acquisitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<LockHistory>,
    /// How many more contended locks no finding describes. Only the last finding counts them.
    pub unlisted: usize,
}

/// A source line at which most threads wait, as far as plain marks show.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CrowdedLine {
    /// How many threads wait there.
    pub waiting: usize,
    /// How many threads the process has.
    pub threads: usize,
    /// One of those that wait.
    pub example: ThreadId,
    /// Where that one was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LocationId>,
    /// How many threads seem to hold a lock of the same file.
    pub holders: usize,
    /// The first of these.
    pub first_holders: Vec<ApparentHolder>,
    /// All apparent holders wait at the line themselves, which looks like a deadlock.
    pub all_holders_wait: bool,
}

/// A thread that seems to hold a lock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ApparentHolder {
    /// The thread.
    pub thread: ThreadId,
    /// Where it seems to have acquired the lock.
    pub location: LocationId,
    /// It waits at the crowded line itself.
    #[serde(rename = "waits_too")]
    pub is_waiting: bool,
    /// Where it was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LocationId>,
}
