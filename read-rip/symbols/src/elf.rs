//! Reads the requested parts of an ELF file: sections, build id, links to separate debug files.
//!
//! It does not interpret symbols or DWARF. It maps nothing: an access to a mapped file that is truncated raises a
//! signal, while a read reports an error. It reads 64-bit files only, in either byte order: the recorder runs on no
//! others.
//!
//! # Invariants
//!
//! Every range is checked against the file's length before memory is reserved for it. No section is larger than
//! [`SECTION_MAX_BYTES`], and all that is read of one file together is no larger than [`FILE_READ_MAX_BYTES`].

use std::cell::Cell;
use std::io::Read;
use std::path::{Path, PathBuf};

use object::elf;
use object::pod::{Pod, from_bytes, slice_from_bytes};
use object::read::elf::NoteIterator;
use object::{Endianness, U32};
use read_rip_files::Content;

use super::compressed;
use super::path::{from_io, open_regular};
use super::problem::Problem;

/// No section may be larger, compressed or not: 32-bit DWARF cannot refer to what is after it.
const SECTION_MAX_BYTES: u64 = 4 << 30;
/// The limit for all sections of a file together, uncompressed.
const FILE_READ_MAX_BYTES: u64 = 8 << 30;
/// A larger file is not a program or library: `/proc/kcore` is a regular ELF file of 128 TiB.
const FILE_MAX_BYTES: u64 = 64 << 30;
/// No linker makes more sections, even with one for each function.
const SECTIONS_MAX: u64 = 1 << 20;
/// Notes have a few bytes each. The notes of sites are among them.
const NOTES_MAX_BYTES: u64 = 64 << 20;

type FileHeader = elf::FileHeader64<Endianness>;
type SegmentHeader = elf::ProgramHeader64<Endianness>;
pub(super) type Section = elf::SectionHeader64<Endianness>;

/// An open ELF file.
pub(super) struct Image {
    pub(super) path: PathBuf,
    pub(super) len_bytes: u64,
    /// ns since 1970.
    pub(super) modified_ns: u64,
    pub(super) endian: Endianness,
    pub(super) machine: elf::Machine,
    /// Empty if there is none.
    pub(super) build_id: Vec<u8>,
    file: Content,
    sections: Vec<Section>,
    section_names: Vec<u8>,
    segments: Vec<SegmentHeader>,
    /// How much may still be read, bytes.
    budget_bytes: Cell<u64>,
}

impl Image {
    /// Opens a regular ELF file and reads its headers and build id.
    pub(super) fn open(path: &Path) -> Result<Self, Problem> {
        let opened = open_regular(path)?;
        let len_bytes = opened.len_bytes();
        if len_bytes > FILE_MAX_BYTES {
            return Err(Problem::TooLarge { len_bytes, limit_bytes: FILE_MAX_BYTES });
        }
        if len_bytes < size_of::<FileHeader>() as u64 {
            return Err(Problem::NotElf("shorter than an ELF header"));
        }
        let mut image = Self {
            path: path.to_owned(),
            len_bytes,
            modified_ns: opened.modified_ns(),
            endian: Endianness::Little,
            machine: elf::EM_NONE,
            build_id: Vec::new(),
            file: opened,
            sections: Vec::new(),
            section_names: Vec::new(),
            segments: Vec::new(),
            budget_bytes: FILE_READ_MAX_BYTES.into(),
        };
        let header: FileHeader = image.read_one(0)?;
        image.endian = byte_order(&header)?;
        image.machine = header.e_machine.get(image.endian);
        image.read_sections(&header)?;
        image.segments = image.read_segments(&header);
        image.build_id = image.find_build_id();
        Ok(image)
    }

    /// Reads a part of the file, completely or not at all.
    fn read(&self, offset: u64, len_bytes: u64) -> Result<Vec<u8>, Problem> {
        if offset.checked_add(len_bytes).is_none_or(|end| end > self.len_bytes) {
            return Err(Problem::Damaged("a part is after the end of the file".to_owned()));
        }
        self.spend(len_bytes)?;
        let mut bytes = Vec::new();
        let Ok(()) = bytes.try_reserve_exact(len_bytes as usize) else {
            return Err(Problem::Unreadable(format!("no memory for {len_bytes} bytes")));
        };
        let read = self.file.from(offset).take(len_bytes).read_to_end(&mut bytes);
        read.map_err(|error| from_io(&error))?;
        if bytes.len() as u64 != len_bytes {
            return Err(Problem::Unreadable("it became shorter while it was read".to_owned()));
        }
        Ok(bytes)
    }

