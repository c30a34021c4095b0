//! Channels: words of their own for some of a program's events, so that rare ones survive frequent ones.
//!
//! A program declares a channel by name and number of words. Each thread that records an event of the channel gets a
//! *history* for it, beside the words of its slot: so many words, behind a header with a count. The words are those of
//! [`word`](crate::word), and mean what they mean in a slot.
//!
//! A slot of a ring whose header has [`Header::channel_entries`](crate::Header::channel_entries) has that many entries
//! after its open spans, one for each channel, of 64 bits. An entry is one more than the place of the history's header
//! in the region [`REGION_HISTORIES`](crate::REGION_HISTORIES), in units of 8 bytes. It is 0 if there is no history,
//! and [`HISTORY_REFUSED`] if there was no room for one. A history stays with its slot. If the slot has another owner,
//! the entry is 0 until that owner records an event of the channel; then [`HistoryHeader::first_sequence`] says where
//! its words begin.
//!
//! The recorder looks for a history's place in the slot, and bounds it by numbers in private memory. So whoever
//! scribbles on the slot can send words to another place of the same region, and not elsewhere.

use core::mem::{offset_of, size_of};
use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::Text;

/// A ring has at most this many channels.
pub const CHANNELS_MAX: usize = 8;

/// The name of a channel has at most this many bytes.
pub const CHANNEL_NAME_LEN_MAX: usize = 40;

/// A channel, as the program declares it.
#[repr(C)]
#[derive(Debug)]
pub struct Channel {
    /// The entry's [checksum](crate::checksum), written last; 0 before.
    pub state: AtomicU32,
    /// The words of a history: a power of two, from [`SLOT_WORDS_MIN`](crate::SLOT_WORDS_MIN) to
    /// [`SLOT_WORDS_MAX`](crate::SLOT_WORDS_MAX).
    pub words: u32,
    /// Its name.
    pub name: Text,
}

/// An entry of the region [`REGION_CHANNELS`](crate::REGION_CHANNELS).
#[repr(C)]
#[derive(Debug)]
pub struct ChannelEntry {
    /// What is written once.
    pub channel: Channel,
    /// The least level that is recorded, a `LEVEL_*`: 0 for all events, [`LEVEL_OFF`] for none. Whoever may write to
    /// the file may change it at any time, and all threads obey.
    pub level: AtomicU32,
    /// 0.
    pub reserved: [u32; 3],
}

/// [`ChannelEntry::level`]: nothing is recorded. It is above every level.
pub const LEVEL_OFF: u32 = 6;

/// An entry of a slot for a channel: there was no room for a history.
pub const HISTORY_REFUSED: u64 = u64::MAX;

/// The part of a history before its words.
#[repr(C)]
#[derive(Debug)]
pub struct HistoryHeader {
    /// One more than the index of the slot to which it belongs.
    pub slot: AtomicU32,
    /// The index of its channel.
    pub channel: AtomicU32,
    /// The number of its words.
    pub words: AtomicU32,
    /// The slot's generation when its owner first recorded here; 0 while that is being written.
    pub generation: AtomicU32,
    /// The owner's first sequence here. Earlier words are a predecessor's.
    pub first_sequence: AtomicU64,
    /// 0.
    pub reserved: [AtomicU64; 4],
    /// The number of words that the history has ever taken: see [`SlotHeader::count`](crate::SlotHeader::count).
    pub count: AtomicU64,
}

/// Bytes of a history before its words.
pub const HISTORY_HEADER_LEN_BYTES: u64 = size_of::<HistoryHeader>() as u64;

const _: () = {
    assert!(size_of::<Channel>() == 16 && size_of::<ChannelEntry>() == 32);
    assert!(size_of::<HistoryHeader>() == 64);
    assert!(
        size_of::<HistoryHeader>() - offset_of!(HistoryHeader, count) == crate::CURSOR_TO_COUNT_BYTES,
        "words are reserved as in a slot"
    );
};
