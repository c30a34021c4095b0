//! The symbol table: which function or static covers an address.
//!
//! It does not guess the length of symbols without one, and ignores undefined symbols.

use std::ops::Range;

use object::{Endianness, elf};

use super::demangle::demangle;
use super::elf::{Image, entries};
use super::locate::Files;

/// Longer names are truncated: no mangled name is that long.
const NAME_MAX_BYTES: usize = 64 << 10;
/// At most this many symbols before an address are checked: symbols can be nested.
const NESTED_MAX: usize = 64;

/// Defined symbols that have a length, of functions and of data.
#[derive(Default)]
pub(super) struct SymbolTable {
    functions: Vec<Symbol>,
    data: Vec<Symbol>,
    names: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Symbol {
    address: u64,
    /// The symbol of the highest rank at an address is used: global names are better known than local ones.
    rank: u8,
    len_bytes: u64,
    name_offset: u32,
}

impl Symbol {
    fn range(&self) -> Option<Range<u64>> {
        Some(self.address..self.address.checked_add(self.len_bytes)?)
    }
}

impl SymbolTable {
    /// The table of a module: the full one if one of its files has it, and otherwise that of exported symbols.
    pub(super) fn of(files: &Files) -> Self {
        let images = || files.own.iter().chain(&files.debug);
        let full = images().find_map(SymbolTable::full);
        full.or_else(|| images().find_map(SymbolTable::exported)).unwrap_or_default()
    }

    /// The full table; `None` if the file was stripped.
    fn full(image: &Image) -> Option<Self> {
        Self::read(image, elf::SHT_SYMTAB)
    }

    /// The table of the dynamic linker, which has exported symbols only.
    fn exported(image: &Image) -> Option<Self> {
        Self::read(image, elf::SHT_DYNSYM)
    }

    fn read(image: &Image, kind: elf::SectionType) -> Option<Self> {
        let section = image.section_of_type(kind)?;
        let names = image.content(image.linked_section(section)?).ok()?;
        let bytes = image.content(section).ok()?;
        let mut table = Self { names, ..Self::default() };
        entries(&bytes).iter().for_each(|symbol| table.add(symbol, image.endian));
        table.functions.sort_unstable();
        table.data.sort_unstable();
        (!table.functions.is_empty() || !table.data.is_empty()).then_some(table)
    }

    fn add(&mut self, raw: &elf::Sym64<Endianness>, endian: Endianness) {
        let symbol = Symbol {
            address: raw.st_value.get(endian),
            rank: match raw.st_bind() {
                elf::STB_LOCAL => 0,
                elf::STB_WEAK => 1,
                _ => 2,
            },
            len_bytes: raw.st_size.get(endian),
            name_offset: raw.st_name.get(endian),
        };
        if raw.st_shndx.get(endian) == elf::SHN_UNDEF || symbol.len_bytes == 0 {
            return;
        }
        match raw.st_type() {
            elf::STT_FUNC | elf::STT_GNU_IFUNC => self.functions.push(symbol),
            // STT_TLS is left out: the value of a thread-local symbol is not an address.
            elf::STT_OBJECT => self.data.push(symbol),
            _ => {}
        }
    }

    /// Whether a symbol is in this module of Rust, as `parking_lot::word`.
    ///
    /// It compares mangled names, in which each part of a path has its length before it. Both manglings of Rust have it
    /// so.
    pub(super) fn has_path(&self, path: &str) -> bool {
        let mangled: String = path.split("::").map(|part| format!("{}{part}", part.len())).collect();
        memchr::memmem::find(&self.names, mangled.as_bytes()).is_some()
    }

    pub(super) fn has_functions(&self) -> bool {
        !self.functions.is_empty()
    }

    /// The demangled name of the function that covers a module-relative address.
    pub(super) fn function(&self, address: u64) -> Option<String> {
        self.name(containing(&self.functions, address)?)
    }

    /// Where the function begins that covers a module-relative address.
    pub(super) fn function_begin(&self, address: u64) -> Option<u64> {
        containing(&self.functions, address).map(|function| function.address)
    }

    /// The module-relative addresses of the function that covers one of them.
    pub(super) fn function_range(&self, address: u64) -> Option<Range<u64>> {
        containing(&self.functions, address)?.range()
    }

    /// The module-relative addresses of the static variable that covers one of them.
    pub(super) fn variable_range(&self, address: u64) -> Option<Range<u64>> {
        containing(&self.data, address)?.range()
    }

    /// The demangled names of all functions with the same range as the one that covers a module-relative address,
    /// each once.
    pub(super) fn namesakes(&self, address: u64) -> Vec<String> {
        let Some(function) = containing(&self.functions, address) else { return Vec::new() };
        let begin = self.functions.partition_point(|symbol| symbol.address < function.address);
        let same_begin =
            self.functions[begin..].iter().take_while(|symbol| symbol.address == function.address);
        let equal = same_begin.filter(|symbol| symbol.len_bytes == function.len_bytes);
        let mut names: Vec<String> = equal.take(NESTED_MAX).filter_map(|&symbol| self.name(symbol)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The demangled name of the static that covers a module-relative address, and the address's offset in it.
    pub(super) fn static_at(&self, address: u64) -> Option<(String, u64)> {
        let symbol = containing(&self.data, address)?;
        Some((self.name(symbol)?, address - symbol.address))
    }

    fn name(&self, symbol: Symbol) -> Option<String> {
        let name = self.names.get(symbol.name_offset as usize..)?;
        let name = &name[..name.len().min(NAME_MAX_BYTES)];
        let name = name.split(|&byte| byte == 0).next().filter(|name| !name.is_empty())?;
        Some(demangle(&String::from_utf8_lossy(name)))
    }
}

/// The symbol that covers an address; if several do, the one that begins last.
fn containing(symbols: &[Symbol], address: u64) -> Option<Symbol> {
    let end = symbols.partition_point(|symbol| symbol.address <= address);
    let covers = |symbol: &&Symbol| address - symbol.address < symbol.len_bytes;
    symbols[..end].iter().rev().take(NESTED_MAX).find(covers).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_modules_is_found_in_both_manglings() {
        let names = [
            "_ZN11parking_lot4word4Word5leave17h0123456789abcdefE",
            "_RNvMNtCs4KQ_11parking_lot4wordNtB2_4Word5leave",
        ];
        for name in names {
            let table =
                SymbolTable { names: format!("\0main\0{name}\0").into_bytes(), ..SymbolTable::default() };
            assert!(
                table.has_path("parking_lot::word") && !table.has_path("parking_lot::raw_mutex"),
                "{name}"
            );
        }
    }
}
