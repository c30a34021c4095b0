//! The tasks of tokio that nobody recorded, by its memory: in groups by the function that they run, and those that can
//! never go on.
//!
//! # Question
//!
//! What do all tasks do, in few lines? Which wait for one another's ends, or locks?
//!
//! # Blind spots
//!
//! What a suspended task waits for is not known, unless it is the end of another task, or the program has debug
//! information of types. Whether a task is polled within another one is not known.

use foldhash::HashMap;
use read_rip_evidence::runtimes::{
    AwaitChain, AwaitStep, PoolWait, TaskStage, TokioLockKind, TokioTask, TokioTasks,
};
use read_rip_evidence::standing::Standings;
use read_rip_symbols::Whose;

/// No more functions are told apart.
const GROUPS_MAX: usize = 10_000;

/// At most so many tasks that hold permits of one semaphore are named.
const USED_UP_TASKS_MAX: usize = 16;

/// Tasks that run one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokioGroup<'a> {
    /// The function; `None` if its name is not known.
    pub function: Option<&'a str>,
    /// Where tokio's function begins that polls them.
    pub poll: u64,
    /// How many they are.
    pub count: usize,
    /// What they do: those that most do come first.
    pub parts: Vec<TokioPart<'a>>,
}

/// Tasks of a group that do the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokioPart<'a> {
    /// What they do.
    pub does: TokioDoes<'a>,
    /// How many they are.
    pub count: usize,
    /// How many of them stood still between two readings.
    pub still: usize,
}

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokioDoes<'a> {
    /// Its state.
    pub stage: TaskStage,
    /// Whether it is suspended, and nobody can wake it.
    pub has_no_waker: bool,
    /// It is suspended, and wakes when a task ends that runs this function; `Some(None)` if its name is not known.
    pub wakes_after: Option<Option<&'a str>>,
    /// Where it is suspended: an index of [`TokioTasks::chains`].
    pub chain: Option<usize>,
}

/// Tasks, each of which goes on only after the end of the next one; after the last one comes the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndCircle {
    /// The tasks.
    pub tasks: Vec<EndTask>,
}

/// A task of such a circle.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndTask {
    /// The number that tokio has given it.
    pub id: u64,
    /// The function that it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
}

/// Tasks, each of which awaits a lock that the next one holds; after the last one comes the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitCircle {
    /// The tasks.
    pub tasks: Vec<AwaitTask>,
}

/// A task of such a circle.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AwaitTask {
    /// The task.
    #[serde(flatten)]
    pub task: EndTask,
    /// The address of the lock that it awaits.
    pub lock: u64,
    /// The type of that lock.
    #[serde(rename = "type")]
    pub lock_type: &'static str,
    /// The source file of the await.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of the await.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The variable with the guard of the lock that the task before it awaits. Left out if it has no name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub guard: String,
}

/// Tasks that hold permits of a semaphore which has none left, and await more of it. No other holder is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedUpPermits {
    /// The library, if the permits are those of objects of a pool.
    pub pool: Option<&'static str>,
    /// The first ones, with what each holds itself.
    pub tasks: Vec<AwaitTask>,
    /// How many of them there are.
    pub count: usize,
    /// How many tasks await permits: these, and others.
    pub awaiting: usize,
    /// For how long nothing of them has changed at least, ns; `None` for a core file.
    pub for_ns: Option<u64>,
}

/// Tasks that await an object of a pool, and did so in both readings of a living process. No task that is in the same
/// function does anything else. If these tasks have the objects, they give none back.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PoolAwaits {
    /// The library of the pool.
    pub pool: &'static str,
    /// How many tasks.
    pub tasks: usize,
    /// The function that they are in, one of the program's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The source file of the await of one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// For how long at least, ns: the time between the readings. Left out for a core file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
}

/// The most tasks that run one function and all await objects of a pool.
pub fn pool_awaits(seen: &Standings) -> Option<PoolAwaits> {
    let tasks = seen.tokio.as_ref()?;
    let named = |wait: PoolWait| {
        let first = &tasks.tasks[wait.first];
        let at = tasks.chain(first).and_then(users_await);
        PoolAwaits {
            pool: wait.pool,
            tasks: wait.tasks,
            function: Some(wait.function),
            file: at.and_then(|at| at.file.clone()),
            line: at.and_then(|at| at.line),
            for_ns: tasks.apart_ns,
        }
    };
    let all = tasks.waits_for_pools(seen.is_final).into_iter().map(named);
    all.max_by(|one, other| one.tasks.cmp(&other.tasks).then_with(|| other.function.cmp(&one.function)))
}

/// The await of the program's own code that is furthest in, or the outermost one.
pub fn users_await(chain: &AwaitChain) -> Option<&AwaitStep> {
    let is_users = |step: &&AwaitStep| {
        let of_file = step.file.as_deref().map(|file| Whose::of(None, Some(file), &Whose::User));
        of_file.is_some_and(|of| of.may_be_users())
    };
    chain.steps.iter().rev().find(is_users).or(chain.steps.first())
}

/// What a lock of tokio is called.
pub fn tokio_lock_type(kind: TokioLockKind) -> &'static str {
    match kind {
        TokioLockKind::Mutex => "mutex",
        TokioLockKind::RwLock => "read-write lock",
        TokioLockKind::Semaphore => "semaphore",
        TokioLockKind::Other => "channel or other semaphore",
    }
}

