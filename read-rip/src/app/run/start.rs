//! Starts a program with the signal mask and the ignored signals that this process was given.
//!
//! A new process inherits the mask of the thread that starts it. If signals were blocked only after the start, one that
//! comes between the two would end this process, and leave the program alone. It also inherits which signals are
//! ignored. Two of these change here:
//!
//! * `SIGPIPE`: Rust ignores it before `main`, and a program that Rust starts never ignores it. So a function that runs
//!   before Rust's own start notes what this process was given.
//! * `SIGCHLD`: if it is ignored, the kernel forgets how a child ended. So this process does not ignore it.

#![allow(unsafe_code, reason = "it asks for signal actions, and the new process changes them")]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use nix::sys::signal::{SigHandler, SigSet, Signal, signal};

/// Whether this process was started with `SIGPIPE` ignored.
static IGNORED_PIPE: AtomicBool = AtomicBool::new(false);

// SAFETY: the C library calls the functions in this section before `main`, with arguments that this one does not take.
#[unsafe(link_section = ".init_array")]
#[used]
static NOTE: extern "C" fn() = note;

extern "C" fn note() {
    // ORDERING: relaxed: the process has one thread.
    IGNORED_PIPE.store(ignores(Signal::SIGPIPE), Relaxed);
}

/// Starts a program that has this mask, whatever is blocked here, and ignores what this process was given as ignored.
///
/// # Errors
///
/// Those of [`Command::spawn`].
pub(super) fn start(command: &mut Command, mask: SigSet) -> io::Result<Child> {
    // ORDERING: relaxed: stored before `main`.
    let mut ignored = Vec::from_iter(IGNORED_PIPE.load(Relaxed).then_some(Signal::SIGPIPE));
    if ignores(Signal::SIGCHLD) {
        ignored.push(Signal::SIGCHLD);
        // SAFETY: the default action runs no code of this process.
        unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }?;
    }
    let prepare = move || {
        for &of in &ignored {
            // SAFETY: the action runs no code of the process.
            unsafe { signal(of, SigHandler::SigIgn) }?;
        }
        mask.thread_set_mask().map_err(io::Error::from)
    };
    // SAFETY: between fork and exec, the new process makes these few system calls. It neither allocates nor locks.
    unsafe { command.pre_exec(prepare) };
    command.spawn()
}

/// Whether the action of a signal is to ignore it.
fn ignores(of: Signal) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: only asks for the action.
    let answer = unsafe { libc::sigaction(of as libc::c_int, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: the call has filled it.
    answer == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}
