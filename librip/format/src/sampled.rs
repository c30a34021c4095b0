//! Sampled times: when some events of a thread happened, taken about once a millisecond.
//!
//! A slot of a ring whose header has [`Header::sampled_times`](crate::Header::sampled_times) has [`SampledTimes`] after
//! its entries for channels. A mark has no time of its own. It lies between two of these times.
//!
//! A time is that of an event, or with [`SAMPLED_BETWEEN`] that of a moment between two events: when a thread began or
//! ended a poll of a task.

use core::mem::size_of;
use core::sync::atomic::AtomicU64;

use crate::PAYLOAD_MASK;
use crate::checksum::FACTOR;

/// How many times a slot keeps, the last ones.
pub const SAMPLED_TIMES: usize = 16;

/// The sampled times of a slot.
#[repr(C)]
#[derive(Debug)]
pub struct SampledTimes {
    /// How many times were ever taken. The next one goes to this index modulo [`SAMPLED_TIMES`].
    pub taken: AtomicU64,
    /// The last times. All zero where there is none.
    pub times: [SampledTime; SAMPLED_TIMES],
}

/// In [`SampledTime::sequence`]: the time is before the word with this sequence was reserved, and after those before
/// it.
pub const SAMPLED_BETWEEN: u64 = 1 << 63;

/// When one event happened, or a moment between two.
#[repr(C)]
#[derive(Debug)]
pub struct SampledTime {
    /// The sequence of the event's word, or of one of its words. Or a sequence with [`SAMPLED_BETWEEN`].
    pub sequence: AtomicU64,
    /// [`sampled_time`] of the sequence. Written last.
    pub time: AtomicU64,
}

/// Bytes of the sampled times of a slot.
pub const SAMPLED_TIMES_LEN_BYTES: u64 = size_of::<SampledTimes>() as u64;

/// Packs [`SampledTime::time`]: the time in ticks, and a checksum of both, because the two words may be of two entries.
pub const fn sampled_time(sequence: u64, ticks: u64) -> u64 {
    let ticks = ticks & PAYLOAD_MASK;
    // One changed bit in either changes the checksum, because the factor is odd and its upper bits depend on all.
    let mixed = (sequence.wrapping_mul(FACTOR) ^ ticks).wrapping_add(1).wrapping_mul(FACTOR);
    ticks | mixed & !PAYLOAD_MASK
}

/// The time in ticks; `None` if there is none, or the words do not belong together.
pub const fn sampled_ticks(sequence: u64, time: u64) -> Option<u64> {
    if time == sampled_time(sequence, time) { Some(time & PAYLOAD_MASK) } else { None }
}

const _: () = {
    assert!(size_of::<SampledTimes>() == 264);
    assert!(sampled_ticks(0, 0).is_none(), "an entry that was never written is none");
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_belongs_to_its_sequence_alone() {
        for (sequence, ticks) in [(0, 1), (1, 1), (77, PAYLOAD_MASK), (u64::MAX, 1 << 40), (1 << 32, 1 << 16)]
        {
            let time = sampled_time(sequence, ticks);
            assert_eq!(sampled_ticks(sequence, time), Some(ticks));
            for bit in 0..64 {
                assert_eq!(sampled_ticks(sequence ^ 1 << bit, time), None, "{sequence} {ticks} {bit}");
                assert_eq!(sampled_ticks(sequence, time ^ 1 << bit), None, "{sequence} {ticks} {bit}");
            }
        }
    }
}
