//! The symbol table: which function or datum covers an address, where DWARF does not say.
//!
//! It does not guess the length of symbols that have none, and shows no undefined ones.

use object::elf;

use super::demangle::demangle;
use super::elf::{Fields, Image};

const SYMBOL_LEN_BYTES: usize = 24;
/// Longer names are cut: they are shown as they are anyway.
const NAME_MAX_BYTES: usize = 64 << 10;
/// How many symbols that begin before an address are looked at: symbols can lie in one another.
const NESTED_MAX: usize = 64;

/// Defined symbols with a length, of functions and of data.
#[derive(Default)]
pub(super) struct SymbolTable {
    functions: Vec<Symbol>,
    data: Vec<Symbol>,
    names: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Symbol {
    address: u64,
    /// Among equals the last is taken: global names are better known than local ones.
    rank: u8,
    len_bytes: u64,
    name_offset: u32,
}

impl SymbolTable {
    /// The full table, if the file was not stripped of it.
    pub(super) fn full(image: &Image) -> Option<Self> {
        Self::read(image, elf::SHT_SYMTAB)
    }

    /// The table for the dynamic linker, which has exported symbols only.
    pub(super) fn exported(image: &Image) -> Option<Self> {
        Self::read(image, elf::SHT_DYNSYM)
    }

    fn read(image: &Image, kind: elf::SectionType) -> Option<Self> {
        let section = image.section_of_type(kind)?;
        let names = image.content(image.section_at(section.link)?).ok()?;
        let bytes = image.content(section).ok()?;
        let mut table = Self { names, ..Self::default() };
        for entry in bytes.chunks_exact(SYMBOL_LEN_BYTES) {
            table.add(image.fields(entry));
        }
        table.functions.sort_unstable();
        table.data.sort_unstable();
        (!table.functions.is_empty() || !table.data.is_empty()).then_some(table)
    }

    fn add(&mut self, entry: Fields<'_>) -> Option<()> {
        let info = *entry.bytes.get(4)?;
        let rank = match elf::SymbolBind(info >> 4) {
            elf::STB_LOCAL => 0,
            elf::STB_WEAK => 1,
            _ => 2,
        };
        let is_defined = entry.u16(6)? != elf::SHN_UNDEF.0;
        let symbol =
            Symbol { name_offset: entry.u32(0)?, address: entry.u64(8)?, len_bytes: entry.u64(16)?, rank };
        if is_defined && symbol.len_bytes > 0 {
            match elf::SymbolType(info & 15) {
                elf::STT_FUNC | elf::STT_GNU_IFUNC => self.functions.push(symbol),
                // Not thread-local ones: theirs are no addresses.
                elf::STT_OBJECT => self.data.push(symbol),
                _ => {}
            }
        }
        Some(())
    }

    pub(super) fn has_functions(&self) -> bool {
        !self.functions.is_empty()
    }

    /// The demangled name of the function that covers a module-relative address.
    pub(super) fn function(&self, address: u64) -> Option<String> {
        self.name(containing(&self.functions, address)?)
    }

    /// The demangled names of all functions that lie where the one does that covers a module-relative address, each once.
    pub(super) fn namesakes(&self, address: u64) -> Vec<String> {
        let Some(function) = containing(&self.functions, address) else { return Vec::new() };
        let begin = self.functions.partition_point(|symbol| symbol.address < function.address);
        let there = self.functions[begin..].iter().take_while(|symbol| symbol.address == function.address);
        let equal = there.filter(|symbol| symbol.len_bytes == function.len_bytes);
        let mut names: Vec<String> = equal.take(NESTED_MAX).filter_map(|&symbol| self.name(symbol)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The demangled name of the datum that covers a module-relative address, and how far behind its begin that is.
    pub(super) fn datum(&self, address: u64) -> Option<(String, u64)> {
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

/// The symbol that begins last of those that cover an address.
fn containing(symbols: &[Symbol], address: u64) -> Option<Symbol> {
    let end = symbols.partition_point(|symbol| symbol.address <= address);
    let covers = |symbol: &&Symbol| address - symbol.address < symbol.len_bytes;
    symbols[..end].iter().rev().take(NESTED_MAX).find(covers).copied()
}
