//! The time that `--since`, `--until` and `--last` mean. It cuts nothing: the commands do. If the subject is a
//! recording, only the part with that time is read.

use std::time::{SystemTime, UNIX_EPOCH};

use read_rip_case::{Reading, Subject};
use read_rip_model::locations::{self, Limits, Locations};
use read_rip_ring::{self as ring, Header, Period, Source};
use read_rip_symbols::Resolver;

use super::error::AppError;
use crate::cli::{Moment, TimeArgs};

/// The limits that the user wants, of a ring that still has its words.
pub(super) fn limits(args: &TimeArgs, reading: &Reading) -> Result<Limits, AppError> {
    if !args.is_limited() {
        return Ok(Limits::default());
    }
    let no_times = || AppError::NoTimes { path: reading.path.clone() };
    let header = reading.snapshot.header.as_ref().ok_or_else(no_times)?;
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
        Moment::At(time) => boottime_ns(header, time).ok_or_else(no_times),
    };
    let since = args.since.or(args.last.map(Moment::Ago));
    Ok(Limits {
        since_ns: since.map(boottime_ns).transpose()?,
        until_ns: args.until.map(boottime_ns).transpose()?,
    })
}

/// Reads a subject, and the limits that the user wants. Reads only the part of a recording with that time, and if
/// `wants_end` is set, what follows it. If `since_ns` is given, the part begins there or earlier.
pub(super) fn within<T>(
    subject: &Subject,
    args: &TimeArgs,
    (wants_end, since_ns): (bool, Option<u64>),
    read: impl Fn(&Subject) -> Result<T, AppError>,
    reading: impl Fn(&T) -> &Reading,
) -> Result<(T, Limits), AppError> {
    if let Subject::Recording(source) = subject
        && let Some(found) = part(source, args, (wants_end, since_ns), &read, &reading)?
    {
        return Ok(found);
    }
    let whole = read(subject)?;
    let limits = limits(args, reading(&whole))?;
    Ok((whole, limits))
}

/// The part of a recording with that time; `None` if all of it has to be read.
fn part<T>(
    source: &Source,
    args: &TimeArgs,
    (wants_end, since_ns): (bool, Option<u64>),
    read: impl Fn(&Subject) -> Result<T, AppError>,
    reading: impl Fn(&T) -> &Reading,
) -> Result<Option<(T, Limits)>, AppError> {
    let read = |period| read(&Subject::Recording(source.within(period)));
    // A part without the end does not know the moment from which the user counts. The end alone knows it.
    let known = match (args.until, source.last_recorded()) {
        (Some(Moment::Ago(_)), Some(last)) if !wants_end => {
            limits(args, reading(&read(Period { until_ns: u64::MAX, ..last })?)).ok()
        }
        _ => None,
    };
    let part = known.map(period).or_else(|| estimated(source, args, wants_end));
    let Some(mut part) = part else { return Ok(None) };
    part.since_ns = part.since_ns.min(since_ns.unwrap_or(u64::MAX));
    if part == period(Limits::default()) {
        return Ok(None);
    }
    let found = read(part)?;
    // What was estimated is known with what was read.
    let Some(limits) = known.or_else(|| limits(args, reading(&found)).ok()) else { return Ok(None) };
    let wanted = period(limits);
    let has_all = wanted.since_ns >= part.since_ns && wanted.until_ns <= part.until_ns;
    Ok(has_all.then_some((found, limits)))
}

/// The period between limits.
fn period(limits: Limits) -> Period {
    Period { since_ns: limits.since_ns.unwrap_or(0), until_ns: limits.until_ns.unwrap_or(u64::MAX) }
}

/// The period of a recording that has to be read, or a longer one.
fn estimated(source: &Source, args: &TimeArgs, wants_end: bool) -> Option<Period> {
    let header = ring::present_header(source).ok()?;
    let last = source.last_recorded()?;
    let since_ns = match args.since.or(args.last.map(Moment::Ago)) {
        None => 0,
        // The end of the process is not before the last words.
        Some(Moment::Ago(ago)) => {
            last.since_ns.saturating_sub(u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX))
        }
        Some(Moment::At(time)) => boottime_ns(&header, time)?,
    };
    let until_ns = match args.until {
        Some(Moment::At(time)) if !wants_end => boottime_ns(&header, time)?,
        _ => u64::MAX,
    };
    Some(Period { since_ns, until_ns })
}

/// A moment as the ring's clock shows it, ns since boot. One before the boot is the boot.
fn boottime_ns(header: &Header, time: SystemTime) -> Option<u64> {
    let since_1970 = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let boot_ns = header.boot_realtime_ns()?;
    Some(u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX).saturating_sub(boot_ns))
}
