//! Executors whose threads are all in polls, or calls, that do not return.
//!
//! # Question
//!
//! Which tasks were woken or made, and cannot be polled, because every worker of their executor is busy with one task?
//!
//! # Method
//!
//! A task says which executor it belongs to, and how many workers that has. If as many threads are in polls of its
//! tasks, and each of these polls is the same in two readings and began at least a tenth of `threshold` ago, then no
//! other task of it was polled since: `starved-runtime`. It is proven if a task was woken or made before, and waits as
//! long. If only some workers are in such polls, that is `long-poll`. Tasks that one thread alone polls, which is no
//! worker, are starved if that thread is in such a poll (`pollers`). A pool for calls that block has as many threads as
//! its executor likes: calls that have waited for as long, while others run for as long, say that it has no more.
//!
//! # Blind spots
//!
//! A task that is not traced occupies a worker too, and is not seen: then fewer polls than workers are known, and there
//! is no finding. Who may poll a future that the program has made a task of by itself is not known. If it takes such
//! polls to make all workers busy, the finding is suspected. A dead process shows polls whose beginning may have been
//! recorded too early: their times are upper limits.
//!
//! # Example output
//!
//! ```text
//! proven starved-runtime: all 2 workers of an executor are in polls that have not returned, and 3 tasks wait
//!     tokio-rt-worker[12] has polled resize[task 4] for 3.0 s, last at resize image.rs:40; it runs
//!     tokio-rt-worker[13] has polled resize[task 5] for 3.0 s, last at resize image.rs:40; it runs
//!     ping[task 6] was woken and is not polled, for 2.9 s
//! ```

use foldhash::{HashMap, HashSet};
use read_rip_ring::{Runtime, TaskKind};
use serde::Serialize;

use super::finding::threads_of;
use super::pollers::Pollers;
use super::task_waits::task_of;
use super::undriven::undriven;
use super::view::Length;
use super::words::and_more;
use super::{
    About, Advice, Analysis, Basis, Confidence, Doubt, Finding, Kind, Names, Paragraph, Premise, View, Words,
    executor,
};
use crate::locations::LocationId;
use crate::locks::{Doing, TaskFacts, ThreadId, ThreadLocks, Unserved};
use crate::units::{agree, counted};

/// See the file's description.
pub(super) struct StarvedRuntime;

/// A poll or a ready task is long if it lasts for one part of the threshold in this many: an executor's threads are
/// few, and a poll should take microseconds.
pub(super) const PART: u64 = 10;

/// So many polls and tasks are evidence.
const LISTED_MAX: usize = 5;

/// The tasks that the same threads may poll, or the calls of a pool.
#[derive(Default)]
struct Tasks {
    /// In a poll that does not return, by these threads.
    polled: Vec<ThreadId>,
    /// Ready to be polled for long.
    ready: Vec<ThreadId>,
}

/// Whose tasks they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Of {
    Polls(Pollers),
    /// Calls on the pool of this executor of a process.
    Calls(u32, Runtime),
}

/// Polls that do not return, while tasks wait to be polled by the same threads.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BusyRuntime {
    /// The number of the executor; `None` if these are the polls of a thread that is no worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<u32>,
    /// That thread, which alone polls these tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only_thread: Option<ThreadId>,
    /// How many of its workers are in such polls, or how many calls run on its pool for calls that block.
    pub workers: usize,
    /// How many workers it has.
    pub of_workers: usize,
    /// Whether it is its pool for calls that block.
    #[serde(rename = "blocking")]
    pub is_blocking: bool,
    /// The polls, the longest first. Of many the first ones.
    pub polls: Vec<PollFact>,
    /// The tasks that were woken or made since, and wait to be polled.
    pub ready: ReadyTasks,
    /// What the process does not serve meanwhile, because no thread waits for events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unserved: Option<Unserved>,
}

/// A poll that does not return.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PollFact {
    /// The task.
    pub task: ThreadId,
    /// The thread that polls it; `None` if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// Where the task was last, by its marks; `None` if it has made none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationId>,
    /// Where the program made the task; `None` if that is not known, or the location is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made_at: Option<LocationId>,
    /// For how long; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
    /// The length may be too long: the clock was read before the poll.
    #[serde(rename = "at_most")]
    pub is_at_most: bool,
}

