//! The exit queue: exited slots in the order of their exits, in the ring itself.
//!
//! It knows tickets and cells. What a slot is, and when one is put in or taken out, is `slot`'s business.
//!
//! # Algorithm
//!
//! A ticket queue in the manner of LCRQ (Morrison and Afek, "Fast concurrent queues for x86 processors",
//! PPoPP 2013): putting takes a ticket from the tail, taking one from the head, and both meet in the ticket's
//! cell. Whoever takes first leaves a mark there that sends the late putter for another ticket. So no side
//! ever waits for the other, which matters because the queue is shared by processes: one that is killed
//! between its ticket and its cell costs at most the one slot it was about to put in.
//!
//! # Invariants
//!
//! * A slot is in the queue at most once: only its exiting owner puts it in, only one taker gets it.
//! * There are as many cells as slots, so a ticket's cell is free when the ticket is drawn.
//!
//! # Orderings
//!
//! Putting is a release and taking an acquire on the cell: who takes a slot sees all that its last owner
//! wrote to it. Tickets need no order of their own, the lap in the cell gives it.

#[cfg(not(loom))]
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

#[cfg(loom)]
use loom::sync::atomic::AtomicU64;

use crate::layout::{EXIT_LAP_SHIFT, EXIT_TAKEN};

/// The queue's parts, wherever they lie.
pub(crate) struct ExitQueue<'a> {
    /// Next ticket to take.
    pub(crate) head: &'a AtomicU64,
    /// Next ticket to put.
    pub(crate) tail: &'a AtomicU64,
    /// One cell a slot.
    pub(crate) cells: &'a [AtomicU64],
}

impl ExitQueue<'_> {
    /// Appends a slot. Ends: each further round needs a taker that has passed meanwhile.
    pub(crate) fn put(&self, slot: u64) {
        loop {
            // ORDERING: relaxed, a ticket is only a number; the cell carries the data.
            let ticket = self.tail.fetch_add(1, Relaxed);
            let (cell, lap) = self.place(ticket);
            // ORDERING: relaxed, the exchange below decides.
            let seen = cell.load(Relaxed);
            if seen >> EXIT_LAP_SHIFT == lap {
                // A taker was here first: it found nothing and went on.
                continue;
            }
            // ORDERING: release, pairs with the acquiring swap in `take`.
            if cell.compare_exchange(seen, lap << EXIT_LAP_SHIFT | slot, Release, Relaxed).is_ok() {
                return;
            }
        }
    }

    /// Takes out the slot that exited first; `None` when there is none.
    pub(crate) fn take(&self) -> Option<u64> {
        loop {
            // ORDERING: relaxed on both ends: a stale tail means "none yet", a stale head fails the exchange.
            let ticket = self.head.load(Relaxed);
            if ticket >= self.tail.load(Relaxed) {
                return None;
            }
            if self.head.compare_exchange(ticket, ticket + 1, Relaxed, Relaxed).is_err() {
                continue;
            }
            let (cell, lap) = self.place(ticket);
            // ORDERING: acquire, pairs with the release in `put`: what the last owner wrote is seen.
            let found = cell.swap(lap << EXIT_LAP_SHIFT | EXIT_TAKEN, Acquire);
            if found >> EXIT_LAP_SHIFT == lap && found & EXIT_TAKEN != EXIT_TAKEN {
                return Some(found & EXIT_TAKEN);
            }
        }
    }

    /// A ticket's cell, and its lap plus one: zero, the state of a new cell, is no lap.
    fn place(&self, ticket: u64) -> (&AtomicU64, u64) {
        let cells = self.cells.len() as u64;
        (&self.cells[(ticket % cells) as usize], (ticket / cells + 1) & (u64::MAX >> EXIT_LAP_SHIFT))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn queue<T>(cells: usize, body: impl FnOnce(&ExitQueue<'_>) -> T) -> T {
        let cells: Vec<AtomicU64> = (0..cells).map(|_| AtomicU64::new(0)).collect();
        body(&ExitQueue { head: &AtomicU64::new(0), tail: &AtomicU64::new(0), cells: &cells })
    }

    #[test]
    fn gives_slots_back_in_the_order_of_their_exits() {
        queue(4, |queue| {
            assert_eq!(queue.take(), None);
            for lap in 0..10 {
                for slot in [2, 0, 3] {
                    queue.put(slot);
                }
                for slot in [2, 0, 3] {
                    assert_eq!(queue.take(), Some(slot), "lap {lap}");
                }
                assert_eq!(queue.take(), None);
            }
        });
    }

    #[test]
    fn a_putter_that_died_with_its_ticket_blocks_nobody() {
        queue(4, |queue| {
            queue.tail.fetch_add(1, Relaxed); // killed here, before it wrote its cell
            queue.put(3);
            assert_eq!(queue.take(), Some(3));
            assert_eq!(queue.take(), None);
        });
    }

    #[test]
    fn no_slot_is_lost_or_given_twice_under_load() {
        const SLOTS: usize = 8;
        const ROUNDS: usize = 200_000;
        queue(SLOTS, |queue| {
            let owned: Vec<AtomicUsize> = (0..SLOTS).map(|_| AtomicUsize::new(0)).collect();
            for slot in 0..SLOTS {
                queue.put(slot as u64);
            }
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for _ in 0..ROUNDS {
                            let Some(slot) = queue.take() else { continue };
                            let owners = &owned[slot as usize];
                            assert_eq!(owners.fetch_add(1, Relaxed), 0, "slot {slot} has two owners");
                            owners.fetch_sub(1, Relaxed);
                            queue.put(slot);
                        }
                    });
                }
            });
            let mut left: Vec<u64> = std::iter::from_fn(|| queue.take()).collect();
            left.sort_unstable();
            assert_eq!(left, (0..SLOTS as u64).collect::<Vec<_>>());
        });
    }
}

/// Every interleaving, and what the memory model allows beyond them:
/// `RUSTFLAGS="--cfg loom" cargo test -p librip --lib --release exits::`.
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    struct Shared {
        head: AtomicU64,
        tail: AtomicU64,
        cells: [AtomicU64; 2],
        /// What an owner writes to its slot without any atomics: loom reports a race if ownership leaks.
        slots: [UnsafeCell<u64>; 2],
    }

    impl Shared {
        fn queue(&self) -> ExitQueue<'_> {
            ExitQueue { head: &self.head, tail: &self.tail, cells: &self.cells }
        }

        fn use_slot(&self, slot: u64) {
            self.slots[slot as usize].with_mut(|contents| {
                // SAFETY: loom checks that no other access is concurrent; that is the test.
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
                        shared.queue().put(slot);
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
            shared.queue().put(0);
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
            shared.queue().put(1);
            let mine = shared.queue().take();
            if let Some(slot) = mine {
                shared.use_slot(slot);
            }
            let other = other.join().unwrap();
            assert!(mine.is_none() || mine != other);
        });
    }
}
