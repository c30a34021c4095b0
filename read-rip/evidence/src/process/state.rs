//! One process, by its pid in this reader's PID namespace: running, dying, gone, or hidden from this reader.
//!
//! It compares no process with a ring, and sends no signal.
//!
//! # When a process counts as gone
//!
//! A process that was killed goes on for a while: its threads end one by one, and its memory is freed. No part of this
//! matters. It is gone once none of its threads can execute another instruction of its own:
//!
//! * a thread that is a zombie, or is on its way out in the kernel (`PF_EXITING` and its like), never returns;
//! * a thread with SIGKILL pending that is not running is in the kernel. The kernel handles the signal before it
//!   returns to the program. Whatever ends a process (a signal, `exit_group`, a core dump) makes SIGKILL pending for
//!   each thread.
//!
//! A thread with SIGKILL pending that is running may execute a few more instructions, so its process is dying.

use std::time::{Duration, Instant};

use procfs::process::{Process, Stat, Status};
use procfs::{ProcError, ProcResult};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open, test_kill_process};

/// A process, as far as this reader can see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// It runs, sleeps, or is stopped.
    Running(Running),
    /// It was killed, and some of its threads may execute a few more instructions.
    Dying(Running),
    /// There is none with this pid, or none of its threads will execute anything again.
    Gone,
    /// There is one, and this reader may not look at it.
    Hidden,
    /// Not even that is known.
    Unknown,
}

/// A process that can execute something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Running {
    /// When it started, clock ticks since boot, as this reader's time namespace counts.
    pub(super) start_ticks: u64,
    /// Whether a signal has stopped it.
    pub(super) is_stopped: bool,
    pub(super) tracer: Option<i32>,
    /// Its users: real, effective, saved, and of its files.
    pub(super) users: [u32; 4],
}

/// `PF_EXITING`, `PF_POSTCOREDUMP` and `PF_SIGNALED` of Linux: the thread is on its way out.
const FLAGS_OF_EXIT: u32 = 0x4 | 0x8 | 0x400;
/// SIGKILL in a set of signals.
const SIGKILL: u64 = 1 << (libc::SIGKILL - 1);
/// A process that is dying is looked at again after this time, if the kernel does not report its end before.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Looks at a process. `has_own_proc`: see `Observer`.
pub(super) fn look(pid: i32, has_own_proc: bool) -> Seen {
    let shown = if has_own_proc { look_in_proc(pid) } else { Err(ProcError::NotFound(None)) };
    match shown {
        Ok(seen) => seen,
        Err(ProcError::NotFound(_) | ProcError::PermissionDenied(_)) => ask_kernel(pid),
        Err(_) => Seen::Unknown,
    }
}

/// Looks at a process. Waits while it is dying, at most until `deadline`.
pub(super) fn look_until(pid: i32, has_own_proc: bool, deadline: Instant) -> Seen {
    loop {
        let seen = look(pid, has_own_proc);
        let is_late = Instant::now() >= deadline;
        match seen {
            Seen::Dying(_) if !is_late => wait_for_end(pid),
            _ => return seen,
        }
    }
}

fn look_in_proc(pid: i32) -> ProcResult<Seen> {
    let process = Process::new(pid)?;
    // The signals first: a thread loses its pending SIGKILL a moment before it gets the flag of exit.
    let status = process.status()?;
    let stat = process.stat()?;
    let running = Running {
        start_ticks: stat.starttime,
        is_stopped: matches!(stat.state, 'T' | 't'),
        tracer: Some(status.tracerpid).filter(|&tracer| tracer != 0),
        users: [status.ruid, status.euid, status.suid, status.fuid],
    };
    if Fate::of(&status, &stat) == Fate::GoesOn {
        return Ok(Seen::Running(running));
    }
    // The first thread may have ended alone.
    let fate = match fate_of_threads(&process)? {
        // A thread that was not in the list yet may have been started by one that was, and has ended since.
        Fate::Ended if !is_reported_dead(pid) => fate_of_threads(&process)?,
        fate => fate,
    };
    Ok(match fate {
        Fate::GoesOn => Seen::Running(running),
        Fate::Killed => Seen::Dying(running),
        Fate::Ended => Seen::Gone,
    })
}

/// What becomes of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// It executes nothing of its program any more.
    Ended,
    /// It was killed while it ran.
    Killed,
    GoesOn,
}

impl Fate {
    fn of(status: &Status, stat: &Stat) -> Fate {
        let has_ended = matches!(stat.state, 'Z' | 'X' | 'x') || stat.flags & FLAGS_OF_EXIT != 0;
        let was_killed = (status.sigpnd | status.shdpnd) & SIGKILL != 0;
        match () {
            () if has_ended => Fate::Ended,
            () if was_killed && stat.state == 'R' => Fate::Killed,
            () if was_killed => Fate::Ended,
            () => Fate::GoesOn,
        }
    }
}

/// The fate of those threads that live longest.
fn fate_of_threads(process: &Process) -> ProcResult<Fate> {
    let mut longest = Fate::Ended;
    for task in process.tasks()? {
        let fate = task.and_then(|task| Ok((task.status()?, task.stat()?)));
        longest = longest.max(match fate {
            Ok((status, stat)) => Fate::of(&status, &stat),
            Err(ProcError::NotFound(_)) => Fate::Ended,
            Err(error) => return Err(error),
        });
        if longest == Fate::GoesOn {
            break;
        }
    }
    Ok(longest)
}

/// A number as a pid. No process has a number below 1, but a damaged or planted ring may claim one.
fn possible(pid: i32) -> Option<Pid> {
    Some(pid).filter(|&pid| pid > 0).and_then(Pid::from_raw)
}

/// Asks the kernel about a process that `/proc` does not show.
fn ask_kernel(pid: i32) -> Seen {
    let Some(pid) = possible(pid) else { return Seen::Gone };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(descriptor) if is_readable(&descriptor, Duration::ZERO) => return Seen::Gone,
        Ok(_) => return Seen::Hidden,
        // EINVAL: the id is that of a thread.
        Err(Errno::SRCH | Errno::INVAL) => return Seen::Gone,
        // An old kernel, a filter, no free descriptor.
        Err(_) => {}
    }
    match test_kill_process(pid) {
        Ok(()) | Err(Errno::PERM) => Seen::Hidden,
        Err(Errno::SRCH) => Seen::Gone,
        Err(_) => Seen::Unknown,
    }
}

/// Whether the kernel reports that all threads of a process have ended.
fn is_reported_dead(pid: i32) -> bool {
    possible(pid)
        .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
        .is_some_and(|descriptor| is_readable(&descriptor, Duration::ZERO))
}

/// Waits until the kernel reports that a process has ended, or for a short time.
fn wait_for_end(pid: i32) {
    match possible(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) {
        Some(descriptor) => drop(is_readable(&descriptor, LOOK_AGAIN)),
        None => std::thread::sleep(LOOK_AGAIN),
    }
}

/// Whether a pidfd becomes readable: the process has ended.
fn is_readable(descriptor: &rustix::fd::OwnedFd, patience: Duration) -> bool {
    let patience = Timespec::try_from(patience).ok();
    poll(&mut [PollFd::new(descriptor, PollFlags::IN)], patience.as_ref()).is_ok_and(|ready| ready > 0)
}
