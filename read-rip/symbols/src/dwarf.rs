//! The frames of an address, from a module's DWARF, with the functions that were inlined there.
//!
//! It finds no files (`locate` does) and knows no symbol tables. addr2line does the work.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use addr2line::{Context, LookupContinuation, LookupResult};

use super::debug_sections::{Bytes, empty, section};
use super::demangle::demangle;
use super::elf::Image;
use super::frame::Frame;
use super::nesting::Nesting;
use super::problem::Problem;
use super::split::Split;
use super::whose::Whose;

pub(super) struct Dwarf {
    context: Context<Bytes>,
    nesting: Nesting,
    pub(super) split: Split,
}

impl Dwarf {
    /// Reads the sections and indexes the compilation units.
    pub(super) fn read(image: &Image, supplementary: Option<&Image>, split: Split) -> Result<Self, Problem> {
        let load = |image: &Image, id: gimli::SectionId| {
            if is_wanted(id) { section(image, id.name()) } else { Ok(empty(image)) }
        };
        let mut dwarf = gimli::Dwarf::load(|id| load(image, id))?;
        if let Some(supplementary) = supplementary {
            split.budget.grant(supplementary.len_bytes);
            dwarf.load_sup(|id| load(supplementary, id))?;
        }
        dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
        split.budget.grant(image.len_bytes);
        split.budget.spend(&dwarf)?;
        let dwarf = Arc::new(dwarf);
        let context = Context::from_arc_dwarf(dwarf.clone())?;
        Ok(Self { context, nesting: Nesting::new(dwarf), split })
    }

    /// The frames of a module-relative address, innermost first. If an error occurs, the frames found before it are
    /// returned with it.
    ///
    /// The address is looked up as it is. A debugger subtracts one from a return address, because that is the
    /// address of the instruction after the call, which may belong to another line. A recorded PC is not a return
    /// address but the address of the mark's first instruction, and the byte before it may belong to any other
    /// code.
    pub(super) fn frames(&self, address: u64) -> (Vec<Frame>, Option<Problem>) {
        let mut frames = Vec::new();
        let problem =
            self.nesting.check(address).and_then(|()| Ok(self.collect(address, &mut frames)?)).err();
        if frames.is_empty() && problem.is_some() {
            // The tree of functions is damaged. The line table is in another section, and may not be.
            if let Ok(Some(location)) = self.context.find_location(address) {
                frames.push(frame(None, Some(location)));
            }
        }
        if let Some((_outermost, inlined)) = frames.split_last_mut() {
            inlined.iter_mut().for_each(|frame| frame.is_inlined = true);
        }
        (frames, problem)
    }

    /// The MD5 of a source file as the compiler read it, if the line table of the code at an address has it (DWARF 5,
    /// clang). `file` is a path of that line table, or its end.
    pub(super) fn md5(&self, address: u64, file: &str) -> Option<[u8; 16]> {
        self.nesting.check(address).ok()?;
        let mut lookup = self.context.find_dwarf_and_unit(address);
        let unit = loop {
            lookup = match lookup {
                LookupResult::Output(found) => break found?,
                LookupResult::Load { load, continuation } => continuation.resume(self.split.load(&load)),
            };
        };
        let program = unit.line_program.as_ref()?;
        let header = program.header();
        if !header.file_has_md5() {
            return None;
        }
        let mut found = header.file_names().iter().filter(|entry| {
            let name = unit.attr_string(entry.path_name());
            name.is_ok_and(|name| gimli::Reader::to_string_lossy(&name).is_ok_and(|name| is_end(&name, file)))
        });
        let entry = found.next()?;
        // If two files have one name, it is not known which one it is.
        found.all(|other| other.md5() == entry.md5()).then(|| *entry.md5())
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

/// Whether one of two paths is the other one, or its last components.
fn is_end(name: &str, file: &str) -> bool {
    let (name, file) = (Path::new(name), Path::new(file));
    name.ends_with(file) || file.ends_with(name)
}

fn frame(function: Option<String>, location: Option<addr2line::Location<'_>>) -> Frame {
    let location = location.as_ref();
    Frame {
        function: function.map(Into::into),
        file: location.and_then(|location| location.file).map(Into::into),
        // Compilers write line 0 for code that belongs to no line.
        line: location.and_then(|location| location.line).filter(|&line| line > 0),
        column: location.and_then(|location| location.column).filter(|&column| column > 0),
        is_inlined: false,
        whose: Whose::Unknown,
    }
}

/// Whether frames need a section. Variables, macros and name indexes are not needed, and about as large as the rest.
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
