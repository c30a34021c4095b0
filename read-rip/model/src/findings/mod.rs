//! What is wrong with the locks and threads of a ring: one analysis a file.
//!
//! Analyses map values to values. They do no input or output and resolve no symbols. Each says its sentence itself, in
//! the names that it is given ([`Names`]): what threads, locks and places are called is a question of the output.
//!
//! A file has all of one analysis: the question, what it finds ([`Evidence`]), how, and the sentence. To add one, write
//! its file with its tests, and add it to this file: its kinds to [`Kind`], and a row to [`ANALYSES`]. The order of
//! the rows matters in one way: an analysis does not report again what an earlier one has explained.
//!
//! | file | what it has |
//! |---|---|
//! | `finding`, `view` | what an analysis makes, and what it sees |
//! | `facts` | what the evidence of several analyses has: holds, waits, the past of a lock |
//! | `remarks`, `named` | doubts, premises and advice: a table each; what makes enums of tables |
//! | `about` | what findings mention, and what happens at their source lines |
//! | `words` | the words that sentences share |
//! | `history`, `gates`, `kin`, `nesting`, `graph`, `passages`, `pasts`, `per_lock`, `replaced` | tools of several analyses |
//! | `branches` | which places futures of one task may have reached in turns |
//! | `waits_for`, `task_waits` | the graph of waits, and what differs for tasks in it |
//! | `standstill`, `idle_pool` | who waits behind whom, and which of these threads look idle |
//! | `going_on` | which waits may end in a moment |
//! | `left_waiting` | who waited in a dead process that is not judged |
//! | `managed_lock` | which threads wait for locks that a database keeps |
//! | `jobs` | pools whose threads all wait within jobs |
//! | `suspended_tasks` | tasks of a dead process that may await objects of a pool |
//! | `beside_timers` | threads that wait for one another, while all others sleep for a time again and again |
//! | `running_on` | threads that run without pause while all others wait for one another |
//! | `balance` | what the threads do, and what the record cannot show |
//! | `suppress` | findings that are not to be reported |
//! | all others | an analysis each |

mod abandoned_channel;
mod about;
mod await_circle;
mod balance;
mod beside_timers;
mod between;
mod branches;
mod busy_wait;
mod contention;
mod convoy;
mod deadlock;
mod destroyed;
mod double;
mod end_circle;
mod facts;
mod finding;
mod gates;
mod going_on;
mod graph;
mod halted;
mod history;
mod idle_pool;
mod inner_circle;
mod jobs;
mod kin;
mod left_waiting;
mod lines;
mod livelock;
mod lock_order;
mod long_hold;
mod long_wait;
mod lost_owner;
mod lost_shared;
mod lost_wakeup;
mod managed_lock;
mod missing_party;
mod misuse;
mod named;
mod nested_read;
mod nesting;
mod never_woken;
mod nobody_left;
mod own_order;
mod passages;
mod pasts;
mod per_lock;
mod pollers;
mod remarks;
mod replaced;
mod restless_task;
mod running_on;
mod runtimes;
mod stall;
mod standstill;
mod starvation;
mod starved_runtime;
mod stopped_partner;
mod suppress;
mod suspended_tasks;
mod task_balance;
#[cfg(test)]
mod task_tests;
mod task_waits;
#[cfg(test)]
mod testing;
mod unanswered;
mod undriven;
mod unended_calls;
mod unlock;
mod unpolled_task;
mod unrecorded_futures;
mod unreleased;
mod used_up;
mod view;
mod waits_for;
mod words;
#[cfg(test)]
mod worker_tests;

