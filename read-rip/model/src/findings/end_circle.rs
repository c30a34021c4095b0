//! Tasks that wait for one another's ends.
//!
//! # Question
//!
//! Which tasks of a program that records none can never go on, because each waits for the end of the next one?
//!
//! # Method
//!
//! The memory of tokio has its tasks. The trailer of a task has the waker of the one that waits for its end. A task
//! counts the references to it: its list has one, its `JoinHandle` one, and each waker and abort handle one. So a task
//! with one more reference has one waker, and if that is in the trailer of another task, only the end of that one wakes
//! it. Tasks that lead so in a circle, and that are suspended, can never go on. Between two readings nothing of them
//! changed.
//!
//! # Blind spots
//!
//! A task that something else may wake too (a time limit, another branch of a `select!`) is left out: it may go on. So
//! is one whose waker a combinator has wrapped, as `FuturesUnordered` and `JoinSet` do, and one that a main future
//! waits for: that is no task. Somebody may abort a task through its `JoinHandle`.
//!
//! # Example output
//!
//! ```text
//! proven deadlock: 2 tasks of tokio wait for the ends of one another
//!     task 61 (shop::reserve) goes on only after the end of task 62 (shop::pay)
//!     task 62 (shop::pay) goes on only after the end of task 61 (shop::reserve)
//! ```

use serde::Serialize;

use super::words::and_more;
use super::{About, Advice, Analysis, Basis, Confidence, Finding, Kind, Paragraph, Premise, View, Words};
use crate::locks::EndTask;
use crate::units::counted;

/// See the file's description.
pub(super) struct EndCircles;

/// At most this many tasks are listed.
const LISTED_MAX: usize = 16;

/// Tasks of tokio, each of which goes on only after the end of the next one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TasksInCircle {
    /// How many.
    pub count: usize,
    /// The tasks. After the last one comes the first, unless there are more.
    pub tasks: Vec<EndTask>,
}

impl Analysis for EndCircles {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        for circle in &view.now.end_circles {
            let count = circle.tasks.len();
            let tasks = circle.tasks.iter().take(LISTED_MAX).cloned().collect();
            let evidence = TasksInCircle { count, tasks };
            let mut finding = Finding::new(Kind::Deadlock, Confidence::Proven, evidence, Advice::AbortATask);
            finding.premises = vec![Premise::NotAborted];
            finding.threads_hurt = count;
            found.push(finding);
        }
    }
}

impl Basis for TasksInCircle {
    fn about(&self, _: &mut About<'_>) {}

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let summary = match self.count {
            1 => "a task of tokio waits for its own end".to_owned(),
            count => format!("{} of tokio wait for the ends of one another", counted(count as u64, "task")),
        };
        let name = |task: &EndTask| task_name(task, words);
        let next = self.tasks.iter().cycle().skip(1);
        let shown = if self.count > self.tasks.len() { self.tasks.len() - 1 } else { self.tasks.len() };
        let lines = self.tasks.iter().zip(next).take(shown).map(|(task, next)| {
            let next = if self.count == 1 { "itself".to_owned() } else { name(next) };
            format!("{} goes on only after the end of {next}", name(task))
        });
        let mut evidence: Vec<String> = lines.collect();
        evidence.extend(and_more(self.count, shown, "more task"));
        Paragraph { summary, evidence }
    }
}

/// A task, by its id and its function.
pub(super) fn task_name(task: &EndTask, words: &Words<'_>) -> String {
    match &task.function {
        Some(function) => format!("task {} ({})", task.id, words.text(function)),
        None => format!("task {}", task.id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::Scene;
    use crate::locks::EndCircle;

    fn scene(functions: &[&str]) -> Scene {
        let mut scene = Scene::new();
        let task = |(at, function): (usize, &&str)| EndTask {
            id: 61 + at as u64,
            function: (!function.is_empty()).then(|| function.to_string()),
        };
        scene.model.end_circles.push(EndCircle { tasks: functions.iter().enumerate().map(task).collect() });
        scene
    }

    #[test]
    fn a_circle_of_ends_is_proven() {
        let found = scene(&["shop::reserve", ""]).run(&EndCircles);
        assert_eq!((found[0].kind, found[0].confidence), (Kind::Deadlock, Confidence::Proven));
        let (summary, evidence) = scene(&["shop::reserve", ""]).says(&found[0]);
        assert_eq!(summary, "2 tasks of tokio wait for the ends of one another");
        assert_eq!(
            evidence,
            [
                "task 61 (shop::reserve) goes on only after the end of task 62",
                "task 62 goes on only after the end of task 61 (shop::reserve)"
            ]
        );
    }

    #[test]
    fn a_task_can_wait_for_itself() {
        let scene = scene(&["shop::reserve"]);
        let found = scene.run(&EndCircles);
        let (summary, evidence) = scene.says(&found[0]);
        assert_eq!(summary, "a task of tokio waits for its own end");
        assert_eq!(evidence, ["task 61 (shop::reserve) goes on only after the end of itself"]);
    }

    #[test]
    fn of_a_long_circle_the_first_tasks_are_named() {
        let scene = scene(&["shop::relay"; 20]);
        let found = scene.run(&EndCircles);
        let evidence = scene.says(&found[0]).1;
        assert_eq!(evidence.len(), LISTED_MAX);
        assert!(evidence[LISTED_MAX - 1].contains("5 more tasks"), "{evidence:?}");
    }
}
