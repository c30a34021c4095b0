//! Goroutines that wait for mutexes which others of them may have.
//!
//! # Question
//!
//! Which goroutines of a program in Go wait for mutexes, so that nobody is known who can release one of these?
//!
//! # Method
//!
//! The stack of a goroutine that waits leads to the mutex. Whoever has a mutex has a pointer to it on its stack,
//! mostly, to release it. If all whose stacks point to a mutex wait for mutexes too, and so on, then these goroutines
//! are suspected. They waited for the same mutexes in both readings.
//!
//! # Blind spots
//!
//! A mutex in a global variable takes no pointer, and one that is reached through other values may have none on the
//! stack: whoever has it is not seen then. Waits for channels, conditions and groups make no circle. A goroutine that
//! waits for a mutex which it has itself is not told.
//!
//! # Example output
//!
//! ```text
//! suspected deadlock: 2 goroutines wait for mutexes, and nobody else is known who may have these
//!     goroutine 7 waits for the mutex 0xc000012108 at main.transfer main.go:17
//!     goroutine 8 waits for the mutex 0xc0000120f0 at main.transfer main.go:17
//! ```

use read_rip_evidence::runtimes::InnerWait;
use serde::Serialize;

use super::words::and_more;
use super::{About, Advice, Analysis, Basis, Confidence, Doubt, Finding, Kind, Paragraph, View, Words};
use crate::units::counted;

/// See the file's description.
pub(super) struct InnerCircle;

/// At most this many goroutines are listed.
const LISTED_MAX: usize = 16;

/// Goroutines that wait for mutexes which others of them may have.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GoroutinesAtMutexes {
    /// How many.
    pub count: usize,
    /// Some of them.
    pub waits: Vec<GoroutineWait>,
}

/// A goroutine that waits for a mutex.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GoroutineWait {
    /// Its id.
    pub goroutine: u64,
    /// The mutex: its address, as `0xc000012108`.
    pub mutex: String,
    /// Where it waits: `main.transfer main.go:17`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

impl GoroutineWait {
    fn of(wait: &InnerWait) -> GoroutineWait {
        let place = wait.at.as_ref().map(|at| {
            let file = at.file.rsplit('/').next().unwrap_or_default();
            let line = at.line.map(|line| format!(":{line}")).unwrap_or_default();
            format!("{} {file}{line}", at.function)
        });
        GoroutineWait { goroutine: wait.task, mutex: format!("{:#x}", wait.lock), at: place }
    }
}

impl Analysis for InnerCircle {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let all = &view.now.inner_waits;
        if all.is_empty() {
            return;
        }
        let waits = all.iter().take(LISTED_MAX).map(GoroutineWait::of).collect();
        let evidence = GoroutinesAtMutexes { count: all.len(), waits };
        let mut finding = Finding::new(Kind::Deadlock, Confidence::Suspected, evidence, Advice::OneOrder);
        finding.doubts = vec![Doubt::ByPointers];
        finding.doubts.extend(view.now.is_final.then_some(Doubt::OneMoment));
        finding.threads_hurt = all.len();
        found.push(finding);
    }
}

impl Basis for GoroutinesAtMutexes {
    fn about(&self, _: &mut About<'_>) {}

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let goroutines = counted(self.count as u64, "goroutine");
        let line = |wait: &GoroutineWait| {
            let at = wait.at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
            words.text(&format!("goroutine {} waits for the mutex {}{at}", wait.goroutine, wait.mutex))
        };
        let mut evidence: Vec<String> = self.waits.iter().map(line).collect();
        evidence.extend(and_more(self.count, self.waits.len(), "more goroutine"));
        Paragraph {
            summary: format!("{goroutines} wait for mutexes, and nobody else is known who may have these"),
            evidence,
        }
    }
}

#[cfg(test)]
mod tests {
    use read_rip_evidence::runtimes::SourceFrame;

    use super::*;
    use crate::findings::testing::Scene;

    #[test]
    fn goroutines_are_suspected_and_listed() {
        let mut scene = Scene::new();
        assert!(scene.run(&InnerCircle).is_empty());
        let at = SourceFrame { function: "main.pay".into(), file: "/src/main.go".into(), line: Some(17) };
        let wait = |task: u64| InnerWait { task, lock: 0x10 * task, at: Some(at.clone()) };
        scene.model.inner_waits = (1..=20).map(wait).collect();
        let found = scene.run(&InnerCircle);
        assert_eq!((found[0].kind, found[0].confidence), (Kind::Deadlock, Confidence::Suspected));
        let (summary, evidence) = scene.says(&found[0]);
        assert_eq!(summary, "20 goroutines wait for mutexes, and nobody else is known who may have these");
        assert_eq!(evidence[0], "goroutine 1 waits for the mutex 0x10 at main.pay main.go:17");
        assert_eq!(evidence[LISTED_MAX], "and 4 more goroutines");
    }
}
