//! The balance: what the threads of a ring do, and what the record cannot show. It is no analysis, and finds nothing.
//!
//! A process in which threads wait is not silent, even if no rule fires.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use read_rip_evidence::standing::ServerWaits;
use read_rip_evidence::target::{Helper, HelperState};
use read_rip_evidence::waits::pool_of;
use serde::Serialize;

use super::beside_timers::BesideTimers;
use super::between::{is_left_to_itself, may_wait_for_others, waits_for_nobody};
use super::going_on;
use super::idle_pool::{self, IdlePool};
use super::jobs::WaitingJobs;
use super::left_waiting::LeftWaiting;
use super::long_wait::KeptLock;
use super::managed_lock::ManagedLock;
use super::missing_party::MissingParty;
use super::named::named;
use super::nobody_left::asleep;
use super::running_on::RunningOn;
use super::runtimes::executors;
use super::suspended_tasks::SuspendedTasks;
use super::task_balance::TaskBalance;
use super::unrecorded_futures::UnrecordedFutures;
use super::{Asleep, Finding, HoldFact, Kind, LATELY_NS, View};
use crate::locations::{Location, LocationId};
use crate::locks::{
    Awaited, Doing, FormerClients, Hold, HoldState, LockId, OnlyHelper, PoolAwaits, Seen, StepKind, ThreadId,
    ThreadLocks, Wait,
};
use crate::threads::ThreadState;

named! {
    /// What follows from all findings and the balance together.
    pub enum Outcome {
        /// There are findings.
        Findings = "findings",
        /// The record was examined, and nothing is wrong.
        NothingFound = "nothing-found",
        /// No lock and no task is in the record, and no mark of progress is in the program.
        NothingRecorded = "nothing-recorded",
        /// All threads wait by the record and by the kernel, or of a dead process all that are recorded. No finding
        /// says why, and nobody who could wake them is known.
        AllWait = "all-wait",
        /// Threads or tasks wait at a barrier, and have done so for the threshold if the process lives. One that has used
        /// it has ended, and nobody is known to come in its place.
        MissingParty = "missing-party",
        /// Tasks wait for answers to their requests, and have done so for the threshold if the process lives. Those that
        /// got the requests wait for messages, and have not answered.
        Unanswered = "unanswered",
        /// All tasks wait without a time limit, and have done so for the threshold if the process lives; no finding
        /// says why, and nobody who could wake one is known. No thread runs, or waits with a time limit.
        AllTasksWait = "all-tasks-wait",
        /// The process died at an unknown moment. A thread held a lock, and most others that use it waited for it. The
        /// record does not say for how long: the threads may have been stuck, or the lock busy.
        HeldAtEnd = "held-at-end",
        /// Threads waited for locks when a core file was made, and what keeps them may have gone on.
        OneMoment = "one-moment",
        /// All workers of an executor were in polls when the process died.
        AllWorkersBusy = "all-workers-busy",
        /// Workers of an executor were in polls when the process died, and tasks were ready that nobody polled.
        WorkersBusy = "workers-busy",
        /// Workers of an executor were awake when the process died, and slept nearly all of the time before.
        RareWorkersBusy = "rare-workers-busy",
        /// Polls or calls of tasks had not returned when the process died, although what runs in them waited.
        WaitsWithinPoll = "waits-within-poll",
        /// Threads of a living process wait for objects of a pool, and have done so for a second or more, or all tasks
        /// that run one function await some. Or most threads that use a pool waited for its objects when the process
        /// died. The record does not say who has the objects.
        EmptyPool = "empty-pool",
        /// Threads of a living process wait for locks that a database keeps in structures of its own, and have done so
        /// for a second or more; or they wait for a server of whose threads that is so.
        ManagedLock = "managed-lock",
        /// Threads of a living process run without pause and do nothing that the kernel counts, and all others wait for
        /// one another, or there are none: whether the threads compute or wait in a loop is not known.
        RunningOn = "running-on",
        /// All threads of a pool wait within jobs, for what only other threads can bring: whether that is the work of
        /// jobs of the same pool is not known.
        WaitingJobs = "waiting-jobs",
        /// Threads of a living process, or of several, wait for one another, and all others sleep for a time, again and
        /// again: whether these wake the others is not known.
        BesideTimers = "beside-timers",
        /// Threads of a living process have waited for a lock for long, and not yet for the threshold. A thread has kept
        /// the lock since, and goes on: whether it works under the lock, or has forgotten it, is not known.
        KeptLock = "kept-lock",
        /// Threads of a living process wait for one another, and all others wait for what comes from outside, or for a
        /// time, and come to no code that is known to wake a thread.
        BesideInput = "beside-input",
        /// Threads of a living process have waited for long for another process, all of whose threads wait for one
        /// another.
        StuckHelper = "stuck-helper",
        /// Nothing is recorded, and the kernel does not let this user look into the process.
        Hidden = "hidden",
        /// No finding is there, and the program has locks that this reader does not see.
        OtherLocks = "other-locks",
        /// No task is recorded, no finding is there, and the program has async tasks.
        UnseenTasks = "unseen-tasks",
        /// Requests have lasted for long and are suspended, and what they wait for is not recorded, or who can bring it.
        SilentRequests = "silent-requests",
        /// A living process has connections that came in where nobody listens any more: it may be shutting down, and
        /// wait for their ends.
        ShuttingDown = "shutting-down",
        /// Threads of a living process wait for events that only the process itself brings, and all others wait for one
        /// another. What its tasks wait for is not known.
        OnlyItself = "only-itself",
        /// No finding is there, and futures wait for locks or hold them that belong to no recorded task: those that a
        /// worker of an executor has polled, or others whose wait or hold lasted.
        UnrecordedFutures = "unrecorded-futures",
        /// No finding is there, and what a thread waits for is in memory that cannot be read.
        Unreadable = "unreadable",
    }
}

