//! The condensed view and the per-thread lines.
//!
//! The per-thread line is what scripts read, and stays as it is:
//!
//! ```text
//! name[tid]: {82}source_a.c:124<0x442bae>, {83}source_a.c:129, ...
//! ```
//!
//! In braces a mark's sequence, oldest first; then file and line; then, where several addresses share that line
//! (and always with `-v`), the module-relative address; then, for marks of wrapped locks (`librip::sync`), what they say, as
//! `(takes)`, `(waits)`, `(released)`, `(failed)`, `(idle)`, `(woken)` or `(ended)`. With `-v` the lock follows that an
//! event is about. An exited thread's line ends in `EXIT`.
//!
//! Where the linker has made several marks one, all of their lines are shown, as `source_a.c:124|source_b.c:20`: which of
//! them was passed is not known.

use std::collections::HashMap;
use std::io::{self, Write};

use super::{counted, printable};
use crate::events::Event;
use crate::locations::{FileNames, Location, LocationId, Locations, MARKS_MAX};
use crate::ring::SiteKind;
use crate::threads::{Group, Thread, ThreadState};

/// Where a mark is, as `file:line` with an address where it takes one.
#[derive(Debug)]
pub struct LocationTexts<'a> {
    names: &'a FileNames,
    /// How many addresses each `file:line` has.
    addresses: HashMap<String, usize>,
    is_verbose: bool,
}

/// Prepares texts for these locations.
pub fn location_texts<'a>(
    locations: &Locations<'_>,
    names: &'a FileNames,
    is_verbose: bool,
) -> LocationTexts<'a> {
    let mut texts = LocationTexts { names, addresses: HashMap::new(), is_verbose };
    for location in locations.iter() {
        if let Some(line) = texts.line(location) {
            *texts.addresses.entry(line).or_default() += 1;
        }
    }
    texts
}

impl LocationTexts<'_> {
    fn line(&self, location: &Location) -> Option<String> {
        let (file, line) = location.source.as_ref()?;
        let one = |file, line| format!("{}:{line}", printable(self.names.get(file)));
        let mut all = one(file, line);
        for (file, line) in &location.folded {
            all += "|";
            all += &one(file, line);
        }
        if location.sites.len() > MARKS_MAX {
            all += "|...";
        }
        Some(all)
    }

    /// `file:line`, `file:line<0xADDRESS>`, or an address alone where no source is known.
    pub fn of(&self, location: &Location) -> String {
        match self.line(location) {
            None => format!("{:#x}", location.address),
            Some(line) if self.is_verbose || self.addresses.get(&line).is_some_and(|&count| count > 1) => {
                format!("{line}<{:#x}>", location.address)
            }
            Some(line) => line,
        }
    }

    /// The same with an address only where no source is known, or with `-v`: for what is told apart in other ways.
    pub fn line_of(&self, location: &Location) -> String {
        match self.line(location) {
            // All calls of a wrapper have its line: the address tells them apart.
            Some(line) if location.is_in_wrapper => format!("{line}<{:#x}>", location.address),
            Some(line) if !self.is_verbose => line,
            _ => self.of(location),
        }
    }

    /// The caller that a mark was inlined into, as ` from file:line`.
    pub(super) fn caller(&self, location: &Location) -> String {
        match location.caller() {
            Some(caller) => match (&caller.file, caller.line) {
                (Some(file), Some(line)) => format!(" from {}:{line}", printable(self.names.get(file))),
                _ => String::new(),
            },
            None => String::new(),
        }
    }
}

/// Writes the condensed view.
///
/// # Errors
///
/// Those of `out`.
pub fn condensed(
    out: &mut dyn Write,
    groups: &[Group],
    locations: &Locations<'_>,
    texts: &LocationTexts<'_>,
    is_verbose: bool,
) -> io::Result<()> {
    let bold = anstyle::Style::new().bold();
    for group in groups {
        write!(
            out,
            "{bold}{}{bold:#} : {}, {}: ",
            printable(&group.function),
            counted(group.threads as u64, "thread"),
            counted(group.spots.len() as u64, "location"),
        )?;
        for (index, spot) in group.spots.iter().enumerate() {
            let location = locations.get(spot.location);
            let separator = if index == 0 { "" } else { "; " };
            write!(out, "{separator}{}{}", texts.of(location), texts.caller(location))?;
            if is_verbose {
                for (index, label) in labels(location, locations).iter().enumerate() {
                    write!(out, "{}\"{}\"", if index == 0 { " " } else { "|" }, printable(label))?;
                }
                let tids: Vec<String> = spot.tids.iter().map(u32::to_string).collect();
                write!(out, " [{}]", tids.join(", "))?;
            } else {
                write!(out, " ({})", spot.tids.len())?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The labels of the marks there, each once.
fn labels<'a>(location: &Location, locations: &Locations<'a>) -> Vec<&'a str> {
    let mut labels: Vec<&str> = Vec::new();
    for &site in location.sites.iter().take(MARKS_MAX) {
        let label = locations.site(site).label.as_str();
        if !label.is_empty() && !labels.contains(&label) {
            labels.push(label);
        }
    }
    labels
}

/// What the mark of a wrapper says: all of its marks are on the line of one call, which alone tells nothing. Marks by
/// hand are on lines of their own, and shown as those of the C ancestor were.
fn wrapper_word(thread: &Thread<'_>, event: &Event, locations: &Locations<'_>) -> Option<&'static str> {
    let meaning = locations.meaning(thread.slot.pid, event.pc)?;
    if !meaning.flags().is_wrapper() {
        return None;
    }
    match meaning.kind? {
        SiteKind::LockAcquireBegin => Some("takes"),
        SiteKind::LockWait => Some("waits"),
        SiteKind::LockReleased => Some("released"),
        SiteKind::LockTryFailed => Some("failed"),
        SiteKind::ConditionWait => Some("idle"),
        SiteKind::ConditionWoken => Some("woken"),
        SiteKind::LockDestroyed => Some("ended"),
        _ => None,
    }
}

/// Writes one thread's line; `sequence_mask` says how much of a sequence was recorded.
///
/// # Errors
///
/// Those of `out`.
pub fn thread(
    out: &mut dyn Write,
    thread: &Thread<'_>,
    events: &[(Event, LocationId)],
    locations: &Locations<'_>,
    texts: &LocationTexts<'_>,
    sequence_mask: u64,
) -> io::Result<()> {
    let bold = anstyle::Style::new().bold();
    write!(out, "{bold}{}[{}]{bold:#}:", printable(&thread.slot.name), thread.slot.tid)?;
    let mut separator = " ";
    for (event, location) in events {
        let sequence = event.sequence & sequence_mask;
        write!(out, "{separator}{{{sequence}}}{}", texts.of(locations.get(*location)))?;
        if let Some(word) = wrapper_word(thread, event, locations) {
            write!(out, "({word})")?;
        }
        if texts.is_verbose
            && let Some(lock) = locations.lock_of(thread.slot, event)
        {
            match locations.given_name(thread.slot.pid, lock) {
                Some(name) => write!(out, " of {}", printable(name))?,
                None => write!(out, " of {lock:#x}")?,
            }
        }
        separator = ", ";
    }
    if thread.state == ThreadState::Exited {
        write!(out, "{separator}EXIT")?;
    }
    writeln!(out)
}
