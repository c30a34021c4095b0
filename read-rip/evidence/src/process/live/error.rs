//! Why a process cannot be looked at.

use std::fmt;

/// A process that cannot be looked at. The pids are those of this reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// There is no process with this pid.
    NoProcess { pid: u32 },
    /// Several processes of containers have this pid there, and none has it here.
    Ambiguous {
        pid: u32,
        /// Their pids here.
        found: Vec<u32>,
    },
    /// There is one, and `/proc` does not show it to this reader.
    Invisible { pid: u32 },
    KernelThread {
        pid: u32,
        /// Its name; may contain anything.
        name: String,
    },
    /// It has ended, and its parent has not asked for its status yet.
    Zombie {
        pid: u32,
        /// Its name; may contain anything.
        name: String,
        /// The pid of its parent; 0 if this reader cannot know it.
        parent: u32,
    },
    /// It runs instructions that this program does not understand.
    OtherArchitecture {
        pid: u32,
        /// Which, for people.
        found: String,
    },
    /// It has ended while it was read.
    Ended { pid: u32 },
    /// The system refused to read its files in `/proc`.
    System {
        pid: u32,
        /// What the system said.
        reason: String,
    },
}

impl Error {
    /// It did not answer.
    pub fn silent(pid: u32) -> Error {
        Error::System { pid, reason: "it did not answer".to_owned() }
    }

    /// What the user can do about it; `None` if nothing would help.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Error::NoProcess { .. } => Some("`ps -e` lists processes"),
            Error::Ambiguous { .. } => Some("give the pid that the process has here"),
            Error::Invisible { .. } => Some("run read-rip as root: /proc may be mounted with hidepid"),
            Error::KernelThread { .. } | Error::OtherArchitecture { .. } => None,
            Error::Zombie { .. } => Some("look at its parent, which has not waited for it"),
            Error::Ended { .. } => None,
            Error::System { .. } => Some("is /proc mounted, and are there free file descriptors?"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoProcess { pid } => write!(out, "there is no process {pid}"),
            Error::Ambiguous { pid, found } => {
                write!(
                    out,
                    "{} processes of containers have the pid {pid} there; here they have",
                    found.len()
                )?;
                for (index, found) in found.iter().enumerate() {
                    write!(out, "{} {found}", if index == 0 { "" } else { "," })?;
                }
                Ok(())
            }
            Error::Invisible { pid } => {
                write!(out, "process {pid} exists, but /proc does not show it to this user")
            }
            Error::KernelThread { pid, name } => {
                write!(out, "process {pid} ({name}) is a thread of the kernel, not a program")
            }
            Error::Zombie { pid, name, parent } => {
                write!(out, "process {pid} ({name}) has ended")?;
                match parent {
                    0 => out.write_str(", and its parent has not waited for it yet"),
                    parent => write!(out, ", and its parent {parent} has not waited for it yet"),
                }
            }
            Error::OtherArchitecture { pid, found } => {
                write!(out, "process {pid} runs {found} code, which is not supported")
            }
            Error::Ended { pid } => write!(out, "process {pid} ended while it was read"),
            Error::System { pid, reason } => write!(out, "process {pid} cannot be read: {reason}"),
        }
    }
}

impl std::error::Error for Error {}