impl Outcome {
    /// Whether something could be judged.
    pub fn is_judged(self) -> bool {
        matches!(self, Outcome::Findings | Outcome::NothingFound)
    }
}

/// A lock that a thread held when a process died at an unknown moment, and for which most others waited that use it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldAtEnd {
    /// The lock.
    pub lock: LockId,
    /// The hold.
    pub hold: HoldFact,
    /// What the holder did last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LocationId>,
    /// How many threads waited.
    pub waiting: usize,
    /// How many threads are known to use the lock, without the holder.
    pub others: usize,
    /// For how long the first of them has waited at least, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
}

impl HeldAtEnd {
    /// The lock for which most threads waited, of those that are in no idle pool. What looks like an idle pool is one
    /// if the thread whose turn it is waits for what is recorded, such as a message.
    fn of(view: &View<'_>, pools: &[IdlePool]) -> Option<HeldAtEnd> {
        if !view.now.is_final || !view.now.is_end_unknown {
            return None;
        }
        let held = |lock: LockId| {
            let hold = view.now.locks[lock].holders.iter().find(|hold| hold.state == HoldState::Held)?;
            let waiting =
                view.waits(lock).filter(|wait| !wait.is_timed && wait.thread != hold.thread).count();
            let past = view.pasts().get(lock)?;
            let others = past.users.iter().filter(|&&user| user != hold.thread).count();
            (waiting > 0 && 2 * waiting > others).then(|| HeldAtEnd {
                lock,
                hold: view.hold_fact(hold),
                last: view.now.threads[hold.thread].last,
                waiting,
                others,
                for_ns: view.ago_ns(view.first_wait_ns(lock)),
            })
        };
        let waits = |hold: &Hold| view.now.threads[hold.thread].sleep.is_some();
        let is_of_pool = |lock: &LockId| {
            pools.iter().any(|pool| pool.lock == *lock) && view.now.locks[*lock].holders.iter().any(waits)
        };
        let locks = (0..view.now.locks.len()).filter(|lock| !is_of_pool(lock));
        locks.filter_map(held).max_by_key(|held| held.waiting)
    }
}

/// Threads that have waited for an object of a pool for long, or at death.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EmptyPool {
    /// How many threads.
    pub threads: usize,
    /// The one that has waited longest.
    pub first: ThreadId,
    /// Where it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationId>,
    /// For how long it has waited, ns, at least; `None`: the process is dead, and nothing says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
}

