//! Runs a program to its end, or to a time limit, and passes signals on.
//!
//! The program stays in this process's group. So it keeps the terminal, and what the user types there (Ctrl-C, Ctrl-Z)
//! reaches it from the kernel. Signals that somebody sends to this process alone are passed on. It reads no rings.
//!
//! Every process beneath the program stays beneath this one: orphans are given to it (`PR_SET_CHILD_SUBREAPER`). So the
//! time limit ends all of them, those that have sessions of their own included. The clock of the limit stands still
//! while a compiler runs among them: `cargo test` builds first, and that takes another time on each machine.

use std::io;
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use read_rip_evidence::process::{Ends, children, descendants};

use super::start::start;

/// Signals that are meant for the program.
const PASSED_ON: [Signal; 7] = [
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
];

/// A process that survives SIGKILL for longer is stuck in the kernel.
const KILLED_WITHIN: Duration = Duration::from_secs(5);
/// Programs that compile. Those that run the result, as cargo, make and rustdoc do, are none.
const COMPILERS: [&str; 14] = [
    "rustc",
    "clippy-driver",
    "cc1",
    "cc1plus",
    "clang",
    "clang++",
    "as",
    "ld",
    "ld.bfd",
    "ld.gold",
    "ld.lld",
    "rust-lld",
    "lld",
    "mold",
];
/// How often a compiler is looked for.
const LOOK_FOR_COMPILERS: Duration = Duration::from_millis(200);
/// How often the processes beneath this one are looked for while they end: not each of them is a child, whose end the
/// kernel announces.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

pub(super) struct Supervised {
    child: Child,
    signals: SignalFd,
    /// Afterwards its pid may be another process's.
    has_ended: bool,
    /// When the program and its orphans ended.
    ends: Ends,
    /// For how long compilers have run, while a limit was waited for.
    compiled: Duration,
}

impl Supervised {
    /// Starts a program. If `adopts`, its orphans become children of this process.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub(super) fn start(command: &mut Command, adopts: bool) -> io::Result<Supervised> {
        let mut awaited = SigSet::from_iter(PASSED_ON);
        awaited.add(Signal::SIGCHLD);
        let mask = SigSet::thread_get_mask()?;
        awaited.thread_block()?;
        let signals = SignalFd::with_flags(&awaited, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        // If this fails, orphans of the program are not ended. The program itself still is.
        let _ = set_child_subreaper(adopts);
        let child = start(command, mask)?;
        Ok(Supervised { child, signals, has_ended: false, ends: Ends::default(), compiled: Duration::ZERO })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether the limit was extended by the time that compilers took.
    pub(super) fn has_compiled(&self) -> bool {
        !self.compiled.is_zero()
    }

    /// When the program and its orphans ended, as far as they have. Who waited for the others knows when those did.
    pub(super) fn ends(&mut self) -> Ends {
        self.reap();
        self.ends.clone()
    }

    /// Waits for the program's end; `None` if it runs for longer than the limit, compilation not counted.
    ///
    /// # Errors
    ///
    /// Those of `poll(2)` and `waitpid(2)`.
    pub(super) fn wait(&mut self, limit: Option<Duration>) -> io::Result<Option<ExitStatus>> {
        let mut left = limit;
        let mut looked = Instant::now();
        loop {
            if let Some(status) = self.ended()? {
                return Ok(Some(status));
            }
            let next_look = left.map(|left| left.min(LOOK_FOR_COMPILERS).saturating_sub(looked.elapsed()));
            if let Some(left) = left.as_mut().filter(|_| next_look == Some(Duration::ZERO)) {
                if left.is_zero() {
                    return Ok(None);
                }
                let passed = looked.elapsed();
                looked = Instant::now();
                match compiles() {
                    true => self.compiled += passed,
                    false => *left = left.saturating_sub(passed),
                }
                continue;
            }
            self.next_signals(next_look)?;
        }
    }

    /// Ends the program and all processes beneath it: asks them to, and kills those that have not ended after `grace`.
    /// Returns how many are left, which is 0 unless the kernel does not end them.
    ///
    /// # Errors
    ///
    /// Those of `poll(2)` and `waitpid(2)`.
    pub(super) fn stop(&mut self, grace: Duration) -> io::Result<usize> {
        for (signal, limit) in [(Signal::SIGTERM, grace), (Signal::SIGKILL, KILLED_WITHIN)] {
            let deadline = Instant::now() + limit;
            let mut asked: Vec<i32> = Vec::new();
            loop {
                self.ended()?;
                self.reap();
                let living = descendants();
                if living.is_empty() {
                    return Ok(0);
                }
                for pid in living.into_iter().map(|process| process.pid) {
                    // Each once: some programs take a second SIGTERM for impatience.
                    if !asked.contains(&pid) {
                        send(pid, signal);
                        asked.push(pid);
                    }
                }
                if Instant::now() >= deadline {
                    break;
                }
                self.next_signals(Some(LOOK_AGAIN))?;
            }
        }
        Ok(descendants().len())
    }

    /// The status of the program, if it has ended.
    fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        if status.is_some() && !self.has_ended {
            self.has_ended = true;
            self.ends.note(self.pid(), Instant::now());
        }
        Ok(status)
    }

    /// Removes ended orphans from the table of processes. The program itself is left: `Child` waits for it.
    fn reap(&mut self) {
        let program = (!self.has_ended).then_some(self.pid() as i32);
        for pid in children().into_iter().filter(|&pid| Some(pid) != program) {
            let ended = waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG));
            if matches!(ended, Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..))) {
                self.ends.note(pid as u32, Instant::now());
            }
        }
    }

    /// Waits until a signal arrives, and passes it on.
    fn next_signals(&mut self, limit: Option<Duration>) -> io::Result<()> {
        // Rounded up: a limit of less than a millisecond would not wait.
        let limit = limit.map_or(PollTimeout::NONE, |limit| {
            PollTimeout::try_from(limit + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
        });
        match poll(&mut [PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)], limit) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        while let Some(signal) = self.signals.read_signal()? {
            // The kernel sends what the user types to the whole group, and so to the program too.
            let is_from_terminal = signal.ssi_code > 0;
            match Signal::try_from(signal.ssi_signo as i32) {
                Ok(Signal::SIGCHLD) => self.reap(),
                Ok(signal) if !is_from_terminal && !self.has_ended => send(self.pid() as i32, signal),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Whether a compiler runs beneath this process.
fn compiles() -> bool {
    descendants().iter().any(|process| COMPILERS.contains(&&*process.name))
}

/// A process that has ended meanwhile gets no signal.
fn send(pid: i32, signal: Signal) {
    let _ = kill(Pid::from_raw(pid), signal);
    if signal == Signal::SIGTERM {
        // A stopped process does not see SIGTERM before it continues.
        let _ = kill(Pid::from_raw(pid), Signal::SIGCONT);
    }
}
