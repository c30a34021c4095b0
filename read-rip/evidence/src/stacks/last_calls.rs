//! What the stack of a thread says that runs, so that its registers are not known: the calls that it made last.
//!
//! # Method
//!
//! A call leaves its return address on the stack. So words of the stack are tried from its far end on, and the first
//! one counts that a call returns to, and from which the stack can be unwound to the thread's beginning. Each function
//! there was called by the next one, and that was the last call of that next one: a later call would have left its own
//! return address in the same place.
//!
//! # Blind spots
//!
//! The innermost functions may have returned since. What runs is one of the functions, and not known to be the
//! innermost. A function that allocates on its stack leaves return addresses in several places. On aarch64 functions
//! store return addresses anywhere: nothing is said there.

use std::ops::Range;

use super::registers::RegisterFile;
use super::stack::Frame;
use super::unwinder::Unwinder;
use super::walk::{Position, WalkEnd};
use crate::target::Architecture;

/// So much of a stack is looked at, from the thread's beginning on.
const LOOKED_AT_BYTES: u64 = 64 << 10;
/// From so many words at most the stack is unwound.
const TRIES_MAX: usize = 64;
/// Frames of one try.
const STEPS_MAX: usize = 1000;

/// A function that has called another one, and may still be in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastCall {
    /// Where the call returns to.
    pub frame: Frame,
    /// Where the function begins, by its unwind table.
    pub function: u64,
    /// The function that it has called; `None`: a register said it.
    pub called: Option<u64>,
    /// Whether a jump behind the call leads back to it.
    pub is_in_loop: bool,
}

impl Unwinder<'_> {
    /// The last calls of a thread that has this stack, the innermost first. Empty if nothing fits.
    pub fn last_calls(&mut self, stack: Range<u64>) -> Vec<LastCall> {
        if self.architecture != Architecture::X86_64 {
            return Vec::new();
        }
        let begin = stack.start.max(stack.end.saturating_sub(LOOKED_AT_BYTES));
        self.window.start(begin);
        let mut tries = TRIES_MAX;
        // Before a call the stack pointer is aligned, and the call has pushed a word.
        let Some(first) = begin.checked_next_multiple_of(self.convention.alignment) else {
            return Vec::new();
        };
        for address in (first..stack.end).step_by(self.convention.alignment as usize).map(|sp| sp + 8) {
            let Some(pc) = self.window.word(address) else { return Vec::new() };
            let tables = &mut self.tables;
            if self.code.call_before(pc, |address, len| tables.code(address, len)).is_none() {
                continue;
            }
            if tries == 0 {
                return Vec::new();
            }
            tries -= 1;
            let frame = Frame { pc, is_return_address: true };
            let mut registers = RegisterFile::new();
            registers.set(self.convention.sp, Some(address + 8));
            (self.steps_left, self.gap_tries_left) = (STEPS_MAX, 0);
            let walk = self.walk(Position { frame, registers }, false);
            if walk.end == WalkEnd::Outermost {
                let frames = walk.frames.into_iter().filter(|frame| frame.is_return_address);
                return until_other(frames.map_while(|frame| self.last_call(frame)).collect());
            }
        }
        Vec::new()
    }

    /// `None` for the function that began the thread.
    fn last_call(&mut self, frame: Frame) -> Option<LastCall> {
        let function = self.tables.rule(frame.lookup()).ok()?.begin;
        let tables = &mut self.tables;
        let call = self.code.call_before(frame.pc, |address, len| tables.code(address, len))?;
        let is_in_loop = self.code.leads_back(frame.pc, function);
        Some(LastCall { frame, function, called: self.code.destination(call), is_in_loop })
    }
}

/// The calls from the thread's beginning on, as long as each function is the one that was called. Others are older: what
/// has called them has called another function since.
fn until_other(mut calls: Vec<LastCall>) -> Vec<LastCall> {
    let is_older = |pair: &[LastCall]| pair[1].called.is_some_and(|called| called != pair[0].function);
    let older = calls.windows(2).rposition(is_older).map_or(0, |at| at + 1);
    calls.split_off(older)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_called_before_the_last_call_is_left_out() {
        let call = |function, called| LastCall {
            frame: Frame { pc: function + 4, is_return_address: true },
            function,
            called,
            is_in_loop: false,
        };
        let beginning = call(0x100, None);
        let middle = call(0x200, Some(0x300));
        assert_eq!(until_other(vec![call(0x300, Some(0x900)), middle, beginning]).len(), 3);
        // The middle one has called 0x300 since.
        assert_eq!(until_other(vec![call(0x400, Some(0x500)), middle, beginning]), [middle, beginning]);
        assert_eq!(until_other(Vec::new()), []);
    }
}
