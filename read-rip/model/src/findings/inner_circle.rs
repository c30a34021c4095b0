//! Goroutines that wait for one another.
//!
//! # Question
//!
//! Which goroutines of a program in Go wait for mutexes, so that nobody is known who can release one of these? Which
//! wait at channels, mutexes, groups and conditions for one another, and nobody else can reach these?
//!
//! # Method
//!
//! The stack of a goroutine that waits leads to the mutex. Whoever has a mutex has a pointer to it on its stack,
//! mostly, to release it. If all whose stacks point to a mutex wait for mutexes too, and so on, then these goroutines
//! are suspected.
//!
//! If there are none, then the objects of the heap are followed, as Go's garbage collector does: from the variables of
//! the program, and from goroutines that may go on. Goroutines are suspected that wait for objects which are not found
//! in this way, each for one to which another one of them has a way.
//!
//! In both cases they waited for the same in both readings.
//!
//! # Blind spots
//!
//! A mutex in a global variable takes no pointer, and one that is reached through other values may have none on the
//! stack: whoever has it is not seen then. Waits at channels, groups and conditions in global variables make no circle,
//! nor does a goroutine that waits for what it has itself, or for what nobody has: a `main` that waits for ever on
//! purpose does so. A finalizer, and C code, may use what no goroutine can reach.
//!
//! # Example output
//!
//! ```text
//! suspected deadlock: 2 goroutines wait for mutexes, and nobody else is known who may have these
//!     goroutine 7 waits for the mutex 0xc000012108 at main.transfer main.go:17
//!     goroutine 8 waits for the mutex 0xc0000120f0 at main.transfer main.go:17
//!
//! suspected deadlock: 2 goroutines wait for one another, and nobody else can reach what they wait for
//!     goroutine 1 waits for the group 0xc0000180a0 at main.main main.go:21
//!     goroutine 18 sends to the channel 0xc00005c060 at main.work main.go:12
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

/// Goroutines that wait for one another.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GoroutineCircle {
    /// How many.
    pub count: usize,
    /// Some of them.
    pub waits: Vec<GoroutineWait>,
}

/// A goroutine that waits for others.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GoroutineWait {
    /// Its id.
    pub goroutine: u64,
    /// What it does, in the words of Go: `sync.Mutex.Lock`, `chan send`.
    pub state: String,
    /// The mutex, the channel, or whatever it waits for: its address, as `0xc000012108`. A nil channel has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
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
        let object = (wait.lock != 0).then(|| format!("{:#x}", wait.lock));
        GoroutineWait { goroutine: wait.task, state: wait.state.clone(), object, at: place }
    }

    fn is_at_mutex(&self) -> bool {
        self.state.contains("Mutex") || self.state == "semacquire"
    }

    /// What it waits for, as the end of a sentence.
    fn says(&self) -> String {
        let Some(object) = &self.object else { return "sends to a nil channel".to_owned() };
        let does = match &*self.state {
            _ if self.is_at_mutex() => "waits for the mutex",
            "chan send" => "sends to the channel",
            "chan receive" => "receives from the channel",
            "select" => "selects from channels, as",
            "sync.WaitGroup.Wait" => "waits for the group",
            "sync.Cond.Wait" => "waits for the condition",
            _ => "waits for",
        };
        format!("{does} {object}")
    }
}

impl Analysis for InnerCircle {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let all = &view.now.inner_waits;
        if all.is_empty() {
            return;
        }
        let waits: Vec<GoroutineWait> = all.iter().take(LISTED_MAX).map(GoroutineWait::of).collect();
        let (advice, doubt) = match waits.as_slice() {
            waits if waits.iter().all(GoroutineWait::is_at_mutex) => {
                (Advice::OneOrder, Some(Doubt::ByPointers))
            }
            waits if waits.iter().all(|wait| wait.object.is_none()) => (Advice::MakeTheChannel, None),
            _ => (Advice::ReceiveWhileWaiting, Some(Doubt::ByReach)),
        };
        let evidence = GoroutineCircle { count: all.len(), waits };
        let mut finding = Finding::new(Kind::Deadlock, Confidence::Suspected, evidence, advice);
        finding.doubts = doubt.into_iter().collect();
        finding.doubts.extend(view.now.is_final.then_some(Doubt::OneMoment));
        finding.threads_hurt = all.len();
        found.push(finding);
    }
}

impl Basis for GoroutineCircle {
    fn about(&self, _: &mut About<'_>) {}

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let goroutines = counted(self.count as u64, "goroutine");
        let line = |wait: &GoroutineWait| {
            let at = wait.at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
            words.text(&format!("goroutine {} {}{at}", wait.goroutine, wait.says()))
        };
        let mut evidence: Vec<String> = self.waits.iter().map(line).collect();
        evidence.extend(and_more(self.count, self.waits.len(), "more goroutine"));
        let summary = match self.waits.as_slice() {
            waits if waits.iter().all(GoroutineWait::is_at_mutex) => {
                format!("{goroutines} wait for mutexes, and nobody else is known who may have these")
            }
            [one] => format!("a goroutine {}, and never goes on", one.says()),
            _ => format!("{goroutines} wait for one another, and nobody else can reach what they wait for"),
        };
        Paragraph { summary, evidence }
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
        let wait = |task: u64, state: &str| InnerWait {
            task,
            lock: 0x10 * task,
            state: state.to_owned(),
            at: Some(at.clone()),
        };
        scene.model.inner_waits = (1..=20).map(|task| wait(task, "sync.Mutex.Lock")).collect();
        let found = scene.run(&InnerCircle);
        assert_eq!((found[0].kind, found[0].confidence), (Kind::Deadlock, Confidence::Suspected));
        let (summary, evidence) = scene.says(&found[0]);
        assert_eq!(summary, "20 goroutines wait for mutexes, and nobody else is known who may have these");
        assert_eq!(evidence[0], "goroutine 1 waits for the mutex 0x10 at main.pay main.go:17");
        assert_eq!(evidence[LISTED_MAX], "and 4 more goroutines");

        let group = "sync.WaitGroup.Wait";
        scene.model.inner_waits = vec![wait(1, group), wait(2, "chan send"), wait(3, "select")];
        let found = scene.run(&InnerCircle);
        assert_eq!(found[0].advice, [Advice::ReceiveWhileWaiting]);
        let (summary, evidence) = scene.says(&found[0]);
        assert_eq!(
            summary,
            "3 goroutines wait for one another, and nobody else can reach what they wait for"
        );
        assert_eq!(evidence[0], "goroutine 1 waits for the group 0x10 at main.pay main.go:17");
        assert_eq!(evidence[1], "goroutine 2 sends to the channel 0x20 at main.pay main.go:17");
        assert_eq!(evidence[2], "goroutine 3 selects from channels, as 0x30 at main.pay main.go:17");

        scene.model.inner_waits = vec![InnerWait { lock: 0, ..wait(4, "chan send (nil chan)") }];
        let found = scene.run(&InnerCircle);
        assert_eq!((&*found[0].advice, &*found[0].doubts), (&[Advice::MakeTheChannel][..], &[][..]));
        let (summary, evidence) = scene.says(&found[0]);
        assert_eq!(summary, "a goroutine sends to a nil channel, and never goes on");
        assert_eq!(evidence, ["goroutine 4 sends to a nil channel at main.pay main.go:17"]);
    }
}
