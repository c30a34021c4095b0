//! The names that programs gave to their locks.
//!
//! It does not choose what a lock is called: it reads a table.

use std::collections::HashMap;
use std::mem::offset_of;

use librip_format::{LockName, is_complete};

use super::bytes::Bytes;
use super::table::{CHANGED, entries, has_its_checksum, used_bytes};
use super::{Defect, Header, RegionKind, Source};

/// All names by pid and address. If two entries name one lock, the later one counts.
///
/// The table of a living process is read twice. An entry that changes between the readings is left out, and so is
/// an entry that a thread has claimed and not completed.
pub(super) fn read(
    source: &Source,
    header: &Header,
    defects: &mut Vec<Defect>,
) -> HashMap<(u32, u64), String> {
    let region = header.lock_names;
    let first = used_bytes(source, region, RegionKind::LockNames, defects);
    let is_twice = source.may_change() && !first.is_empty();
    let second = is_twice.then(|| used_bytes(source, region, RegionKind::LockNames, defects));
    let second = second.as_ref().unwrap_or(&first);
    let pairs = entries(&first, region).zip(entries(second, region));
    let complete = pairs.filter(|(first, second)| first.0 == second.0).map(|(entry, _)| entry);
    let complete = complete.filter(|entry| is_complete(entry.u32(offset_of!(LockName, state))));
    let (right, changed): (Vec<_>, Vec<_>) = complete.partition(has_its_checksum);
    if !changed.is_empty() {
        let (kind, count) = (RegionKind::LockNames, changed.len() as u64);
        defects.push(Defect::Entries { kind, count, what: CHANGED });
    }
    right.iter().filter_map(name).collect()
}

fn name(entry: &Bytes<'_>) -> Option<((u32, u64), String)> {
    let name = entry.text(offset_of!(LockName, name), librip_format::NAME_LEN_BYTES);
    let lock = (entry.u32(offset_of!(LockName, pid)), entry.u64(offset_of!(LockName, lock)));
    (!name.is_empty()).then_some((lock, name))
}
