//! The executable and the libraries that the target has mapped, by their headers in its memory.
//!
//! The headers are the target's own, and may lie. Every number is checked, and no loop is longer than the file's
//! headers may be. The length and the time of a file are not in its memory.

use std::ops::Range;

use object::LittleEndian;
use object::elf::{
    ELFMAG, EM_AARCH64, EM_X86_64, FileHeader64, NT_GNU_BUILD_ID, PF_X, PT_DYNAMIC, PT_LOAD, PT_NOTE,
    ProgramHeader64, ProgramType,
};
use object::pod::{from_bytes, slice_from_all_bytes};
use read_rip_files::Module;

use super::{Mapping, Memory};

/// A program has about a dozen of them.
const PROGRAM_HEADERS_MAX: u16 = 512;
/// Notes of programs are shorter.
const NOTES_MAX_BYTES: u64 = 64 * 1024;
/// A build id is a hash.
const BUILD_ID_MAX_BYTES: usize = 64;

const LITTLE: LittleEndian = LittleEndian;

/// The modules of a target: each ELF file with code that is mapped from its beginning, and the kernel's own (`[vdso]`).
///
/// `entry` is the address at which the program began (`AT_ENTRY`): the module that has it is the executable. The
/// length and the time of the files are not known, nor is the process: they are 0.
pub(crate) fn modules_of(mappings: &[Mapping], memory: &dyn Memory, entry: Option<u64>) -> Vec<Module> {
    let mut modules = Vec::new();
    for (index, mapping) in mappings.iter().enumerate() {
        let Some(path) = mapping.path.as_ref().filter(|_| mapping.offset == 0) else { continue };
        // A file may be mapped several times. The ranges up to its next beginning are this time's.
        let next =
            mappings[index + 1..].iter().take_while(|next| next.offset != 0 || next.file != mapping.file);
        let mut own = std::iter::once(mapping).chain(next).filter(|own| own.file == mapping.file);
        let has_code = match mapping.file {
            Some(_) => own.any(|own| own.is_executable),
            // The kernel gives every process a small library of its own.
            None => path.as_os_str() == "[vdso]",
        };
        if !has_code {
            continue;
        }
        if let Some(mut module) = module_at(mapping.begin, memory) {
            module.path.clone_from(path);
            module.is_executable = entry.is_some_and(|entry| module.relative(entry).is_some());
            modules.push(module);
        }
    }
    modules
}

/// The segments of the module whose header is at an address.
fn segments_at(address: u64, memory: &dyn Memory) -> Option<Vec<ProgramHeader64<LittleEndian>>> {
    let header: [u8; size_of::<FileHeader64<LittleEndian>>()] = memory.bytes(address).ok()?;
    let (header, _) = from_bytes::<FileHeader64<LittleEndian>>(&header).ok()?;
    let machine = header.e_machine.get(LITTLE);
    let is_known = header.e_ident.magic == ELFMAG && [EM_X86_64, EM_AARCH64].contains(&machine);
    let count = header.e_phnum.get(LITTLE);
    let size = usize::from(header.e_phentsize.get(LITTLE));
    if !is_known || count > PROGRAM_HEADERS_MAX || size != size_of::<ProgramHeader64<LittleEndian>>() {
        return None;
    }
    let mut bytes = vec![0; usize::from(count) * size];
    memory.read(address.checked_add(header.e_phoff.get(LITTLE))?, &mut bytes).ok()?;
    slice_from_all_bytes(&bytes).ok().map(<[_]>::to_vec)
}

/// The actual addresses of the segment of a kind that a module has.
fn segment_of(module: &Module, kind: ProgramType, memory: &dyn Memory) -> Option<Range<u64>> {
    let segments = segments_at(module.load_bias.wrapping_add(module.begin), memory)?;
    let segment = segments.iter().find(|segment| segment.p_type.get(LITTLE) == kind)?;
    let begin = module.load_bias.wrapping_add(segment.p_vaddr.get(LITTLE));
    Some(begin..begin.checked_add(segment.p_memsz.get(LITTLE))?)
}

