//! Enters locations of calls in the ring: file, line and column of a wrapper's caller.
//!
//! With them, a ring explains itself without the program. It does not choose what is entered, and finds no duplicates:
//! `lock::caller` does. Safe in a signal handler.

use core::sync::atomic::Ordering::{Relaxed, Release};

use librip_format::{CALL_FILE_LEN_BYTES, CallLocation, Checksum};

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
    let pid = sys::pid();
    // ORDERING: relaxed: the state's release publishes all of them.
    entry.pid.store(pid, Relaxed);
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
    entry.state.store(state(pid, place), Release);
}

/// The state of a complete entry: the checksum of all its other fields.
fn state(pid: u32, place: &CallPlace<'_>) -> u32 {
    let CallPlace { address, line, column, file_len_bytes, file } = *place;
    let mut covered = [0; size_of::<CallLocation>() - size_of::<u32>()];
    covered[..4].copy_from_slice(&pid.to_le_bytes());
    covered[4..12].copy_from_slice(&address.to_le_bytes());
    covered[12..16].copy_from_slice(&line.to_le_bytes());
    covered[16..20].copy_from_slice(&column.to_le_bytes());
    covered[20..24].copy_from_slice(&file_len_bytes.to_le_bytes());
    covered[28..].copy_from_slice(file);
    Checksum::new().with(&covered).state()
}
