//! Finds the complete blocks of a recording.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::os::unix::fs::FileExt;

use librip_format::Checksum;
use lz4_flex::frame::FrameDecoder;

use super::{BLOCK_LEN, BLOCK_MAGIC, SUMMED_LEN};
use crate::bytes::Bytes;

/// A file is read in pieces of this many bytes.
const PIECE_BYTES: usize = 1 << 16;
/// A part of a file that is no longer is searched from its beginning, bytes.
const PART_BYTES: u64 = 1 << 18;

/// A complete block, with the checksum that it says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) kind: u32,
    /// How many words it has.
    pub(super) words: u32,
    /// Its words were recorded after this moment, ns since boot.
    pub(super) from_ns: u64,
    /// Its words were recorded before this moment, ns since boot.
    pub(super) until_ns: u64,
    at: u64,
    body_at: u64,
    body_len: u64,
}

impl Block {
    /// What a head says.
    fn of(head: &Bytes<'_>, at: u64) -> Block {
        Block {
            kind: head.u32(8),
            words: head.u32(12),
            from_ns: head.u64(24),
            until_ns: head.u64(32),
            at,
            body_at: at + BLOCK_LEN as u64,
            body_len: head.u64(16),
        }
    }

    /// Where it ends in the file.
    pub(super) fn end(&self) -> u64 {
        self.body_at + self.body_len
    }

    /// Its body, unpacked.
    pub(super) fn body<'f>(&self, file: &'f File) -> impl Read + use<'f> {
        let section = Section { file, at: self.body_at, end: self.end() };
        FrameDecoder::new(BufReader::with_capacity(PIECE_BYTES, section))
    }
}

/// What a file has from an offset on.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) blocks: Vec<Block>,
    /// How many are damaged.
    pub(super) damaged: u64,
}

/// Finds the complete blocks between two offsets, as long as they are wanted.
///
/// # Errors
///
/// Those of reading.
pub(super) fn find(
    file: &File,
    mut at: u64,
    end: u64,
    mut is_wanted: impl FnMut(&Block) -> bool,
) -> io::Result<Found> {
    let mut found = Found::default();
    // A file that means harm may have millions of blocks that each claim to be as long as the file. So no more than its
    // length is read of bodies that turn out to be damaged.
    let mut patience = end;
    while let Some(body_at) = at.checked_add(BLOCK_LEN as u64).filter(|&body_at| body_at <= end) {
        let mut head = [0; BLOCK_LEN];
        file.read_exact_at(&mut head, at)?;
        let head = Bytes(&head);
        let body_len = head.u64(16);
        let is_block = head.0.starts_with(&BLOCK_MAGIC);
        let is_whole = is_block && body_len <= end - body_at;
        if is_whole {
            let block = Block::of(&head, at);
            let body = Section { file, at: body_at, end: block.end() };
            if sum(head.0, body)? == head.u64(SUMMED_LEN) {
                if !is_wanted(&block) {
                    break;
                }
                at = block.end();
                found.blocks.push(block);
                continue;
            }
            match patience.checked_sub(body_len) {
                Some(left) => patience = left,
                None => {
                    found.damaged += 1;
                    break;
                }
            }
        }
        let next = next_block(file, at + 1, end)?;
        // If nothing follows an incomplete block, its writer was killed, or is writing.
        if !is_block || is_whole || next.is_some() {
            found.damaged += 1;
        }
        let Some(next) = next else { break };
        at = next;
    }
    Ok(found)
}

/// Where to begin to search for the blocks that end at this moment or later: no complete one before has its end there.
/// It reads a few blocks, and not the file.
///
/// # Errors
///
/// Those of reading.
pub(super) fn begin_of(file: &File, mut begin: u64, end: u64, since_ns: u64) -> io::Result<u64> {
    let mut last = end;
    while last.saturating_sub(begin) > PART_BYTES {
        let middle = begin + (last - begin) / 2;
        // What seems to be a block, and is none, may be in the middle of one.
        let Some(at) = next_block(file, middle, last)? else {
            last = middle;
            continue;
        };
        let mut first = None;
        find(file, at, end, |block| {
            first = Some(*block);
            false
        })?;
        match first {
            Some(block) if block.at < last && block.until_ns < since_ns => begin = block.end(),
            _ => last = middle,
        }
    }
    Ok(begin)
}

/// Goes through the complete blocks of a file from the last one on, until `has_all` has seen what it wants. It may see
/// a block several times.
///
/// # Errors
///
/// Those of reading.
pub(super) fn last(
    file: &File,
    begin: u64,
    end: u64,
    mut has_all: impl FnMut(&Block) -> bool,
) -> io::Result<()> {
    let mut part_bytes = PART_BYTES;
    loop {
        let from = end.saturating_sub(part_bytes).max(begin);
        let at = if from == begin { Some(begin) } else { next_block(file, from, end)? };
        let blocks = match at {
            Some(at) => find(file, at, end, |_| true)?.blocks,
            None => Vec::new(),
        };
        if blocks.iter().rev().any(&mut has_all) || from == begin {
            return Ok(());
        }
        part_bytes = part_bytes.saturating_mul(4);
    }
}

/// The checksum of a block.
fn sum(head: &[u8], mut body: Section<'_>) -> io::Result<u64> {
    let mut sum = Checksum::new().with(&head[..SUMMED_LEN]);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let len = body.left().min(PIECE_BYTES as u64) as usize;
        if len == 0 {
            return Ok(sum.sum());
        }
        body.read_exact(&mut piece[..len])?;
        sum = sum.with(&piece[..len]);
    }
}

/// The checksum of a block whose body is in memory.
pub(super) fn sum_of(head: &[u8], body: &[u8]) -> u64 {
    let sum = Checksum::new().with(&head[..SUMMED_LEN]);
    body.chunks(PIECE_BYTES).fold(sum, Checksum::with).sum()
}

/// Where the next block seems to begin.
fn next_block(file: &File, from: u64, end: u64) -> io::Result<Option<u64>> {
    let mut piece = vec![0; PIECE_BYTES];
    let mut at = from;
    while end.saturating_sub(at) >= BLOCK_LEN as u64 {
        let len = (end - at).min(PIECE_BYTES as u64) as usize;
        file.read_exact_at(&mut piece[..len], at)?;
        let found = piece[..len].windows(BLOCK_MAGIC.len()).position(|window| window == BLOCK_MAGIC);
        if let Some(found) = found {
            return Ok(Some(at + found as u64));
        }
        // The magic may be half in this piece and half in the next one.
        at += (len + 1 - BLOCK_MAGIC.len()) as u64;
    }
    Ok(None)
}

/// A part of a file.
#[derive(Debug)]
struct Section<'f> {
    file: &'f File,
    at: u64,
    end: u64,
}

impl Section<'_> {
    fn left(&self) -> u64 {
        self.end - self.at
    }
}

impl Read for Section<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = buffer.len().min(usize::try_from(self.left()).unwrap_or(usize::MAX));
        if len == 0 {
            return Ok(0);
        }
        loop {
            match self.file.read_at(&mut buffer[..len], self.at) {
                Ok(got) => {
                    self.at += got as u64;
                    return Ok(got);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
