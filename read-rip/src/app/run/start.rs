//! Starts a program with the signal mask that this process was given.
//!
//! A new process inherits the mask of the thread that starts it. If signals were blocked only after the start, one that
//! comes between the two would end this process, and leave the program alone.

#![allow(unsafe_code, reason = "the new process changes its mask before it becomes the program")]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use nix::sys::signal::SigSet;

/// Starts a program that has this mask, whatever is blocked here.
///
/// # Errors
///
/// Those of [`Command::spawn`].
pub(super) fn start(command: &mut Command, mask: SigSet) -> io::Result<Child> {
    let set_mask = move || mask.thread_set_mask().map_err(io::Error::from);
    // SAFETY: between fork and exec, the new process makes this one system call. It neither allocates nor locks.
    unsafe { command.pre_exec(set_mask) };
    command.spawn()
}