impl PollFact {
    /// Where the task was last, or where it was made.
    pub fn place(&self) -> Option<LocationId> {
        self.location.or(self.made_at)
    }
}

/// Tasks that were woken, or made, and were not polled since.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadyTasks {
    /// How many.
    pub count: usize,
    /// The first of them, those that have waited longest first.
    pub first: Vec<ReadyTask>,
}

/// A task that was woken, or made, and was not polled since.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadyTask {
    /// The task.
    pub task: ThreadId,
    /// It was never polled.
    #[serde(rename = "new")]
    pub is_new: bool,
    /// For how long it has waited; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
}

impl Analysis for StarvedRuntime {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let is_polled =
            |id: ThreadId| task_of(&view.now.threads[id]).is_some_and(|task| is_long_poll(view, task));
        let stuck: HashSet<ThreadId> = threads_of(found, &[Kind::Deadlock, Kind::Futurelock]);
        let strays = strays(view, is_polled);
        for (of, tasks) in tasks_of_all(view, is_polled, |id| is_long_ready(view, id)) {
            let mut tasks = tasks;
            let (mut are_all, mut doubt) = (tasks.keep_all(view, of), None);
            if are_all {
                let is_overstaffed = matches!(of, Of::Polls(of) if of.are_overstaffed(view));
                doubt = is_overstaffed.then_some(Doubt::WorkerHandedOver);
            } else if tasks.keep_all_with(&strays, view, of) {
                (are_all, doubt) = (true, Some(Doubt::MaybeNoWorker));
            }
            // A poll that waits for ever is part of a deadlock, and one that waits for a recorded lock of a long wait.
            let waits =
                |task: &ThreadId| stuck.contains(task) || view.wait(*task).is_some_and(|wait| wait.is_steady);
            // If tasks of a deadlock alone want a worker, it says that there is none for them.
            let are_ready_stuck = tasks.ready.iter().all(|id| stuck.contains(id));
            let is_said = (!are_all || are_ready_stuck) && tasks.polled.iter().all(waits);
            // A call on a pool, or the main future, may take as long as it likes, until others wait for its thread.
            let is_free = !matches!(of, Of::Polls(Pollers::Workers(..))) && tasks.ready.is_empty();
            if !tasks.polled.is_empty() && !is_said && !is_free {
                found.push(finding(view, of, are_all, doubt, tasks));
            }
        }
    }
}

impl Tasks {
    /// How many threads are in these polls.
    fn threads(&self, view: &View<'_>) -> usize {
        let thread = |&id: &ThreadId| task_of(&view.now.threads[id]).and_then(|task| task.thread);
        self.polled.iter().map(thread).collect::<HashSet<_>>().len()
    }

    /// Whether no thread is left that could poll another one.
    fn keep_all(&self, view: &View<'_>, of: Of) -> bool {
        match of {
            Of::Polls(of) => self.threads(view) >= of.count(),
            Of::Calls(..) => true,
        }
    }

    /// Whether no worker is left if the threads in these polls are workers, and one of them is. Adds these polls then.
    fn keep_all_with(&mut self, strays: &[ThreadId], view: &View<'_>, of: Of) -> bool {
        if self.ready.is_empty() {
            return false;
        }
        let known = self.polled.len();
        let keep_all = self.add_workers(strays, view, of) && self.keep_all(view, of);
        if !keep_all {
            self.polled.truncate(known);
        }
        keep_all
    }

