//! Sampled times: about once a millisecond, a thread notes when it recorded an event.
//!
//! A mark has no time of its own, because to read a clock takes longer than the mark. With
//! [`Clock::Ticks`](super::clock::Clock) each thread has a sequence at which a time is due. Each event that Rust code
//! records, and each mark of progress, compares its own sequence with that, and calls [`take`] if it is due. A plain
//! mark does not look: it would take a fifth of a nanosecond or more. With other clocks a time is never due.
//!
//! # How often
//!
//! A time is due after a number of words, the period. Each time taken says how long the last period was, and so how
//! long the next one should be: a thread that records a million words a second takes every thousandth, one that records
//! ten takes each. The period is at most [`PERIOD_MAX`]. After a recorded wait a time is due at once. A thread cannot
//! see that it has paused elsewhere: then up to that many words have only the time before the pause as a bound.

#![allow(unsafe_code, reason = "the times of a slot are reached through the thread's cursor")]

use core::sync::atomic::Ordering::{Relaxed, Release};

use librip_format::{SAMPLED_BETWEEN, SAMPLED_TIMES, SampledTimes, SlotParts, sampled_time};

use super::slot::Slot;
use super::{clock, instance};
use crate::arch::{self, DUE_NEVER, DUE_NOW, ThreadBlock};

/// The ticks between two times that are aimed at: 0.5 to 1 ms, because a tick is 8 to 16 ns.
const AIM_TICKS: u64 = 1 << 16;

/// The longest period, words. To take a time costs about a hundred nanoseconds, so a word costs 0.1 ns at most.
const PERIOD_MAX: u64 = 1024;

/// When the first time of a thread is due.
pub(crate) fn first_due() -> u64 {
    if clock::samples() { DUE_NOW } else { DUE_NEVER }
}

/// Notes the present time as that of the thread's last word, and when the next time is due for marks with this block.
///
/// It allocates nothing. A signal handler may interrupt it and take a time too.
#[cold]
pub(crate) fn take(block: &ThreadBlock) {
    let (Some(slot), true) = (Slot::existing(), clock::samples()) else {
        return block.due.set(DUE_NEVER);
    };
    let ticks = clock::of_event();
    // ORDERING: relaxed: this thread's own stores. Wrapping, because somebody may have scribbled on the count.
    let sequence = slot.header().count.load(Relaxed).wrapping_sub(1);
    let period = next_period(block.period.get(), ticks.wrapping_sub(block.sampled_ticks.get()));
    block.period.set(period);
    block.sampled_ticks.set(ticks);
    block.due.set(sequence.wrapping_add(period));
    store(slot, sequence, ticks);
}

/// Notes a time that is after all words of a slot so far, and before the next one. The calling thread has the slot.
#[cold]
pub(super) fn take_between(slot: Slot, ticks: u64) {
    if clock::samples() {
        // ORDERING: relaxed: this thread's own stores.
        store(slot, slot.header().count.load(Relaxed) | SAMPLED_BETWEEN, ticks);
    }
}

/// How many words after a time the next one is due, if the last period took so many ticks.
fn next_period(period: u64, took_ticks: u64) -> u64 {
    let fitting = period.saturating_mul(AIM_TICKS) / took_ticks.max(1);
    fitting.min(period * 2).clamp(1, PERIOD_MAX)
}

fn store(slot: Slot, sequence: u64, ticks: u64) {
    let Some(owner) = instance::owner() else { return };
    let parts = SlotParts {
        words: slot.len() as u32,
        spans: arch::module().span_entries() as u32,
        channels: owner.channels.of_slot(),
        has_times: true,
        has_task: false,
    };
    let times = slot.begin().wrapping_byte_add(parts.times_at_bytes() as usize).cast::<SampledTimes>();
    // SAFETY: the numbers of entries are in private memory, and at the level of clock that `samples` each slot has
    // these times, in a mapping that stays. All fields are atomics.
    let times = unsafe { &*times };
    // SAFETY: the number of times is right before them, as the count of a slot is before its words.
    let index = unsafe { arch::reserve(times.times.as_ptr().cast_mut().cast(), 1) };
    let entry = &times.times[index as usize % SAMPLED_TIMES];
    // ORDERING: a reader that sees one store without the other finds that they do not belong together. Relaxed
    // suffices; release keeps their order for a reader that sees both.
    entry.sequence.store(sequence, Relaxed);
    entry.time.store(sampled_time(sequence, ticks), Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The period of a thread that records a word in this many ticks, after so many times.
    fn period_after(mut period: u64, ticks_of_word: u64, times: u32) -> u64 {
        for _ in 0..times {
            period = next_period(period, period * ticks_of_word);
        }
        period
    }

    #[test]
    fn a_period_takes_about_a_millisecond_and_is_a_word_at_least() {
        assert_eq!(period_after(1, 0, 20), PERIOD_MAX);
        assert_eq!(period_after(1, 1 << 8, 20), 256);
        assert_eq!(period_after(PERIOD_MAX, 1 << 10, 1), 64);
        assert_eq!(period_after(PERIOD_MAX, 1 << 20, 1), 1);
        assert_eq!(period_after(1, u64::MAX, 3), 1);
    }

    #[test]
    fn after_a_pause_a_period_is_one_word_and_then_doubles_at_most() {
        let after_pause = next_period(512, u64::MAX >> 20);
        assert_eq!(after_pause, 1);
        assert_eq!((0..3).map(|times| period_after(after_pause, 1, times)).collect::<Vec<_>>(), [1, 2, 4]);
    }

    #[test]
    fn a_period_that_was_never_set_or_is_anything_gives_a_sound_one() {
        for period in [0, 1, PERIOD_MAX] {
            for took in [0, 1, u64::MAX] {
                assert!((1..=PERIOD_MAX).contains(&next_period(period, took)), "{period} {took}");
            }
        }
    }
}
