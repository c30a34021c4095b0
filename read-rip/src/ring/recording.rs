//! The file that `read-rip record` writes: images of a ring, and the words that its threads recorded meanwhile.
//!
//! ```text
//! +---------------------------+ 0
//! | magic, version            |  16 bytes
//! +---------------------------+
//! | block ...                 |  32 bytes: magic, kind, lengths, checksum; then the body, an LZ4 frame
//! +---------------------------+
//! ```
//!
//! A block is complete or does not count: a file whose writer was killed, or whose disk was full, ends with the last
//! complete block. If a block is damaged, the next one is searched for by its magic. All integers are little-endian.
//!
//! | kind | body |
//! |---|---|
//! | [`IMAGE`] | what `read-rip save` writes for one image: see [`Saved`](super::Saved). The last one counts |
//! | [`WORDS`] | for each thread that has recorded something since the last block: who, and which words |
//!
//! Most of an image is zeros. So the body has its length, and for each part with data the part's offset, length and
//! bytes.
//!
//! # What a reader makes of it
//!
//! The last image is the ring. Its slots get the recorded words that come directly before their own, so that every view
//! of a thread goes as far back as the record does. Other words, those of threads that have lost their slots meanwhile
//! included, become histories: `log` and `spans` show them.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read, Write};

use librip_format::Checksum;

use super::bytes::Bytes;
use super::unpacked::Unpacked;
use super::{ImageOutput, NewWords, SequenceBits, Slot, SlotKind, SlotState, Snapshot, Word, Words};

/// The first bytes of a recording.
pub(super) const MAGIC: [u8; 8] = *b"RIPRECRD";
const VERSION: u32 = 1;
const START_LEN: usize = 16;
const BLOCK_MAGIC: [u8; 8] = *b"RIPBLOCK";
const BLOCK_LEN: usize = 32;
/// A kind of block.
const IMAGE: u32 = 1;
/// A kind of block.
const WORDS: u32 = 2;
/// The body of a block of words is no longer than this, bytes.
const WORDS_MAX_BYTES: u64 = 64 << 20;
/// Of a recording, so many words are read at most, the newest ones: a gigabyte.
const READ_WORDS_MAX: usize = 128 << 20;
/// A longer recording is not read: it is read as a whole.
const FILE_MAX_BYTES: u64 = 4 << 30;
/// A ring that is longer is not read, bytes.
const IMAGE_MAX_BYTES: u64 = 64 << 30;
/// Parts of an image are unpacked in pieces of this many bytes.
const PIECE_BYTES: usize = 1 << 16;
/// Bytes of an entry of a block of words, before the words.
const ENTRY_LEN: usize = 104;

/// Writes a recording.
#[derive(Debug)]
pub struct RecordingWriter<W> {
    out: W,
    written_bytes: u64,
}

