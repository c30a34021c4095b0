//! Livelocks: threads that are busy and make no progress.
//!
//! # Question
//!
//! Which threads repeat the same few actions because of one another, and make no progress?
//!
//! # Method
//!
//! *Polite neighbours.* A thread acquires a lock, tries another one, fails, releases the first, and begins again.
//! It is a candidate if its known history has at least five such failures, or three if older
//! ones were overwritten, no acquisition while it held another
//! lock, no mark of progress, and, in a living process, if it recorded something between the readings. The lock that it
//! failed to acquire leads to the candidates that hold or held that lock. A cycle of such threads is a livelock: each
//! makes the previous one fail. A thread that fails because of a thread outside the cycle waits for work to be done,
//! which is no livelock. Where the program has marks of progress the finding is potential, otherwise suspected.
//!
//! *No progress anywhere.* The program has marks of progress. No known history, of either reading, contains one,
//! while at least two threads recorded marks at few locations: suspected. That is a non-progress cycle, as in the
//! model checker SPIN, over as much history as there is.
//!
//! # Blind spots
//!
//! A success that was overwritten, or that comes after more rounds than the history holds, is missed. So are tries
//! without marks. Marks of progress that the linker has folded with plain marks: a thread that passed one of them
//! counts as having made progress.
//!
//! # Example output
//!
//! ```text
//! potential livelock: 4 threads try, fail and step back repeatedly
//!     neighbour 0[31] failed 15 times to acquire FORK_1 at dine polite.rs:40, which neighbour 1[32] acquires
//! ```

use std::collections::BTreeMap;

use foldhash::{HashMap, HashSet};
use serde::Serialize;

use super::graph::{Edge, Graph};
use super::{
    About, Advice, Analysis, Basis, Confidence, Doubt, Finding, Kind, Paragraph, View, Words, history,
};
use crate::locations::LocationId;
use crate::locks::{LockId, LockModel, StepKind, ThreadId, ThreadLocks};
use crate::threads::ThreadState;

/// See the file's description.
pub(super) struct Livelock;

/// Minimum number of failures.
const FAILURES_MIN: usize = 5;
/// The same for a history whose beginning is overwritten: what is left may be short.
const FAILURES_OF_CUT_MIN: usize = 3;
/// A thread in a busy loop has at least this many steps, at no more than this many locations.
const STEPS_MIN: usize = 16;
const LOCATIONS_MAX: usize = 8;
/// At most this many threads are listed.
const LISTED_MAX: usize = 8;

/// For each lock that a thread failed to acquire while it held another one: how often, and where first.
type Failures = BTreeMap<LockId, (usize, LocationId)>;

/// Threads that each fail to acquire what another of them holds, step back, and try again.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MutualFailure {
    /// How many threads.
    pub threads: usize,
    /// The first of them.
    pub tries: Vec<FailedTries>,
    /// The program marks progress, and none of these threads made any.
    #[serde(rename = "progress_marked")]
    pub is_progress_marked: bool,
}

/// A thread's tries to acquire a lock while it held another one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailedTries {
    /// The thread.
    pub thread: ThreadId,
    /// How many tries failed.
    pub count: usize,
    /// The lock.
    pub lock: LockId,
    /// Where the thread tries.
    pub location: LocationId,
    /// Another of the threads, which acquires this lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<ThreadId>,
}

/// Busy threads without any mark of progress.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BusyLoops {
    /// How many threads.
    pub threads: usize,
    /// The first of them.
    pub loops: Vec<BusyLoop>,
}

/// A thread that repeatedly passes the same few locations.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BusyLoop {
    /// The thread.
    pub thread: ThreadId,
    /// How many marks of it are known.
    pub marks: usize,
    /// Where it was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LocationId>,
}

impl Analysis for Livelock {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let known = found.len();
        find_polite(view, found);
        if found.len() == known {
            find_no_progress(view, found);
        }
    }
}

/// Whether a thread recorded something, as far as that is known.
fn is_busy(view: &View<'_>, thread: &ThreadLocks) -> bool {
    let moved = match thread.advanced {
        Some(words) => words > 0,
        // Of a dead process there is only one reading: its history decides.
        None => view.now.is_final,
    };
    thread.state == ThreadState::Present && moved && !thread.is_blocked()
}

/// Whether a thread made progress, or may have made it.
fn made_progress(thread: &ThreadLocks) -> bool {
    thread.steps.locations().any(|(kind, _)| kind.may_be_progress())
}

