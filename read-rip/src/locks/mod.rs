//! Events and held-lock tables become locks, holders and waiters. No input, no output.
//!
//! | file | question |
//! |---|---|
//! | `marks` | what does the mark at a PC mean for locks? |
//! | `replay` | what did a thread do, one step after the other? |
//! | `ledger` | which locks are there, and what was done with them? |
//! | `build` | who has which lock now, and who waits? |
//! | `model` | the answer, as values |
//! | `overview` | which of it is worth showing first? |

mod build;
mod ledger;
mod marks;
mod model;
mod overview;
mod replay;

pub use build::{Input, build};
pub use model::{
    Hold, HoldState, Lock, LockId, LockModel, LockName, Nature, Record, Step, StepKind, ThreadId,
    ThreadLocks, Wait,
};
pub use overview::{Holders, Overview, Quantiles, Summary, Waiters, overview};
