//! The exit queue: exited slots in the order of their exits.
//!
//! It knows tickets and cells. `slots` knows what a slot is, and when one is put in or taken out.
//!
//! # Algorithm
//!
//! An array queue whose cells carry versions, after Shann, Huang and Chen ("A practical nonblocking queue algorithm
//! using compare-and-swap", ICPADS 2000). A ticket is a position on an endless tape. Its cell is the ticket modulo the
//! number of cells, its lap the ticket divided by that number. A cell is *empty for lap L*, then *holds a slot in lap
//! L*, then is *empty for lap L+1*. Each of these steps is one exchange of one word. At that moment the slot enters or
//! leaves the queue. Head and tail are hints: a thread that finds one of them outdated advances it.
//!
//! So no thread ever waits for another. That matters because processes share the queue. A process that is killed at any
//! instruction has either put its slot in or has not. It leaves nothing half done. A step that comes late, by any
//! number of laps, finds another version in its cell and does nothing.
//!
//! # Invariants
//!
//! * A slot is in the queue at most once: only its exiting owner puts it in, and only one thread takes it out.
//! * There are as many cells as slots, so there is room for every slot: at most all others are in the queue already.
//!
//! # Orderings
//!
//! Putting is a release and taking an acquire on the cell: a thread that takes a slot sees all that the last owner
//! wrote to it. Head and tail are hints and need no order.
//!
//! `tests/exit_queue_model.rs` explores every interleaving with loom.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::atomic::{AtomicU64, spin_loop};

/// The first bit of a cell's lap. The bits below are 0 in an empty cell, else the slot's index plus one.
const LAP_SHIFT: u32 = 32;

pub(crate) struct ExitQueue<'a> {
    /// A slot with a lower ticket is not in the queue any more.
    pub(crate) head: &'a AtomicU64,
    /// No slot will get a lower ticket.
    pub(crate) tail: &'a AtomicU64,
    /// One cell a slot.
    pub(crate) cells: &'a [AtomicU64],
}

impl ExitQueue<'_> {
    /// Appends a slot. Returns whether that succeeded. In a sound queue it always does.
    pub(crate) fn put(&self, slot: u64) -> bool {
        for _ in 0..self.steps_max() {
            // ORDERING: relaxed throughout, except for the exchange of the cell: everything else is a hint.
            let ticket = self.tail.load(Relaxed);
            let (cell, lap) = self.cell_of(ticket);
            let seen = cell.load(Relaxed);
            if seen == empty(lap) {
                // ORDERING: release, pairs with the acquire in `take`.
                let is_put = cell.compare_exchange(seen, holding(lap, slot), Release, Relaxed).is_ok();
                advance(self.tail, ticket);
                if is_put {
                    return true;
                }
            } else if is_earlier(seen, lap) {
                // We see an old value. The tail must not pass a ticket that is still to be put.
                spin_loop();
            } else {
                // Another thread has put a slot here and has not advanced the tail yet, or we have read an old tail.
                advance(self.tail, ticket);
            }
        }
        false
    }

    /// Takes out the slot that exited first; `None` if there is none.
    pub(crate) fn take(&self) -> Option<u64> {
        for _ in 0..self.steps_max() {
            // ORDERING: as in `put`.
            let ticket = self.head.load(Relaxed);
            let (cell, lap) = self.cell_of(ticket);
            let seen = cell.load(Relaxed);
            if seen == empty(lap) {
                return None;
            }
            let next_lap = empty(lap.wrapping_add(1));
            if seen >> LAP_SHIFT == u64::from(lap) {
                // ORDERING: acquire, pairs with the release in `put`: we see what the last owner wrote.
                let is_taken = cell.compare_exchange(seen, next_lap, Acquire, Relaxed).is_ok();
                advance(self.head, ticket);
                if is_taken {
                    return Some((seen & !(u64::MAX << LAP_SHIFT)) - 1);
                }
            } else if is_earlier(seen, lap) {
                // We see an old value, as in `put`.
                spin_loop();
            } else {
                // Another thread has taken the slot and has not advanced the head yet, or we have read an old head.
                advance(self.head, ticket);
            }
        }
        None
    }

    /// How many slots are in the queue, about: head and tail are hints.
    #[cfg_attr(loom, allow(dead_code, reason = "the model needs no length"))]
    pub(crate) fn len(&self) -> u64 {
        // ORDERING: relaxed: hints.
        self.tail.load(Relaxed).saturating_sub(self.head.load(Relaxed))
    }

    /// The most steps that a thread makes. A step fails only if another thread's step has succeeded, or if a store is
    /// not visible yet. The bound holds even if the queue is damaged.
    fn steps_max(&self) -> usize {
        2 * self.cells.len() + 1000
    }

    fn cell_of(&self, ticket: u64) -> (&AtomicU64, u32) {
        let cells = self.cells.len() as u64;
        // Only the lower 32 bits of the lap are kept. 2^32 laps do not pass between two steps of a thread.
        (&self.cells[(ticket % cells) as usize], (ticket / cells) as u32)
    }
}

