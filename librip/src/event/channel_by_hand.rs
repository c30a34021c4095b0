//! [`ChannelByHand`]: a channel that a program in C declares.
//!
//! It does what [`Channel`](super::channel::Channel) does for Rust. The header reads the level itself: so an event that
//! is switched off calls nothing.

#![allow(unsafe_code, reason = "the name is a text of a program in C")]

use core::ffi::{CStr, c_char};
use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::Ordering::{Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32};

use librip_format::{CHANNEL_NAME_LEN_MAX, SLOT_WORDS_MAX, SLOT_WORDS_MIN};

use super::channel::{self, REFUSED, UNKNOWN};
use super::record::{self, Time};
use super::values::Values;
use crate::process::instance;
use crate::process::slot::Slot;

/// A channel: `struct rip_channel` of the header, which makes it and checks the number of words.
#[repr(C)]
#[derive(Debug)]
pub struct ChannelByHand {
    /// Its name, with a zero byte at the end.
    name: *const c_char,
    /// Where the least level that the channel records is; null before the ring has the channel.
    level: AtomicPtr<u32>,
    words: u32,
    /// [`UNKNOWN`], [`REFUSED`], or the channel's index in the ring.
    index: AtomicU32,
}

const _: () = assert!(
    size_of::<ChannelByHand>() == 24
        && offset_of!(ChannelByHand, level) == 8
        && offset_of!(ChannelByHand, words) == 16
        && offset_of!(ChannelByHand, index) == 20
        && UNKNOWN == u32::MAX,
    "the header says so"
);

impl ChannelByHand {
    /// Enters the channel in the ring, and tells the header where its level is. Returns whether events of this level
    /// are recorded.
    ///
    /// # Safety
    ///
    /// The name is a zero-terminated string.
    #[cold]
    pub unsafe fn takes(&self, level: u16) -> bool {
        let Some(owner) = instance::owner() else { return true };
        // SAFETY: the caller's promise.
        let index = unsafe { self.index() };
        let Some(least) = owner.channels.level_entry(u64::from(index)) else { return true };
        // ORDERING: release, pairs with the acquire in the header: the index is there. All threads store the same.
        self.level.store(ptr::from_ref(least).cast_mut().cast(), Release);
        // ORDERING: relaxed: an event at this moment may be recorded or not.
        least.load(Relaxed) <= u32::from(level)
    }

    /// The channel's index in the ring, or [`REFUSED`].
    ///
    /// # Safety
    ///
    /// As [`takes`](ChannelByHand::takes).
    #[inline(always)]
    unsafe fn index(&self) -> u32 {
        // ORDERING: relaxed: the index is a number, and hands nothing over.
        match self.index.load(Relaxed) {
            // SAFETY: the caller's promise.
            UNKNOWN => unsafe { self.enter() },
            index => index,
        }
    }

    #[cold]
    #[inline(never)]
    unsafe fn enter(&self) -> u32 {
        // SAFETY: the caller's promise.
        let name = unsafe { CStr::from_ptr(self.name) }.to_bytes();
        let name = &name[..name.len().min(CHANNEL_NAME_LEN_MAX)];
        let index = instance::enter_channel(name, self.words());
        let index = index.map_or(REFUSED, |index| index as u32);
        // All threads get the same index.
        self.index.store(index, Relaxed);
        index
    }

    /// The number of words of a thread. The header has checked it, but the program may have changed it.
    #[inline(always)]
    fn words(&self) -> u32 {
        self.words.clamp(SLOT_WORDS_MIN, SLOT_WORDS_MAX)
    }

    /// The calling thread's history in this channel, and how to find it again; `None` if there is no room.
    ///
    /// # Safety
    ///
    /// As [`takes`](ChannelByHand::takes).
    #[inline(always)]
    pub(super) unsafe fn history(&self, slot: Slot) -> Option<(Slot, HistoryPlace)> {
        // SAFETY: the caller's promise.
        let place = HistoryPlace { channel: unsafe { self.index() }, words: self.words() };
        Some((channel::history(slot, u64::from(place.channel), place.words)?, place))
    }
}

/// Records an event in a channel.
///
/// # Safety
///
/// As [`ChannelByHand::takes`].
#[inline]
pub(crate) unsafe fn event_in<V: Values>(channel: &ChannelByHand, pc: u64, values: V) {
    let Some(slot) = Slot::current() else { return };
    // SAFETY: the caller's promise.
    if let Some((history, _)) = unsafe { channel.history(slot) } {
        record::write(history, Time::now(), &values, pc);
    }
}

/// Which of a thread's histories it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct HistoryPlace {
    channel: u32,
    words: u32,
}

impl HistoryPlace {
    /// As a number, which is not 0.
    #[inline(always)]
    pub(super) fn to_bits(self) -> u32 {
        // A ring has few channels, and their words are at most 16384.
        self.words << 16 | (self.channel + 1)
    }

    /// The history of this slot; `None` if it has none. The program may have changed the number.
    pub(super) fn find(bits: u32, slot: Slot) -> Option<Slot> {
        let words = bits >> 16;
        let channel = u64::from(bits & 0xffff).checked_sub(1)?;
        if !(SLOT_WORDS_MIN..=SLOT_WORDS_MAX).contains(&words) {
            return None;
        }
        let channels = &instance::owner()?.channels;
        Slot::history(channels, slot.history_entry(channels, channel)?, u64::from(words))
    }
}