    /// Adds the polls that may be those of these workers. Returns whether one of all polls is by a known worker.
    fn add_workers(&mut self, strays: &[ThreadId], view: &View<'_>, of: Of) -> bool {
        let Of::Polls(workers @ Pollers::Workers(pid, runtime)) = of else { return false };
        let is_other = |task: &TaskFacts| task.runtime.is_some_and(|own| own.number != runtime.number);
        let is_of_it = |id: ThreadId| !task_of(&view.now.threads[id]).is_some_and(is_other);
        let strays = strays.iter().copied().filter(|&id| view.now.threads[id].pid == pid && is_of_it(id));
        self.polled.extend(strays);
        let thread = |id: ThreadId| task_of(&view.now.threads[id]).and_then(|task| task.thread);
        let threads: HashSet<ThreadId> = self.polled.iter().filter_map(|&id| thread(id)).collect();
        let is_worker = |id: ThreadId| thread(id).is_some_and(|thread| threads.contains(&thread));
        (0..view.now.threads.len()).any(|id| is_worker(id) && Pollers::of(view, id) == Some(workers))
    }
}

/// The tasks that are polled, and of which it is not known who may poll them: a worker, or a thread in a `block_on`.
/// The requests of a server are such tasks, if those that the server spawns are not recorded.
fn strays(view: &View<'_>, is_polled: impl Fn(ThreadId) -> bool) -> Vec<ThreadId> {
    let is_stray = |&id: &ThreadId| {
        let task = task_of(&view.now.threads[id]);
        let is_polled_async = task.is_some_and(|task| task.is_polled && task.kind == TaskKind::Async);
        is_polled_async && Pollers::of(view, id).is_none() && is_polled(id)
    };
    (0..view.now.threads.len()).filter(is_stray).collect()
}

/// The tasks that are polled, and those that are ready, by who may poll them.
fn tasks_of_all(
    view: &View<'_>,
    is_polled: impl Fn(ThreadId) -> bool,
    is_ready: impl Fn(ThreadId) -> bool,
) -> Vec<(Of, Tasks)> {
    let mut all: HashMap<Of, Tasks> = HashMap::default();
    for (id, thread) in view.now.threads.iter().enumerate() {
        let Some(task) = task_of(thread) else { continue };
        let is_ready = !task.is_polled && is_ready(id);
        if !(is_ready || task.is_polled && is_polled(id)) {
            continue;
        }
        // The number of workers is that of the executor when the task was made.
        let calls = task.runtime.filter(|_| task.kind == TaskKind::Blocking);
        if let Some(runtime) = calls {
            let calls = all.entry(Of::Calls(thread.pid, runtime)).or_default();
            if is_ready { &mut calls.ready } else { &mut calls.polled }.push(id);
        } else if is_ready {
            if let Some(of) = Pollers::of(view, id) {
                all.entry(Of::Polls(of)).or_default().ready.push(id);
            }
        } else if let Some(thread) = task.thread.filter(|_| task.kind == TaskKind::Async) {
            for of in Pollers::kept_by(view, id, thread) {
                all.entry(Of::Polls(of)).or_default().polled.push(id);
            }
        }
    }
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_unstable_by_key(|&(of, _)| of);
    all
}

/// The polls that kept the workers of an executor when a process died. That is normal for a moment.
#[derive(Debug, Default)]
pub(super) struct Saturated {
    /// The longest of them.
    pub(super) polls: Vec<PollFact>,
    /// Whether no worker was left.
    pub(super) are_all: bool,
    /// Whether the threads in these polls slept nearly all of the time before. Otherwise, if workers were left, tasks
    /// were ready.
    pub(super) are_rare: bool,
}

/// Those of the first executor all of whose workers were in polls. If there is none, those of the first one of whose
/// workers one was, while tasks were ready: the poll may have taken the events that make tasks ready, and workers that
/// sleep do not notice.
///
/// If there are none either, those of threads that slept nearly all of the time before.
///
/// A thread that alone polls its tasks may take as long as it likes, until one is ready.
pub(super) fn saturated(view: &View<'_>) -> Saturated {
    let is_ready = |id: ThreadId| task_of(&view.now.threads[id]).is_some_and(TaskFacts::is_ready);
    let strays = strays(view, |_| true);
    let saturated = |(of, mut tasks): (Of, Tasks)| {
        let Of::Polls(pollers) = of else { return None };
        let is_of_worker = match pollers {
            Pollers::Workers(..) => {
                let is_known = !tasks.polled.is_empty();
                // Other polls may be those of its workers, whether or not one is known to be.
                let is_one_of_others = tasks.add_workers(&strays, view, of);
                is_known || is_one_of_others
            }
            Pollers::Thread(_) => !tasks.polled.is_empty() && !tasks.ready.is_empty(),
        };
        let are_all = tasks.keep_all(view, of);
        let is_kept = is_of_worker && (are_all || !tasks.ready.is_empty());
        is_kept.then(|| Saturated { polls: longest_polls(view, &tasks), are_all, are_rare: false })
    };
    let of_executors = tasks_of_all(view, |_| true, is_ready).into_iter().filter_map(saturated);
    // Of equals, this is the first one.
    let kept = of_executors.chain(polls_of_requests(view, &strays)).min_by_key(|of| !of.are_all);
    kept.or_else(|| rare_polls(view)).unwrap_or_default()
}