impl<W: Write> RecordingWriter<W> {
    /// Begins a recording.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn new(mut out: W) -> io::Result<RecordingWriter<W>> {
        let mut start = [0; START_LEN];
        start[..8].copy_from_slice(&MAGIC);
        start[8..12].copy_from_slice(&VERSION.to_le_bytes());
        out.write_all(&start)?;
        out.flush()?;
        Ok(RecordingWriter { out, written_bytes: START_LEN as u64 })
    }

    /// The length of the file, bytes.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Writes an image. `write` writes what `read-rip save` would.
    ///
    /// # Errors
    ///
    /// Those of `write` and of the output. Then the block does not count.
    pub fn image(&mut self, write: impl FnOnce(&mut Parts) -> io::Result<()>) -> io::Result<()> {
        let mut parts = Parts::default();
        write(&mut parts)?;
        self.block(IMAGE, |body| {
            body.write_all(&parts.len_bytes.to_le_bytes())?;
            parts.parts.iter().try_for_each(|(offset, bytes)| {
                body.write_all(&offset.to_le_bytes())?;
                body.write_all(&(bytes.len() as u64).to_le_bytes())?;
                body.write_all(bytes)
            })
        })
    }

    /// Writes what threads have recorded.
    ///
    /// # Errors
    ///
    /// Those of the output. Then some of it does not count.
    pub fn words(&mut self, new: &[NewWords]) -> io::Result<()> {
        let len = |new: &NewWords| (ENTRY_LEN + 8 * new.words.len()) as u64;
        let mut rest = new;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |new: &&NewWords| {
                bytes += len(new);
                bytes <= WORDS_MAX_BYTES
            };
            let (now, later) = rest.split_at(rest.iter().take_while(fits).count().max(1));
            self.block(WORDS, |body| now.iter().try_for_each(|new| write_entry(body, new)))?;
            rest = later;
        }
        Ok(())
    }

    /// Writes a block as a whole, so that a killed writer leaves at most one that is incomplete.
    fn block(&mut self, kind: u32, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let mut block = vec![0; BLOCK_LEN];
        let mut packed = lz4_flex::frame::FrameEncoder::new(&mut block);
        write(&mut packed)?;
        packed.finish().map_err(io::Error::other)?;
        let (head, body) = block.split_at_mut(BLOCK_LEN);
        head[..8].copy_from_slice(&BLOCK_MAGIC);
        head[8..12].copy_from_slice(&kind.to_le_bytes());
        head[16..24].copy_from_slice(&(body.len() as u64).to_le_bytes());
        let sum = Checksum::new().with(&head[..24]).with(body).sum();
        head[24..32].copy_from_slice(&sum.to_le_bytes());
        self.out.write_all(&block)?;
        self.out.flush()?;
        self.written_bytes += block.len() as u64;
        Ok(())
    }
}

/// The parts of an image that are not zero.
#[derive(Debug, Default)]
pub struct Parts {
    len_bytes: u64,
    /// By their offsets.
    parts: Vec<(u64, Vec<u8>)>,
}

impl Parts {
    /// The length of the image so far, bytes.
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }
}

impl Write for Parts {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.parts.last_mut() {
            Some((offset, part)) if *offset + part.len() as u64 == self.len_bytes => part.extend(bytes),
            _ => self.parts.push((self.len_bytes, bytes.to_vec())),
        }
        self.len_bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An image that goes into the parts.
#[derive(Debug)]
pub struct IntoParts<'p>(pub &'p mut Parts);

impl ImageOutput for IntoParts<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn zeros(&mut self, count: u64) -> io::Result<()> {
        self.0.len_bytes += count;
        Ok(())
    }
}

fn write_entry(body: &mut dyn Write, new: &NewWords) -> io::Result<()> {
    let owner = &new.owner;
    let channel = owner.channel().map_or(u32::MAX, |channel| channel as u32);
    let mut entry = Vec::with_capacity(ENTRY_LEN + 8 * new.words.len());
    for number in [owner.index, new.from, new.words.len() as u64, new.unseen] {
        entry.extend(number.to_le_bytes());
    }
    for number in [owner.generation, channel, owner.pid, owner.tid] {
        entry.extend(number.to_le_bytes());
    }
    for number in [owner.pid_namespace, owner.claimed_boottime_ns] {
        entry.extend(number.to_le_bytes());
    }
    let mut name = [0; librip_format::THREAD_NAME_LEN_BYTES];
    name.iter_mut().zip(owner.name.bytes()).for_each(|(to, byte)| *to = byte);
    entry.extend(name);
    debug_assert_eq!(entry.len(), ENTRY_LEN);
    new.words.iter().for_each(|word| entry.extend(word.raw().to_le_bytes()));
    body.write_all(&entry)
}

