//! What is wrong: one analysis a file, all with the same trait, over the locks and threads of a ring.
//!
//! They take values and give values: no input, no output, no symbols. Text is made in `report`.
//!
//! Adding one touches three locations: its file, the list in [`ANALYSES`], and a scene in its tests. The order of the
//! list matters in one way: what an earlier analysis has explained, a later one does not report again.

mod contention;
mod deadlock;
mod destroyed;
mod double;
mod graph;
mod history;
mod lines;
mod livelock;
mod lock_order;
mod long_hold;
mod lost_owner;
mod pile_up;
mod starvation;
mod suppress;
#[cfg(test)]
mod testing;
mod unlock;
mod unreleased;

pub use suppress::{BadRule, Suppression};

use std::collections::HashSet;

use crate::locations::{Location, LocationId};
use crate::locks::{LockId, LockModel, ThreadId, Wait};
use crate::threads::ThreadState;

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// It may be: a pattern that has other explanations too.
    Suspected,
    /// It can happen: the ingredients were seen, not the accident.
    Potential,
    /// It is so: what was recorded admits nothing else.
    Proven,
}

/// What an analysis looks at.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The ring; of a living process the later of two readings.
    pub now: &'a LockModel,
    /// The earlier reading of a living process. Its lock and thread ids are its own, its locations those of `now`.
    pub before: Option<&'a LockModel>,
    /// The locations that the models name, by their ids.
    pub locations: &'a [&'a Location],
    /// When something counts as long, ns.
    pub threshold_ns: u64,
}

impl View<'_> {
    /// How long ago something was.
    fn ago_ns(&self, since_ns: Option<u64>) -> Option<u64> {
        self.now.now_ns?.checked_sub(since_ns?)
    }

    /// The wait of a thread that can wait: one that is gone does not.
    fn wait(&self, thread: ThreadId) -> Option<&Wait> {
        let thread = &self.now.threads[thread];
        thread.wait.as_ref().filter(|_| thread.state == ThreadState::Present)
    }

    /// Those who wait for a lock and can.
    fn waiters(&self, lock: LockId) -> impl Iterator<Item = &Wait> {
        let waiters = self.now.locks[lock].waiters.iter();
        waiters.filter(|wait| self.now.threads[wait.thread].state == ThreadState::Present)
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The name of this kind, `deadlock` for example: stable, for suppressions and scripts; one of [`kinds`].
    pub kind: &'static str,
    /// How sure it is.
    pub confidence: Confidence,
    /// What, in one sentence that begins small and names threads and locks by evidence below.
    pub summary: Vec<Part>,
    /// Since when, ns since boot, as far as known.
    pub since_ns: Option<u64>,
    /// How many threads suffer; the worst comes first.
    pub threads_hurt: usize,
    /// Why it is so: one line each, in the order of telling.
    pub evidence: Vec<Vec<Part>>,
    /// What cannot be known about it, if that matters.
    pub doubt: Option<String>,
    /// What to do next.
    pub advice: String,
    /// The locks involved.
    pub locks: Vec<LockId>,
    /// The threads involved: those that the evidence names.
    pub threads: Vec<ThreadId>,
    /// The locations involved, for suppressions.
    pub locations: Vec<LocationId>,
}

impl Finding {
    /// A finding whose locks, threads and locations are those that its text names.
    fn new(
        kind: &'static str,
        confidence: Confidence,
        summary: Vec<Part>,
        evidence: Vec<Vec<Part>>,
    ) -> Finding {
        let (mut locks, mut threads, mut locations) = (Vec::new(), Vec::new(), Vec::new());
        for part in summary.iter().chain(evidence.iter().flatten()) {
            match *part {
                Part::Lock(lock) => locks.push(lock),
                Part::Thread(thread) => threads.push(thread),
                Part::Location(location) => locations.push(location),
                Part::Text(_) | Part::Duration(_) | Part::Threads(_) => {}
            }
        }
        for ids in [&mut locks, &mut threads, &mut locations] {
            let mut seen = HashSet::new();
            ids.retain(|&id| seen.insert(id));
        }
        Finding {
            kind,
            confidence,
            summary,
            since_ns: None,
            threads_hurt: threads.len(),
            evidence,
            doubt: None,
            advice: String::new(),
            locks,
            threads,
            locations,
        }
    }
}

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Text as it stands.
    Text(String),
    /// A thread, shown as `name[tid]`.
    Thread(ThreadId),
    /// A lock, shown by name.
    Lock(LockId),
    /// A location, shown as `function file:line`.
    Location(LocationId),
    /// A length of time, ns.
    Duration(u64),
    /// A number of threads.
    Threads(usize),
}

impl From<&str> for Part {
    fn from(text: &str) -> Part {
        Part::Text(text.to_owned())
    }
}

impl From<String> for Part {
    fn from(text: String) -> Part {
        Part::Text(text)
    }
}

