//! The names that programs gave to their locks.
//!
//! It does not choose what a lock is called: it reads a table.

use std::collections::HashMap;
use std::mem::offset_of;

use librip_format::LockName;

use super::bytes::Bytes;
use super::table::{entries, used_bytes};
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
    let mut table = || used_bytes(source, region, RegionKind::LockNames, defects);
    let first = table();
    let second = if source.may_change() && !first.is_empty() { Some(table()) } else { None };
    let second = second.as_ref().unwrap_or(&first);
    let pairs = entries(&first, region).zip(entries(second, region));
    pairs.filter(|(first, second)| first.0 == second.0).filter_map(|(entry, _)| name(&entry)).collect()
}

fn name(entry: &Bytes<'_>) -> Option<((u32, u64), String)> {
    if entry.u32(offset_of!(LockName, state)) != librip_format::NAME_COMPLETE {
        return None;
    }
    let name = entry.text(offset_of!(LockName, name), librip_format::NAME_LEN_BYTES);
    let lock = (entry.u32(offset_of!(LockName, pid)), entry.u64(offset_of!(LockName, lock)));
    (!name.is_empty()).then_some((lock, name))
}
