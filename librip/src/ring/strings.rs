//! Enters texts to which events refer by their address.
//!
//! With them, a ring explains itself without the program. It does not choose what is entered, and finds no duplicates:
//! `event::text` does. Safe in a signal handler.

#![allow(unsafe_code, reason = "entries are written through the mapping")]

use core::sync::atomic::Ordering::Relaxed;

use librip_format::{STATIC_TEXT_LEN_MAX, StaticText};

use super::entry::{append_text, write_then_complete};
use super::{Ring, Table};
use crate::sys::{self, Unreserved};

/// Enters a text, or its beginning. The header counts it if there is no room.
pub(crate) fn write(ring: &Ring, text: &'static [u8]) {
    if try_write(ring, text).is_err() {
        // ORDERING: relaxed, a statistic.
        ring.header().metadata_refused.fetch_add(1, Relaxed);
    }
}

fn try_write(ring: &Ring, text: &'static [u8]) -> Result<(), Unreserved> {
    let kept = &text[..text.len().min(STATIC_TEXT_LEN_MAX)];
    let index = ring.append(Table::Strings, 1)?;
    let entry = StaticText {
        state: 0.into(),
        pid: sys::pid(),
        address: text.as_ptr().addr() as u64,
        text: append_text(ring, kept)?,
        len_bytes: text.len() as u64,
    };
    // SAFETY: `Ring::append` gave this entry to us alone, reserved. `StaticText` starts with its state, and has no
    // padding: its fields add up to its length.
    unsafe { write_then_complete(ring.string(index), entry, kept) };
    Ok(())
}
