//! Doubles the number of threads that a Rust program can start under the kernel's limit on mappings.
//!
//! FOLKLORE: std gives each thread an alternate signal stack with a guard page, so that it can report stack overflows.
//! Together with the thread's stack and its guard page, these are four mappings a thread. Linux allows a process 65530
//! mappings (`vm.max_map_count`), which was seen to suffice for 16369 threads. If the alternate stack cannot be
//! mapped, std panics where nothing can catch the panic, and the process aborts. std makes no alternate stacks if
//! neither SIGSEGV nor SIGBUS has its default action when the program starts. "Ignored" survives `exec`, and a real
//! fault still kills the process, because the kernel does not let a program ignore faults. Remedy: the program
//! executes itself again from a shell that ignores both signals.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// SIGBUS and SIGSEGV in the signal sets of `/proc/PID/status`, in which bit 0 is signal 1.
const FAULTS: u64 = 1 << (7 - 1) | 1 << (11 - 1);
/// The variable that is set for the second start. It prevents a third in a sandbox that resets ignored signals.
const RESTARTED: &str = "RIP_EXAMPLE_RESTARTED";
/// Fewer threads than this fit into the default limit with four mappings each.
const THREADS_UNCRITICAL: usize = 8_000;

/// Replaces the process by one whose threads take two mappings each. Returns if that is not necessary or not possible.
///
/// Call it early in `main`: the program starts again from its beginning, with the same process id.
pub fn prepare(threads: usize) {
    let is_prepared = ignored_signals().is_none_or(|ignored| ignored & FAULTS == FAULTS);
    if threads < THREADS_UNCRITICAL || is_prepared || std::env::var_os(RESTARTED).is_some() {
        return;
    }
    let Ok(program) = std::env::current_exe() else { return };
    let error = Command::new("/bin/sh")
        .args(["-c", "trap '' BUS SEGV && exec \"$0\" \"$@\""])
        .arg(program)
        .args(std::env::args_os().skip(1))
        .env(RESTARTED, "yes")
        .exec();
    eprintln!("could not restart without alternate signal stacks: {error}");
}

fn ignored_signals() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}
