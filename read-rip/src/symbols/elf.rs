//! An ELF file, read in the parts that are asked for: sections, build id, links to separate debug files.
//!
//! It does not interpret symbols or DWARF, and maps nothing: a mapped file that is truncated is a signal, a
//! read one is an error. Only 64-bit files are read, in either byte order: the recorder runs on no others.
//!
//! # Invariants
//!
//! Every range is inside the file's length before memory is taken for it, no section is larger than
//! [`SECTION_MAX_BYTES`], and all that is read of one file together not than [`FILE_READ_MAX_BYTES`].

use std::cell::Cell;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use object::elf;

use super::path::{from_io, open_regular};
use super::{Problem, compressed};

/// No section may be larger, compressed or not: 32-bit DWARF cannot refer beyond it.
pub(super) const SECTION_MAX_BYTES: u64 = 4 << 30;
/// All sections of a file together, uncompressed.
const FILE_READ_MAX_BYTES: u64 = 8 << 30;
/// A larger file is none of ours; `/proc/kcore` is a regular ELF file of 128 TiB.
const FILE_MAX_BYTES: u64 = 64 << 30;
/// More sections than linkers make, even with one for each function.
const SECTIONS_MAX: u64 = 1 << 20;
/// Notes are a few bytes each, and the sites' notes are among them.
const NOTES_MAX_BYTES: u64 = 64 << 20;

const FILE_HEADER_LEN_BYTES: u64 = 64;
const SECTION_HEADER_LEN_BYTES: usize = 64;
const SEGMENT_HEADER_LEN_BYTES: usize = 56;

/// Integers at offsets, in the file's byte order.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) is_little_endian: bool,
}

impl Fields<'_> {
    fn array<const N: usize>(self, offset: usize) -> Option<[u8; N]> {
        let mut array = *self.bytes.get(offset..)?.first_chunk()?;
        if !self.is_little_endian {
            array.reverse();
        }
        Some(array)
    }

    pub(super) fn u16(self, offset: usize) -> Option<u16> {
        self.array(offset).map(u16::from_le_bytes)
    }

    pub(super) fn u32(self, offset: usize) -> Option<u32> {
        self.array(offset).map(u32::from_le_bytes)
    }

    pub(super) fn u64(self, offset: usize) -> Option<u64> {
        self.array(offset).map(u64::from_le_bytes)
    }
}

/// A section's header, as the file says it.
#[derive(Clone, Copy)]
pub(super) struct Section {
    name_offset: u32,
    kind: u32,
    is_compressed: bool,
    offset: u64,
    len_bytes: u64,
    /// Index of the section with the names, for symbol tables.
    pub(super) link: u32,
    align_bytes: u64,
}

/// An open ELF file.
pub(super) struct Image {
    pub(super) path: PathBuf,
    pub(super) len_bytes: u64,
    /// ns since 1970.
    pub(super) modified_ns: u64,
    pub(super) is_little_endian: bool,
    /// Empty where there is none.
    pub(super) build_id: Vec<u8>,
    file: File,
    sections: Vec<Section>,
    section_names: Vec<u8>,
    /// What may still be read, bytes.
    budget_bytes: Cell<u64>,
}

impl Image {
    /// Opens a regular ELF file and reads its headers and build id.
    pub(super) fn open(path: &Path) -> Result<Self, Problem> {
        let opened = open_regular(path)?;
        if opened.len_bytes > FILE_MAX_BYTES {
            return Err(Problem::TooLarge { len_bytes: opened.len_bytes, limit_bytes: FILE_MAX_BYTES });
        }
        if opened.len_bytes < FILE_HEADER_LEN_BYTES {
            return Err(Problem::NotElf("shorter than an ELF header"));
        }
        let mut image = Self {
            path: path.to_owned(),
            len_bytes: opened.len_bytes,
            modified_ns: opened.modified_ns,
            is_little_endian: true,
            build_id: Vec::new(),
            file: opened.file,
            sections: Vec::new(),
            section_names: Vec::new(),
            budget_bytes: FILE_READ_MAX_BYTES.into(),
        };
        let header = image.read(0, FILE_HEADER_LEN_BYTES)?;
        image.is_little_endian = byte_order(&header)?;
        image.read_sections(&header)?;
        image.build_id = image.find_build_id(&header);
        Ok(image)
    }

