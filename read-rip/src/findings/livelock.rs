//! Livelocks: threads that are busy and get nowhere.
//!
//! # Question
//!
//! Which threads do the same few things again and again, because of one another, without any progress?
//!
//! # Method
//!
//! *Polite neighbours.* A thread takes a lock, tries another, fails, releases the first, and begins again. It is a
//! candidate if its known history has at least five such failures, no success in getting a lock while it had one,
//! no mark of progress, and, in a living process, if it went on between the readings. Which lock it failed to get points
//! to the candidates that have or had that lock; a circle of those is a livelock: each is in the way of the next. A
//! thread that fails because of somebody outside the circle waits for work to be done, which is no livelock. Where the
//! program marks progress somewhere the finding is potential, else suspected.
//!
//! *Nobody makes progress.* The program marks progress, but no known history, of either reading, has such a mark,
//! while at least two threads went on among few locations: suspected. That is a non-progress cycle, as in the model
//! checker SPIN, over as much history as there is.
//!
//! # Blind spots
//!
//! A success that was overwritten, or that comes after more rounds than the history holds. Threads without any marks
//! of what they try. Marks of progress that the linker has made one with plain marks: what has passed one of these counts
//! as having made progress.
//!
//! # Example output
//!
//! ```text
//! potential livelock: 4 threads try, fail and step back, again and again
//!     neighbour 0[31] failed 15 times to get FORK_1 at dine polite.rs:40, which neighbour 1[32] takes
//! ```

use std::collections::{BTreeMap, HashMap, HashSet};

use super::graph::Graph;
use super::{Analysis, Confidence, Finding, Part, View, history, more_threads, parts};
use crate::locations::LocationId;
use crate::locks::{LockId, LockModel, StepKind, ThreadId, ThreadLocks};
use crate::threads::ThreadState;

/// See the file's description.
pub(super) struct Livelock;

const KIND: &str = "livelock";
/// So often a thread must fail before that is a habit.
const FAILURES_MIN: usize = 5;
/// A thread that goes round has at least so many steps, among at most so many locations.
const STEPS_MIN: usize = 16;
const PLACES_MAX: usize = 8;
/// As many threads are told of.
const TOLD_MAX: usize = 8;

/// A thread's failures to get a lock while it had another one.
#[derive(Default)]
struct Failures {
    locks: BTreeMap<LockId, (usize, LocationId)>,
}

impl Analysis for Livelock {
    fn kinds(&self) -> &'static [&'static str] {
        &[KIND]
    }

    fn look(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let known = found.len();
        polite(view, found);
        if found.len() == known {
            nobody(view, found);
        }
    }
}

/// Whether a thread went on, as far as that can be told.
fn is_busy(view: &View<'_>, thread: &ThreadLocks) -> bool {
    let moved = match thread.advanced {
        Some(words) => words > 0,
        // Of a dead process there is one reading only: the history must do.
        None => view.now.is_final,
    };
    thread.state == ThreadState::Present && moved && !thread.is_blocked()
}

/// Whether a thread made progress, or may have made it.
fn made_progress(thread: &ThreadLocks) -> bool {
    thread.steps.iter().any(|step| matches!(step.kind, StepKind::Progress | StepKind::Ambiguous))
}

/// The threads that made progress in the earlier reading's histories, by process and thread.
fn progress_before(before: Option<&LockModel>) -> HashSet<(u32, u32)> {
    let threads = before.iter().flat_map(|before| &before.threads).filter(|thread| made_progress(thread));
    threads.map(|thread| (thread.pid, thread.tid)).collect()
}

