//! Calls in machine code: whether an address is one that a call returns to, and what that call calls.
//!
//! It decodes the instruction before an address. On x86-64 instructions have no fixed length, so bytes that look like
//! a call may be a part of something else: that an address can be a return address does not mean that it is one.
//!
//! From an address where an instruction begins, as that of a function, it decodes one instruction after the other.

use std::ops::Range;

use foldhash::HashMap;
use iced_x86::{Code as Opcode, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use read_rip_symbols::{target_aarch64, target_x86_64};

use super::argument::number;
use crate::target::{Architecture, Mapping, Memory};

/// The longest call instruction of x86-64 that is decoded, bytes.
const CALL_MAX_BYTES: u64 = 7;

/// No more of the code of a function is searched.
pub(crate) const FUNCTION_MAX_BYTES: u64 = 64 << 10;
/// In a loop that only tries something again, the jump back is at most so many bytes after the call.
const LOOP_MAX_BYTES: usize = 48;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Call {
    /// It calls the function at this address, or a stub of the linker that jumps to it.
    Direct(u64),
    /// It calls what the word at this address points to.
    Pointer(u64),
    /// It calls what a register says.
    Register,
}

/// What an instruction does, if it matters for the way through a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Call(Call),
    /// It loads a word that may have the address of a function, which is called next.
    Load(Call),
    /// It goes on there: always, or else behind this instruction.
    Jump {
        to: u64,
        is_certain: bool,
    },
    /// It goes on at one of several places in the function, by a table.
    Switch,
    /// It leaves the function.
    End,
    /// What comes next is not known: it jumps to what a register says, or it is no instruction that can be read.
    Elsewhere,
}

pub(super) struct Code<'m> {
    pub(super) memory: &'m dyn Memory,
    pub(super) architecture: Architecture,
    /// Ranges of executable memory, ascending.
    ranges: Vec<(u64, u64)>,
    calls: HashMap<u64, Option<Call>>,
    destinations: HashMap<Call, (u64, Option<u64>)>,
}

