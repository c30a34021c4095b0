//! Bounds what line tables take: their rows, their lists of files and the names in these.
//!
//! A byte of a line program can be a row of 24 bytes, several units can refer to one program, and several files of a
//! program to one long name. addr2line expands all of that without a limit. So the cost is counted here first, and a
//! file that exceeds it is refused. Nothing is kept of what is read here.
//!
//! The cost of a file is counted in bytes of memory. Each byte that has to be looked at counts as one byte too, so the
//! budget bounds the time as well. Compilers' line tables cost about as much as their file is long. They are not run
//! here: if each byte of each program may be a row, nothing needs to be counted.

use std::cell::Cell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use gimli::{AttributeValue, DebugLineOffset, FileEntry, Reader, Section, UnitHeader, UnitRef, UnitType};

use super::debug_sections::Bytes;
use super::problem::Problem;

/// What the modules of a ring may cost together, whatever their files' lengths are.
const BASE_BYTES: u64 = 256 << 20;
/// What a file adds to that for each of its bytes.
const GRANT_PER_BYTE: u64 = 4;
/// What all files add together at most: a file may consist of holes.
const GRANTS_MAX_BYTES: u64 = 4 << 30;
/// addr2line keeps address, file, line and column of a row.
const ROW_BYTES: u64 = 24;
/// A file or directory in a header.
const ENTRY_BYTES: u64 = size_of::<FileEntry<Bytes>>() as u64;
/// The longest header of one program: gimli reserves an entry for each byte before it reads the entries.
const HEADER_MAX_BYTES: u64 = 2 << 20;

/// What the line tables of a ring's modules may still cost together.
pub(super) struct LineBudget {
    left_bytes: Cell<u64>,
    /// What files may still add.
    grants_bytes: Cell<u64>,
}

impl Default for LineBudget {
    fn default() -> Self {
        Self { left_bytes: BASE_BYTES.into(), grants_bytes: GRANTS_MAX_BYTES.into() }
    }
}

impl LineBudget {
    /// Adds what a file of this length may cost. To be called once for a file.
    pub(super) fn grant(&self, file_len_bytes: u64) {
        let granted = file_len_bytes.saturating_mul(GRANT_PER_BYTE).min(self.grants_bytes.get());
        self.grants_bytes.set(self.grants_bytes.get() - granted);
        self.left_bytes.set(self.left_bytes.get() + granted);
    }

    /// Refuses line tables that cost more than is left.
    pub(super) fn spend(&self, dwarf: &gimli::Dwarf<Bytes>) -> Result<(), Problem> {
        let limit_bytes = self.left_bytes.get();
        let mut tables = Tables { left_bytes: limit_bytes, ..Tables::default() };
        if tables.count(dwarf).is_some() {
            self.left_bytes.set(tables.left_bytes);
            return Ok(());
        }
        // To find that out took time. The next one that is refused takes half as long.
        self.left_bytes.set(limit_bytes / 2);
        Err(Problem::LineTables { limit_bytes })
    }
}

/// The line programs of one file.
#[derive(Default)]
struct Tables {
    left_bytes: u64,
    /// By offset, and by the length of an address in its units.
    programs: HashMap<(usize, u8), Program>,
    /// The names of a program's files, bytes. By its offset, and by where its unit's strings begin.
    names: HashMap<(usize, usize), u64>,
}

struct Program {
    header_bytes: u64,
    instruction_bytes: u64,
    /// The number of units whose rows are wanted from it.
    runs: u64,
}

/// The methods return `None` if the cost is too high. What cannot be parsed costs nothing more: addr2line does not get
/// further either.
impl Tables {
    fn count(&mut self, dwarf: &gimli::Dwarf<Bytes>) -> Option<()> {
        self.units(dwarf)?;
        if let Some(supplementary) = dwarf.sup() {
            // Other units refer to its entries. Its programs do not run.
            let mut others = Tables { left_bytes: self.left_bytes, ..Tables::default() };
            others.units(supplementary)?;
            self.left_bytes = others.left_bytes;
        }
        self.rows(dwarf)
    }

    /// Counts the headers and the names.
    fn units(&mut self, dwarf: &gimli::Dwarf<Bytes>) -> Option<()> {
        let mut units = dwarf.units();
        while let Ok(Some(unit)) = units.next() {
            if !matches!(unit.type_(), UnitType::Type { .. } | UnitType::SplitType { .. }) {
                self.unit(dwarf, unit)?;
            }
        }
        Some(())
    }