/// The threads that made progress in the histories of the earlier reading, by process and thread id.
fn progress_before(before: Option<&LockModel>) -> HashSet<(u32, u32)> {
    let threads = before.iter().flat_map(|before| &before.threads).filter(|thread| made_progress(thread));
    threads.map(|thread| (thread.pid, thread.tid)).collect()
}

/// Threads that try and fail, and the locks that they held.
#[derive(Default)]
struct Candidates {
    failures: HashMap<ThreadId, Failures>,
    /// The candidates that hold or held each lock.
    owners: HashMap<LockId, HashSet<ThreadId>>,
}

impl Candidates {
    fn of(view: &View<'_>) -> Candidates {
        let before = progress_before(view.before);
        let mut candidates = Candidates::default();
        for (id, thread) in view.now.threads.iter().enumerate().filter(|&(id, _)| view.is_nesting(id)) {
            let has_progress = made_progress(thread) || before.contains(&(thread.pid, thread.tid));
            if is_busy(view, thread) && !has_progress {
                candidates.add(id, thread);
            }
        }
        candidates
    }

    /// Adds a thread if it tries and fails.
    fn add(&mut self, id: ThreadId, thread: &ThreadLocks) {
        let mut failures = Failures::new();
        let (mut count, mut has_succeeded) = (0, false);
        let mut owned: HashSet<LockId> = thread.holds.iter().map(|hold| hold.lock).collect();
        history::replay(thread, |step, held| {
            let Some(lock) = step.lock else { return };
            let holds_another = held.iter().any(|held| held.lock != lock);
            if history::is_acquisition(step) {
                owned.insert(lock);
                has_succeeded |= holds_another;
            } else if step.kind == StepKind::TryFailed && holds_another {
                failures.entry(lock).or_insert((0, step.location)).0 += 1;
                count += 1;
            }
        });
        let min = if thread.overwritten > 0 { FAILURES_OF_CUT_MIN } else { FAILURES_MIN };
        if count >= min && !has_succeeded {
            self.failures.insert(id, failures);
            for lock in owned {
                self.owners.entry(lock).or_default().insert(id);
            }
        }
    }

    /// The groups of threads that make one another fail.
    fn cycles(&self, model: &LockModel) -> Vec<Vec<ThreadId>> {
        // Edges from each thread to the locks that it failed to acquire, and from each lock to its owners. With locks
        // as nodes, the number of edges grows linearly.
        let threads = model.threads.len();
        let mut edges: Vec<Edge> = Vec::new();
        for (&thread, failures) in &self.failures {
            edges.extend(failures.keys().map(|&lock| (thread, threads + lock)));
        }
        for (&lock, owners) in &self.owners {
            edges.extend(owners.iter().map(|&owner| (threads + lock, owner)));
        }
        let graph = Graph::new(threads + model.locks.len(), &edges);
        let members = |component: Vec<usize>| -> Vec<ThreadId> {
            component.into_iter().filter(|&node| node < threads).collect()
        };
        let components = graph.cyclic_components().into_iter().map(members);
        components.filter(|members| members.len() >= 2).collect()
    }

    /// The lock that a thread failed to acquire most often.
    fn tries(&self, thread: ThreadId, members: &[ThreadId]) -> Option<FailedTries> {
        let (&lock, &(count, location)) =
            self.failures[&thread].iter().max_by_key(|(_, (count, _))| *count)?;
        let owners = self.owners.get(&lock);
        let is_owner = |other: &&ThreadId| owners.is_some_and(|owners| owners.contains(other));
        let other = members.iter().filter(|other| **other != thread).find(is_owner).copied();
        Some(FailedTries { thread, count, lock, location, other })
    }
}

fn find_polite(view: &View<'_>, found: &mut Vec<Finding>) {
    let candidates = Candidates::of(view);
    for members in candidates.cycles(view.now) {
        let listed = members.iter().take(LISTED_MAX);
        let is_progress_marked = view.now.has_progress_sites;
        let evidence = MutualFailure {
            threads: members.len(),
            tries: listed.filter_map(|&thread| candidates.tries(thread, &members)).collect(),
            is_progress_marked,
        };
        let confidence = if is_progress_marked { Confidence::Potential } else { Confidence::Suspected };
        let mut finding = Finding::new(Kind::Livelock, confidence, evidence, Advice::WaitOrBackOff);
        finding.doubts.extend((!is_progress_marked).then_some(Doubt::NoProgressMarks));
        finding.threads_hurt = members.len();
        found.push(finding);
    }
}