impl<'m> Code<'m> {
    pub(super) fn new(memory: &'m dyn Memory, architecture: Architecture, mappings: &[Mapping]) -> Code<'m> {
        let executable = mappings.iter().filter(|mapping| mapping.is_executable);
        let mut ranges: Vec<(u64, u64)> = executable.map(|mapping| (mapping.begin, mapping.end)).collect();
        ranges.sort_unstable();
        Code { memory, architecture, ranges, calls: HashMap::default(), destinations: HashMap::default() }
    }

    /// Whether an address is in executable memory.
    pub(super) fn contains(&self, address: u64) -> bool {
        let after = self.ranges.partition_point(|&(begin, _)| begin <= address);
        after.checked_sub(1).is_some_and(|last| address < self.ranges[last].1)
    }

    /// The call that returns to an address; `None` if the instruction before it is no call.
    ///
    /// `from_file` gives code that the memory does not have.
    pub(super) fn call_before(
        &mut self,
        return_address: u64,
        from_file: impl FnOnce(u64, usize) -> Option<Vec<u8>>,
    ) -> Option<Call> {
        // A call may be the last instruction of its range.
        if !self.contains(return_address.wrapping_sub(1)) {
            return None;
        }
        if let Some(&known) = self.calls.get(&return_address) {
            return known;
        }
        let begin = return_address.saturating_sub(CALL_MAX_BYTES);
        let mut code = [0; CALL_MAX_BYTES as usize];
        let is_read = self.memory.read(begin, &mut code).is_ok();
        if !is_read
            && let Some(bytes) = from_file(begin, code.len())
            && bytes.len() == code.len()
        {
            code.copy_from_slice(&bytes);
        }
        let call = match self.architecture {
            Architecture::X86_64 => call_x86_64(&code, return_address).filter(|&call| match call {
                Call::Direct(target) => self.contains(target),
                Call::Pointer(_) | Call::Register => true,
            }),
            Architecture::Aarch64 => call_aarch64(&code, return_address),
        };
        self.calls.insert(return_address, call);
        call
    }

    /// The function that a call calls. `None` for a call through a register, whose value is not known.
    pub(super) fn destination(&mut self, call: Call) -> Option<u64> {
        self.called(call).map(|(function, _)| function)
    }

    /// The function that a call calls, and the word that has the function's address, if one does. `None` for a call
    /// through a register.
    pub(super) fn called(&mut self, call: Call) -> Option<(u64, Option<u64>)> {
        if call == Call::Register {
            return None;
        }
        if let Some(&known) = self.destinations.get(&call) {
            return Some(known);
        }
        let called = match call {
            Call::Direct(target) => {
                let word = self.word_of_stub(target);
                (word.and_then(|word| self.memory.u64(word).ok()).unwrap_or(target), word)
            }
            Call::Pointer(word) => (self.memory.u64(word).ok()?, Some(word)),
            Call::Register => return None,
        };
        self.destinations.insert(call, called);
        Some(called)
    }

    /// The word with the address to which a stub of the linker jumps; `None` if this is no stub.
    fn word_of_stub(&self, address: u64) -> Option<u64> {
        match self.architecture {
            Architecture::X86_64 => stub_x86_64(&self.memory.bytes::<11>(address).ok()?, address),
            Architecture::Aarch64 => stub_aarch64(&self.memory.bytes::<8>(address).ok()?, address),
        }
    }

    /// What `call *%fs:OFFSET` or `call *OFFSET(REGISTER)` calls that returns to this address, if the structure of the
    /// thread is meant: glibc calls the function of a new thread so. `None` if there is no code's address.
    pub(super) fn start_routine(&self, return_address: u64, thread: u64) -> Option<u64> {
        if self.architecture != Architecture::X86_64 {
            return None;
        }
        let code: [u8; 8] = self.memory.bytes(return_address.checked_sub(8)?).ok()?;
        let offset = match code {
            [0x64, 0xff, 0x14, 0x25, offset @ ..] => offset,
            // The register is not the stack pointer.
            [_, _, 0xff, 0x90..=0x93 | 0x95..=0x97, offset @ ..] => offset,
            _ => return None,
        };
        let word = self.memory.u64(thread.checked_add(u32::from_le_bytes(offset).into())?).ok()?;
        self.contains(word).then_some(word)
    }

    /// Whether a jump shortly after the call that returns to this address leads back to the call, or before it, in its
    /// function.
    pub(super) fn leads_back(&self, return_address: u64, function: u64) -> bool {
        if self.architecture != Architecture::X86_64 {
            return false;
        }
        let Ok(code) = self.memory.bytes::<LOOP_MAX_BYTES>(return_address) else { return false };
        let leads_back =
            |step| matches!(step, Step::Jump { to, .. } if (function..return_address).contains(&to));
        steps_x86_64(&code, return_address).any(|(_, step)| leads_back(step))
    }

    /// The steps in a piece of code that begins with an instruction, each with the address after it, ascending.
    pub(super) fn steps(&self, code: &Range<u64>) -> Vec<(u64, Step)> {
        let bytes = self.piece(code);
        let mut steps: Vec<(u64, Step)> = match self.architecture {
            Architecture::X86_64 => steps_x86_64(&bytes, code.start).collect(),
            Architecture::Aarch64 => steps_aarch64(&bytes, code.start).collect(),
        };
        let is_cut = (bytes.len() as u64) < code.end.saturating_sub(code.start);
        steps.extend(is_cut.then_some((code.end, Step::Elsewhere)));
        steps
    }

    /// Code, as far as it can be read, and no more of it than a function has.
    pub(super) fn piece(&self, code: &Range<u64>) -> Vec<u8> {
        let len = code.end.saturating_sub(code.start).min(FUNCTION_MAX_BYTES);
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
        let read = self.memory.read_some(code.start, &mut bytes);
        bytes.truncate(read);
        bytes
    }

    /// Whether the instructions at an address end a signal handler: they call `rt_sigreturn`.
    pub(super) fn is_signal_return(&self, address: u64) -> bool {
        if !self.contains(address) {
            return false;
        }
        match self.architecture {
            // mov $15, %rax (or %eax); syscall
            Architecture::X86_64 => {
                let code: [u8; 9] = self.memory.bytes(address).unwrap_or_default();
                code == [0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05]
                    || code.starts_with(&[0xb8, 15, 0, 0, 0, 0x0f, 0x05])
            }
            // mov x8, #139; svc #0
            Architecture::Aarch64 => {
                let code: [u8; 8] = self.memory.bytes(address).unwrap_or_default();
                code == [0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4]
            }
        }
    }
}

/// The call whose last byte is the last of these.
fn call_x86_64(code: &[u8; CALL_MAX_BYTES as usize], return_address: u64) -> Option<Call> {
    if let Some(target) = target_x86_64(&code[2..], return_address) {
        return Some(Call::Direct(target));
    }
    // FF /2. The lengths of its operand follow from the byte after it.
    (2..=code.len()).find_map(|len| {
        let call = &code[code.len() - len..];
        let (mode, operand, register) = (call[1] >> 6, call[1] & 7, call[1] >> 3 & 7);
        if call[0] != 0xff || register != 2 {
            return None;
        }
        let has_index = mode != 3 && operand == 4;
        let is_absolute =
            mode == 0 && (operand == 5 || has_index && call.get(2).is_some_and(|&sib| sib & 7 == 5));
        let distance_len = match mode {
            1 => 1,
            2 => 4,
            0 if is_absolute => 4,
            _ => 0,
        };
        if len != 2 + usize::from(has_index) + distance_len {
            return None;
        }
        if mode == 0 && operand == 5 {
            let distance = i32::from_le_bytes(call[2..].try_into().ok()?);
            return Some(Call::Pointer(return_address.wrapping_add_signed(distance.into())));
        }
        Some(Call::Register)
    })
}

/// The steps of instructions at this address, up to bytes that are none.
fn steps_x86_64(code: &[u8], address: u64) -> impl Iterator<Item = (u64, Step)> + '_ {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let (mut is_lost, mut last, mut loaded) = (false, Instruction::default(), None);
    let instructions = std::iter::from_fn(move || {
        if is_lost || !decoder.can_decode() {
            return None;
        }
        loaded = after(&last, loaded);
        let before = std::mem::replace(&mut last, decoder.decode());
        is_lost = last.is_invalid();
        Some((before, loaded, last))
    });
    instructions.filter_map(|(before, loaded, instruction)| {
        let word = instruction.is_ip_rel_memory_operand().then(|| instruction.ip_rel_memory_address());
        let branch = instruction.op0_kind() == OpKind::NearBranch64;
        let to = instruction.near_branch64();
        let step = match (instruction.code(), word) {
            (Opcode::Call_rel32_64, _) => Step::Call(Call::Direct(to)),
            (Opcode::Call_rm64, Some(word)) => Step::Call(Call::Pointer(word)),
            (Opcode::Call_rm64, None) => {
                let word = loaded.filter(|(register, _)| *register == instruction.op0_register());
                Step::Call(word.map_or(Call::Register, |(_, word)| Call::Pointer(word)))
            }
            (Opcode::Mov_r64_rm64, Some(word)) => Step::Load(Call::Pointer(word)),
            (Opcode::Jmp_rel8_64 | Opcode::Jmp_rel32_64, _) => Step::Jump { to, is_certain: true },
            (Opcode::Retnq | Opcode::Ud2, _) => Step::End,
            // A table has distances from itself.
            (Opcode::Jmp_rm64, _) => {
                let of = instruction.op0_register();
                let is_sum = before.mnemonic() == Mnemonic::Add && before.op0_register() == of;
                if is_sum && of != Register::None { Step::Switch } else { Step::Elsewhere }
            }
            _ if instruction.is_invalid() => Step::Elsewhere,
            _ if branch => Step::Jump { to, is_certain: false },
            _ => return None,
        };
        Some((instruction.next_ip(), step))
    })
}

