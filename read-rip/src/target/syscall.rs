//! The system call that a thread sleeps in, and its arguments.
//!
//! Numbers differ between processors; the kinds do not. The tables follow the kernel's `syscall_64.tbl` (x86-64) and
//! `include/uapi/asm-generic/unistd.h` (aarch64).

/// The processor that a target was built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// x86-64.
    X86_64,
    /// aarch64.
    Aarch64,
}

impl Architecture {
    /// The one of this program; `None` if it is another.
    pub const fn own() -> Option<Architecture> {
        if cfg!(target_arch = "x86_64") {
            Some(Architecture::X86_64)
        } else if cfg!(target_arch = "aarch64") {
            Some(Architecture::Aarch64)
        } else {
            None
        }
    }
}

/// A system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number.
    pub number: u64,
    /// Its arguments.
    pub arguments: [u64; 6],
    /// What it is for.
    pub kind: CallKind,
}

/// What a system call that can sleep is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// `futex`: arguments are address, operation, value.
    Futex,
    /// Any other.
    Other,
}
