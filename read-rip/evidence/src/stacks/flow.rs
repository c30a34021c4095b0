//! What the code of a function does: what it calls, and where it goes round.
//!
//! It resolves no names. On x86-64 it decodes no instructions from the beginning, so bytes may look like a call or a
//! jump that are a part of something else.

use std::ops::Range;

use super::calls::{Call, Code};
use crate::target::{Memory, Target};

/// What a function may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Callee {
    /// The address after the call, or after what loads the address of the function for it.
    pub end: u64,
    /// The word that has the address of the function, if the loader fills it in.
    pub word: Option<u64>,
    /// Where the function begins.
    pub begin: u64,
}

/// Answers questions about the code of a target.
pub struct Flow<'m>(Code<'m>);

impl std::fmt::Debug for Flow<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Flow").finish_non_exhaustive()
    }
}

impl<'m> Flow<'m> {
    /// Prepares to read the code of a target.
    pub fn new(target: &Target, memory: &'m dyn Memory) -> Flow<'m> {
        Flow(Code::new(memory, target.architecture, &target.mappings))
    }

    /// Whether the call that returns to an address calls what a register says, as a closure or a virtual function.
    pub fn is_indirect(&mut self, return_address: u64) -> bool {
        self.0.call_before(return_address, |_, _| None) == Some(Call::Register)
    }

    /// What the code of a function may call directly, ascending by the addresses of the calls.
    pub fn calls_in(&mut self, function: &Range<u64>) -> Vec<Callee> {
        let calls = self.0.calls_in(function).into_iter();
        calls
            .filter_map(|(end, call)| {
                Some(Callee { end, word: self.0.word_of(call), begin: self.0.destination(call)? })
            })
            .collect()
    }

    /// Whether the call that returns to an address is in a loop of its function.
    pub fn is_in_loop(&self, return_address: u64, function: &Range<u64>) -> bool {
        self.0.is_in_loop(return_address, function)
    }
}