fn find_no_progress(view: &View<'_>, found: &mut Vec<Finding>) {
    let model = view.now;
    let any = |model: &LockModel| model.threads.iter().any(made_progress);
    if !model.has_progress_sites || any(model) || view.before.is_some_and(any) {
        return;
    }
    let in_loop = |thread: &ThreadLocks| {
        let locations: HashSet<LocationId> = thread.steps.iter().map(|step| step.location).collect();
        let lines: usize = locations.iter().map(|&location| 1 + view.locations[location].folded.len()).sum();
        let has_moved = thread.advanced.is_none_or(|words| words >= STEPS_MIN as u64);
        let is_long = thread.steps.len() >= STEPS_MIN && thread.overwritten > 0;
        is_busy(view, thread) && is_long && has_moved && lines <= LOCATIONS_MAX
    };
    let members: Vec<ThreadId> = (0..model.threads.len()).filter(|&id| in_loop(&model.threads[id])).collect();
    if members.len() < 2 {
        return;
    }
    let listed = members.iter().take(LISTED_MAX).map(|&id| {
        let thread = &model.threads[id];
        BusyLoop { thread: id, marks: thread.steps.len(), last: thread.last }
    });
    let evidence = BusyLoops { threads: members.len(), loops: listed.collect() };
    let mut finding = Finding::new(Kind::Livelock, Confidence::Suspected, evidence, Advice::CheckLoops);
    finding.doubts = vec![Doubt::ProgressOverwritten];
    finding.threads_hurt = members.len();
    found.push(finding);
}

impl Basis for MutualFailure {
    fn about(&self, all: &mut About<'_>) {
        for tries in &self.tries {
            all.thread_and_lock(tries.thread, tries.lock, [tries.location]);
            all.mentions.threads.extend(tries.other);
            all.main(tries.location, |words| {
                let (thread, lock) = (words.thread(tries.thread), words.short_lock(tries.lock));
                format!("{thread} fails to acquire {lock} here")
            });
        }
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let mut evidence = Vec::new();
        for tries in &self.tries {
            let (thread, lock) = (words.thread(tries.thread), words.lock(tries.lock));
            let (count, location) = (tries.count, words.location(tries.location));
            let other = tries.other.map(|other| format!(", which {} acquires", words.thread(other)));
            let other = other.unwrap_or_default();
            evidence.push(format!("{thread} failed {count} times to acquire {lock} at {location}{other}"));
        }
        evidence.extend(words.and_more(self.threads.saturating_sub(self.tries.len())));
        let achieved = if self.is_progress_marked { "made progress" } else { "acquired a second lock" };
        evidence.push(format!("as far as the histories reach, no thread {achieved}"));
        let summary = format!("{} try, fail and step back repeatedly", words.threads(self.threads));
        Paragraph { summary, evidence }
    }
}

