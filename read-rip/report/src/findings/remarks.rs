//! The sentences of doubts and advice. It does not choose which of them apply.

use read_rip_model::findings::{Advice, Doubt, Premise};

/// What limits the confidence of a finding, as a fragment.
pub(crate) fn doubt(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::TimedWait => "a wait has a time limit, so the cycle resolves itself",
        Doubt::MarkedByHand => "a lock is marked by hand, and a release may have no mark",
        Doubt::MaybeUpgradable => {
            "the lock is marked by hand and may allow an upgrade from shared to exclusive"
        }
        Doubt::MaybeRecursive => {
            "the lock is marked by hand: it may be recursive, or a release may have no mark"
        }
        Doubt::Copied => "this file is a copy: its process may have run on while it was made",
        Doubt::Foreign => "the file belongs to another user than the process, and may be forged",
        Doubt::MaybeGate => "the lock may be a gate: another thread may release it to let this one continue",
        Doubt::MaybeSent => "the guard of a lock can be sent to another thread, which then releases the lock",
        Doubt::TwoHolders => {
            "two threads are recorded as holders of one lock, which is impossible: a release may have no mark"
        }
        Doubt::DestructionNotSeen => {
            "the event of the destruction is not in the known histories, so only the thread's table says this"
        }
        Doubt::UnmatchedReleases => {
            "some releases were not matched to a holder: a lock that looks held may be free"
        }
        Doubt::HandedOver => {
            "a lock has no guard, or was released by another thread than its owner: this lock, or one that was \
             acquired or initialised at the same place"
        }
        Doubt::QueueOrderUnknown => "the reader may have come before the writer",
        Doubt::QueueRuleUnknown => "readers of this lock may be allowed to overtake waiting writers",
        Doubt::AcquiredByOthers => {
            "other threads have acquired the lock, perhaps since then: a release may have no mark"
        }
        Doubt::SharedInChild => {
            "a thread of the child held the lock shared before, and may just have released it"
        }
        Doubt::UnmarkedHolder => "the lock is marked by hand: a thread that does not mark it may hold it",
        Doubt::ChildHistoryIncomplete => {
            "the history of the child is incomplete: a thread of the child may hold the lock"
        }
        Doubt::ForgottenGuard => {
            "a guard may have been forgotten and the lock's memory freed, or a signal handler may have tried the lock"
        }
        Doubt::UnmarkedAcquisition => {
            "the lock may have been acquired without a mark, or before recording began"
        }
        Doubt::HistoryIncomplete => {
            "the histories are incomplete: another thread may have acquired the lock and handed it over"
        }
        Doubt::MaybeNeverConcurrent => "this is harmless if these threads never run at the same time",
        Doubt::MaybeRobust => {
            "the holder's process has ended: if the lock is robust, the next thread that locks it gets EOWNERDEAD; \
             or nobody uses the lock any more"
        }
        Doubt::OneThread => "one thread did both: this is harmless if no other thread ever does the same",
        Doubt::OneAfterTheOther => {
            "in this run, one of the threads did it before another one began: this is harmless if that is always so, \
             as when a thread is started or joined in between"
        }
        Doubt::NoProgressMarks => {
            "the program marks no progress, so these threads may do useful work as well; rip_progress!() lets `check` \
             tell a livelock from progress"
        }
        Doubt::ProgressOverwritten => "marks of progress may have been overwritten by more frequent marks",
        Doubt::MovementUnknown => {
            "it is not known whether the lock went on changing hands, or its last holder kept it"
        }
        Doubt::UnmarkedWork => "the thread may be busy in code without marks",
        Doubt::EndUnknown => "when the process died is not recorded: the wait may have been short",
        Doubt::NoTimes => "how long threads waited is not recorded (RIP_CLOCK=contended records it)",
        Doubt::ShortWindow => {
            "nothing recorded when these waits began: they may be short (a longer --window says more)"
        }
        Doubt::UnrecordedWaker => "a signal handler, a timer, or another process may wake them",
        Doubt::OtherBranch => {
            "something else may wake a task: a time limit, or another branch of a `select!` or a `join!`"
        }
        Doubt::UntracedFuture => {
            "a future waits or holds a lock that belongs to no recorded task, so any thread may poll it: spawn it with \
             `librip::task::traced`"
        }
        Doubt::UnrecordedWorker => "a thread that records nothing may poll these tasks",
        Doubt::WorkerHandedOver => {
            "more threads have polled tasks of the executor than it has workers: one may have taken over a worker, as \
             with tokio's `block_in_place`, and goes on"
        }
        Doubt::EndMayMove => "the end may have moved to another task since",
        Doubt::AnswererPresumed => {
            "the request may have been in another message, or was handed on, and another task answers: the sender of \
             an answer is unused until then"
        }
        Doubt::HolderUnrecorded => {
            "that nobody holds it is not certain: a guard may have been sent on, or there may be no permits until \
             somebody adds some"
        }
        Doubt::UnrecordedParent => {
            "what polls the task, and is not recorded, may poll it without a wake, or drop it"
        }
        Doubt::LockUnknown => {
            "plain marks do not identify a lock: several locks may be acquired at this line"
        }
    }
}

