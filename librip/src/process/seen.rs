//! [`Seen`]: a set of what was copied into the ring already, by its address.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use librip_format::FACTOR;

/// A key is at most this many entries from where its hash says.
const PROBES_MAX: usize = 8;

/// A set of up to `LEN` keys, a power of two. Nothing leaves it. A key that finds no room counts as seen.
///
/// It is private memory of one instance. All operations are atomic and safe in a signal handler.
#[derive(Debug)]
pub(crate) struct Seen<const LEN: usize>([AtomicU64; LEN]);

impl<const LEN: usize> Seen<LEN> {
    pub(crate) const fn new() -> Self {
        const { assert!(LEN.is_power_of_two() && LEN > PROBES_MAX) };
        Seen([const { AtomicU64::new(0) }; LEN])
    }

    /// Whether the key is where its hash says. If it is not, it may be in the set all the same.
    #[inline(always)]
    pub(crate) fn has_at_once(&self, key: u64) -> bool {
        // ORDERING: relaxed: the set says only who copies. The copy orders itself.
        self.0[Self::place(key)].load(Relaxed) == key
    }

    /// Adds a key, which is not 0. Returns whether it was new.
    pub(crate) fn is_new(&self, key: u64) -> bool {
        for probe in 0..PROBES_MAX {
            let entry = &self.0[(Self::place(key) + probe) % LEN];
            // ORDERING: relaxed, as above.
            match entry.load(Relaxed) {
                0 => match entry.compare_exchange(0, key, Relaxed, Relaxed) {
                    Ok(_) => return true,
                    Err(other) if other == key => return false,
                    Err(_) => {}
                },
                seen if seen == key => return false,
                _ => {}
            }
        }
        false
    }

    #[inline(always)]
    fn place(key: u64) -> usize {
        // Multiplicative hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4).
        ((key >> 3).wrapping_mul(FACTOR) >> (u64::BITS - LEN.ilog2())) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_new_once() {
        static SEEN: Seen<2048> = Seen::new();
        for key in (1..500).map(|index| index * 24) {
            assert!(SEEN.is_new(key), "{key}");
        }
        assert!((1..500).all(|index| !SEEN.is_new(index * 24)));
    }

    #[test]
    fn a_key_without_room_counts_as_seen() {
        let seen = Seen::<16>::new();
        let added = (1..1000).filter(|key| seen.is_new(key * 8)).count();
        assert!((8..=16).contains(&added), "{added}");
    }
}
