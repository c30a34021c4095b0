//! Which function was called by the frames of a stack.
//!
//! A function may end with a jump to another one. The stack then has the other one, and the function that was called
//! is in the caller's call instruction alone. In a C library without a symbol table the other one often has no name:
//! `sem_wait` and `pthread_once` end so.

use super::calls::Code;
use crate::target::{Memory, Target};

/// Answers the question for the code of a target.
pub struct Called<'m>(Code<'m>);

impl std::fmt::Debug for Called<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Called").finish_non_exhaustive()
    }
}

impl<'m> Called<'m> {
    /// Prepares to read the code of a target.
    pub fn new(target: &Target, memory: &'m dyn Memory) -> Called<'m> {
        Called(Code::new(memory, target.architecture, &target.mappings))
    }

    /// Where the function begins that the call before this return address calls; `None` if a register says it.
    pub fn by(&mut self, return_address: u64) -> Option<u64> {
        let call = self.0.call_before(return_address, |_, _| None)?;
        self.0.destination(call)
    }
}
