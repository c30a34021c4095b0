//! The first argument of a call that a function has made, by its code and by what is left of its registers.
//!
//! # Method
//!
//! The instructions before the call are carried out, from the last place on to which a jump may lead. What a function
//! leaves as it was for its caller counts as it is now, as do its variables on the stack.
//!
//! # Blind spots
//!
//! A register or a variable that has changed since the call gives another value. An instruction that is not one of few
//! gives none. Only code of x86-64 is read.

use foldhash::HashSet;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

use super::registers::RegisterFile;
use crate::target::Memory;

/// How many general registers there are.
const COUNT: usize = 16;
/// Their DWARF numbers, in the order of the processor.
const DWARF: [u16; COUNT] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];
/// `rax` and `rdi`, in the order of the processor.
const RAX: usize = 0;
const RDI: usize = 7;
/// Whether a function leaves a register as it was: `rbx`, `rsp`, `rbp`, and `r12` to `r15`.
const IS_KEPT: [bool; COUNT] = {
    let (no, yes) = (false, true);
    [no, no, no, yes, yes, yes, no, no, no, no, no, no, yes, yes, yes, yes]
};

/// The first argument of the call that returns to an address, in a piece of code that begins at another one.
/// `registers`: those of the function, while it waits for a later call to return.
pub(super) fn first_argument(
    code: &[u8],
    begin: u64,
    return_address: u64,
    registers: &RegisterFile,
    memory: &dyn Memory,
) -> Option<u64> {
    let all = || Decoder::with_ip(64, code, begin, DecoderOptions::NONE).into_iter();
    let jumps = all().filter(|of| of.op0_kind() == OpKind::NearBranch64);
    let targets: HashSet<u64> = jumps.map(|of| of.near_branch64()).collect();
    let mut state = State { values: [None; COUNT], memory };
    for (value, (dwarf, is_kept)) in state.values.iter_mut().zip(DWARF.into_iter().zip(IS_KEPT)) {
        *value = registers.get(dwarf).filter(|_| is_kept);
    }
    for instruction in all().take_while(|of| !of.is_invalid() && of.ip() < return_address) {
        if targets.contains(&instruction.ip()) {
            state.forget();
        }
        if instruction.next_ip() == return_address {
            return state.values[RDI];
        }
        state.step(&instruction);
    }
    None
}

/// What is known of the registers at one place.
struct State<'m> {
    values: [Option<u64>; COUNT],
    memory: &'m dyn Memory,
}

impl State<'_> {
    /// Forgets what a function does not keep.
    fn forget(&mut self) {
        let values = self.values.iter_mut().zip(IS_KEPT);
        values.filter(|&(_, is_kept)| !is_kept).for_each(|(value, _)| *value = None);
    }

    fn step(&mut self, of: &Instruction) {
        let branches = of.op0_kind() == OpKind::NearBranch64;
        match of.mnemonic() {
            Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Nop | Mnemonic::Endbr64 | Mnemonic::Push => {}
            Mnemonic::Cdqe => self.values[RAX] = self.values[RAX].map(sign_extended),
            Mnemonic::Call | Mnemonic::Jmp | Mnemonic::Ret => self.forget(),
            _ if branches => {}
            // The last instructions of a function give the caller its registers back.
            Mnemonic::Pop if number(of.op0_register()).is_some_and(|(at, _)| IS_KEPT[at]) => {}
            Mnemonic::Pop | Mnemonic::Xchg | Mnemonic::Cmpxchg | Mnemonic::Xadd => self.forget(),
            _ if of.op_count() == 2 && of.op0_kind() == OpKind::Register => self.assign(of),
            // Memory is as it is now.
            _ if of.op_count() == 2 => {}
            _ => self.forget(),
        }
    }

    /// An instruction whose result is in its first operand, a register.
    fn assign(&mut self, of: &Instruction) {
        let Some((register, is_wide)) = number(of.op0_register()) else {
            // A vector, or a part of a register.
            let is_part = (Register::AL..=Register::R15W).contains(&of.op0_register());
            return if is_part {
                self.forget()
            };
        };
        if IS_KEPT[register] {
            // What it gets is in the other register too.
            let other = number(of.op1_register()).filter(|_| of.mnemonic() == Mnemonic::Mov);
            if let Some((other, true)) = other.filter(|&(other, _)| !IS_KEPT[other]) {
                self.values[other] = self.values[register];
            }
            return;
        }
        let (own, source) = (self.values[register], self.source(of, is_wide));
        let both = own.zip(source);
        let value = match of.mnemonic() {
            Mnemonic::Mov => source,
            Mnemonic::Movsxd => self.source(of, false).map(sign_extended),
            Mnemonic::Lea => self.address(of),
            Mnemonic::Add => both.map(|(own, other)| own.wrapping_add(other)),
            Mnemonic::Sub => both.map(|(own, other)| own.wrapping_sub(other)),
            Mnemonic::Shl | Mnemonic::Sal => both.map(|(own, by)| own.wrapping_shl(by as u32)),
            Mnemonic::Xor if of.op0_register() == of.op1_register() => Some(0),
            _ => None,
        };
        self.values[register] = value.map(|value| if is_wide { value } else { u64::from(value as u32) });
    }

    /// The value of the second operand.
    fn source(&self, of: &Instruction, is_wide: bool) -> Option<u64> {
        match of.op1_kind() {
            OpKind::Register => self.values[number(of.op1_register())?.0],
            OpKind::Memory if is_wide => self.memory.u64(self.address(of)?).ok(),
            OpKind::Memory => {
                self.memory.bytes(self.address(of)?).ok().map(u32::from_le_bytes).map(u64::from)
            }
            _ => of.try_immediate(1).ok(),
        }
    }

    /// The address of the operand in memory.
    fn address(&self, of: &Instruction) -> Option<u64> {
        if of.is_ip_rel_memory_operand() {
            return Some(of.ip_rel_memory_address());
        }
        let value = |register: Register| match register {
            Register::None => Some(0),
            register => self.values[number(register)?.0],
        };
        let is_of_thread = of.has_segment_prefix();
        let index = value(of.memory_index())?.wrapping_mul(of.memory_index_scale().into());
        let address = value(of.memory_base())?.wrapping_add(index).wrapping_add(of.memory_displacement64());
        (!is_of_thread).then_some(address)
    }
}