    pub(super) fn fields<'a>(&self, bytes: &'a [u8]) -> Fields<'a> {
        Fields { bytes, is_little_endian: self.is_little_endian }
    }

    /// Reads a part of the file; all of it or nothing.
    fn read(&self, offset: u64, len_bytes: u64) -> Result<Vec<u8>, Problem> {
        if offset.checked_add(len_bytes).is_none_or(|end| end > self.len_bytes) {
            return Err(Problem::Damaged("a part lies beyond the end of the file".to_owned()));
        }
        self.spend(len_bytes)?;
        let mut bytes = Vec::new();
        let Ok(()) = bytes.try_reserve_exact(len_bytes as usize) else {
            return Err(Problem::TooLarge { len_bytes, limit_bytes: 0 });
        };
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset)).map_err(|error| from_io(&error))?;
        file.take(len_bytes).read_to_end(&mut bytes).map_err(|error| from_io(&error))?;
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

    fn read_sections(&mut self, header: &[u8]) -> Result<(), Problem> {
        let damaged = || Problem::Damaged("bad section headers".to_owned());
        let header = self.fields(header);
        let layout = || Some((header.u64(40)?, header.u16(58)?, header.u16(60)?, header.u16(62)?));
        let (offset, entry_len_bytes, count, names) = layout().ok_or_else(damaged)?;
        if offset == 0 {
            return Ok(());
        }
        if usize::from(entry_len_bytes) != SECTION_HEADER_LEN_BYTES {
            return Err(damaged());
        }
        let (mut count, mut names) = (u64::from(count), u32::from(names));
        // Counts that do not fit are in the first section's header.
        if count == 0 || names == u32::from(elf::SHN_XINDEX.0) {
            let first = self.read(offset, SECTION_HEADER_LEN_BYTES as u64)?;
            let first = self.fields(&first);
            if count == 0 {
                count = first.u64(32).ok_or_else(damaged)?;
            }
            if names == u32::from(elf::SHN_XINDEX.0) {
                names = first.u32(40).ok_or_else(damaged)?;
            }
        }
        if count > SECTIONS_MAX {
            return Err(damaged());
        }
        let table = self.read(offset, count * SECTION_HEADER_LEN_BYTES as u64)?;
        self.sections = table
            .chunks_exact(SECTION_HEADER_LEN_BYTES)
            .filter_map(|bytes| Section::parse(self.fields(bytes)))
            .collect();
        if let Some(&section) = self.sections.get(names as usize) {
            self.section_names = self.raw(section)?;
        }
        Ok(())
    }

    /// The build id, from the notes of sections, or of segments where there are no sections.
    fn find_build_id(&self, header: &[u8]) -> Vec<u8> {
        let sections = self.sections.iter().filter(|section| section.kind == elf::SHT_NOTE.0);
        let sections = sections.map(|section| (section.offset, section.len_bytes, section.align_bytes));
        sections
            .chain(self.note_segments(header))
            .filter(|&(_, len_bytes, _)| len_bytes <= NOTES_MAX_BYTES)
            .filter_map(|(offset, len_bytes, align)| Some((self.read(offset, len_bytes).ok()?, align)))
            .find_map(|(bytes, align)| build_id_in(self.fields(&bytes), align))
            .unwrap_or_default()
    }

    fn note_segments(&self, header: &[u8]) -> Vec<(u64, u64, u64)> {
        let header = self.fields(header);
        let layout = || Some((header.u64(32)?, header.u16(54)?, header.u16(56)?));
        let Some((offset, entry_len_bytes, count)) = layout() else { return Vec::new() };
        if usize::from(entry_len_bytes) != SEGMENT_HEADER_LEN_BYTES {
            return Vec::new();
        }
        let table = self.read(offset, u64::from(count) * SEGMENT_HEADER_LEN_BYTES as u64).unwrap_or_default();
        let note = |segment: Fields<'_>| {
            (segment.u32(0)? == elf::PT_NOTE.0).then_some((
                segment.u64(8)?,
                segment.u64(32)?,
                segment.u64(48)?,
            ))
        };
        table.chunks_exact(SEGMENT_HEADER_LEN_BYTES).filter_map(|bytes| note(self.fields(bytes))).collect()
    }

    fn name(&self, section: Section) -> &[u8] {
        let name = self.section_names.get(section.name_offset as usize..).unwrap_or_default();
        name.split(|&byte| byte == 0).next().unwrap_or_default()
    }

    /// The first section with a type, and content.
    pub(super) fn section_of_type(&self, kind: elf::SectionType) -> Option<Section> {
        self.sections.iter().copied().find(|section| section.kind == kind.0 && section.len_bytes > 0)
    }

    pub(super) fn section_at(&self, index: u32) -> Option<Section> {
        self.sections.get(index as usize).copied()
    }

    fn section_named(&self, name: &[u8]) -> Option<Section> {
        // Files with separated debug information have its sections' headers, without content.
        let has_content = |section: &Section| section.kind != elf::SHT_NOBITS.0 && section.len_bytes > 0;
        self.sections.iter().copied().find(|&section| has_content(&section) && self.name(section) == name)
    }

    /// Whether there is DWARF, or the part of it that points to split DWARF.
    pub(super) fn has_debug_info(&self) -> bool {
        self.section_named(b".debug_info").or_else(|| self.section_named(b".zdebug_info")).is_some()
    }

    /// A section's bytes as they are in the file.
    fn raw(&self, section: Section) -> Result<Vec<u8>, Problem> {
        if section.kind == elf::SHT_NOBITS.0 {
            return Ok(Vec::new());
        }
        self.read(section.offset, section.len_bytes)
    }

    /// A section's content, uncompressed.
    pub(super) fn content(&self, section: Section) -> Result<Vec<u8>, Problem> {
        let bytes = self.raw(section)?;
        if !section.is_compressed {
            return Ok(bytes);
        }
        let content = compressed::uncompress(self.fields(&bytes))?;
        self.spend(content.len() as u64)?;
        Ok(content)
    }

    /// The content of the section with a name, uncompressed; `.zdebug_x` stands for `.debug_x`.
    pub(super) fn content_named(&self, name: &str) -> Result<Option<Vec<u8>>, Problem> {
        if let Some(section) = self.section_named(name.as_bytes()) {
            return self.content(section).map(Some);
        }
        let Some(rest) = name.strip_prefix(".debug_") else { return Ok(None) };
        let Some(section) = self.section_named(format!(".zdebug_{rest}").as_bytes()) else { return Ok(None) };
        let content = compressed::uncompress_zdebug(&self.raw(section)?)?;
        self.spend(content.len() as u64)?;
        Ok(Some(content))
    }

    /// `.gnu_debuglink`: the name of the separate debug file, and its CRC-32.
    pub(super) fn debug_link(&self) -> Option<(Vec<u8>, u32)> {
        let bytes = self.content_named(".gnu_debuglink").ok()??;
        let name_len = bytes.iter().position(|&byte| byte == 0)?;
        let checksum = self.fields(&bytes).u32((name_len + 1).next_multiple_of(4))?;
        Some((bytes.get(..name_len)?.to_vec(), checksum))
    }

    /// `.gnu_debugaltlink`: the path of the supplementary file that `dwz` wrote, and its build id.
    pub(super) fn supplementary_link(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let bytes = self.content_named(".gnu_debugaltlink").ok()??;
        let mut parts = bytes.splitn(2, |&byte| byte == 0);
        Some((parts.next()?.to_vec(), parts.next().filter(|id| !id.is_empty())?.to_vec()))
    }

    /// CRC-32 of the whole file, as debug links have it.
    pub(super) fn checksum(&self) -> Result<u32, Problem> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0)).map_err(|error| from_io(&error))?;
        let mut source = flate2::CrcReader::new(file.take(self.len_bytes));
        std::io::copy(&mut source, &mut std::io::sink()).map_err(|error| from_io(&error))?;
        Ok(source.crc().sum())
    }
}

