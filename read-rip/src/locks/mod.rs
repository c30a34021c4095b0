//! Events and held-lock tables become locks, holders and waiters. It does no input or output.
//!
//! | file | question |
//! |---|---|
//! | `model` | the answer, as values |
//! | `marks` | what does the mark at a PC mean for locks? |
//! | `ledger` | which locks exist, and what was done with them? |
//! | `replay` | what did a thread do, step by step? |
//! | `steps` | how are a thread's steps kept? |
//! | `build` | which threads hold or wait for each lock now? |
//! | `observe` | what do the kernel and the memory add? |
//! | `overview` | which locks are shown first? |

mod build;
mod ledger;
mod marks;
mod merge;
mod model;
mod observe;
mod overview;
mod replay;
mod steps;

pub use build::{Input, build, build_of_words};
pub use model::{
    Doing, EndOfCondition, Hold, HoldState, Join, Lock, LockId, LockIncident, LockModel, LockName, Nature,
    Ownership, Record, Seen, Signal, Step, StepKind, ThreadId, ThreadLocks, Wait,
};
pub use observe::{doing, observe};
pub use overview::{Holders, Overview, Quantiles, Summary, Waiters, keep_within, overview};
pub use steps::{Steps, StepsIter};
