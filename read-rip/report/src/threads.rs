//! The condensed view and the per-thread lines.
//!
//! Scripts read the per-thread line, so its form is stable:
//!
//! ```text
//! name[tid]: {82}source_a.c:124<0x442bae>, {83}source_a.c:129, ...
//! ```
//!
//! The oldest mark comes first. Braces contain the sequence of a mark. File and line follow. Where several addresses
//! share that line (and always with `-v`), the module-relative address follows. For marks of locks a word follows:
//! `(takes)` (a recorded lock: the thread has it unless it waits or fails next), `(waits)`, `(acquired)` (a lock that
//! is marked by hand), `(released)`, `(failed)`, `(idle)` (waits on a condition variable), `(woken)` (holds the lock
//! again), `(destroyed)`, `(initialised)`, `(signals)` (signals a condition variable on which a thread may wait),
//! `(unheard)` (signals one on which no thread waits), `(abandons)` (destroys one on which a thread waits) or
//! `(blocks)` (is about to wait at a channel, and says who uses the other side). A span has `(begin)` and `(end)`. Each
//! is one word of small letters: the scripts `lock-holders` and `lock-waiters` read them.
//!
//! With `-v`, labels follow, or what the program said with values. An event of a lock has the lock and its time,
//! counted from the beginning of the recording: `cache.rs:10<0x1000>(takes) of CACHE (0x7f0000001000) at 1.000000 s`.
//! A mark without a time lies between the times beside it. The first event of a line says after which time it was, and
//! the last one before which, if that is not the reading or the end of the process:
//! `source_a.c:124<0x442bae> after 0.000113 s`.
//! The line of an exited thread ends in `EXIT`. If the kernel was asked about a thread, its line ends in what the
//! thread does now, as `, now in recvfrom on descriptor 12 (TCP to 10.0.0.7:5432, ESTABLISHED)`, with `-v` followed by
//! where it stands.
//!
//! Where the linker has folded several marks into one, all of their lines are shown, as
//! `source_a.c:124|source_b.c:20`: it is not known which of them the thread passed. This file computes nothing.

use std::io::{self, Write};

use read_rip_model::locations::{Dated, Horizon, Location, Locations, MARKS_MAX, When};
use read_rip_model::log::{self, EntryKind};
use read_rip_model::threads::{Group, Thread};
use read_rip_ring::events::Event;
use read_rip_ring::{SiteKind, Slot, is_task};

use super::activity::ActivityWords;
use super::names::{LocationTexts, LockNames, who};
use super::units::{counted, duration, threads_and_tasks};
use crate::printable;