/// The register that has the value of a word after an instruction, and the address of the word. Code that is not
/// optimised loads the address of a function so, and then the arguments. `loaded`: the same before the instruction.
fn after(instruction: &Instruction, loaded: Option<(Register, u64)>) -> Option<(Register, u64)> {
    let of = instruction.op0_register();
    if instruction.code() == Opcode::Mov_r64_rm64 && instruction.is_ip_rel_memory_operand() {
        return Some((of, instruction.ip_rel_memory_address()));
    }
    let is_plain = matches!(
        instruction.mnemonic(),
        Mnemonic::Mov | Mnemonic::Lea | Mnemonic::Xor | Mnemonic::Movups | Mnemonic::Movaps | Mnemonic::Nop
    );
    let keeps = |&(register, _): &(Register, u64)| {
        instruction.op0_kind() != OpKind::Register
            || number(of).is_none_or(|to| Some(to.0) != number(register).map(|of| of.0))
    };
    let is_part = (Register::AL..=Register::R15W).contains(&of);
    loaded.filter(|loaded| is_plain && !is_part && keeps(loaded))
}

/// The same for aarch64: BL and BLR, B, B.cond, CBZ, CBNZ, TBZ and TBNZ, BR and RET.
fn steps_aarch64(code: &[u8], address: u64) -> impl Iterator<Item = (u64, Step)> + '_ {
    let words = code.as_chunks::<4>().0.iter().enumerate();
    words.filter_map(move |(at, word)| {
        let word = u32::from_le_bytes(*word);
        let begin = address.wrapping_add(4 * at as u64);
        let end = begin.wrapping_add(4);
        let to = |first: u32, bits: u32| {
            let distance = i64::from((word << (32 - first - bits)) as i32 >> (32 - bits));
            begin.wrapping_add_signed(4 * distance)
        };
        let step = match word >> 24 {
            0x14..=0x17 => Step::Jump { to: to(0, 26), is_certain: true },
            0x54 | 0x34 | 0x35 | 0xb4 | 0xb5 => Step::Jump { to: to(5, 19), is_certain: false },
            0x36 | 0x37 | 0xb6 | 0xb7 => Step::Jump { to: to(5, 14), is_certain: false },
            _ => match target_aarch64(word, end) {
                Some(target) => Step::Call(Call::Direct(target)),
                None if is_blr(word) => Step::Call(Call::Register),
                // BR and RET, also with a signed pointer.
                None if word & 0xfe9f_f000 == 0xd61f_0000 => Step::End,
                None => return None,
            },
        };
        Some((end, step))
    })
}

