//! Where the data of this module is: the executable or library that this instance of librip is part of.
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

static SEGMENTS: [Segment; SEGMENTS_MAX] =
    [const { Segment { begin: AtomicU64::new(0), end: AtomicU64::new(0) } }; SEGMENTS_MAX];

/// Notes the readable segments of this module that are not code, as begin and end. It is called once, or again with the
/// same segments.
pub(crate) fn note(segments: &[(u64, u64)]) {
    for (noted, &(begin, end)) in SEGMENTS.iter().zip(segments) {
        noted.begin.store(begin, Relaxed);
        // ORDERING: release, pairs with the acquire in `contains`.
        noted.end.store(end, Release);
    }
}

/// Copies a part of this module's data. Returns false, and copies nothing, unless all of it is in one segment.
///
/// The program may be writing to it, so callers check what they get.
pub(crate) fn copy(address: u64, to: &mut [u8]) -> bool {
    let is_data = contains(address, to.len() as u64);
    if is_data {
        let from = core::ptr::with_exposed_provenance::<u8>(address as usize);
        for (index, byte) in to.iter_mut().enumerate() {
            // SAFETY: the loader has mapped it readable, and it stays. Volatile, because the program may write to it.
            *byte = unsafe { from.wrapping_add(index).read_volatile() };
        }
    }
    is_data
}

/// Whether this many bytes from an address on are data of this module.
pub(crate) fn contains(address: u64, len_bytes: u64) -> bool {
    let Some(end) = address.checked_add(len_bytes) else { return false };
    // ORDERING: acquire, pairs with the release in `note`.
    SEGMENTS.iter().any(|segment| end <= segment.end.load(Acquire) && segment.begin.load(Relaxed) <= address)
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
