//! The sections of DWARF, as gimli reads them.
//!
//! It does not look up addresses.

use std::ops::Deref;
use std::sync::Arc;

use gimli::{CloneStableDeref, EndianReader, RunTimeEndian, StableDeref};
use object::Endianness;

use super::elf::Image;
use super::problem::Problem;

/// Sections are read and not mapped. All values that refer to a section share it.
pub(super) type Bytes = EndianReader<RunTimeEndian, Content>;

/// The bytes of a section, as they were read: an `Arc<[u8]>` would be a copy of it.
#[derive(Clone, Debug)]
pub(super) struct Content(Arc<Vec<u8>>);

impl Deref for Content {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

// SAFETY: the bytes are on the heap, and stay where they are if the `Arc` moves. The field is private and nothing
// changes the vector.
#[expect(unsafe_code, reason = "gimli asks for the promise by an unsafe trait")]
unsafe impl StableDeref for Content {}

// SAFETY: a clone refers to the same vector.
#[expect(unsafe_code, reason = "gimli asks for the promise by an unsafe trait")]
unsafe impl CloneStableDeref for Content {}

/// A section of a file; empty if the file has none.
pub(super) fn section(image: &Image, name: &str) -> Result<Bytes, Problem> {
    let content = image.content_named(name)?.unwrap_or_default();
    Ok(Bytes::new(Content(Arc::new(content)), endian(image)))
}

/// An empty section.
pub(super) fn empty(image: &Image) -> Bytes {
    Bytes::new(Content(Arc::default()), endian(image))
}

fn endian(image: &Image) -> RunTimeEndian {
    match image.endian {
        Endianness::Little => RunTimeEndian::Little,
        Endianness::Big => RunTimeEndian::Big,
    }
}

impl From<gimli::Error> for Problem {
    fn from(error: gimli::Error) -> Self {
        Self::Damaged(error.to_string())
    }
}
