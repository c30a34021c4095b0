//! Finds the complete blocks of a recording.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::os::unix::fs::FileExt;

use librip_format::Checksum;
use lz4_flex::frame::FrameDecoder;

use super::{BLOCK_LEN, BLOCK_MAGIC};
use crate::bytes::Bytes;

/// A file is read in pieces of this many bytes.
const PIECE_BYTES: usize = 1 << 16;

/// A complete block, with the checksum that it says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) kind: u32,
    /// How many words it has.
    pub(super) words: u32,
    body_at: u64,
    body_len: u64,
}

impl Block {
    /// Its body, unpacked.
    pub(super) fn body<'f>(&self, file: &'f File) -> impl Read + use<'f> {
        let section = Section { file, at: self.body_at, end: self.body_at + self.body_len };
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

/// Finds the complete blocks between two offsets.
///
/// # Errors
///
/// Those of reading.
pub(super) fn find(file: &File, mut at: u64, end: u64) -> io::Result<Found> {
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
            let body = Section { file, at: body_at, end: body_at + body_len };
            if sum(head.0, body)? == head.u64(24) {
                found.blocks.push(Block { kind: head.u32(8), words: head.u32(12), body_at, body_len });
                at = body_at + body_len;
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

/// The checksum of a block.
fn sum(head: &[u8], mut body: Section<'_>) -> io::Result<u64> {
    let mut sum = Checksum::new().with(&head[..24]);
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
    let sum = Checksum::new().with(&head[..24]);
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
