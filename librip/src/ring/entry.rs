//! Writes entries that are written once: modules, sites and texts of events, with their texts and checksums.
//!
//! It knows no entry's meaning. It allocates nothing, and is safe in a signal handler.

#![allow(unsafe_code, reason = "entries are written through the mapping")]

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Release;

use librip_format::{Checksum, Text};

use super::{Ring, Table};
use crate::sys::Unreserved;

/// Writes an entry, whose state is 0, and then the state that makes it complete: the checksum of the entry and its
/// text.
///
/// The reader is another process that copies the file. It accepts an entry if its state is complete.
///
/// # Safety
///
/// `target` is aligned and within the ring's mapping; `Ring::append` gave it to the calling thread alone, reserved. `T`
/// starts with an `AtomicU32`, its state, and has no padding.
pub(super) unsafe fn write_then_complete<T>(target: *mut T, entry: T, text: &[u8]) {
    let start = (&raw const entry).cast::<u8>();
    // SAFETY: all bytes of our own entry, which has no padding, as the caller promises.
    let bytes = unsafe { core::slice::from_raw_parts(start, size_of::<T>()) };
    let own = Checksum::new().with(&bytes[size_of::<AtomicU32>()..]);
    let complete = own.with_sum(Checksum::new().with(text)).state();
    // SAFETY: the caller promises a valid target that no other thread has. No thread of the recorder reads entries,
    // also later. Volatile, because other processes read the file; they see a state of 0 until the store below.
    unsafe { target.write_volatile(entry) };
    // SAFETY: the caller promises that the entry starts with an atomic, which lives as long as the mapping.
    let state = unsafe { AtomicU32::from_ptr(target.cast()) };
    // ORDERING: release: a reader that sees the state sees the entry.
    state.store(complete, Release);
}

pub(super) fn append_text(ring: &Ring, bytes: &[u8]) -> Result<Text, Unreserved> {
    let offset = ring.append(Table::Texts, bytes.len() as u64)?;
    if !bytes.is_empty() {
        let target = ring.text(offset);
        // SAFETY: `append` gave this range to us alone, reserved, and checked that it is in the region.
        unsafe { target.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
    Ok(Text { offset: offset as u32, len_bytes: bytes.len() as u32 })
}