/// Whether a thread of an executor was awake, and slept nearly all of the time before it woke, or before `until_ns`. A
/// healthy process is hardly ever killed then.
fn is_rarely_awake(thread: &ThreadLocks, until_ns: Option<u64>) -> bool {
    thread.rest.as_deref().is_some_and(|rest| rest.is_rarely_awake(until_ns))
}

/// The workers that were rarely awake, were so when the process died, and polled no recorded task. A thread that runs
/// an executor for a while, and something else after that, looks the same: only threads with the name of workers count.
pub(super) fn rarely_awake(view: &View<'_>) -> Vec<ThreadId> {
    let task = |id: ThreadId| task_of(&view.now.threads[id]).filter(|task| task.is_polled);
    let polls: HashSet<ThreadId> = (0..view.now.threads.len()).filter_map(|id| task(id)?.thread).collect();
    let is_one = |&(id, thread): &(ThreadId, &ThreadLocks)| {
        !polls.contains(&id) && is_rarely_awake(thread, None) && executor(thread).is_some()
    };
    view.now.present().filter(is_one).map(|(id, _)| id).take(LISTED_MAX).collect()
}

/// The polls of threads that slept nearly all of the time before.
fn rare_polls(view: &View<'_>) -> Option<Saturated> {
    let is_rare = |id: &ThreadId| {
        let task = task_of(&view.now.threads[*id]).filter(|task| task.kind == TaskKind::Async);
        let task = task.filter(|task| task.is_polled && !task.is_off_worker);
        // Before the poll began, the thread may have been awake for long.
        let is_rare =
            |task: &TaskFacts| is_rarely_awake(&view.now.threads[task.thread?], task.since_ns).then_some(());
        task.and_then(is_rare).is_some()
    };
    let all: Vec<ThreadId> = (0..view.now.threads.len()).filter(is_rare).collect();
    // That of a task within another one says more.
    let outer = |id: ThreadId| task_of(&view.now.threads[id]).and_then(|task| task.outer);
    let outers: HashSet<ThreadId> = all.iter().filter_map(|&id| outer(id)).collect();
    let polled: Vec<ThreadId> = all.into_iter().filter(|id| !outers.contains(id)).collect();
    let tasks = Tasks { polled, ready: Vec::new() };
    let are_some = !tasks.polled.is_empty();
    are_some.then(|| Saturated { polls: longest_polls(view, &tasks), are_all: false, are_rare: true })
}

