//! Channels, and the histories that threads have in them.
//!
//! A history becomes a [`Slot`] with the owner of the slot that it belongs to, and with words of its own. What `copy`
//! says of the words of a slot holds for those of a history: the count is before them, and only the owner writes.

use std::io;
use std::mem::{offset_of, size_of};

use librip_format::{Channel as RawChannel, ChannelEntry, Checksum, HistoryHeader};

use super::bytes::Bytes;
use super::copy::{CopiedBytes, Place, arrange, known_words, settle};
use super::table::entries;
use super::texts::{Problem, Texts, check_entry};
use super::{Defect, Header, Level, RegionKind, Slot, SlotKind, SlotState, Source, Words};

/// Words of their own for some of a program's events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Its name; may contain anything.
    pub name: String,
    pub words: u32,
    pub level: ChannelLevel,
    /// Where the file has the level, bytes from its start.
    pub level_at: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelLevel {
    All,
    /// Those of this level and above.
    From(Level),
    /// None is.
    Off,
}

impl ChannelLevel {
    /// The number of the format.
    pub fn raw(self) -> u32 {
        match self {
            ChannelLevel::All => 0,
            ChannelLevel::From(level) => u32::from(level.raw()),
            ChannelLevel::Off => librip_format::LEVEL_OFF,
        }
    }
}

impl From<u32> for ChannelLevel {
    /// Decodes the level of the format.
    fn from(raw: u32) -> ChannelLevel {
        match u16::try_from(raw).ok().and_then(Level::from_raw) {
            Some(level) => ChannelLevel::From(level),
            None if raw == 0 => ChannelLevel::All,
            None => ChannelLevel::Off,
        }
    }
}

/// Reads the table of channels. A damaged or unfinished entry keeps its index, because histories refer to it.
pub(super) fn channels(
    table: &[u8],
    header: &Header,
    texts: &mut Texts,
    defects: &mut Vec<Defect>,
) -> Vec<Option<Channel>> {
    let kind = RegionKind::Channels;
    let mut damaged = super::texts::Damaged::default();
    let mut read = Vec::new();
    for (index, entry) in (0..).zip(entries(table, header.channels)) {
        let is_complete = librip_format::is_complete(entry.u32(offset_of!(RawChannel, state)));
        let level_at = header.channels.offset
            + index * header.channels.entry_len_bytes
            + offset_of!(ChannelEntry, level) as u64;
        let channel = is_complete.then(|| channel(&entry, level_at, texts));
        read.push(channel.and_then(|channel| channel.map_or_else(|problem| damaged.note(problem), Some)));
    }
    damaged.report(kind, "a name or a number of words is impossible", defects);
    read
}

fn channel(entry: &Bytes<'_>, level_at: u64, texts: &mut Texts) -> Result<Channel, Problem> {
    let words = entry.u32(offset_of!(RawChannel, words));
    let name = texts.take(entry, offset_of!(RawChannel, name)).ok_or(Problem::Impossible)?;
    if !is_possible(words) || name.len() > librip_format::CHANNEL_NAME_LEN_MAX {
        return Err(Problem::Impossible);
    }
    check_entry(entry, size_of::<RawChannel>(), Checksum::new().with(name))?;
    Ok(Channel {
        name: String::from_utf8_lossy(name).into_owned(),
        words,
        level: entry.u32(offset_of!(ChannelEntry, level)).into(),
        level_at,
    })
}

fn is_possible(words: u32) -> bool {
    words.is_power_of_two()
        && (librip_format::SLOT_WORDS_MIN..=librip_format::SLOT_WORDS_MAX).contains(&words)
}

const HEADER_LEN: usize = size_of::<HistoryHeader>();

/// Reads the histories of these slots. `places` has the entries of the slots for channels: the slot, by its position,
/// the channel, and the entry.
pub(super) fn histories(
    source: &Source,
    header: &Header,
    slots: &[Slot],
    places: &[(usize, usize, u64)],
    defects: &mut Vec<Defect>,
) -> Vec<Slot> {
    let mut damaged: Option<(u64, u64)> = None;
    let mut read = Vec::new();
    for &(slot, channel, entry) in places {
        let Some(slot) = slots.get(slot).filter(|slot| slot.kind.is_recorded()) else { continue };
        if matches!(entry, 0 | librip_format::HISTORY_REFUSED) || slot.state == SlotState::Claiming {
            continue;
        }
        match history(source, header, slot, (channel, entry - 1)) {
            Ok(Found::History(history)) => read.push(*history),
            Ok(Found::OfAnother) => {}
            Ok(Found::Contradiction) => {
                let (count, first) = damaged.unwrap_or((0, slot.index));
                damaged = Some((count + 1, first));
            }
            Err(error) => {
                defects.push(Defect::Io { offset: header.histories.offset, what: error.to_string() });
                break;
            }
        }
    }
    if let Some((count, first)) = damaged {
        defects.push(Defect::Slots { count, first, what: "a history of a channel contradicts itself" });
    }
    read
}

