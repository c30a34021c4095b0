//! `core::panic::Location` constants in a program's file: where a wrapper was called, without debug information.
//!
//! Such a constant has three words: the address of the file's name, its length, and line and column. Rust does not
//! promise their order, so all orders are tried, and only what can be a location is one. In a position-independent
//! file the address is the addend of a relative relocation, which `strip` keeps.

use object::elf;
use object::{Endianness, U64};
use serde::{Deserialize, Serialize};

use super::elf::{Image, Section, entries};

/// The longest name of a source file.
const FILE_LEN_MAX: u64 = 4096;
const WORDS: usize = 3;
/// The positions of the name's address, of its length, and of line and column. The first order is today's.
const ORDERS: [[usize; WORDS]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// File, line and column of a location.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct CallerLine {
    /// The source file, as the compiler named it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1. Earlier versions have not kept it.
    #[serde(default)]
    pub column: Option<u32>,
}

/// The relative relocations of a file: addends by the address that is relocated.
#[derive(Debug, Default)]
pub(super) struct Relocations(Vec<(u64, u64)>);

impl Relocations {
    /// Reads those with addends of their own. Others have them at the address that is relocated.
    pub(super) fn read(image: &Image) -> Relocations {
        let endian = image.endian;
        let mut found = Vec::new();
        for section in image.sections_of_type(elf::SHT_RELA).filter(|section| is_loaded(section, endian)) {
            let Ok(bytes) = image.content(section) else { continue };
            let table: &[elf::Rela64<Endianness>] = entries(&bytes);
            let relative = table.iter().filter(|entry| {
                let kind = entry.r_info.get(endian) as u32;
                kind == elf::R_X86_64_RELATIVE.0 || kind == elf::R_AARCH64_RELATIVE.0
            });
            found.extend(
                relative.map(|entry| (entry.r_offset.get(endian), entry.r_addend.get(endian) as u64)),
            );
        }
        found.sort_unstable();
        Relocations(found)
    }

    /// The word at an address, as it is after the loader has relocated it.
    pub(super) fn word(&self, image: &Image, address: u64) -> Option<u64> {
        self.addend(address).or_else(|| {
            let bytes = image.loaded(address, 8)?;
            let words: &[U64<Endianness>] = entries(&bytes);
            Some(words.first()?.get(image.endian))
        })
    }

    fn addend(&self, address: u64) -> Option<u64> {
        let position = self.0.binary_search_by_key(&address, |&(address, _)| address).ok()?;
        Some(self.0[position].1)
    }
}

fn is_loaded(section: &Section, endian: Endianness) -> bool {
    section.sh_flags.get(endian).0 & elf::SHF_ALLOC.0 != 0
}

/// The location at a module-relative address, if there is one.
pub(super) fn caller_line(image: &Image, relocations: &Relocations, address: u64) -> Option<CallerLine> {
    let bytes = image.loaded(address, 8 * WORDS as u64)?;
    let words: &[U64<Endianness>] = entries(&bytes);
    let word = |index: usize| {
        let own = relocations.addend(address + 8 * index as u64);
        Some(own.unwrap_or(words.get(index)?.get(image.endian)))
    };
    ORDERS.iter().find_map(|&[file, len, line]| {
        let (line, column) = (word(line)? as u32, (word(line)? >> 32) as u32);
        let len_bytes = word(len)?;
        let is_possible = line > 0 && column > 0 && (1..=FILE_LEN_MAX).contains(&len_bytes);
        let name = if is_possible { image.loaded(word(file)?, len_bytes)? } else { return None };
        let file = String::from_utf8(name).ok()?;
        (!file.contains(char::is_control)).then_some(CallerLine { file, line, column: Some(column) })
    })
}