fn polite(view: &View<'_>, found: &mut Vec<Finding>) {
    let model = view.now;
    let before = progress_before(view.before);
    let mut candidates: HashMap<ThreadId, Failures> = HashMap::new();
    // Candidates that have or had each lock.
    let mut owners: HashMap<LockId, HashSet<ThreadId>> = HashMap::new();
    for (id, thread) in model.threads.iter().enumerate() {
        if !is_busy(view, thread) || made_progress(thread) || before.contains(&(thread.pid, thread.tid)) {
            continue;
        }
        let mut failures = Failures::default();
        let (mut count, mut has_succeeded) = (0, false);
        let mut had: HashSet<LockId> = thread.holds.iter().map(|hold| hold.lock).collect();
        history::replay(thread, |step, held| {
            let Some(lock) = step.lock else { return };
            let has_another = held.iter().any(|held| held.lock != lock);
            if history::is_acquisition(step) {
                had.insert(lock);
                has_succeeded |= has_another;
            } else if step.kind == StepKind::TryFailed && has_another {
                failures.locks.entry(lock).or_insert((0, step.location)).0 += 1;
                count += 1;
            }
        });
        if count >= FAILURES_MIN && !has_succeeded {
            candidates.insert(id, failures);
            for lock in had {
                owners.entry(lock).or_default().insert(id);
            }
        }
    }
    // From each candidate, by way of the lock, to those in its way. Locks are nodes too: that keeps it linear.
    let threads = model.threads.len();
    let mut graph = Graph::new(threads + model.locks.len());
    for (&thread, failures) in &candidates {
        failures.locks.keys().for_each(|&lock| graph.add(thread, threads + lock));
    }
    for (&lock, owners) in &owners {
        owners.iter().for_each(|&owner| graph.add(threads + lock, owner));
    }
    for component in graph.cyclic_components() {
        let members: Vec<ThreadId> = component.iter().copied().filter(|&node| node < threads).collect();
        if members.len() >= 2 {
            found.push(tell_polite(view, &members, &candidates, &owners));
        }
    }
}

fn tell_polite(
    view: &View<'_>,
    members: &[ThreadId],
    candidates: &HashMap<ThreadId, Failures>,
    owners: &HashMap<LockId, HashSet<ThreadId>>,
) -> Finding {
    let summary = parts![Part::Threads(members.len()), " try, fail and step back, again and again"];
    let mut evidence = Vec::new();
    for thread in members.iter().take(TOLD_MAX) {
        let Some((&lock, &(count, location))) =
            candidates[thread].locks.iter().max_by_key(|(_, (count, _))| *count)
        else {
            continue;
        };
        let mut line = parts![
            Part::Thread(*thread),
            format!(" failed {count} times to get "),
            Part::Lock(lock),
            " at ",
            Part::Location(location)
        ];
        let other = members
            .iter()
            .find(|other| *other != thread && owners.get(&lock).is_some_and(|all| all.contains(other)));
        if let Some(&other) = other {
            line.extend(parts![", which ", Part::Thread(other), " takes"]);
        }
        evidence.push(line);
    }
    if members.len() > TOLD_MAX {
        evidence.push(parts!["and ", more_threads(members.len() - TOLD_MAX)]);
    }
    let has_progress = view.now.has_progress_sites;
    evidence.push(parts![if has_progress {
        "none of them made progress, as far as their histories reach"
    } else {
        "none of them got a second lock, as far as their histories reach"
    }]);
    let confidence = if has_progress { Confidence::Potential } else { Confidence::Suspected };
    let mut finding = Finding::new(KIND, confidence, summary, evidence);
    finding.doubt = (!has_progress).then(|| {
        "the program marks no progress: they may do useful work besides; rip_progress!() would tell".into()
    });
    finding.threads_hurt = members.len();
    finding.advice =
        "take both locks in one order and wait for the second, or step back for a random time".into();
    finding
}

