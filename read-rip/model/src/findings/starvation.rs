//! Starvation: a thread waits while others repeatedly acquire the lock.
//!
//! # Question
//!
//! Which threads wait for a lock while threads that came later acquire it many times?
//!
//! # Method
//!
//! For each wait with a known beginning, this analysis counts the acquisitions of the lock whose attempt began
//! later: those threads have overtaken the wait. Acquisitions by threads that were in the queue before do not
//! count: a long queue that is served in order starves no thread. From sixteen overtakes and 100 ms on, the finding
//! is suspected. All threads that starve at one lock are one finding.
//!
//! Most acquisitions have no time. Two things are known of them all the same: an acquisition is later than what its
//! thread recorded before, and what a thread recorded between two readings is later than a wait that both show. So a
//! writer that waits while readers come and go is found without their times. Other waits need times: threads that queue
//! for an unfair lock all overtake one another now and then, which is a convoy.
//!
//! A lock that one thread keeps without recording anything is left out, unless other threads acquired it between the
//! readings: nobody overtakes anybody now.
//!
//! # Blind spots
//!
//! Overwritten acquisitions are gone, and of a dead process there is one reading: the count is a lower bound.
//!
//! # Example output
//!
//! ```text
//! suspected starvation: 1 thread waits for TABLE while others overtake it
//!     writer[12] waits for it at update table.rs:30, for 20 s; threads that came later acquired it at least 48 times
//! ```

use serde::Serialize;

use super::finding::locks_of;
use super::{About, Advice, Analysis, Basis, Confidence, Finding, Kind, Paragraph, View, WaitFact, Words};
use crate::locks::{Hold, LockId, LockModel, StepKind, ThreadLocks, Wait};
use crate::units::agree;

/// See the file's description.
pub(super) struct Starvation;

/// Minimum number of overtakes.
const OVERTAKES_MIN: usize = 16;
/// Minimum length of the wait, ns.
const WAIT_MIN_NS: u64 = 100_000_000;
/// At most this many threads are listed.
const LISTED_MAX: usize = 5;

/// Threads that wait for a lock while others overtake them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overtaken {
    /// The lock.
    pub lock: LockId,
    /// How many threads.
    pub threads: usize,
    /// The first of them: those that were overtaken most often.
    pub first: Vec<OvertakenWait>,
}

/// A wait, and how often other threads overtook it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OvertakenWait {
    /// The wait.
    pub wait: WaitFact,
    /// How often at least a thread that came later acquired the lock.
    pub overtakes: usize,
}

impl Analysis for Starvation {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let model = view.now;
        let explained =
            locks_of(found, &[Kind::Deadlock, Kind::Futurelock, Kind::Unreleased, Kind::LostOwner]);
        let is_wanted = |lock: LockId| !model.locks[lock].waiters.is_empty() && !explained.contains(&lock);
        let attempts = successful_attempts(model, is_wanted);
        for lock in (0..model.locks.len()).filter(|&lock| is_wanted(lock)) {
            let Attempts { began_ns, read_after_ns, recent } = &attempts[lock];
            if *recent == 0 && stands_still(view, lock) {
                continue;
            }
            let overtakes = |wait: &Wait| {
                let since_ns = wait.since_ns?;
                view.ago_ns(Some(since_ns)).filter(|&waited_ns| waited_ns >= WAIT_MIN_NS)?;
                let later = |began_ns: &[u64]| {
                    began_ns.len() - began_ns.partition_point(|&began_ns| began_ns <= since_ns)
                };
                let recent = if wait.is_steady && !model.is_final { *recent } else { 0 };
                let reads = if wait.is_shared { 0 } else { later(read_after_ns) + recent };
                let later = later(began_ns) + reads;
                (later >= OVERTAKES_MIN).then_some(later)
            };
            let mut starved: Vec<(&Wait, usize)> =
                view.waits(lock).filter_map(|wait| Some((wait, overtakes(wait)?))).collect();
            starved.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
            if !starved.is_empty() {
                found.push(finding(view, lock, &starved));
            }
        }
    }
}

