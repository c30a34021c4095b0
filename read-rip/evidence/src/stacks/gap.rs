//! Finds the caller of code that has no unwind tables: of a C library that is built without, as musl mostly is.
//!
//! Such code is entered by a call from code with tables, and that call has left its return address on the stack. So
//! each word of the stack is tried, from the stack pointer up: the instruction before it must be a call, in code with a
//! table, that leads into the same module's code without one. A stack also has words that earlier calls have left. So
//! the first word counts from which the stack can be unwound on. Calls through a register, whose destination is not
//! known, are tried last.
//!
//! # Blind spots
//!
//! What was in registers across the gap is not known. On aarch64 the caller's stack pointer is not known either, so the
//! stack ends with the caller.

use super::registers::RegisterFile;
use super::stack::{Cut, Frame};
use super::unwinder::Unwinder;
use super::walk::{Position, Walk};
use crate::target::Architecture;

/// All frames of the code without tables together are rarely larger.
const GAP_MAX_BYTES: u64 = 16 << 10;
/// If the called function begins this far before the present one, or less, it is taken for that one.
const FUNCTION_MAX_BYTES: u64 = 128;

/// A call into a gap.
struct Entry {
    /// The function that it calls, if that is known.
    called: Option<u64>,
    caller: Position,
}

impl Unwinder<'_> {
    /// Finds the caller of code without unwind tables. Returns the frames from the called function on. If none leads
    /// to the thread's beginning, or to the code without tables that began it, they are those of the first word that
    /// fits.
    pub(super) fn over_gap(&mut self, at: &Position) -> Option<Walk> {
        let sp = at.registers.get(self.convention.sp)?;
        let end = self.stack_end(sp).min(sp.saturating_add(GAP_MAX_BYTES));
        let mut unknown = Vec::new();
        let mut best = None;
        for address in (sp.checked_next_multiple_of(8)?..end).step_by(8) {
            let Some(entry) = self.entry(at, address) else { continue };
            if entry.called.is_none() {
                unknown.push(entry);
                continue;
            }
            let walk = self.walk_on(at, entry)?;
            if walk.is_whole(true) {
                return Some(walk);
            }
            best = best.or(Some(walk));
        }
        for entry in unknown {
            let walk = self.walk_on(at, entry)?;
            if walk.is_whole(true) {
                return Some(walk);
            }
        }
        best
    }

    /// The call that has left its return address at this address of the stack, if it leads into the gap.
    fn entry(&mut self, at: &Position, address: u64) -> Option<Entry> {
        let Unwinder { architecture, convention, tables, code, window, .. } = self;
        let sp = address.checked_add(8)?;
        // On aarch64, a function stores the return address anywhere in its frame.
        if *architecture == Architecture::X86_64 && !sp.is_multiple_of(convention.alignment) {
            return None;
        }
        let pc = window.word(address)? & convention.address_bits;
        let call = code.call_before(pc, |address, len| tables.code(address, len))?;
        let frame = Frame { pc, is_return_address: true };
        tables.rule(frame.lookup()).ok()?;
        let called = code.destination(call);
        if let Some(called) = called
            && !(tables.are_of_one_module(called, at.frame.pc)
                && tables.rule(called).is_err_and(|cut| cut == Cut::NoTable))
        {
            return None;
        }
        let mut registers = RegisterFile::new();
        if *architecture == Architecture::X86_64 {
            registers.set(convention.sp, Some(sp));
        }
        Some(Entry { called, caller: Position { frame, registers } })
    }

    /// Walks on from the caller. `None` if too much was tried.
    fn walk_on(&mut self, at: &Position, entry: Entry) -> Option<Walk> {
        self.gap_tries_left = self.gap_tries_left.checked_sub(1)?;
        self.gaps += 1;
        let mut walk = self.walk(entry.caller, false);
        self.gaps -= 1;
        let is_other =
            |&called: &u64| !(called..=called.saturating_add(FUNCTION_MAX_BYTES)).contains(&at.frame.pc);
        let called = entry.called.filter(is_other);
        walk.frames.splice(0..0, called.map(|pc| Frame { pc, is_return_address: false }));
        Some(walk)
    }
}
