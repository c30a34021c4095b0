//! The unwind tables of a module, as bytes: of its file, or of its image in memory where the file is gone.
//!
//! It interprets the ELF headers, and nothing of the tables but the address of `.eh_frame`.

use object::Endianness;
use object::elf;
use object::pod::from_bytes;
use read_rip_files::Module;

use super::elf::{Image, entries};
use super::locate::{Options, Search};
use super::problem::Problem;
use super::unwind_index::{Placed, UnwindIndex};

/// A program has a few program headers.
const PROGRAM_HEADERS_MAX: u64 = 256;
/// More is not read of the tables of an image in memory.
const IN_MEMORY_MAX_BYTES: u64 = 256 << 20;
/// The index of `.eh_frame` has eight bytes for each function.
const INDEX_MAX_BYTES: u64 = 64 << 20;

/// What a module has to say about unwinding.
#[derive(Default)]
pub struct UnwindSections {
    /// `.eh_frame`, if there is one.
    pub eh_frame: Option<Placed>,
    /// `.eh_frame_hdr`: an index of the former.
    pub eh_frame_hdr: Option<Placed>,
    /// Where `.text` begins.
    pub text_address: u64,
    image: Option<Image>,
}

impl UnwindSections {
    /// Reads them from a module's file.
    pub fn of_file(module: &Module, options: &Options) -> Result<UnwindSections, Problem> {
        let image = Search { module, options }.own().map_err(|(_, problem)| problem)?;
        if image.endian != Endianness::Little {
            return Err(Problem::NotElf("of another byte order"));
        }
        let placed = |name| image.placed_section(name).map(|(address, bytes)| Placed { address, bytes });
        Ok(UnwindSections {
            eh_frame: placed(".eh_frame"),
            eh_frame_hdr: placed(".eh_frame_hdr"),
            text_address: image.section_address(".text").unwrap_or(0),
            image: Some(image),
        })
    }

    /// Reads them from the module's image in a process's memory. `read_some` reads as many bytes as there are at an
    /// actual address, at most as many as the buffer has, and returns their number.
    pub fn of_memory(
        read_some: &dyn Fn(u64, &mut [u8]) -> usize,
        &Module { load_bias, begin, end, .. }: &Module,
    ) -> Option<UnwindSections> {
        let read = |address: u64, len_bytes: u64| {
            let mut bytes = vec![0; len_bytes as usize];
            let read = read_some(load_bias.wrapping_add(address), &mut bytes);
            (read == bytes.len()).then_some(bytes)
        };
        let header = read(begin, size_of::<elf::FileHeader64<Endianness>>() as u64)?;
        let (header, _) = from_bytes::<elf::FileHeader64<Endianness>>(&header).ok()?;
        let endian = Endianness::Little;
        if header.e_ident.magic != elf::ELFMAG || header.e_ident.class != elf::ELFCLASS64 {
            return None;
        }
        let count = u64::from(header.e_phnum.get(endian)).min(PROGRAM_HEADERS_MAX);
        let table = begin.checked_add(header.e_phoff.get(endian))?;
        let table = read(table, count * size_of::<elf::ProgramHeader64<Endianness>>() as u64)?;
        let segments: &[elf::ProgramHeader64<Endianness>] = entries(&table);
        let index = segments.iter().find(|segment| segment.p_type.get(endian) == elf::PT_GNU_EH_FRAME)?;
        let (address, len_bytes) = (index.p_vaddr.get(endian), index.p_memsz.get(endian));
        if len_bytes > INDEX_MAX_BYTES {
            return None;
        }
        let hdr = Placed { address, bytes: read(address, len_bytes)? };
        let address = UnwindIndex::new(&hdr)?.eh_frame()?;
        let len_bytes = end.checked_sub(address)?.min(IN_MEMORY_MAX_BYTES);
        let mut bytes = vec![0; len_bytes as usize];
        // The image may have a hole after the section.
        let read = read_some(load_bias.wrapping_add(address), &mut bytes);
        bytes.truncate(read);
        let eh_frame = Some(Placed { address, bytes });
        Some(UnwindSections { eh_frame, eh_frame_hdr: Some(hdr), text_address: 0, image: None })
    }

    /// `.debug_frame` of the module's file, or of its separate debug file.
    pub fn debug_frame(&self, module: &Module, options: &Options) -> Option<Vec<u8>> {
        let own = self.image.as_ref()?;
        let content = |image: &Image| image.content_named(".debug_frame").ok().flatten();
        content(own).or_else(|| content(&Search { module, options }.files().debug?))
    }

    /// What the module's file has at a range of module-relative addresses.
    pub fn loaded(&self, address: u64, len_bytes: u64) -> Option<Vec<u8>> {
        let image = self.image.as_ref()?;
        image.loaded(address, len_bytes).or_else(|| image.mapped(address, len_bytes))
    }
}
