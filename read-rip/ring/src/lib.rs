#![doc = include_str!("../README.md")]
//!
//! # Files
//!
//! | file | duty |
//! |---|---|
//! | `source`, `standard_input`, `unpacked` | opens a file or unpacks a copy, and reads it at any offset |
//! | `bytes`, `table`, `texts` | decodes integers and texts; splits a region into entries; checks entries with texts |
//! | `parse`, `region_list`, `clock` | decode the header |
//! | `metadata`, `names`, `call`, `static_text` | decode the tables of modules, sites, locks' names, callers, texts |
//! | `image`, `saved` | copy a ring as bytes, and take a saved one apart |
//! | `follow`, `recording` | what was recorded since the last time, and the file that keeps it |
//! | `progress` | a quick look at who has come how far, and who holds or waits for what |
//! | `copy`, `held`, `span` | copy slots, their held-lock tables and their open spans while their owners write |
//! | `task`, `rest`, `polls` | what the slots of tasks and threads say besides, and how long polls took |
//! | `history` | the same for the words that threads have in channels |
//! | `value` | decodes the values of events |
//! | `legacy` | reads rings of the C header that preceded librip |
//! | `word`, `words`, `site`, `slot`, `region`, `header`, `snapshot`, `error` | the values |

#![allow(missing_docs, reason = "a name that says it all has no comment")]

mod bytes;
mod call;
mod clock;
mod copy;
mod error;
pub mod events;
mod file_name;
mod follow;
mod header;
mod held;
mod history;
mod image;
mod incident;
mod legacy;
mod metadata;
mod names;
mod owner;
mod parse;
mod polls;
mod progress;
mod recording;
mod region;
mod region_list;
mod rest;
mod sampled;
mod saved;
mod site;
mod slot;
mod snapshot;
mod source;
mod span;
mod standard_input;
mod static_text;
mod table;
mod task;
mod texts;
mod unpacked;
mod value;
mod word;
mod words;

pub use call::{CopiedCall, call_flags, call_is_try, call_location, call_lock};
pub use clock::{Clock, ClockLevel, ClockSource};
pub use error::{Cut, Defect, Error};
pub use file_name::{FileName, program_name};
pub use follow::{Follower, NewWords};
pub use header::{
    Ending, FileId, FileSystem, HandedOver, Header, IgnoredSettings, Machine, OpenedFile, Setting, UsageLevel,
};
pub use held::{HELD_LOCKS_MAX, HeldLock, HeldState};
pub use history::{Channel, ChannelLevel};
pub use image::{ImageOutput, write_image};
pub use incident::{Incident, IncidentKind};
pub use polls::{Counted, Lengths, LongPoll, PollsOfPlace};
pub use progress::{Progress, progress};
pub use recording::{
    Gap, IntoParts, Parts, Period, RecordingWriter, Schedule, Scheduled, Turn, TurnEnd, WakeUp,
};
pub use region::{Region, RegionKind};
pub use rest::RestState;
pub use sampled::SampledTime;
pub use saved::Saved;
pub use site::{Home, Level, LockType, OperandType, OperandWords, Site, SiteFlags, SiteKind, Syntax};
pub use slot::{Position, Slot, SlotKind, SlotState, is_task, task_number};
pub use snapshot::Snapshot;
pub use source::{STANDARD_INPUT, Source};
pub use span::OpenSpan;
pub use static_text::{StaticText, StaticTexts};
pub use task::{AwaitFuture, EntryTurn, FUTURES_LEFT_OUT_MAX, FUTURES_MAX, Runtime, TaskKind, TaskState};
pub use unpacked::UnpackLimit;
pub use value::{Value, Values, shape_words};
pub use word::{SequenceBits, Word};
pub use words::Words;

use std::path::Path;

/// Where recorders make rings unless configured otherwise.
pub const DEFAULT_DIRECTORY: &str = librip_format::DEFAULT_DIRECTORY;

/// Opens and copies a ring, or a gzip, zlib, zstd, xz or lz4 copy of one. The ring may have the legacy format.
///
/// # Errors
///
/// If nothing of it can be read; see [`Error`].
pub fn read(path: &Path) -> Result<Snapshot, Error> {
    read_source(&Source::open(path)?)
}

/// Copies an opened ring.
///
/// # Errors
///
/// Those of [`read`].
pub fn read_source(source: &Source) -> Result<Snapshot, Error> {
    if legacy::is_legacy(source) {
        return legacy::read(source);
    }
    let (header, mut defects) = parse::header(source)?;
    let mut defects_of_slots = Vec::new();
    let (mut slots, places) = copy::slots(source, &header, &mut defects_of_slots);
    let histories = history::histories(source, &header, &slots, &places, &mut defects_of_slots);
    // A site and a text are complete before the first event that refers to them is recorded. So these tables are read
    // after the events, with the numbers of entries that there are then.
    let tables = parse::header(source).ok().map(|(now, _)| now);
    let tables = tables.as_ref().unwrap_or(&header);
    let (modules, sites, static_texts, channels) = metadata::read(source, tables, &mut defects);
    defects.append(&mut defects_of_slots);
    let captures = slots.extract_if(.., |slot| slot.kind == SlotKind::Capture);
    // The others are being replaced.
    let captures = captures.filter(|slot| slot.state == SlotState::Exited).collect();
    let lock_names = names::read(source, &header, &mut defects);
    // A location is complete before tasks that are made there have polls.
    let polls = polls::read(source, tables, &mut defects);
    let calls = call::read(source, &header, &mut defects);
    let mut snapshot = Snapshot {
        header: Some(header),
        sites,
        slots,
        captures,
        histories,
        channels,
        lock_names,
        calls,
        polls,
        static_texts,
        defects,
        ..Snapshot::of_modules(modules)
    };
    if let Some(words) = source.recorded_words()? {
        words.add_to(&mut snapshot);
        if words.damaged() > 0 {
            snapshot.defects.push(Defect::Recording { blocks: words.damaged() });
        }
    }
    Ok(snapshot)
}

/// Reads the header of an opened ring as it is now.
///
/// # Errors
///
/// Those of [`read_header`].
pub fn present_header(source: &Source) -> Result<Header, Error> {
    parse::header(source).map(|(header, _)| header)
}

/// Whether a file may be a ring, a copy or a recording of one, by its beginning.
pub fn may_be_ring(path: &Path) -> bool {
    Source::open_packed(path).is_ok_and(|source| source.may_be_ring() || legacy::is_legacy(&source))
}

/// Reads only the header of a ring: enough to list it.
///
/// # Errors
///
/// Those of [`read`]. For a ring in the legacy format, which has no header, and for a compressed copy:
/// [`Error::NotARing`]. Copies are not unpacked because that would make a list of rings slow.
pub fn read_header(path: &Path) -> Result<Header, Error> {
    parse::header(&Source::open_packed(path)?).map(|(header, _)| header)
}

/// Whether a file is the beginning of a ring whose maker has not finished it, by its content or by its name. It reads
/// from the file's position on, which is the start.
///
/// # Errors
///
/// Those of reading.
pub fn is_unfinished(file: &std::fs::File, path: &Path) -> std::io::Result<bool> {
    parse::is_unfinished(file, path)
}

/// Reads only which program made a ring.
///
/// # Errors
///
/// Those of [`read_header`].
pub fn read_program(path: &Path) -> Result<std::path::PathBuf, Error> {
    let source = Source::open_packed(path)?;
    let (header, _) = parse::header(&source)?;
    Ok(metadata::program(&source, &header).unwrap_or_default())
}
