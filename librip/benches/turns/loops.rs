//! Loops with names: measured in one thread and in two at once, or run at two lengths, so that their instructions can
//! be counted.
//!
//! In a table, the first loop is what the others are compared with: one thread with one thread, two with two. The row
//! of the first loop with two threads compares it with itself alone. Two threads run the same loop.

use std::hint::black_box;
use std::sync::Arc;

use crate::companion::{Companion, Job};
use crate::table::measure;
use crate::turns::{Candidate, timed};

/// If it is set, the loops are run for callgrind, and nothing is measured.
const COUNT: &str = "RIP_BENCH_COUNT";
/// Rounds of a loop whose instructions are counted. `scripts/lib/instructions.sh` divides by their difference.
const COUNTED_ROUNDS: [u64; 2] = [1_000, 2_000];

pub(crate) struct Loop {
    name: &'static str,
    run: Job,
}

impl Loop {
    /// `run` repeats it as often as its argument says.
    pub(crate) fn new(name: &'static str, run: impl Fn(u64) + Send + Sync + 'static) -> Loop {
        Loop { name, run: Arc::new(run) }
    }
}

/// A loop that does nothing: what the other loops cost by themselves.
pub(crate) fn empty() -> Loop {
    Loop::new("the loop alone", |rounds| {
        for _ in 0..rounds {
            // SAFETY: no instruction. It only keeps the compiler from removing the loop.
            unsafe { core::arch::asm!("", options(nomem, nostack, preserves_flags)) }
        }
    })
}

/// Whether instructions are to be counted.
pub(crate) fn counts() -> bool {
    std::env::var_os(COUNT).is_some()
}

/// Prints a row for each loop with one thread, and then one for each with two.
pub(crate) fn run(loops: &[Loop]) {
    if counts() {
        return loops.iter().for_each(count);
    }
    let companion = Companion::start();
    let alone = loops.iter().map(|each| {
        let run = Arc::clone(&each.run);
        Candidate::new(each.name, 0, 1, move |rounds| run(rounds))
    });
    let both = loops.iter().map(|each| {
        let (run, companion) = (Arc::clone(&each.run), &companion);
        let run = move |rounds| companion.beside(Arc::clone(&run), || timed(|| run(rounds)));
        Candidate { name: each.name, beside: loops.len(), operations: 1, run: Box::new(run) }
    });
    let mut candidates: Vec<_> = alone.chain(both).collect();
    candidates[loops.len()].beside = 0;
    let title = "two threads, each; the first row is compared with one thread";
    measure(&mut candidates, Some((loops.len(), title)));
}

/// Prints the name of a loop and runs it twice. Callgrind writes what it counts in each call of `counted`.
fn count(each: &Loop) {
    println!("{}", each.name);
    (each.run)(100);
    for rounds in COUNTED_ROUNDS {
        counted(&*each.run, rounds);
    }
}

#[inline(never)]
fn counted(run: &dyn Fn(u64), rounds: u64) {
    run(rounds);
    black_box(());
}
