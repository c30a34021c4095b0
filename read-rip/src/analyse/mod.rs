//! What the events mean. No input, no output: values in, values out.

mod condense;
mod threads;

pub use condense::{Group, Location, condense};
pub use threads::{Losses, Thread, ThreadState, losses, threads};