/// The number of a general register for the processor, and whether all 64 bits of it are meant, or 32.
pub(super) fn number(register: Register) -> Option<(usize, bool)> {
    let from = |first: Register| (register as usize).checked_sub(first as usize).filter(|&at| at < COUNT);
    from(Register::RAX).map(|at| (at, true)).or_else(|| Some((from(Register::EAX)?, false)))
}

fn sign_extended(value: u64) -> u64 {
    i64::from(value as i32) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waits::testing::Pieces;

    const BEGIN: u64 = 0x1000;

    /// The first argument of the call with which the code ends, in a function whose `rbp` is 0x7000 and whose `rbx` is
    /// 0x9000.
    fn argument(code: &[u8]) -> Option<u64> {
        let mut registers = RegisterFile::new();
        registers.set(6, Some(0x7000));
        registers.set(3, Some(0x9000));
        registers.set(5, Some(0x1234));
        let memory = Pieces([(0x6fe0, [2, 0, 0, 0, 0xff, 0xff, 0xff, 0xff].to_vec())].into());
        let call = [0xe8, 0, 0, 0, 0];
        let whole = [code, &call].concat();
        first_argument(&whole, BEGIN, BEGIN + whole.len() as u64, &registers, &memory)
    }

    #[test]
    fn the_code_before_a_call_says_its_first_argument() {
        // lea 0x2000(%rip), %rdi
        assert_eq!(argument(&[0x48, 0x8d, 0x3d, 0, 0x20, 0, 0]), Some(0x3007));
        // lea 0x20(%rbx), %rdi
        assert_eq!(argument(&[0x48, 0x8d, 0x7b, 0x20]), Some(0x9020));
        // mov $0x404040, %edi
        assert_eq!(argument(&[0xbf, 0x40, 0x40, 0x40, 0]), Some(0x40_4040));
        // mov -0x20(%rbp), %eax; cltq; shl $5, %rax; mov %rax, %rdx; lea 0x2000(%rip), %rax; add %rdx, %rax;
        // mov %rax, %rdi: an element of an array, without optimisation
        let element = [
            0x8b, 0x45, 0xe0, 0x48, 0x98, 0x48, 0xc1, 0xe0, 5, 0x48, 0x89, 0xc2, 0x48, 0x8d, 5, 0, 0x20, 0,
            0, 0x48, 1, 0xd0, 0x48, 0x89, 0xc7,
        ];
        assert_eq!(argument(&element), Some(0x1013 + 0x2000 + 64));
    }

    #[test]
    fn a_register_that_is_kept_says_what_it_was_made_of() {
        // mov %rdi, %rbx
        assert_eq!(argument(&[0x48, 0x89, 0xfb]), Some(0x9000));
        // mov %rbx, %rdi; pop %rbx; pop %rbp
        assert_eq!(argument(&[0x48, 0x89, 0xdf, 0x5b, 0x5d]), Some(0x9000));
    }

    #[test]
    fn what_is_not_known_is_no_argument() {
        assert_eq!(argument(&[0x90]), None, "the register of the caller's argument is not kept");
        // mov %rbx, %rdi; call: the call may have changed it.
        assert_eq!(argument(&[0x48, 0x89, 0xdf, 0xe8, 0, 0, 0, 0]), None);
        // mov %rbx, %rdi; imul %rax, %rdi
        assert_eq!(argument(&[0x48, 0x89, 0xdf, 0x48, 0x0f, 0xaf, 0xf8]), None);
        // je over; mov %rbx, %rdi; over: what it was if it jumped is not known.
        assert_eq!(argument(&[0x74, 3, 0x48, 0x89, 0xdf]), None);
    }
}
