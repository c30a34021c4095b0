//! The registers of one frame, by their DWARF numbers, as far as they are known.

use crate::target::Architecture;

/// x86-64 has 17 registers that count here, aarch64 32.
const COUNT: usize = 33;

/// The values of registers. A register without a value is not known.
#[derive(Clone, Copy, Debug)]
pub struct RegisterFile {
    known: u64,
    values: [u64; COUNT],
}

impl RegisterFile {
    /// Nothing is known.
    pub(super) fn new() -> RegisterFile {
        RegisterFile { known: 0, values: [0; COUNT] }
    }

    pub(super) fn get(&self, register: u16) -> Option<u64> {
        let value = *self.values.get(usize::from(register))?;
        (self.known >> register & 1 == 1).then_some(value)
    }

    /// Sets a register, or forgets it. Other registers, such as those of vectors, are not kept.
    pub(super) fn set(&mut self, register: u16, value: Option<u64>) {
        let Some(place) = self.values.get_mut(usize::from(register)) else { return };
        *place = value.unwrap_or(0);
        self.known = self.known & !(1 << register) | u64::from(value.is_some()) << register;
    }
}

/// What the calling convention says about registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Convention {
    /// How many general registers there are. They have the first numbers.
    pub(super) general: u16,
    pub(super) sp: u16,
    pub(super) fp: u16,
    /// Where the return address is; on x86-64 the program counter itself.
    pub(super) ra: u16,
    /// The registers that a function leaves as they were, a bit for each.
    pub(super) preserved: u64,
    /// The bits of a return address that are the address. On aarch64 others may have its signature.
    pub(super) address_bits: u64,
    /// What an address of the stack is a multiple of, before a call.
    pub(super) alignment: u64,
}

impl Convention {
    pub(super) fn of(architecture: Architecture) -> Convention {
        match architecture {
            Architecture::X86_64 => Convention {
                general: 16,
                sp: 7,
                fp: 6,
                ra: 16,
                preserved: 1 << 3 | 1 << 6 | 0b1111 << 12,
                address_bits: u64::MAX,
                alignment: 16,
            },
            Architecture::Aarch64 => Convention {
                general: 32,
                sp: 31,
                fp: 29,
                ra: 30,
                preserved: 0b111_1111_1111 << 19,
                address_bits: (1 << 48) - 1,
                alignment: 16,
            },
        }
    }
}
