//! The exit queue: exited slots in the order of their exits, in the ring itself.
//!
//! It knows tickets and cells. What a slot is, and when one is put in or taken out, is `slot`'s business.
//!
//! # Algorithm
//!
//! An array queue whose cells carry versions, after Shann, Huang and Chen ("A practical nonblocking queue
//! algorithm using compare-and-swap", ICPADS 2000). A ticket is a position on an endless tape; its cell is the
//! ticket modulo the number of cells, its lap the ticket divided by it. A cell is *empty for lap L*, then
//! *holds a slot in lap L*, then is *empty for lap L+1*. Each of these steps is one exchange of one word, and is
//! the moment at which a slot is in the queue, or out of it. Head and tail only say where to look: who finds one
//! of them behind moves it on.
//!
//! So nobody ever waits for anybody, which matters because the queue is shared by processes: one that is killed
//! at any instruction has put its slot in, or has not, and leaves nothing half done. And a step that comes late,
//! by any number of laps, finds another version in its cell and does nothing.
//!
//! # Invariants
//!
//! * A slot is in the queue at most once: only its exiting owner puts it in, only one taker gets it.
//! * There are as many cells as slots, so who puts a slot in finds room: at most all others are there already.
//!
//! # Orderings
//!
//! Putting is a release and taking an acquire on the cell: who takes a slot sees all that its last owner
//! wrote to it. Head and tail are hints and need no order.

#[cfg(not(loom))]
use core::hint::spin_loop;
#[cfg(not(loom))]
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

#[cfg(loom)]
use loom::hint::spin_loop;
#[cfg(loom)]
use loom::sync::atomic::AtomicU64;

use librip_format::EXIT_LAP_SHIFT;

/// The queue's parts, wherever they lie.
pub(crate) struct ExitQueue<'a> {
    /// No ticket below this one is still to be taken.
    pub(crate) head: &'a AtomicU64,
    /// No ticket below this one is still to be put.
    pub(crate) tail: &'a AtomicU64,
    /// One cell a slot.
    pub(crate) cells: &'a [AtomicU64],
}

impl ExitQueue<'_> {
    /// Appends a slot; says whether that was possible.
    ///
    /// `is_usable` is asked before a cell is touched. In a queue that nobody has scribbled on it is the only
    /// thing that can stand in the way.
    pub(crate) fn put(&self, slot: u64, is_usable: impl Fn(u64) -> bool) -> bool {
        for _ in 0..self.steps_max() {
            // ORDERING: relaxed throughout but for the exchange of the cell: everything else is a hint.
            let ticket = self.tail.load(Relaxed);
            if !is_usable(ticket % self.cells.len() as u64) {
                return false;
            }
            let (cell, lap) = self.place(ticket);
            let seen = cell.load(Relaxed);
            if seen == empty(lap) {
                // ORDERING: release, pairs with the acquire in `take`.
                let put = cell.compare_exchange(seen, holding(lap, slot), Release, Relaxed).is_ok();
                move_on(self.tail, ticket);
                if put {
                    return true;
                }
            } else if is_behind(seen, lap) {
                // We see an old value; the tail must not pass a ticket that is still to be put.
                spin_loop();
            } else {
                // Somebody has put a slot here and not moved the tail yet, or we have read an old tail.
                move_on(self.tail, ticket);
            }
        }
        false
    }

    /// Takes out the slot that exited first; `None` when there is none. `is_usable` as in [`ExitQueue::put`].
    pub(crate) fn take(&self, is_usable: impl Fn(u64) -> bool) -> Option<u64> {
        for _ in 0..self.steps_max() {
            // ORDERING: as in `put`.
            let ticket = self.head.load(Relaxed);
            if !is_usable(ticket % self.cells.len() as u64) {
                return None;
            }
            let (cell, lap) = self.place(ticket);
            let seen = cell.load(Relaxed);
            if seen == empty(lap) {
                return None;
            }
            let next_lap = empty(lap.wrapping_add(1));
            if seen >> EXIT_LAP_SHIFT == u64::from(lap) {
                // ORDERING: acquire, pairs with the release in `put`: what the last owner wrote is seen.
                let taken = cell.compare_exchange(seen, next_lap, Acquire, Relaxed).is_ok();
                move_on(self.head, ticket);
                if taken {
                    return Some((seen & !(u64::MAX << EXIT_LAP_SHIFT)) - 1);
                }
            } else if is_behind(seen, lap) {
                // We see an old value, as in `put`.
                spin_loop();
            } else {
                // Somebody has taken it and not moved the head yet, or we have read an old head.
                move_on(self.head, ticket);
            }
        }
        None
    }

    /// No sound queue keeps anybody longer: a step fails only because another thread's has succeeded, or for
    /// the moment that a store takes to become visible. But the file may be scribbled on, and then neither an
    /// exiting nor a starting thread may be kept here.
    fn steps_max(&self) -> usize {
        2 * self.cells.len() + 1000
    }

    /// A ticket's cell and lap.
    fn place(&self, ticket: u64) -> (&AtomicU64, u32) {
        let cells = self.cells.len() as u64;
        // The lap's upper bits fall off; four thousand million laps do not pass between two steps of a thread.
        (&self.cells[(ticket % cells) as usize], (ticket / cells) as u32)
    }
}

/// A cell into which a slot may be put in this lap; a new cell is empty for lap 0.
const fn empty(lap: u32) -> u64 {
    (lap as u64) << EXIT_LAP_SHIFT
}

/// A cell that holds a slot.
const fn holding(lap: u32, slot: u64) -> u64 {
    empty(lap) | (slot + 1)
}

