//! The kinds of findings, how certain a finding is, what limits it, and what to do: all as stable names.
//!
//! It contains no sentences: `report::findings` has the text of each.

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

named! {
    /// What limits the confidence of a finding.
    pub enum Doubt {
        /// A wait ends by itself after a time.
        TimedWait = "timed-wait",
        /// A lock is marked by hand: a release may be unmarked.
        MarkedByHand = "marked-by-hand",
        /// A lock is marked by hand and may allow an upgrade.
        MaybeUpgradable = "maybe-upgradable",
        /// A lock is marked by hand and may be recursive.
        MaybeRecursive = "maybe-recursive",
        /// The file is a copy that may have been made while its process ran.
        Copied = "copied",
        /// The file belongs to another user than the process that it speaks of.
        Foreign = "foreign",
        /// Another thread may release the lock to let the waiting one continue.
        MaybeGate = "maybe-gate",
        /// Any thread can release the lock: the guard can be sent to another thread.
        MaybeSent = "maybe-sent",
        /// Two threads are recorded as exclusive holders of one lock.
        TwoHolders = "two-holders",
        /// The event of the destruction is not in the known histories.
        DestructionNotSeen = "destruction-not-seen",
        /// Some releases were not matched to a holder.
        UnmatchedReleases = "unmatched-releases",
        /// Threads release a lock that other threads acquired.
        HandedOver = "handed-over",
        /// The reader may have come before the writer.
        QueueOrderUnknown = "queue-order-unknown",
        /// Readers of this lock may overtake waiting writers.
        QueueRuleUnknown = "queue-rule-unknown",
        /// Another thread has acquired the lock, perhaps later.
        AcquiredByOthers = "acquired-by-others",
        /// A thread of the child held the lock shared.
        SharedInChild = "shared-in-child",
        /// A thread without marks may hold the lock.
        UnmarkedHolder = "unmarked-holder",
        /// The histories of the child are incomplete.
        ChildHistoryIncomplete = "child-history-incomplete",
        /// A guard may have been forgotten, or a signal handler may have tried the lock.
        ForgottenGuard = "forgotten-guard",
        /// The acquisition may be unmarked.
        UnmarkedAcquisition = "unmarked-acquisition",
        /// Part of the history is lost: the lock may have been handed over.
        HistoryIncomplete = "history-incomplete",
        /// The threads may never run at the same time.
        MaybeNeverConcurrent = "maybe-never-concurrent",
        /// A process that shared the lock has ended, and the lock may be robust, or not be used any more.
        MaybeRobust = "maybe-robust",
        /// One thread did both, and cannot wait for itself in this way.
        OneThread = "one-thread",
        /// The threads did not run at the same time in this run.
        OneAfterTheOther = "one-after-the-other",
        /// The program has no marks of progress.
        NoProgressMarks = "no-progress-marks",
        /// Marks of progress may be overwritten.
        ProgressOverwritten = "progress-overwritten",
        /// It is not known whether the lock changes hands.
        MovementUnknown = "movement-unknown",
        /// The holder may be busy in code without marks.
        UnmarkedWork = "unmarked-work",
        /// When the process died is not known.
        EndUnknown = "end-unknown",
        /// The lengths of waits are not recorded.
        NoTimes = "no-times",
        /// Nothing recorded the waits: only what was the same in both readings is known.
        ShortWindow = "short-window",
        /// Something that is not recorded may wake the threads.
        UnrecordedWaker = "unrecorded-waker",
        /// Plain marks do not identify a lock.
        LockUnknown = "lock-unknown",
        /// Something else may wake a task: a time limit, or another branch of a `select!`.
        OtherBranch = "other-branch",
        /// A future that belongs to no recorded task waits for a lock, or holds it: any thread may poll it.
        UntracedFuture = "untraced-future",
        /// The task may be polled by a thread that records nothing.
        UnrecordedWorker = "unrecorded-worker",
        /// More threads have polled the tasks of an executor than it has workers.
        WorkerHandedOver = "worker-handed-over",
        /// The end of a channel may have moved to another task.
        EndMayMove = "end-may-move",
        /// Another task than the one that received the request may have to answer it.
        AnswererPresumed = "answerer-presumed",
        /// What polls a task may do so without a wake.
        UnrecordedParent = "unrecorded-parent",
        /// A lock that nobody is known to hold may be held where that is not recorded, or have no units.
        HolderUnrecorded = "holder-unrecorded",
    }
}

