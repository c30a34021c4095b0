//! Stops threads one after the other, each for a moment, and reads their registers: `ptrace`. Only `--stop` does this.
//!
//! # No thread stays stopped
//!
//! The thread of this program that traces another one is its tracer. It seizes a thread (`PTRACE_SEIZE`), stops it
//! (`PTRACE_INTERRUPT`, which sends no signal), and lets it go again when [`Stopped`] is dropped, also in a panic. When
//! a tracer ends, the kernel lets go whatever it has seized, and the threads run on: `PTRACE_O_EXITKILL` is not set. So
//! a thread goes on too if this program is killed. For that reason the tracer is a thread of its own, which ends early
//! where it cannot let go otherwise:
//!
//! * a thread in an uninterruptible sleep does not stop. It cannot be let go before it has stopped;
//! * a thread may stop because a signal is on its way to it, before it stops for this program. It must get the signal,
//!   and [`ptrace::detach`] cannot pass on one of real time.
//!
//! The stop is looked at with `WNOWAIT`: the kernel forgets a signal that waits for the tracer's answer when a tracer
//! has waited for the stop.
//!
//! # What the program notices
//!
//! The kernel starts an interrupted system call again, and the program does not see it. There are exceptions, which
//! fail with `EINTR`: see [`resumes`]. A thread that sleeps in one of these is not stopped.

use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::text;
use crate::target::{CallKind, Registers, RunState, Sleep, Task, Unstopped};

/// A thread that has not stopped after this time is let go. It goes on until it stops: one that is ready to run stops
/// when it gets a processor.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often a stop is looked for.
const LOOK_AGAIN: Duration = Duration::from_micros(20);
/// `__WALL`: threads too, on old kernels.
const ALL_THREADS: u32 = 0x4000_0000;

/// Whether a thread may be stopped: it runs, or the kernel starts the call that it sleeps in again without a trace.
///
/// The others are in signal(7) ("Interruption of system calls and library functions by stop signals"): `epoll_wait`,
/// `semop`, `rt_sigtimedwait`, and calls on sockets with a time limit. Nobody sees whether a socket has one.
pub fn resumes(task: &Task) -> bool {
    if !matches!(task.state, RunState::Running | RunState::Sleeping) {
        return false;
    }
    match task.sleep {
        None => true,
        Some(Sleep::Call(call)) => matches!(
            call.kind,
            CallKind::Futex
                | CallKind::Sleep
                | CallKind::Poll
                | CallKind::Select
                | CallKind::WaitChild
                | CallKind::Restarted
        ),
        Some(Sleep::Fault) => false,
    }
}

/// What came of stopping threads: the results by thread id, and why some of the threads were not stopped.
pub type Visited<T> = (Vec<(u32, T)>, Option<Unstopped>);

/// Stops threads one after the other. `visitor` is called once for each tracer, and what it returns with the registers
/// of each thread while that is stopped. Threads that end or do not stop are left out.
pub fn stop_each<T: Send, V: FnMut(&Registers) -> T>(
    tids: &[u32],
    visitor: impl Fn() -> V + Sync,
) -> Visited<T> {
    let (mut results, mut unstopped) = (Vec::new(), None);
    let mut left = tids;
    while !left.is_empty() {
        let turn = std::thread::scope(|scope| {
            let tracer = std::thread::Builder::new().spawn_scoped(scope, || trace(left, visitor()));
            let tracer = tracer.map_err(|error| error.to_string())?;
            tracer.join().map_err(|_| "the tracing thread has failed".to_owned())
        });
        match turn {
            Ok(turn) => {
                left = &left[turn.tried..];
                results.extend(turn.visited.0);
                unstopped = unstopped.or(turn.visited.1);
            }
            Err(why) => return (results, Some(Unstopped::Failed(why))),
        }
    }
    (results, unstopped)
}

/// What a tracer has done.
struct Turn<T> {
    /// How many threads it has tried.
    tried: usize,
    visited: Visited<T>,
}

/// Stops these threads, up to one that only the end of this tracer lets go.
fn trace<T>(tids: &[u32], mut visit: impl FnMut(&Registers) -> T) -> Turn<T> {
    let (mut results, mut unstopped) = (Vec::new(), None);
    for (at, &tid) in tids.iter().enumerate() {
        let is_last = match Stopped::stop(tid) {
            Ok(Stop::Ended) => false,
            Ok(Stop::Stopped(thread)) => {
                results.extend(thread.registers().map(|registers| (tid, visit(&registers))));
                thread.only_end_lets_go()
            }
            Ok(Stop::Runs) => true,
            // Others may have no tracer.
            Err(traced @ Unstopped::Traced(_)) => {
                unstopped = Some(traced);
                false
            }
            Err(refused) => return Turn { tried: tids.len(), visited: (results, Some(refused)) },
        };
        if is_last {
            return Turn { tried: at + 1, visited: (results, unstopped) };
        }
    }
    Turn { tried: tids.len(), visited: (results, unstopped) }
}

