//! Threads: whether each still exists, and at which locations they are. It does no input or output.

mod condense;
mod difference;
mod states;

pub use condense::{Group, LocationThreads, condense};
pub use difference::{Difference, difference};
pub use states::{Losses, Thread, ThreadState, losses, threads};
