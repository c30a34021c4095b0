//! What the kernel leaves on the stack for a signal handler: the registers of the function that it interrupted.
//!
//! This is for C libraries whose trampolines have no unwind table, such as musl. The layouts are those of the kernel's
//! `struct rt_sigframe` (`arch/x86/include/asm/sigframe.h`, `arch/arm64/kernel/signal.c`).

use super::registers::{Convention, RegisterFile};
use crate::target::Architecture;

/// `uc_mcontext` in `struct ucontext` of x86-64, at which the stack pointer points in the trampoline.
const X86_64_REGISTERS: u64 = 40;
/// The order of the registers there, by their DWARF numbers; the last one is the program counter.
const X86_64_ORDER: [u16; 17] = [8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16];
/// `siginfo`, then `uc_mcontext` in `struct ucontext`, then the fault address, on aarch64.
const AARCH64_REGISTERS: u64 = 128 + 176 + 8;

/// The interrupted function: its program counter and its registers.
pub(super) fn interrupted(
    architecture: Architecture,
    registers: &RegisterFile,
    word: &mut dyn FnMut(u64) -> Option<u64>,
) -> Option<(u64, RegisterFile)> {
    let convention = Convention::of(architecture);
    let sp = registers.get(convention.sp)?;
    let mut found = RegisterFile::new();
    let mut at = |place: u64, index: usize| word(sp.checked_add(place)?.checked_add(8 * index as u64)?);
    let pc = match architecture {
        Architecture::X86_64 => {
            for (index, &register) in X86_64_ORDER.iter().enumerate() {
                found.set(register, Some(at(X86_64_REGISTERS, index)?));
            }
            found.get(convention.ra)?
        }
        Architecture::Aarch64 => {
            for register in 0..=convention.sp {
                found.set(register, Some(at(AARCH64_REGISTERS, register.into())?));
            }
            at(AARCH64_REGISTERS, 32)?
        }
    };
    Some((pc, found))
}
