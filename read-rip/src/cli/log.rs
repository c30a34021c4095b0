//! The arguments of `log`, `spans` and `captures`, and those of all commands that show a part of the time.

use std::ffi::OsString;
use std::time::{Duration, SystemTime};

use clap::{Args, ValueEnum};
use read_rip_ring::{ChannelLevel, Level};

use super::{RingArgs, duration};

/// Which time is shown.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct TimeArgs {
    /// Only what is not older than this, as far as known: a time as in 2026-11-23T14:02:07Z, or a length of time as in
    /// 5s, before the reading or before the end of the process
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub since: Option<Moment>,
    /// Only what is not newer than this, as far as known
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub until: Option<Moment>,
    /// The same as --since, with a length of time
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "since")]
    pub last: Option<Duration>,
}

impl TimeArgs {
    /// Whether not everything is shown.
    pub fn is_limited(&self) -> bool {
        self.since.is_some() || self.until.is_some() || self.last.is_some()
    }
}

/// What `check` does not take, and says why.
#[derive(Args, Clone, Debug, Default)]
#[expect(missing_docs, reason = "see `TimeArgs`")]
pub struct RefusedTimeArgs {
    #[arg(long, value_name = "TIME", hide = true)]
    pub since: Option<OsString>,
    #[arg(long, value_name = "TIME", hide = true)]
    pub until: Option<OsString>,
    #[arg(long, value_name = "DURATION", hide = true)]
    pub last: Option<OsString>,
}

impl RefusedTimeArgs {
    /// Whether one of them was given.
    pub fn is_given(&self) -> bool {
        self.since.is_some() || self.until.is_some() || self.last.is_some()
    }
}

/// A moment that the user names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// So long before the reading, or before the end of the process.
    Ago(Duration),
    /// At this time.
    At(SystemTime),
}

/// What `log` shows.
#[derive(Args, Debug)]
pub struct LogArgs {
    /// Which ring.
    #[command(flatten)]
    pub ring: RingArgs,
    /// Only what REGEX matches: in the text, in the `name[tid]` of the thread, in `file:line`, or where several
    /// processes share the ring, in `process PID`
    #[arg(short, long, value_name = "REGEX")]
    pub r#match: Option<regex::Regex>,
    /// Only events that are at least this important
    #[arg(long, value_name = "LEVEL", default_value = "trace")]
    pub level: MinLevel,
    /// Only events and spans of this channel; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub channel: Vec<String>,
    /// Without the beginnings and ends of spans
    #[arg(long)]
    pub no_spans: bool,
    /// Which time is shown.
    #[command(flatten)]
    pub time: TimeArgs,
    /// Go on with what a living process records, until it ends
    #[arg(short, long)]
    pub follow: bool,
}

/// What `spans` shows.
#[derive(Args, Debug)]
pub struct SpansArgs {
    /// Which ring.
    #[command(flatten)]
    pub ring: RingArgs,
    /// Only spans that REGEX matches: in their name, in `file:line`, or in the `name[tid]` of a thread in which one is
    /// open
    #[arg(short, long, value_name = "REGEX")]
    pub r#match: Option<regex::Regex>,
    /// Shows the COUNT spans that took the longest instead, with their threads and values [default: 20]
    #[arg(long, value_name = "COUNT", num_args = 0..=1, require_equals = true, default_missing_value = "20")]
    pub slow: Option<usize>,
    /// Which time is shown: spans that ended then, and those that are open and had begun by then.
    #[command(flatten)]
    pub time: TimeArgs,
}

/// What `captures` shows.
#[derive(Args, Debug)]
pub struct CapturesArgs {
    /// Which ring.
    #[command(flatten)]
    pub ring: RingArgs,
    /// Only captures that REGEX matches: in a text, in a `file:line`, or in the `name[tid]` of the thread
    #[arg(short, long, value_name = "REGEX")]
    pub r#match: Option<regex::Regex>,
    /// Which time is shown: captures that were kept then, with all their events.
    #[command(flatten)]
    pub time: TimeArgs,
}

/// What `set` does.
#[derive(Args, Debug)]
pub struct SetArgs {
    /// The ring: a file, a pid, or the name of a program
    #[arg(value_name = "RING")]
    pub ring: OsString,
    /// A channel, and the least important level that it records from now on: trace, debug, info, warn, error, all or
    /// off. Without any, the channels are shown
    #[arg(value_name = "CHANNEL=LEVEL", value_parser = setting)]
    pub settings: Vec<Setting>,
}

impl SetArgs {
    /// The ring, as other commands have it.
    pub fn ring_args(&self) -> RingArgs {
        RingArgs { ring: Some(self.ring.clone()), ring_option: None }
    }
}

/// A channel, and what it is to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name of the channel.
    pub channel: String,
    /// The level.
    pub level: ChannelLevel,
}

/// Parses a setting of a channel.
fn setting(text: &str) -> Result<Setting, String> {
    let (channel, level) = text.rsplit_once('=').ok_or("expected CHANNEL=LEVEL, as in DISKS=off")?;
    let level = match level {
        "all" => ChannelLevel::All,
        "off" => ChannelLevel::Off,
        level => {
            let level = MinLevel::from_str(level, false);
            let level = level.map_err(|_| "the level is one of trace, debug, info, warn, error, all, off")?;
            ChannelLevel::From(level.into())
        }
    };
    Ok(Setting { channel: channel.to_owned(), level })
}

/// The least important level that is shown.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[expect(missing_docs, reason = "see `ring::Level`")]
pub enum MinLevel {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

impl From<MinLevel> for Level {
    fn from(level: MinLevel) -> Level {
        match level {
            MinLevel::Trace => Level::Trace,
            MinLevel::Debug => Level::Debug,
            MinLevel::Info => Level::Info,
            MinLevel::Warn => Level::Warn,
            MinLevel::Error => Level::Error,
        }
    }
}

/// Parses a time, or a length of time before now.
fn moment(text: &str) -> Result<Moment, String> {
    if let Ok(time) = humantime::parse_rfc3339_weak(text) {
        return Ok(Moment::At(time));
    }
    duration(text).map(Moment::Ago).map_err(|_| {
        "expected a time in UTC, as in 2026-11-23T14:02:07Z, or a number and a unit, as in 5s".to_owned()
    })
}