/// Writes the condensed view.
///
/// # Errors
///
/// Those of `out`.
pub fn condensed(
    out: &mut dyn Write,
    groups: &[Group],
    locations: &Locations<'_>,
    texts: &LocationTexts,
    is_verbose: bool,
) -> io::Result<()> {
    let bold = anstyle::Style::new().bold();
    for group in groups {
        // The function that calls a wrapper is not known without debug information; its file is.
        let first = group.locations.first().and_then(|at| locations.get(at.location).users_source());
        let name = match first {
            Some((file, _)) if group.function.is_empty() => texts.file(file),
            _ => &group.function,
        };
        let tids = group.locations.iter().flat_map(|at| &at.tids);
        let tasks = tids.filter(|&&tid| is_task(tid)).count();
        write!(
            out,
            "{bold}{}{bold:#} : {}, {}: ",
            printable(name),
            threads_and_tasks(group.threads.saturating_sub(tasks) as u64, tasks as u64),
            counted(group.locations.len() as u64, "location"),
        )?;
        for (index, at) in group.locations.iter().enumerate() {
            let location = locations.get(at.location);
            let separator = if index == 0 { "" } else { "; " };
            write!(out, "{separator}{}{}", texts.of(location), texts.caller(location))?;
            if is_verbose {
                for (index, label) in labels(location, locations).iter().enumerate() {
                    write!(out, "{}\"{}\"", if index == 0 { " " } else { "|" }, printable(label))?;
                }
                let tids: Vec<String> = at.tids.iter().map(u32::to_string).collect();
                write!(out, " [{}]", tids.join(", "))?;
            } else {
                write!(out, " ({})", at.tids.len())?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The labels of the marks at a location, each once.
pub fn labels<'a>(location: &Location, locations: &Locations<'a>) -> Vec<&'a str> {
    let mut labels: Vec<&str> = Vec::new();
    for &site in location.sites.iter().take(MARKS_MAX) {
        let label = &*locations.site(site).label;
        if !label.is_empty() && !labels.contains(&label) {
            labels.push(label);
        }
    }
    labels
}

/// The word for a mark of a lock. Several marks may have one line, such as that of the call of a wrapper or of a macro,
/// so the line does not say what the thread did.
pub(super) fn word(slot: &Slot, event: &Event, locations: &Locations<'_>) -> Option<&'static str> {
    word_of(locations.meaning(slot.pid, event.pc)?.kind?)
}

/// The word for a kind of mark. The file's description lists all of them.
fn word_of(kind: SiteKind) -> Option<&'static str> {
    match kind {
        SiteKind::LockAcquireBegin => Some("takes"),
        SiteKind::LockWait => Some("waits"),
        SiteKind::LockAcquired => Some("acquired"),
        SiteKind::LockReleased => Some("released"),
        SiteKind::LockTryFailed => Some("failed"),
        SiteKind::ConditionWait => Some("idle"),
        SiteKind::ConditionWoken => Some("woken"),
        SiteKind::ConditionSignalled => Some("signals"),
        SiteKind::ConditionUnheard => Some("unheard"),
        SiteKind::ConditionDestroyed => Some("abandons"),
        SiteKind::LockDestroyed => Some("destroyed"),
        SiteKind::LockInitialised => Some("initialised"),
        SiteKind::SpanBegin => Some("begin"),
        SiteKind::SpanEnd => Some("end"),
        SiteKind::ChannelPeer => Some("blocks"),
        _ => None,
    }
}

/// Writes labels or what the program said, and the lock.
pub(super) fn said(
    out: &mut dyn Write,
    slot: &Slot,
    event: &Event,
    location: &Location,
    locations: &Locations<'_>,
    now_ns: Option<u64>,
) -> io::Result<()> {
    let time_ns = locations.time_of(slot, event, now_ns);
    match log::kind_of(slot, event, locations, time_ns, now_ns) {
        Some(kind) => {
            write!(out, " \"{}\"", printable(&log::text(kind, slot, event, location, locations)))?;
            if let EntryKind::End(Some(took_ns)) = kind {
                write!(out, " after {}", duration(took_ns))?;
            }
        }
        None => {
            for (index, label) in labels(location, locations).iter().enumerate() {
                write!(out, "{}\"{}\"", if index == 0 { " " } else { "|" }, printable(label))?;
            }
        }
    }
    if let Some(lock) = locations.lock_of(slot, event) {
        match locations.lock_name(slot.pid, lock) {
            Some(name) => write!(out, " of {} ({lock:#x})", printable(name))?,
            None => write!(out, " of {lock:#x}")?,
        }
    }
    Ok(())
}

/// The time of an event, counted from the beginning of the recording. The bounds of an event without a time are the
/// times beside it, so only the first and the last event of a line have them. That all was before `end_ns`, the reading
/// or the end of the process, is not said.
fn time(
    when: &When,
    (is_first, is_last): (bool, bool),
    began_ns: Option<u64>,
    end_ns: Option<u64>,
) -> String {
    let since_began = |ns: u64| {
        let ns = ns.checked_sub(began_ns?)?;
        Some(format!("{}.{:06}", ns / 1_000_000_000, ns / 1000 % 1_000_000))
    };
    if let Some(at) = when.time_ns.and_then(since_began) {
        return format!(" at {at} s");
    }
    let (after_ns, before_ns) = when.bounds();
    let after = after_ns.filter(|_| is_first).and_then(since_began);
    let before = before_ns.filter(|_| is_last && before_ns != end_ns).and_then(since_began);
    match (after, before) {
        (Some(after), Some(before)) => format!(" between {after} and {before} s"),
        (Some(after), None) => format!(" after {after} s"),
        (None, Some(before)) => format!(" before {before} s"),
        (None, None) => String::new(),
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    pub thread: &'a Thread<'a>,
    pub events: &'a [Dated],
    /// Whether its exit is shown too.
    pub has_exit: bool,
}

/// Writes one thread's line; `sequence_mask` says how much of a sequence was recorded.
///
/// # Errors
///
/// Those of `out`.
pub fn thread(
    out: &mut dyn Write,
    &Shown { thread, events, has_exit }: &Shown<'_>,
    names: &LockNames<'_>,
    sequence_mask: u64,
    horizon: Horizon,
) -> io::Result<()> {
    let (locations, texts) = (names.locations, names.texts);
    let bold = anstyle::Style::new().bold();
    write!(out, "{bold}{}{bold:#}:", who(&thread.slot.name, thread.slot.tid))?;
    let mut separator = " ";
    for (index, Dated { event, location, when }) in events.iter().enumerate() {
        let sequence = event.sequence & sequence_mask;
        write!(out, "{separator}{{{sequence}}}{}", texts.of(locations.get(*location)))?;
        if let Some(word) = word(thread.slot, event, locations) {
            write!(out, "({word})")?;
        }
        write!(out, "{}", texts.outer(locations.get(*location)))?;
        if texts.is_verbose {
            said(out, thread.slot, event, locations.get(*location), locations, horizon.now_ns)?;
            let is_edge = (index == 0, index + 1 == events.len());
            write!(out, "{}", time(when, is_edge, locations.began_ns(), horizon.end_ns))?;
        }
        separator = ", ";
    }
    if has_exit {
        write!(out, "{separator}EXIT")?;
    }
    if let Some(words) = ActivityWords::new(names)
        && let Some(now) = words.seen_thread(thread).and_then(|thread| words.now(thread))
    {
        write!(out, "{separator}now {now}")?;
    }
    writeln!(out)
}

/// Writes the events of a thread one a line, the newest first.
///
/// # Errors
///
/// Those of `out`.
pub fn history(
    out: &mut dyn Write,
    &Shown { thread, events, .. }: &Shown<'_>,
    names: &LockNames<'_>,
    sequence_mask: u64,
    horizon: Horizon,
) -> io::Result<()> {
    let locations = names.locations;
    for (index, Dated { event, location, when }) in events.iter().enumerate().rev() {
        write!(out, "{{{}}} {}", event.sequence & sequence_mask, names.location(*location))?;
        if let Some(word) = word(thread.slot, event, locations) {
            write!(out, "({word})")?;
        }
        write!(out, "{}", names.texts.outer(locations.get(*location)))?;
        said(out, thread.slot, event, locations.get(*location), locations, horizon.now_ns)?;
        let is_edge = (index == 0, index + 1 == events.len());
        writeln!(out, "{}", time(when, is_edge, locations.began_ns(), horizon.end_ns))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_of_each_mark_is_of_small_letters_and_described() {
        let description: String =
            include_str!("threads.rs").lines().take_while(|line| line.starts_with("//!")).collect();
        let kinds = [
            SiteKind::LockAcquireBegin,
            SiteKind::LockWait,
            SiteKind::LockAcquired,
            SiteKind::LockReleased,
            SiteKind::LockTryFailed,
            SiteKind::ConditionWait,
            SiteKind::ConditionWoken,
            SiteKind::ConditionSignalled,
            SiteKind::ConditionUnheard,
            SiteKind::ConditionDestroyed,
            SiteKind::LockDestroyed,
            SiteKind::LockInitialised,
            SiteKind::SpanBegin,
            SiteKind::SpanEnd,
            SiteKind::ChannelPeer,
        ];
        for kind in kinds {
            let word = word_of(kind).unwrap_or_default();
            // This is what the pattern of `scripts/lib/RipMarks.pm` takes for a word.
            let is_word = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
            assert!(is_word, "{kind:?}: {word:?}");
            assert!(description.contains(&format!("`({word})`")), "{kind:?}: {word:?} is not described");
        }
    }
}
