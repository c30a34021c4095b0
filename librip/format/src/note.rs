//! The ELF note that describes a site, and its parser.
//!
//! The parser loads nothing: its caller brings the bytes of a `PT_NOTE` segment.
//!
//! ```text
//! namesz = 7 | descsz = 36 | type          4 bytes each; type 1: a site, 2: an instance of librip, 3: a module with C
//! "librip\0" and a zero byte               8 bytes
//! descriptor                               36 bytes, see `Note`
//! ```
//!
//! Notes cost nothing at run time, survive `strip`, need no relocation at the program's start (all references are
//! distances), and `readelf -n` lists them. They are in a loaded segment, so a process can find its own notes with
//! `dl_iterate_phdr`. The recorder copies them into the ring, so the ring explains itself on another machine.
//! SystemTap's `sys/sdt.h` does the same with `.note.stapsdt`.

use core::mem::{offset_of, size_of};

use crate::OPERANDS_MAX;

/// The owner name of librip's notes, with its terminator.
pub const NOTE_NAME: &[u8; 7] = b"librip\0";
/// A note that describes a mark. Its descriptor is a [`Note`].
pub const NOTE_SITE: u32 = 1;
/// A note that refers to the anchor of an instance of librip. The first four bytes of its descriptor are the distance
/// from themselves to the anchor.
pub const NOTE_INSTANCE: u32 = 2;
/// A note that refers to the state of a module with marks in C, `librip_module_1`. Its descriptor is a distance, as
/// with [`NOTE_INSTANCE`].
pub const NOTE_MODULE: u32 = 3;
/// The owner name and the type of the note that holds a build id (`NT_GNU_BUILD_ID`).
pub const BUILD_ID_NOTE: (&[u8; 4], u32) = (b"GNU\0", 3);

/// The descriptor of a site's note, as the mark's assembly lays it out.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Note {
    /// The mark's PC minus the address of this field.
    pub pc_distance: i32,
    /// The text's address minus the address of this field.
    pub text_distance: i32,
    /// Length of the text, bytes: file, module path and label, separated by zero bytes.
    pub text_len_bytes: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 where there is none.
    pub column: u32,
    /// `KIND_*`.
    pub kind: u8,
    /// The number of operands of an event.
    pub operand_count: u8,
    /// `SITE_*`.
    pub flags: u16,
    /// `OPERAND_*` of each operand.
    pub operand_types: [u8; OPERANDS_MAX],
}

const _: () = assert!(size_of::<Note>() == 36, "the marks' assembly says 36");

/// A site, parsed from its note. Its addresses are relative to the same base as [`ElfNote::address`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedSite {
    /// Address of the mark's first instruction.
    pub pc: u64,
    /// Address of the text.
    pub text: u64,
    /// Length of the text, bytes.
    pub text_len_bytes: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 where there is none.
    pub column: u32,
    /// `KIND_*`.
    pub kind: u8,
    /// The number of operands of an event.
    pub operand_count: u8,
    /// `SITE_*`.
    pub flags: u16,
    /// `OPERAND_*` of each operand.
    pub operand_types: [u8; OPERANDS_MAX],
}

/// One note of a `PT_NOTE` segment.
#[derive(Clone, Copy, Debug)]
pub struct ElfNote<'a> {
    /// The owner, with its terminator.
    pub name: &'a [u8],
    /// The type, whose meaning depends on the owner.
    pub kind: u32,
    /// The descriptor.
    pub descriptor: &'a [u8],
    /// The descriptor's address.
    pub address: u64,
}

/// Iterates over the notes of a segment. Stops at bytes that are no note.
///
/// `bytes` start at `address`. `align_bytes` is the segment's alignment (4 or 8), which decides how notes are padded.
pub fn notes(bytes: &[u8], address: u64, align_bytes: u64) -> impl Iterator<Item = ElfNote<'_>> {
    let align = if align_bytes == 8 { 8 } else { 4 };
    let mut at = 0usize;
    core::iter::from_fn(move || {
        let name_len = u32_at(bytes, at)? as usize;
        let descriptor_len = u32_at(bytes, at.checked_add(4)?)? as usize;
        let kind = u32_at(bytes, at.checked_add(8)?)?;
        let name_at = at.checked_add(12)?;
        let name_end = name_at.checked_add(name_len)?;
        let descriptor_at = name_end.checked_next_multiple_of(align)?;
        let descriptor_end = descriptor_at.checked_add(descriptor_len)?;
        let note = ElfNote {
            name: bytes.get(name_at..name_end)?,
            kind,
            descriptor: bytes.get(descriptor_at..descriptor_end)?,
            address: address.checked_add(descriptor_at as u64)?,
        };
        at = descriptor_end.checked_next_multiple_of(align)?;
        Some(note)
    })
}

impl ElfNote<'_> {
    /// Returns the site that this note describes, if it is the note of a site.
    pub fn site(&self) -> Option<ParsedSite> {
        if self.name != NOTE_NAME || self.kind != NOTE_SITE || self.descriptor.len() < size_of::<Note>() {
            return None;
        }
        let byte = |at: usize| self.descriptor[at];
        let mut operand_types = [0; OPERANDS_MAX];
        operand_types
            .copy_from_slice(self.descriptor.get(offset_of!(Note, operand_types)..)?.get(..OPERANDS_MAX)?);
        Some(ParsedSite {
            pc: self.target(offset_of!(Note, pc_distance))?,
            text: self.target(offset_of!(Note, text_distance))?,
            text_len_bytes: u32_at(self.descriptor, offset_of!(Note, text_len_bytes))?,
            line: u32_at(self.descriptor, offset_of!(Note, line))?,
            column: u32_at(self.descriptor, offset_of!(Note, column))?,
            kind: byte(offset_of!(Note, kind)),
            operand_count: byte(offset_of!(Note, operand_count)),
            flags: u16::from_le_bytes([byte(offset_of!(Note, flags)), byte(offset_of!(Note, flags) + 1)]),
            operand_types,
        })
    }

    /// Returns the address of the anchor that this note refers to, if it is the note of an instance of librip.
    pub fn instance_anchor(&self) -> Option<u64> {
        if self.name != NOTE_NAME || self.kind != NOTE_INSTANCE {
            return None;
        }
        self.target(0)
    }

    /// Returns the address of the state that this note refers to, if it is the note of a module with marks in C.
    pub fn module_state(&self) -> Option<u64> {
        if self.name != NOTE_NAME || self.kind != NOTE_MODULE {
            return None;
        }
        self.target(0)
    }

    /// Returns the build id, if this note holds one.
    pub fn build_id(&self) -> Option<&[u8]> {
        (self.name == BUILD_ID_NOTE.0 && self.kind == BUILD_ID_NOTE.1).then_some(self.descriptor)
    }

    /// Returns the address to which the distance at offset `at` of the descriptor leads.
    fn target(&self, at: usize) -> Option<u64> {
        let distance = u32_at(self.descriptor, at)? as i32;
        Some(self.address.wrapping_add(at as u64).wrapping_add_signed(i64::from(distance)))
    }
}

/// Reads an integer of a little-endian ELF file.
fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}
