//! The file that `read-rip record` writes: images of a ring, and the words that its threads recorded meanwhile.
//!
//! ```text
//! +---------------------------+ 0
//! | magic, version            |  16 bytes
//! +---------------------------+
//! | block ...                 |  48 bytes: magic, kind, words, length, times, checksum; then the body, an LZ4 frame
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
//! | [`SCHEDULE`] | turns of threads on processors and wake-ups, as the kernel said them: see [`Scheduled`] |
//!
//! A reader passes over blocks of kinds that it does not know.
//!
//! The two times of a block, ns since boot, say between which moments its words were recorded. Both times of an image
//! are the moment at which it was complete. The later time never decreases in a file. The earlier one never decreases
//! among the blocks of words, and that of a block of another kind is not after that of the next block of words. So a
//! reader finds the first block of a range of time by bisection: from any offset on, it
//! finds the next block by its magic. No table has to be written, and a killed writer cannot leave a wrong one.
//!
//! Most of an image is zeros. So the body has its length, and for each part with data the part's offset, length and
//! bytes.
//!
//! `writer` writes the file, `blocks` finds the blocks in it, and `reader` makes a ring of them, or of those of a range
//! of time. `schedule` has what the kernel said.

mod blocks;
mod reader;
mod schedule;
mod writer;

pub use reader::Period;
pub(super) use reader::{RecordedWords, Recording};
pub use schedule::{Gap, Schedule, Scheduled, Turn, TurnEnd, WakeUp};
pub use writer::{IntoParts, Parts, RecordingWriter};

/// The first bytes of a recording.
pub(super) const MAGIC: [u8; 8] = *b"RIPRECRD";
const VERSION: u32 = 2;
const START_LEN: usize = 16;
const BLOCK_MAGIC: [u8; 8] = *b"RIPBLOCK";
const BLOCK_LEN: usize = 48;
/// What the checksum of a block begins with, bytes: its head up to the checksum.
const SUMMED_LEN: usize = 40;
/// A kind of block.
const IMAGE: u32 = 1;
/// A kind of block.
const WORDS: u32 = 2;
/// A kind of block.
const SCHEDULE: u32 = 3;
/// The body of a block of words is no longer than this, bytes, unless one thread has more.
const WORDS_MAX_BYTES: u64 = 64 << 20;
/// Bytes of an entry of a block of words, before the words.
const ENTRY_LEN: usize = 104;
