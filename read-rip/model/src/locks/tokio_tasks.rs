//! The tasks of tokio that nobody recorded, by its memory: in groups by the function that they run, and those that can
//! never go on.
//!
//! # Question
//!
//! What do all tasks do, in few lines? Which wait for one another's ends?
//!
//! # Blind spots
//!
//! What a suspended task waits for is not known, unless it is the end of another task. Whether a task is polled within
//! another one is not known.

use foldhash::HashMap;
use read_rip_evidence::runtimes::{TaskStage, TokioTask, TokioTasks};
use read_rip_evidence::standing::Standings;

/// No more functions are told apart.
const GROUPS_MAX: usize = 10_000;

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

/// Tasks by the functions that they run, the most frequent first.
pub fn tokio_groups(tasks: &TokioTasks) -> Vec<TokioGroup<'_>> {
    let name = |task: &TokioTask| tasks.name(task);
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
    let member = |at: usize| {
        let task = &tasks.tasks[at];
        EndTask { id: task.id, function: tasks.name(task).map(str::to_owned) }
    };
    let circles = tasks.circles(seen.is_final).into_iter();
    circles.map(|circle| EndCircle { tasks: circle.into_iter().map(member).collect() }).collect()
}
