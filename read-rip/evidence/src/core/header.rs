//! The ELF header of a core file, and its segments.

use object::LittleEndian;
use object::elf::{
    ELFCLASS64, ELFDATA2LSB, ELFMAG, EM_386, EM_AARCH64, EM_ARM, EM_PPC64, EM_RISCV, EM_S390, EM_X86_64,
    ET_CORE, FileHeader64, PF_W, PF_X, PN_XNUM, PT_LOAD, PT_NOTE, ProgramHeader64, SectionHeader64,
};
use object::pod::{Pod, from_bytes, slice_from_all_bytes};
use read_rip_ring::Source;

use super::error::Error;
use super::files::File;
use crate::target::Architecture;

/// Enough of a file to tell whether it is a core: the identification and the type.
pub(super) const START_LEN: usize = 20;
/// A process has at most `vm.max_map_count` ranges, which nobody raises further than this.
const SEGMENTS_MAX: u64 = 1 << 20;
const LITTLE: LittleEndian = LittleEndian;

#[derive(Debug)]
pub(super) struct Header {
    pub(super) architecture: Architecture,
    /// The ranges of memory, by address. No two overlap.
    pub(super) segments: Vec<Segment>,
    /// Offset and length of the notes.
    pub(super) notes: Vec<(u64, u64)>,
}

/// A range of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) is_writable: bool,
    pub(super) is_executable: bool,
    /// Where its first byte is in the file.
    pub(super) offset: u64,
    /// How many of its first bytes are in the file, if the file is whole.
    pub(super) dumped_bytes: u64,
    /// Whether the core says nothing of it but the file that was mapped there. Debuggers leave such ranges out.
    pub(super) is_left_out: bool,
}

/// Whether a file that begins so is a core file, of any processor.
pub(super) fn is_core(start: &[u8; START_LEN]) -> bool {
    let kind = [start[16], start[17]];
    start.starts_with(&ELFMAG)
        && match start[5] {
            1 => u16::from_le_bytes(kind) == ET_CORE.0,
            2 => u16::from_be_bytes(kind) == ET_CORE.0,
            _ => false,
        }
}

impl Header {
    pub(super) fn read(source: &Source) -> Result<Header, Error> {
        let damaged = |what| Error::Damaged { path: source.path().to_owned(), what };
        let mut start = [0; START_LEN];
        let got = source.read_at(&mut start, 0).unwrap_or(0);
        if got < START_LEN || !is_core(&start) {
            return Err(damaged("it does not begin like a core file"));
        }
        let architecture = architecture(&start)
            .map_err(|found| Error::OtherArchitecture { path: source.path().to_owned(), found })?;
        let header: FileHeader64<LittleEndian> =
            one(source, 0).ok_or_else(|| damaged("it is shorter than its header"))?;
        let mut count = u64::from(header.e_phnum.get(LITTLE));
        if count == u64::from(PN_XNUM) {
            // The number that does not fit is in the first section.
            let first: Option<SectionHeader64<LittleEndian>> = one(source, header.e_shoff.get(LITTLE));
            count = first.map_or(0, |first| first.sh_info.get(LITTLE).into());
        }
        let entry_len = size_of::<ProgramHeader64<LittleEndian>>();
        if usize::from(header.e_phentsize.get(LITTLE)) != entry_len || count == 0 || count > SEGMENTS_MAX {
            return Err(damaged("the table of its segments makes no sense"));
        }
        let mut table = vec![0; count as usize * entry_len];
        let got = source.read_at(&mut table, header.e_phoff.get(LITTLE)).unwrap_or(0);
        table.truncate(got / entry_len * entry_len);
        let table = slice_from_all_bytes::<ProgramHeader64<LittleEndian>>(&table).unwrap_or_default();
        let of_kind = |kind| table.iter().filter(move |segment| segment.p_type.get(LITTLE) == kind);
        let mut segments: Vec<Segment> = of_kind(PT_LOAD).filter_map(segment).collect();
        segments.sort_by_key(|segment| segment.begin);
        // Of overlapping ranges the first one counts.
        let mut end = 0;
        segments.retain(|segment| {
            let is_after = segment.begin >= end;
            end = end.max(segment.end);
            is_after
        });
        let notes = of_kind(PT_NOTE).map(|notes| (notes.p_offset.get(LITTLE), notes.p_filesz.get(LITTLE)));
        Ok(Header { architecture, segments, notes: notes.collect() })
    }

