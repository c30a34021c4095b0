//! What a reader makes of a recording.
//!
//! The last image is the ring. Its slots get the recorded words that come directly before their own, so that every view
//! of a thread goes as far back as the record does, and those that they lack. Other words, those of threads that have
//! lost their slots meanwhile included, become histories: `log` and `spans` show them.
//!
//! The file may have any length. Its blocks are read one by one, and of the words the newest are kept. If a range of
//! time is wanted, only its blocks are read.

use std::collections::{BTreeMap, BTreeSet, HashMap, btree_map};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;

use super::blocks::{self, Block, Found};
use super::{ENTRY_LEN, IMAGE, START_LEN, VERSION, WORDS};
use crate::bytes::Bytes;
use crate::error::too_long;
use crate::unpacked::{Limits, TooLong, UnpackLimit, Unpacked};
use crate::{SequenceBits, Slot, SlotKind, SlotState, Snapshot, Word, Words};

/// So many words of a recording are read at most, the newest ones: a gigabyte. A shorter file has a lower limit, as the
/// data of a compressed one has.
const READ_WORDS_MAX: u64 = 128 << 20;
/// No event has more words before its last one.
const EVENT_WORDS_MAX: u64 = librip_format::SHAPE_WORDS_MAX + 1;
/// What an owner takes in memory besides its words, in words.
const OWNER_WORDS: u64 = 64;
/// What a run takes in memory besides its words, in words.
const RUN_WORDS: u64 = 6;
/// A ring that is longer is not read, bytes.
const IMAGE_MAX_BYTES: u64 = 64 << 30;
/// What is unpacked is read in pieces of this many bytes.
const PIECE_BYTES: usize = 1 << 16;

/// What is recorded up to so long after a range belongs to it too, ns: a thread reads the time of an event before it
/// writes the event.
const LATE_NS: u64 = 1_000_000_000;

/// A recording, of which the last image was read.
#[derive(Debug)]
pub(crate) struct Recording {
    file: File,
    /// The length of the file that counts, bytes.
    end: u64,
    words_max: u64,
    /// Images that are damaged.
    damaged_images: u64,
    /// The last block of words, or the last image if there are no words.
    last: Block,
}

/// A range of time, ns since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// It begins at this moment.
    pub since_ns: u64,
    /// It ends at this moment.
    pub until_ns: u64,
}

/// The words of a recording.
#[derive(Debug, Default)]
pub(crate) struct RecordedWords {
    /// By slot, generation and channel.
    owners: BTreeMap<Key, Recorded>,
    /// Words that the writer of the recording could not see.
    unseen: u64,
    /// Words that are not read, because there are too many.
    left_out: u64,
    /// Blocks that are damaged.
    damaged: u64,
    /// How many words more there is room for.
    room: u64,
    /// The period whose words these are; `None`: all of it.
    period: Option<Period>,
}

/// A slot, its generation, and a channel.
type Key = (u64, u32, Option<usize>);

#[derive(Debug)]
struct Recorded {
    owner: Slot,
    /// Words without a gap, by the sequence of the first one, ascending.
    runs: Vec<(u64, Vec<Word>)>,
}

