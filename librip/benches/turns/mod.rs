//! How candidates are compared: in turns, by the times of the same round. For all of librip's benchmarks of nanoseconds.
//!
//! Times on a busy machine wander by more than the differences that matter, so nothing rests on a time alone. All
//! candidates of a group take turns within each of [`ROUNDS`] rounds, about [`SLICE_NS`] each, in an order that
//! rotates, and what is compared is two times of the same round. Times are those that the measured thread spent on a
//! processor: losing it to somebody else does not count, sharing a core or its caches does.
//!
//! It does not know what is measured, and asserts nothing.

/// How many times every candidate gets its turn.
pub(crate) const ROUNDS: usize = 41;
/// How long a turn is, about.
pub(crate) const SLICE_NS: u64 = 5_000_000;

/// Something to measure.
pub(crate) struct Candidate<'a> {
    pub(crate) name: &'a str,
    /// Index of the candidate that it is compared with.
    pub(crate) beside: usize,
    /// Operations of one call with argument 1.
    pub(crate) operations: u64,
    /// Makes that many calls, and says how long they took, ns.
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

/// Measures all candidates in turns: for each the times of its rounds, ns an operation.
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

/// How often to call a candidate so that it takes a slice.
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

/// The processor time that `run` takes in this thread, ns.
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

/// The value that this part of all values lies below.
pub(crate) fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * part).round() as usize]
}
