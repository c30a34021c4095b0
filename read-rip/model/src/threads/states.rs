//! The threads of a snapshot: whether each still exists, and how much of their histories is known.
//!
//! It asks no process: the caller says which threads live.

use std::collections::HashSet;

use read_rip_ring::{Slot, SlotState, Snapshot, is_task};

/// Whether a thread still exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadState {
    /// It can run, or could when its process ended.
    #[default]
    Present,
    /// It recorded its exit, or the memory of a lock names it and the process does not have it.
    Exited,
    /// It disappeared without recording its exit, while its process lives.
    Abandoned,
}

#[derive(Clone, Copy, Debug)]
pub struct Thread<'a> {
    pub slot: &'a Slot,
    /// The slot's index in the snapshot's list of slots.
    pub position: usize,
    /// Whether it still exists.
    pub state: ThreadState,
}

/// All threads of a snapshot, by process and thread id.
///
/// `living` has the ids of the threads that the process has now; it is empty if the process has ended or its
/// threads are not known. `ended` has the forked processes that have ended.
pub fn threads<'a>(snapshot: &'a Snapshot, living: &HashSet<u32>, ended: &HashSet<u32>) -> Vec<Thread<'a>> {
    let own_pid = snapshot.header.as_ref().map_or(0, |header| header.pid);
    let mut threads: Vec<Thread<'_>> = snapshot
        .slots
        .iter()
        .enumerate()
        .map(|(position, slot)| {
            // A task is there as long as its process.
            let is_gone = |tid: u32| !is_task(tid) && !living.is_empty() && !living.contains(&tid);
            let has_disappeared = slot.pid == own_pid && is_gone(slot.tid) || ended.contains(&slot.pid);
            let state = match slot.state {
                SlotState::Exited => ThreadState::Exited,
                SlotState::Live | SlotState::Claiming if has_disappeared => ThreadState::Abandoned,
                SlotState::Live | SlotState::Claiming => ThreadState::Present,
            };
            Thread { slot, position, state }
        })
        .collect();
    threads.sort_by_key(|thread| (thread.slot.pid, thread.slot.tid, thread.slot.claimed_boottime_ns));
    threads
}

/// How much of all histories is known, and how much is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Words that were read.
    pub words: u64,
    /// Words that later ones of the same thread have replaced, as intended.
    pub overwritten: u64,
    /// Words that changed while they were read.
    pub torn: u64,
    /// Words that were reserved and not written, or written over by an interrupted event.
    pub unwritten: u64,
    /// Words that contradict their position.
    pub damaged: u64,
}

/// Adds up all slots, and all histories of channels.
pub fn losses(snapshot: &Snapshot) -> Losses {
    snapshot.slots.iter().chain(&snapshot.histories).fold(Losses::default(), |sum, slot| Losses {
        words: sum.words + slot.words.known() as u64,
        overwritten: sum.overwritten.saturating_add(slot.overwritten()),
        torn: sum.torn + u64::from(slot.torn),
        unwritten: sum.unwritten + u64::from(slot.unwritten),
        damaged: sum.damaged + u64::from(slot.damaged),
    })
}
