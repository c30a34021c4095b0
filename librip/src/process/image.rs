//! Where data and code of this module are: the executable or library that this instance of librip is part of.
//!
//! An address that comes from the ring may have been scribbled on. Memory at such an address is read only if the
//! address is in here. The segments stay mapped, because the module is never unloaded.

#![allow(unsafe_code, reason = "reads memory at addresses that were checked")]

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// A module has at most this many segments of data that are noted: linkers make two or three.
const SEGMENTS_MAX: usize = 6;

/// A segment. It is unused while `end` is 0.
struct Segment {
    begin: AtomicU64,
    end: AtomicU64,
}

/// That of code: linkers make one.
static CODE: [Segment; 1] = [const { Segment { begin: AtomicU64::new(0), end: AtomicU64::new(0) } }; 1];

static SEGMENTS: [Segment; SEGMENTS_MAX] =
    [const { Segment { begin: AtomicU64::new(0), end: AtomicU64::new(0) } }; SEGMENTS_MAX];

/// Notes the readable segments of this module that are not code, as begin and end. It is called once, or again with the
/// same segments.
pub(crate) fn note(segments: &[(u64, u64)]) {
    fill(&SEGMENTS, segments);
}

fn fill(to: &[Segment], segments: &[(u64, u64)]) {
    for (noted, &(begin, end)) in to.iter().zip(segments) {
        noted.begin.store(begin, Relaxed);
        // ORDERING: release, pairs with the acquire in `is_in`.
        noted.end.store(end, Release);
    }
}

/// Notes the first readable segment of this module's code, as [`note`] does those of its data.
pub(crate) fn note_code(segments: &[(u64, u64)]) {
    fill(&CODE, segments);
}

/// Where this module's code is; empty if that is not noted.
pub(crate) fn code_range() -> core::ops::Range<u64> {
    let [code] = &CODE;
    // ORDERING: acquire, pairs with the release in `fill`.
    let end = code.end.load(Acquire);
    code.begin.load(Relaxed)..end
}

/// Reads bytes of this module's code; `None` unless all of them are there.
pub(crate) fn code<const LEN: usize>(address: u64) -> Option<[u8; LEN]> {
    is_in(&CODE, address, LEN as u64).then(|| {
        let mut bytes = [0; LEN];
        read(address, &mut bytes);
        bytes
    })
}

/// Copies a part of this module's data. Returns false, and copies nothing, unless all of it is in one segment.
///
/// The program may be writing to it, so callers check what they get.
pub(crate) fn copy(address: u64, to: &mut [u8]) -> bool {
    let is_data = contains(address, to.len() as u64);
    if is_data {
        read(address, to);
    }
    is_data
}

/// Reads what was checked to be in a segment.
fn read(address: u64, to: &mut [u8]) {
    let from = core::ptr::with_exposed_provenance::<u8>(address as usize);
    for (index, byte) in to.iter_mut().enumerate() {
        // SAFETY: the loader has mapped it readable, and it stays. Volatile, because the program may write to it.
        *byte = unsafe { from.wrapping_add(index).read_volatile() };
    }
}

/// Whether this many bytes from an address on are data of this module.
pub(crate) fn contains(address: u64, len_bytes: u64) -> bool {
    is_in(&SEGMENTS, address, len_bytes)
}

fn is_in(segments: &[Segment], address: u64, len_bytes: u64) -> bool {
    let Some(end) = address.checked_add(len_bytes) else { return false };
    // ORDERING: acquire, pairs with the release in `fill`.
    segments.iter().any(|segment| end <= segment.end.load(Acquire) && segment.begin.load(Relaxed) <= address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_memory_that_was_noted_is_read() {
        static DATA: [u8; 16] = *b"0123456789abcdef";
        let begin = DATA.as_ptr().expose_provenance() as u64;
        let mut copied = [0; 12];
        assert!(!copy(begin, &mut copied), "nothing is noted");
        note(&[(begin, begin + 16)]);
        assert!(copy(begin + 4, &mut copied) && copied == *b"456789abcdef");
        for address in [begin - 1, begin + 5, begin + 16, u64::MAX, 0] {
            assert!(!copy(address, &mut copied), "{address:#x}");
        }
    }
}
