//! Busy waits: threads that try to acquire locks again and again, and keep a processor busy.
//!
//! # Question
//!
//! Do threads of a process wait for one another in loops, while nobody else could change anything?
//!
//! # Method
//!
//! Threads run without pause, and all others wait for one another (`running_on`). The stack of a thread that runs says
//! what it called last. If that was a try to acquire a lock, in the same function whenever its stack was
//! looked at, and the code after that call leads back to it, then the thread has called the same again and again, or
//! nothing since. If that holds of two threads or more, they are suspected. Other threads may wait for input or for a
//! time, if they come to no code that may wake a thread or release a lock (`bystanders`).
//!
//! # Blind spots
//!
//! A thread that computes for long in a loop with a try, and has called nothing since that, looks the same. So one
//! thread alone is not suspected. Nor are threads in a call that waits for a spin lock: the owner, which may compute
//! for long under that lock, made the same call last. A loop into which the compiler has put the try itself calls
//! nothing. Which locks they are is not known.
//!
//! # Example output
//!
//! ```text
//! suspected livelock: 2 threads try to acquire locks without pause, and the only other one waits for a thread, for at
//!     least 12.0 s
//!     saver[12] tries a lock at transfer bank.c:40, in a loop
//!     spender[13] tries a lock at transfer bank.c:40, in a loop
//! ```

use read_rip_evidence::waits::Trying;
use serde::Serialize;

use super::nobody_left::is_explained;
use super::running_on::RunningOn;
use super::words::lasting;
use super::{About, Advice, Analysis, Basis, Confidence, Doubt, Finding, Kind, Paragraph, View, Words};
use crate::locations::LocationId;
use crate::locks::{LockModel, Seen, ThreadId};

/// See the file's description.
pub(super) struct BusyWaiting;

/// At most this many threads are listed.
const LISTED_MAX: usize = 8;

/// Threads that try to acquire locks without pause, in a process in which all others wait for one another.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BusyWaits {
    /// How many threads.
    pub threads: usize,
    /// How many other threads run without pause, and did not try a lock last.
    pub also_running: usize,
    /// How many other threads wait for one another.
    pub others: usize,
    /// For how long all of this has lasted, ns, at least.
    pub for_ns: u64,
    /// The first of the threads.
    pub first: Vec<BusyWait>,
}

/// A thread that tries to acquire a lock without pause.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BusyWait {
    /// The thread.
    pub thread: ThreadId,
    /// Where it does that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationId>,
}

impl BusyWait {
    fn of(thread: ThreadId, model: &LockModel) -> Option<BusyWait> {
        let last = model.last_calls.get(&thread)?;
        (last.trying? == Trying::TryLock).then_some(BusyWait { thread, location: last.location })
    }
}

impl Analysis for BusyWaiting {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        if is_explained(found) || found.iter().any(|finding| finding.kind == Kind::Livelock) {
            return;
        }
        let wakes_nobody = |seen: &Seen| seen.wakes_nobody && seen.doing.is_outside();
        let Some(running) = RunningOn::beside(view, wakes_nobody) else { return };
        let waits = view.now.present().filter_map(|(id, _)| BusyWait::of(id, view.now));
        let mut waits: Vec<BusyWait> = waits.collect();
        if waits.len() < 2 {
            return;
        }
        let threads = waits.len();
        waits.truncate(LISTED_MAX);
        let evidence = BusyWaits {
            threads,
            also_running: running.threads.saturating_sub(threads),
            others: running.others,
            for_ns: running.for_ns,
            first: waits,
        };
        let mut finding =
            Finding::new(Kind::Livelock, Confidence::Suspected, evidence, Advice::WaitOrBackOff);
        finding.doubts = vec![Doubt::MayCompute];
        finding.threads_hurt = running.threads + running.others;
        found.push(finding);
    }
}

impl Basis for BusyWaits {
    fn about(&self, all: &mut About<'_>) {
        for wait in &self.first {
            all.thread(wait.thread, wait.location);
            all.main(wait.location, |words| format!("{} tries a lock here", words.thread(wait.thread)));
        }
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let others = match self.others {
            0 => String::new(),
            1 => ", and the only thread that does not run waits for a thread".to_owned(),
            others => format!(", and {others} others wait for one another"),
        };
        let also = match self.also_running {
            0 => String::new(),
            also => format!(", {} without pause", words.more_threads(also).replacen(" more", " more run", 1)),
        };
        let lasted = lasting(", for at least ", Some(self.for_ns));
        let line = |wait: &BusyWait| {
            let at = wait.location.map_or_else(String::new, |at| format!(" at {}", words.location(at)));
            format!("{} tries a lock{at}, in a loop", words.thread(wait.thread))
        };
        let mut evidence: Vec<String> = self.first.iter().map(line).collect();
        evidence.extend(words.and_more(self.threads.saturating_sub(self.first.len())));
        let threads = words.threads(self.threads);
        Paragraph {
            summary: format!("{threads} try to acquire locks without pause{also}{others}{lasted}"),
            evidence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Evidence;
    use crate::findings::testing::{SECOND, Scene, seen};
    use crate::locks::{Doing, LastCall};

    /// A thread that waits for the end of another one, and threads that run without pause and called this last.
    fn scene(calls: &[Option<Trying>]) -> Scene {
        let mut scene = Scene::new();
        let main = scene.thread("main");
        let asleep_ns = std::num::NonZeroU64::new(2 * SECOND);
        scene.model.threads[main].seen = Some(Seen { asleep_ns, ..seen(Doing::WaitsForThread, true) });
        for &trying in calls {
            let (id, place) = (scene.thread("spins"), scene.location("bank.c", 40));
            let runs = seen(Doing::Runs, false);
            scene.model.threads[id].seen = Some(Seen { runs_on: true, ..runs });
            scene.model.last_calls.insert(id, LastCall { location: Some(place), trying });
        }
        scene
    }

    #[test]
    fn two_threads_that_try_locks_without_pause_are_suspected() {
        let scene = scene(&[Some(Trying::TryLock), Some(Trying::TryLock), None]);
        let [finding] = &scene.run(&BusyWaiting)[..] else { panic!("one finding") };
        assert_eq!((finding.kind, finding.confidence), (Kind::Livelock, Confidence::Suspected));
        assert_eq!((&finding.doubts[..], finding.threads_hurt), (&[Doubt::MayCompute][..], 4));
        let Evidence::BusyWaits(waits) = &finding.evidence else { panic!("{finding:?}") };
        assert_eq!((waits.threads, waits.also_running, waits.others, waits.for_ns), (2, 1, 1, 2 * SECOND));
    }

    #[test]
    fn threads_that_may_compute_are_not() {
        for calls in [
            &[None, None][..],
            &[Some(Trying::TryLock), None],
            &[Some(Trying::SpinLock), Some(Trying::SpinLock)],
            &[Some(Trying::Yield), Some(Trying::Yield)],
        ] {
            assert!(scene(calls).run(&BusyWaiting).is_empty(), "{calls:?}");
        }
        let mut scene = scene(&[Some(Trying::TryLock), Some(Trying::TryLock)]);
        assert_eq!(scene.run(&BusyWaiting).len(), 1);
        scene.model.threads[0].seen = Some(seen(Doing::WaitsOutside, true));
        assert!(scene.run(&BusyWaiting).is_empty(), "something may come from outside");
        scene.model.threads[0].seen.as_mut().unwrap().wakes_nobody = true;
        assert_eq!(scene.run(&BusyWaiting).len(), 1, "that releases no lock");
    }
}
