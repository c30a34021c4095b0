//! Doubts, premises and advice: their stable names, and what they say to people.
//!
//! A row is all that there is to add. It does not choose which of them apply: the analyses do.

use super::named::worded;

worded! {
    /// What limits the confidence of a finding, as a fragment.
    pub enum Doubt {
        TimedWait = "timed-wait": "a wait has a time limit, so the cycle resolves itself",
        MarkedByHand = "marked-by-hand": "a lock is marked by hand, and a release may have no mark",
        MaybeUpgradable = "maybe-upgradable":
            "the lock is marked by hand and may allow an upgrade from shared to exclusive",
        MaybeRecursive = "maybe-recursive":
            "the lock is marked by hand: it may be recursive, or a release may have no mark",
        OwnerPresumed = "owner-presumed":
            "its owner is not stored: one thread alone is in the function that initialises the static variable, or \
             that writes to the stream, and it may be there before it comes to that",
        HolderPresumed = "holder-presumed":
            "its owner is not stored: this thread has its address, on its stack or in the code of its functions, and \
             may have released it",
        HolderInBlock = "holder-in-block":
            "its owner is not stored: this thread is in a `with` block on it, and may have released it within the \
             block",
        HolderHasTaken = "holder-has-taken":
            "a semaphore stores no owner: this thread has taken a unit in a function that gives it back later, and \
             another thread may give one",
        Copied = "copied": "this file is a copy: its process may have run on while it was made",
        Foreign = "foreign": "the file belongs to another user than the process, and may be forged",
        MaybeGate = "maybe-gate":
            "the lock may be a gate: another thread may release it to let this one continue",
        MaybeSent = "maybe-sent":
            "the guard of a lock can be sent to another thread, which then releases the lock",
        TwoHolders = "two-holders":
            "two threads are recorded as holders of one lock, which is impossible: a release may have no mark",
        DestructionNotSeen = "destruction-not-seen":
            "the event of the destruction is not in the known histories, so only the thread's table says this",
        UnmatchedReleases = "unmatched-releases":
            "some releases were not matched to a holder: a lock that looks held may be free",
        HandedOver = "handed-over":
            "a lock has no guard, or was released by another thread than its owner: this lock, or one that was \
             acquired or initialised at the same place",
        QueueOrderUnknown = "queue-order-unknown": "the reader may have come before the writer",
        QueueRuleUnknown = "queue-rule-unknown":
            "readers of this lock may be allowed to overtake waiting writers",
        AcquiredByOthers = "acquired-by-others":
            "other threads have acquired the lock, perhaps since then: a release may have no mark",
        SharedInChild = "shared-in-child":
            "a thread of the child held the lock shared before, and may just have released it",
        UnmarkedHolder = "unmarked-holder":
            "the lock is marked by hand: a thread that does not mark it may hold it",
        ChildHistoryIncomplete = "child-history-incomplete":
            "the history of the child is incomplete: a thread of the child may hold the lock",
        MaybeForked = "maybe-forked":
            "the process may be a fork, and the thread that forked may have had the lock then, and may release it",
        ForgottenGuard = "forgotten-guard":
            "a guard may have been forgotten and the lock's memory freed, or a signal handler may have tried \
             the lock",
        UnmarkedAcquisition = "unmarked-acquisition":
            "the lock may have been acquired without a mark, or before recording began",
        HistoryIncomplete = "history-incomplete":
            "the histories are incomplete: another thread may have acquired the lock and handed it over",
        MaybeNeverConcurrent = "maybe-never-concurrent":
            "this is harmless if these threads never run at the same time",
        AddressReused = "address-reused":
            "the program may have used the memory of a lock for another lock before, and the record does not \
             show that: each of them may have one order",
        UnrecordedWork = "unrecorded-work":
            "a thread or a socket that is not recorded may wake the task as often, with work for it",
        MaybeRobust = "maybe-robust":
            "the holder's process has ended: if the lock is robust, the next thread that locks it gets \
             EOWNERDEAD; or nobody uses the lock any more",
        OneThread = "one-thread": "one thread did both: this is harmless if no other thread ever does the same",
        OneAfterTheOther = "one-after-the-other":
            "in this run, one of the threads did it before another one began: this is harmless if that is \
             always so, as when a thread is started or joined in between",
        MayCompute = "may-compute":
            "these threads run, and were not stopped to see where: since their last call they may compute",
        NoProgressMarks = "no-progress-marks":
            "the program marks no progress, so these threads may do useful work as well; rip_progress!() lets \
             `check` tell a livelock from progress",
        ProgressOverwritten = "progress-overwritten":
            "marks of progress may have been overwritten by more frequent marks",
        MovementUnknown = "movement-unknown":
            "read-rip cannot tell whether the lock kept changing hands or its last holder kept it",
        UnmarkedWork = "unmarked-work": "the thread may be busy in code without marks",
        EndUnknown = "end-unknown": "when the process died is not recorded: the wait may have been short",
        NoTimes = "no-times": "how long threads waited is not recorded (RIP_CLOCK=contended records it)",
        ShortWindow = "short-window":
            "nothing recorded when these waits began: they may be short (a longer --window says more)",
        OneMoment = "one-moment": "a core file is one moment: what these threads wait for may have come soon",
        HiddenHolders = "hidden-holders":
            "this user may not see what a process has open that is related to these, and it may have an end or a lock \
             too",
        OpenedByPath = "opened-by-path": "another process may open a FIFO by its path",
        EventLoop = "event-loop":
            "a process waits for one of several descriptors: it may have nothing to do, and more may be added to them",
        EventOfKernel = "event-of-kernel":
            "the kernel may write to an eventfd, as for a control group that runs out of memory",
        NamesNobody = "names-nobody":
            "a semaphore, a condition variable or a barrier does not say who has to end the wait: a signal handler may, or \
             a process that opens the memory",
        LastUser = "last-user":
            "any process with the rights may change a semaphore or use a message queue: who used it last may not be \
             who has to",
        ByPointers = "by-pointers":
            "a mutex of Go does not say who has it: all whose stacks point to it wait, and who has it without that is \
             not seen",
        ByReach = "by-reach":
            "a finalizer of Go, or C code, may use what no other goroutine has a pointer to",
        UnseenPermits = "unseen-permits":
            "a value of the program that read-rip does not see may have one too, and give it back; a time limit may \
             end these waits",
        TimerSignal = "timer-signal":
            "a process handles the signals of timers, and one of these may interrupt its wait",
        SignalHandler = "signal-handler":
            "a process handles signals such as SIGINT, and a handler may write what another thread waits for",
        SocketLimit = "socket-limit":
            "a socket may have a time limit (SO_RCVTIMEO, SO_SNDTIMEO), which this user may not ask for",
        OwnerElsewhere = "owner-elsewhere":
            "the owner may be in another container, where threads have other ids",
        SlowAnswer = "slow-answer": "a disk or a server that is slow may still answer",
        UnrecordedWaker = "unrecorded-waker": "a signal handler, a timer, or another process may wake them",
        LockUnknown = "lock-unknown":
            "plain marks do not identify a lock: several locks may be acquired at this line",
        OtherBranch = "other-branch":
            "something else may wake a task: a time limit, or another branch of a `select!` or a `join!`",
        UnrecordedWorker = "unrecorded-worker": "a thread that records nothing may poll these tasks",
        WorkerHandedOver = "worker-handed-over":
            "more threads have polled tasks of the executor than it has workers: one may have taken over a \
             worker, as with tokio's `block_in_place`, and goes on",
        MaybeNoWorker = "maybe-no-worker":
            "it is not recorded which of these threads are workers: one may be in a `block_on`, and a worker free",
        EndMayMove = "end-may-move": "the end may have moved to another task since",
        AnswererPresumed = "answerer-presumed":
            "the request may have been in another message, or was handed on, and another task answers: the \
             sender of an answer is unused until then",
        UnrecordedParent = "unrecorded-parent":
            "what polls the task, and is not recorded, may poll it without a wake, or drop it",
        HolderUnrecorded = "holder-unrecorded":
            "that nobody holds it is not certain: a guard may have been sent on, or there may be no permits \
             until somebody adds some",
    }
}