/// The polls of requests, if all threads that have polled requests were in one, and no thread sleeps that may be of the
/// same executor: how many workers there are is not recorded.
fn polls_of_requests(view: &View<'_>, strays: &[ThreadId]) -> Option<Saturated> {
    let request = |id: ThreadId| task_of(&view.now.threads[id]).filter(|task| task.is_request());
    let workers: HashSet<ThreadId> =
        (0..view.now.threads.len()).filter_map(|id| request(id)?.thread).collect();
    let polled = strays.iter().copied().filter(|&id| request(id).is_some()).collect();
    let tasks = Tasks { polled, ready: Vec::new() };
    let number = |task: &TaskFacts| Some(task.runtime?.number).filter(|&number| number != 0);
    let own: HashSet<u32> = (0..view.now.threads.len()).filter_map(|id| number(request(id)?)).collect();
    // For each thread that has polled tasks, whether all of them are of other executors.
    let mut are_others: HashMap<ThreadId, bool> = HashMap::default();
    for task in view.now.threads.iter().filter_map(task_of) {
        if let Some(thread) = task.thread {
            *are_others.entry(thread).or_insert(true) &=
                number(task).is_some_and(|number| !own.contains(&number));
        }
    }
    let sleeps = |thread: &ThreadLocks| thread.rest.as_deref().is_some_and(|rest| rest.is_asleep);
    let is_free = |(id, thread): (ThreadId, &ThreadLocks)| {
        sleeps(thread) && (own.is_empty() || are_others.get(&id) != Some(&true))
    };
    let are_all =
        !workers.is_empty() && tasks.threads(view) >= workers.len() && !view.now.present().any(is_free);
    are_all.then(|| Saturated { polls: longest_polls(view, &tasks), are_all, are_rare: false })
}

/// Polls and calls that had not returned when a process died, although what runs in them waited, the longest first. A
/// poll returns when its future waits, unless something in it blocks the thread until that future is ready. A call may
/// wait, and keeps others waiting if all that run on its pool do.
pub(super) fn waiting_within(view: &View<'_>) -> Vec<PollFact> {
    let is_ready = |id: ThreadId| task_of(&view.now.threads[id]).is_some_and(TaskFacts::is_ready);
    let waits_within =
        |id: &ThreadId| task_of(&view.now.threads[*id]).is_some_and(TaskFacts::waits_within_poll);
    let mut all = Tasks::default();
    for (of, tasks) in tasks_of_all(view, |_| true, is_ready) {
        match of {
            Of::Calls(..)
                if tasks.ready.is_empty() || !tasks.polled.iter().all(|&id| waits_for_good(view, id)) => {}
            Of::Calls(..) => all.polled.extend(tasks.polled),
            Of::Polls(_) => all.polled.extend(tasks.polled.into_iter().filter(waits_within)),
        }
    }
    // A poll may keep the workers of an executor, and a thread that alone polls other tasks.
    all.polled.sort_unstable();
    all.polled.dedup();
    longest_polls(view, &all)
}

/// Whether what runs on a thread waits without a time limit, by the record.
fn waits_for_good(view: &View<'_>, id: ThreadId) -> bool {
    let thread = &view.now.threads[id];
    let wait = thread.wait.as_ref().or(thread.sleep.as_deref());
    wait.is_some_and(|wait| !wait.is_timed) || thread.join.as_deref().is_some_and(|join| !join.is_timed)
}

fn longest_polls(view: &View<'_>, tasks: &Tasks) -> Vec<PollFact> {
    let mut polls: Vec<PollFact> = tasks.polled.iter().map(|&id| poll_fact(view, id)).collect();
    polls.sort_by_key(|poll| std::cmp::Reverse(poll.for_ns));
    polls.truncate(LISTED_MAX);
    polls
}