/// Whether one thread keeps a lock of a living process and does nothing: then nobody overtakes anybody now.
fn stands_still(view: &View<'_>, lock: LockId) -> bool {
    let keeps = |hold: &Hold| hold.is_steady && view.now.threads[hold.thread].advanced == Some(0);
    !view.now.is_final && view.now.locks[lock].holders.iter().any(keeps)
}

/// The attempts that acquired a lock.
#[derive(Clone, Default)]
struct Attempts {
    /// When those began that have a time, ns since boot, ascending.
    began_ns: Vec<u64>,
    /// Of readers without a time: what they began after, ns since boot, ascending.
    read_after_ns: Vec<u64>,
    /// How many more readers there were between the two readings of a living process.
    recent: usize,
}

/// A thread may be about to write the last words that it has reserved: so many are not taken for recent ones.
const RESERVED_WORDS_MAX: u64 = 8;

/// The known attempts for each wanted lock.
fn successful_attempts(model: &LockModel, is_wanted: impl Fn(LockId) -> bool) -> Vec<Attempts> {
    let mut attempts = vec![Attempts::default(); model.locks.len()];
    for thread in &model.threads {
        let mut begun: Option<(LockId, u64)> = None;
        // What the thread recorded last has at least this time.
        let mut latest_ns: Option<u64> = None;
        let recent_from = recent_from(thread);
        for step in &thread.steps {
            let before_ns = latest_ns;
            latest_ns = latest_ns.max(step.time_ns);
            let Some(lock) = step.lock.filter(|&lock| is_wanted(lock)) else { continue };
            match step.kind {
                StepKind::Wait => begun = step.time_ns.map(|time_ns| (lock, time_ns)),
                StepKind::Acquired | StepKind::AcquireBegin => {
                    let waited = begun.take().filter(|&(waited, _)| waited == lock);
                    let began_ns = waited.map(|(_, time_ns)| time_ns).or(step.time_ns);
                    // The thread has not acquired a lock that it still waits for.
                    let is_pending =
                        thread.wait.is_some_and(|wait| wait.lock == lock && wait.since_ns <= step.time_ns);
                    if is_pending {
                        continue;
                    }
                    let attempts = &mut attempts[lock];
                    attempts.began_ns.extend(began_ns);
                    if began_ns.is_some() || !step.is_shared {
                        continue;
                    }
                    if recent_from.is_some_and(|from| step.sequence >= from) {
                        attempts.recent += 1;
                    } else {
                        attempts.read_after_ns.extend(before_ns);
                    }
                }
                _ => {}
            }
        }
    }
    for Attempts { began_ns, read_after_ns, .. } in &mut attempts {
        began_ns.sort_unstable();
        read_after_ns.sort_unstable();
    }
    attempts
}

/// The first sequence that a thread certainly recorded after the earlier reading; `None` if there was one reading.
fn recent_from(thread: &ThreadLocks) -> Option<u64> {
    let last = thread.steps.iter().last()?.sequence;
    Some(last.saturating_sub(thread.advanced?) + RESERVED_WORDS_MAX)
}

fn finding(view: &View<'_>, lock: LockId, starved: &[(&Wait, usize)]) -> Finding {
    let listed = starved.iter().take(LISTED_MAX);
    let evidence = Overtaken {
        lock,
        threads: starved.len(),
        first: listed
            .map(|&(wait, overtakes)| OvertakenWait { wait: view.wait_fact(wait), overtakes })
            .collect(),
    };
    let mut finding = Finding::new(Kind::Starvation, Confidence::Suspected, evidence, Advice::FairLock);
    finding.since_ns = starved.iter().filter_map(|(wait, _)| wait.since_ns).min();
    finding.threads_hurt = starved.len();
    finding
}