impl Basis for BusyLoops {
    fn about(&self, all: &mut About<'_>) {
        self.loops.iter().for_each(|one| all.last(one.thread, one.last));
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let line = |one: &BusyLoop| {
            let last = one.last.map(|last| format!(", last {}", words.location(last)));
            let thread = words.thread(one.thread);
            format!("{thread} passed {} marks at few locations{}", one.marks, last.unwrap_or_default())
        };
        let mut evidence: Vec<String> = self.loops.iter().map(line).collect();
        evidence.extend(words.and_more(self.threads.saturating_sub(self.loops.len())));
        let summary = format!("{} are busy, and no thread made progress", words.threads(self.threads));
        Paragraph { summary, evidence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::Scene;

    /// Neighbours that acquire the left lock, fail to acquire the right one, and step back.
    fn polite_neighbours(mut scene: Scene, threads: usize, rounds: usize) -> Scene {
        for at in 0..threads {
            scene.thread(&format!("neighbour {at}"));
            scene.lock(&format!("FORK_{at}"));
        }
        for at in 0..threads {
            for _ in 0..rounds {
                scene.step(at, StepKind::AcquireBegin, at).is_try = true;
                scene.step(at, StepKind::TryFailed, (at + 1) % threads).is_try = true;
                scene.step(at, StepKind::Released, at);
            }
            if !scene.model.is_final {
                scene.model.threads[at].advanced = Some(90);
            }
        }
        scene
    }

    #[test]
    fn polite_neighbours_are_found_living_and_dead() {
        for scene in [Scene::new(), Scene::dead()] {
            let mut scene = polite_neighbours(scene, 4, 10);
            let found = scene.run(&Livelock);
            assert_eq!((found.len(), found[0].confidence), (1, Confidence::Suspected));
            assert_eq!(found[0].threads_hurt, 4);
            scene.model.has_progress_sites = true;
            assert_eq!(scene.run(&Livelock)[0].confidence, Confidence::Potential);
        }
    }

    #[test]
    fn a_back_off_that_succeeds_sometimes_is_no_livelock() {
        let mut scene = polite_neighbours(Scene::new(), 2, 10);
        for thread in 0..2 {
            scene.nests(thread, &[thread, 1 - thread]);
        }
        assert!(scene.run(&Livelock).is_empty());
    }

    #[test]
    fn progress_is_no_livelock() {
        let mut scene = polite_neighbours(Scene::new(), 2, 10);
        scene.model.has_progress_sites = true;
        scene.progress(0);
        assert!(scene.run(&Livelock).is_empty(), "with one of two left there is no cycle");
        let mut scene = polite_neighbours(Scene::new(), 2, 10);
        let mut before = polite_neighbours(Scene::new(), 2, 10);
        before.progress(1);
        scene.before = Some(before.model);
        assert!(scene.run(&Livelock).is_empty(), "in the earlier reading");
    }

    #[test]
    fn a_few_failures_and_a_thread_that_stands_still_are_no_livelock() {
        assert!(polite_neighbours(Scene::new(), 4, 4).run(&Livelock).is_empty());
        let mut cut = polite_neighbours(Scene::new(), 4, 3);
        cut.model.threads.iter_mut().for_each(|thread| thread.overwritten = 1000);
        assert_eq!(cut.run(&Livelock).len(), 1, "a short history, all of which is failures");
        let mut scene = polite_neighbours(Scene::new(), 2, 10);
        scene.model.threads[0].advanced = Some(0);
        assert!(scene.run(&Livelock).is_empty());
    }

    #[test]
    fn trying_a_lock_that_an_outsider_holds_is_no_livelock() {
        let mut scene = Scene::new();
        let (owner, lock, own) = (scene.thread("owner"), scene.lock("BUSY"), scene.lock("OWN"));
        scene.holds(owner, lock);
        for at in 0..2 {
            let thread = scene.thread("tries");
            for _ in 0..10 {
                scene.step(thread, StepKind::AcquireBegin, own);
                scene.step(thread, StepKind::TryFailed, lock);
                scene.step(thread, StepKind::Released, own);
            }
            scene.model.threads[thread].advanced = Some(90 + at);
        }
        assert!(scene.run(&Livelock).is_empty());
    }

    #[test]
    fn an_idle_pool_and_healthy_workers_are_no_livelock() {
        let mut scene = Scene::new();
        let lock = scene.lock("QUEUE");
        for at in 0..10 {
            let thread = scene.thread("worker");
            for _ in 0..10 {
                scene.nests(thread, &[lock]);
            }
            scene.model.threads[thread].advanced = Some(if at < 5 { 0 } else { 500 });
            scene.model.threads[thread].overwritten = 1000;
        }
        assert!(scene.run(&Livelock).is_empty());
    }

    #[test]
    fn busy_threads_without_any_progress_are_suspected_where_progress_is_marked() {
        let mut scene = Scene::new();
        let location = scene.location("spin.rs", 3);
        for _ in 0..3 {
            let thread = scene.thread("spins");
            (0..20).for_each(|_| scene.snap(thread, location));
            (scene.model.threads[thread].advanced, scene.model.threads[thread].overwritten) =
                (Some(400), 1000);
        }
        assert!(scene.run(&Livelock).is_empty(), "the program marks no progress");
        scene.model.has_progress_sites = true;
        assert_eq!(scene.run(&Livelock)[0].confidence, Confidence::Suspected);
        scene.locations[location].folded =
            (0..LOCATIONS_MAX as u32).map(|line| ("spin.rs".into(), 10 + line)).collect();
        assert!(scene.run(&Livelock).is_empty(), "they may be many locations");
        scene.locations[location].folded.clear();
        scene.progress(2);
        assert!(scene.run(&Livelock).is_empty(), "a busy loop that makes progress");
        scene.steps(2).last_mut().unwrap().kind = StepKind::Ambiguous;
        assert!(scene.run(&Livelock).is_empty(), "a busy loop that may make progress");
    }
}
