//! Calls of functions of other modules: which function a call names that goes through a word which the loader fills in.
//!
//! Such a call is one of a stub that the linker has made, which jumps to what the word has, or it reads the word
//! itself. The relocation of the word has the function's name.

use object::elf::EM_X86_64;
use object::{Endianness, elf};

use super::demangle::demangle;
use super::direct_call;
use super::elf::{Image, entries};

/// A stub is no longer.
const STUB_MAX_BYTES: u64 = 16;
/// A stub is no shorter.
const STUB_MIN_BYTES: u64 = 6;

/// The functions of other modules that a file uses, by the addresses of their words.
#[derive(Debug, Default)]
pub(super) struct Imports(Vec<(u64, String)>);

impl Imports {
    /// Reads the relocations with names of functions.
    pub(super) fn read(image: &Image) -> Imports {
        Imports::of(image).unwrap_or_default()
    }

    fn of(image: &Image) -> Option<Imports> {
        let endian = image.endian;
        let section = image.section_of_type(elf::SHT_DYNSYM)?;
        let names = image.content(image.linked_section(section)?).ok()?;
        let bytes = image.content(section).ok()?;
        let symbols: &[elf::Sym64<Endianness>] = entries(&bytes);
        let name = |symbol: u64| {
            let symbol = symbols.get(usize::try_from(symbol).ok()?)?;
            let name = names.get(symbol.st_name.get(endian) as usize..)?;
            let name = name.split(|&byte| byte == 0).next().filter(|name| !name.is_empty())?;
            Some(demangle(&String::from_utf8_lossy(name)))
        };
        let mut found = Vec::new();
        for section in image.sections_of_type(elf::SHT_RELA) {
            let Ok(bytes) = image.content(section) else { continue };
            let table: &[elf::Rela64<Endianness>] = entries(&bytes);
            found.extend(table.iter().filter_map(|entry| {
                let info = entry.r_info.get(endian);
                let is_function =
                    [elf::R_X86_64_JUMP_SLOT.0, elf::R_X86_64_GLOB_DAT.0].contains(&(info as u32));
                let name = name(info >> 32).filter(|_| is_function)?;
                Some((entry.r_offset.get(endian), name))
            }));
        }
        found.sort_unstable();
        Some(Imports(found))
    }

    /// The demangled name of the function of another module that the call calls which returns to a module-relative
    /// address.
    pub(super) fn called(&self, image: &Image, return_address: u64) -> Option<&str> {
        if image.machine != EM_X86_64 {
            return None;
        }
        let word = direct_call::slot(image, return_address)
            .or_else(|| word_of_stub_at(image, direct_call::target(image, return_address)?))?;
        self.at(word)
    }

    /// The demangled name of the function of another module whose address the loader fills in at a module-relative one.
    pub(super) fn at(&self, word: u64) -> Option<&str> {
        let position = self.0.binary_search_by_key(&word, |&(address, _)| address).ok()?;
        Some(&self.0[position].1)
    }
}

/// The word through which the stub at a module-relative address jumps.
fn word_of_stub_at(image: &Image, stub: u64) -> Option<u64> {
    let code = image.loaded(stub, STUB_MAX_BYTES).or_else(|| image.loaded(stub, STUB_MIN_BYTES))?;
    word_of_stub(&code, stub)
}

/// The same, by its bytes: ENDBR64 perhaps, and JMP [RIP+disp32], with a prefix perhaps.
fn word_of_stub(code: &[u8], stub: u64) -> Option<u64> {
    const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
    const BND: [u8; 1] = [0xf2];
    let rest = code.strip_prefix(&ENDBR64).unwrap_or(code);
    let rest = rest.strip_prefix(&BND).unwrap_or(rest);
    let distance = rest.strip_prefix(&[0xff, 0x25])?.first_chunk::<4>()?;
    let next = stub + (code.len() - rest.len()) as u64 + STUB_MIN_BYTES;
    Some(next.wrapping_add_signed(i32::from_le_bytes(*distance).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stub_names_the_word_through_which_it_jumps() {
        assert_eq!(word_of_stub(&[0xff, 0x25, 0x10, 0, 0, 0, 0x68, 0], 0x1000), Some(0x1016));
        let with_prefixes = [0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x10, 0, 0, 0];
        assert_eq!(word_of_stub(&with_prefixes, 0x1000), Some(0x101b));
        assert_eq!(word_of_stub(&[0x55, 0x48, 0x89, 0xe5, 0x90, 0x90], 0x1000), None, "a function");
        assert_eq!(word_of_stub(&[0xff, 0x25, 0x10], 0x1000), None);
    }
}
