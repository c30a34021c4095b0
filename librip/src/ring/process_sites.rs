//! Enters sites that a bridge makes when the program runs: see "Sites of processes" in `librip_format::site`.
//!
//! It finds no duplicates: `bridge` does. Safe in a signal handler.

#![allow(unsafe_code, reason = "entries are written through the mapping")]

use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;

use librip_format::{OPERANDS_MAX, SITE_OF_PROCESS, Site};

use super::entry::{append_text, write_then_complete};
use super::{Ring, Table};
use crate::sys::{self, Unreserved};

/// A site to enter. Its layout is the same in all instances of librip.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewSite<'a> {
    pc: u64,
    /// File, module path and label, separated by zero bytes.
    text: *const u8,
    text_len_bytes: usize,
    line: u32,
    flags: u16,
    kind: u8,
    operand_count: u8,
    operand_types: [u8; OPERANDS_MAX],
    _text: PhantomData<&'a [u8]>,
}

impl<'a> NewSite<'a> {
    /// A site at this address. It has no more operands than a site can have.
    pub(crate) fn new(pc: u64, text: &'a str, line: u32, kind: u8, flags: u16, operands: &[u8]) -> Self {
        let mut operand_types = [0; OPERANDS_MAX];
        operand_types[..operands.len()].copy_from_slice(operands);
        let operand_count = operands.len() as u8;
        let (text, text_len_bytes) = (text.as_ptr(), text.len());
        let _text = PhantomData;
        NewSite { pc, text, text_len_bytes, line, flags, kind, operand_count, operand_types, _text }
    }
}

/// Enters a site of the calling process. Returns whether there was room. The header counts it if there was none.
pub(crate) fn write(ring: &Ring, site: &NewSite<'_>) -> bool {
    let is_written = try_write(ring, site).is_ok();
    if !is_written {
        // ORDERING: relaxed, a statistic.
        ring.header().metadata_refused.fetch_add(1, Relaxed);
    }
    is_written
}

fn try_write(ring: &Ring, site: &NewSite<'_>) -> Result<(), Unreserved> {
    // SAFETY: `NewSite::new`, here or in another instance, stored the parts of a slice that lives as long as the site.
    let text = unsafe { core::slice::from_raw_parts(site.text, site.text_len_bytes) };
    let index = ring.append(Table::Sites, 1)?;
    let entry = Site {
        state: 0.into(),
        module: SITE_OF_PROCESS,
        pc: site.pc,
        text: append_text(ring, text)?,
        line: site.line,
        column: sys::pid(),
        kind: site.kind,
        operand_count: site.operand_count,
        flags: site.flags,
        operand_types: site.operand_types,
    };
    // SAFETY: `Ring::append` gave this entry to us alone, reserved. `Site` starts with its state, and has no padding:
    // its fields add up to its length.
    unsafe { write_then_complete(ring.site(index), entry, text) };
    Ok(())
}
