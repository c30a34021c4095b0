//! A model of the exit queue: loom explores every interleaving of its steps, and all reorderings that the memory model
//! allows.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p librip --profile model --test exit_queue_model`. Without `--cfg loom` it is
//! empty.

#![cfg(loom)]
#![allow(unsafe_code, reason = "loom's cells report unsynchronised accesses")]
#![allow(dead_code, reason = "the model uses part of the file that it includes")]

/// loom's atomics, for the file under test.
mod atomic {
    pub(crate) use loom::hint::spin_loop;
    pub(crate) use loom::sync::atomic::AtomicU64;
}
#[path = "../src/ring/exit_queue.rs"]
mod exit_queue;

use exit_queue::ExitQueue;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;

struct Shared {
    head: AtomicU64,
    tail: AtomicU64,
    cells: [AtomicU64; 2],
    /// Owners write to their slot without atomics: loom reports a race if two threads own one slot.
    slots: [UnsafeCell<u64>; 2],
}

impl Shared {
    fn queue(&self) -> ExitQueue<'_> {
        ExitQueue { head: &self.head, tail: &self.tail, cells: &self.cells }
    }

    fn use_slot(&self, slot: u64) {
        self.slots[slot as usize].with_mut(|contents| {
            // SAFETY: loom checks that there is no concurrent access. That is the test.
            unsafe { *contents += 1 }
        });
    }
}

fn shared() -> Arc<Shared> {
    Arc::new(Shared {
        head: AtomicU64::new(0),
        tail: AtomicU64::new(0),
        cells: [AtomicU64::new(0), AtomicU64::new(0)],
        slots: [UnsafeCell::new(0), UnsafeCell::new(0)],
    })
}

#[test]
fn two_threads_that_exit_and_one_that_claims_never_share_a_slot() {
    loom::model(|| {
        let shared = shared();
        let exits: Vec<_> = (0..2)
            .map(|slot| {
                let shared = shared.clone();
                thread::spawn(move || {
                    shared.use_slot(slot);
                    assert!(shared.queue().put(slot));
                })
            })
            .collect();
        let first = shared.queue().take();
        if let Some(slot) = first {
            shared.use_slot(slot);
        }
        for exit in exits {
            exit.join().unwrap();
        }
        let mut all: Vec<u64> = first.into_iter().collect();
        all.extend(std::iter::from_fn(|| shared.queue().take()));
        all.sort_unstable();
        assert_eq!(all, [0, 1], "each slot comes out exactly once");
    });
}

#[test]
fn two_claimers_get_two_slots() {
    loom::model(|| {
        let shared = shared();
        assert!(shared.queue().put(0));
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                let slot = shared.queue().take();
                if let Some(slot) = slot {
                    shared.use_slot(slot);
                }
                slot
            })
        };
        assert!(shared.queue().put(1));
        let mine = shared.queue().take();
        if let Some(slot) = mine {
            shared.use_slot(slot);
        }
        let other = other.join().unwrap();
        assert!(mine.is_none() || mine != other);
    });
}

#[test]
fn no_slot_is_lost_in_several_laps() {
    // If a late step did not notice that the lap has changed, three preemptions would suffice to lose a slot.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let shared = shared();
        assert!(shared.queue().put(0));
        assert!(shared.queue().put(1));
        let go_round = |shared: &Shared| {
            for _ in 0..2 {
                if let Some(slot) = shared.queue().take() {
                    shared.use_slot(slot);
                    assert!(shared.queue().put(slot));
                }
            }
        };
        let other = {
            let shared = shared.clone();
            thread::spawn(move || go_round(&shared))
        };
        go_round(&shared);
        other.join().unwrap();
        let mut all: Vec<u64> = std::iter::from_fn(|| shared.queue().take()).collect();
        all.sort_unstable();
        assert_eq!(all, [0, 1]);
    });
}