/// What a recording has besides the last image.
#[derive(Debug, Default)]
pub(super) struct Recording {
    /// By slot, generation and channel.
    owners: BTreeMap<Key, Recorded>,
    /// Words that the writer of the recording could not see.
    unseen: u64,
    /// Words that are not read, because there are too many.
    left_out: u64,
    /// Blocks that are damaged.
    damaged: u64,
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
    /// Reads a recording: the last image, and the rest.
    ///
    /// # Errors
    ///
    /// Those of reading, and if there is no image.
    pub(super) fn read(mut file: File) -> io::Result<(Unpacked, Recording)> {
        if file.metadata()?.len() > FILE_MAX_BYTES {
            return Err(io::Error::other("it is longer than 4 GiB"));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        if bytes.len() < START_LEN || Bytes(&bytes).u32(8) != VERSION {
            return Err(io::Error::other("this version of read-rip does not know its format"));
        }
        let mut recording = Recording::default();
        let blocks = blocks(&bytes[START_LEN..], &mut recording.damaged);
        // The newest words are read first, as many as there is room for.
        let mut room = READ_WORDS_MAX;
        let mut image = None;
        let mut entries = Vec::new();
        for &(kind, body) in blocks.iter().rev() {
            match kind {
                IMAGE if image.is_none() => image = unpack_image(body, &mut recording.damaged),
                WORDS => entries.push(recording.entries(body, &mut room)),
                _ => {}
            }
        }
        entries.into_iter().rev().flatten().for_each(|new| recording.add(new));
        let image = image.ok_or_else(|| io::Error::other("no image of the ring in it is complete"))?;
        Ok((image, recording))
    }

    /// The entries of a block of words.
    fn entries(&mut self, body: &[u8], room: &mut usize) -> Vec<NewWords> {
        let mut raw = Vec::new();
        let unpacked =
            lz4_flex::frame::FrameDecoder::new(body).take(2 * WORDS_MAX_BYTES).read_to_end(&mut raw);
        if unpacked.is_err() {
            self.damaged += 1;
        }
        let mut rest = &raw[..];
        let mut entries = Vec::new();
        while !rest.is_empty() {
            let Some((new, after)) = entry(rest) else {
                self.damaged += 1;
                break;
            };
            rest = after;
            self.unseen = self.unseen.saturating_add(new.unseen);
            match room.checked_sub(new.words.len()) {
                Some(left) => {
                    *room = left;
                    entries.push(new);
                }
                None => {
                    *room = 0;
                    self.left_out += new.words.len() as u64;
                }
            }
        }
        entries
    }

    fn add(&mut self, new: NewWords) {
        let key = (new.owner.index, new.owner.generation, new.owner.channel());
        let recorded =
            self.owners.entry(key).or_insert_with(|| Recorded { owner: new.owner.clone(), runs: Vec::new() });
        recorded.owner.name.clone_from(&new.owner.name);
        for (position, &word) in (0..).zip(&new.words) {
            let sequence = new.from + position;
            if word.is_missing() || word.sequence() != SequenceBits::of(sequence) {
                continue;
            }
            match recorded.runs.last_mut() {
                Some((from, words)) if *from + words.len() as u64 == sequence => words.push(word),
                // A hostile file may go back.
                Some((from, words)) if *from + words.len() as u64 > sequence => {}
                _ => recorded.runs.push((sequence, vec![word])),
            }
        }
    }

    /// Adds what was recorded to the last image.
    pub(super) fn add_to(&self, snapshot: &mut Snapshot) {
        snapshot.unseen_words = self.unseen;
        snapshot.left_out_words = self.left_out;
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
                // What the image has itself is not shown twice.
                let (begin_of_image, end_of_image) =
                    slot.as_ref().map_or((u64::MAX, u64::MAX), |slot| (slot.words_from, slot.count));
                let before = *from..end.min(begin_of_image);
                let after = (*from).max(end_of_image)..end;
                for range in [before, after].into_iter().filter(|range| range.start < range.end) {
                    let part = (range.start - from) as usize..(range.end - from) as usize;
                    apart.push(of_run(&recorded.owner, range.start, &words[part]));
                }
            }
        }
        snapshot.histories.extend(apart);
    }

    /// How many blocks are damaged.
    pub(super) fn damaged(&self) -> u64 {
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

/// A history of these words alone.
fn of_run(owner: &Slot, from: u64, words: &[Word]) -> Slot {
    let count = from + words.len() as u64;
    let words = words.iter().copied().collect();
    Slot { first_sequence: from, words_from: from, count, words, ..owner.clone() }
}

/// The complete blocks: their kinds and bodies.
fn blocks<'a>(mut rest: &'a [u8], damaged: &mut u64) -> Vec<(u32, &'a [u8])> {
    let mut found = Vec::new();
    while rest.len() >= BLOCK_LEN {
        let len = Bytes(rest).u64(16);
        let is_block = rest.starts_with(&BLOCK_MAGIC);
        let body = is_block.then(|| rest[BLOCK_LEN..].get(..usize::try_from(len).ok()?)).flatten();
        let is_sound =
            |body: &[u8]| Checksum::new().with(&rest[..24]).with(body).sum() == Bytes(rest).u64(24);
        match body {
            Some(body) if is_sound(body) => {
                found.push((Bytes(rest).u32(8), body));
                rest = &rest[BLOCK_LEN + body.len()..];
                continue;
            }
            // The writer was killed, or is writing.
            None if is_block && next_block(&rest[1..]).is_none() => break,
            _ => *damaged += 1,
        }
        match next_block(&rest[1..]) {
            Some(at) => rest = &rest[1 + at..],
            None => break,
        }
    }
    found
}

