//! What became of the threads between two readings of a ring.
//!
//! # Question
//!
//! Which threads have recorded something in between, and which have not?
//!
//! # Method
//!
//! A thread is known by its slot and the slot's generation. It has recorded something if the slot's count has changed.
//!
//! # Blind spots
//!
//! A thread that runs code without marks records nothing, and may do much.

use foldhash::HashMap;

use super::{Thread, ThreadState};

#[derive(Debug, Default)]
pub struct Difference<'a> {
    /// Threads that are in both readings and have recorded nothing in between, as they are in the later one.
    pub still: Vec<Thread<'a>>,
    /// How many have recorded something.
    pub moved: usize,
    /// How many are only in the later reading.
    pub begun: usize,
    /// How many are present only in the earlier reading.
    pub ended: usize,
}

/// Compares the threads that are present in two readings of one ring.
pub fn difference<'a>(earlier: &[Thread<'_>], later: &[Thread<'a>]) -> Difference<'a> {
    let is_present = |thread: &&Thread<'_>| thread.state == ThreadState::Present;
    let mut counts: HashMap<(u64, u32), u64> =
        earlier.iter().filter(is_present).map(|thread| (key(thread), thread.slot.count)).collect();
    let mut difference = Difference::default();
    for thread in later.iter().filter(is_present) {
        match counts.remove(&key(thread)) {
            None => difference.begun += 1,
            Some(count) if count == thread.slot.count => difference.still.push(*thread),
            Some(_) => difference.moved += 1,
        }
    }
    difference.ended = counts.len();
    difference
}

fn key(thread: &Thread<'_>) -> (u64, u32) {
    (thread.slot.index, thread.slot.generation)
}
