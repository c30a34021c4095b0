//! Starvation: one thread waits while others get the lock again and again.
//!
//! # Question
//!
//! Which threads wait for a lock that others, who came later, got many times meanwhile?
//!
//! # Method
//!
//! For each wait with a known beginning, acquisitions of the lock by others are counted whose attempt began after it:
//! those have overtaken it. Acquisitions by threads that were in the queue before do not count: a long queue that
//! is served in order starves nobody. From sixteen on, and 100 ms, it is suspected. For those who wait together at
//! one lock there is one finding.
//!
//! # Blind spots
//!
//! Acquisitions without a time are not counted, and those that were overwritten are gone: less is seen than
//! happened.
//!
//! # Example output
//!
//! ```text
//! suspected starvation: 1 thread waits for TABLE while others overtake it
//!     writer[12] waits at update table.rs:30, for 20 s; readers and writers that came later got it 48 times
//! ```

use super::{Analysis, Confidence, Finding, Part, View, add_duration, locks_of, more_threads, parts};
use crate::locks::{StepKind, Wait};

/// See the file's description.
pub(super) struct Starvation;

const KIND: &str = "starvation";
/// So often must a thread be overtaken.
const OVERTAKEN_MIN: usize = 16;
/// So long must it wait, ns.
const WAIT_MIN_NS: u64 = 100_000_000;
/// As many threads are told of.
const TOLD_MAX: usize = 5;

impl Analysis for Starvation {
    fn kinds(&self) -> &'static [&'static str] {
        &[KIND]
    }

    fn look(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let model = view.now;
        let explained = locks_of(found, &["deadlock", "unreleased", "lost-owner"]);
        let is_wanted = |lock: usize| !model.locks[lock].waiters.is_empty() && !explained.contains(&lock);
        // For each lock when the attempts began that got it.
        let mut attempts: Vec<Vec<u64>> = vec![Vec::new(); model.locks.len()];
        for thread in &model.threads {
            let mut begun: Option<(usize, u64)> = None;
            for step in &thread.steps {
                let Some(lock) = step.lock.filter(|&lock| is_wanted(lock)) else { continue };
                match step.kind {
                    StepKind::Wait => begun = step.time_ns.map(|time_ns| (lock, time_ns)),
                    StepKind::Acquired | StepKind::AcquireBegin => {
                        let waited =
                            begun.take().filter(|&(waited, _)| waited == lock).map(|(_, time_ns)| time_ns);
                        // What it waits for still, it has not got.
                        let is_pending = thread
                            .wait
                            .is_some_and(|wait| wait.lock == lock && wait.since_ns <= step.time_ns);
                        attempts[lock].extend(waited.or(step.time_ns).filter(|_| !is_pending));
                    }
                    _ => {}
                }
            }
        }
        for lock in (0..model.locks.len()).filter(|&lock| is_wanted(lock)) {
            attempts[lock].sort_unstable();
            let overtaken = |wait: &Wait| {
                let since_ns = wait.since_ns?;
                view.ago_ns(Some(since_ns)).filter(|&waited_ns| waited_ns >= WAIT_MIN_NS)?;
                let later =
                    attempts[lock].len() - attempts[lock].partition_point(|&began_ns| began_ns <= since_ns);
                (later >= OVERTAKEN_MIN).then_some(later)
            };
            let mut starved: Vec<(&Wait, usize)> =
                view.waiters(lock).filter_map(|wait| Some((wait, overtaken(wait)?))).collect();
            starved.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
            if !starved.is_empty() {
                found.push(tell(view, &starved));
            }
        }
    }
}

fn tell(view: &View<'_>, starved: &[(&Wait, usize)]) -> Finding {
    let lock = starved[0].0.lock;
    let verb = if starved.len() == 1 { " waits for " } else { " wait for " };
    let summary = parts![Part::Threads(starved.len()), verb, Part::Lock(lock), " while others overtake"];
    let mut evidence: Vec<Vec<Part>> = Vec::new();
    for (wait, count) in starved.iter().take(TOLD_MAX) {
        let mut line = parts![Part::Thread(wait.thread), " waits at ", Part::Location(wait.location)];
        add_duration(&mut line, ", for ", view.ago_ns(wait.since_ns));
        line.push(format!("; threads that came later got it {count} times or more").into());
        evidence.push(line);
    }
    if starved.len() > TOLD_MAX {
        evidence.push(parts!["and ", more_threads(starved.len() - TOLD_MAX)]);
    }
    let mut finding = Finding::new(KIND, Confidence::Suspected, summary, evidence);
    finding.since_ns = starved.iter().filter_map(|(wait, _)| wait.since_ns).min();
    finding.threads_hurt = starved.len();
    finding.advice =
        "use a lock that serves in order of arrival (or prefers writers, if a writer starves), or let the \
                      others pause between their turns"
            .into();
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{MILLISECOND, NOW, SECOND, Scene};

    /// A thread waits since 12 s; another one got the lock `turns` times, from `began_ns` on.
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
    fn a_thread_that_is_overtaken_again_and_again_starves() {
        let found = scene(20, NOW - SECOND).look(&Starvation);
        assert_eq!((found.len(), found[0].confidence), (1, Confidence::Suspected));
        assert!(scene(15, NOW - SECOND).look(&Starvation).is_empty(), "not often enough");
        assert!(scene(20, NOW - 20 * SECOND).look(&Starvation).is_empty(), "before it came");
    }

    #[test]
    fn a_long_queue_in_order_starves_nobody() {
        let mut scene = Scene::new();
        let (last, lock) = (scene.thread("last"), scene.lock("TABLE"));
        scene.waits(last, lock);
        for at in 0..100 {
            let thread = scene.thread("before");
            scene.step(thread, StepKind::Wait, lock).time_ns = Some(NOW - 13 * SECOND);
            scene.step(thread, StepKind::Acquired, lock).time_ns = Some(NOW - SECOND + at * MILLISECOND);
        }
        assert!(scene.look(&Starvation).is_empty());
    }

    #[test]
    fn without_times_nothing_is_claimed() {
        let mut scene = scene(20, NOW - SECOND);
        scene.model.threads[1].steps.iter_mut().for_each(|step| step.time_ns = None);
        assert!(scene.look(&Starvation).is_empty());
    }
}