worded! {
    /// What a finding takes for granted although nothing enforces it, as a fragment.
    pub enum Premise {
        OwnerReleases = "owner-releases":
            "no other thread releases what these threads acquired: nothing enforces it, and POSIX and \
             `lock_api` demand it",
        GuardStays = "guard-stays":
            "a guard that borrows its lock stays in the task that acquired the lock; only a guard of a static, or of \
             a lock that was leaked, can be sent to another one",
        WorkersBlock = "workers-block":
            "no poll has handed its worker over, as tokio's `block_in_place` does",
        NotAborted = "not-aborted": "no other part of the program aborts one of these tasks",
        NotDropped = "not-dropped":
            "nothing drops a request, or another part of a task, before it ends; a layer with a time limit would",
        NoEndOnItsWay = "no-end-on-its-way":
            "no end of these pipes or sockets is on its way to another process in a message (SCM_RIGHTS): the kernel \
             does not show that",
        NobodyHidden = "nobody-hidden":
            "nobody has handed an end or a lock over to a process that this user may not look into",
        NobodyOutside = "nobody-outside":
            "no process outside of this container has an end of these pipes or sockets: read-rip does not see those",
        MemoryIntact = "memory-intact":
            "the memory of these locks is as the C library left it: it says who owns them, and nothing \
             recorded it",
    }
}

