//! A region's entries as bytes.
//!
//! It does not know what an entry means.

use std::mem::size_of;

use librip_format::Checksum;

use super::bytes::Bytes;
use super::{Defect, Region, RegionKind, Source};

/// The longest table that is read, bytes: five million sites. A sparse file can claim any length.
const TABLE_MAX_BYTES: u64 = 256 << 20;

/// The used part of a table, as far as the file has it.
pub(super) fn used_bytes(
    source: &Source,
    region: Region,
    kind: RegionKind,
    defects: &mut Vec<Defect>,
) -> Vec<u8> {
    let used = region.used.saturating_mul(region.entry_len_bytes);
    if used > TABLE_MAX_BYTES {
        defects.push(Defect::Region { kind, what: "its length in bytes", found: used });
    }
    let available = source.len_bytes().saturating_sub(region.offset);
    let mut bytes = vec![0; used.min(TABLE_MAX_BYTES).min(available) as usize];
    match source.read_at(&mut bytes, region.offset) {
        Ok(got) => bytes.truncate(got),
        Err(error) => {
            defects.push(Defect::Io { offset: region.offset, what: error.to_string() });
            bytes.clear();
        }
    }
    bytes
}

pub(super) fn entries(table: &[u8], region: Region) -> impl Iterator<Item = Bytes<'_>> {
    table.chunks_exact((region.entry_len_bytes as usize).max(1)).map(Bytes)
}

/// What is wrong with an entry that `has_its_checksum` refuses.
pub(super) const CHANGED: &str = "the entry does not have its checksum";

/// Whether a complete entry without a text has the checksum that its state is.
pub(super) fn has_its_checksum(entry: &Bytes<'_>) -> bool {
    let covered = entry.0.get(size_of::<u32>()..).unwrap_or_default();
    Checksum::new().with(covered).state() == entry.u32(0)
}
