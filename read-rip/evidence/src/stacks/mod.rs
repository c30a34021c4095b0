//! Unwinds the stacks of a target's threads, from their registers, the target's memory and the unwind tables of its
//! modules.
//!
//! It resolves no names, and stops, traces and loads nothing.
//!
//! | file | question |
//! |---|---|
//! | `stack` | which functions is a thread in, and was its beginning found? |
//! | `group` | which threads have equal stacks? |
//! | `registers` | which registers are known in a frame, and what does a call do to them? |
//! | `window` | what is on a thread's stack? |
//! | `calls` | can a call return to this address, and what does it call? |
//! | `called` | which function was called, if it ended with a jump to another one? |
//! | `flow` | what does the code of a function call, and where does it go round? |
//! | `argument` | what was the first argument of a call? |
//! | `rule` | where is the caller, by one row of an unwind table? |
//! | `tables` | which row holds at this address? |
//! | `signal_frame` | what did a signal interrupt, where no table says it? |
//! | `walk` | what does a walk up a stack start from, and what does it find? |
//! | `unwinder` | all of these, frame by frame |
//! | `search` | what was in a register that is not known? |
//! | `gap` | who has called code without unwind tables? |
//! | `last_calls` | what did a thread call last whose registers are not known? |
//! | `all` | the stacks of all threads |

mod all;
mod argument;
mod called;
mod calls;
mod flow;
mod gap;
mod group;
mod last_calls;
mod registers;
mod rule;
mod search;
mod signal_frame;
mod stack;
mod tables;
mod unwinder;
mod walk;
mod window;

pub use all::all;
pub use called::Called;
pub(crate) use calls::FUNCTION_MAX_BYTES;
pub use flow::{Body, Callee, Flow};
pub use group::{Group, group};
pub use last_calls::LastCall;
pub use registers::RegisterFile;
pub use stack::{Cut, End, Frame, Stack};
pub use unwinder::Unwinder;
