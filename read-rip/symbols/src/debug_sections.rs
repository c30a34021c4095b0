//! The sections of DWARF, as gimli reads them.
//!
//! It does not look up addresses.

use std::sync::Arc;

use gimli::{EndianReader, RunTimeEndian};
use object::Endianness;

use super::elf::Image;
use super::problem::Problem;

/// Sections are read and not mapped. All values that refer to a section share it.
pub(super) type Bytes = EndianReader<RunTimeEndian, Arc<[u8]>>;

/// A section of a file; empty if the file has none.
pub(super) fn section(image: &Image, name: &str) -> Result<Bytes, Problem> {
    let content = image.content_named(name)?.unwrap_or_default();
    Ok(Bytes::new(content.into(), endian(image)))
}

/// An empty section.
pub(super) fn empty(image: &Image) -> Bytes {
    Bytes::new(Arc::new([]), endian(image))
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
