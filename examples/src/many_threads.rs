//! Lets a program have as many threads as the kernel's limit on mappings allows: twice what std manages.
//!
//! FOLKLORE: std gives every thread an alternate signal stack with a guard page, so that it can report stack
//! overflows. With the thread's own stack and guard that is four mappings a thread, and Linux allows a process
//! 65530 (`vm.max_map_count`): seen here, 16369 threads. Worse, std panics outside of anything that could catch
//! it when the alternate stack cannot be had, and the process aborts. std leaves all that out if both SIGSEGV
//! and SIGBUS are not at their defaults when the program starts; "ignored" survives `exec`, and a fault kills
//! the process all the same, because the kernel lets nobody ignore one. So: start once more from a shell that
//! ignores the two.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// SIGBUS and SIGSEGV in the set that `/proc/PID/status` shows: bit 0 is signal 1.
const FAULTS: u64 = 1 << (7 - 1) | 1 << (11 - 1);
/// Set in the second start, so that there is no third where a sandbox does not keep ignored signals.
const AGAIN: &str = "RIP_EXAMPLE_STARTED_AGAIN";
/// With four mappings each, fewer threads than this are no trouble under the default limit.
const THREADS_EASY: usize = 8_000;

/// Replaces the process by one whose threads take two mappings each; returns if it is one, or cannot be.
///
/// To be called early in `main`: the program starts again from its beginning, with the same pid.
pub fn prepare(threads: usize) {
    let is_prepared = ignored_signals().is_none_or(|ignored| ignored & FAULTS == FAULTS);
    if threads < THREADS_EASY || is_prepared || std::env::var_os(AGAIN).is_some() {
        return;
    }
    let Ok(program) = std::env::current_exe() else { return };
    let error = Command::new("/bin/sh")
        .args(["-c", "trap '' BUS SEGV && exec \"$0\" \"$@\""])
        .arg(program)
        .args(std::env::args_os().skip(1))
        .env(AGAIN, "yes")
        .exec();
    eprintln!("could not start again without alternate signal stacks: {error}");
}

fn ignored_signals() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}
