//! Follows a living ring: what its threads have recorded since the last time.
//!
//! It reads the counts of all slots, and copies words only where a count has moved. `copy` says why every word that it
//! returns was recorded. Words that were replaced before they could be copied are counted.

use std::collections::HashMap;
use std::io;
use std::mem::{offset_of, size_of};

use librip_format::{SLOT_HEADER_LEN_BYTES, SlotHeader};

use super::copy::{CopiedBytes, Place, known_words};
use super::owner::{is_same_owner, owner};
use super::{Header, Slot, SlotState, Source, Word, history};

/// What a thread has recorded since the last time, in its slot or in a channel.
#[derive(Clone, Debug)]
pub struct NewWords {
    /// Who has recorded it, without words.
    pub owner: Slot,
    /// The sequence of the first word.
    pub from: u64,
    /// The words, one for each sequence.
    pub words: Vec<Word>,
    /// Words before the first one that could not be copied, and words among these.
    pub unseen: u64,
}

/// How far a ring was followed.
#[derive(Debug, Default)]
pub struct Follower {
    /// By slot and channel.
    known: HashMap<(u64, Option<usize>), Known>,
    /// Whether it has read the ring before. What was replaced before the first time is not missing.
    has_begun: bool,
}

#[derive(Debug)]
struct Known {
    owner: Slot,
    /// The first sequence that was not copied yet.
    next: u64,
}

impl Follower {
    /// What was recorded since the last call. `header` is the ring's present one.
    ///
    /// # Errors
    ///
    /// Those of reading. The ring can be read again.
    pub fn new_words(&mut self, source: &Source, header: &Header) -> io::Result<Vec<NewWords>> {
        let mut found = Vec::new();
        let (mut bytes, mut entries) = (CopiedBytes::default(), CopiedBytes::default());
        let channels_at = header.slot_parts().channels_at_bytes();
        for index in 0..header.slots.used {
            let offset = header.slots.offset + index * header.slots.entry_len_bytes;
            let copied = bytes.take_all(source, offset, size_of::<SlotHeader>())?;
            let Some(slot) = owner(index, &copied) else { continue };
            if !slot.kind.is_recorded() || slot.state == SlotState::Claiming {
                continue;
            }
            let place = Place {
                count_at: offset + offset_of!(SlotHeader, count) as u64,
                words_at: offset + SLOT_HEADER_LEN_BYTES,
                words: header.slot_words as usize,
                from: 0,
            };
            let is_same = |source: &Source| -> io::Result<bool> {
                let mut again = CopiedBytes::default();
                Ok(is_same_owner(&copied, &again.take_all(source, offset, size_of::<SlotHeader>())?))
            };
            self.follow(source, slot.clone(), place, &is_same, &mut found)?;
            let len = 8 * header.channel_entries as usize;
            let entries = entries.take_all(source, offset + channels_at, len)?;
            for channel in 0..header.channel_entries as usize {
                let entry = entries.u64(8 * channel);
                if !matches!(entry, 0 | librip_format::HISTORY_REFUSED) {
                    self.history(source, header, &slot, channel, entry - 1, &mut found)?;
                }
            }
        }
        self.has_begun = true;
        Ok(found)
    }

    fn history(
        &mut self,
        source: &Source,
        header: &Header,
        slot: &Slot,
        channel: usize,
        at: u64,
        found: &mut Vec<NewWords>,
    ) -> io::Result<()> {
        let Some((place, history)) = history::empty(source, header, slot, (channel, at))? else {
            return Ok(());
        };
        let is_same = |source: &Source| Ok(history::empty(source, header, slot, (channel, at))?.is_some());
        self.follow(source, history, place, &is_same, found)
    }

    /// Copies what is new of one slot or history. `is_same` says whether it still has the same owner.
    fn follow(
        &mut self,
        source: &Source,
        owner: Slot,
        mut place: Place,
        is_same: &dyn Fn(&Source) -> io::Result<bool>,
        found: &mut Vec<NewWords>,
    ) -> io::Result<()> {
        let key = (owner.index, owner.channel());
        let first = owner.first_sequence.min(owner.count);
        let before = self.known.get(&key);
        let oldest = owner.count.saturating_sub(place.words as u64);
        let begin = if self.has_begun { first } else { first.max(oldest) };
        let next = before.map_or(begin, |known| known.next);
        if before.is_some_and(|known| known.owner.generation == owner.generation) && next >= owner.count {
            return Ok(());
        }
        place.from = next;
        let mut scratch = owner.clone();
        let mut known = known_words(source, &place, &mut scratch)?;
        if !is_same(source)? {
            // Next time.
            return Ok(());
        }
        known.retain(|&(sequence, _)| (next..owner.count).contains(&sequence));
        known.sort_unstable_by_key(|&(sequence, _)| sequence);
        // The owner may have reserved the last words, and not written them yet.
        let end = known.last().map_or(next, |&(sequence, _)| sequence + 1);
        // Words before the owner's first one are never the owner's.
        let end = end.max(oldest).max(first);
        let former = before.filter(|known| known.owner.generation != owner.generation);
        if let Some(former) = former {
            // If there was another owner in between, it is not known whose words these are.
            let is_last = former.owner.generation.wrapping_add(1) == owner.generation;
            found.extend(new_words(&former.owner, next..first, if is_last { &known } else { &[] }));
        }
        let from = if former.is_some() { first } else { next };
        found.extend(new_words(&owner, from..end, &known));
        self.known.insert(key, Known { owner, next: end });
        Ok(())
    }
}

/// The words of these sequences, of which some are known.
fn new_words(owner: &Slot, wanted: std::ops::Range<u64>, known: &[(u64, Word)]) -> Option<NewWords> {
    let begin = known.partition_point(|&(sequence, _)| sequence < wanted.start);
    let end = known.partition_point(|&(sequence, _)| sequence < wanted.end);
    let known = &known[begin.min(end)..end];
    let total = wanted.end.saturating_sub(wanted.start);
    let Some(&(from, _)) = known.first() else {
        let lost = NewWords { owner: owner.clone(), from: wanted.start, words: Vec::new(), unseen: total };
        return (total > 0).then_some(lost);
    };
    let last = known[known.len() - 1].0;
    let mut words = vec![Word::MISSING; (last + 1 - from) as usize];
    for &(sequence, word) in known {
        words[(sequence - from) as usize] = word;
    }
    Some(NewWords { owner: owner.clone(), from, words, unseen: total - known.len() as u64 })
}
