//! Places in the source that a C++ header knows: an address of code, with its file and line.
//!
//! The header takes the address in the function of its caller, and the compiler gives it the caller's file and line.
//! The first time that a place is used, the three go into the ring as the location of a call. So a reader needs neither
//! the program nor debug information to name the line.

use crate::process::instance;
use crate::process::seen::Seen;
use crate::ring::calls::CallPlace;
use librip_format::CALL_FILE_LEN_BYTES;

/// A place in the source.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// An address of code there.
    pub pc: u64,
    /// The name of the source file.
    pub file: &'a [u8],
    /// The line in it.
    pub line: u32,
}

/// The addresses of places that are in the ring already, or found no room.
static SEEN: Seen<2048> = Seen::new();

/// Whether the place at this address was entered. If it was, this may be false all the same.
#[inline(always)]
pub fn is_entered(pc: u64) -> bool {
    SEEN.has_at_once(pc)
}

/// Copies file and line into the ring, with the address, unless that was done before.
#[cold]
#[inline(never)]
pub fn enter(Place { pc, file, line }: Place<'_>) {
    // Without a ring nothing can be entered, so that must not count.
    if pc != 0 && instance::owner().is_some() && SEEN.is_new(pc) {
        let mut end = [0; CALL_FILE_LEN_BYTES];
        let kept = file.len().min(CALL_FILE_LEN_BYTES);
        end[..kept].copy_from_slice(&file[file.len() - kept..]);
        let file_len_bytes = file.len() as u32;
        instance::enter_call(&CallPlace { address: pc, line, column: 0, file_len_bytes, file: &end });
    }
}
