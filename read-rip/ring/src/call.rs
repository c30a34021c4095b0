//! Calls of wrappers: PC words that name a caller, and the callers that were copied into the ring.
//!
//! `librip_format::call` says what a call is. This file does not decide whether an address is one.

use std::mem::offset_of;

use librip_format::CallLocation as Raw;

use super::bytes::Bytes;
use super::table::{CHANGED, entries, has_its_checksum, used_bytes};
use super::{Defect, Header, RegionKind, SiteFlags, Source};

/// The location of a call, as the ring has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedCall {
    /// The process that copied it.
    pub pid: u32,
    /// The actual address of the location.
    pub address: u64,
    /// The name of the source file. If it was too long, it begins with `...`.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0: not recorded.
    pub column: u32,
}

/// The address of the location in a PC word that is a call.
pub fn call_location(pc: u64) -> u64 {
    pc & !librip_format::CALL_BITS
}

/// The address of the lock in the operand of a call.
pub fn call_lock(operand: u64) -> u64 {
    operand & !librip_format::CALL_LOCK_BITS
}

/// The flags of a call: those that a site would have.
pub fn call_flags(pc: u64, operand: u64) -> SiteFlags {
    let has = |bit: u64| operand & bit != 0;
    let (is_shared, is_owned) = (has(librip_format::CALL_LOCK_SHARED), has(librip_format::CALL_LOCK_OWNED));
    SiteFlags::from_bits(librip_format::call_flags(pc, is_shared, is_owned))
}

/// What the PC word of a call says without its operand.
pub fn call_is_try(pc: u64) -> bool {
    pc & librip_format::CALL_TRY != 0
}

/// Reads the copied locations. Damaged entries are counted, and unfinished ones left out.
pub(super) fn read(source: &Source, header: &Header, defects: &mut Vec<Defect>) -> Vec<CopiedCall> {
    let kind = RegionKind::Calls;
    let table = used_bytes(source, header.calls, kind, defects);
    let mut calls = Vec::new();
    let mut damaged = 0;
    let complete = |entry: &Bytes<'_>| librip_format::is_complete(entry.u32(offset_of!(Raw, state)));
    let mut changed = 0;
    for entry in entries(&table, header.calls).filter(complete) {
        match call(&entry) {
            _ if !has_its_checksum(&entry) => changed += 1,
            Some(call) => calls.push(call),
            None => damaged += 1,
        }
    }
    if changed > 0 {
        defects.push(Defect::Entries { kind, count: changed, what: CHANGED });
    }
    if damaged > 0 {
        defects.push(Defect::Entries { kind, count: damaged, what: "a line or file is impossible" });
    }
    calls
}

fn call(entry: &Bytes<'_>) -> Option<CopiedCall> {
    let (line, len) = (entry.u32(offset_of!(Raw, line)), entry.u32(offset_of!(Raw, file_len_bytes)));
    let end = entry.array::<{ librip_format::CALL_FILE_LEN_BYTES }>(offset_of!(Raw, file));
    let is_cut = len as usize > end.len();
    let end = std::str::from_utf8(end.get(..len as usize).unwrap_or(&end)).or_else(|error| {
        // A cut may be within a letter.
        std::str::from_utf8(&end[(error.valid_up_to() + 1).min(end.len())..])
    });
    let end = end.ok().filter(|end| !end.is_empty() && line > 0)?;
    Some(CopiedCall {
        pid: entry.u32(offset_of!(Raw, pid)),
        address: entry.u64(offset_of!(Raw, address)),
        file: if is_cut { format!("...{end}") } else { end.to_owned() },
        line,
        column: entry.u32(offset_of!(Raw, column)),
    })
}
