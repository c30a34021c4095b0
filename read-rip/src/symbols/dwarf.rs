//! Frames of an address, from a module's DWARF, with the functions that were inlined there.
//!
//! It finds no files (`locate` does) and knows no symbol tables. The work is addr2line's; here are the bounds.

use std::borrow::Cow;
use std::sync::Arc;

use addr2line::{Context, LookupContinuation, LookupResult};
use gimli::{EndianReader, RunTimeEndian};

use super::demangle::demangle;
use super::elf::Image;
use super::split::Split;
use super::{Frame, Problem};

/// Sections are read and not mapped: each is shared by all that refers to it.
pub(super) type Bytes = EndianReader<RunTimeEndian, Arc<[u8]>>;

/// addr2line descends the tree of inlined calls by recursion: a file whose tree is deeper than any compiler's would
/// overflow the stack, and is refused.
const NESTING_MAX: isize = 1000;

/// The DWARF of one module.
pub(super) struct Dwarf {
    context: Context<Bytes>,
    pub(super) split: Split,
}

impl Dwarf {
    /// Reads the sections and makes an index of the compilation units.
    pub(super) fn read(image: &Image, supplementary: Option<&Image>, split: Split) -> Result<Self, Problem> {
        let load = |image: &Image, id: gimli::SectionId| {
            if is_wanted(id) { section(image, id.name()) } else { Ok(empty(image)) }
        };
        let mut dwarf = gimli::Dwarf::load(|id| load(image, id))?;
        if let Some(supplementary) = supplementary {
            dwarf.load_sup(|id| load(supplementary, id))?;
        }
        dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
        check_nesting(&dwarf)?;
        Ok(Self { context: Context::from_dwarf(dwarf)?, split })
    }

    /// The frames of a module-relative address, innermost first; what was found before an error counts.
    ///
    /// The address is looked up as it is. Debuggers subtract one from a return address, because it belongs to the
    /// instruction behind the call and that may be another line's. A recorded PC is no return address: it is
    /// that of the mark's own first instruction, and the byte before it may belong to anything.
    pub(super) fn frames(&self, address: u64) -> (Vec<Frame>, Option<Problem>) {
        let mut frames = Vec::new();
        let problem = self.collect(address, &mut frames).err().map(Problem::from);
        if frames.is_empty() && problem.is_some() {
            // The tree of functions is damaged; the line table is another section.
            if let Ok(Some(location)) = self.context.find_location(address) {
                frames.push(frame(None, Some(location)));
            }
        }
        if let Some((_outermost, inlined)) = frames.split_last_mut() {
            inlined.iter_mut().for_each(|frame| frame.is_inlined = true);
        }
        (frames, problem)
    }

    fn collect(&self, address: u64, frames: &mut Vec<Frame>) -> gimli::Result<()> {
        let mut lookup = self.context.find_frames(address);
        let mut found = loop {
            lookup = match lookup {
                LookupResult::Output(found) => break found?,
                LookupResult::Load { load, continuation } => continuation.resume(self.split.load(&load)),
            };
        };
        while let Some(next) = found.next()? {
            let name =
                next.function.as_ref().and_then(|function| function.raw_name().ok().map(Cow::into_owned));
            let function = name.filter(|name| !name.is_empty()).map(|name| demangle(&name));
            frames.push(frame(function, next.location));
        }
        Ok(())
    }
}

fn frame(function: Option<String>, location: Option<addr2line::Location<'_>>) -> Frame {
    let location = location.as_ref();
    Frame {
        function,
        file: location.and_then(|location| location.file).map(str::to_owned),
        // Line 0 is what compilers write for code that belongs to no line.
        line: location.and_then(|location| location.line).filter(|&line| line > 0),
        column: location.and_then(|location| location.column).filter(|&column| column > 0),
        is_inlined: false,
    }
}

/// The sections that frames need: variables, macros and indexes by name are about as large again.
fn is_wanted(id: gimli::SectionId) -> bool {
    use gimli::SectionId as Id;
    !matches!(
        id,
        Id::DebugLoc
            | Id::DebugLocLists
            | Id::DebugMacinfo
            | Id::DebugMacro
            | Id::DebugNames
            | Id::DebugPubNames
            | Id::DebugPubTypes
            | Id::DebugTypes
    )
}

/// A section of a file; empty where the file has none.
pub(super) fn section(image: &Image, name: &str) -> Result<Bytes, Problem> {
    let content = image.content_named(name)?.unwrap_or_default();
    Ok(Bytes::new(content.into(), order(image)))
}

pub(super) fn empty(image: &Image) -> Bytes {
    Bytes::new(Arc::new([]), order(image))
}

fn order(image: &Image) -> RunTimeEndian {
    if image.is_little_endian { RunTimeEndian::Little } else { RunTimeEndian::Big }
}

/// Refuses entries that are nested deeper than [`NESTING_MAX`].
///
/// A unit that cannot be parsed ends early, here as there: its rest is never descended into.
pub(super) fn check_nesting(dwarf: &gimli::Dwarf<Bytes>) -> Result<(), Problem> {
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let Ok(abbreviations) = dwarf.abbreviations(&header) else { continue };
        let Ok(mut entries) = header.entries_raw(&abbreviations, None) else { continue };
        while !entries.is_empty() {
            if entries.next_depth() > NESTING_MAX {
                return Err(Problem::Damaged("functions are nested too deeply".to_owned()));
            }
            let Ok(abbreviation) = entries.read_abbreviation() else { break };
            let Some(abbreviation) = abbreviation else { continue };
            if entries.skip_attributes(abbreviation.attributes()).is_err() {
                break;
            }
        }
    }
    Ok(())
}

impl From<gimli::Error> for Problem {
    fn from(error: gimli::Error) -> Self {
        Self::Damaged(error.to_string())
    }
}