fn finding(view: &View<'_>, of: Of, are_all: bool, doubt: Option<Doubt>, tasks: Tasks) -> Finding {
    let polls = longest_polls(view, &tasks);
    let threads = tasks.threads(view);
    let since_ns = tasks.polled.iter().filter_map(|&id| task_of(&view.now.threads[id])?.since_ns).max();
    let do_all = |what: fn(&View<'_>, ThreadId) -> bool| tasks.polled.iter().all(|&id| what(view, id));
    let advice = match () {
        // They return when they get the lock.
        () if do_all(|view, id| view.wait(id).is_some()) => Advice::ShortenHold,
        // It is not known who holds the lock. A suspended task that no worker can poll is the usual holder.
        () if do_all(waits_for_lock) => Advice::NoThreadLocksOverAwait,
        () => Advice::MoveBlockingWork,
    };
    let is_blocking = matches!(of, Of::Calls(..));
    let ready = ready_tasks(view, tasks.ready);
    let hurt = ready.count.max(1);
    // How many threads a pool may have is not recorded. Without a task that waits, nobody may be hurt.
    let is_proven = are_all && !is_blocking && doubt.is_none() && ready.count > 0;
    let (runtime, only_thread) = match of {
        Of::Polls(Pollers::Workers(_, runtime)) | Of::Calls(_, runtime) => (Some(runtime.number), None),
        Of::Polls(Pollers::Thread(thread)) => (None, Some(thread)),
    };
    let evidence = BusyRuntime {
        runtime,
        only_thread,
        workers: if is_blocking { tasks.polled.len() } else { threads },
        of_workers: match of {
            Of::Polls(of) => of.count(),
            Of::Calls(..) => tasks.polled.len(),
        },
        is_blocking,
        polls,
        ready,
        unserved: undriven(view).filter(|_| !is_blocking).map(|(undriven, _)| undriven.unserved),
    };
    let kind = if are_all { Kind::StarvedRuntime } else { Kind::LongPoll };
    let confidence = if is_proven { Confidence::Proven } else { Confidence::Suspected };
    let mut finding = Finding::new(kind, confidence, evidence, advice);
    if is_proven && matches!(of, Of::Polls(Pollers::Workers(..))) {
        finding.premises.push(Premise::WorkersBlock);
    }
    finding.doubts.extend(doubt);
    finding.threads_hurt = hurt;
    finding.since_ns = since_ns;
    finding
}

/// Whether a task is polled by a thread that waits for a lock, by the record or by the kernel.
fn waits_for_lock(view: &View<'_>, id: ThreadId) -> bool {
    let thread = task_of(&view.now.threads[id]).and_then(|task| task.thread);
    let seen = thread.and_then(|thread| view.now.threads[thread].seen);
    view.wait(id).is_some() || seen.is_some_and(|seen| seen.doing == Doing::WaitsForLock)
}

fn poll_fact(view: &View<'_>, id: ThreadId) -> PollFact {
    let thread = &view.now.threads[id];
    let task = task_of(thread);
    let since_ns = task.and_then(|task| task.since_ns);
    let location = thread.wait.as_ref().map(|wait| wait.location).or(thread.last);
    PollFact {
        task: id,
        thread: task.and_then(|task| task.thread),
        location,
        made_at: task.and_then(|task| task.made_at).filter(|_| location.is_none()),
        for_ns: view.ago_ns(since_ns),
        is_at_most: task.is_some_and(|task| !task.is_since_exact),
    }
}

/// Whether a task is in a poll that was the same in two readings, and has lasted for long.
fn is_long_poll(view: &View<'_>, task: &TaskFacts) -> bool {
    task.is_steady && view.length(task.since_ns, view.threshold_ns / PART) == Length::Long
}

/// Whether a task has been ready to be polled for long.
pub(super) fn is_long_ready(view: &View<'_>, id: ThreadId) -> bool {
    let thread = &view.now.threads[id];
    let Some(task) = task_of(thread).filter(|task| task.is_ready() && task.is_steady) else { return false };
    view.length(task.ready_ns(thread.claimed_ns), view.threshold_ns / PART) == Length::Long
}

/// Tasks that are ready, as evidence.
pub(super) fn ready_tasks(view: &View<'_>, tasks: Vec<ThreadId>) -> ReadyTasks {
    let count = tasks.len();
    let mut first: Vec<ReadyTask> = tasks
        .into_iter()
        .map(|id| {
            let thread = &view.now.threads[id];
            let task = task_of(thread);
            let since_ns = task.and_then(|task| task.ready_ns(thread.claimed_ns));
            ReadyTask { task: id, is_new: task.is_some_and(TaskFacts::is_new), for_ns: view.ago_ns(since_ns) }
        })
        .collect();
    first.sort_by_key(|one| (std::cmp::Reverse(one.for_ns), one.task));
    first.truncate(LISTED_MAX);
    ReadyTasks { count, first }
}

impl Basis for BusyRuntime {
    fn about(&self, all: &mut About<'_>) {
        for poll in &self.polls {
            all.thread(poll.task, poll.place());
            all.mentions.threads.extend(poll.thread);
            let task = |words: &Words<'_>| words.thread(poll.task);
            all.main(poll.location, |words| format!("{} was last here, in its poll", task(words)));
            all.main(poll.made_at, |words| format!("{} was made here", task(words)));
        }
        all.mentions.threads.extend(self.ready.first.iter().map(|ready| ready.task));
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let (workers, waiting) = (self.workers, counted(self.ready.count as u64, "task"));
        let wait = agree(self.ready.count, "waits", "wait");
        let and_wait = if self.ready.count > 0 { format!(", and {waiting} {wait}") } else { String::new() };
        let summary = match self.only_thread {
            _ if self.is_blocking => format!(
                "{waiting} {wait} for a thread of the pool for calls that block, and {} {} it",
                counted(workers as u64, "call"),
                agree(workers, "occupies", "occupy")
            ),
            Some(thread) => format!(
                "{} is in a poll that has not returned{and_wait} that it alone polls",
                words.thread(thread)
            ),
            None if workers < self.of_workers => {
                let are = agree(workers, "is in a poll that has", "are in polls that have");
                let all = counted(self.of_workers as u64, "worker");
                format!("{workers} of {all} {are} not returned{and_wait}")
            }
            None if workers == 1 => {
                format!("the only worker of an executor is in a poll that has not returned{and_wait}")
            }
            None => {
                format!("all {workers} workers of an executor are in polls that have not returned{and_wait}")
            }
        };
        let mut evidence: Vec<String> =
            self.polls.iter().map(|poll| poll.words(words, self.is_blocking)).collect();
        evidence.extend(and_more(workers, self.polls.len(), "more poll"));
        evidence.extend(self.ready.lines(words));
        evidence.extend(self.unserved.map(|of| format!("no thread waits for events: {}", of.words())));
        Paragraph { summary, evidence }
    }
}

impl PollFact {
    /// What is known of the poll, as a sentence.
    pub fn line(&self, names: &dyn Names) -> String {
        self.words(&Words::new(names, &[]), false)
    }

    fn words(&self, words: &Words<'_>, is_call: bool) -> String {
        let task = words.thread(self.task);
        let lasting = words.lasting_at_most(" for", self.is_at_most, self.for_ns);
        let by = match (self.thread, is_call) {
            (Some(thread), true) => format!("{} has run {task}{lasting}", words.thread(thread)),
            (Some(thread), false) => format!("{} has polled {task}{lasting}", words.thread(thread)),
            (None, _) => format!("{task} has run{lasting}"),
        };
        let last = self.location.map(|location| format!(", last at {}", words.location(location)));
        let last = last.or_else(|| self.made_at.map(|made| format!(", made at {}", words.location(made))));
        // The record of a wait says more than the kernel.
        let doing = words
            .awaited(self.task)
            .or_else(|| self.thread.and_then(|thread| words.doing(thread)))
            .map(|doing| format!("; {doing}"));
        format!("{by}{}{}", last.unwrap_or_default(), doing.unwrap_or_default())
    }
}

impl ReadyTasks {
    /// A line for those of the first that are alike, and one for all others.
    pub(super) fn lines(&self, words: &Words<'_>) -> Vec<String> {
        let line = |is_new: bool| {
            let alike: Vec<&ReadyTask> = self.first.iter().filter(|one| one.is_new == is_new).collect();
            let longest = alike.iter().filter_map(|one| one.for_ns).max();
            let names: Vec<String> = alike.iter().map(|one| words.thread(one.task)).collect();
            let what = match is_new {
                true => agree(names.len(), "was made and never polled", "were made and never polled"),
                false => agree(names.len(), "was woken and is not polled", "were woken and are not polled"),
            };
            match &names[..] {
                [] => None,
                [task] => Some(format!("{task} {what}{}", words.lasting(", for ", longest))),
                tasks => {
                    let lasting = words.lasting(", the longest for ", longest);
                    Some(format!("{} tasks {what}{lasting}: {}", tasks.len(), tasks.join(", ")))
                }
            }
        };
        let more = and_more(self.count, self.first.len(), "more task");
        [true, false].into_iter().filter_map(line).chain(more).collect()
    }
}
