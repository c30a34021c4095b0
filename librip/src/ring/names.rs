//! Names of a fixed length, of threads and of locks, as the file has them.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Release;

/// A name padded with zeros; longer names are cut.
pub(super) fn padded<const LEN: usize>(name: &[u8]) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    let len = name.len().min(LEN);
    bytes[..len].copy_from_slice(&name[..len]);
    bytes
}

/// Writes a name, padded with zeros; longer names are cut.
pub(super) fn store<const WORDS: usize>(fields: &[AtomicU64; WORDS], name: &[u8]) {
    let mut rest = name;
    for field in fields {
        let (chunk, later) = rest.split_at(rest.len().min(8));
        rest = later;
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        // ORDERING: release: a reader that sees a part of the new name also sees the state that was stored before it,
        // and reads again.
        field.store(u64::from_ne_bytes(word), Release);
    }
}
