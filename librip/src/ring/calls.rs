//! Enters locations of calls in the ring: file, line and column of a wrapper's caller.
//!
//! With them, a ring explains itself without the program. It does not choose what is entered, and finds no duplicates:
//! `lock::caller` does. Safe in a signal handler.

use core::sync::atomic::Ordering::{Relaxed, Release};

use librip_format::{CALL_FILE_LEN_BYTES, ENTRY_COMPLETE};

use super::{Ring, Table};
use crate::sys;

/// A location of a call. Its layout is the same in all instances of librip.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallPlace<'a> {
    /// The address of the `Location`.
    pub(crate) address: u64,
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) file_len_bytes: u32,
    /// The end of the file's name, with zeros after it.
    pub(crate) file: &'a [u8; CALL_FILE_LEN_BYTES],
}

/// Enters a location. The header counts it if there is no room.
pub(crate) fn write(ring: &Ring, place: &CallPlace<'_>) {
    let Ok(index) = ring.append(Table::Calls, 1) else {
        // ORDERING: relaxed, a statistic.
        ring.header().metadata_refused.fetch_add(1, Relaxed);
        return;
    };
    let entry = ring.call(index);
    // ORDERING: relaxed: the state's release publishes all of them.
    entry.pid.store(sys::pid(), Relaxed);
    entry.address.store(place.address, Relaxed);
    entry.line.store(place.line, Relaxed);
    entry.column.store(place.column, Relaxed);
    entry.file_len_bytes.store(place.file_len_bytes, Relaxed);
    for (field, chunk) in entry.file.iter().zip(place.file.chunks_exact(8)) {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        field.store(u64::from_ne_bytes(word), Relaxed);
    }
    // ORDERING: release: a reader that sees the state sees the entry.
    entry.state.store(ENTRY_COMPLETE, Release);
}