impl Recording {
    /// Reads the last image of a recording.
    ///
    /// # Errors
    ///
    /// Those of reading, and if there is no image.
    pub(crate) fn open(file: File, limit: UnpackLimit) -> io::Result<(Unpacked, Recording)> {
        let end = file.metadata()?.len();
        let mut start = [0; START_LEN];
        let is_known = file.read_exact_at(&mut start, 0).is_ok() && Bytes(&start).u32(8) == VERSION;
        if !is_known {
            return Err(io::Error::other("this version of read-rip does not know its format"));
        }
        let limits = limit.of(end);
        let (mut image, mut damaged, mut too_long) = (None, BTreeSet::new(), None);
        let (mut last_image, mut last_words) = (None, None);
        blocks::last(&file, START_LEN as u64, end, |block| {
            match block.kind {
                WORDS => last_words = last_words.or(Some(*block)),
                IMAGE if image.is_none() && !damaged.contains(&block.end()) => {
                    match unpack_image(block.body(&file), limits) {
                        Some(Ok(unpacked)) => (image, last_image) = (Some(unpacked), Some(*block)),
                        Some(Err(error)) => too_long = Some(error),
                        None => drop(damaged.insert(block.end())),
                    }
                }
                _ => {}
            }
            too_long.is_some() || image.is_some() && last_words.is_some()
        })?;
        if let Some(error) = too_long {
            return Err(error);
        }
        let Some((image, last)) = image.zip(last_words.or(last_image)) else {
            return Err(io::Error::other("no image of the ring in it is complete"));
        };
        let words_max = READ_WORDS_MAX.min(limits.memory_bytes / size_of::<Word>() as u64);
        Ok((image, Recording { file, end, words_max, damaged_images: damaged.len() as u64, last }))
    }

    /// Between which moments its last words were recorded, ns since boot.
    pub(crate) fn last(&self) -> Period {
        Period { since_ns: self.last.from_ns, until_ns: self.last.until_ns }
    }

    /// The blocks of a kind: all, or those with what was recorded in a period, and some beside them.
    ///
    /// # Errors
    ///
    /// Those of reading.
    pub(super) fn blocks(&self, kind: u32, period: Option<Period>) -> io::Result<Found> {
        let (since_ns, until_ns) = period.map_or((0, u64::MAX), |of| (of.since_ns, of.until_ns));
        let begin = START_LEN as u64;
        let begin = match period {
            Some(_) => blocks::begin_of(&self.file, begin, self.end, since_ns)?,
            None => begin,
        };
        let late_ns = until_ns.saturating_add(LATE_NS);
        // The words that follow an image may have been recorded before it was complete.
        let is_wanted = |block: &Block| block.kind == IMAGE || block.from_ns <= late_ns;
        let mut found = blocks::find(&self.file, begin, self.end, is_wanted)?;
        found.blocks.retain(|block| block.kind == kind && block.until_ns >= since_ns);
        Ok(found)
    }

    /// The body of a block, unpacked.
    pub(super) fn body<'s>(&'s self, block: &Block) -> impl Read + use<'s> {
        block.body(&self.file)
    }

    /// How many words are read at most.
    pub(super) fn words_max(&self) -> u64 {
        self.words_max
    }

    /// The words of the file, or those of a period. Some words beside it are read too.
    ///
    /// # Errors
    ///
    /// Those of reading.
    pub(crate) fn words(&self, period: Option<Period>) -> io::Result<RecordedWords> {
        let Found { mut blocks, damaged } = self.blocks(WORDS, period)?;
        let counts: Vec<u32> = blocks.iter().map(|block| block.words).collect();
        let newest = blocks.split_off(first_read(&counts, self.words_max));
        let mut read = RecordedWords {
            damaged: damaged + self.damaged_images,
            room: self.words_max,
            period,
            left_out: blocks.iter().map(|block| u64::from(block.words)).sum(),
            ..RecordedWords::default()
        };
        for block in newest {
            if read.entries(self.body(&block)).is_err() {
                read.damaged += 1;
            }
        }
        Ok(read)
    }
}

impl RecordedWords {
    /// Adds the entries of a block of words.
    fn entries(&mut self, mut body: impl Read) -> io::Result<()> {
        let mut head = [0; ENTRY_LEN];
        let mut piece = vec![0; PIECE_BYTES];
        while fill(&mut body, &mut head)? {
            let head = Bytes(&head);
            let (from, count) = (head.u64(8), head.u64(16));
            let Some(end) = from.checked_add(count) else { return Err(ErrorKind::InvalidData.into()) };
            self.unseen = self.unseen.saturating_add(head.u64(24));
            let key = (head.u64(0), head.u32(32), channel(&head));
            let mut sequence = from;
            while sequence < end {
                let words = (end - sequence).min(PIECE_BYTES as u64 / 8);
                let piece = &mut piece[..8 * words as usize];
                body.read_exact(piece)?;
                self.add(key, &head, sequence, piece);
                sequence += words;
            }
        }
        Ok(())
    }