impl EmptyPool {
    /// A pool hands its objects out for moments. A wait that lasts says that somebody keeps them, that all who have one
    /// want another one, or that what the pool connects to does not answer.
    fn of(view: &View<'_>) -> Option<EmptyPool> {
        let waits = |(id, thread): (ThreadId, &ThreadLocks)| {
            let is_at_pool = |seen: &Seen| seen.doing == Doing::WaitsForObject && seen.is_still == Some(true);
            let seen = thread.seen.filter(is_at_pool)?;
            let for_ns = seen.asleep_ns.map(NonZeroU64::get).max(view.now.window_ns)?;
            (for_ns >= LATELY_NS).then_some((for_ns, id, seen.place))
        };
        let waits: Vec<_> = view.now.present().filter_map(waits).collect();
        let &(for_ns, first, location) = waits.iter().max_by_key(|(for_ns, ..)| for_ns)?;
        Some(EmptyPool { threads: waits.len(), first, location, for_ns: Some(for_ns) })
    }

    /// The same of a dead process, by the record: most threads that use a pool waited for an object of it.
    fn at_death(view: &View<'_>) -> Option<EmptyPool> {
        if !view.now.is_final || !view.now.is_end_unknown || !view.now.seen.is_empty() {
            return None;
        }
        let waits = |thread: &ThreadLocks| match thread.awaited()? {
            Awaited::Condition { wait, .. } => {
                wait.filter(|wait| pool_at(view.locations[wait.location]).is_some()).copied()
            }
            Awaited::Lock(_) | Awaited::Unit { .. } | Awaited::End(_) => None,
        };
        let waits: Vec<Wait> = view.now.present().filter_map(|(_, thread)| waits(thread)).collect();
        let at = |lock: LockId| {
            let at_pool = || waits.iter().filter(|wait| wait.lock == lock);
            let is_other = |(id, thread): &(ThreadId, &ThreadLocks)| {
                at_pool().all(|wait| wait.thread != *id)
                    && thread.steps.iter().any(|step| step.lock == Some(lock))
            };
            let others = view.now.present().filter(is_other).count();
            let first = at_pool().min_by_key(|wait| wait.since_ns)?;
            let threads = at_pool().count();
            let (for_ns, location) = (view.ago_ns(first.since_ns), Some(first.location));
            (threads >= others).then_some(EmptyPool { threads, first: first.thread, location, for_ns })
        };
        waits.iter().filter_map(|wait| at(wait.lock)).max_by_key(|pool| pool.threads)
    }
}

/// The library of the pool that a thread at this place wants an object of.
pub fn pool_at(location: &Location) -> Option<&'static str> {
    let callers =
        location.callers.iter().chain(&location.outer).filter_map(|frame| frame.function.as_deref());
    [&*location.full_function].into_iter().chain(callers).find_map(pool_of)
}

/// A process that alone can end the waits of some threads, unless a signal does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HelperFact {
    /// The process: its pid in this reader's PID namespace.
    pub pid: u32,
    /// The name of its first thread.
    pub name: String,
    /// What it does: `runs`, `sleeps`, `waits-for-itself`, or `stopped`.
    pub does: &'static str,
    /// How many threads wait for it.
    pub threads: usize,
    /// One of them.
    pub first: ThreadId,
    /// What threads of that process wait for, if it is a server with locks of its own: `a lock of PostgreSQL`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<&'static str>,
    /// The same.
    #[serde(skip)]
    pub server: Option<ServerWaits>,
}

impl HelperFact {
    fn of(only: &OnlyHelper) -> Option<HelperFact> {
        let Helper { party, state } = &only.helper;
        let does = match state {
            HelperState::Runs => "runs",
            HelperState::Sleeps => "sleeps",
            HelperState::WaitsForItself => "waits-for-itself",
            HelperState::Stopped => "stopped",
        };
        let (threads, first) = (only.threads.len(), *only.threads.first()?);
        Some(HelperFact {
            pid: party.pid,
            name: party.name.clone(),
            does,
            threads,
            first,
            waits_for: only.server.map(|server| server.manager.awaited()),
            server: only.server,
        })
    }
}

