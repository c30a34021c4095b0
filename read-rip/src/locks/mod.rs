//! Events and held-lock tables become locks, holders and waiters. No input, no output.

mod model;

pub use model::{
    Hold, HoldState, Lock, LockId, LockModel, LockName, Nature, Record, Step, StepKind, ThreadId,
    ThreadLocks, Wait,
};