    /// Adds words of an entry, which begin with this sequence.
    fn add(&mut self, key: Key, head: &Bytes<'_>, from: u64, words: &[u8]) {
        let recorded = match self.owners.entry(key) {
            btree_map::Entry::Occupied(recorded) => recorded.into_mut(),
            btree_map::Entry::Vacant(vacant) => {
                self.room = self.room.saturating_sub(OWNER_WORDS);
                vacant.insert(Recorded { owner: owner(head), runs: Vec::new() })
            }
        };
        recorded.owner.name = head.text(64, librip_format::THREAD_NAME_LEN_BYTES);
        for (sequence, &word) in (from..).zip(words.as_chunks().0) {
            let word = Word::from_raw(u64::from_le_bytes(word));
            if word.is_missing() || word.sequence() != SequenceBits::of(sequence) {
                continue;
            }
            if self.room == 0 {
                self.left_out += 1;
                continue;
            }
            match recorded.runs.last_mut() {
                Some((from, words)) if *from + words.len() as u64 == sequence => words.push(word),
                // A hostile file may go back.
                Some((from, words)) if *from + words.len() as u64 > sequence => continue,
                _ => {
                    self.room = self.room.saturating_sub(RUN_WORDS);
                    recorded.runs.push((sequence, vec![word]));
                }
            }
            self.room = self.room.saturating_sub(1);
        }
    }

    /// Adds what was recorded to the last image.
    pub(crate) fn add_to(&self, snapshot: &mut Snapshot) {
        snapshot.unseen_words = self.unseen;
        snapshot.left_out_words = self.left_out;
        snapshot.period = self.period;
        let of_image = snapshot.slots.iter_mut().chain(&mut snapshot.histories);
        let mut of_image: HashMap<_, _> =
            of_image.map(|slot| ((slot.index, slot.generation, slot.channel()), slot)).collect();
        let mut apart = Vec::new();
        for (key, recorded) in &self.owners {
            let mut slot = of_image.get_mut(key);
            for (from, words) in &recorded.runs {
                let end = from + words.len() as u64;
                if let Some(slot) = &mut slot
                    && *from < slot.words_from
                    && slot.words_from <= end
                {
                    lengthen(slot, *from, words);
                }
                if let Some(slot) = &mut slot {
                    complete(slot, *from, words);
                }
                // What the image has itself is not shown twice.
                let (begin_of_image, end_of_image) =
                    slot.as_ref().map_or((u64::MAX, u64::MAX), |slot| (slot.words_from, slot.count));
                let before = *from..end.min(begin_of_image);
                let after = (*from).max(end_of_image)..end;
                for range in [before, after].into_iter().filter(|range| range.start < range.end) {
                    // The image may end within an event. Words before the range belong to it, and are of no other.
                    let begin = range.start.saturating_sub(EVENT_WORDS_MAX).max(*from);
                    let part = (begin - from) as usize..(range.end - from) as usize;
                    apart.push(of_run(&recorded.owner, range.start, begin, &words[part]));
                }
            }
        }
        snapshot.histories.extend(apart);
    }

    /// How many blocks are damaged.
    pub(crate) fn damaged(&self) -> u64 {
        self.damaged
    }
}

/// Puts words before those of a slot, up to its first one.
fn lengthen(slot: &mut Slot, from: u64, before: &[Word]) {
    let added = (slot.words_from - from) as usize;
    let own = std::mem::take(&mut slot.words);
    slot.words = Words::from_fn(added + own.len(), |index| match index.checked_sub(added) {
        None => before[index],
        Some(index) => own.get(index).unwrap_or_default(),
    });
    slot.words_from = from;
}