/// What the threads of a ring do, and what the record cannot show.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Balance {
    /// What follows.
    pub outcome: Outcome,
    /// Recorded threads that exist, or existed when the process died.
    pub present: usize,
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
    /// How many wait for the ends of threads, if the kernel was not asked.
    pub on_threads: usize,
    /// For how long the first of those that wait for locks has waited, ns.
    #[serde(rename = "longest_wait_ns", skip_serializing_if = "Option::is_none")]
    pub longest_ns: Option<u64>,
    /// Threads of the living process that have recorded nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unrecorded: Option<usize>,
    /// Threads that use locks, and whose older events were overwritten.
    pub overwritten: usize,
    /// How many of the threads that wait for none of these do what, by the kernel; empty if it was not asked.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub doing: BTreeMap<Doing, usize>,
    /// The processes each of which alone can end waits of these threads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub helpers: Vec<HelperFact>,
    /// Idle pools, and what looks like one.
    pub pools: Vec<IdlePool>,
    /// Why the outcome is [`Outcome::HeldAtEnd`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_at_end: Option<HeldAtEnd>,
    /// Why the outcome is [`Outcome::EmptyPool`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty_pool: Option<EmptyPool>,
    /// Why the outcome is [`Outcome::EmptyPool`], if tasks await objects of a pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool_awaits: Option<PoolAwaits>,
    /// Why the outcome is [`Outcome::EmptyPool`], if tasks may have awaited objects of a pool when the process died.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended_tasks: Option<SuspendedTasks>,
    /// Why the outcome is [`Outcome::ManagedLock`], if threads of this process wait so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_lock: Option<ManagedLock>,
    /// Why the outcome is [`Outcome::RunningOn`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running_on: Option<RunningOn>,
    /// Why the outcome is [`Outcome::WaitingJobs`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_jobs: Option<WaitingJobs>,
    /// Why the outcome is [`Outcome::BesideTimers`] or [`Outcome::BesideInput`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside_timers: Option<BesideTimers>,
    /// Why the outcome is [`Outcome::KeptLock`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_lock: Option<KeptLock>,
    /// Why the outcome is [`Outcome::MissingParty`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_party: Option<MissingParty>,
    /// What is not judged in any case: the locks and waits of futures that belong to no recorded task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unrecorded_futures: Option<UnrecordedFutures>,
    /// Why the outcome is [`Outcome::ShuttingDown`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub former_clients: Option<FormerClients>,
    /// How many threads of a core file waited for locks, if there is no finding: why the outcome is
    /// [`Outcome::OneMoment`].
    #[serde(skip)]
    pub waiting_in_core: usize,
    /// Who waited when the process died, if nothing could be judged by that.
    #[serde(skip)]
    pub left_waiting: LeftWaiting,
    /// What the tasks do.
    pub tasks: TaskBalance,
}