worded! {
    /// What to do about a finding, as a fragment.
    pub enum Advice {
        OneOrder = "one-order":
            "acquire these locks in one order everywhere, or release the first before waiting for the second",
        NoNestedReads = "no-nested-reads":
            "do not acquire a lock shared while holding it shared: a writer that comes in between blocks both; \
             read once and pass the result on",
        NoLocksInWait = "no-locks-in-wait":
            "hold no other lock while waiting on a condition: release it before the wait, or acquire it before \
             the condition's lock everywhere and wait without it",
        NoJoinCircle = "no-join-circle":
            "wait for the end of each thread in one place: not in a thread for whose end it waits itself",
        NoLocksInJoin = "no-locks-in-join":
            "hold no lock that a thread needs while waiting for the end of that thread",
        NoWaitsInOnce = "no-waits-in-once":
            "do in the initialiser nothing that waits for the initialisation: not the same call, and nothing \
             for which the initialiser waits while its thread needs the initialisation",
        ReleaseBeforeCall = "release-before-call":
            "release the lock before the call that acquires it again, or pass the guard to that call",
        NoAllocationInHandler = "no-allocation-in-handler":
            "call nothing in a signal handler that allocates, as malloc, free and printf do (signal-safety(7)): set a \
             flag or write to a pipe there, and do the work elsewhere",
        EndTheProcess = "end-the-process": "only ending the process frees these threads",
        CheckExits = "check-exits":
            "check every exit of the function that acquired it: a return, a caught panic, a forgotten guard",
        ExecAfterFork = "exec-after-fork":
            "call exec directly after fork, or fork before there are threads; pthread_atfork can acquire the \
             lock before the fork and release it on both sides",
        KeepLockAlive = "keep-lock-alive":
            "keep the lock alive until all guards are dropped: a thread that waits for it or releases it now \
             touches memory that may be reused",
        RepairRobust = "repair-robust":
            "after EOWNERDEAD, repair what the lock protects and call pthread_mutex_consistent before the \
             unlock",
        CheckPosts = "check-posts": "look for a loop that posts more often than anybody waits",
        LockBeforeWait = "lock-before-wait":
            "lock the mutex before waiting on a condition with it: without it, a signal can get lost, and the \
             mutex is unlocked that another thread holds",
        CheckReleases = "check-releases":
            "look for a second release on the same path, or for a path that releases without acquiring",
        ReleaseOrRecursive = "release-or-recursive":
            "release the lock before the call that acquires it again, or use a recursive lock and say so in \
             its marks",
        WaitOrBackOff = "wait-or-back-off":
            "acquire both locks in one order and wait for the second, or back off for a random time",
        CheckLoops = "check-loops":
            "use read-rip -t to see what these threads repeat, and find out what each expects of the others",
        AwaitTheChange = "await-the-change":
            "let the task await what it waits for (a `Notify`, a `watch` channel) instead of yielding until that has \
             changed, and find out who should change it",
        ShortenHold = "shorten-hold":
            "do less while holding this lock, or split what it protects",
        ShortenInitialiser = "shorten-initialiser":
            "do less in the initialiser, because each thread that needs the value waits for its end: do what is slow \
             before, and wait for others with a time limit",
        CheckSilentHolder = "check-silent-holder":
            "find out what the holder waits for after its last mark (a join, a channel, a file, a socket), or \
             on which path it left without releasing the lock (an early return, a forgotten guard)",
        EndRuntimeInTime = "end-runtime-in-time":
            "end the runtime with `shutdown_timeout` or `shutdown_background`, which leave such a call behind, or read \
             standard input and the like on a thread that the program starts itself",
        JoinUnlocked = "join-unlocked":
            "release this lock before waiting for the end of a thread, or find out why that thread does not \
             end: `read-rip stacks PID` shows where it is",
        WaitUnlocked = "wait-unlocked":
            "release this lock before waiting for that, or look for a path that left it locked (an early \
             return, a forgotten guard); `read-rip stacks PID` shows how the holder got there",
        GiveProcessor = "give-processor":
            "find out what takes the processors: threads that spin while they wait take the holder's time; \
             raise the holder's priority, or use a lock with priority inheritance",
        LetRun = "let-run":
            "let the holder run on: `kill -CONT PID` continues what a signal stopped, and a debugger lets go \
             of what it has stopped when it detaches",
        ReadBeforeWait = "read-before-wait":
            "read all that the child writes before waiting for its end (in Python `communicate()` and not \
             `wait()`), or \
             let it write to a file",
        CloseBeforeWait = "close-before-wait":
            "close the pipe or socket from which the child reads before waiting for its end: it reads until all \
             who can \
             write have closed it, also copies that a fork made",
        FindPoster = "find-poster":
            "find out who has to post, to signal or to arrive: it has ended, or waits for one of these; semaphores that are \
             used as locks have to be acquired in one order everywhere",
        EndServer = "end-server":
            "end the program behind the file system: then all who wait for it get errors; it must not wait for who uses its \
             files, and not use them itself",
        OneDescriptor = "one-descriptor":
            "lock the file through one descriptor, or unlock it before locking it through another one: the process has \
             this lock, and each descriptor that `open` returns counts as another owner",
        ReleaseBeforeWait = "release-before-wait":
            "release the lock before waiting for a process that needs it, for its end or its data; a child that uses the \
             descriptor which it has inherited has such a lock on a file already",
        ReceiveWhileWaiting = "receive-while-waiting":
            "let somebody receive, or close the channel, before another one waits for the end of those that send; a \
             goroutine that may be left alone needs a channel with room for its last value, or a `select` with an end",
        MakeTheChannel = "make-the-channel":
            "make the channel before a goroutine uses it: nobody can receive from a nil channel",
        OpenInOneOrder = "open-in-one-order":
            "let both sides open the FIFOs in one order: opening one waits until the other side opens it too",
        CloseOwnEnd = "close-own-end":
            "close the end for writing in the process that reads: it waits for itself to close it",
        CloseBeforeJoin = "close-before-join":
            "write to that pipe or socket, or close the end for writing, before waiting for the end of the thread that \
             reads from it",
        WriteEvent = "write-event":
            "write to the eventfd before waiting for its reader: it has no end of file, so to close it wakes nobody",
        WriteFirst = "write-first":
            "one side has to write before it reads, and close or flush what it has written",
        ReadWhileWriting = "read-while-writing":
            "read while you write: a pipe or socket takes only so much before somebody reads from it; use two \
             threads, or \
             `poll`",
        EndOneProcess = "end-one-process":
            "end one of these processes: that frees the others, and shows which of them can go on",
        RobustMutex = "robust-mutex":
            "make mutexes in shared memory robust (pthread_mutexattr_setrobust): the next thread then gets \
             EOWNERDEAD, and \
             can repair what the lock protects",
        Continue = "continue":
            "`kill -CONT PID` lets it run on; `jobs` of the shell that started it may show it as stopped",
        LetPartnerRun = "let-partner-run":
            "let what is stopped run on in that way, or end it; until then nobody else ends these waits",
        Thaw = "thaw":
            "thaw the group by that command as root, or find out who has frozen it: a container runtime (`docker \
             unpause`), a batch system, or a checkpoint",
        Detach = "detach":
            "let the tracer go on (`continue`, or `detach` in gdb), or end it; if the process is still stopped then, a \
             signal has stopped it too: `kill -CONT PID`",
        AskServer = "ask-server":
            "look at what answers for that file: the program behind a FUSE file system, the server of a network file \
             system, or the disk (`dmesg`); the thread goes on, or can be killed, only after an answer",
        CheckSignal = "check-signal":
            "find the thread that has to signal or post: it may wait for one of these locks, have ended, or \
             have signalled before the wait began",
        CheckBeforeWait = "check-before-wait":
            "a condition variable keeps no signals: set what the thread waits for under its lock, before the \
             signal, and let the thread check that under the same lock before it waits, in a loop",
        ListenBeforeCheck = "listen-before-check":
            "`notify_waiters` keeps nothing for those that come later: make the future of `notified` before \
             you check what the task waits for, and await it after that; or use `notify_one`, or a `watch` \
             channel, which keep it",
        WakeBeforeDestroy = "wake-before-destroy":
            "wake all threads that wait on it, and let them return, before it is destroyed: those that wait \
             now are never woken, and glibc waits for them in pthread_cond_destroy",
        ShowStacks = "show-stacks": "`read-rip stacks PID` shows what each thread does, and in which functions",
        FindHolder = "find-holder":
            "look for a holder that is not recorded: code without marks, another process, or a release that \
             went unnoticed",
        WorkWithoutLock = "work-without-lock":
            "look at the code after its last mark for a slow call, a sleep, or missing input; do that without \
             the lock",
        FairLock = "fair-lock":
            "use a fair lock (for a starved writer, one that prefers writers), or let the other threads pause \
             between their turns",
        ReduceContention = "reduce-contention":
            "do less while holding it, acquire it shared where it is only read, or split what it protects",
        TakeAtOnce = "take-at-once":
            "take all that a request needs at once, or pass on what it has, or give that back before the await",
        AbortATask = "abort-a-task":
            "abort one of the tasks: that drops its guards and frees the waiters",
        PollOrDrop = "poll-or-drop":
            "do not await in one branch while another future of this task may hold the lock or stand in line \
             for it: drop that future first, poll both with `join!`, or spawn it as a task of its own",
        NoThreadLocksOverAwait = "no-thread-locks-over-await":
            "hold no lock of threads (std, parking_lot, a reference into a DashMap) over an await: release it \
             first, or use an async lock",
        MoveBlockingWork = "move-blocking-work":
            "let what blocks or computes for long run with `spawn_blocking` or on a thread of its own, and \
             yield in long loops; for a pool, allow more threads or let its calls wait for less",
        FindExecutor = "find-executor":
            "find out who should poll these tasks: a `LocalSet` or a `FuturesUnordered` that is not awaited, a \
             `block_on` that has returned, or an executor without threads",
        ReleaseBeforeAwait = "release-before-await":
            "release the lock before that await (drop its guard), or await with a time limit while holding it",
        SplitEnds = "split-ends":
            "who waits for room must not be the one for whom the receiver waits: send and receive in different \
             tasks, or hold no lock while sending",
        SendFirst = "send-first": "one of them has to send before it waits for a message of the other",
        DropOwnSender = "drop-own-sender":
            "drop the sender that the task has itself before it receives: the channel ends when all senders \
             are gone",
        AnswerFirst = "answer-first":
            "await no answer while handling a request, or while holding a lock, that the other side may need \
             to answer: spawn a task that awaits it, or release first",
        KeepReceiving = "keep-receiving":
            "drop the receiver when nobody receives any more: then those that send get an error",
        KeepWaker = "keep-waker":
            "a future that returns `Pending` has to keep a clone of the waker of its last poll, and wake it; \
             do not drop what keeps it",
        MarkTheLock = "mark-the-lock":
            "mark the lock with rip_lock_wait!, rip_lock_acquired! and rip_lock_released!, or use a lock of \
             librip::sync: then holders and deadlocks are known exactly",
    }
}

