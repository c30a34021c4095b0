//! Tasks of a program that records none, each of which awaits a lock of tokio that the next one holds.
//!
//! # Question
//!
//! Which tasks can never go on, because each awaits a mutex that the next one holds?
//!
//! # Method
//!
//! The memory of tokio has its tasks, and the debug information of the program says how their futures are laid out. So
//! it is known in which await a task is suspended, and which guards it keeps over that await. A task that awaits a lock
//! has the address of the lock's semaphore, and so has a guard. Only a task counts whose functions await one another
//! and the lock, and nothing else. Between two readings nothing of these tasks changed.
//!
//! A guard that was moved or dropped leaves its bytes behind. The compiler keeps a flag for such a variable. A guard
//! counts only if no flag of its function is unset.
//!
//! # Blind spots
//!
//! A task that awaits the lock within a `select!`, a `join!`, a `FuturesUnordered`, a `Box` of a `dyn Future` or with a
//! time limit is left out. So are guards within other values than an `Option`, those of a function that has moved
//! something else before that await, those of the future of `block_on`, which is no task, and all of a program whose
//! panics abort: it has too few flags. Semaphores are left out: anybody may add permits. Somebody may abort a task
//! through its `JoinHandle`.
//!
//! # Example output
//!
//! ```text
//! proven deadlock: 2 tasks of tokio await locks that they hold
//!     task 61 (shop::reserve) awaits a mutex at shop.rs:12 that task 62 (shop::pay) holds in `stock`
//!     task 62 (shop::pay) awaits a mutex at shop.rs:23 that task 61 (shop::reserve) holds in `account`
//! ```

use serde::Serialize;

use super::end_circle::task_name;
use super::words::and_more;
use super::{About, Advice, Analysis, Basis, Confidence, Finding, Kind, Paragraph, Premise, View, Words};
use crate::locks::AwaitTask;
use crate::units::counted;

/// See the file's description.
pub(super) struct AwaitCircles;

/// At most this many tasks are listed.
const LISTED_MAX: usize = 16;

/// Tasks of tokio, each of which awaits a lock that the next one holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TasksAwaitLocks {
    /// How many.
    pub count: usize,
    /// The tasks. After the last one comes the first, unless there are more.
    pub tasks: Vec<AwaitTask>,
}

impl Analysis for AwaitCircles {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        for circle in &view.now.await_circles {
            let count = circle.tasks.len();
            let tasks = circle.tasks.iter().take(LISTED_MAX).cloned().collect();
            let evidence = TasksAwaitLocks { count, tasks };
            let mut finding = Finding::new(Kind::Deadlock, Confidence::Proven, evidence, Advice::AbortATask);
            finding.premises = vec![Premise::NotAborted];
            finding.threads_hurt = count;
            found.push(finding);
        }
    }
}

impl Basis for TasksAwaitLocks {
    fn about(&self, _: &mut About<'_>) {}

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let summary = match self.count {
            1 => "a task of tokio awaits a lock that it holds itself".to_owned(),
            count => format!("{} of tokio await locks that they hold", counted(count as u64, "task")),
        };
        let name = |of: &AwaitTask| task_name(&of.task, words);
        let next = self.tasks.iter().cycle().skip(1);
        let shown = if self.count > self.tasks.len() { self.tasks.len() - 1 } else { self.tasks.len() };
        let lines = self.tasks.iter().zip(next).take(shown).map(|(of, next)| {
            let at = of.file.as_deref().zip(of.line);
            let at = at.map_or_else(String::new, |(file, line)| format!(" at {}", words.source(file, line)));
            let who = if self.count == 1 { "it".to_owned() } else { name(next) };
            let guard = match &*next.guard {
                "" => String::new(),
                guard => format!(" in `{}`", words.text(guard)),
            };
            format!("{} awaits a {}{at} that {who} holds{guard}", name(of), of.lock_type)
        });
        let mut evidence: Vec<String> = lines.collect();
        evidence.extend(and_more(self.count, shown, "more task"));
        Paragraph { summary, evidence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::Scene;
    use crate::locks::{AwaitCircle, EndTask};

    fn scene(guards: &[&str]) -> Scene {
        let mut scene = Scene::new();
        let task = |(at, guard): (usize, &&str)| AwaitTask {
            task: EndTask { id: 61 + at as u64, function: Some(format!("shop::f{at}")) },
            lock: 0x1000 + 64 * at as u64,
            lock_type: "mutex",
            file: Some("shop.rs".to_owned()),
            line: Some(12 + at as u32),
            guard: guard.to_string(),
        };
        let tasks = guards.iter().enumerate().map(task).collect();
        scene.model.await_circles.push(AwaitCircle { tasks });
        scene
    }

    #[test]
    fn tasks_that_hold_what_they_await_are_proven() {
        let scene = scene(&["stock", ""]);
        let found = scene.run(&AwaitCircles);
        assert_eq!((found[0].kind, found[0].confidence), (Kind::Deadlock, Confidence::Proven));
        let (summary, evidence) = scene.says(&found[0]);
        assert_eq!(summary, "2 tasks of tokio await locks that they hold");
        assert_eq!(
            evidence,
            [
                "task 61 (shop::f0) awaits a mutex at shop.rs:12 that task 62 (shop::f1) holds",
                "task 62 (shop::f1) awaits a mutex at shop.rs:13 that task 61 (shop::f0) holds in `stock`"
            ]
        );
    }

    #[test]
    fn a_task_can_await_what_it_holds() {
        let scene = scene(&["stock"]);
        let found = scene.run(&AwaitCircles);
        let (summary, evidence) = scene.says(&found[0]);
        assert_eq!(summary, "a task of tokio awaits a lock that it holds itself");
        assert_eq!(evidence, ["task 61 (shop::f0) awaits a mutex at shop.rs:12 that it holds in `stock`"]);
    }
}