/// Whether a cell's value is of an earlier lap. In the order of the cell's own changes it is past; a processor
/// that orders loads weakly may still show it for a moment.
fn is_behind(seen: u64, lap: u32) -> bool {
    (((seen >> EXIT_LAP_SHIFT) as u32).wrapping_sub(lap) as i32) < 0
}

/// Moves head or tail from `ticket` to the next, unless somebody has.
fn move_on(hint: &AtomicU64, ticket: u64) {
    // ORDERING: relaxed, see `put`.
    let _ = hint.compare_exchange(ticket, ticket.wrapping_add(1), Relaxed, Relaxed);
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
            assert_eq!(queue.take(|_| true), None);
            for lap in 0..10 {
                for slot in [2, 0, 3] {
                    assert!(queue.put(slot, |_| true));
                }
                for slot in [2, 0, 3] {
                    assert_eq!(queue.take(|_| true), Some(slot), "lap {lap}");
                }
                assert_eq!(queue.take(|_| true), None);
            }
        });
    }

    #[test]
    fn processes_that_died_in_the_middle_block_nobody() {
        queue(4, |queue| {
            queue.cells[0].store(holding(0, 2), Relaxed); // killed before it moved the tail
            assert!(queue.put(3, |_| true));
            assert_eq!(queue.take(|_| true), Some(2));
            queue.cells[1].store(empty(1), Relaxed); // took slot 3, and was killed before it moved the head
            assert!(queue.put(1, |_| true));
            assert_eq!(queue.take(|_| true), Some(1));
            assert_eq!(queue.take(|_| true), None);
        });
    }

    #[test]
    fn a_queue_that_was_scribbled_on_keeps_nobody() {
        queue(4, |queue| {
            queue.tail.store(64, Relaxed);
            assert!(!queue.put(1, |_| true));
            queue.head.store(1 << 40, Relaxed);
            assert_eq!(queue.take(|_| true), None);
        });
    }

    #[test]
    fn cells_that_cannot_be_had_are_not_touched() {
        queue(4, |queue| {
            assert!(queue.put(3, |cell| cell == 0));
            assert!(!queue.put(2, |cell| cell == 0));
            assert_eq!(queue.take(|cell| cell == 0), Some(3));
            assert_eq!(queue.take(|cell| cell == 0), None);
        });
    }

    #[test]
    fn no_slot_is_lost_or_given_twice_under_load() {
        const SLOTS: usize = 8;
        const ROUNDS: usize = 200_000;
        queue(SLOTS, |queue| {
            let owned: Vec<AtomicUsize> = (0..SLOTS).map(|_| AtomicUsize::new(0)).collect();
            for slot in 0..SLOTS {
                assert!(queue.put(slot as u64, |_| true));
            }
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for _ in 0..ROUNDS {
                            let Some(slot) = queue.take(|_| true) else { continue };
                            let owners = &owned[slot as usize];
                            assert_eq!(owners.fetch_add(1, Relaxed), 0, "slot {slot} has two owners");
                            owners.fetch_sub(1, Relaxed);
                            assert!(queue.put(slot, |_| true));
                        }
                    });
                }
            });
            let mut left: Vec<u64> = std::iter::from_fn(|| queue.take(|_| true)).collect();
            left.sort_unstable();
            assert_eq!(left, (0..SLOTS as u64).collect::<Vec<_>>());
        });
    }
}

/// Every interleaving, and what the memory model allows beyond them:
/// `RUSTFLAGS="--cfg loom" cargo test -p librip --lib --release exits::`.
#[cfg(all(test, loom))]
mod model {
    #![allow(unsafe_code, reason = "loom's cells are how it sees who touches what")]

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
                        assert!(shared.queue().put(slot, |_| true));
                    })
                })
                .collect();
            let first = shared.queue().take(|_| true);
            if let Some(slot) = first {
                shared.use_slot(slot);
            }
            for exit in exits {
                exit.join().unwrap();
            }
            let mut all: Vec<u64> = first.into_iter().collect();
            all.extend(std::iter::from_fn(|| shared.queue().take(|_| true)));
            all.sort_unstable();
            assert_eq!(all, [0, 1], "each slot comes out exactly once");
        });
    }

    #[test]
    fn two_claimers_get_two_slots() {
        loom::model(|| {
            let shared = shared();
            assert!(shared.queue().put(0, |_| true));
            let other = {
                let shared = shared.clone();
                thread::spawn(move || {
                    let slot = shared.queue().take(|_| true);
                    if let Some(slot) = slot {
                        shared.use_slot(slot);
                    }
                    slot
                })
            };
            assert!(shared.queue().put(1, |_| true));
            let mine = shared.queue().take(|_| true);
            if let Some(slot) = mine {
                shared.use_slot(slot);
            }
            let other = other.join().unwrap();
            assert!(mine.is_none() || mine != other);
        });
    }

    #[test]
    fn slots_go_round_and_round_without_loss() {
        // Several laps, with steps that come late: three preemptions are enough to lose a slot if a late step
        // does not notice the lap.
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let shared = shared();
            assert!(shared.queue().put(0, |_| true));
            assert!(shared.queue().put(1, |_| true));
            let go_round = |shared: &Shared| {
                for _ in 0..2 {
                    if let Some(slot) = shared.queue().take(|_| true) {
                        shared.use_slot(slot);
                        assert!(shared.queue().put(slot, |_| true));
                    }
                }
            };
            let other = {
                let shared = shared.clone();
                thread::spawn(move || go_round(&shared))
            };
            go_round(&shared);
            other.join().unwrap();
            let mut all: Vec<u64> = std::iter::from_fn(|| shared.queue().take(|_| true)).collect();
            all.sort_unstable();
            assert_eq!(all, [0, 1]);
        });
    }
}