pub use abandoned_channel::FullChannel;
pub use about::{Mentions, Role};
pub use await_circle::TasksAwaitLocks;
pub use balance::{Balance, EmptyPool, HeldAtEnd, HelperFact, Outcome, pool_at};
pub use beside_timers::BesideTimers;
pub use between::{ProcessCycle, ProcessWait, WaitsFor, is_loop_alone, tells};
pub use busy_wait::{BusyWait, BusyWaits};
pub use contention::Contended;
pub use convoy::{ActiveHolder, Queue};
pub use deadlock::{Blocker, ChannelFact, LockEdge, WaitCycle, WaitEdge, WorkerFact};
pub use destroyed::DestroyedWhileHeld;
pub use double::SecondAcquisition;
pub use end_circle::TasksInCircle;
pub use facts::{Asleep, HoldFact, JoinFact, LockHistory, SleepFact, SuspendedFact, WaitFact, Waiters};
pub use finding::{Analysis, Confidence, Finding, Limit};
pub use halted::NotRunning;
pub use idle_pool::IdlePool;
pub use inner_circle::{GoroutineCircle, GoroutineWait};
pub use jobs::WaitingJobs;
pub use left_waiting::LeftWaiting;
pub use lines::{ApparentHolder, CrowdedLine};
pub use livelock::{BusyLoop, BusyLoops, FailedTries, MutualFailure};
pub use lock_order::{Acquisition, OrderCycle, OrderEdge};
pub use long_hold::IdleHolder;
pub use long_wait::{HolderSleep, KeptLock, StandingHolder, Standstill};
pub use lost_owner::Orphan;
pub use lost_shared::{LostWait, OwnerEnded};
pub use lost_wakeup::Unheard;
pub use managed_lock::{ManagedLock, server_waits};
pub use missing_party::MissingParty;
pub use misuse::{Refusal, RefusedCall};
pub use nested_read::NestedReads;
pub use never_woken::{NeverWoken, SleeperFact};
pub use nobody_left::Abandoned;
pub use passages::Passages;
pub use pasts::{HeldSince, Pasts};
pub use read_rip_evidence::standing::LATELY_NS;
pub use remarks::{Advice, Doubt, Premise};
pub use restless_task::Restless;
pub use running_on::{RunningOn, run_on};
pub use runtimes::{Unseen, executor, executors};
pub use stall::{Stall, StandingFact};
pub use starvation::{Overtaken, OvertakenWait};
pub use starved_runtime::{BusyRuntime, PollFact, ReadyTask, ReadyTasks};
pub use stopped_partner::StoppedHelpers;
pub use suppress::{BadRule, BadRuleReason, Suppression};
pub use suspended_tasks::SuspendedTasks;
pub use task_balance::{SilentRequests, TaskBalance};
pub use unanswered::Unanswered;
pub use undriven::{KeptWorker, Undriven};
pub use unended_calls::EndOfRuntime;
pub use unlock::StrayRelease;
pub use unpolled_task::Unpolled;
pub use unrecorded_futures::{Framework, UnrecordedFutures};
pub use unreleased::DeadHolder;
pub use used_up::PermitsUsedUp;
pub use view::{Memo, View};
pub use words::{Names, Paragraph, Verbs, doing, members};

use about::About;
use finding::Basis;
use named::named;
use serde::Serialize;
use words::Words;

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
        /// Tasks wait for room in a channel whose receiver has ended.
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
        /// A signal has stopped threads.
        Stopped = "stopped",
        /// A tracer has stopped threads.
        Traced = "traced",
        /// The freezer of control groups keeps a process from running.
        Frozen = "frozen",
        /// Threads sleep in the kernel for long, for a disk or a server.
        DiskSleep = "disk-sleep",
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

/// Makes [`ANALYSES`] and [`Evidence`] of one list: each analysis, and the types of its evidence.
macro_rules! analyses {
    ($( $file:ident::$Analysis:ident => [$($Type:ident),*], )*) => {
        /// All analyses, in the order in which they run.
        pub const ANALYSES: &[&dyn Analysis] = &[$( &$file::$Analysis, )*];

        /// What a finding is based on.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(untagged)]
        #[expect(missing_docs, reason = "each type says it")]
        pub enum Evidence {
            $($( $Type($Type), )*)*
        }

        impl Evidence {
            fn basis(&self) -> &dyn Basis {
                match self {
                    $($( Evidence::$Type(of) => of, )*)*
                }
            }
        }

        $($(
            impl From<$Type> for Evidence {
                fn from(of: $Type) -> Evidence {
                    Evidence::$Type(of)
                }
            }
        )*)*
    };
}

analyses! {
    deadlock::Deadlock => [WaitCycle],
    between::BetweenProcesses => [ProcessCycle],
    end_circle::EndCircles => [TasksInCircle],
    await_circle::AwaitCircles => [TasksAwaitLocks],
    used_up::UsedUp => [PermitsUsedUp],
    inner_circle::InnerCircle => [GoroutineCircle],
    starved_runtime::StarvedRuntime => [BusyRuntime],
    undriven::UndrivenRuntime => [Undriven],
    unpolled_task::UnpolledTask => [Unpolled],
    never_woken::NeverWokenTask => [NeverWoken],
    abandoned_channel::AbandonedChannel => [FullChannel],
    unreleased::Unreleased => [DeadHolder],
    lost_shared::LostShared => [OwnerEnded],
    lost_owner::LostOwner => [Orphan],
    destroyed::Destroyed => [DestroyedWhileHeld],
    misuse::Misuse => [RefusedCall],
    unlock::Unlock => [StrayRelease],
    double::Double => [SecondAcquisition],
    lock_order::LockOrder => [OrderCycle],
    // Its evidence is that of `lock_order`.
    own_order::OwnOrder => [],
    nested_read::NestedRead => [NestedReads],
    livelock::Livelock => [MutualFailure, BusyLoops],
    restless_task::RestlessTask => [Restless],
    convoy::Convoy => [Queue],
    starvation::Starvation => [Overtaken],
    long_wait::LongWait => [Standstill],
    lost_wakeup::LostWakeup => [Unheard],
    nobody_left::NobodyLeft => [Abandoned],
    unended_calls::UnendedCalls => [EndOfRuntime],
    long_hold::LongHold => [IdleHolder],
    contention::Contention => [Contended],
    lines::Lines => [CrowdedLine],
    stopped_partner::WaitForStopped => [StoppedHelpers],
    halted::Halted => [NotRunning],
    busy_wait::BusyWaiting => [BusyWaits],
    stall::Stalled => [Stall],
}