/// Makes a sentence: texts and other parts, in a row.
macro_rules! parts {
    ($($part:expr),* $(,)?) => { vec![$($crate::findings::Part::from($part)),*] };
}
use parts;

/// So many more threads.
fn more_threads(count: usize) -> Part {
    Part::Text(format!("{count} more thread{}", if count == 1 { "" } else { "s" }))
}

/// Adds ` <before> DURATION`, if that is known.
fn add_duration(parts: &mut Vec<Part>, before: &str, duration_ns: Option<u64>) {
    if let Some(duration_ns) = duration_ns.filter(|&duration_ns| duration_ns > 0) {
        parts.extend([Part::from(before), Part::Duration(duration_ns)]);
    }
}

/// An analysis.
pub trait Analysis: Sync {
    /// The kinds of findings that it makes, `deadlock` for example.
    fn kinds(&self) -> &'static [&'static str];
    /// Looks, and adds what it finds. What is in `found` already was found by analyses before it in the list.
    fn look(&self, view: &View<'_>, found: &mut Vec<Finding>);
}

/// All analyses, in the order in which they look.
pub const ANALYSES: &[&dyn Analysis] = &[
    &deadlock::Deadlock,
    &unreleased::Unreleased,
    &lost_owner::LostOwner,
    &destroyed::Destroyed,
    &unlock::Unlock,
    &double::Double,
    &lock_order::LockOrder,
    &livelock::Livelock,
    &pile_up::PileUp,
    &long_hold::LongHold,
    &starvation::Starvation,
    &contention::Contention,
    &lines::Lines,
];

/// All kinds of findings.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    ANALYSES.iter().flat_map(|analysis| analysis.kinds().iter().copied())
}

/// Runs all analyses. The worst finding is first: the surest, and among those what hurts most threads.
pub fn look(view: &View<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    ANALYSES.iter().for_each(|analysis| analysis.look(view, &mut found));
    found.sort_by_key(|finding| std::cmp::Reverse((finding.confidence, finding.threads_hurt)));
    found
}

/// The locks of findings of these kinds.
fn locks_of(found: &[Finding], kinds: &[&str]) -> HashSet<LockId> {
    let of_kind = found.iter().filter(|finding| kinds.contains(&finding.kind));
    of_kind.flat_map(|finding| finding.locks.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::testing::Scene;
    use super::*;

    /// A server: each thread has a lock of its own group, one in ten waits for another's, all have histories.
    fn server(threads: usize) -> Scene {
        let mut scene = Scene::new();
        let locks = threads / 4;
        (0..locks).for_each(|at| {
            scene.lock(&format!("SHARD_{at}"));
        });
        for at in 0..threads {
            let thread = scene.thread("worker");
            let (low, high) = ((at * 7) % (locks / 2), locks / 2 + (at * 13) % (locks / 2));
            scene.model.threads[thread].overwritten = 100;
            if at < locks {
                scene.holds(thread, at);
                continue;
            }
            (0..4).for_each(|_| scene.nests(thread, &[low, high]));
            if at % 10 == 0 {
                scene.waits(thread, at % locks);
            }
        }
        scene
    }

    #[test]
    fn a_crowd_of_40_000_threads_takes_no_time() {
        let scene = server(40_000);
        let locations: Vec<&Location> = scene.locations.iter().collect();
        let view = View { now: &scene.model, before: None, locations: &locations, threshold_ns: u64::MAX };
        let began = std::time::Instant::now();
        let found = look(&view);
        let took = began.elapsed();
        println!("{} findings in {took:?}", found.len());
        assert!(
            found.iter().all(|finding| finding.confidence == Confidence::Suspected),
            "it is sound: {found:?}"
        );
        // Unoptimised, beside other tests: a cost that grows with the square would take hours.
        assert!(took.as_secs() < 20, "{took:?}");
    }

    #[test]
    fn kinds_are_names_of_their_own() {
        let mut seen = HashSet::new();
        assert!(kinds().all(|kind| seen.insert(kind)
            && kind.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-')));
    }

    #[test]
    fn the_surest_and_worst_come_first() {
        let mut scene = Scene::new();
        for at in 0..2 {
            scene.thread("worker");
            scene.lock(&format!("LOCK_{at}"));
        }
        for at in 0..2 {
            scene.holds(at, at);
            scene.waits(at, 1 - at);
        }
        let (thread, lock) = (scene.thread("keeps"), scene.lock("KEPT"));
        scene.holds(thread, lock);
        let locations: Vec<&Location> = scene.locations.iter().collect();
        let view = View { now: &scene.model, before: None, locations: &locations, threshold_ns: 1 };
        let found: Vec<_> = look(&view).iter().map(|finding| (finding.confidence, finding.kind)).collect();
        assert_eq!(found, [(Confidence::Proven, "deadlock"), (Confidence::Suspected, "long-hold")]);
    }
}
