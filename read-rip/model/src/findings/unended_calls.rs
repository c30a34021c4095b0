//! Runtimes that end, and wait for calls that block.
//!
//! # Question
//!
//! Which thread drops the runtime of an executor, and waits for a call on its pool that nothing ends?
//!
//! # Method
//!
//! The stack of a thread says that it ends a runtime, which waits until the calls have ended that run on the pool for
//! calls that block. The stack of another thread says that it runs such a call. Both have slept without a time limit
//! for a second. Tasks can be aborted, and such a call cannot: a read of standard input lasts until somebody types.
//!
//! # Blind spots
//!
//! Which call is one of which runtime is not known, if a process has several. What the call waits for may come later,
//! so the finding is only suspected. What a dead process waited for when it ended its runtime is not recorded.
//!
//! # Example output
//!
//! ```text
//! suspected long-wait: a runtime ends, and waits for 1 call on its pool that does not return, for at least 2.6 s
//!     main[12] ends the runtime at main main.rs:20
//!     tokio-rt-worker[13] waits for input, a time or a signal from outside at read_lines main.rs:8
//! ```

use serde::Serialize;

use read_rip_evidence::waits::Worker;

use super::nobody_left::is_explained;
use super::words::lasting;
use super::{
    About, Advice, Analysis, Basis, Confidence, Doubt, Finding, Kind, LATELY_NS, Paragraph, StandingFact,
    View, Words, doing,
};
use crate::locks::{Doing, Seen, ThreadId};
use crate::units::{agree, counted};

/// See the file's description.
pub(super) struct UnendedCalls;

/// At most this many calls are listed.
const LISTED_MAX: usize = 5;

/// A runtime that ends, and waits for calls on its pool.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndOfRuntime {
    /// The thread that ends it.
    pub by: StandingFact,
    /// How many calls it may wait for.
    pub calls: usize,
    /// The threads that run these calls. Of many the first ones.
    pub first: Vec<StandingFact>,
    /// For how long none of these threads has run, ns, at least.
    pub for_ns: u64,
}

impl Analysis for UnendedCalls {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        if is_explained(found) {
            return;
        }
        let ends = |seen: &Seen| seen.doing == Doing::WaitsForCalls;
        let Some((by, seen, by_ns)) = asleep(view).find(|(_, seen, _)| ends(seen)) else { return };
        // The functions that end a pool are the pool's own.
        let is_call =
            |of: &Seen| of.worker == Some(Worker::OfCalls) && of.process == seen.process && !ends(of);
        let calls: Vec<_> = asleep(view).filter(|(_, seen, _)| is_call(seen)).collect();
        let Some(calls_ns) = calls.iter().map(|&(.., for_ns)| for_ns).min() else { return };
        let fact =
            |thread, seen: &Seen| StandingFact { thread, count: 1, doing: seen.doing, location: seen.place };
        let evidence = EndOfRuntime {
            by: fact(by, &seen),
            calls: calls.len(),
            first: calls.iter().take(LISTED_MAX).map(|(thread, seen, _)| fact(*thread, seen)).collect(),
            for_ns: by_ns.min(calls_ns),
        };
        let mut finding =
            Finding::new(Kind::LongWait, Confidence::Suspected, evidence, Advice::EndRuntimeInTime);
        finding.doubts = vec![Doubt::UnrecordedWaker];
        finding.threads_hurt = 1;
        found.push(finding);
    }
}

/// The threads that have slept for a second without a time limit, and for how long at least.
fn asleep<'a>(view: &'a View<'_>) -> impl Iterator<Item = (ThreadId, Seen, u64)> + 'a {
    let asleep = |(id, thread): (ThreadId, &crate::locks::ThreadLocks)| {
        let seen = thread.seen.filter(|seen| seen.is_still == Some(true) && !seen.is_timed)?;
        let for_ns = seen.asleep_ns.map(std::num::NonZeroU64::get).max(view.now.window_ns)?;
        (for_ns >= LATELY_NS).then_some((id, seen, for_ns))
    };
    view.now.present().filter_map(asleep)
}

impl Basis for EndOfRuntime {
    fn about(&self, all: &mut About<'_>) {
        all.thread(self.by.thread, self.by.location);
        all.main(self.by.location, |words| format!("{} ends the runtime here", words.thread(self.by.thread)));
        for call in &self.first {
            all.thread(call.thread, call.location);
            all.other(call.location, |words| {
                format!("{} {} here", words.thread(call.thread), doing(call.doing, 1))
            });
        }
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let at = |fact: &StandingFact| {
            fact.location.map_or_else(String::new, |place| format!(" at {}", words.location(place)))
        };
        let line = |call: &StandingFact| {
            format!("{} {}{}", words.thread(call.thread), doing(call.doing, 1), at(call))
        };
        let ends = format!("{} ends the runtime{}", words.thread(self.by.thread), at(&self.by));
        let mut evidence = vec![ends];
        evidence.extend(self.first.iter().map(line));
        evidence.extend(words.and_more(self.calls - self.first.len()));
        Paragraph {
            summary: format!(
                "a runtime ends, and waits for {} on its pool that {} not return{}",
                counted(self.calls as u64, "call"),
                agree(self.calls, "does", "do"),
                lasting(", for at least ", Some(self.for_ns))
            ),
            evidence,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::findings::Evidence;
    use crate::findings::testing::{SECOND, Scene, seen};

    /// A thread that ends a runtime, and one that runs a call. Both have slept for two seconds.
    fn scene() -> Scene {
        let mut scene = Scene::new();
        for doing in [Doing::WaitsForCalls, Doing::WaitsOutside] {
            let (thread, place) = (scene.thread("thread"), scene.location("main.rs", 1));
            let (asleep_ns, place, worker) =
                (NonZeroU64::new(2 * SECOND), Some(place), Some(Worker::OfCalls));
            scene.model.threads[thread].seen = Some(Seen { worker, asleep_ns, place, ..seen(doing, true) });
        }
        scene
    }

    #[test]
    fn a_runtime_that_waits_for_a_call_that_sleeps_is_found() {
        let found = scene().run(&UnendedCalls);
        let Evidence::EndOfRuntime(end) = &found[0].evidence else { panic!("{found:?}") };
        assert_eq!((end.by.thread, end.calls, end.first[0].thread), (0, 1, 1));
        assert_eq!(
            (found.len(), found[0].kind, found[0].confidence),
            (1, Kind::LongWait, Confidence::Suspected)
        );
    }

    #[test]
    fn a_call_that_goes_on_is_no_finding() {
        type Change = fn(&mut Scene);
        let changes: [(&str, Change); 5] = [
            ("it has slept for a moment", |scene| {
                scene.model.threads[1].seen.as_mut().unwrap().asleep_ns = NonZeroU64::new(SECOND / 2);
            }),
            ("it runs", |scene| scene.model.threads[1].seen.as_mut().unwrap().is_still = Some(false)),
            ("it sleeps for a time", |scene| scene.model.threads[1].seen.as_mut().unwrap().is_timed = true),
            ("it is no call", |scene| scene.model.threads[1].seen.as_mut().unwrap().worker = None),
            ("the runtime does not end", |scene| {
                scene.model.threads[0].seen.as_mut().unwrap().doing = Doing::WaitsInside;
            }),
        ];
        for (what, change) in changes {
            let mut scene = scene();
            change(&mut scene);
            assert!(scene.run(&UnendedCalls).is_empty(), "{what}");
        }
    }
}
