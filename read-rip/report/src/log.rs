//! `read-rip log` and `read-rip spans`.
//!
//! ```text
//! 2026-11-23, times in UTC
//! 14:02:07.000113 info   main[4711] move a disk from 1 to 3  hanoi.rs:12
//! 14:02:07.000240 begin  main[4711] parse: 512 bytes  parse.rs:40
//! 14:02:07.001873 end    main[4711] parse, after 1.6 ms  parse.rs:40
//! ```
//!
//! It orders and chooses nothing.

use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use read_rip_model::locks::Quantiles;
use read_rip_model::log::{Entry, EntryKind, Span, Usage, UsageOfSpans, shown};
use read_rip_ring::{ChannelLevel, Level, Slot, Snapshot};

use super::names::who;
use super::rows::Rows;
use super::units::{age, counted, duration};
use crate::printable;

/// Days and times of one log: a day is written where it changes.
#[derive(Debug, Default)]
pub struct LogWriter {
    day: String,
}

/// What stands for the time of an entry whose time is not known.
pub(super) const NO_TIME: &str = "--:--:--.------";

/// What stands for the name of a channel whose entry is damaged.
const UNKNOWN_CHANNEL: &str = "unknown channel";

/// What a channel records.
pub fn channel_level(level: ChannelLevel) -> String {
    match level {
        ChannelLevel::From(from) => format!("from {} on", level_name(from)),
        ChannelLevel::All | ChannelLevel::Off => channel_level_name(level).to_owned(),
    }
}

/// The name of a channel's level, as the user sets it.
pub(super) fn channel_level_name(level: ChannelLevel) -> &'static str {
    match level {
        ChannelLevel::All => "all",
        ChannelLevel::From(level) => level_name(level),
        ChannelLevel::Off => "off",
    }
}

impl LogWriter {
    /// Writes an entry. `text` is what the program said, and `place` where. `names_process`: whether several processes
    /// share the ring.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn entry(
        &mut self,
        out: &mut dyn Write,
        entry: &Entry,
        (text, place): (&str, &str),
        snapshot: &Snapshot,
        names_process: bool,
    ) -> io::Result<()> {
        let slot = snapshot.recorded(entry.slot);
        let time = match entry.when.time_ns.and_then(|ns| wall_clock(snapshot, ns)) {
            Some((day, time)) => {
                if day != self.day {
                    writeln!(out, "{day}, times in UTC")?;
                    self.day = day;
                }
                time
            }
            None => NO_TIME.to_owned(),
        };
        let style = style(entry.kind);
        write!(
            out,
            "{time} {style}{:<6}{style:#} {} ",
            entry_word(entry.kind),
            thread_of_slot(slot, names_process)
        )?;
        let dimmed = anstyle::Style::new().dimmed();
        if let Some(channel) = slot.channel() {
            let name = snapshot.channel_name(channel).unwrap_or(UNKNOWN_CHANNEL);
            write!(out, "{dimmed}{}:{dimmed:#} ", printable(name))?;
        }
        write!(out, "{}", printable(text))?;
        match entry.kind {
            EntryKind::End(Some(took_ns)) => write!(out, ", after {}", duration(took_ns))?,
            EntryKind::End(None) => write!(out, ", after an unknown time")?,
            EntryKind::Event(_) | EntryKind::Begin => {}
        }
        writeln!(out, "  {dimmed}{place}{dimmed:#}")
    }
}

/// The name of a slot's thread: `name[tid]`. `names_process`: whether several processes share the ring.
pub fn thread_of_slot(slot: &Slot, names_process: bool) -> String {
    let name = who(&slot.name, slot.tid);
    if names_process { format!("{name} of process {}", slot.pid) } else { name }
}

/// The word for what an entry is: the level of an event, `begin` or `end`.
pub fn entry_word(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Event(level) => level_name(level),
        EntryKind::Begin => "begin",
        EntryKind::End(_) => "end",
    }
}

/// The name of a level.
pub fn level_name(level: Level) -> &'static str {
    match level {
        Level::Trace => "trace",
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warn => "warn",
        Level::Error => "error",
    }
}

fn style(kind: EntryKind) -> anstyle::Style {
    let colour = match kind {
        EntryKind::Event(Level::Error) => anstyle::AnsiColor::Red,
        EntryKind::Event(Level::Warn) => anstyle::AnsiColor::Yellow,
        EntryKind::Event(_) => return anstyle::Style::new(),
        EntryKind::Begin | EntryKind::End(_) => anstyle::AnsiColor::Cyan,
    };
    anstyle::Style::new().fg_color(Some(colour.into()))
}

/// A moment since boot as ns since 1970; `None` if the ring does not say when the machine was started.
pub fn realtime_ns(snapshot: &Snapshot, boottime_ns: u64) -> Option<u64> {
    snapshot.header.as_ref()?.boot_realtime_ns()?.checked_add(boottime_ns)
}