/// What came of an attempt to stop a thread.
enum Stop {
    Stopped(Stopped),
    /// It is seized, and has not stopped in time.
    Runs,
    Ended,
}

/// A thread that is stopped. It goes on when this is dropped.
struct Stopped {
    tid: Pid,
    /// The signal that it is to get then; 0 for none.
    signal: i32,
}

impl Stopped {
    fn stop(tid: u32) -> Result<Stop, Unstopped> {
        let Ok(raw) = i32::try_from(tid) else { return Ok(Stop::Ended) };
        let pid = Pid::from_raw(raw);
        match ptrace::seize(pid, ptrace::Options::empty()).and_then(|()| ptrace::interrupt(pid)) {
            Ok(()) => {}
            Err(Errno::ESRCH) => return Ok(Stop::Ended),
            Err(Errno::EPERM) if !exists(tid) => return Ok(Stop::Ended),
            Err(Errno::EPERM) => return Err(tracer_of(tid).map_or(Unstopped::Refused, Unstopped::Traced)),
            Err(error) => return Err(Unstopped::Failed(error.desc().to_owned())),
        }
        let Some(id) = rustix::process::Pid::from_raw(raw) else { return Ok(Stop::Ended) };
        let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let options = options | WaitIdOptions::NOWAIT | WaitIdOptions::from_bits_retain(ALL_THREADS);
        let deadline = Instant::now() + PATIENCE;
        loop {
            match waitid(WaitId::Pid(id), options) {
                Ok(Some(status)) => {
                    let Some(status) = status.trapping_signal() else { return Ok(Stop::Ended) };
                    // A stop that this tracer has asked for has the event above its lowest byte.
                    let signal = if status >> 8 == 0 { status } else { 0 };
                    return Ok(Stop::Stopped(Stopped { tid: pid, signal }));
                }
                Ok(None) if Instant::now() < deadline => std::thread::sleep(LOOK_AGAIN),
                Ok(None) => return Ok(Stop::Runs),
                Err(_) => return Ok(Stop::Ended),
            }
        }
    }

    /// The signal that it gets when it is let go. `Err` if this program cannot pass it on.
    fn signal(&self) -> Result<Option<Signal>, Errno> {
        if self.signal == 0 { Ok(None) } else { Signal::try_from(self.signal).map(Some) }
    }

    fn only_end_lets_go(&self) -> bool {
        self.signal().is_err()
    }

    #[cfg(target_arch = "x86_64")]
    fn registers(&self) -> Option<Registers> {
        let of = ptrace::getregs(self.tid).ok()?;
        let by_dwarf = [
            of.rax, of.rdx, of.rcx, of.rbx, of.rsi, of.rdi, of.rbp, of.rsp, of.r8, of.r9, of.r10, of.r11,
            of.r12, of.r13, of.r14, of.r15,
        ];
        let mut all = [0; 32];
        all[..by_dwarf.len()].copy_from_slice(&by_dwarf);
        Some(Registers {
            pc: of.rip,
            sp: of.rsp,
            fp: Some(of.rbp),
            lr: None,
            tls: Some(of.fs_base),
            all: Some(all),
        })
    }

    #[cfg(all(target_arch = "aarch64", target_env = "gnu"))]
    fn registers(&self) -> Option<Registers> {
        let of = ptrace::getregs(self.tid).ok()?;
        let mut all = [0; 32];
        all[..31].copy_from_slice(&of.regs);
        all[31] = of.sp;
        Some(Registers {
            pc: of.pc,
            sp: of.sp,
            fp: Some(of.regs[29]),
            lr: Some(of.regs[30]),
            tls: None,
            all: Some(all),
        })
    }

    #[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_env = "gnu"))))]
    fn registers(&self) -> Option<Registers> {
        None
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Ok(signal) = self.signal() {
            // If the thread was killed meanwhile, nothing is left to do.
            let _ = ptrace::detach(self.tid, signal);
        }
    }
}

/// Whether there is such a thread.
fn exists(tid: u32) -> bool {
    std::fs::exists(format!("/proc/{tid}/status")).unwrap_or(true)
}

/// The process that traces a thread.
fn tracer_of(tid: u32) -> Option<u32> {
    let status = |tid: u32| text::status(&std::fs::read(format!("/proc/{tid}/status")).ok()?);
    // A thread is the tracer.
    let tracer = status(tid)?.tracer;
    (tracer != 0).then(|| status(tracer).map_or(tracer, |status| status.tgid))
}
