//! Writes a recording.

use std::io::{self, Write};
use std::ops::Range;

use super::blocks::sum_of;
use super::schedule::SCHEDULED_LEN;
use super::{
    BLOCK_LEN, BLOCK_MAGIC, ENTRY_LEN, IMAGE, MAGIC, SCHEDULE, START_LEN, SUMMED_LEN, Scheduled, VERSION,
    WORDS, WORDS_MAX_BYTES,
};
use crate::{ImageOutput, NewWords};

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

    /// Writes an image: what `read-rip save` would write. It was complete at this moment, ns since boot.
    ///
    /// The words that were recorded until the image was complete must have been written before. Then, at whatever
    /// instant the writer is killed, the file has or counts every word up to the image's end. Words that were
    /// overwritten while the image was copied are not in the image.
    ///
    /// # Errors
    ///
    /// Those of the output. Then the block does not count.
    pub fn image(&mut self, parts: &Parts, at_ns: u64) -> io::Result<()> {
        self.block((IMAGE, 0), at_ns..at_ns, |body| {
            body.write_all(&parts.len_bytes.to_le_bytes())?;
            parts.parts.iter().try_for_each(|(offset, bytes)| {
                body.write_all(&offset.to_le_bytes())?;
                body.write_all(&(bytes.len() as u64).to_le_bytes())?;
                body.write_all(bytes)
            })
        })
    }

    /// Writes what threads have recorded between two moments, ns since boot. The later one is never before that of an
    /// earlier call.
    ///
    /// # Errors
    ///
    /// Those of the output. Then some of it does not count.
    pub fn words(&mut self, new: &[NewWords], times_ns: Range<u64>) -> io::Result<()> {
        let len = |new: &NewWords| (ENTRY_LEN + 8 * new.words.len()) as u64;
        let mut rest = new;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |new: &&NewWords| {
                bytes += len(new);
                bytes <= WORDS_MAX_BYTES
            };
            let (now, later) = rest.split_at(rest.iter().take_while(fits).count().max(1));
            let words = now.iter().map(|new| new.words.len()).sum::<usize>() as u32;
            self.block((WORDS, words), times_ns.clone(), |body| {
                now.iter().try_for_each(|new| write_entry(body, new))
            })?;
            rest = later;
        }
        Ok(())
    }

    /// Writes what the kernel said of turns between two moments, ns since boot. The earlier one is not after that of
    /// the next call of [`RecordingWriter::words`], and the later one is never before that of an earlier call.
    ///
    /// # Errors
    ///
    /// Those of the output. Then some of it does not count.
    pub fn schedule(&mut self, all: &[Scheduled], times_ns: Range<u64>) -> io::Result<()> {
        all.chunks(WORDS_MAX_BYTES as usize / SCHEDULED_LEN).try_for_each(|part| {
            self.block((SCHEDULE, part.len() as u32), times_ns.clone(), |body| {
                part.iter().try_for_each(|scheduled| body.write_all(&scheduled.encoded()))
            })
        })
    }

    /// Writes a block as a whole, so that a killed writer leaves at most one that is incomplete.
    fn block(
        &mut self,
        (kind, words): (u32, u32),
        times_ns: Range<u64>,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut block = vec![0; BLOCK_LEN];
        let mut packed = lz4_flex::frame::FrameEncoder::new(&mut block);
        write(&mut packed)?;
        packed.finish().map_err(io::Error::other)?;
        let (head, body) = block.split_at_mut(BLOCK_LEN);
        head[..8].copy_from_slice(&BLOCK_MAGIC);
        head[8..12].copy_from_slice(&kind.to_le_bytes());
        head[12..16].copy_from_slice(&words.to_le_bytes());
        head[16..24].copy_from_slice(&(body.len() as u64).to_le_bytes());
        head[24..32].copy_from_slice(&times_ns.start.to_le_bytes());
        head[32..40].copy_from_slice(&times_ns.end.to_le_bytes());
        let sum = sum_of(head, body);
        head[SUMMED_LEN..].copy_from_slice(&sum.to_le_bytes());
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