/// Where the next block seems to begin.
fn next_block(bytes: &[u8]) -> Option<usize> {
    bytes.windows(BLOCK_MAGIC.len()).position(|window| window == BLOCK_MAGIC)
}

fn unpack_image(body: &[u8], damaged: &mut u64) -> Option<Unpacked> {
    let image = parts_of(body);
    if image.is_none() {
        *damaged += 1;
    }
    image
}

fn parts_of(body: &[u8]) -> Option<Unpacked> {
    let mut stream = lz4_flex::frame::FrameDecoder::new(body);
    let mut len = [0; 8];
    stream.read_exact(&mut len).ok()?;
    let len = Some(u64::from_le_bytes(len)).filter(|&len| len <= IMAGE_MAX_BYTES)?;
    let mut image = Unpacked::zeros(len);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let mut head = [0; 16];
        match stream.read(&mut head[..1]).ok()? {
            0 => return Some(image),
            _ => stream.read_exact(&mut head[1..]).ok()?,
        }
        let (mut offset, mut left) = (Bytes(&head).u64(0), Bytes(&head).u64(8));
        while left > 0 {
            let piece = &mut piece[..left.min(PIECE_BYTES as u64) as usize];
            stream.read_exact(piece).ok()?;
            image.set(offset, piece);
            offset = offset.checked_add(piece.len() as u64)?;
            left -= piece.len() as u64;
        }
    }
}

/// The first entry of a block of words, and what follows.
fn entry(bytes: &[u8]) -> Option<(NewWords, &[u8])> {
    let (head, rest) = bytes.split_at_checked(ENTRY_LEN)?;
    let head = Bytes(head);
    let words_len = usize::try_from(head.u64(16)).ok()?.checked_mul(8)?;
    let (words, rest) = rest.split_at_checked(words_len)?;
    let from = head.u64(8);
    let count = from.checked_add(head.u64(16))?;
    let kind = match head.u32(36) {
        u32::MAX => SlotKind::Thread,
        channel => SlotKind::History(channel as usize),
    };
    let owner = Slot {
        index: head.u64(0),
        state: SlotState::Exited,
        kind,
        generation: head.u32(32),
        pid: head.u32(40),
        tid: head.u32(44),
        pid_namespace: head.u64(48),
        claimed_boottime_ns: head.u64(56),
        exited_boottime_ns: 0,
        first_slot_count: 0,
        creator: None,
        joiner: None,
        name: head.text(64, librip_format::THREAD_NAME_LEN_BYTES),
        is_named: false,
        held: Vec::new(),
        held_overflowed: 0,
        held_in_flux: 0,
        spans: Vec::new(),
        spans_in_flux: 0,
        first_sequence: from,
        count,
        words_from: from,
        words: Words::default(),
        unwritten: 0,
        torn: 0,
        damaged: 0,
    };
    let words = words.as_chunks().0.iter().map(|&word| Word::from_raw(u64::from_le_bytes(word))).collect();
    Some((NewWords { owner, from, words, unseen: head.u64(24) }, rest))
}
