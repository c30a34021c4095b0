//! Who created a thread, and who joined it: what orders the things that threads do.
//!
//! The interposer and `librip::thread` tell it. It knows positions in slots, and not how threads are created.
//!
//! # Method
//!
//! The creator's position goes with the thread into thread-local memory, and the thread's claim writes it into the
//! slot. A thread that has no slot yet passes on the position of its own creator.
//!
//! A join knows the thread's `pthread_t` and not its slot. So the exit of a thread notes which slot that was, in a
//! table by `pthread_t`. A later exit may take the place, and then nobody knows of the join. That the C library uses a
//! `pthread_t` again does no harm: a thread that exited earlier with the same `pthread_t` has exited before the join
//! returns too.
//!
//! # Blind spots
//!
//! A thread that has not marked when it joins another one has no position: the join is not noted.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::arch;
use crate::ring::Ring;
use crate::ring::slots::{self, Position};
use crate::sys;

/// The exits that are remembered: 32 KiB, of which pages exist once a thread with a slot has exited.
const EXITS_BITS: u32 = 12;
/// The bits of a `pthread_t` that tell threads apart: it is the address of a descriptor of more than 64 bytes, below
/// 2^48.
const THREAD_BITS: u32 = 42;
const TAG_BITS: u32 = THREAD_BITS - EXITS_BITS;
const INDEX_BITS: u32 = 24;
const GENERATION_BITS: u32 = 64 - TAG_BITS - INDEX_BITS;
/// Odd, so that the product of two different threads differs, and 2^42 by the golden ratio, so that it is spread well.
const MULTIPLIER: u64 = 0x278_dde6_e5fd;

/// Slots of threads that have exited, by their `pthread_t`: the rest of its bits, the slot's index, and the lower bits
/// of the slot's generation.
static EXITS: [AtomicU64; 1 << EXITS_BITS] = [const { AtomicU64::new(0) }; 1 << EXITS_BITS];

/// The calling thread has just begun, and this is where its creator was.
pub(crate) fn created_at(position: Position) {
    let creator = arch::creator();
    creator.count.set(position.count);
    creator.slot.set(position.index + 1);
}

/// Where the creator of the calling thread was.
pub(super) fn inherited() -> Option<Position> {
    let creator = arch::creator();
    let index = creator.slot.get().checked_sub(1)?;
    Some(Position { index, count: creator.count.get() })
}

/// The calling thread is about to leave a slot.
pub(super) fn exits(index: u64, generation: u32) {
    let (place, tag) = place(sys::own_thread());
    let generation = u64::from(generation) << (TAG_BITS + INDEX_BITS);
    // ORDERING: release, pairs with the acquire in `joined`, though a join alone orders them.
    EXITS[place].store(generation | index << TAG_BITS | tag, Release);
}

/// A thread that has come to `joiner` has joined the thread with this `pthread_t`.
pub(super) fn joined(ring: &Ring, thread: usize, joiner: Position) {
    let (place, tag) = place(thread);
    // ORDERING: acquire, pairs with the release in `exits`.
    let exit = EXITS[place].load(Acquire);
    if exit == 0 || exit & ((1 << TAG_BITS) - 1) != tag {
        return;
    }
    let index = exit >> TAG_BITS & ((1 << INDEX_BITS) - 1);
    let generation = (exit >> (TAG_BITS + INDEX_BITS)) as u32;
    slots::joined(ring, index, |life| life & ((1 << GENERATION_BITS) - 1) == generation, joiner);
    // ORDERING: relaxed: a joined thread is joined once. An exit that took the place meanwhile stays.
    let _ = EXITS[place].compare_exchange(exit, 0, Relaxed, Relaxed);
}

/// Where the exit of a thread is noted, and what tells it apart from others there.
fn place(thread: usize) -> (usize, u64) {
    let mixed = (thread as u64 >> 6).wrapping_mul(MULTIPLIER) & ((1 << THREAD_BITS) - 1);
    ((mixed >> TAG_BITS) as usize, mixed & ((1 << TAG_BITS) - 1))
}