/// The day and the time of a moment since boot, UTC.
pub(super) fn wall_clock(snapshot: &Snapshot, boottime_ns: u64) -> Option<(String, String)> {
    // 64 bits of nanoseconds end in the year 2554, and the format knows years to 9999.
    let ns = realtime_ns(snapshot, boottime_ns)?;
    let text = humantime::format_rfc3339_micros(UNIX_EPOCH + Duration::from_nanos(ns)).to_string();
    let (day, time) = text.split_once('T')?;
    Some((day.to_owned(), time.trim_end_matches('Z').to_owned()))
}

/// Writes spans. `file` makes a file name short. `now_ns` is the time of the reading or of the process's end.
///
/// # Errors
///
/// Those of `out`.
pub fn spans(
    out: &mut dyn Write,
    spans: &[Span],
    snapshot: &Snapshot,
    (file, names_process): (&dyn Fn(&str) -> String, bool),
    now_ns: Option<u64>,
) -> io::Result<()> {
    /// So many open spans of one place are listed.
    const OPEN_MAX: usize = 10;
    let bold = anstyle::Style::new().bold();
    table(out, spans)?;
    for span in spans {
        let (path, line) = &span.place;
        writeln!(out, "{bold}{}{bold:#}  {}:{line}", printable(&span.name), printable(&file(path)))?;
        for open in span.open.iter().take(OPEN_MAX) {
            let slot = snapshot.recorded(open.slot);
            write!(out, "  open: {}", thread_of_slot(slot, names_process))?;
            match open.since_ns {
                Some(since_ns) => {
                    match now_ns.and_then(|now_ns| now_ns.checked_sub(since_ns)) {
                        Some(for_ns) if for_ns >= 1_000_000_000 => write!(out, " for {}", age(for_ns))?,
                        Some(for_ns) => write!(out, " for {}", duration(for_ns))?,
                        None => {}
                    }
                    if let Some((day, time)) = wall_clock(snapshot, since_ns) {
                        write!(out, ", since {day} {time} UTC")?;
                    }
                }
                None => write!(out, ", since an unknown time")?,
            }
            match &open.value {
                Some(value) => {
                    let value = shown(value, slot.pid, &snapshot.static_texts);
                    writeln!(out, ", with {}", printable(&value))?;
                }
                None => writeln!(out)?,
            }
        }
        if span.open.len() > OPEN_MAX {
            writeln!(out, "  and {} more that are open", span.open.len() - OPEN_MAX)?;
        }
        if let Some(longest) = &span.longest {
            write!(out, "  the longest: {}", thread_of_slot(snapshot.recorded(longest.slot), names_process))?;
            match wall_clock(snapshot, longest.ended_ns) {
                Some((day, time)) => writeln!(out, ", until {day} {time} UTC")?,
                None => writeln!(out)?,
            }
        }
        if let Some(UsageOfSpans { count, sum }) = &span.usage {
            writeln!(out, "  used in {}: {}", counted(*count, "span"), used(sum))?;
            if let Some(usage) =
                span.longest.as_ref().and_then(|longest| longest.usage).filter(|_| *count > 1)
            {
                writeln!(out, "  used in the longest: {}", used(&usage))?;
            }
        }
    }
    Ok(())
}

/// What a thread used in a span: where its time went, how often it lost its processor, and its page faults.
pub fn used(usage: &Usage) -> String {
    let Usage { on_cpu_ns, system_ns, ready_ns, voluntary, involuntary, .. } = *usage;
    let off = duration(usage.off_cpu_ns());
    let rest = match ready_ns {
        Some(ready_ns) => format!("{} ready for one, {off} asleep", duration(ready_ns)),
        None => format!("{off} ready for one or asleep"),
    };
    let faults = counted(usage.minor_faults, "page fault");
    let from_disk = match usage.major_faults {
        0 => String::new(),
        major => format!(", and {} that read from a disk", counted(major, "page fault")),
    };
    format!(
        "{} on a processor ({} in the kernel), {rest}; {voluntary} voluntary and {involuntary} involuntary switches; \
         {faults}{from_disk}",
        duration(on_cpu_ns),
        duration(system_ns),
    )
}

/// A line for each span: how many are open and have ended, and how long they took. The places follow: beside the
/// numbers, they have no room in 80 columns.
fn table(out: &mut dyn Write, spans: &[Span]) -> io::Result<()> {
    if spans.is_empty() {
        return Ok(());
    }
    let mut rows = Rows::new(["OPEN", "ENDED", "P50", "P90", "P99", "MAX", "IN ALL"], ["SPAN"]);
    for span in spans {
        let took = |of: fn(&Quantiles) -> u64| {
            span.took.as_ref().map_or_else(String::new, |took| duration(of(took)))
        };
        let total = span.took.as_ref().map_or_else(String::new, |_| duration(span.total_ns));
        rows.add(
            [
                span.open.len().to_string(),
                span.ended.to_string(),
                took(|took| took.p50_ns),
                took(|took| took.p90_ns),
                took(|took| took.p99_ns),
                took(|took| took.max_ns),
                total,
            ],
            [span.name.clone()],
        );
    }
    rows.write(out)
}
