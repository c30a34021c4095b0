//! Channels and histories: words of their own for some events of a thread.
//!
//! A history belongs to a slot for good, as the slot's words do. So a ring has at most one for each slot and channel,
//! and threads that come and go take no more.
//!
//! # Invariants
//!
//! * Only the owner of a slot makes or changes the slot's histories. It does so with signals blocked.
//! * Where a slot's histories are, the control block says. The entries in the file are copies for the owner's marks and
//!   for the reader.

#![allow(unsafe_code, reason = "histories are raw memory of the mapping")]

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Relaxed, Release};
use core::sync::atomic::fence;

use librip_format::{CHANNELS_MAX, Channel, Checksum, HISTORY_HEADER_LEN_BYTES, HISTORY_REFUSED};

use super::entry::{append_text, write_then_complete};
use super::{Ring, Table};

pub(crate) const HEADER_WORDS: u64 = HISTORY_HEADER_LEN_BYTES / 8;

/// Enters a channel, or finds it. Returns its index; `None` if the ring has no room for it.
pub(crate) fn enter_channel(ring: &Ring, name: &[u8], words: u32) -> Option<u64> {
    let found = try_enter(ring, name, words);
    if found.is_none() {
        count_refusal(ring);
    }
    found
}

fn try_enter(ring: &Ring, name: &[u8], words: u32) -> Option<u64> {
    let room = ring.geometry.slot.channels as usize;
    let key = key(name, words);
    let keys = &ring.control.counters().channel_keys[..room.min(CHANNELS_MAX)];
    for (index, place) in (0..).zip(keys) {
        // ORDERING: relaxed: the exchange says who writes the entry, and nobody here reads it.
        match place.compare_exchange(0, key, Relaxed, Relaxed) {
            Ok(_) => {
                ring.reserve(Table::Channels, 0, room as u64).ok()?;
                let entry = Channel { state: 0.into(), words, name: append_text(ring, name).ok()? };
                // SAFETY: the exchange gave this entry to us alone, within the table and reserved. `Channel` starts
                // with its state, and has no padding: its fields add up to its length.
                unsafe { write_then_complete(ring.channel(index), entry, name) };
                ring.publish_used(Table::Channels, index + 1);
                return Some(index);
            }
            Err(known) if known == key => return Some(index),
            Err(_) => {}
        }
    }
    None
}

/// What stands for a channel in the control block: not 0. Two channels of one name and length are one.
fn key(name: &[u8], words: u32) -> u64 {
    Checksum::new().with(name).with(&words.to_le_bytes()).sum() | 1
}

/// Gives slot `slot`, the calling thread's, a history in a channel. The header counts it if there is no room.
pub(crate) fn begin(ring: &Ring, slot: u64, channel: u64, words: u32) {
    if try_begin(ring, slot, channel, words).is_none() {
        count_refusal(ring);
        if let Some(entry) = ring.channels(slot).get(channel as usize) {
            // ORDERING: relaxed: it refers to nothing. The thread does not try again.
            entry.store(HISTORY_REFUSED, Relaxed);
        }
    }
}

fn count_refusal(ring: &Ring) {
    // ORDERING: relaxed, a statistic.
    ring.header().channels_refused.fetch_add(1, Relaxed);
}

fn try_begin(ring: &Ring, slot: u64, channel: u64, words: u32) -> Option<()> {
    let place = ring.control.histories(slot).get(channel as usize)?;
    let at = place_of(ring, place, words)?;
    let header = ring.history(at);
    // ORDERING: relaxed for the fields. A reader accepts them only if the generation is that of the slot before and
    // after its copy. The fence orders the 0 before them, and the release orders them before the generation.
    header.generation.store(0, Relaxed);
    fence(Release);
    header.slot.store(slot as u32 + 1, Relaxed);
    header.channel.store(channel as u32, Relaxed);
    header.words.store(words, Relaxed);
    header.first_sequence.store(header.count.load(Relaxed), Relaxed);
    header.generation.store(super::slots::generation(ring, slot), Release);
    // ORDERING: release: a reader that sees the entry sees the header.
    ring.channels(slot).get(channel as usize)?.store(at + 1, Release);
    Some(())
}

/// Where a slot's history in a channel is. Takes room for it the first time.
fn place_of(ring: &Ring, place: &AtomicU32, words: u32) -> Option<u64> {
    // ORDERING: relaxed: only the slot's owner accesses it. The next owner synchronises through the exit queue.
    let known = place.load(Relaxed);
    if let Some(at) = known.checked_sub(1) {
        return Some(u64::from(at));
    }
    let at = ring.append(Table::Histories, HEADER_WORDS + u64::from(words)).ok()?;
    // The region has fewer than 2^32 words.
    place.store(at as u32 + 1, Relaxed);
    Some(at)
}