    fn spend(&self, len_bytes: u64) -> Result<(), Problem> {
        let limit_bytes = self.budget_bytes.get().min(SECTION_MAX_BYTES);
        if len_bytes > limit_bytes {
            return Err(Problem::TooLarge { len_bytes, limit_bytes });
        }
        self.budget_bytes.set(self.budget_bytes.get() - len_bytes);
        Ok(())
    }

    fn read_one<T: Pod>(&self, offset: u64) -> Result<T, Problem> {
        let bytes = self.read(offset, size_of::<T>() as u64)?;
        from_bytes(&bytes).map(|(one, _)| *one).map_err(|()| Problem::Damaged("bad header".to_owned()))
    }

    fn read_sections(&mut self, header: &FileHeader) -> Result<(), Problem> {
        let endian = self.endian;
        let damaged = || Problem::Damaged("bad section headers".to_owned());
        let offset = header.e_shoff.get(endian);
        if offset == 0 {
            return Ok(());
        }
        if usize::from(header.e_shentsize.get(endian)) != size_of::<Section>() {
            return Err(damaged());
        }
        let mut count = u64::from(header.e_shnum.get(endian));
        let mut names = u32::from(header.e_shstrndx.get(endian).0);
        // Numbers that do not fit in the ELF header are in the first section's header.
        let are_names_extended = header.e_shstrndx.get(endian) == elf::SHN_XINDEX;
        if count == 0 || are_names_extended {
            let first: Section = self.read_one(offset)?;
            if count == 0 {
                count = first.sh_size.get(endian);
            }
            if are_names_extended {
                names = first.sh_link.get(endian);
            }
        }
        if count > SECTIONS_MAX {
            return Err(damaged());
        }
        let table = self.read(offset, count * size_of::<Section>() as u64)?;
        self.sections = entries(&table).to_vec();
        if let Some(section) = self.sections.get(names as usize) {
            self.section_names = self.raw(section)?;
        }
        Ok(())
    }

    /// The build id, from the notes of sections, or of segments if there are no sections.
    fn find_build_id(&self) -> Vec<u8> {
        let endian = self.endian;
        let sections = self.sections.iter().filter(|section| section.sh_type.get(endian) == elf::SHT_NOTE);
        let sections = sections.map(|section| {
            (section.sh_offset.get(endian), section.sh_size.get(endian), section.sh_addralign.get(endian))
        });
        sections
            .chain(self.note_segments())
            .filter(|&(_, len_bytes, _)| len_bytes <= NOTES_MAX_BYTES)
            .filter_map(|(offset, len_bytes, align)| Some((self.read(offset, len_bytes).ok()?, align)))
            .find_map(|(bytes, align)| build_id_in(&bytes, align, endian))
            .unwrap_or_default()
    }

    /// The table of segments; empty if there is none.
    fn read_segments(&self, header: &FileHeader) -> Vec<SegmentHeader> {
        let endian = self.endian;
        if usize::from(header.e_phentsize.get(endian)) != size_of::<SegmentHeader>() {
            return Vec::new();
        }
        let len_bytes = u64::from(header.e_phnum.get(endian)) * size_of::<SegmentHeader>() as u64;
        let table = self.read(header.e_phoff.get(endian), len_bytes).unwrap_or_default();
        entries(&table).to_vec()
    }

    /// Offset, length and alignment of the segments that hold notes.
    fn note_segments(&self) -> Vec<(u64, u64, u64)> {
        let endian = self.endian;
        let notes = self.segments.iter().filter(|segment| segment.p_type.get(endian) == elf::PT_NOTE);
        let notes = notes.map(|segment| {
            (segment.p_offset.get(endian), segment.p_filesz.get(endian), segment.p_align.get(endian))
        });
        notes.collect()
    }