impl Doubt {
    /// What it says to people whose program is in C or C++, if that differs.
    pub fn text_for_c(self) -> Option<&'static str> {
        Some(match self {
            Doubt::NoProgressMarks => {
                "the program marks no progress, so these threads may do useful work as well; RIP_PROGRESS() lets \
                 `check` tell a livelock from progress"
            }
            _ => return None,
        })
    }
}

impl Advice {
    /// What it says to people whose program is in C or C++, if that differs.
    pub fn text_for_c(self) -> Option<&'static str> {
        Some(match self {
            Advice::ReleaseBeforeCall => {
                "release the lock before the call that acquires it again, or make a variant of that call for those \
                 that hold the lock"
            }
            Advice::CheckExits => {
                "check every exit of the function that acquired it: a return, an exception, a cancellation of the \
                 thread, a longjmp"
            }
            Advice::KeepLockAlive => {
                "keep the lock alive until nobody uses it: a thread that waits for it or releases it now touches \
                 memory that may be reused"
            }
            Advice::NoThreadLocksOverAwait => {
                "hold no lock of threads over an await: release it first, or use a lock for coroutines"
            }
            Advice::MoveBlockingWork => {
                "let what blocks or computes for long run on a thread of its own; for a pool, allow more threads or \
                 let its calls wait for less"
            }
            Advice::MarkTheLock => {
                "mark the lock with RIP_LOCK_WAIT, RIP_LOCK_ACQUIRED and RIP_LOCK_RELEASED, or use a pthread lock \
                 under `read-rip run --preload`: then holders and deadlocks are known exactly"
            }
            _ => return None,
        })
    }
}
