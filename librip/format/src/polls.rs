//! How long polls took, and how long tasks waited for them, by the place at which tasks were made: the entries of
//! [`REGION_POLLS`](crate::REGION_POLLS).
//!
//! The region is there if the operator asked for it (`RIP_POLLS=times`) and the program has tasks. A ring has an entry
//! for each place; two entries may have the same one, and belong together. Tasks whose names say of which kind they
//! are ([`TASK_NAME_IS_KIND`](crate::TASK_NAME_IS_KIND)), as requests do, have an entry for each name.
//!
//! ```text
//! +----------------------+ 0
//! | place                |  the location at which its tasks were made, and their name
//! +----------------------+
//! | LongPoll ...         |  the longest polls
//! +----------------------+
//! | PollLane ...         |  counts; threads share a lane if there are more of them than lanes
//! |   polls   u64 x 128  |    127 counts by length, and the greatest length
//! |   delays  u64 x 128  |    the same of the time from a wake to the poll that answers it
//! +----------------------+ 17088 bytes
//! ```
//!
//! Each count is a word of its own. So a process that is killed at any instruction leaves counts of polls that have
//! ended, and all of them but those that were about to be counted. Lengths are ticks of the [clock](crate::clock).
//!
//! The first entry, without a location and a name, is for the tasks whose places have no room.

use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::THREAD_NAME_LEN_BYTES;

/// A ring has this many places of polls, the one for the others included.
pub const POLL_PLACES_MAX: usize = 256;
/// How many of its longest polls a place keeps.
pub const LONG_POLLS: usize = 8;
/// How many lanes a place has.
pub const POLL_LANES: usize = 8;
/// How many counts of lengths there are.
pub const POLL_COUNTS: usize = 127;

const NAME_WORDS: usize = THREAD_NAME_LEN_BYTES / 8;

/// The polls of the tasks that were made at a place.
#[repr(C)]
#[derive(Debug)]
pub struct PollPlace {
    /// The [checksum](crate::checksum) of the rest up to `longest`, written last; 0 before.
    pub state: AtomicU32,
    /// The process that made the entry: the location is an address in it.
    pub pid: AtomicU32,
    /// The address of the location at which its tasks were made, as [`TaskPart::location`](crate::TaskPart::location);
    /// 0: tasks whose places have no room.
    pub location: AtomicU64,
    /// The name of its tasks, padded with zeros, if that says of which kind they are.
    pub name: [AtomicU64; NAME_WORDS],
    /// Zero.
    pub reserved: AtomicU64,
    /// The longest polls, in no order.
    pub longest: [LongPoll; LONG_POLLS],
    /// The counts. They belong together.
    pub lanes: [PollLane; POLL_LANES],
}

/// A poll that has ended, one of the longest ones of its place.
#[repr(C)]
#[derive(Debug)]
pub struct LongPoll {
    /// The [checksum](crate::checksum) of the rest, written last; 0 before, and while the poll is replaced by a longer
    /// one. If it does not fit, the entry was copied while it was replaced.
    pub state: AtomicU32,
    /// The process.
    pub pid: AtomicU32,
    /// The task's number, as [`SlotHeader::tid`](crate::SlotHeader::tid) has it.
    pub task: AtomicU32,
    /// The id of the thread that polled it.
    pub tid: AtomicU32,
    /// When it began, ticks.
    pub began: AtomicU64,
    /// How long it took, ticks.
    pub took: AtomicU64,
    /// The PC word that the task recorded last in this poll; 0 if it recorded none.
    pub last: AtomicU64,
    /// The task's name, padded with zeros.
    pub name: [AtomicU64; NAME_WORDS],
}

/// The counts of some threads.
#[repr(C)]
#[derive(Debug)]
pub struct PollLane {
    /// The lengths of polls.
    pub polls: PollLengths,
    /// The times from a wake to the poll that answers it. Making a task counts as a wake.
    pub delays: PollLengths,
}

/// How often a length was seen.
#[repr(C)]
#[derive(Debug)]
pub struct PollLengths {
    /// By [`poll_count_of`].
    pub counts: [AtomicU64; POLL_COUNTS],
    /// The greatest length, ticks.
    pub greatest: AtomicU64,
}

/// The count to which a length belongs, in ticks. There are four for each power of two. The last one has all longer
/// lengths, from 52 s on at the shortest.
#[inline(always)]
pub const fn poll_count_of(ticks: u64) -> usize {
    if ticks < 4 {
        return ticks as usize;
    }
    let power = ticks.ilog2();
    let index = 4 * (power as usize - 1) + (ticks >> (power - 2) & 3) as usize;
    if index < POLL_COUNTS { index } else { POLL_COUNTS - 1 }
}

/// The shortest length that belongs to a count, ticks.
pub const fn poll_count_from(index: usize) -> u64 {
    match index {
        0..4 => index as u64,
        _ => (4 + index as u64 % 4) << (index / 4 - 1),
    }
}

const _: () = {
    assert!(size_of::<LongPoll>() == 80);
    assert!(size_of::<PollLengths>() == 1024);
    assert!(core::mem::offset_of!(PollPlace, longest) == 64);
    assert!(core::mem::offset_of!(PollPlace, lanes) == 11 * 64, "lanes share no line of a cache");
    assert!(size_of::<PollPlace>() == 17_088 && size_of::<PollPlace>().is_multiple_of(64));
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_count_begins_where_the_one_before_ends() {
        for index in 0..POLL_COUNTS {
            let from = poll_count_from(index);
            assert_eq!(poll_count_of(from), index);
            if index > 0 {
                assert_eq!(poll_count_of(from - 1), index - 1);
                assert!(from - poll_count_from(index - 1) <= (from / 5).max(1), "{index}: a fifth at most");
            }
        }
        assert_eq!(poll_count_of(u64::MAX), POLL_COUNTS - 1);
        // A tick is 8 ns or longer.
        assert!(poll_count_from(POLL_COUNTS - 1) * 8 > 50_000_000_000);
    }
}
