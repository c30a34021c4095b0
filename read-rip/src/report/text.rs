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
use crate::analyse::{Group, Thread, ThreadState};
use crate::decode::Event;
use crate::places::{FileNames, MARKS_MAX, Place, PlaceId, Places};

/// Where a mark is, as `file:line` with an address where it takes one.
#[derive(Debug)]
pub struct Locations<'a> {
    names: &'a FileNames,
    /// How many addresses each `file:line` has.
    addresses: HashMap<String, usize>,
    is_verbose: bool,
}

/// Prepares locations for these places.
pub fn location<'a>(places: &Places<'_>, names: &'a FileNames, is_verbose: bool) -> Locations<'a> {
    let mut locations = Locations { names, addresses: HashMap::new(), is_verbose };
    for place in places.iter() {
        if let Some(line) = locations.line(place) {
            *locations.addresses.entry(line).or_default() += 1;
        }
    }
    locations
}

impl Locations<'_> {
    fn line(&self, place: &Place) -> Option<String> {
        let (file, line) = place.source.as_ref()?;
        let one = |file, line| format!("{}:{line}", printable(self.names.get(file)));
        let mut all = one(file, line);
        for (file, line) in &place.folded {
            all += "|";
            all += &one(file, line);
        }
        if place.sites.len() > MARKS_MAX {
            all += "|...";
        }
        Some(all)
    }

    /// `file:line`, `file:line<0xADDRESS>`, or an address alone where no source is known.
    pub fn of(&self, place: &Place) -> String {
        match self.line(place) {
            None => format!("{:#x}", place.address),
            Some(line) if self.is_verbose || self.addresses.get(&line).is_some_and(|&count| count > 1) => {
                format!("{line}<{:#x}>", place.address)
            }
            Some(line) => line,
        }
    }

    /// The same with an address only where no source is known, or with `-v`: for what is told apart in other ways.
    pub fn line_of(&self, place: &Place) -> String {
        match self.line(place) {
            // All calls of a wrapper have its line: the address tells them apart.
            Some(line) if place.is_in_wrapper => format!("{line}<{:#x}>", place.address),
            Some(line) if !self.is_verbose => line,
            _ => self.of(place),
        }
    }

    /// The caller that a mark was inlined into, as ` from file:line`.
    pub(super) fn caller(&self, place: &Place) -> String {
        match place.caller() {
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
    places: &Places<'_>,
    locations: &Locations<'_>,
    is_verbose: bool,
) -> io::Result<()> {
    let bold = anstyle::Style::new().bold();
    for group in groups {
        write!(
            out,
            "{bold}{}{bold:#} : {}, {}: ",
            printable(&group.function),
            counted(group.threads as u64, "thread"),
            counted(group.locations.len() as u64, "location"),
        )?;
        for (index, location) in group.locations.iter().enumerate() {
            let place = places.get(location.place);
            let separator = if index == 0 { "" } else { "; " };
            write!(out, "{separator}{}{}", locations.of(place), locations.caller(place))?;
            if is_verbose {
                for (index, label) in labels(place, places).iter().enumerate() {
                    write!(out, "{}\"{}\"", if index == 0 { " " } else { "|" }, printable(label))?;
                }
                let tids: Vec<String> = location.tids.iter().map(u32::to_string).collect();
                write!(out, " [{}]", tids.join(", "))?;
            } else {
                write!(out, " ({})", location.tids.len())?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The labels of the marks there, each once.
fn labels<'a>(place: &Place, places: &Places<'a>) -> Vec<&'a str> {
    let mut labels: Vec<&str> = Vec::new();
    for &site in place.sites.iter().take(MARKS_MAX) {
        let label = places.site(site).label.as_str();
        if !label.is_empty() && !labels.contains(&label) {
            labels.push(label);
        }
    }
    labels
}

/// What the mark of a wrapper says: all of its marks are on the line of one call, which alone tells nothing. Marks by
/// hand are on lines of their own, and shown as those of the C ancestor were.
fn wrapper_word(thread: &Thread<'_>, event: &Event, places: &Places<'_>) -> Option<&'static str> {
    let meaning = places.meaning(thread.slot.pid, event.pc)?;
    if meaning.flags() & librip_format::SITE_WRAPPER == 0 {
        return None;
    }
    match meaning.kind? {
        librip_format::KIND_LOCK_ACQUIRE_BEGIN => Some("takes"),
        librip_format::KIND_LOCK_WAIT => Some("waits"),
        librip_format::KIND_LOCK_RELEASED => Some("released"),
        librip_format::KIND_LOCK_TRY_FAILED => Some("failed"),
        librip_format::KIND_CONDITION_WAIT => Some("idle"),
        librip_format::KIND_CONDITION_WOKEN => Some("woken"),
        librip_format::KIND_LOCK_DESTROYED => Some("ended"),
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
    events: &[(Event, PlaceId)],
    places: &Places<'_>,
    locations: &Locations<'_>,
    sequence_mask: u64,
) -> io::Result<()> {
    let bold = anstyle::Style::new().bold();
    write!(out, "{bold}{}[{}]{bold:#}:", printable(&thread.slot.name), thread.slot.tid)?;
    let mut separator = " ";
    for (event, place) in events {
        let sequence = event.sequence & sequence_mask;
        write!(out, "{separator}{{{sequence}}}{}", locations.of(places.get(*place)))?;
        if let Some(word) = wrapper_word(thread, event, places) {
            write!(out, "({word})")?;
        }
        if locations.is_verbose
            && let Some(lock) = places.lock_of(thread.slot, event)
        {
            match places.given_name(thread.slot.pid, lock) {
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
