//! Names of a fixed length, of threads and of locks, as the file has them.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Release;

use librip_format::NAME_LEN_BYTES;

/// A name padded with zeros; longer names are cut.
pub(super) fn padded(name: &[u8]) -> [u8; NAME_LEN_BYTES] {
    let mut bytes = [0; NAME_LEN_BYTES];
    let len = name.len().min(NAME_LEN_BYTES);
    bytes[..len].copy_from_slice(&name[..len]);
    bytes
}

/// Writes a name, padded with zeros; longer names are cut.
pub(super) fn store(fields: &[AtomicU64; NAME_LEN_BYTES / 8], name: &[u8]) {
    let bytes = padded(name);
    for (field, chunk) in fields.iter().zip(bytes.chunks_exact(8)) {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        // ORDERING: release: a reader that sees a part of the new name also sees the state that was stored before it,
        // and reads again.
        field.store(u64::from_ne_bytes(word), Release);
    }
}