/// What a finding takes for granted, as a fragment.
pub(crate) fn premise(premise: Premise) -> &'static str {
    match premise {
        Premise::MemoryIntact => {
            "the memory of these locks is as the C library left it: it says who owns them, and nothing recorded it"
        }
        Premise::WorkersBlock => {
            "none of these polls has handed its worker over, as tokio's `block_in_place` does"
        }
        Premise::GuardStays => {
            "a guard that borrows its lock stays in the task that acquired the lock; only a guard of a static can be \
             sent to another one"
        }
        Premise::OwnerReleases => {
            "no other thread releases what these threads acquired: nothing enforces it, and POSIX and `lock_api` \
             demand it"
        }
    }
}

/// What to do about a finding, as a fragment.
pub(crate) fn advice(advice: Advice) -> &'static str {
    match advice {
        Advice::OneOrder => {
            "acquire these locks in one order everywhere, or release the first before waiting for the second"
        }
        Advice::NoNestedReads => {
            "do not acquire a lock shared while holding it shared: a writer that comes in between blocks both; read \
             once and pass the result on"
        }
        Advice::ShowStacks => "`read-rip stacks PID` shows what each thread does, and in which functions",
        Advice::NoLocksInJoin => "hold no lock that a thread needs while waiting for the end of that thread",
        Advice::NoWaitsInOnce => {
            "do in the initialiser nothing that waits for the initialisation: not the same call, and nothing for which \
             the initialiser waits while its thread needs the initialisation"
        }
        Advice::NoLocksInWait => {
            "hold no other lock while waiting on a condition: release it before the wait, or acquire it before the \
             condition's lock everywhere and wait without it"
        }
        Advice::ReleaseBeforeCall => {
            "release the lock before the call that acquires it again, or pass the guard to that call"
        }
        Advice::AbortATask => "abort one of the tasks: that drops its guards and frees the waiters",
        Advice::PollOrDrop => {
            "do not await in one branch while another future of this task may hold the lock or stand in line for it: \
             drop that future first, poll both with `join!`, or spawn it as a task of its own"
        }
        Advice::NoThreadLocksOverAwait => {
            "hold no lock of threads (std, parking_lot) over an await: release it first, or use an async lock"
        }
        Advice::MoveBlockingWork => {
            "let what blocks or computes for long run with `spawn_blocking` or on a thread of its own, and yield in \
             long loops; for a pool, allow more threads or let its calls wait for less"
        }
        Advice::FindExecutor => {
            "find out who should poll these tasks: a `LocalSet` or a `FuturesUnordered` that is not awaited, a \
             `block_on` that has returned, or an executor without threads"
        }
        Advice::ReleaseBeforeAwait => {
            "release the lock before that await (drop its guard), or await with a time limit while holding it"
        }
        Advice::SplitEnds => {
            "who waits for room must not be the one for whom the receiver waits: send and receive in different tasks, \
             or hold no lock while sending"
        }
        Advice::SendFirst => "one of them has to send before it waits for a message of the other",
        Advice::DropOwnSender => {
            "drop the sender that the task has itself before it receives: the channel ends when all senders are gone"
        }
        Advice::AnswerFirst => {
            "await no answer while handling a request, or while holding a lock, that the other side may need to \
             answer: spawn a task that awaits it, or release first"
        }
        Advice::KeepReceiving => {
            "drop the receiver when nobody receives any more: then those that send get an error"
        }
        Advice::KeepWaker => {
            "a future that returns `Pending` has to keep a clone of the waker of its last poll, and wake it; do not \
             drop what keeps it"
        }
        Advice::EndTheProcess => "only ending the process frees these threads",
        Advice::CheckExits => {
            "check every exit of the function that acquired it: a return, a caught panic, a forgotten guard"
        }
        Advice::ExecAfterFork => {
            "call exec directly after fork, or fork before there are threads; pthread_atfork can acquire the lock \
             before the fork and release it on both sides"
        }
        Advice::KeepLockAlive => {
            "keep the lock alive until all guards are dropped: a thread that waits for it or releases it now touches \
             memory that may be reused"
        }
        Advice::RepairRobust => {
            "after EOWNERDEAD, repair what the lock protects and call pthread_mutex_consistent before the unlock"
        }
        Advice::CheckPosts => "look for a loop that posts more often than anybody waits",
        Advice::LockBeforeWait => {
            "lock the mutex before waiting on a condition with it: without it, a signal can get lost, and the mutex is \
             unlocked that another thread holds"
        }
        Advice::CheckReleases => {
            "look for a second release on the same path, or for a path that releases without acquiring"
        }
        Advice::ReleaseOrRecursive => {
            "release the lock before the call that acquires it again, or use a recursive lock and say so in its marks"
        }
        Advice::WaitOrBackOff => {
            "acquire both locks in one order and wait for the second, or back off for a random time"
        }
        Advice::CheckLoops => {
            "use read-rip -t to see what these threads repeat, and find out what each expects of the others"
        }
        Advice::ShortenHold => {
            "do less while holding this lock, or split what it protects: one thread at a time gets through here"
        }
        Advice::CheckSilentHolder => {
            "find out what the holder waits for after its last mark (a join, a channel, a file, a socket), or on which \
             path it left without releasing the lock (an early return, a forgotten guard)"
        }
        Advice::JoinUnlocked => {
            "release this lock before waiting for the end of a thread, or find out why that thread does not end: \
             `read-rip stacks PID` shows where it is"
        }
        Advice::WaitUnlocked => {
            "release this lock before waiting for that, or look for a path that left it locked (an early return, a \
             forgotten guard); `read-rip stacks PID` shows how the holder got there"
        }
        Advice::GiveProcessor => {
            "find out what takes the processors: threads that spin while they wait take the holder's time; raise the \
             holder's priority, or use a lock with priority inheritance"
        }
        Advice::LetRun => {
            "let the holder run on: `kill -CONT PID` continues what a signal stopped, and a debugger lets go of what \
             it has stopped when it detaches"
        }
        Advice::CheckSignal => {
            "find the thread that has to signal or post: it may wait for one of these locks, have ended, or have \
             signalled before the wait began"
        }
        Advice::CheckBeforeWait => {
            "a condition variable keeps no signals: set what the thread waits for under its lock, before the signal, \
             and let the thread check that under the same lock before it waits, in a loop"
        }
        Advice::ListenBeforeCheck => {
            "`notify_waiters` keeps nothing for those that come later: make the future of `notified` before you check \
             what the task waits for, and await it after that; or use `notify_one`, or a `watch` channel, which keep it"
        }
        Advice::WakeBeforeDestroy => {
            "wake all threads that wait on it, and let them return, before it is destroyed: those that wait now are \
             never woken, and glibc waits for them in pthread_cond_destroy"
        }
        Advice::FindHolder => {
            "look for a holder that is not recorded: code without marks, another process, or a release that went \
             unnoticed"
        }
        Advice::WorkWithoutLock => {
            "look at the code after its last mark for a slow call, a sleep, or missing input; do that without the lock"
        }
        Advice::FairLock => {
            "use a fair lock (for a starved writer, one that prefers writers), or let the other threads pause between \
             their turns"
        }
        Advice::ReduceContention => {
            "do less while holding it, acquire it shared where it is only read, or split what it protects"
        }
        Advice::MarkTheLock => {
            "mark the lock with rip_lock_wait!, rip_lock_acquired! and rip_lock_released!, or use a lock of \
             librip::sync: then holders and deadlocks are known exactly"
        }
    }
}
