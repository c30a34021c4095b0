//! The file that `read-rip save` writes: one or two images of a ring, and what the system knew of its process.
//!
//! ```text
//! +---------------------------+ 0
//! | the earlier image         |  a ring, as its own header describes it; may be missing
//! +---------------------------+
//! | the later image           |  a ring, some time later; or the only one
//! +---------------------------+
//! | context                   |  JSON: see `read-rip-case`
//! +---------------------------+
//! | footer                    |  the lengths of these, and a magic
//! +---------------------------+
//! ```
//!
//! A ring says how long it is. So the whole file is a ring too, for programs that know nothing of what follows, and
//! so is its unpacked form if it is compressed. This file knows bytes, and not what the context means.

use std::io::{self, Write};

use super::Source;
use super::bytes::Bytes;

const MAGIC: [u8; 8] = *b"RIPSAVED";
/// Lengths of the earlier image, the later image and the context, and the magic.
const FOOTER_LEN: usize = 32;
/// A longer context is not read, bytes.
const CONTEXT_MAX_BYTES: u64 = 1 << 30;

/// A saved ring, taken apart.
#[derive(Clone, Debug)]
pub struct Saved {
    /// The later of the two images, or the only one.
    pub later: Source,
    pub earlier: Option<Source>,
    /// What was known of the process.
    pub context: Vec<u8>,
}

impl Saved {
    /// Takes a file apart; `None` if it is no saved ring.
    pub fn of(source: &Source) -> Option<Saved> {
        let at = source.len_bytes().checked_sub(FOOTER_LEN as u64)?;
        let mut footer = [0; FOOTER_LEN];
        let got = source.read_at(&mut footer, at).ok()?;
        let footer = Bytes(&footer);
        if got < FOOTER_LEN || footer.array(24) != MAGIC {
            return None;
        }
        let [earlier, later, context] = [0, 8, 16].map(|field| footer.u64(field));
        let is_whole = earlier.checked_add(later).and_then(|sum| sum.checked_add(context)) == Some(at);
        if !is_whole || context > CONTEXT_MAX_BYTES {
            return None;
        }
        let mut bytes = vec![0; context as usize];
        let got = source.read_at(&mut bytes, earlier + later).ok()?;
        let is_read = got == bytes.len();
        let (later, earlier) = Saved::images(source, later, earlier);
        is_read.then_some(Saved { later, earlier, context: bytes })
    }

    /// The images of a file: the later one, and the earlier one if there are two.
    pub fn images(source: &Source, later_bytes: u64, earlier_bytes: u64) -> (Source, Option<Source>) {
        let earlier = (earlier_bytes > 0).then(|| source.part(0, earlier_bytes));
        (source.part(earlier_bytes, later_bytes), earlier)
    }

    /// Writes what follows the images.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write_rest(
        out: &mut dyn Write,
        later_bytes: u64,
        earlier_bytes: u64,
        context: &[u8],
    ) -> io::Result<()> {
        out.write_all(context)?;
        for len in [earlier_bytes, later_bytes, context.len() as u64] {
            out.write_all(&len.to_le_bytes())?;
        }
        out.write_all(&MAGIC)
    }
}
