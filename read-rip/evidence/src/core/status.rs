//! `NT_PRSTATUS`: the registers of a thread, and the system call that they show.
//!
//! # How the system call is known
//!
//! A thread that slept when the core was made was woken for it, and has not left the kernel since.
//!
//! * x86-64: `orig_rax` has the number of the call, and `rax` what it returned: that the call has to be started again
//!   (`ERESTARTSYS` and its like, which no program sees), or that it was interrupted (`EINTR`). Any other value is a
//!   result: the call was over. The arguments are in their registers.
//! * aarch64: the kernel has already set back the program counter to the instruction of the call, and `x0` to its first
//!   argument. If the call was interrupted, a note of its own has the number (`NT_ARM_SYSTEM_CALL`), and the first
//!   argument is lost.

use crate::target::{Architecture, Call, Registers};

const REGISTERS_AT: usize = 112;
const SIGNAL_AT: usize = 12;
const TID_AT: usize = 32;
const COUNT_X86_64: usize = 27;
const COUNT_AARCH64: usize = 34;

/// The results of a call that a signal has interrupted, as no program sees them: `ERESTARTSYS`, `ERESTARTNOINTR`,
/// `ERESTARTNOHAND`, `ERESTART_RESTARTBLOCK`; and `EINTR`.
const INTERRUPTED: [i64; 5] = [-512, -513, -514, -516, -(libc::EINTR as i64)];
/// `svc #0`.
const SUPERVISOR_CALL: u32 = 0xd400_0001;
/// What stands for an argument that is not known: no descriptor.
const LOST: u64 = u64::MAX;

/// A thread, as its note describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) tid: u32,
    /// The signal that ended it; 0 if none.
    pub(super) signal: i32,
    pub(super) registers: Registers,
    /// The number of a system call and its arguments, if the registers may show one.
    call: Option<(u64, [u64; 6])>,
    /// What `x0` says, on aarch64.
    result: i64,
}

impl Status {
    /// The bytes of a note that are read.
    pub(super) const fn len_bytes(architecture: Architecture) -> usize {
        let count = match architecture {
            Architecture::X86_64 => COUNT_X86_64,
            Architecture::Aarch64 => COUNT_AARCH64,
        };
        REGISTERS_AT + 8 * count
    }

    pub(super) fn read(note: &[u8], architecture: Architecture) -> Option<Status> {
        let note = note.get(..Status::len_bytes(architecture))?;
        let (words, _) = note.get(REGISTERS_AT..)?.as_chunks::<8>();
        let word = |at: usize| words.get(at).map_or(0, |&bytes| u64::from_le_bytes(bytes));
        let signal = i16::from_le_bytes([note[SIGNAL_AT], note[SIGNAL_AT + 1]]).into();
        let tid = u32::from_le_bytes(note.get(TID_AT..TID_AT + 4)?.try_into().ok()?);
        let (registers, call, result) = match architecture {
            Architecture::X86_64 => {
                // r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base ...
                let mut all = [0; 32];
                let by_dwarf = [10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0];
                for (register, at) in by_dwarf.into_iter().enumerate() {
                    all[register] = word(at);
                }
                let registers = Registers {
                    pc: word(16),
                    sp: word(19),
                    fp: Some(word(4)),
                    lr: None,
                    tls: Some(word(21)),
                    all: Some(all),
                };
                let number = word(15);
                let is_asleep = (number as i64) >= 0 && INTERRUPTED.contains(&(word(10) as i64));
                let arguments = [word(14), word(13), word(12), word(7), word(9), word(8)];
                (registers, is_asleep.then_some((number, arguments)), 0)
            }
            Architecture::Aarch64 => {
                let all: [u64; 32] = std::array::from_fn(word);
                let registers = Registers {
                    pc: word(32),
                    sp: word(31),
                    fp: Some(word(29)),
                    lr: Some(word(30)),
                    tls: None,
                    all: Some(all),
                };
                (registers, Some((word(8), std::array::from_fn(word))), word(0) as i64)
            }
        };
        Some(Status { tid, signal, registers, call, result })
    }

    /// The system call that it slept in. `code` is the instruction at the program counter, and `number` what the note
    /// about the system call says; both are for aarch64.
    pub(super) fn call(
        &self,
        architecture: Architecture,
        code: Option<u32>,
        number: Option<i32>,
    ) -> Option<Call> {
        let (known, mut arguments) = self.call?;
        let known = match architecture {
            Architecture::X86_64 => known,
            Architecture::Aarch64 if code == Some(SUPERVISOR_CALL) => known,
            Architecture::Aarch64 => {
                let number = number.and_then(|number| u64::try_from(number).ok())?;
                if !INTERRUPTED.contains(&self.result) {
                    return None;
                }
                arguments[0] = LOST;
                number
            }
        };
        Some(Call::new(architecture, known, arguments))
    }
}
