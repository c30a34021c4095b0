//! Measures candidates in turns, so that two times of the same round can be compared. The benchmarks that measure
//! nanoseconds share it.
//!
//! On a busy machine, times vary by more than the differences of interest. So a time by itself proves nothing. In each
//! of [`ROUNDS`] rounds, every candidate of a group runs once, for about [`SLICE_NS`]. The order rotates from round to
//! round. Only times of the same round are compared. A time is the processor time of the measured thread: time in which
//! other programs have the processor does not count, but the effect of a shared core or cache does.
//!
//! It does not know what it measures, and asserts nothing.

mod quantile;

pub(crate) use quantile::quantile;

/// Every candidate runs once in each of this many rounds.
pub(crate) const ROUNDS: usize = 41;
/// The approximate length of a run.
pub(crate) const SLICE_NS: u64 = 5_000_000;

pub(crate) struct Candidate<'a> {
    pub(crate) name: &'a str,
    /// The index of the candidate to compare it with.
    pub(crate) beside: usize,
    pub(crate) operations: u64,
    /// Makes this many calls, and returns how long they took, ns.
    pub(crate) run: Box<dyn FnMut(u64) -> f64 + 'a>,
}

impl<'a> Candidate<'a> {
    pub(crate) fn new(
        name: &'a str,
        beside: usize,
        operations: u64,
        mut run: impl FnMut(u64) + 'a,
    ) -> Candidate<'a> {
        Candidate { name, beside, operations, run: Box::new(move |calls| timed(|| run(calls))) }
    }
}

/// Measures all candidates in turns. Returns the times of each candidate, one a round, ns an operation.
pub(crate) fn in_turns(candidates: &mut [Candidate<'_>]) -> Vec<Vec<f64>> {
    let calls: Vec<u64> = candidates.iter_mut().map(calls_a_slice).collect();
    let mut times: Vec<Vec<f64>> = vec![Vec::with_capacity(ROUNDS); candidates.len()];
    for round in 0..ROUNDS {
        for turn in 0..candidates.len() {
            let index = (round + turn) % candidates.len();
            let candidate = &mut candidates[index];
            let ns = (candidate.run)(calls[index]);
            times[index].push(ns / (calls[index] * candidate.operations) as f64);
        }
    }
    times
}

/// Returns how many calls of a candidate take about one slice.
fn calls_a_slice(candidate: &mut Candidate<'_>) -> u64 {
    let mut calls = 1_000;
    loop {
        let ns = (candidate.run)(calls);
        if ns * 10.0 > SLICE_NS as f64 {
            return ((calls as f64 * SLICE_NS as f64 / ns) as u64).max(1);
        }
        calls *= 4;
    }
}

/// Returns the processor time of this thread that `run` takes, ns.
pub(crate) fn timed(run: impl FnOnce()) -> f64 {
    let begin = processor_time_ns();
    run();
    (processor_time_ns() - begin).max(1) as f64
}

fn processor_time_ns() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a writable timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