/// BL or BLR, also with a signed pointer.
fn call_aarch64(code: &[u8; CALL_MAX_BYTES as usize], return_address: u64) -> Option<Call> {
    let code = u32::from_le_bytes(code[3..].try_into().ok()?);
    if let Some(target) = target_aarch64(code, return_address) {
        return Some(Call::Direct(target));
    }
    is_blr(code).then_some(Call::Register)
}

fn is_blr(code: u32) -> bool {
    code & 0xffff_fc1f == 0xd63f_0000 || code & 0xfeff_f800 == 0xd63f_0800
}

/// `endbr64` or not, `bnd` or not, then a jump through a pointer: the pointer's address.
fn stub_x86_64(code: &[u8; 11], address: u64) -> Option<u64> {
    let mut at = if code.starts_with(&[0xf3, 0x0f, 0x1e, 0xfa]) { 4 } else { 0 };
    if code.get(at) == Some(&0xf2) {
        at += 1;
    }
    let jump = code.get(at..at + 6)?;
    let distance = i32::from_le_bytes(jump.strip_prefix(&[0xff, 0x25])?.try_into().ok()?);
    let next = address.wrapping_add(at as u64 + 6);
    Some(next.wrapping_add_signed(distance.into()))
}

/// `adrp x16, page; ldr x17, [x16, offset]`: the pointer's address.
fn stub_aarch64(code: &[u8; 8], address: u64) -> Option<u64> {
    let word = |at: usize| Some(u32::from_le_bytes(code.get(at..at + 4)?.try_into().ok()?));
    let (adrp, ldr) = (word(0)?, word(4)?);
    if adrp & 0x9f00_001f != 0x9000_0010 || ldr & 0xffc0_03ff != 0xf940_0211 {
        return None;
    }
    let pages = i64::from((adrp << 8) as i32 >> 13) << 2 | i64::from(adrp >> 29 & 3);
    let page = (address & !0xfff).wrapping_add_signed(pages << 12);
    Some(page.wrapping_add(u64::from(ldr >> 10 & 0xfff) * 8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waits::testing::Pieces;

    fn call(code: &[u8]) -> Option<Call> {
        let mut bytes = [0x90; CALL_MAX_BYTES as usize];
        bytes[CALL_MAX_BYTES as usize - code.len()..].copy_from_slice(code);
        call_x86_64(&bytes, 0x1000)
    }

    #[test]
    fn all_forms_of_a_call_of_x86_64_are_known() {
        assert_eq!(call(&[0xe8, 0x10, 0, 0, 0]), Some(Call::Direct(0x1010)));
        assert_eq!(call(&[0xff, 0x15, 0x10, 0, 0, 0]), Some(Call::Pointer(0x1010)));
        // call *%rax; *%r12; *(%rax); *(%r12); *8(%rax); *8(%rsp); *(%rax,%rbx,8); *0x1234(%rbx); *0x1234(%rsp);
        // *0x1234; *0x1234(,%rax,8)
        for code in [
            &[0xff, 0xd0][..],
            &[0x41, 0xff, 0xd4],
            &[0xff, 0x10],
            &[0x41, 0xff, 0x14, 0x24],
            &[0xff, 0x50, 8],
            &[0xff, 0x54, 0x24, 8],
            &[0xff, 0x14, 0xd8],
            &[0xff, 0x93, 0x34, 0x12, 0, 0],
            &[0xff, 0x94, 0x24, 0x34, 0x12, 0, 0],
            &[0xff, 0x14, 0x25, 0x34, 0x12, 0, 0],
            &[0xff, 0x14, 0xc5, 0x34, 0x12, 0, 0],
        ] {
            assert_eq!(call(code), Some(Call::Register), "{code:x?}");
        }
    }

    #[test]
    fn what_is_no_call_of_x86_64_is_none() {
        // jmp rel32; jmp *%rax; push %rax; inc (%rax); nops; a call with a byte too few or too many.
        for code in [
            &[0xe9, 0x10, 0, 0, 0][..],
            &[0xff, 0xe0],
            &[0xff, 0xf0],
            &[0xff, 0x00],
            &[],
            &[0xff, 0x50],
            &[0xff, 0x50, 8, 0x90],
            &[0xff, 0x15, 0x10, 0, 0],
        ] {
            assert_eq!(call(code), None, "{code:x?}");
        }
    }

    #[test]
    fn jumps_of_x86_64_are_known() {
        let steps = |code: &[u8]| steps_x86_64(code, 0x1000).collect::<Vec<_>>();
        let jump = |to, is_certain| Step::Jump { to, is_certain };
        // test %eax, %eax; jne .-12
        assert_eq!(steps(&[0x85, 0xc0, 0x75, 0xf4]), [(0x1004, jump(0xff8, false))]);
        // jmp .-4; je .+0x10; jmp .-0x100
        assert_eq!(steps(&[0xeb, 0xfa]), [(0x1002, jump(0xffc, true))]);
        assert_eq!(steps(&[0x0f, 0x84, 0x0a, 0, 0, 0]), [(0x1006, jump(0x1010, false))]);
        assert_eq!(steps(&[0xe9, 0xfb, 0xfe, 0xff, 0xff]), [(0x1005, jump(0xf00, true))]);
        // xor %eax, %eax; pop %rbx; ret
        assert_eq!(steps(&[0x31, 0xc0, 0x5b, 0xc3]), [(0x1004, Step::End)]);
        // jmp *%rax; then a byte that begins no instruction, and a jump.
        let unknown = |end| (end, Step::Elsewhere);
        assert_eq!(steps(&[0xff, 0xe0, 0x06, 0xeb, 0xfa]), [unknown(0x1002), unknown(0x1004)]);
        // add %rdx, %rax; jmp *%rax, and with notrack
        assert_eq!(steps(&[0x48, 0x01, 0xd0, 0xff, 0xe0]), [(0x1005, Step::Switch)]);
        assert_eq!(steps(&[0x48, 0x01, 0xd0, 0x3e, 0xff, 0xe0]), [(0x1006, Step::Switch)]);
    }

    /// A fifth of all calls of a debug build seemed to be in loops.
    #[test]
    fn bytes_within_an_instruction_are_no_jump() {
        // mov -0x10(%rbp), %esi; mov -0x8(%rbp), %edi; mov -0x18(%rbp), %ecx; vmovdqu -0x20(%rbp), %ymm6; ret
        let code = [0x8b, 0x75, 0xf0, 0x8b, 0x7d, 0xf8, 0x8b, 0x4d, 0xe8, 0xc5, 0xfe, 0x6f, 0x75, 0xe0, 0xc3];
        assert_eq!(steps_x86_64(&code, 0x1000).collect::<Vec<_>>(), [(0x100f, Step::End)]);
        // call *%rax; then the same. In a function that begins before it, there seemed to be jumps back to the call.
        let mut memory = Pieces::default();
        memory.0.insert(0x1000, [&[0x90; 0x40][..], &[0xff, 0xd0], &code, &[0x90; 64]].concat());
        let ranges = vec![(0x1000, 0x2000)];
        let (calls, destinations) = (HashMap::default(), HashMap::default());
        let own = Code { memory: &memory, architecture: Architecture::X86_64, ranges, calls, destinations };
        assert!(!own.leads_back(0x1042, 0x1000));
    }

    #[test]
    fn the_steps_of_a_function_are_known() {
        // nop; call .+0x105; mov 0x200(%rip), %rax; call *%rax; call *0x300(%rip); jmp to the first call.
        let mut code = vec![0x90, 0xe8, 0, 1, 0, 0, 0x48, 0x8b, 0x05, 0, 2, 0, 0, 0xff, 0xd0];
        code.extend([0xff, 0x15, 0, 3, 0, 0, 0xeb, 0xea]);
        let steps: Vec<_> = steps_x86_64(&code, 0x1000).collect();
        let expected = [
            (0x1006, Step::Call(Call::Direct(0x1106))),
            (0x100d, Step::Load(Call::Pointer(0x120d))),
            (0x100f, Step::Call(Call::Pointer(0x120d))),
            (0x1015, Step::Call(Call::Pointer(0x1315))),
            (0x1017, Step::Jump { to: 0x1001, is_certain: true }),
        ];
        assert_eq!(steps, expected);
        // The same, with `lea 8(%rbx), %rdi` before the call, and then with `lea 8(%rbx), %rax`.
        let called = |between: &[u8]| {
            let code = [&[0x48, 0x8b, 0x05, 0, 2, 0, 0], between, &[0xff, 0xd0]].concat();
            steps_x86_64(&code, 0x1000).last().map(|(_, step)| step)
        };
        assert_eq!(called(&[0x48, 0x8d, 0x7b, 8]), Some(Step::Call(Call::Pointer(0x1207))));
        assert_eq!(called(&[0x48, 0x8d, 0x43, 8]), Some(Step::Call(Call::Register)));
        // cltq
        assert_eq!(called(&[0x48, 0x98]), Some(Step::Call(Call::Register)));
    }

    #[test]
    fn steps_of_aarch64_are_known() {
        let step = |code: u32| steps_aarch64(&code.to_le_bytes(), 0x1000).next().map(|(_, step)| step);
        let jump = |to, is_certain| Some(Step::Jump { to, is_certain });
        // b .-4; b.ne .-8; cbz w0, .+16; tbnz w1, #3, .-16
        assert_eq!(step(0x17ff_ffff), jump(0xffc, true));
        assert_eq!(step(0x54ff_ffc1), jump(0xff8, false));
        assert_eq!(step(0x3400_0080), jump(0x1010, false));
        assert_eq!(step(0x371f_ff81), jump(0xff0, false));
        // bl .+8; blr x8; ret; br x8; retaa; add x0, x0, #1
        assert_eq!(step(0x9400_0002), Some(Step::Call(Call::Direct(0x1008))));
        assert_eq!(step(0xd63f_0100), Some(Step::Call(Call::Register)));
        for code in [0xd65f_03c0, 0xd61f_0100, 0xd65f_0bff] {
            assert_eq!(step(code), Some(Step::End), "{code:x}");
        }
        assert_eq!(step(0x9100_0400), None);
    }

    #[test]
    fn calls_of_aarch64_are_known() {
        let call = |code: u32| {
            let mut bytes = [0; CALL_MAX_BYTES as usize];
            bytes[3..].copy_from_slice(&code.to_le_bytes());
            call_aarch64(&bytes, 0x1004)
        };
        // bl .+8; blr x8; blraaz x8; blraa x8, x9; b .+8; br x8; ret
        assert_eq!(call(0x9400_0002), Some(Call::Direct(0x1008)));
        assert_eq!(call(0xd63f_0100), Some(Call::Register));
        assert_eq!(call(0xd63f_091f), Some(Call::Register));
        assert_eq!(call(0xd73f_0909), Some(Call::Register));
        for code in [0x1400_0002, 0xd61f_0100, 0xd65f_03c0] {
            assert_eq!(call(code), None, "{code:x}");
        }
    }

    #[test]
    fn stubs_of_the_linker_name_their_pointer() {
        let stub = |code: &[u8]| {
            let mut bytes = [0x90; 11];
            bytes[..code.len()].copy_from_slice(code);
            stub_x86_64(&bytes, 0x1000)
        };
        assert_eq!(stub(&[0xff, 0x25, 0x10, 0, 0, 0]), Some(0x1016));
        assert_eq!(stub(&[0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0x10, 0, 0, 0]), Some(0x101a));
        assert_eq!(stub(&[0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x10, 0, 0, 0]), Some(0x101b));
        assert_eq!(stub(&[0x55, 0x48, 0x89, 0xe5]), None);
        // adrp x16, .+0x11000; ldr x17, [x16, #0x18]
        let mut code = [0; 8];
        code[..4].copy_from_slice(&0xb000_0090_u32.to_le_bytes());
        code[4..].copy_from_slice(&0xf940_0e11_u32.to_le_bytes());
        assert_eq!(stub_aarch64(&code, 0x1008), Some(0x1000 + 0x11000 + 0x18));
    }
}
