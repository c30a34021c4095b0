//! Where the stacks of threads are that run, so that their stack pointers are not known.
//!
//! glibc has the structure of a thread (`struct pthread`) at the high end of the stack that it has made for the thread.
//! The first thread has the stack that the kernel calls so.

use std::collections::HashMap;
use std::ops::Range;

use super::glibc;
use crate::target::{Mapping, Memory, Target};

/// The structure is no farther from the end of its mapping.
const STRUCTURE_MAX_BYTES: u64 = 8 << 10;
/// What its address is a multiple of, at least.
const ALIGNMENT: usize = 16;

/// The stacks of these threads, by their ids in the process's own PID namespace, as far as they are found.
pub(crate) fn stacks_of(target: &Target, memory: &dyn Memory, tids: &[u32]) -> HashMap<u32, Range<u64>> {
    let mut found = HashMap::new();
    for mapping in target.mappings.iter().filter(|mapping| mapping.is_writable && !mapping.is_shared) {
        if mapping.path.as_ref().is_some_and(|path| path.as_os_str() == "[stack]") {
            found.insert(target.own_pid, mapping.begin..mapping.end);
        } else if mapping.path.as_ref().is_none_or(|path| path.to_string_lossy().starts_with("[anon"))
            && let Some((tid, at)) = structure_in(target, memory, mapping, tids)
        {
            found.insert(tid, mapping.begin..at);
        }
    }
    found.retain(|tid, _| tids.contains(tid));
    found
}

/// The structure of one of these threads at the end of a mapping: its id, and the address.
fn structure_in(target: &Target, memory: &dyn Memory, mapping: &Mapping, tids: &[u32]) -> Option<(u32, u64)> {
    let begin = mapping.begin.max(mapping.end.saturating_sub(STRUCTURE_MAX_BYTES));
    let mut bytes = vec![0; usize::try_from(mapping.end - begin).ok()?];
    memory.read(begin, &mut bytes).ok()?;
    let ids = (0..bytes.len()).step_by(ALIGNMENT).filter_map(|at| {
        let word = bytes.get(at..at + 4)?.try_into().ok()?;
        let tid = u32::from_le_bytes(word);
        tids.contains(&tid).then_some((tid, begin + at as u64))
    });
    ids.filter_map(|(tid, id_at)| {
        let address = id_at.checked_sub(glibc::id_offset(target.architecture))?;
        (glibc::id_at(memory, target.architecture, address) == Some(tid)).then_some((tid, address))
    })
    .next()
}
