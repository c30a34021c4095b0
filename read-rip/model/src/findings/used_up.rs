//! Tasks of tokio that hold all permits of a semaphore, or objects of a pool, and await more.
//!
//! # Question
//!
//! Which requests can never go on, because each has an object of a pool and waits for one more, and no other is left?
//!
//! # Method
//!
//! The memory of tokio has its tasks, and the debug information of the program says how their futures are laid out
//! (`await_circle`). A semaphore says how many permits are free. If there are none, each task that is known to hold one
//! awaits the same semaphore, and nothing of these tasks has changed for a second, then nobody is known who gives one
//! back. Pools of `deadpool` and `sqlx` are such semaphores: an object leads to that of its pool. That works for a
//! program that records nothing, and beside a record, which does not have the locks of libraries.
//!
//! # Blind spots
//!
//! How many permits a semaphore had at the beginning is not in it. So there may be holders that nobody sees: behind a
//! pointer, in a thread, in a task that is polled, or on a way that a guard has taken out of its function. So the
//! finding is only suspected. A holder counts if the guard is a variable of its own, and if it lives for certain. A
//! pool of `bb8` has no semaphore. After a kill, nothing of this is left, but in a core file.
//!
//! # Example output
//!
//! ```text
//! suspected deadlock: 4 tasks of tokio hold objects of a pool (deadpool), and await one more; none is free
//!     task 8 (shop::orders) awaits one at orders.rs:29, and holds one in `connection`
//! ```

use serde::Serialize;

use super::end_circle::task_name;
use super::words::{and_more, lasting};
use super::{
    About, Advice, Analysis, Basis, Confidence, Doubt, Finding, Kind, LATELY_NS, Paragraph, View, Words,
};
use crate::locks::AwaitTask;
use crate::units::{agree, counted};

/// See the file's description.
pub(super) struct UsedUp;

/// Tasks of tokio that hold permits of a semaphore, and await more of it, and nobody else is known to hold any.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermitsUsedUp {
    /// The library, if the permits are those of objects of a pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<&'static str>,
    /// How many tasks.
    pub count: usize,
    /// How many more tasks await permits.
    pub others: usize,
    /// For how long nothing of them has changed at least, ns. Left out for a core file.
    #[serde(rename = "for_at_least_ns", skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
    /// The first of these tasks.
    pub tasks: Vec<AwaitTask>,
}

impl Analysis for UsedUp {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let lasts = |for_ns: Option<u64>| for_ns.is_none_or(|for_ns| for_ns >= LATELY_NS);
        for of in view.now.used_up_permits.iter().filter(|of| lasts(of.for_ns)) {
            let evidence = PermitsUsedUp {
                pool: of.pool,
                count: of.count,
                others: of.awaiting - of.count,
                for_ns: of.for_ns,
                tasks: of.tasks.clone(),
            };
            let mut finding =
                Finding::new(Kind::Deadlock, Confidence::Suspected, evidence, Advice::TakeAtOnce);
            finding.doubts = vec![Doubt::UnseenPermits];
            finding.doubts.extend(of.for_ns.is_none().then_some(Doubt::OneMoment));
            finding.threads_hurt = of.awaiting;
            found.push(finding);
        }
    }
}

impl Basis for PermitsUsedUp {
    fn about(&self, _: &mut About<'_>) {}

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let (tasks, holds) = (counted(self.count as u64, "task"), agree(self.count, "holds", "hold"));
        let what = match self.pool {
            Some(pool) => format!("objects of a pool ({pool})"),
            None => "permits of a semaphore".to_owned(),
        };
        let (awaits, lasted) =
            (agree(self.count, "awaits", "await"), lasting(", for at least ", self.for_ns));
        let line = |of: &AwaitTask| {
            let at = of.file.as_deref().zip(of.line);
            let at = at.map_or_else(String::new, |(file, line)| format!(" at {}", words.source(file, line)));
            let guard = match &*of.guard {
                "" => String::new(),
                guard => format!(" in `{}`", words.text(guard)),
            };
            format!("{} awaits one{at}, and holds one{guard}", task_name(&of.task, words))
        };
        let mut evidence: Vec<String> = self.tasks.iter().map(line).collect();
        evidence.extend(and_more(self.count, self.tasks.len(), "more task"));
        if self.others > 0 {
            let more = agree(self.others, "awaits one too", "await one too");
            evidence.push(format!("{} {more}", counted(self.others as u64, "other task")));
        }
        Paragraph {
            summary: format!(
                "{tasks} of tokio {holds} {what}, and {awaits} one more; none is free, and no other task is seen \
                 that has one{lasted}"
            ),
            evidence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{SECOND, Scene};
    use crate::locks::{EndTask, UsedUpPermits};

    fn scene(for_ns: Option<u64>) -> Scene {
        let mut scene = Scene::new();
        let task = |id| AwaitTask {
            task: EndTask { id, function: Some("axum::serve".to_owned()) },
            lock: 0x1000,
            lock_type: "semaphore",
            file: Some("orders.rs".to_owned()),
            line: Some(29),
            guard: "connection".to_owned(),
        };
        scene.model.used_up_permits.push(UsedUpPermits {
            pool: Some("deadpool"),
            tasks: vec![task(8), task(9)],
            count: 2,
            awaiting: 3,
            for_ns,
        });
        scene
    }

    #[test]
    fn tasks_that_have_all_objects_of_a_pool_and_await_more_are_suspected() {
        let scene = scene(Some(2 * SECOND));
        let found = scene.run(&UsedUp);
        assert_eq!((found[0].kind, found[0].confidence), (Kind::Deadlock, Confidence::Suspected));
        let (summary, evidence) = scene.says(&found[0]);
        assert_eq!(
            summary,
            "2 tasks of tokio hold objects of a pool (deadpool), and await one more; none is free, and no other task \
             is seen that has one, for at least 2.0 s"
        );
        assert_eq!(
            evidence,
            [
                "task 8 (axum::serve) awaits one at orders.rs:29, and holds one in `connection`",
                "task 9 (axum::serve) awaits one at orders.rs:29, and holds one in `connection`",
                "1 other task awaits one too"
            ]
        );
    }

    #[test]
    fn a_busy_pool_has_no_objects_for_a_moment() {
        assert!(scene(Some(SECOND / 10)).run(&UsedUp).is_empty());
        let of_core = scene(None).run(&UsedUp);
        assert!(of_core[0].doubts.contains(&Doubt::OneMoment));
    }
}