fn nobody(view: &View<'_>, found: &mut Vec<Finding>) {
    let model = view.now;
    let any = |model: &LockModel| model.threads.iter().any(made_progress);
    if !model.has_progress_sites || any(model) || view.before.is_some_and(any) {
        return;
    }
    let goes_round = |thread: &ThreadLocks| {
        let locations: HashSet<LocationId> = thread.steps.iter().map(|step| step.location).collect();
        let lines: usize = locations.iter().map(|&location| 1 + view.locations[location].folded.len()).sum();
        let has_moved = thread.advanced.is_none_or(|words| words >= STEPS_MIN as u64);
        let is_long = thread.steps.len() >= STEPS_MIN && thread.overwritten > 0;
        is_busy(view, thread) && is_long && has_moved && lines <= PLACES_MAX
    };
    let members: Vec<ThreadId> =
        (0..model.threads.len()).filter(|&id| goes_round(&model.threads[id])).collect();
    if members.len() < 2 {
        return;
    }
    let summary = parts![Part::Threads(members.len()), " are busy, and no thread made progress"];
    let mut evidence: Vec<Vec<Part>> = Vec::new();
    for &id in members.iter().take(TOLD_MAX) {
        let thread = &model.threads[id];
        let mut line =
            parts![Part::Thread(id), format!(" took {} steps among few locations", thread.steps.len())];
        if let Some(last) = thread.last {
            line.extend(parts![", last ", Part::Location(last)]);
        }
        evidence.push(line);
    }
    let mut finding = Finding::new(KIND, Confidence::Suspected, summary, evidence);
    finding.doubt = Some("marks of progress may have been overwritten by more frequent ones".into());
    finding.threads_hurt = members.len();
    finding.advice =
        "look at what these threads repeat with read-rip -t; what do they wait for from one another?".into();
    found.push(finding);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::Scene;

    /// Neighbours that take the left lock, fail to get the right one, and step back.
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
    fn polite_neighbours_are_told_living_and_dead() {
        for scene in [Scene::new(), Scene::dead()] {
            let mut scene = polite_neighbours(scene, 4, 10);
            let found = scene.look(&Livelock);
            assert_eq!((found.len(), found[0].confidence), (1, Confidence::Suspected));
            assert_eq!(found[0].threads_hurt, 4);
            scene.model.has_progress_sites = true;
            assert_eq!(scene.look(&Livelock)[0].confidence, Confidence::Potential);
        }
    }

    #[test]
    fn a_back_off_that_succeeds_sometimes_is_no_livelock() {
        let mut scene = polite_neighbours(Scene::new(), 2, 10);
        for thread in 0..2 {
            scene.nests(thread, &[thread, 1 - thread]);
        }
        assert!(scene.look(&Livelock).is_empty());
    }

    #[test]
    fn progress_is_no_livelock() {
        let mut scene = polite_neighbours(Scene::new(), 2, 10);
        scene.model.has_progress_sites = true;
        scene.progress(0);
        assert!(scene.look(&Livelock).is_empty(), "with one of two left there is no circle");
        let mut scene = polite_neighbours(Scene::new(), 2, 10);
        let mut before = polite_neighbours(Scene::new(), 2, 10);
        before.progress(1);
        scene.before = Some(before.model);
        assert!(scene.look(&Livelock).is_empty(), "in the earlier reading");
    }

    #[test]
    fn a_few_failures_and_a_thread_that_stands_still_are_no_livelock() {
        assert!(polite_neighbours(Scene::new(), 4, 4).look(&Livelock).is_empty());
        let mut scene = polite_neighbours(Scene::new(), 2, 10);
        scene.model.threads[0].advanced = Some(0);
        assert!(scene.look(&Livelock).is_empty());
    }

    #[test]
    fn trying_a_lock_that_an_outsider_has_is_no_livelock() {
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
        assert!(scene.look(&Livelock).is_empty());
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
        assert!(scene.look(&Livelock).is_empty());
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
        assert!(scene.look(&Livelock).is_empty(), "the program marks no progress");
        scene.model.has_progress_sites = true;
        assert_eq!(scene.look(&Livelock)[0].confidence, Confidence::Suspected);
        scene.locations[location].folded =
            (0..PLACES_MAX as u32).map(|line| ("spin.rs".into(), 10 + line)).collect();
        assert!(scene.look(&Livelock).is_empty(), "they may be many locations");
        scene.locations[location].folded.clear();
        scene.progress(2);
        assert!(scene.look(&Livelock).is_empty(), "a busy loop that makes progress");
        scene.model.threads[2].steps.last_mut().unwrap().kind = StepKind::Ambiguous;
        assert!(scene.look(&Livelock).is_empty(), "a busy loop that may make progress");
    }
}