/// Runs all analyses. The worst finding is first: the most certain, and of those the one that hurts most threads.
pub fn run(view: &View<'_>) -> Vec<Finding> {
    run_bounded(view).0
}

/// Like [`run`]. Returns also the limits that were reached: what is beyond them was not looked for.
pub fn run_bounded(view: &View<'_>) -> (Vec<Finding>, Vec<Limit>) {
    let mut found = Vec::new();
    let limits = ANALYSES.iter().filter_map(|analysis| analysis.run_bounded(view, &mut found)).collect();
    for finding in &mut found {
        finding.for_ns = view.ago_ns(finding.since_ns);
    }
    sort(&mut found);
    (found, limits)
}

fn sort(found: &mut [Finding]) {
    found.sort_by_key(|finding| std::cmp::Reverse((finding.confidence, finding.threads_hurt)));
}

/// Takes back what a copy cannot prove: if its process ran while the copy was made, each part of the copy shows another
/// moment.
pub fn doubt_copy(found: &mut [Finding]) {
    doubt(found, Doubt::Copied);
}

/// Takes back what a file proves that somebody may have forged.
pub fn doubt_foreign(found: &mut [Finding]) {
    doubt(found, Doubt::Foreign);
}

/// Nothing is proven, because of a doubt.
fn doubt(found: &mut [Finding], doubt: Doubt) {
    for finding in found.iter_mut().filter(|finding| finding.confidence == Confidence::Proven) {
        finding.confidence = Confidence::Potential;
        finding.doubts.push(doubt);
    }
    sort(found);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nix::time::{ClockId, clock_gettime};

    use super::testing::Scene;
    use super::*;

    /// A server: a quarter of the threads hold a lock each, one in ten of the others waits for one, all have histories.
    fn server(threads: usize) -> Scene {
        let mut scene = Scene::new();
        let locks = threads / 4;
        (0..locks).for_each(|at| {
            scene.lock(&format!("SHARD_{at}"));
        });
        for at in 0..threads {
            let thread = scene.thread("worker");
            let (low, high) = ((at * 7) % (locks / 2), locks / 2 + (at * 13) % (locks / 2));
            scene.model.threads[thread].overwritten = 100;
            if at < locks {
                scene.holds(thread, at);
                continue;
            }
            (0..4).for_each(|_| scene.nests(thread, &[low, high]));
            if at % 10 == 0 {
                scene.waits(thread, at % locks);
            }
        }
        scene
    }

    /// What all analyses of a server take of a processor, at best, ns.
    fn processor_ns(threads: usize) -> u128 {
        let scene = server(threads);
        let now = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap());
        let run_once = || {
            let began = now();
            let found = scene.with_threshold(u64::MAX, run);
            let took = now() - began;
            let is_suspected = |finding: &Finding| finding.confidence == Confidence::Suspected;
            assert!(found.iter().all(is_suspected), "nothing is wrong: {found:?}");
            took.as_nanos()
        };
        (0..3).map(|_| run_once()).min().unwrap_or_default()
    }

    #[test]
    fn time_does_not_grow_with_the_square_of_the_threads() {
        let (few, many) = (processor_ns(5_000), processor_ns(20_000));
        // Four times the threads take four times as long, and a little more: the caches are smaller than the model.
        assert!(many < 10 * few, "{few} ns, {many} ns: with the square it would be 16 times as long");
    }

    #[test]
    fn the_most_certain_and_worst_findings_come_first() {
        let mut scene = Scene::new();
        for at in 0..2 {
            scene.thread("worker");
            scene.lock(&format!("LOCK_{at}"));
        }
        for at in 0..2 {
            scene.holds(at, at);
            scene.waits(at, 1 - at);
        }
        let (thread, lock) = (scene.thread("keeps"), scene.lock("KEPT"));
        scene.holds(thread, lock);
        let found = scene.with_threshold(1, run);
        let found: Vec<_> = found.iter().map(|finding| (finding.confidence, finding.kind)).collect();
        assert_eq!(found, [(Confidence::Proven, Kind::Deadlock), (Confidence::Suspected, Kind::LongHold)]);
    }
}