/// The actual addresses of what a module tells the loader.
pub(crate) fn dynamic_section(module: &Module, memory: &dyn Memory) -> Option<Range<u64>> {
    segment_of(module, PT_DYNAMIC, memory)
}

pub(crate) fn has_note(module: &Module, owner: &[u8; 4], memory: &dyn Memory) -> bool {
    let segments = segments_at(module.load_bias.wrapping_add(module.begin), memory).unwrap_or_default();
    let notes = segments.iter().filter(|segment| segment.p_type.get(LITTLE) == PT_NOTE);
    notes.filter_map(range_of).any(|notes| {
        let is_it = |note: &Note<'_>| note.owner == owner;
        note(&notes, module.load_bias, memory, is_it).is_some()
    })
}

fn module_at(address: u64, memory: &dyn Memory) -> Option<Module> {
    let segments = segments_at(address, memory)?;
    let loaded = || segments.iter().filter(|segment| segment.p_type.get(LITTLE) == PT_LOAD);
    // The segment with the header begins at `address`.
    let first = loaded().find(|segment| segment.p_offset.get(LITTLE) == 0)?;
    let load_bias = address.wrapping_sub(range_of(first)?.start);
    let all = span(loaded().filter_map(range_of))?;
    let code =
        span(loaded().filter(|segment| segment.p_flags.get(LITTLE).contains(PF_X)).filter_map(range_of))?;
    let notes = segments.iter().filter(|segment| segment.p_type.get(LITTLE) == PT_NOTE);
    let is_build_id = |note: &Note<'_>| {
        let is_long_enough = (1..=BUILD_ID_MAX_BYTES).contains(&note.description.len());
        note.kind == NT_GNU_BUILD_ID.0 && note.owner == b"GNU\0" && is_long_enough
    };
    let build_id = notes.filter_map(range_of).find_map(|notes| note(&notes, load_bias, memory, is_build_id));
    Some(Module {
        load_bias,
        begin: all.start,
        end: all.end,
        code,
        build_id: build_id.unwrap_or_default(),
        ..Module::default()
    })
}

/// The range that covers all of these.
fn span(ranges: impl Iterator<Item = Range<u64>>) -> Option<Range<u64>> {
    ranges.reduce(|all, range| all.start.min(range.start)..all.end.max(range.end))
}

/// The module-relative addresses of a segment.
fn range_of(segment: &ProgramHeader64<LittleEndian>) -> Option<Range<u64>> {
    let begin = segment.p_vaddr.get(LITTLE);
    Some(begin..begin.checked_add(segment.p_memsz.get(LITTLE))?)
}

struct Note<'a> {
    owner: &'a [u8],
    kind: u32,
    description: &'a [u8],
}

/// The description of the first note in a segment that is the wanted one.
fn note(
    notes: &Range<u64>,
    load_bias: u64,
    memory: &dyn Memory,
    is_wanted: impl Fn(&Note<'_>) -> bool,
) -> Option<Vec<u8>> {
    let mut bytes = vec![0; (notes.end - notes.start).min(NOTES_MAX_BYTES) as usize];
    memory.read(load_bias.wrapping_add(notes.start), &mut bytes).ok()?;
    let mut rest = bytes.as_slice();
    while let Some((header, after)) = rest.split_at_checked(12) {
        let word = |index: usize| {
            u32::from_le_bytes([header[index], header[index + 1], header[index + 2], header[index + 3]])
        };
        let (owner_len, len, kind) = (word(0) as usize, word(4) as usize, word(8));
        let (owner, after) = after.split_at_checked(owner_len.checked_next_multiple_of(4)?)?;
        let note = Note { owner: owner.get(..owner_len)?, kind, description: after.get(..len)? };
        if is_wanted(&note) {
            return Some(note.description.to_vec());
        }
        rest = after.get(len.checked_next_multiple_of(4)?..).unwrap_or_default();
    }
    None
}