/// Tasks by the functions that they run, the most frequent first.
pub fn tokio_groups(tasks: &TokioTasks) -> Vec<TokioGroup<'_>> {
    let name = |task: &TokioTask| task_function(tasks, task);
    let mut ends: HashMap<usize, Option<&str>> = HashMap::default();
    for task in &tasks.tasks {
        if let Some(woken) = task.wakes {
            ends.insert(woken, name(task));
        }
    }
    // Several instances of a generic function may have one name. Functions without names are told apart.
    let mut groups: HashMap<(Option<&str>, Option<u64>), TokioGroup<'_>> = HashMap::default();
    for (at, task) in tasks.tasks.iter().enumerate() {
        let is_suspended = task.stage == TaskStage::Suspended;
        let does = TokioDoes {
            stage: task.stage,
            has_no_waker: is_suspended && task.wakers == 0,
            wakes_after: ends.get(&at).copied().filter(|_| is_suspended),
            chain: task.chain,
        };
        let (function, poll) = (name(task), tasks.functions[task.function].address);
        let key = (function, function.is_none().then_some(poll));
        if groups.len() >= GROUPS_MAX && !groups.contains_key(&key) {
            continue;
        }
        let group =
            groups.entry(key).or_insert_with(|| TokioGroup { function, poll, count: 0, parts: Vec::new() });
        group.count += 1;
        let at = group.parts.iter().position(|part| part.does == does).unwrap_or_else(|| {
            group.parts.push(TokioPart { does, count: 0, still: 0 });
            group.parts.len() - 1
        });
        group.parts[at].count += 1;
        group.parts[at].still += usize::from(task.is_still == Some(true));
    }
    let mut groups: Vec<TokioGroup<'_>> = groups.into_values().collect();
    for group in &mut groups {
        group.parts.sort_by_key(|part| (std::cmp::Reverse(part.count), part.does));
    }
    groups.sort_by(|one, other| {
        let order =
            |of: &TokioGroup<'_>| (std::cmp::Reverse(of.count), of.function.map(str::to_owned), of.poll);
        order(one).cmp(&order(other))
    });
    groups
}

/// The circles among the tasks of a process.
pub(super) fn end_circles(seen: &Standings) -> Vec<EndCircle> {
    let Some(tasks) = &seen.tokio else { return Vec::new() };
    let member = |at: usize| end_task(tasks, &tasks.tasks[at]);
    let circles = tasks.circles(seen.is_final).into_iter();
    circles.map(|circle| EndCircle { tasks: circle.into_iter().map(member).collect() }).collect()
}

fn end_task(tasks: &TokioTasks, task: &TokioTask) -> EndTask {
    EndTask { id: task.id, function: task_function(tasks, task).map(str::to_owned) }
}

/// The function that a task runs: by the debug information, or by symbols.
pub fn task_function<'a>(tasks: &'a TokioTasks, task: &TokioTask) -> Option<&'a str> {
    let outermost = tasks.chain(task).and_then(|chain| chain.steps.first());
    outermost.map(|step| &*step.function).or_else(|| tasks.name(task))
}

/// The circles of tasks that await locks.
pub(super) fn await_circles(seen: &Standings) -> Vec<AwaitCircle> {
    let Some(tasks) = &seen.tokio else { return Vec::new() };
    let circles = tasks.lock_circles(seen.is_final).into_iter().map(|circle| {
        let before = circle.iter().cycle().skip(circle.len() - 1);
        let members = circle.iter().zip(before).filter_map(|(&of, &before)| {
            let given = tasks.tasks[before].awaits.as_ref()?.lock;
            await_task(tasks, &tasks.tasks[of], given)
        });
        AwaitCircle { tasks: members.collect() }
    });
    circles.collect()
}

/// A task that awaits a lock, and holds another one, or the same.
fn await_task(tasks: &TokioTasks, task: &TokioTask, holds: usize) -> Option<AwaitTask> {
    let awaited = &tasks.locks[task.awaits.as_ref()?.lock];
    let step = tasks.chain(task).and_then(users_await);
    Some(AwaitTask {
        task: end_task(tasks, task),
        lock: awaited.address,
        lock_type: tokio_lock_type(awaited.kind),
        file: step.and_then(|step| step.file.clone()),
        line: step.and_then(|step| step.line),
        guard: tasks.held(task, holds).map(|held| held.variable.clone()).unwrap_or_default(),
    })
}

/// The semaphores whose permits are all held by tasks that await more, as far as it is known.
pub fn used_up_permits(seen: &Standings) -> Vec<UsedUpPermits> {
    let Some(tasks) = &seen.tokio else { return Vec::new() };
    let used_up = tasks.used_up(seen.is_final).into_iter().map(|of| UsedUpPermits {
        pool: of.tasks.first().and_then(|&at| tasks.chain(&tasks.tasks[at])?.pool()),
        tasks: of
            .tasks
            .iter()
            .take(USED_UP_TASKS_MAX)
            .filter_map(|&at| await_task(tasks, &tasks.tasks[at], of.lock))
            .collect(),
        count: of.tasks.len(),
        awaiting: of.awaiting,
        for_ns: tasks.apart_ns,
    });
    used_up.collect()
}