/// What is at a place where a slot's history should be.
enum Found<T> {
    History(T),
    /// That of another owner of the slot, which has changed owners while it was read.
    OfAnother,
    /// No history of this slot.
    Contradiction,
}

/// Where the words of a history are, and its header, which begins `HEADER_LEN` before them.
fn look(
    source: &Source,
    header: &Header,
    slot: &Slot,
    (channel, at): (usize, u64),
) -> io::Result<Found<(Place, Slot)>> {
    let begin = header.histories.offset + at.saturating_mul(8).min(header.histories.len_bytes());
    let room = (header.histories.offset + header.histories.len_bytes() - begin) / 8;
    if room < (HEADER_LEN / 8) as u64 {
        return Ok(Found::Contradiction);
    }
    let mut bytes = CopiedBytes::default();
    let raw = bytes.take_all(source, begin, HEADER_LEN)?;
    let words = raw.u32(offset_of!(HistoryHeader, words));
    let is_of_slot = u64::from(raw.u32(offset_of!(HistoryHeader, slot))) == slot.index + 1
        && raw.u32(offset_of!(HistoryHeader, channel)) as usize == channel;
    if !is_of_slot || !is_possible(words) || u64::from(words) > room - (HEADER_LEN / 8) as u64 {
        return Ok(Found::Contradiction);
    }
    if raw.u32(offset_of!(HistoryHeader, generation)) != slot.generation {
        return Ok(if source.may_change() { Found::OfAnother } else { Found::Contradiction });
    }
    let history = of_slot(slot, channel, &raw);
    if history.first_sequence > history.count {
        return Ok(Found::Contradiction);
    }
    let place = Place {
        count_at: begin + offset_of!(HistoryHeader, count) as u64,
        words_at: begin + HEADER_LEN as u64,
        words: words as usize,
        from: 0,
    };
    Ok(Found::History((place, history)))
}

/// Where the words of the slot's history in a channel are, and the history without words; `None` if there is none.
pub(super) fn empty(
    source: &Source,
    header: &Header,
    slot: &Slot,
    at: (usize, u64),
) -> io::Result<Option<(Place, Slot)>> {
    Ok(match look(source, header, slot, at)? {
        Found::History(found) => Some(found),
        Found::OfAnother | Found::Contradiction => None,
    })
}

fn history(source: &Source, header: &Header, slot: &Slot, at: (usize, u64)) -> io::Result<Found<Box<Slot>>> {
    let (place, mut history) = match look(source, header, slot, at)? {
        Found::History(found) => found,
        Found::OfAnother => return Ok(Found::OfAnother),
        Found::Contradiction => return Ok(Found::Contradiction),
    };
    let (mut before, mut after) = (CopiedBytes::default(), CopiedBytes::default());
    let begin = place.words_at - HEADER_LEN as u64;
    let (n, len) = (place.words as u64, HEADER_LEN + 8 * place.words);
    before.take_all(source, begin, len)?;
    let copies = if source.may_change() { after.take_all(source, begin, len).map(|_| 2)? } else { 1 };
    let is_of_owner = |raw: &Bytes<'_>| raw.u32(offset_of!(HistoryHeader, generation)) == slot.generation;
    if copies == 1 || before.as_bytes().0 == after.as_bytes().0 {
        if !is_of_owner(&before.as_bytes()) {
            return Ok(Found::OfAnother);
        }
        history = of_slot(slot, at.0, &before.as_bytes());
        settle(&mut history, n, |index| before.as_bytes().u64(HEADER_LEN + 8 * index));
    } else {
        let known = known_words(source, &place, &mut history)?;
        if !is_of_owner(&after.take_all(source, begin, HEADER_LEN)?) {
            return Ok(Found::OfAnother);
        }
        arrange(&mut history, known, n);
    }
    Ok(Found::History(Box::new(history)))
}

/// An empty history of the slot's owner.
fn of_slot(slot: &Slot, channel: usize, raw: &Bytes<'_>) -> Slot {
    Slot {
        kind: SlotKind::History(channel),
        name: slot.name.clone(),
        first_sequence: raw.u64(offset_of!(HistoryHeader, first_sequence)),
        count: raw.u64(offset_of!(HistoryHeader, count)),
        words_from: 0,
        words: Words::default(),
        held: Vec::new(),
        held_overflowed: 0,
        held_in_flux: 0,
        spans: Vec::new(),
        spans_in_flux: 0,
        sampled: Vec::new(),
        task: None,
        rest: None,
        unwritten: 0,
        torn: 0,
        damaged: 0,
        ..*slot
    }
}
