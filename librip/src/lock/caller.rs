//! [`At`]: the origin of a wrapper that knows its caller, and the copies of callers' locations that are made for the
//! ring.
//!
//! `#[track_caller]` gives a wrapper the address of a `Location`, a constant of the program. An acquisition of a free
//! lock records that address in place of a PC: see `librip_format::call`. So it costs what a PC costs, and needs no
//! debug information.
//!
//! # When a location is copied
//!
//! A thread that waits has time. It copies the location of its call, and those of the locks that it holds. So a ring
//! has the locations of all waits, and of all locks in a cycle of waits, without the program. A thread's first
//! acquisition, an acquisition with a time, and each acquisition of an unoptimised program copy theirs too. If the
//! location is new, the thread also copies those of its last words. Each location is copied once.
//!
//! The locations of held locks and of words come from the file. So they are read only where they are data of this
//! module, and are checked.

#![allow(unsafe_code, reason = "sites are assembly")]

use core::panic::Location;

use crate::lock::site::{Flags, Origin, held_flags};
use crate::lock::table::{IS_CALL, Slot};
use crate::process::seen::Seen;
use crate::process::{image, instance};
use crate::ring::calls::CallPlace;
use librip_format::{CALL_BITS, CALL_FILE_LEN_BYTES, CALL_LOCK_OWNED, HELD_OWNED, call_bits, call_lock_bits};

/// A call of a wrapper, whose sites have these flags.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<const FLAGS: Flags>(pub(crate) &'static Location<'static>);

const _: () = assert!(align_of::<Location<'_>>() > CALL_BITS as usize, "the bits of a call are free");

impl<const FLAGS: Flags> At<FLAGS> {
    const BITS: u64 = call_bits(FLAGS);
    const LOCK_BITS: u64 = call_lock_bits(FLAGS);

    #[inline(always)]
    pub(crate) fn address(self) -> u64 {
        core::ptr::from_ref(self.0).addr() as u64
    }

    #[inline(always)]
    fn call(self) -> u64 {
        // An addition to a constant address takes no instruction.
        self.address().wrapping_add(Self::BITS)
    }
}

impl<const FLAGS: Flags> Origin for At<FLAGS> {
    const IS_CALL: bool = true;
    type Place = [u64; 1];

    #[inline(always)]
    fn entry_pc(self, _site: u64) -> u64 {
        self.call()
    }

    #[inline(always)]
    fn entry_flags(site_flags: Flags) -> u64 {
        let owned = if call_lock_bits(site_flags) & CALL_LOCK_OWNED != 0 { HELD_OWNED } else { 0 };
        held_flags(site_flags) | owned | IS_CALL
    }

    #[inline(always)]
    fn place(self, _pc: u64) -> [u64; 1] {
        [self.address()]
    }

    #[inline(always)]
    fn begin_event(self, slot: Slot, lock: u64, _pc: u64, reads_clock: bool) -> u64 {
        let lock = [lock | Self::LOCK_BITS];
        if reads_clock {
            slot.event(([], [], lock), self.call())
        } else {
            slot.plain_event(([], lock), self.call())
        }
    }

    fn note(self, slot: Slot) {
        note(self.0, slot);
    }
}

/// Copies a location, and those of the locks that the thread has, unless they were copied before.
#[cold]
#[inline(never)]
fn note(location: &'static Location<'static>, slot: Slot) {
    if copy(location) {
        enter_all(slot.last_payloads(HISTORY_MAX));
    }
    enter_all(slot.calls());
}

/// Copies a location unless it was copied before, and returns its address.
pub(crate) fn enter_location(location: &'static Location<'static>) -> u64 {
    copy(location);
    core::ptr::from_ref(location).addr() as u64
}

/// Copies a location unless it was copied before. Returns whether it was not.
fn copy(location: &'static Location<'static>) -> bool {
    let address = core::ptr::from_ref(location).expose_provenance() as u64;
    let is_new = SEEN.is_new(address);
    if is_new {
        let file = location.file().as_bytes();
        let mut end = [0; CALL_FILE_LEN_BYTES];
        let kept = file.len().min(CALL_FILE_LEN_BYTES);
        end[..kept].copy_from_slice(&file[file.len() - kept..]);
        instance::enter_call(&CallPlace {
            address,
            line: location.line(),
            column: location.column(),
            file_len_bytes: file.len() as u32,
            file: &end,
        });
    }
    is_new
}

/// How many words of its history a thread looks through.
const HISTORY_MAX: u64 = 64;

/// Copies the locations of calls, unless they were copied before. What is no call is left out.
fn enter_all(calls: impl Iterator<Item = u64>) {
    for address in calls.map(|call| call & !CALL_BITS) {
        if image::contains(address, 1) && SEEN.is_new(address) {
            enter_unverified(address);
        }
    }
}

/// Copies the location at an address, if there is one.
fn enter_unverified(address: u64) {
    /// No path is longer.
    const FILE_LEN_MAX: u64 = 4096;
    if !has_known_layout() {
        return;
    }
    let Some([file, len_bytes, line_and_column]) = words(address) else { return };
    let (line, column) = (line_and_column as u32, (line_and_column >> 32) as u32);
    if len_bytes == 0 || len_bytes > FILE_LEN_MAX || line == 0 || column == 0 {
        return;
    }
    let mut end = [0; CALL_FILE_LEN_BYTES];
    let kept = len_bytes.min(CALL_FILE_LEN_BYTES as u64);
    if image::copy(file.wrapping_add(len_bytes - kept), &mut end[..kept as usize]) {
        let file_len_bytes = len_bytes as u32;
        instance::enter_call(&CallPlace { address, line, column, file_len_bytes, file: &end });
    }
}

/// The words of a location: the file's name, its length, line and column.
fn words(address: u64) -> Option<[u64; 3]> {
    let mut bytes = [0; 24];
    if !address.is_multiple_of(align_of::<Location<'_>>() as u64) || !image::copy(address, &mut bytes) {
        return None;
    }
    let (words, _) = bytes.as_chunks();
    Some([u64::from_ne_bytes(words[0]), u64::from_ne_bytes(words[1]), u64::from_ne_bytes(words[2])])
}

/// Whether this compiler lays locations out as [`words`] has it. Rust does not promise that.
fn has_known_layout() -> bool {
    let known = here();
    let file = known.file();
    let expected = [
        file.as_ptr().addr() as u64,
        file.len() as u64,
        u64::from(known.line()) | u64::from(known.column()) << 32,
    ];
    words(core::ptr::from_ref(known).expose_provenance() as u64) == Some(expected)
}

fn here() -> &'static Location<'static> {
    Location::caller()
}

/// The addresses of locations that were copied, or are no locations. Locations that find no room are not copied.
static SEEN: Seen<2048> = Seen::new();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_compiler_lays_locations_out_as_they_are_read() {
        let begin = core::ptr::from_ref(here()).expose_provenance() as u64;
        image::note(&[(begin, begin + 24)]);
        assert!(has_known_layout());
    }
}