impl Section {
    fn parse(header: Fields<'_>) -> Option<Self> {
        Some(Self {
            name_offset: header.u32(0)?,
            kind: header.u32(4)?,
            is_compressed: header.u64(8)? & elf::SHF_COMPRESSED.0 != 0,
            offset: header.u64(24)?,
            len_bytes: header.u64(32)?,
            link: header.u32(40)?,
            align_bytes: header.u64(48)?,
        })
    }
}

/// Checks the start of the file; whether it has the little end first.
fn byte_order(header: &[u8]) -> Result<bool, Problem> {
    if !header.starts_with(&elf::ELFMAG) {
        return Err(Problem::NotElf("no ELF file"));
    }
    if header.get(4) != Some(&elf::ELFCLASS64.0) {
        return Err(Problem::NotElf("no 64-bit ELF file"));
    }
    let is_little_endian = match header.get(5) {
        Some(&order) if order == elf::ELFDATA2LSB.0 => true,
        Some(&order) if order == elf::ELFDATA2MSB.0 => false,
        _ => return Err(Problem::NotElf("unknown byte order")),
    };
    let kind = Fields { bytes: header, is_little_endian }.u16(16);
    if kind.is_none_or(|kind| ![elf::ET_REL.0, elf::ET_EXEC.0, elf::ET_DYN.0].contains(&kind)) {
        return Err(Problem::NotElf("an ELF file of another kind, such as a core dump"));
    }
    Ok(is_little_endian)
}

/// The first GNU build id among notes.
fn build_id_in(notes: Fields<'_>, align_bytes: u64) -> Option<Vec<u8>> {
    let align = if align_bytes == 8 { 8 } else { 4 };
    let mut notes = notes;
    loop {
        let name_len = notes.u32(0)? as usize;
        let id_len = notes.u32(4)? as usize;
        let kind = notes.u32(8)?;
        let name_end = name_len.checked_add(12)?;
        let start = name_end.checked_next_multiple_of(align)?;
        let end = start.checked_add(id_len)?;
        let id = notes.bytes.get(start..end)?;
        if kind == elf::NT_GNU_BUILD_ID.0 && notes.bytes.get(12..name_end) == Some(b"GNU\0") && !id.is_empty()
        {
            return Some(id.to_vec());
        }
        notes.bytes = notes.bytes.get(end.checked_next_multiple_of(align)?..)?;
    }
}
