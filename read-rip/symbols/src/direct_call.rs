//! Direct calls: which function the instruction before a return address calls, and where a function begins.
//!
//! A word of a stack may be a return address, or be left over. It is taken for one only if the instruction before it
//! calls the function in question. A call through a word that the loader fills in, and nobody changes, counts as one.
//! Calls through other pointers name no function, so they prove nothing. Calls of functions of other modules are in
//! `imports`. Where functions begin, the symbol table says, or the unwind tables, which `strip` keeps.

use gimli::{BaseAddresses, CieOrFde, EhFrame, EndianSlice, RunTimeEndian, UnwindSection};
use object::Endianness;
use object::elf::{EM_AARCH64, EM_X86_64};

use super::elf::Image;

/// The target of the direct call that returns to a module-relative address.
pub(super) fn target(image: &Image, return_address: u64) -> Option<u64> {
    match image.machine {
        EM_X86_64 => {
            let code = image.loaded(return_address.checked_sub(5)?, 5)?;
            target_x86_64(&code, return_address)
        }
        EM_AARCH64 => {
            let code = image.loaded(return_address.checked_sub(4)?, 4)?;
            target_aarch64(u32::from_le_bytes(code.try_into().ok()?), return_address)
        }
        _ => None,
    }
}

/// The word that has the target of the call that returns to a module-relative address: CALL [RIP+disp32]. So a compiler
/// calls a function that may be in another module, where the linker has filled in one of this module.
pub(super) fn slot(image: &Image, return_address: u64) -> Option<u64> {
    if image.machine != EM_X86_64 {
        return None;
    }
    slot_x86_64(&image.loaded(return_address.checked_sub(6)?, 6)?, return_address)
}

/// The word with the target of CALL [RIP+disp32], by its six bytes.
fn slot_x86_64(code: &[u8], return_address: u64) -> Option<u64> {
    let (opcode, distance) = code.split_at_checked(2)?;
    let distance = i32::from_le_bytes(distance.try_into().ok()?);
    (opcode == [0xff, 0x15]).then(|| return_address.wrapping_add_signed(distance.into()))
}

/// The target of CALL rel32, by its five bytes.
pub fn target_x86_64(code: &[u8], return_address: u64) -> Option<u64> {
    let (&opcode, distance) = code.split_first()?;
    let distance = i32::from_le_bytes(distance.try_into().ok()?);
    (opcode == 0xe8).then(|| return_address.wrapping_add_signed(distance.into()))
}

/// The target of BL imm26, which counts instructions.
pub fn target_aarch64(code: u32, return_address: u64) -> Option<u64> {
    let distance = i64::from((code << 6) as i32 >> 6) * 4;
    (code >> 26 == 0b10_0101).then(|| return_address.wrapping_sub(4).wrapping_add_signed(distance))
}

/// The functions of a file by its unwind tables.
#[derive(Debug, Default)]
pub(super) struct Unwinds {
    /// Begin and end, ascending.
    functions: Vec<(u64, u64)>,
}

impl Unwinds {
    /// Reads `.eh_frame`. What follows a damaged entry is not read.
    pub(super) fn read(image: &Image) -> Unwinds {
        let Some((address, bytes)) = image.placed_section(".eh_frame") else { return Unwinds::default() };
        let endian = match image.endian {
            Endianness::Little => RunTimeEndian::Little,
            Endianness::Big => RunTimeEndian::Big,
        };
        let table = EhFrame::from(EndianSlice::new(&bytes, endian));
        let bases = BaseAddresses::default().set_eh_frame(address);
        let mut entries = table.entries(&bases);
        let mut functions = Vec::new();
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else { continue };
            if let Ok(function) = partial.parse(EhFrame::cie_from_offset) {
                functions.push((function.initial_address(), function.end_address()));
            }
        }
        functions.sort_unstable();
        Unwinds { functions }
    }

    /// Where the function begins that a module-relative address is in.
    pub(super) fn begin(&self, address: u64) -> Option<u64> {
        let after = self.functions.partition_point(|&(begin, _)| begin <= address);
        let &(begin, end) = self.functions[..after].last()?;
        (address < end).then_some(begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direct_call_names_its_target() {
        assert_eq!(target_x86_64(&[0xe8, 0xfb, 0xff, 0xff, 0xff], 0x1005), Some(0x1000));
        assert_eq!(target_x86_64(&[0xe8, 0x10, 0, 0, 0], 0x1005), Some(0x1015));
        assert_eq!(slot_x86_64(&[0xff, 0x15, 0x10, 0, 0, 0], 0x1006), Some(0x1016));
        // `bl .+8` and `bl .-4`.
        assert_eq!(target_aarch64(0x9400_0002, 0x1004), Some(0x1008));
        assert_eq!(target_aarch64(0x97ff_ffff, 0x1004), Some(0xffc));
    }

    #[test]
    fn a_jump_or_a_call_through_a_pointer_names_none() {
        assert_eq!(target_x86_64(&[0xe9, 0x10, 0, 0, 0], 0x1005), None);
        assert_eq!(target_x86_64(&[0x90, 0x90, 0x90, 0xff, 0xd0], 0x1005), None);
        // `call *0x20(%rax)`, whose target is in memory of the program.
        assert_eq!(slot_x86_64(&[0x90, 0x90, 0x90, 0xff, 0x50, 0x20], 0x1006), None);
        // `b .+8` and `blr x0`.
        assert_eq!(target_aarch64(0x1400_0002, 0x1004), None);
        assert_eq!(target_aarch64(0xd63f_0000, 0x1004), None);
    }
}
