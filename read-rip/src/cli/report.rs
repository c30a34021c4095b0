//! The arguments of `report`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{RingArgs, StopArgs, duration};

const THREADS: usize = 100;
const EVENTS: usize = 100_000;

/// What `report` writes.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// Which ring, which process, or which core file.
    #[command(flatten)]
    pub ring: RingArgs,
    /// The file to write; an existing file is replaced; - is standard output. Default: the name of the ring and
    /// `.html`, in the present directory
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// At most this many threads and tasks have a timeline: first those that wait for locks or hold them, then those
    /// that did the most
    #[arg(long, value_name = "COUNT", default_value_t = THREADS)]
    pub threads: usize,
    /// At most this many events, the newest ones
    #[arg(long, value_name = "COUNT", default_value_t = EVENTS)]
    pub events: usize,
    /// Whether threads are stopped.
    #[command(flatten)]
    pub stop: StopArgs,
    /// The time between the two readings of a living process
    #[arg(long, value_name = "DURATION", default_value = "200ms", value_parser = duration)]
    pub window: Duration,
}

impl ReportArgs {
    /// What is written where the user wants nothing else.
    pub fn of(ring: RingArgs, window: Duration) -> ReportArgs {
        ReportArgs { ring, output: None, threads: THREADS, events: EVENTS, stop: StopArgs::default(), window }
    }
}
