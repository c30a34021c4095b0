//! Where the channels of the ring are, and the calling thread's histories in them.
//!
//! `ring::histories` makes histories, and `event::channel` decides when. An event finds its history by an entry of the
//! thread's own slot. That entry is in the file, so anyone may have written it: a history is used only if it lies
//! within the region of histories. Where that region is, private memory says.

#![allow(unsafe_code, reason = "histories are reached through the mapping")]

use core::mem::offset_of;
use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

use librip_format::ChannelEntry;

use crate::ring::histories::HEADER_WORDS;
use crate::ring::{Ring, Table};

/// Where the channels of a ring are. All zero before there is a ring, and in a ring without channels.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Channels {
    table: AtomicPtr<u8>,
    /// The first history. Written last.
    histories: AtomicPtr<u64>,
    /// The length of the region of histories, in units of 8 bytes.
    histories_len: AtomicU64,
    /// The number of channels that a slot has entries for.
    entries: AtomicU64,
}

impl Channels {
    pub(crate) const fn none() -> Channels {
        Channels {
            table: AtomicPtr::new(ptr::null_mut()),
            histories: AtomicPtr::new(ptr::null_mut()),
            histories_len: AtomicU64::new(0),
            entries: AtomicU64::new(0),
        }
    }

    /// The ring is there.
    pub(crate) fn install(&self, ring: &Ring) {
        let Some((table, histories)) = ring.of_channels() else { return };
        // ORDERING: relaxed: ordered by the release below.
        self.table.store(table, Relaxed);
        self.histories_len.store(ring.geometry.capacity(Table::Histories), Relaxed);
        self.entries.store(u64::from(ring.geometry.slot.channels), Relaxed);
        // ORDERING: release, pairs with the acquires here: the other fields are there.
        self.histories.store(histories, Release);
    }

    /// The least level that a channel records.
    #[inline(always)]
    pub(crate) fn level(&self, channel: u64) -> u32 {
        // ORDERING: relaxed: an event at this moment may be recorded or not.
        self.level_entry(channel).map_or(0, |level| level.load(Relaxed))
    }

    /// Where the least level that a channel records is; `None` if the ring does not have the channel.
    #[inline(always)]
    pub(crate) fn level_entry(&self, channel: u64) -> Option<&'static AtomicU32> {
        if !self.has(channel) {
            return None;
        }
        let entry = self.table.load(Relaxed).wrapping_add(channel as usize * size_of::<ChannelEntry>());
        let level = entry.wrapping_add(offset_of!(ChannelEntry, level)).cast::<u32>();
        // SAFETY: an aligned field of an entry of the table, in a mapping that stays.
        Some(unsafe { AtomicU32::from_ptr(level) })
    }

    /// The number of channels that a slot has entries for.
    pub(crate) fn of_slot(&self) -> u32 {
        // ORDERING: relaxed: it is 0, or was stored before a thread had a cursor.
        self.entries.load(Relaxed) as u32
    }

    /// Whether slots have an entry for this channel.
    #[inline(always)]
    pub(crate) fn has(&self, channel: u64) -> bool {
        !self.histories.load(Acquire).is_null() && channel < self.entries.load(Relaxed)
    }

    /// The words of a history, by a slot's entry for it; `None` if so many words cannot be there. Before them is a
    /// count. If somebody has scribbled on the entry, they may be those of another history.
    #[inline(always)]
    pub(crate) fn history(&self, entry: u64, words: u64) -> Option<NonNull<u64>> {
        let begin = entry.checked_sub(1)?.checked_add(HEADER_WORDS)?;
        if begin.checked_add(words)? > self.histories_len.load(Relaxed) {
            return None;
        }
        NonNull::new(self.histories.load(Acquire).wrapping_add(begin as usize))
    }
}
