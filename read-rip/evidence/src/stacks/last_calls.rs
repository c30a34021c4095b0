//! What the stack of a thread says that runs, so that its registers are not known: the calls that it made last.
//!
//! # Method
//!
//! A call leaves its return address on the stack. So words of the stack are tried from its far end on, and the first
//! one counts that a call returns to, and from which the stack can be unwound to the thread's beginning. Each function
//! there was called by the next one, and that was the last call of that next one: a later call would have left its own
//! return address in the same place. Older calls have left words too, and must not be taken for the last ones: each
//! call must say that it calls the function in question. Where a register says what is called, all words must lead to
//! the same function.
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
/// No more stacks are compared.
const CHAINS_MAX: usize = 32;
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
    /// Whether a jump after the call leads back to it.
    pub is_in_loop: bool,
}

impl Unwinder<'_> {
    /// The last calls of a thread, the innermost first. Empty if nothing fits. The stack ends where the C library has
    /// its structure of the thread, or where it ends.
    pub fn last_calls(&mut self, stack: Range<u64>) -> Vec<LastCall> {
        if self.architecture != Architecture::X86_64 {
            return Vec::new();
        }
        let begin = stack.start.max(stack.end.saturating_sub(LOOKED_AT_BYTES));
        self.window.start(begin);
        // Before a call the stack pointer is aligned, and the call has pushed a word.
        let Some(first) = begin.checked_next_multiple_of(self.convention.alignment) else {
            return Vec::new();
        };
        let mut all: Vec<Vec<LastCall>> = Vec::new();
        for address in (first..stack.end).step_by(self.convention.alignment as usize).map(|sp| sp + 8) {
            let Some(pc) = self.window.word(address) else { break };
            let tables = &mut self.tables;
            if self.code.call_before(pc, |address, len| tables.code(address, len)).is_none() {
                continue;
            }
            let frame = Frame { pc, is_return_address: true };
            let mut registers = RegisterFile::new();
            registers.set(self.convention.sp, Some(address + 8));
            (self.steps_left, self.gap_tries_left) = (STEPS_MAX, 0);
            let walk = self.walk(Position { frame, registers }, false);
            if walk.end != WalkEnd::Outermost {
                continue;
            }
            let calls = walk.frames.iter().filter(|frame| frame.is_return_address);
            let calls: Vec<LastCall> = calls.map_while(|&frame| self.last_call(frame, stack.end)).collect();
            // What was searched for may be anything, unless the call says that it is right.
            let is_sure = walk.inferred_from.is_none_or(|at| {
                let pair = at.checked_sub(1).and_then(|inner| calls.get(inner).zip(calls.get(at)));
                pair.is_some_and(|(inner, outer)| outer.called == Some(inner.function))
            });
            if is_sure {
                all.push(until_other(calls));
            }
            if all.len() == CHAINS_MAX {
                break;
            }
        }
        innermost(&all)
    }

    /// `None` for the function that began the thread.
    fn last_call(&mut self, frame: Frame, thread: u64) -> Option<LastCall> {
        let function = self.tables.rule(frame.lookup()).ok()?.begin;
        let tables = &mut self.tables;
        let call = self.code.call_before(frame.pc, |address, len| tables.code(address, len))?;
        let is_in_loop = self.code.leads_back(frame.pc, function);
        let called = self.code.destination(call).or_else(|| self.code.start_routine(frame.pc, thread));
        Some(LastCall { frame, function, called, is_in_loop })
    }
}

/// The calls from the thread's beginning on, as long as each function is the one that was called. Others are older:
/// what has called them has called another function since.
fn until_other(mut calls: Vec<LastCall>) -> Vec<LastCall> {
    let is_older = |pair: &[LastCall]| pair[1].called.is_some_and(|called| called != pair[0].function);
    let older = calls.windows(2).rposition(is_older).map_or(0, |at| at + 1);
    calls.split_off(older)
}

/// The innermost of several stacks that one thread may have. Where it is not known what a function has called, and
/// another stack has another function there, the rest is left out.
fn innermost(all: &[Vec<LastCall>]) -> Vec<LastCall> {
    let Some(first) = all.first() else { return Vec::new() };
    // From the thread's beginning on.
    let from_outermost =
        |calls: &[LastCall], at: usize| calls.len().checked_sub(at + 1).map(|index| calls[index]);
    let mut others: Vec<&Vec<LastCall>> = all.iter().collect();
    for at in 0..first.len() {
        let inner = from_outermost(first, at + 1);
        others.retain(|other| {
            from_outermost(other, at).map(|of| of.frame) == from_outermost(first, at).map(|of| of.frame)
        });
        let is_unknown = from_outermost(first, at).is_some_and(|of| of.called.is_none());
        let differs = |other: &&Vec<LastCall>| {
            let of = from_outermost(other, at + 1);
            of.zip(inner).is_some_and(|(of, inner)| of.function != inner.function)
        };
        if is_unknown && others.iter().any(differs) {
            return first[first.len() - at - 1..].to_vec();
        }
    }
    first.clone()
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
        // Nobody knows what the first one has called: one of the two stacks is older.
        let (one, other) = (call(0x200, None), call(0x300, None));
        let stacks = [vec![call(0x400, None), one, beginning], vec![other, beginning]];
        assert_eq!(innermost(&stacks), [beginning]);
        assert_eq!(innermost(&stacks[..1]), stacks[0]);
        assert_eq!(innermost(&[stacks[0].clone(), stacks[0][1..].to_vec()]), stacks[0]);
    }
}