    fn unit(&mut self, dwarf: &gimli::Dwarf<Bytes>, unit: UnitHeader<Bytes>) -> Option<()> {
        let Some(offset) = line_program(dwarf, &unit) else { return Some(()) };
        let program = match self.programs.entry((offset.0, unit.address_size())) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => match Program::read(dwarf, offset) {
                Ok(program) => new.insert(program),
                Err(_) => return Some(()),
            },
        };
        if program.header_bytes > HEADER_MAX_BYTES {
            return None;
        }
        // Partial units have no code.
        let runs = u64::from(!matches!(unit.type_(), UnitType::Partial));
        program.runs += runs;
        let header_bytes = program.header_bytes;
        self.pay(header_bytes)?;
        let Ok(unit) = dwarf.unit(unit) else { return Some(()) };
        let Some(header) = unit.line_program.as_ref().map(|program| program.header()) else {
            return Some(());
        };
        let (files, directories) =
            (header.file_names().len() as u64, header.include_directories().len() as u64);
        self.pay((files + directories).saturating_mul(ENTRY_BYTES))?;
        if runs > 0 {
            let directory = unit.comp_dir.as_ref().map_or(0, |directory| directory.len() as u64);
            self.pay(files.saturating_mul(directory))?;
            let names = self.names(unit.unit_ref(dwarf), offset)?;
            self.pay(names)?;
        }
        Some(())
    }

    /// The length of the names of a program's files together.
    fn names(&mut self, unit: UnitRef<'_, Bytes>, offset: DebugLineOffset) -> Option<u64> {
        let key = (offset.0, unit.str_offsets_base.0);
        if let Some(&known) = self.names.get(&key) {
            return Some(known);
        }
        let mut read_bytes = 0_u64;
        // The length of a text; `None` if all together are too long.
        let mut len = |text| {
            let len = unit.attr_string(text).map_or(0, |text| text.len() as u64);
            read_bytes = read_bytes.saturating_add(len);
            (read_bytes <= self.left_bytes).then_some(len)
        };
        let header = unit.line_program.as_ref()?.header();
        let directories: Option<Vec<u64>> =
            header.include_directories().iter().map(|text| len(text.clone())).collect();
        let directories = directories?;
        let mut sum = 0_u64;
        for file in header.file_names() {
            let index = file.directory_index();
            // Before DWARF 5, directory 0 is that of the unit, and the list begins with directory 1.
            let index = if header.version() >= 5 { Some(index) } else { index.checked_sub(1) };
            let directory = index.and_then(|index| directories.get(usize::try_from(index).ok()?));
            sum = sum.saturating_add(directory.copied().unwrap_or(0)).saturating_add(len(file.path_name())?);
        }
        self.pay(read_bytes)?;
        self.names.insert(key, sum);
        Some(sum)
    }

    /// Counts the rows. A program that several units refer to runs once, and its rows count for each of them.
    fn rows(&mut self, dwarf: &gimli::Dwarf<Bytes>) -> Option<()> {
        let programs = std::mem::take(&mut self.programs);
        let at_most = |program: &Program| program.instruction_bytes.saturating_mul(program.runs);
        let bytes = programs.values().map(at_most).fold(0, u64::saturating_add);
        if bytes.saturating_mul(ROW_BYTES) <= self.left_bytes {
            return self.pay(bytes * ROW_BYTES);
        }
        for (&(offset, address_size), program) in programs.iter().filter(|(_, program)| program.runs > 0) {
            self.pay(at_most(program))?;
            let parsed = dwarf.debug_line.program(DebugLineOffset(offset), address_size, None, None);
            let Ok(parsed) = parsed else { continue };
            let mut rows = parsed.rows();
            while let Ok(Some(_)) = rows.next_row() {
                self.pay(ROW_BYTES.saturating_mul(program.runs))?;
            }
        }
        Some(())
    }

    fn pay(&mut self, cost_bytes: u64) -> Option<()> {
        self.left_bytes = self.left_bytes.checked_sub(cost_bytes)?;
        Some(())
    }
}

impl Program {
    /// Reads the lengths, and nothing that a length refers to.
    fn read(dwarf: &gimli::Dwarf<Bytes>, offset: DebugLineOffset) -> gimli::Result<Self> {
        let mut input = dwarf.debug_line.reader().clone();
        input.skip(offset.0)?;
        let (len, format) = input.read_initial_length()?;
        let mut rest = input.split(len)?;
        if rest.read_u16()? >= 5 {
            rest.skip(2)?; // the sizes of addresses and segment selectors
        }
        let header_len = rest.read_length(format)?;
        rest.skip(header_len)?;
        Ok(Self { header_bytes: header_len as u64, instruction_bytes: rest.len() as u64, runs: 0 })
    }
}

/// The line program that a unit refers to.
fn line_program(dwarf: &gimli::Dwarf<Bytes>, unit: &UnitHeader<Bytes>) -> Option<DebugLineOffset> {
    let abbreviations = dwarf.abbreviations(unit).ok()?;
    let mut entries = unit.entries_raw(&abbreviations, None).ok()?;
    let abbreviation = entries.read_abbreviation().ok()??;
    let mut found = None;
    for &attribute in abbreviation.attributes() {
        let attribute = entries.read_attribute(attribute).ok()?;
        if attribute.name() == gimli::DW_AT_stmt_list
            && let AttributeValue::DebugLineRef(offset) = attribute.value()
        {
            found = Some(offset);
        }
    }
    found
}
