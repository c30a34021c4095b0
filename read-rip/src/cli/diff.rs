//! The arguments of `diff`.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use super::{RingArgs, duration};

/// What `diff` compares.
#[derive(Args, Debug)]
pub struct DiffArgs {
    /// Which ring.
    #[command(flatten)]
    pub ring: RingArgs,
    /// The other ring, or a later copy of the same one; without it, the ring of a living process is read twice
    #[arg(value_name = "LATER")]
    pub later: Option<OsString>,
    /// The time between two readings of a living process
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration)]
    pub window: Duration,
    /// Also places where as many threads are as before, addresses and thread ids
    #[arg(short, long)]
    pub verbose: bool,
}
