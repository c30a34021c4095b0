//! The time that `--since`, `--until` and `--last` mean. It cuts nothing: the commands do.

use std::time::{SystemTime, UNIX_EPOCH};

use read_rip_case::Reading;
use read_rip_model::locations::{self, Limits, Locations};
use read_rip_report as report;
use read_rip_symbols::Resolver;

use super::error::AppError;
use crate::cli::{Moment, TimeArgs};

/// The limits that the user wants, of a ring that still has its words.
pub(super) fn limits(args: &TimeArgs, reading: &Reading) -> Result<Limits, AppError> {
    if !args.is_limited() {
        return Ok(Limits::default());
    }
    let no_times = || AppError::NoTimes { path: reading.path.clone() };
    if reading.snapshot.header.is_none() {
        return Err(no_times());
    }
    // Times before "now" count from the reading, or from the end of the process; if that is not known, from the last
    // recorded moment.
    let now_ns = || {
        reading.now_ns.or_else(|| {
            // Times need no symbols.
            let resolver = Resolver::new(&[], Default::default());
            locations::latest_ns(&reading.snapshot, &Locations::new(&reading.snapshot, resolver))
        })
    };
    let boottime_ns = |moment: Moment| match moment {
        Moment::Ago(ago) => {
            let ago_ns = u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX);
            Ok(now_ns().ok_or_else(no_times)?.saturating_sub(ago_ns))
        }
        Moment::At(time) => boottime_ns(reading, time).ok_or_else(no_times),
    };
    let since = args.since.or(args.last.map(Moment::Ago));
    Ok(Limits {
        since_ns: since.map(boottime_ns).transpose()?,
        until_ns: args.until.map(boottime_ns).transpose()?,
    })
}

/// A moment as the ring's clock shows it, ns since boot. One before the boot is the boot.
fn boottime_ns(reading: &Reading, time: SystemTime) -> Option<u64> {
    let since_1970 = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let boot_ns = report::realtime_ns(&reading.snapshot, 0)?;
    Some(u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX).saturating_sub(boot_ns))
}
