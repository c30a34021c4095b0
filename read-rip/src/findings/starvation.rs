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
//! count: a long queue that is served in order starves no thread. A lock that one thread keeps without recording
//! anything is left out: nobody overtakes anybody now. From sixteen overtakes and 100 ms on, the finding
//! is suspected. All threads that starve at one lock are one finding.
//!
//! # Blind spots
//!
//! Acquisitions without a time are not counted, and overwritten ones are gone: the count is a lower bound.
//!
//! # Example output
//!
//! ```text
//! suspected starvation: 1 thread waits for TABLE while others overtake it
//!     writer[12] waits for it at update table.rs:30, for 20 s; threads that came later acquired it at least 48 times
//! ```

use super::evidence::{Evidence, Overtaken, OvertakenWait};
use super::finding::{Analysis, Finding, locks_of};
use super::kind::{Advice, Confidence, Kind};
use super::view::View;
use crate::locks::{Hold, LockId, LockModel, StepKind, Wait};

/// See the file's description.
pub(super) struct Starvation;

/// Minimum number of overtakes.
const OVERTAKES_MIN: usize = 16;
/// Minimum length of the wait, ns.
const WAIT_MIN_NS: u64 = 100_000_000;
/// At most this many threads are listed.
const LISTED_MAX: usize = 5;

impl Analysis for Starvation {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let model = view.now;
        let explained = locks_of(found, &[Kind::Deadlock, Kind::Unreleased, Kind::LostOwner]);
        let is_wanted = |lock: LockId| {
            let is_awaited = !model.locks[lock].waiters.is_empty() && !explained.contains(&lock);
            is_awaited && !stands_still(view, lock)
        };
        let attempts = successful_attempts(model, is_wanted);
        for lock in (0..model.locks.len()).filter(|&lock| is_wanted(lock)) {
            let overtakes = |wait: &Wait| {
                let since_ns = wait.since_ns?;
                view.ago_ns(Some(since_ns)).filter(|&waited_ns| waited_ns >= WAIT_MIN_NS)?;
                let earlier = attempts[lock].partition_point(|&began_ns| began_ns <= since_ns);
                let later = attempts[lock].len() - earlier;
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

/// For each wanted lock, when the attempts began that acquired it, ns since boot, ascending.
fn successful_attempts(model: &LockModel, is_wanted: impl Fn(LockId) -> bool) -> Vec<Vec<u64>> {
    let mut attempts: Vec<Vec<u64>> = vec![Vec::new(); model.locks.len()];
    for thread in &model.threads {
        let mut begun: Option<(LockId, u64)> = None;
        for step in &thread.steps {
            let Some(lock) = step.lock.filter(|&lock| is_wanted(lock)) else { continue };
            match step.kind {
                StepKind::Wait => begun = step.time_ns.map(|time_ns| (lock, time_ns)),
                StepKind::Acquired | StepKind::AcquireBegin => {
                    let waited = begun.take().filter(|&(waited, _)| waited == lock);
                    let began_ns = waited.map(|(_, time_ns)| time_ns).or(step.time_ns);
                    // The thread has not acquired a lock that it still waits for.
                    let is_pending =
                        thread.wait.is_some_and(|wait| wait.lock == lock && wait.since_ns <= step.time_ns);
                    attempts[lock].extend(began_ns.filter(|_| !is_pending));
                }
                _ => {}
            }
        }
    }
    attempts.iter_mut().for_each(|attempts| attempts.sort_unstable());
    attempts
}

fn finding(view: &View<'_>, lock: LockId, starved: &[(&Wait, usize)]) -> Finding {
    let listed = starved.iter().take(LISTED_MAX);
    let evidence = Evidence::Overtaken(Overtaken {
        lock,
        threads: starved.len(),
        first: listed
            .map(|&(wait, overtakes)| OvertakenWait { wait: view.wait_fact(wait), overtakes })
            .collect(),
    });
    let mut finding = Finding::new(Kind::Starvation, Confidence::Suspected, evidence, Advice::FairLock);
    finding.since_ns = starved.iter().filter_map(|(wait, _)| wait.since_ns).min();
    finding.threads_hurt = starved.len();
    finding
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
    fn without_times_nothing_is_claimed() {
        let mut scene = scene(20, NOW - SECOND);
        scene.steps(1).iter_mut().for_each(|step| step.time_ns = None);
        assert!(scene.run(&Starvation).is_empty());
    }
}