impl Balance {
    /// The balance of a view. `found` are all findings, also those that are not reported.
    pub fn of(view: &View<'_>, found: &[Finding]) -> Balance {
        let model = view.now;
        let exists = |thread: &&ThreadLocks| thread.state == ThreadState::Present;
        let present = || model.threads.iter().filter(exists).filter(|thread| thread.task.is_none());
        let blocked = || present().filter(|thread| thread.is_blocked());
        let counted = || present().filter(|thread| is_counted(thread));
        let count = |what: Asleep| counted().filter(|thread| asleep(model, thread) == what).count();
        let mut doing = BTreeMap::new();
        for seen in present().filter(|thread| !is_counted(thread)).filter_map(|thread| thread.seen) {
            *doing.entry(seen.doing).or_insert(0) += 1;
        }
        let first_ns = present().filter_map(|thread| thread.wait?.since_ns).min();
        let is_timed = |thread: &ThreadLocks| {
            let waits = thread.wait.iter().chain(thread.sleep.as_deref()).any(|wait| wait.is_timed);
            waits || thread.join.as_ref().is_some_and(|join| join.is_timed)
        };
        let ends_by_itself = blocked().any(is_timed);
        let waits_inside =
            |what: &Doing| matches!(what, Doing::WaitsForLock | Doing::WaitsForThread | Doing::WaitsInside);
        // What the record does not say of a thread, the kernel may.
        let waits = |thread: &ThreadLocks| {
            thread.is_blocked() || thread.seen.is_some_and(|seen| waits_inside(&seen.doing))
        };
        // In a busy process all may wait for a moment.
        let stands = |thread: &ThreadLocks| {
            let moves = |seen: Seen| seen.is_still == Some(false);
            model.is_final
                || thread.advanced.is_none_or(|words| words == 0) && !thread.seen.is_some_and(moves)
        };
        let is_unknown = doing.keys().all(|&what| what == Doing::Unknown);
        // A worker without a task waits for the network, or for a time.
        let is_idle = |what: &Doing| what.is_outside() || *what == Doing::Unknown;
        let pools = idle_pool::pools(view);
        // A pool may have been made by a thread that waits for it.
        let is_pool = match present().any(|thread| thread.slot.is_some()) {
            true => !pools.is_empty() && !present().all(ThreadLocks::is_blocked),
            // Threads at a lock whose owner is known look like one.
            false => counted().next().is_some() || doing.is_empty(),
        };
        let all_wait = present().next().is_some()
            && present().all(|thread| waits(thread) && stands(thread))
            && !present().any(|thread| thread.seen.is_some_and(|seen| seen.doing.is_outside()))
            && !is_pool
            && !ends_by_itself
            && model.unrecorded.is_none_or(|unrecorded| unrecorded == 0);
        let mut tasks = TaskBalance::of(view);
        if found.iter().any(|finding| finding.kind == Kind::StarvedRuntime) {
            // The finding says it.
            tasks.saturated.clear();
            tasks.are_all_saturated = false;
            tasks.are_rarely_saturated = false;
        }
        let nobody_runs = || doing.keys().all(|what| waits_inside(what) || is_idle(what));
        let held_at_end = HeldAtEnd::of(view, &pools).filter(|_| found.is_empty());
        let waiting_in_core = if found.is_empty() { going_on::waiting_in_core(view) } else { 0 };
        let empty_pool = EmptyPool::of(view).or_else(|| EmptyPool::at_death(view));
        let empty_pool = empty_pool.filter(|_| found.is_empty());
        // A task may wait for a moment whenever a pool is busy.
        let lasts = |of: &PoolAwaits| of.for_ns.is_none_or(|for_ns| for_ns >= LATELY_NS);
        let pool_awaits = model.pool_awaits.clone().filter(|of| found.is_empty() && lasts(of));
        let managed_lock = ManagedLock::of(view).filter(|_| found.is_empty());
        let waits_for_server = model.only_helpers.iter().any(|only| only.server.is_some());
        let has_waited = |id: &ThreadId| {
            let asleep_ns = model.threads[*id].seen.and_then(|seen| seen.asleep_ns);
            asleep_ns.is_some_and(|asleep_ns| asleep_ns.get() >= LATELY_NS)
        };
        let waits_for_stuck = model.only_helpers.iter().any(|only| {
            only.helper.state == HelperState::WaitsForItself && only.threads.iter().any(has_waited)
        });
        let running_on = RunningOn::of(view).filter(|_| found.is_empty());
        let waiting_jobs = WaitingJobs::of(view).filter(|_| found.is_empty());
        let beside_timers = BesideTimers::of(view).filter(|_| pools.is_empty());
        let beside_timers = BesideTimers::between(view).or(beside_timers).filter(|_| found.is_empty());
        let kept_lock = found.is_empty().then(|| KeptLock::of(view)).flatten();
        let missing_party = MissingParty::of(view).filter(|_| found.is_empty());
        let unrecorded_futures = UnrecordedFutures::of(model);
        let former_clients = model.former_clients.clone().filter(|_| found.is_empty());
        let outcome = match () {
            () if !found.is_empty() => Outcome::Findings,
            () if model.locks.is_empty() && !model.has_progress_sites && is_unknown && tasks.present == 0 => {
                Outcome::NothingRecorded
            }
            () if former_clients.is_some() && tasks.silent.is_none() => Outcome::ShuttingDown,
            () if all_wait || may_wait_for_others(view) => Outcome::AllWait,
            () if held_at_end.is_some() => Outcome::HeldAtEnd,
            () if empty_pool.is_some() || pool_awaits.is_some() => Outcome::EmptyPool,
            () if managed_lock.is_some() || waits_for_server => Outcome::ManagedLock,
            () if waiting_in_core > 0 => Outcome::OneMoment,
            () if tasks.unanswered.is_some() => Outcome::Unanswered,
            () if missing_party.is_some() => Outcome::MissingParty,
            () if tasks.all_wait && !ends_by_itself && nobody_runs() => Outcome::AllTasksWait,
            () if tasks.are_all_saturated => Outcome::AllWorkersBusy,
            () if !tasks.waiting_within.is_empty() => Outcome::WaitsWithinPoll,
            () if !tasks.saturated.is_empty() && !tasks.are_rarely_saturated => Outcome::WorkersBusy,
            () if tasks.are_rarely_saturated || !tasks.rarely_awake.is_empty() => Outcome::RareWorkersBusy,
            () if tasks.silent.is_some() => Outcome::SilentRequests,
            () if tasks.present > 0 && is_left_to_itself(view) => Outcome::OnlyItself,
            () if waits_for_nobody(view) => Outcome::AllWait,
            () if unrecorded_futures.as_ref().is_some_and(UnrecordedFutures::may_keep_others) => {
                Outcome::UnrecordedFutures
            }
            () if !model.has_tasks() && executors(model).next().is_some() => Outcome::UnseenTasks,
            () if waiting_jobs.is_some() => Outcome::WaitingJobs,
            () if running_on.is_some() => Outcome::RunningOn,
            () if beside_timers.is_some_and(|of| of.listeners > 0) => Outcome::BesideInput,
            () if beside_timers.is_some() => Outcome::BesideTimers,
            () if kept_lock.is_some() => Outcome::KeptLock,
            () if waits_for_stuck => Outcome::StuckHelper,
            () => Outcome::NothingFound,
        };
        let is_by_record = matches!(outcome, Outcome::AllWait | Outcome::NothingRecorded);
        let left_waiting = if is_by_record { LeftWaiting::of(view) } else { LeftWaiting::default() };
        let uses_locks = |kind, _| !matches!(kind, StepKind::Snap | StepKind::Blocked);
        let is_cut = |thread: &&crate::locks::ThreadLocks| {
            thread.overwritten > 0 && thread.steps.locations().any(|(kind, at)| uses_locks(kind, at))
        };
        Balance {
            outcome,
            present: present().count(),
            on_locks: count(Asleep::Lock),
            on_conditions: count(Asleep::Condition),
            on_semaphores: count(Asleep::Semaphore),
            on_barriers: count(Asleep::Barrier),
            on_messages: count(Asleep::Message) + count(Asleep::Wake) + count(Asleep::Notification),
            on_threads: count(Asleep::Thread),
            longest_ns: view.ago_ns(first_ns),
            unrecorded: model.unrecorded,
            overwritten: model.threads.iter().filter(is_cut).count(),
            doing,
            helpers: model.only_helpers.iter().filter_map(HelperFact::of).collect(),
            pools,
            held_at_end,
            empty_pool,
            pool_awaits,
            suspended_tasks: None,
            managed_lock,
            running_on,
            waiting_jobs,
            beside_timers,
            kept_lock,
            missing_party,
            unrecorded_futures,
            former_clients,
            waiting_in_core,
            left_waiting,
            tasks,
        }
    }
}

