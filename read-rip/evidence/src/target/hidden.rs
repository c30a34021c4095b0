//! Why a part of a target cannot be read, and what would help.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why the memory, the mappings and the system calls of a target cannot be read. The states and names of its threads
/// can.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hidden {
    /// It belongs to another user; the user's id.
    OtherUser(u32),
    /// It is not dumpable: it has gained rights (set-user-id, capabilities of its file), or it asked for that.
    NotDumpable,
    /// `/proc/sys/kernel/yama/ptrace_scope` has this value.
    PtraceScope(u8),
    /// The kernel refuses, for none of these reasons: a user namespace, capabilities, a security module.
    Refused,
    /// It did not answer: see [`patience`](crate::patience).
    Silent,
    /// It runs instructions of another processor, or of a 32-bit one.
    OtherArchitecture(String),
}

impl Hidden {
    /// Whether root may look.
    pub fn root_may(&self) -> bool {
        !matches!(self, Hidden::PtraceScope(3..) | Hidden::Silent | Hidden::OtherArchitecture(_))
    }

    /// What the user can do about it; `None` if nothing would help.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Hidden::OtherUser(_) => Some("run read-rip as that user or as root"),
            Hidden::NotDumpable | Hidden::Refused => Some("run read-rip as root, outside of the container"),
            Hidden::PtraceScope(0..=2) => Some(
                "run read-rip as root, or with CAP_SYS_PTRACE, or write 0 to /proc/sys/kernel/yama/ptrace_scope",
            ),
            Hidden::PtraceScope(_) => Some("restart the machine with a lower kernel.yama.ptrace_scope"),
            Hidden::Silent => {
                Some("look for a file system that does not answer (FUSE, NFS) among what it has mapped")
            }
            Hidden::OtherArchitecture(_) => None,
        }
    }
}

impl fmt::Display for Hidden {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hidden::OtherUser(uid) => write!(out, "the process belongs to another user ({uid})"),
            Hidden::NotDumpable => {
                out.write_str("only root may read the process: it has gained rights, or asked for protection")
            }
            Hidden::PtraceScope(scope) => {
                write!(out, "kernel.yama.ptrace_scope is {scope}, so only a tracer may read the process")
            }
            Hidden::Silent => {
                out.write_str("its memory did not answer within 2 s: a thread of it keeps it locked")
            }
            Hidden::Refused => out.write_str("the kernel does not let this user look into the process"),
            Hidden::OtherArchitecture(found) => {
                write!(out, "the process runs {found} code, which this program does not understand")
            }
        }
    }
}
