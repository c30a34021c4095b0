//! What the events mean. No input, no output: values in, values out.

mod condense;
mod states;

pub use condense::{Group, Spot, condense};
pub use states::{Losses, Thread, ThreadState, losses, threads};
