//! How much of a processor a thread got between two readings, and whether that was too little.
//!
//! It reads nothing: `target` has the kernel's account.

use serde::{Deserialize, Serialize};

use crate::target::{RunState, Task};

/// A thread is starved if it was ready to run, and did not, for this part of the time.
const DELAYED_MIN: (u64, u64) = (4, 5);
/// And if it ran for at most one part in this many of the time.
const RAN_PART: u64 = 10;
/// A shorter time between two readings says nothing, ns: turns of many threads on one processor take as long.
pub const WINDOW_MIN_NS: u64 = 100_000_000;

/// The processor time of a thread between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduled {
    /// How long it ran, ns.
    pub ran_ns: u64,
    /// How long it was ready to run and did not, ns.
    pub delayed_ns: u64,
    /// Whether it ran or was ready to all the time, and the kernel counted hardly any work of it: it computes,
    /// or waits in a loop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub runs_on: bool,
}

/// How busy the machine was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// How many threads of all processes ran or were ready to.
    pub ready: u64,
    /// How many processors this reader sees.
    pub processors: u64,
}

impl Scheduled {
    /// What the kernel says of the time between two readings of a thread.
    ///
    /// FOLKLORE: the kernel adds a delay to its account when the delay ends, and the account of a running thread is
    /// late by a tick. So the delays of the account are not those of the window. A thread that was ready in both
    /// readings and has not slept in between was ready whenever it did not run.
    pub(super) fn between(before: &Task, now: &Task, window_ns: u64) -> Option<Scheduled> {
        let (was, is) = before.schedule.zip(now.schedule)?;
        let ran_ns = is.ran_ns.saturating_sub(was.ran_ns);
        let was_ready = before.state == RunState::Running && now.state == RunState::Running;
        let has_not_slept = before.sleeps.is_some() && before.sleeps == now.sleeps;
        let idle_ns = window_ns.saturating_sub(ran_ns);
        let delayed_ns = match was_ready && has_not_slept {
            true => idle_ns,
            // The delay may have begun before the first reading.
            false => is.delayed_ns.saturating_sub(was.delayed_ns).min(idle_ns),
        };
        let is_idle = before.work.zip(now.work).is_some_and(|(before, now)| now.is_idle_since(before));
        let runs_on = was_ready && has_not_slept && is_idle;
        Some(Scheduled { ran_ns, delayed_ns, runs_on })
    }

    /// Whether the thread was ready for most of the time and hardly ever ran.
    pub(super) fn is_starved(self, window_ns: u64) -> bool {
        let (part, whole) = DELAYED_MIN;
        self.delayed_ns.saturating_mul(whole) >= window_ns.saturating_mul(part)
            && self.ran_ns.saturating_mul(RAN_PART) <= window_ns
            && window_ns >= WINDOW_MIN_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Schedule, Work};

    const WINDOW_NS: u64 = 200_000_000;

    fn task(state: RunState, ran_ns: u64, delayed_ns: u64, turns: u64) -> Task {
        Task { schedule: Some(Schedule { ran_ns, delayed_ns, turns }), ..Task::new(1, state) }
    }

    #[track_caller]
    fn check(before: Task, now: Task, expected: (u64, u64), is_starved: bool) {
        let of = Scheduled::between(&before, &now, WINDOW_NS).unwrap();
        assert_eq!(
            (of.ran_ns, of.delayed_ns, of.is_starved(WINDOW_NS)),
            (expected.0, expected.1, is_starved)
        );
    }

    #[test]
    fn a_thread_that_is_ready_and_hardly_runs_is_starved() {
        let ready = |ran_ns, delayed_ns, turns| task(RunState::Running, ran_ns, delayed_ns, turns);
        check(ready(5, 7, 1), ready(1_000_005, 190_000_007, 2), (1_000_000, 190_000_000), true);
        // The delay began before the first reading.
        check(ready(5, 7, 1), ready(5, 900_000_000, 2), (0, WINDOW_NS), true);
        check(ready(0, 0, 1), ready(190_000_000, 10_000_000, 9), (190_000_000, 10_000_000), false);
        check(ready(0, 0, 1), ready(30_000_000, 170_000_000, 9), (30_000_000, 170_000_000), false);
        check(task(RunState::Sleeping, 0, 0, 1), ready(0, 0, 1), (0, 0), false);
    }

    #[test]
    fn a_thread_that_was_ready_all_the_time_was_delayed_whenever_it_did_not_run() {
        let ready = |sleeps, ran_ns, turns| Task { sleeps, ..task(RunState::Running, ran_ns, 7, turns) };
        check(ready(Some(2), 5, 1), ready(Some(2), 5, 1), (0, WINDOW_NS), true);
        // Its turn ended or began within the window: the account has no delay of the window yet.
        check(ready(Some(2), 5, 1), ready(Some(2), 4_000_005, 1), (4_000_000, 196_000_000), true);
        check(ready(Some(2), 5, 1), ready(Some(2), 4_000_005, 2), (4_000_000, 196_000_000), true);
        // It slept.
        check(ready(Some(2), 5, 1), ready(Some(3), 4_000_005, 2), (4_000_000, 0), false);
        // Nobody knows whether it slept.
        check(ready(None, 5, 1), ready(None, 5, 1), (0, 0), false);
    }

    #[test]
    fn a_thread_that_neither_sleeps_nor_works_runs_on() {
        let ready = |sleeps, work: Option<(u64, u64)>| {
            let work = work.map(|(faults, transfers)| Work { faults, transfers });
            Task { sleeps, work, ..task(RunState::Running, 5, 7, 1) }
        };
        let runs_on = |before: &Task, now: &Task| Scheduled::between(before, now, WINDOW_NS).unwrap().runs_on;
        let before = ready(Some(2), Some((9, 9)));
        assert!(runs_on(&before, &before));
        assert!(
            runs_on(&before, &ready(Some(2), Some((11, 9)))),
            "the kernel looked where it uses its memory"
        );
        assert!(!runs_on(&before, &ready(Some(2), Some((90, 9)))), "it got memory");
        assert!(!runs_on(&before, &ready(Some(2), Some((9, 10)))), "it read or wrote");
        assert!(!runs_on(&before, &ready(Some(3), Some((9, 9)))), "it slept");
        assert!(!runs_on(&ready(Some(2), None), &ready(Some(2), None)), "nothing is known of its work");
        let asleep = Task { state: RunState::Sleeping, ..before.clone() };
        assert!(!runs_on(&asleep, &before));
    }

    #[test]
    fn without_the_account_nothing_is_known() {
        let unknown = Task { schedule: None, ..task(RunState::Running, 0, 0, 0) };
        assert_eq!(Scheduled::between(&unknown, &task(RunState::Running, 0, 0, 0), WINDOW_NS), None);
    }
}
