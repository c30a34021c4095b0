//! Why a process died, by its core file.

use std::io::{self, Write};

use nix::sys::signal::Signal;
use read_rip_evidence::core::Death;
use read_rip_evidence::standing::Standings;

use super::names::LocationTexts;
use super::stack_lines::StackLines;
use super::standing::StackFrames;
use crate::printable;

/// Writes why the process died, and the stack of the thread that got the signal.
///
/// # Errors
///
/// Those of `out`.
pub fn death(
    out: &mut dyn Write,
    death: &Death,
    seen: &Standings,
    command_line: &str,
    texts: &LocationTexts,
    frames: &StackFrames,
) -> io::Result<()> {
    let thread = seen.target.tasks.iter().position(|task| task.own_tid == death.tid);
    let Some(thread) = thread else { return Ok(()) };
    let name = format!("{}[{}]", printable(&seen.target.tasks[thread].name), death.tid);
    if !command_line.is_empty() {
        writeln!(out, "started as: {}", printable(command_line))?;
    }
    match death.signal {
        Some(_) => writeln!(out, "ended by {} in {name}:", reason(death))?,
        None => {
            writeln!(out, "not ended by a signal: a debugger made the core of the living process; {name}:")?
        }
    }
    let lines = StackLines { seen, frames, is_whole: texts.is_verbose };
    lines.write(out, seen.stack(thread), |path| texts.file(path).to_owned())?;
    writeln!(out)
}

/// `SIGSEGV (nothing is mapped at 0x10)`.
fn reason(death: &Death) -> String {
    let Some(signal) = death.signal else { return "no signal".to_owned() };
    let name =
        Signal::try_from(signal).map_or_else(|_| format!("signal {signal}"), |signal| signal.to_string());
    match because(death, signal) {
        Some(why) => format!("{name} ({why})"),
        None => name,
    }
}

/// What `si_code` says, where it says something.
fn because(death: &Death, signal: i32) -> Option<String> {
    let code = death.code?;
    if let Some((pid, uid)) = death.sender {
        return Some(match code {
            libc::SI_TKILL => format!("sent to this thread by process {pid}"),
            _ => format!("sent by process {pid} of user {uid}"),
        });
    }
    if code == libc::SI_KERNEL {
        return Some(match signal {
            libc::SIGSEGV => "an address that no process can have, or a protection fault".to_owned(),
            _ => "sent by the kernel".to_owned(),
        });
    }
    let at = death.fault_address.map_or_else(|| "an unknown address".to_owned(), |at| format!("{at:#x}"));
    // The codes are the kernel's: SEGV_MAPERR and so on.
    Some(match (signal, code) {
        (libc::SIGSEGV, 1) => format!("nothing is mapped at {at}"),
        (libc::SIGSEGV, 2) => format!("the memory at {at} does not allow this access"),
        (libc::SIGBUS, 1) => format!("the address {at} is not aligned"),
        (libc::SIGBUS, 2) => format!("the file that is mapped at {at} has no such page any more"),
        (libc::SIGBUS, 4 | 5) => format!("the memory at {at} is broken"),
        (libc::SIGILL, _) => format!("not an instruction that may be executed, at {at}"),
        (libc::SIGFPE, 1) => format!("a division of integers by zero, at {at}"),
        (libc::SIGFPE, 2) => format!("an overflow of integers, at {at}"),
        (libc::SIGFPE, _) => format!("floating-point arithmetic, at {at}"),
        (libc::SIGTRAP, _) => format!("a breakpoint or trap, at {at}"),
        (libc::SIGSYS, 1) => "a system call that a filter forbids".to_owned(),
        _ => return death.fault_address.map(|_| format!("code {code}, at {at}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_shown_with_its_cause() {
        let of = |signal, code, fault_address, sender| {
            reason(&Death { tid: 1, signal: Some(signal), code: Some(code), fault_address, sender })
        };
        assert_eq!(of(libc::SIGSEGV, 1, Some(0x10), None), "SIGSEGV (nothing is mapped at 0x10)");
        assert_eq!(
            of(libc::SIGABRT, libc::SI_TKILL, None, Some((7, 0))),
            "SIGABRT (sent to this thread by process 7)"
        );
        assert_eq!(of(libc::SIGQUIT, 0, None, Some((7, 1000))), "SIGQUIT (sent by process 7 of user 1000)");
        assert_eq!(of(40, 0, None, None), "signal 40");
        assert_eq!(reason(&Death { signal: Some(libc::SIGSEGV), ..Death::default() }), "SIGSEGV");
    }
}