/// Sets the words that a slot lacks: the image has none that was overwritten while it was made.
fn complete(slot: &mut Slot, from: u64, recorded: &[Word]) {
    let (first, last) = (from.max(slot.words_from), slot.count.min(from + recorded.len() as u64));
    for sequence in first..last {
        let at = (sequence - slot.words_from) as usize;
        if slot.words.get(at).is_some_and(|word| word.is_missing()) {
            slot.words.set(at, recorded[(sequence - from) as usize]);
            slot.unwritten = slot.unwritten.saturating_sub(1);
        }
    }
}

/// A history of these words alone. Its events are those that end at `first` or later.
fn of_run(owner: &Slot, first: u64, from: u64, words: &[Word]) -> Slot {
    let count = from + words.len() as u64;
    let words = words.iter().copied().collect();
    Slot { first_sequence: first, words_from: from, count, words, ..owner.clone() }
}

/// The first of the blocks that are read, by how many words each has: the newest ones, as many as there is room for.
pub(super) fn first_read(counts: &[u32], mut room: u64) -> usize {
    let fits = |&&count: &&u32| {
        let left = room.checked_sub(u64::from(count));
        room = left.unwrap_or(0);
        left.is_some()
    };
    counts.len() - counts.iter().rev().take_while(fits).count()
}

/// Fills a buffer. Returns `false` at the end of the stream.
pub(super) fn fill(stream: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    let (first, rest) = buffer.split_at_mut(1);
    if stream.read(first)? == 0 {
        return Ok(false);
    }
    stream.read_exact(rest)?;
    Ok(true)
}

fn unpack_image(mut body: impl Read, limits: Limits) -> Option<io::Result<Unpacked>> {
    let mut len = [0; 8];
    body.read_exact(&mut len).ok()?;
    let len = Some(u64::from_le_bytes(len)).filter(|&len| len <= IMAGE_MAX_BYTES)?;
    let mut image = Unpacked::zeros(len);
    let mut piece = vec![0; PIECE_BYTES];
    let mut head = [0; 16];
    while fill(&mut body, &mut head).ok()? {
        let (mut offset, mut left) = (Bytes(&head).u64(0), Bytes(&head).u64(8));
        while left > 0 {
            let piece = &mut piece[..left.min(PIECE_BYTES as u64) as usize];
            body.read_exact(piece).ok()?;
            if let Err(TooLong(limit_bytes)) = image.set(offset, piece, limits) {
                return Some(Err(io::Error::new(ErrorKind::FileTooLarge, too_long(limit_bytes))));
            }
            offset = offset.checked_add(piece.len() as u64)?;
            left -= piece.len() as u64;
        }
    }
    Some(Ok(image))
}

fn channel(head: &Bytes<'_>) -> Option<usize> {
    Some(head.u32(36)).filter(|&channel| channel != u32::MAX).map(|channel| channel as usize)
}

/// Who has recorded an entry of a block of words.
fn owner(head: &Bytes<'_>) -> Slot {
    Slot {
        index: head.u64(0),
        state: SlotState::Exited,
        kind: channel(head).map_or_else(|| SlotKind::of_id(head.u32(44)), SlotKind::History),
        generation: head.u32(32),
        pid: head.u32(40),
        tid: head.u32(44),
        pid_namespace: head.u64(48),
        claimed_boottime_ns: head.u64(56),
        name: head.text(64, librip_format::THREAD_NAME_LEN_BYTES),
        ..Slot::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_blocks_are_read_as_many_as_there_is_room_for() {
        let half = 500;
        let first_read = |counts: &[u32]| first_read(counts, 1000);
        assert_eq!(first_read(&[]), 0);
        assert_eq!(first_read(&[9, half, half]), 1);
        assert_eq!(first_read(&[9, half, 1, half]), 2);
        assert_eq!(first_read(&[9, half, half - 1]), 1);
        assert_eq!(first_read(&[1, half, half - 1]), 0);
        assert_eq!(first_read(&[u32::MAX]), 1);
    }
}