    fn name(&self, section: &Section) -> &[u8] {
        let at = section.sh_name.get(self.endian) as usize;
        let name = self.section_names.get(at..).unwrap_or_default();
        name.split(|&byte| byte == 0).next().unwrap_or_default()
    }

    /// The first section with this type that has content.
    pub(super) fn section_of_type(&self, kind: elf::SectionType) -> Option<&Section> {
        let is_of_type = |section: &&Section| {
            section.sh_type.get(self.endian) == kind && section.sh_size.get(self.endian) > 0
        };
        self.sections.iter().find(is_of_type)
    }

    pub(super) fn sections_of_type(&self, kind: elf::SectionType) -> impl Iterator<Item = &Section> {
        self.sections.iter().filter(move |section| section.sh_type.get(self.endian) == kind)
    }

    /// What the file has for a range of module-relative addresses; `None` unless all of it is in one section.
    pub(super) fn loaded(&self, address: u64, len_bytes: u64) -> Option<Vec<u8>> {
        let endian = self.endian;
        let section = self.sections.iter().find(|section| {
            let begin = section.sh_addr.get(endian);
            let (is_loaded, is_in_file) = (
                section.sh_flags.get(endian).0 & elf::SHF_ALLOC.0 != 0,
                section.sh_type.get(endian) != elf::SHT_NOBITS,
            );
            let rest = address.checked_sub(begin).and_then(|at| section.sh_size.get(endian).checked_sub(at));
            is_loaded && is_in_file && rest.is_some_and(|rest| len_bytes <= rest)
        })?;
        let offset = section.sh_offset.get(endian).checked_add(address - section.sh_addr.get(endian))?;
        self.read(offset, len_bytes).ok()
    }

    /// What the loader maps of the file at a range of module-relative addresses; `None` unless all of it is in one
    /// segment, and in the file. The file must be the program or library itself.
    pub(super) fn mapped(&self, address: u64, len_bytes: u64) -> Option<Vec<u8>> {
        let endian = self.endian;
        let offset = self.segments.iter().find_map(|segment| {
            let at = address.checked_sub(segment.p_vaddr.get(endian))?;
            let rest = segment.p_filesz.get(endian).checked_sub(at)?;
            let is_there = segment.p_type.get(endian) == elf::PT_LOAD && len_bytes <= rest;
            segment.p_offset.get(endian).checked_add(at).filter(|_| is_there)
        })?;
        self.read(offset, len_bytes).ok()
    }

    /// The section to which another one refers, such as the names of a symbol table.
    pub(super) fn linked_section(&self, section: &Section) -> Option<&Section> {
        self.sections.get(section.sh_link.get(self.endian) as usize)
    }

    fn section_named(&self, name: &[u8]) -> Option<&Section> {
        // A file whose debug information is in another file keeps the headers of these sections, without content.
        let has_content = |section: &Section| {
            section.sh_type.get(self.endian) != elf::SHT_NOBITS && section.sh_size.get(self.endian) > 0
        };
        self.sections.iter().find(|section| has_content(section) && self.name(section) == name)
    }

    /// The section with this name that a program has in its memory: its module-relative address and its bytes.
    pub(super) fn placed_section(&self, name: &str) -> Option<(u64, Vec<u8>)> {
        let section = self.section_named(name.as_bytes())?;
        Some((section.sh_addr.get(self.endian), self.raw(section).ok()?))
    }

    /// The module-relative address of the section with this name.
    pub(super) fn section_address(&self, name: &str) -> Option<u64> {
        Some(self.section_named(name.as_bytes())?.sh_addr.get(self.endian))
    }

    /// Whether there is DWARF, or the part of DWARF that refers to split DWARF.
    pub(super) fn has_debug_info(&self) -> bool {
        self.section_named(b".debug_info").or_else(|| self.section_named(b".zdebug_info")).is_some()
    }

    /// A section's bytes as they are in the file.
    fn raw(&self, section: &Section) -> Result<Vec<u8>, Problem> {
        if section.sh_type.get(self.endian) == elf::SHT_NOBITS {
            return Ok(Vec::new());
        }
        self.read(section.sh_offset.get(self.endian), section.sh_size.get(self.endian))
    }

