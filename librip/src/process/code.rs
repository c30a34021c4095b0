//! Where code is: the ranges of the modules that this instance of librip has found, without its own module.
//!
//! A word of the stack that points there may be a return address. The ranges are a hint: a library may have been
//! unloaded since, and nothing is read or called at these addresses.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU64, AtomicUsize};

/// Code of further modules is not known.
const RANGES_MAX: usize = 256;

/// A range of code. It is unused while `end` is 0.
struct Range {
    begin: AtomicU64,
    end: AtomicU64,
}

static RANGES: [Range; RANGES_MAX] =
    [const { Range { begin: AtomicU64::new(0), end: AtomicU64::new(0) } }; RANGES_MAX];

/// How many ranges were noted.
static USED: AtomicUsize = AtomicUsize::new(0);

/// Notes the code of a module, as begin and end. Modules may be found again.
pub(crate) fn note(begin: u64, end: u64) {
    // ORDERING: relaxed: a range that is noted twice takes room, and does no harm.
    let is_same = |range: &Range| (range.begin.load(Relaxed), range.end.load(Relaxed)) == (begin, end);
    if RANGES.iter().any(is_same) {
        return;
    }
    // ORDERING: relaxed: it only hands out the index.
    if let Some(range) = RANGES.get(USED.fetch_add(1, Relaxed)) {
        range.begin.store(begin, Relaxed);
        // ORDERING: release, pairs with the acquire in `contains`.
        range.end.store(end, Release);
    }
}

/// Whether an address is in code that was noted.
pub(crate) fn contains(address: u64) -> bool {
    // ORDERING: relaxed: a range that is not seen yet is left out.
    let used = USED.load(Relaxed).min(RANGES_MAX);
    // ORDERING: acquire, pairs with the release in `note`.
    let is_in = |range: &Range| address < range.end.load(Acquire) && range.begin.load(Relaxed) <= address;
    RANGES[..used].iter().any(is_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_in_noted_ranges_are_code() {
        assert!(!contains(0x5000), "nothing is noted");
        note(0x5000, 0x6000);
        assert!(contains(0x5000) && contains(0x5fff));
        assert!(!contains(0x4fff) && !contains(0x6000) && !contains(0));
    }
}