named! {
    /// What a finding takes for granted although nothing enforces it.
    pub enum Premise {
        /// A thread releases only locks that it acquired itself, as the interface of the lock demands.
        OwnerReleases = "owner-releases",
        /// A guard that borrows its lock stays in the task that acquired the lock.
        GuardStays = "guard-stays",
        /// No poll of a task has handed its worker over while it blocks, as `block_in_place` of tokio does.
        WorkersBlock = "workers-block",
        /// The memory of a lock says who owns it: the process has not written anything else there.
        MemoryIntact = "memory-intact",
    }
}

named! {
    /// What to do about a finding.
    pub enum Advice {
        /// Acquire the locks in one order everywhere.
        OneOrder = "one-order",
        /// Do not acquire a lock shared while holding it shared.
        NoNestedReads = "no-nested-reads",
        /// Hold no other lock while waiting on a condition variable.
        NoLocksInWait = "no-locks-in-wait",
        /// Hold no lock that a thread needs while waiting for the end of that thread.
        NoLocksInJoin = "no-locks-in-join",
        /// Wait for nothing in an initialiser that waits for the initialisation.
        NoWaitsInOnce = "no-waits-in-once",
        /// Release the lock before the call that acquires it again.
        ReleaseBeforeCall = "release-before-call",
        /// Only the end of the process frees these threads.
        EndTheProcess = "end-the-process",
        /// Look at the exits of the function that acquired the lock.
        CheckExits = "check-exits",
        /// Call exec directly after fork, or hold the lock across the fork.
        ExecAfterFork = "exec-after-fork",
        /// Keep the lock alive until all guards are dropped.
        KeepLockAlive = "keep-lock-alive",
        /// Repair a robust lock after its owner died.
        RepairRobust = "repair-robust",
        /// Look for posts without waits.
        CheckPosts = "check-posts",
        /// Lock the mutex before waiting on a condition variable with it.
        LockBeforeWait = "lock-before-wait",
        /// Look for a second release, or for a path that releases without acquiring.
        CheckReleases = "check-releases",
        /// Release the lock first, or use a recursive lock.
        ReleaseOrRecursive = "release-or-recursive",
        /// Wait for the second lock, or back off for a random time.
        WaitOrBackOff = "wait-or-back-off",
        /// Look at what the threads repeat.
        CheckLoops = "check-loops",
        /// Hold the lock for a shorter time, or split what it protects.
        ShortenHold = "shorten-hold",
        /// Look at what a holder that records nothing waits for.
        CheckSilentHolder = "check-silent-holder",
        /// Wait for the end of a thread without the lock.
        JoinUnlocked = "join-unlocked",
        /// Wait without the lock for what the holder waits for.
        WaitUnlocked = "wait-unlocked",
        /// Give the holder of the lock a processor.
        GiveProcessor = "give-processor",
        /// Let a stopped thread run on.
        LetRun = "let-run",
        /// Look for the thread that has to signal or post.
        CheckSignal = "check-signal",
        /// Let the waiting thread check, under the lock, whether what it waits for has happened already.
        CheckBeforeWait = "check-before-wait",
        /// Have the future of the wait before checking what is waited for.
        ListenBeforeCheck = "listen-before-check",
        /// Wake all threads that wait on a condition variable, and let them return, before it is destroyed.
        WakeBeforeDestroy = "wake-before-destroy",
        /// Look at the stacks of all threads.
        ShowStacks = "show-stacks",
        /// Look for a holder that is not recorded.
        FindHolder = "find-holder",
        /// Do the slow work without the lock.
        WorkWithoutLock = "work-without-lock",
        /// Use a fair lock.
        FairLock = "fair-lock",
        /// Hold the lock for a shorter time, share it, or split what it protects.
        ReduceContention = "reduce-contention",
        /// End one of the tasks.
        AbortATask = "abort-a-task",
        /// Poll the other future too, drop it before the await, or make it a task of its own.
        PollOrDrop = "poll-or-drop",
        /// Hold no lock of threads over an await.
        NoThreadLocksOverAwait = "no-thread-locks-over-await",
        /// Let what blocks run on a pool for that.
        MoveBlockingWork = "move-blocking-work",
        /// Look for who should poll the tasks.
        FindExecutor = "find-executor",
        /// Release the lock before the await.
        ReleaseBeforeAwait = "release-before-await",
        /// Send and receive in different tasks.
        SplitEnds = "split-ends",
        /// Send before waiting for a message.
        SendFirst = "send-first",
        /// Drop the sender that the receiving task has itself.
        DropOwnSender = "drop-own-sender",
        /// Do not wait for an answer while others wait for one's own, or for one's lock.
        AnswerFirst = "answer-first",
        /// Receive until the channel is closed, or drop the receiver.
        KeepReceiving = "keep-receiving",
        /// A future has to keep its waker.
        KeepWaker = "keep-waker",
        /// Mark the lock itself.
        MarkTheLock = "mark-the-lock",
    }
}
