//! [`Channel`]: words of their own for some of a program's events.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use librip_format::{CHANNEL_NAME_LEN_MAX, HISTORY_REFUSED, SLOT_WORDS_MAX, SLOT_WORDS_MIN};

use super::record::{self, Time};
use super::values::Values;
use crate::process::instance;
use crate::process::slot::Slot;

/// Words of their own for some events, in each thread: [`rip_channel!`](crate::rip_channel) declares one.
#[derive(Debug)]
pub struct Channel {
    name: &'static str,
    words: u32,
    /// [`UNKNOWN`], [`REFUSED`], or the channel's index in the ring.
    index: AtomicU32,
}

/// The ring does not have the channel yet.
pub(super) const UNKNOWN: u32 = u32::MAX;
/// The ring has no room for the channel.
pub(super) const REFUSED: u32 = u32::MAX - 1;

impl Channel {
    /// What [`rip_channel!`](crate::rip_channel) calls.
    #[doc(hidden)]
    pub const fn new(name: &'static str, words: u32) -> Channel {
        assert!(
            !name.is_empty() && name.len() <= CHANNEL_NAME_LEN_MAX,
            "the name of a channel has at most 40 bytes"
        );
        assert!(
            SLOT_WORDS_MIN <= words && words <= SLOT_WORDS_MAX,
            "a channel has from 16 to 16384 words for each thread"
        );
        Channel { name, words: words.next_power_of_two(), index: AtomicU32::new(UNKNOWN) }
    }

    /// Whether events of this level are recorded: `read-rip set` may have switched them off.
    #[doc(hidden)]
    #[inline(always)]
    pub fn takes(&self, level: u16) -> bool {
        // ORDERING: relaxed: the index is a number, and hands nothing over.
        let index = u64::from(self.index.load(Relaxed));
        instance::owner().is_none_or(|owner| owner.channels.level(index) <= u32::from(level))
    }

    /// The calling thread's history in this channel. It is made if there is none; `None` if there is no room.
    #[inline(always)]
    pub(super) fn history(&self, slot: Slot) -> Option<Slot> {
        let index = match self.index.load(Relaxed) {
            UNKNOWN => self.enter(),
            index => index,
        };
        history(slot, u64::from(index), self.words)
    }

    #[cold]
    #[inline(never)]
    fn enter(&self) -> u32 {
        let index = instance::enter_channel(self.name.as_bytes(), self.words);
        let index = index.map_or(REFUSED, |index| index as u32);
        // All threads get the same index.
        self.index.store(index, Relaxed);
        index
    }
}

/// The history of a slot in a channel of so many words. It is made if there is none; `None` if there is no room.
#[inline(always)]
pub(super) fn history(slot: Slot, channel: u64, words: u32) -> Option<Slot> {
    let channels = &instance::owner()?.channels;
    let entry = slot.history_entry(channels, channel)?;
    Slot::history(channels, entry, u64::from(words)).or_else(|| {
        if entry == HISTORY_REFUSED {
            return None;
        }
        begin(channel, words);
        Slot::history(channels, slot.history_entry(channels, channel)?, u64::from(words))
    })
}

#[cold]
#[inline(never)]
fn begin(channel: u64, words: u32) {
    instance::begin_history(channel, words);
}

/// What [`rip_event!`](crate::rip_event) calls for an event in a channel.
#[inline(always)]
pub fn event_in<V: Values>(channel: &Channel, pc: u64, values: V) {
    if let Some(history) = Slot::current().and_then(|slot| channel.history(slot)) {
        record::write(history, Time::now(), &values, pc);
    }
}
