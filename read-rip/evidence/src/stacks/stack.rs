//! A thread's stack, as a list of addresses, and how its end was found.
//!
//! These are values: addresses are not resolved to functions here.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stack {
    /// From the innermost to the outermost. Empty if the thread's registers are not known.
    pub frames: Vec<Frame>,
    /// The first frame that was inferred, if any: a register was not known that the unwind tables need, or the code had
    /// no table, so a saved value or a return address was searched for on the stack. The frames from this one on are
    /// those that fit: each is a call, and together they lead to the end.
    pub inferred_from: Option<usize>,
    /// Why there are no more frames.
    pub end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Frame {
    pub pc: u64,
    /// Whether the address is the one to which a call returns. Otherwise the instruction there comes next: it is the
    /// innermost frame, or a signal handler has interrupted it.
    pub is_return_address: bool,
}

impl Frame {
    /// The address to look up: a call that is the last instruction of its function returns to the next function.
    pub fn lookup(self) -> u64 {
        self.pc.wrapping_sub(self.is_return_address.into())
    }
}

/// Why a stack has no more frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum End {
    /// The last frame is where the thread began.
    Complete,
    /// There are more frames, which could not be found.
    Cut(Cut),
}

/// Why further frames could not be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Cut {
    /// The thread's registers are not known: it runs, or the kernel does not show them.
    NoRegisters,
    /// The address is in no module, so nothing says how it is unwound: generated code, or a wrong address.
    NoModule,
    /// The module has no unwind table for the address, or a damaged one.
    NoTable,
    /// The unwind table needs a register that is not known, and nothing on the stack fits.
    UnknownRegister,
    /// The stack could not be read.
    Unreadable,
    /// The unwind table leads to a word that is no return address.
    NotACall,
    /// The unwind table leads back to where it was.
    NoProgress,
    /// There are more frames than are read, or they take more memory.
    TooLong,
}

impl Stack {
    /// The stack of a thread whose registers are not known.
    pub(super) fn unknown() -> Stack {
        Stack { frames: Vec::new(), inferred_from: None, end: End::Cut(Cut::NoRegisters) }
    }

    /// A place in a function that has called something: the address to which the call returns.
    pub fn at_call(return_address: u64) -> Stack {
        let frames = vec![Frame { pc: return_address, is_return_address: true }];
        Stack { frames, inferred_from: None, end: End::Cut(Cut::NoRegisters) }
    }

    /// Whether a frame is where a signal handler returns to: the next one is what the signal has interrupted.
    pub fn is_signal_return(&self, at: usize) -> bool {
        let is_entered = |at: usize| self.frames.get(at).is_some_and(|frame| !frame.is_return_address);
        let is_interrupted = at > 1 && is_entered(at - 1) && self.is_signal_return(at - 1);
        at > 0 && is_entered(at) && is_entered(at + 1) && !is_interrupted
    }

    /// Whether it leads to where the thread began.
    pub fn is_complete(&self) -> bool {
        self.end == End::Complete
    }
}
