//! The arguments of `record`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{RingArgs, duration};

/// What `record` follows, and where to.
#[derive(Args, Debug)]
pub struct RecordArgs {
    /// Which ring, or with --all, the name of a program.
    #[command(flatten)]
    pub ring: RingArgs,
    /// All processes of the machine that have rings, or those of the program RING; those that start later too. Each is
    /// recorded into a file of its own
    #[arg(short, long)]
    pub all: bool,
    /// The file to write, which must not exist; with --all, a directory; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// The time between two rounds. Words that a thread replaces within it are not recorded, but counted. A round that
    /// takes longer is followed by a pause of its length, so the recorder takes at most half a processor
    #[arg(long, value_name = "DURATION", default_value = "20ms", value_parser = duration)]
    pub interval: Duration,
    /// Also records which thread has which processor from when to when, why it leaves it, and who wakes whom, as the
    /// kernel says. It needs root, CAP_PERFMON or kernel.perf_event_paranoid=0, and for who wakes whom tracefs. Without
    /// these it says what is missing and goes on
    #[arg(long)]
    pub sched: bool,
    /// Ends after this time. It ends anyway when it is interrupted, and without --all when the process has ended
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub r#for: Option<Duration>,
    /// The limits of a file.
    #[command(flatten)]
    pub rotation: RotationArgs,
}

/// When a recording goes on in another file.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct RotationArgs {
    /// A file of this length is renamed to FILE.1, the next one to FILE.2, and so on. The unit is K, M or G: 1024
    /// bytes, or 1024 times that. A file has at least as many words as an image of the ring takes
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_size: Option<u64>,
    /// A file that is recorded into for this time is renamed in the same way
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub max_time: Option<Duration>,
    /// How many renamed files are kept; the oldest ones are removed
    #[arg(long, value_name = "COUNT")]
    pub keep: Option<u64>,
}

impl RotationArgs {
    /// Whether a file may be full.
    pub fn is_limited(&self) -> bool {
        self.max_size.is_some() || self.max_time.is_some()
    }
}

/// Parses a number and a unit.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let wrong = || "expected a number above 0 and a unit, K, M or G, as in 100M".to_owned();
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let shift = match unit {
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return Err(wrong()),
    };
    let number =
        number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse::<u64>().ok()).flatten();
    number.filter(|&number| number > 0).and_then(|number| number.checked_mul(1 << shift)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit() {
        assert_eq!(size("64K"), Ok(64 << 10));
        assert_eq!(size("100M"), Ok(100 << 20));
        assert_eq!(size("2G"), Ok(2 << 30));
        for wrong in ["", "5", "M", "0M", "-1M", "+1M", "1.5G", "3 M", "3m", "5é", "99999999999G"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
