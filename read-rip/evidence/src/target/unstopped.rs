//! Why threads were not stopped although the user asked for it, and what would help.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why the kernel does not let this reader stop threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unstopped {
    /// They have a tracer: its pid.
    Traced(u32),
    /// The kernel refuses it: rights are missing, or `kernel.yama.ptrace_scope` or a filter forbids it.
    Refused,
    /// This reader failed, for this reason.
    Failed(String),
}

impl Unstopped {
    /// What the user can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Unstopped::Traced(_) => "end that debugger or tracer first, or leave out --stop",
            Unstopped::Refused => {
                "run read-rip as root or with CAP_SYS_PTRACE, or write 0 to /proc/sys/kernel/yama/ptrace_scope; in a \
                 container, allow the system call ptrace; or leave out --stop"
            }
            Unstopped::Failed(_) => "leave out --stop",
        }
    }
}

impl fmt::Display for Unstopped {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("read-rip could not stop threads, so stacks may be missing or inferred: ")?;
        match self {
            Unstopped::Traced(tracer) => {
                write!(out, "process {tracer} traces them already")
            }
            Unstopped::Refused => out.write_str("the kernel does not let this user trace the process"),
            Unstopped::Failed(why) => out.write_str(why),
        }
    }
}