    /// Adds the ranges of these files that no segment covers. Whether they were executable is not known here.
    pub(super) fn add_left_out(&mut self, files: &[File]) {
        let known = self.segments.len();
        for file in files {
            let segments = &self.segments[..known];
            let after = segments.partition_point(|segment| segment.begin < file.end);
            let is_covered = segments[..after].last().is_some_and(|segment| segment.end > file.begin);
            let is_after_last = self.segments[known..].last().is_none_or(|last| last.end <= file.begin);
            if !is_covered && is_after_last {
                self.segments.push(Segment {
                    begin: file.begin,
                    end: file.end,
                    is_writable: false,
                    is_executable: true,
                    offset: 0,
                    dumped_bytes: 0,
                    is_left_out: true,
                });
            }
        }
        self.segments.sort_by_key(|segment| segment.begin);
    }

    /// Where a whole file ends.
    pub(super) fn end(&self) -> u64 {
        let memory = self.segments.iter().filter(|segment| segment.dumped_bytes > 0);
        let memory = memory.map(|segment| segment.offset.saturating_add(segment.dumped_bytes));
        let notes = self.notes.iter().map(|&(offset, len_bytes)| offset.saturating_add(len_bytes));
        memory.chain(notes).max().unwrap_or(0)
    }
}

fn segment(of: &ProgramHeader64<LittleEndian>) -> Option<Segment> {
    let (begin, len_bytes) = (of.p_vaddr.get(LITTLE), of.p_memsz.get(LITTLE));
    let end = begin.checked_add(len_bytes).filter(|&end| end > begin)?;
    let flags = of.p_flags.get(LITTLE);
    Some(Segment {
        begin,
        end,
        is_writable: flags.contains(PF_W),
        is_executable: flags.contains(PF_X),
        offset: of.p_offset.get(LITTLE),
        dumped_bytes: of.p_filesz.get(LITTLE).min(len_bytes),
        is_left_out: false,
    })
}

/// The processor of a core; its name, if this program does not know it.
fn architecture(start: &[u8; START_LEN]) -> Result<Architecture, String> {
    let is_known = start[4] == ELFCLASS64.0 && start[5] == ELFDATA2LSB.0;
    let machine = [start[18], start[19]];
    let is_little = start[5] == ELFDATA2LSB.0;
    let machine = if is_little { u16::from_le_bytes(machine) } else { u16::from_be_bytes(machine) };
    let is_machine = |known: object::elf::Machine| machine == known.0;
    match () {
        () if is_known && is_machine(EM_X86_64) => Ok(Architecture::X86_64),
        () if is_known && is_machine(EM_AARCH64) => Ok(Architecture::Aarch64),
        () if is_machine(EM_X86_64) => Err("x32".to_owned()),
        () if is_machine(EM_386) => Err("32-bit x86".to_owned()),
        () if is_machine(EM_ARM) => Err("32-bit ARM".to_owned()),
        () if is_machine(EM_RISCV) => Err("RISC-V".to_owned()),
        () if is_machine(EM_PPC64) => Err("POWER".to_owned()),
        () if is_machine(EM_S390) => Err("s390".to_owned()),
        () => Err(format!("machine {machine}")),
    }
}

/// Reads one structure.
fn one<T: Pod>(source: &Source, offset: u64) -> Option<T> {
    let mut bytes = vec![0; size_of::<T>()];
    let got = source.read_at(&mut bytes, offset).ok()?;
    (got == bytes.len()).then(|| from_bytes(&bytes).ok().map(|(found, _)| *found))?
}