impl Balance {
    /// The tasks that may have awaited objects of a pool when the process died, if nothing else is wrong and the
    /// program has pools of async code.
    pub fn suspended_tasks(&self, view: &View<'_>) -> Option<SuspendedTasks> {
        (self.outcome == Outcome::NothingFound).then(|| SuspendedTasks::of(view)).flatten()
    }

    /// The program of these tasks has these pools. Without any, nothing changes.
    pub fn note_suspended(&mut self, suspended: SuspendedTasks, pools: Vec<&'static str>) {
        if !pools.is_empty() {
            self.outcome = Outcome::EmptyPool;
            self.suspended_tasks = Some(SuspendedTasks { pools, ..suspended });
        }
    }
}

/// Whether a thread is counted by what the record says it waits for. What the kernel says of a join is counted already.
fn is_counted(thread: &ThreadLocks) -> bool {
    match thread.awaited() {
        Some(Awaited::End(_)) => thread.seen.is_none(),
        awaited => awaited.is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{SECOND, Scene, seen};

    fn balance(scene: &Scene) -> Balance {
        scene.with_view(|view| Balance::of(view, &[]))
    }

    #[test]
    fn threads_are_counted_by_what_they_wait_for() {
        let mut scene = Scene::new();
        let (lock, units) = (scene.lock("LOCK"), scene.lock("UNITS"));
        let threads: Vec<usize> = (0..6).map(|_| scene.thread("worker")).collect();
        scene.waits(threads[0], lock);
        scene.waits(threads[1], lock);
        scene.waits_on_condition(threads[2], lock);
        scene.sleeps_on_semaphore(threads[3], units);
        scene.model.threads[threads[4]].state = ThreadState::Exited;
        let of = balance(&scene);
        assert_eq!((of.present, of.on_locks, of.on_conditions, of.on_semaphores), (5, 2, 1, 1));
        assert_eq!((of.longest_ns, of.outcome), (Some(12 * SECOND), Outcome::NothingFound));
    }

    #[test]
    fn a_killed_process_most_of_whose_threads_waited_for_one_is_not_called_sound() {
        for waiters in [1, 3, 30] {
            let mut scene = Scene::killed();
            let (owner, lock) = (scene.thread("owner"), scene.lock("LOCK"));
            scene.thread("other");
            scene.holds(owner, lock);
            for _ in 0..waiters {
                let waiter = scene.thread("worker");
                scene.waits(waiter, lock);
            }
            let of = balance(&scene);
            assert_eq!(of.outcome, Outcome::HeldAtEnd);
            let held = of.held_at_end.unwrap();
            assert_eq!(
                (held.lock, held.hold.thread, held.waiting, held.others),
                (lock, owner, waiters, waiters)
            );
            assert_eq!(held.for_ns, Some(12 * SECOND));
            // As many others use the lock and do not wait.
            for _ in 0..waiters {
                let user = scene.thread("user");
                scene.nests(user, &[lock]);
            }
            assert_eq!(balance(&scene).outcome, Outcome::NothingFound);
        }
        let mut scene = Scene::killed();
        let (owner, lock) = (scene.thread("owner"), scene.lock("LOCK"));
        let waiter = scene.thread("worker");
        scene.waits(waiter, lock);
        scene.thread("other");
        assert_eq!(balance(&scene).outcome, Outcome::NothingFound, "nobody holds it");
        scene.holds(owner, lock);
        scene.model.is_end_unknown = false;
        assert_eq!(balance(&scene).outcome, Outcome::NothingFound, "its length is known");
    }

    #[test]
    fn a_process_whose_threads_all_wait_is_not_called_sound() {
        let mut scene = Scene::dead();
        let lock = scene.lock("LOCK");
        let threads = [scene.thread("one"), scene.thread("other")];
        threads.iter().for_each(|&thread| scene.waits_on_condition(thread, lock));
        assert_eq!(balance(&scene).outcome, Outcome::AllWait);
        scene.model.unrecorded = Some(1);
        assert_eq!(balance(&scene).outcome, Outcome::NothingFound, "somebody else may wake them");
        scene.model.unrecorded = None;
        scene.model.threads[1].sleep.as_mut().unwrap().is_timed = true;
        assert_eq!(balance(&scene).outcome, Outcome::NothingFound, "one wakes by itself");
        let mut busy = Scene::new();
        let lock = busy.lock("LOCK");
        let threads = [busy.thread("one"), busy.thread("other")];
        threads.iter().for_each(|&thread| busy.waits_on_condition(thread, lock));
        assert_eq!(balance(&busy).outcome, Outcome::AllWait);
        busy.model.threads[1].advanced = Some(3);
        assert_eq!(balance(&busy).outcome, Outcome::NothingFound, "it went on between the readings");
    }

    #[test]
    fn the_kernel_says_whether_a_thread_waits_of_which_the_record_says_nothing() {
        let mut scene = Scene::new();
        let lock = scene.lock("LOCK");
        let (worker, main) = (scene.thread("worker"), scene.thread("main"));
        scene.waits_on_condition(worker, lock);
        scene.model.threads[main].slot = None;
        scene.model.unrecorded = Some(0);
        for (doing, outcome) in [
            (Doing::WaitsInside, Outcome::AllWait),
            (Doing::WaitsForThread, Outcome::AllWait),
            (Doing::WaitsOutside, Outcome::NothingFound),
            (Doing::Unknown, Outcome::NothingFound),
        ] {
            scene.model.threads[main].seen = Some(seen(doing, true));
            assert_eq!(balance(&scene).outcome, outcome, "{doing:?}");
        }
    }

    #[test]
    fn an_executor_none_of_whose_tasks_are_recorded_is_not_judged_though_its_locks_are() {
        let mut scene = Scene::new();
        let (worker, lock) = (scene.thread("tokio-rt-worker"), scene.lock("LOCK"));
        scene.nests(worker, &[lock]);
        assert_eq!(balance(&scene).outcome, Outcome::UnseenTasks);
        scene.model.tasks = 1;
        assert_eq!(balance(&scene).outcome, Outcome::NothingFound);
    }

    #[test]
    fn a_process_whose_threads_wait_long_for_an_object_of_a_pool_is_not_called_sound() {
        let mut scene = Scene::new();
        for _ in 0..3 {
            let thread = scene.thread("user");
            let asleep_ns = NonZeroU64::new(2 * SECOND);
            let waits = Seen { asleep_ns, is_timed: true, ..seen(Doing::WaitsForObject, true) };
            scene.model.threads[thread].seen = Some(waits);
        }
        let other = scene.thread("main");
        scene.model.threads[other].seen = Some(seen(Doing::Runs, false));
        let of = balance(&scene);
        let pool = of.empty_pool.unwrap();
        assert_eq!((of.outcome, pool.threads, pool.for_ns), (Outcome::EmptyPool, 3, Some(2 * SECOND)));
        // They have just begun, as in a busy pool.
        for thread in &mut scene.model.threads[..3] {
            thread.seen.as_mut().unwrap().asleep_ns = NonZeroU64::new(SECOND / 10);
        }
        assert_eq!(balance(&scene).outcome, Outcome::NothingFound);
    }

    /// The tasks were recorded, and what they wait for was not. This was called sound, and without a record it was not
    /// judged.
    #[test]
    fn a_process_with_recorded_tasks_all_of_which_await_an_object_of_a_pool_is_not_called_sound() {
        let mut scene = Scene::new();
        scene.thread("tokio-rt-worker");
        scene.task("handle");
        scene.model.pool_awaits = Some(PoolAwaits {
            pool: "deadpool",
            tasks: 1,
            function: Some("app::handle".into()),
            file: None,
            line: None,
            for_ns: Some(SECOND),
        });
        let of = balance(&scene);
        assert_eq!((of.outcome, of.pool_awaits), (Outcome::EmptyPool, scene.model.pool_awaits.clone()));
        scene.model.pool_awaits.as_mut().unwrap().for_ns = None;
        assert_eq!(balance(&scene).outcome, Outcome::EmptyPool, "a core file is one moment");
        scene.model.pool_awaits.as_mut().unwrap().for_ns = Some(SECOND / 10);
        assert_eq!(
            balance(&scene).outcome,
            Outcome::NothingFound,
            "they may have just begun, as at a busy pool"
        );
        scene.model.pool_awaits = None;
        assert_eq!(balance(&scene).outcome, Outcome::NothingFound);
    }

    #[test]
    fn a_dead_process_most_of_whose_threads_wait_for_an_object_of_a_pool_is_not_called_sound() {
        let mut scene = Scene::killed();
        let (lock, user) = (scene.lock("POOL"), scene.thread("user"));
        let place = scene.location("lib.rs", 438);
        scene.locations[place].full_function = "r2d2::Pool<app::Manager>::get_timeout".into();
        scene.waits_on_condition(user, lock);
        let wait = scene.model.threads[user].sleep.as_mut().unwrap();
        (wait.location, wait.is_timed) = (place, true);
        let of = balance(&scene);
        assert_eq!((of.outcome, of.empty_pool.unwrap().threads), (Outcome::EmptyPool, 1));
        // Others have objects, and work.
        for _ in 0..2 {
            let other = scene.thread("user");
            scene.nests(other, &[lock]);
        }
        assert_eq!(balance(&scene).outcome, Outcome::NothingFound);
    }

    #[test]
    fn without_locks_there_is_nothing_to_judge() {
        let mut scene = Scene::new();
        scene.thread("worker");
        assert_eq!(balance(&scene).outcome, Outcome::NothingRecorded);
        let seen = |doing| Some(seen(doing, true));
        scene.model.threads[0].seen = seen(Doing::Unknown);
        assert_eq!(balance(&scene).outcome, Outcome::NothingRecorded, "the kernel may not say anything");
        scene.model.threads[0].seen = seen(Doing::WaitsOutside);
        assert_eq!(balance(&scene).outcome, Outcome::NothingFound);
    }
}
