//! Refuses trees of inlined calls that are deeper than any compiler's: addr2line descends by recursion, and a deep tree
//! would overflow the stack.
//!
//! To find that out, all entries of a unit have to be read. A large program has gigabytes of them, and few of its units
//! are ever asked for. addr2line reads the entries of a unit when it looks up the first address that may be in it, so a
//! unit is checked just before.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use gimli::{DebugInfoOffset, UnitHeader, UnitType};

use super::debug_sections::Bytes;
use super::problem::Problem;

/// The deepest tree that is read.
const DEPTH_MAX: isize = 1000;

/// The units of one file, and which of them were checked.
pub(super) struct Nesting {
    dwarf: Arc<gimli::Dwarf<Bytes>>,
    /// Where units may have code: all that addr2line takes for their ranges, and the gaps between two ranges of a unit
    /// that no other unit's code separates. Sorted by their begins.
    spans: Vec<Span>,
    /// Units that do not say where their code is. addr2line takes that from their line tables.
    unplaced: Vec<DebugInfoOffset>,
    /// Whether the units that were asked for are shallow.
    checked: RefCell<HashMap<DebugInfoOffset, bool>>,
}

/// Code of a unit.
struct Span {
    begin: u64,
    end: u64,
    unit: DebugInfoOffset,
    /// The last end of this span and of all spans before it.
    last_end: u64,
}

impl Nesting {
    /// Notes where the units have code. Their entries are not read, except for the first of each.
    pub(super) fn new(dwarf: Arc<gimli::Dwarf<Bytes>>) -> Nesting {
        let (mut spans, mut unplaced) = (Vec::new(), Vec::new());
        let mut add = |range: gimli::Range, unit| {
            let gimli::Range { begin, end } = range;
            let has_code = begin < end;
            if has_code {
                spans.push(Span { begin, end, unit, last_end: 0 });
            }
            has_code
        };
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            let Some(offset) = header.debug_info_offset() else { continue };
            if !may_have_code(&header) {
                continue;
            }
            let Ok(unit) = dwarf.unit(header) else { continue };
            let mut is_placed = false;
            if let Ok(mut ranges) = dwarf.unit_ranges(&unit) {
                while let Ok(Some(range)) = ranges.next() {
                    is_placed |= add(range, offset);
                }
            }
            if !is_placed {
                unplaced.push(offset);
            }
        }
        let mut tables = dwarf.debug_aranges.headers();
        while let Ok(Some(table)) = tables.next() {
            let mut entries = table.entries();
            while let Some(entry) = entries.next().transpose() {
                // addr2line goes on after an entry that is wrong, too.
                if let Ok(entry) = entry {
                    add(entry.range(), table.debug_info_offset());
                }
            }
        }
        Nesting { spans: joined(spans), dwarf, unplaced, checked: RefCell::default() }
    }

    /// Refuses an address that may be in a unit whose entries are nested too deeply.
    pub(super) fn check(&self, address: u64) -> Result<(), Problem> {
        let after = self.spans.partition_point(|span| span.begin <= address);
        let before = self.spans[..after].iter().rev().take_while(|span| span.last_end > address);
        let here = before.filter(|span| span.end > address).map(|span| span.unit);
        let is_shallow = |unit| {
            *self.checked.borrow_mut().entry(unit).or_insert_with(|| {
                let header = self.dwarf.debug_info.header_from_offset(unit);
                header.is_ok_and(|header| check_unit(&self.dwarf, &header).is_ok())
            })
        };
        match self.unplaced.iter().copied().chain(here).all(is_shallow) {
            true => Ok(()),
            false => Err(too_deep()),
        }
    }
}

/// Whether addr2line looks for code in a unit.
fn may_have_code(header: &UnitHeader<Bytes>) -> bool {
    !matches!(header.type_(), UnitType::Type { .. } | UnitType::SplitType { .. } | UnitType::Partial)
}

/// Sorts spans, and joins those of a unit that follow one another: units have a range for each function.
fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable_by_key(|span| span.begin);
    spans.dedup_by(|next, span| {
        let is_same = next.unit == span.unit;
        if is_same {
            span.end = span.end.max(next.end);
        }
        is_same
    });
    let mut last_end = 0;
    for span in &mut spans {
        last_end = span.end.max(last_end);
        span.last_end = last_end;
    }
    spans
}

/// Refuses a file with entries that are nested too deeply.
pub(super) fn check_all(dwarf: &gimli::Dwarf<Bytes>) -> Result<(), Problem> {
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        check_unit(dwarf, &header)?;
    }
    Ok(())
}

/// A unit that cannot be parsed ends early, here and in addr2line. Neither descends into its rest.
fn check_unit(dwarf: &gimli::Dwarf<Bytes>, header: &UnitHeader<Bytes>) -> Result<(), Problem> {
    let Ok(abbreviations) = dwarf.abbreviations(header) else { return Ok(()) };
    let Ok(mut entries) = header.entries_raw(&abbreviations, None) else { return Ok(()) };
    while !entries.is_empty() {
        if entries.next_depth() > DEPTH_MAX {
            return Err(too_deep());
        }
        let Ok(abbreviation) = entries.read_abbreviation() else { break };
        let Some(abbreviation) = abbreviation else { continue };
        if entries.skip_attributes(abbreviation.attributes()).is_err() {
            break;
        }
    }
    Ok(())
}

fn too_deep() -> Problem {
    Problem::Damaged("functions are nested too deeply".to_owned())
}