impl Basis for Overtaken {
    fn about(&self, all: &mut About<'_>) {
        all.lock(self.lock);
        all.waits(self.first.iter().map(|one| &one.wait));
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let count = self.threads;
        let summary = format!(
            "{} {} for {} while others overtake {}",
            words.threads(count),
            agree(count, "waits", "wait"),
            words.lock(self.lock),
            agree(count, "it", "them")
        );
        let line = |OvertakenWait { wait, overtakes }: &OvertakenWait| {
            format!(
                "{} waits for it at {}{}; threads that came later acquired it at least {overtakes} times",
                words.thread(wait.thread),
                words.location(wait.location),
                words.lasting(", for ", wait.for_ns)
            )
        };
        let mut evidence: Vec<String> = self.first.iter().map(line).collect();
        evidence.extend(words.and_more(count.saturating_sub(self.first.len())));
        Paragraph { summary, evidence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{MILLISECOND, NOW, SECOND, Scene};

    /// A thread has waited for 12 s. Another one acquired the lock `turns` times, from `began_ns` on.
    fn scene(turns: u64, began_ns: u64) -> Scene {
        let mut scene = Scene::new();
        let (starved, other, lock) = (scene.thread("starved"), scene.thread("other"), scene.lock("TABLE"));
        scene.waits(starved, lock);
        for turn in 0..turns {
            let time_ns = Some(began_ns + turn * MILLISECOND);
            scene.step(other, StepKind::AcquireBegin, lock).time_ns = time_ns;
            scene.step(other, StepKind::Released, lock).time_ns = time_ns;
        }
        scene
    }

    #[test]
    fn a_thread_that_is_overtaken_repeatedly_starves() {
        let found = scene(20, NOW - SECOND).run(&Starvation);
        assert_eq!((found.len(), found[0].confidence), (1, Confidence::Suspected));
        assert!(scene(15, NOW - SECOND).run(&Starvation).is_empty(), "not often enough");
        assert!(scene(20, NOW - 20 * SECOND).run(&Starvation).is_empty(), "before it came");
    }

    #[test]
    fn a_long_queue_in_order_starves_no_thread() {
        let mut scene = Scene::new();
        let (last, lock) = (scene.thread("last"), scene.lock("TABLE"));
        scene.waits(last, lock);
        for at in 0..100 {
            let thread = scene.thread("before");
            scene.step(thread, StepKind::Wait, lock).time_ns = Some(NOW - 13 * SECOND);
            scene.step(thread, StepKind::Acquired, lock).time_ns = Some(NOW - SECOND + at * MILLISECOND);
        }
        assert!(scene.run(&Starvation).is_empty());
    }

    #[test]
    fn what_was_acquired_between_two_readings_is_later_than_a_wait_that_both_show() {
        let mut scene = scene(20, NOW - SECOND);
        scene.steps(1).iter_mut().for_each(|step| step.time_ns = None);
        scene.model.threads[1].advanced = Some(40 + RESERVED_WORDS_MAX);
        assert!(scene.run(&Starvation).is_empty(), "a convoy");
        scene.steps(1).iter_mut().for_each(|step| step.is_shared = true);
        assert_eq!(scene.run(&Starvation).len(), 1);
        scene.model.threads[1].advanced = Some(20);
        assert!(scene.run(&Starvation).is_empty(), "most of it was before");
        scene.model.threads[1].advanced = Some(40 + RESERVED_WORDS_MAX);
        scene.model.locks[0].waiters[0].is_steady = false;
        assert!(scene.run(&Starvation).is_empty(), "the wait may have begun between the readings");
    }

    #[test]
    fn what_a_thread_acquires_is_later_than_what_it_recorded_before() {
        let mut scene = Scene::dead();
        let (starved, other, lock) = (scene.thread("starved"), scene.thread("other"), scene.lock("TABLE"));
        scene.waits(starved, lock);
        scene.step(other, StepKind::Released, lock).time_ns = Some(NOW - SECOND);
        (0..20).for_each(|_| scene.nests(other, &[lock]));
        for step in scene.steps(other)[1..].iter_mut() {
            (step.time_ns, step.is_shared) = (None, true);
        }
        assert_eq!(scene.run(&Starvation).len(), 1);
        scene.steps(other)[0].time_ns = Some(NOW - 13 * SECOND);
        assert!(scene.run(&Starvation).is_empty(), "before the wait began");
    }

    #[test]
    fn without_times_nothing_is_claimed() {
        let mut scene = scene(20, NOW - SECOND);
        scene.steps(1).iter_mut().for_each(|step| step.time_ns = None);
        assert!(scene.run(&Starvation).is_empty());
    }
}