    /// A section's content, uncompressed.
    pub(super) fn content(&self, section: &Section) -> Result<Vec<u8>, Problem> {
        let bytes = self.raw(section)?;
        if section.sh_flags.get(self.endian).0 & elf::SHF_COMPRESSED.0 == 0 {
            return Ok(bytes);
        }
        let content = compressed::uncompress(&bytes, self.endian, SECTION_MAX_BYTES)?;
        self.spend(content.len() as u64)?;
        Ok(content)
    }

    /// The content of the section with this name, uncompressed. `.zdebug_x` is read if there is no `.debug_x`.
    pub(super) fn content_named(&self, name: &str) -> Result<Option<Vec<u8>>, Problem> {
        if let Some(section) = self.section_named(name.as_bytes()) {
            return self.content(section).map(Some);
        }
        let Some(rest) = name.strip_prefix(".debug_") else { return Ok(None) };
        let Some(section) = self.section_named(format!(".zdebug_{rest}").as_bytes()) else { return Ok(None) };
        let content = compressed::uncompress_zdebug(&self.raw(section)?, SECTION_MAX_BYTES)?;
        self.spend(content.len() as u64)?;
        Ok(Some(content))
    }

    /// `.gnu_debuglink`: the name of the separate debug file, and its CRC-32.
    pub(super) fn debug_link(&self) -> Option<(Vec<u8>, u32)> {
        let bytes = self.content_named(".gnu_debuglink").ok()??;
        let name_len = bytes.iter().position(|&byte| byte == 0)?;
        let (checksum, _) =
            from_bytes::<U32<Endianness>>(bytes.get((name_len + 1).next_multiple_of(4)..)?).ok()?;
        Some((bytes.get(..name_len)?.to_vec(), checksum.get(self.endian)))
    }

    /// `.gnu_debugaltlink`: the path of the supplementary file that `dwz` wrote, and its build id.
    pub(super) fn supplementary_link(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let bytes = self.content_named(".gnu_debugaltlink").ok()??;
        let mut parts = bytes.splitn(2, |&byte| byte == 0);
        Some((parts.next()?.to_vec(), parts.next().filter(|id| !id.is_empty())?.to_vec()))
    }

    /// The CRC-32 of the whole file, as debug links use it.
    pub(super) fn checksum(&self) -> Result<u32, Problem> {
        let mut source = flate2::CrcReader::new(self.file.from(0).take(self.len_bytes));
        std::io::copy(&mut source, &mut std::io::sink()).map_err(|error| from_io(&error))?;
        Ok(source.crc().sum())
    }
}

/// The entries of a table, without an incomplete one at its end.
pub(super) fn entries<T: Pod>(bytes: &[u8]) -> &[T] {
    slice_from_bytes(bytes, bytes.len() / size_of::<T>()).map_or(&[], |(entries, _)| entries)
}

/// Checks that this is an ELF file of the kinds that are read. Returns its byte order.
fn byte_order(header: &FileHeader) -> Result<Endianness, Problem> {
    if header.e_ident.magic != elf::ELFMAG {
        return Err(Problem::NotElf("not an ELF file"));
    }
    if header.e_ident.class != elf::ELFCLASS64 {
        return Err(Problem::NotElf("not a 64-bit ELF file"));
    }
    let endian = match header.e_ident.data {
        elf::ELFDATA2LSB => Endianness::Little,
        elf::ELFDATA2MSB => Endianness::Big,
        _ => return Err(Problem::NotElf("unknown byte order")),
    };
    match header.e_type.get(endian) {
        elf::ET_REL | elf::ET_EXEC | elf::ET_DYN => Ok(endian),
        _ => Err(Problem::NotElf("an ELF file of another kind, such as a core dump")),
    }
}

/// The first GNU build id among notes.
fn build_id_in(notes: &[u8], align: u64, endian: Endianness) -> Option<Vec<u8>> {
    let align = if align == 8 { 8 } else { 4 };
    let notes = NoteIterator::<FileHeader>::new(endian, align, notes).ok()?;
    // What follows a damaged note is not read.
    let mut notes = notes.map_while(Result::ok);
    notes.find_map(|note| {
        let is_build_id = note.name() == elf::ELF_NOTE_GNU && note.n_type(endian) == elf::NT_GNU_BUILD_ID;
        (is_build_id && !note.desc().is_empty()).then(|| note.desc().to_vec())
    })
}