/// A cell into which a slot may be put in this lap. A new cell is empty for lap 0.
const fn empty(lap: u32) -> u64 {
    (lap as u64) << LAP_SHIFT
}

/// A cell that holds a slot.
const fn holding(lap: u32, slot: u64) -> u64 {
    empty(lap) | (slot + 1)
}

/// Whether a cell's value belongs to an earlier lap. The cell has changed since, but a processor that orders loads
/// weakly may still show the old value for a moment.
fn is_earlier(seen: u64, lap: u32) -> bool {
    (((seen >> LAP_SHIFT) as u32).wrapping_sub(lap) as i32) < 0
}

/// Advances head or tail from `ticket` to the next, unless another thread has done so.
fn advance(hint: &AtomicU64, ticket: u64) {
    // ORDERING: relaxed, see `put`.
    let _ = hint.compare_exchange(ticket, ticket.wrapping_add(1), Relaxed, Relaxed);
}

// The model in the tests includes this file, and loom's atomics work within a model only.
#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn queue<T>(cells: usize, body: impl FnOnce(&ExitQueue<'_>) -> T) -> T {
        let cells: Vec<AtomicU64> = (0..cells).map(|_| AtomicU64::new(0)).collect();
        body(&ExitQueue { head: &AtomicU64::new(0), tail: &AtomicU64::new(0), cells: &cells })
    }

    #[test]
    fn slots_leave_in_the_order_of_their_exits() {
        queue(4, |queue| {
            assert_eq!(queue.take(), None);
            for lap in 0..10 {
                for slot in [2, 0, 3] {
                    assert!(queue.put(slot));
                }
                for slot in [2, 0, 3] {
                    assert_eq!(queue.take(), Some(slot), "lap {lap}");
                }
                assert_eq!(queue.take(), None);
            }
        });
    }

    #[test]
    fn a_process_that_died_between_two_steps_blocks_no_other() {
        queue(4, |queue| {
            queue.cells[0].store(holding(0, 2), Relaxed); // killed before it moved the tail
            assert!(queue.put(3));
            assert_eq!(queue.take(), Some(2));
            queue.cells[1].store(empty(1), Relaxed); // took slot 3, and was killed before it moved the head
            assert!(queue.put(1));
            assert_eq!(queue.take(), Some(1));
            assert_eq!(queue.take(), None);
        });
    }

    #[test]
    fn the_steps_in_a_damaged_queue_are_bounded() {
        queue(4, |queue| {
            queue.tail.store(64, Relaxed);
            assert!(!queue.put(1));
            queue.head.store(1 << 40, Relaxed);
            assert_eq!(queue.take(), None);
        });
    }

    #[test]
    fn no_slot_is_lost_or_given_to_two_threads_under_load() {
        const SLOTS: usize = 8;
        const ROUNDS: usize = 200_000;
        queue(SLOTS, |queue| {
            let owned: Vec<AtomicUsize> = (0..SLOTS).map(|_| AtomicUsize::new(0)).collect();
            for slot in 0..SLOTS {
                assert!(queue.put(slot as u64));
            }
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for _ in 0..ROUNDS {
                            let Some(slot) = queue.take() else { continue };
                            let owners = &owned[slot as usize];
                            assert_eq!(owners.fetch_add(1, Relaxed), 0, "slot {slot} has two owners");
                            owners.fetch_sub(1, Relaxed);
                            assert!(queue.put(slot));
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
