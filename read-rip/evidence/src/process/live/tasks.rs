//! The threads of a living process, by their files in `/proc/PID/task`.
//!
//! A thread takes three short files: `schedstat`, `syscall` and `stat`, in this order. So if two readings have the same
//! count of turns, the thread did not run between them, and slept in what the first one says until the second one.
//!
//! Where two readings follow one another, each leaves out a file of a thread that sleeps in a system call: the first
//! one `stat`, and the second one `syscall`, if the thread has not run since. So what the first one says of it stands.

use super::folder::{Failure, Folder};
use super::text::{self, Position};
use crate::shares::in_shares;
use crate::target::{Architecture, Call, Registers, RunState, Sleep, Task, Work};

/// A thread that falls asleep while it is read is read again, so often at most.
const TRIES: u32 = 3;
/// Enough for each file that is read here.
const FILE_MAX_BYTES: usize = 4096;

/// What the threads of a process have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Common {
    /// Whether the process has other ids in its own PID namespace.
    pub(super) has_own_ids: bool,
    /// Whether its first thread has a tracer.
    pub(super) is_traced: bool,
    /// The processor; `None` if this program does not understand the process's system calls.
    pub(super) architecture: Option<Architecture>,
}

/// Reads threads, in this order. Those that have ended are left out.
pub(super) fn tasks(folder: &Folder, tids: &[u32], common: Common) -> Vec<Task> {
    // Nearly all of the time is spent in the kernel.
    in_shares(tids, |tids| {
        let mut reader = Reader::new(folder, common);
        tids.iter().filter_map(|&tid| reader.task(tid)).collect()
    })
}

/// Reads threads for the first time, in this order. Those that have ended are left out.
pub(super) fn tasks_at_first(folder: &Folder, tids: &[u32], common: Common) -> Vec<Task> {
    in_shares(tids, |tids| {
        let mut reader = Reader::new(folder, common);
        tids.iter().filter_map(|&tid| reader.sleeper(tid).or_else(|| reader.task(tid))).collect()
    })
}

/// Reads threads again, in this order. Those that have ended are left out.
pub(super) fn tasks_again(folder: &Folder, before: &[Task], common: Common) -> Vec<Task> {
    in_shares(before, |before| {
        let mut reader = Reader::new(folder, common);
        before.iter().filter_map(|task| reader.task_again(task)).collect()
    })
}

struct Reader<'a> {
    folder: &'a Folder,
    common: Common,
    path: String,
    buffer: [u8; FILE_MAX_BYTES],
}

impl Reader<'_> {
    fn new(folder: &Folder, common: Common) -> Reader<'_> {
        Reader { folder, common, path: String::new(), buffer: [0; FILE_MAX_BYTES] }
    }

    fn read(&mut self, tid: u32, name: &str) -> Result<&[u8], Failure> {
        use std::fmt::Write;
        self.path.clear();
        // SANITY: writing to a string succeeds.
        let _ = write!(self.path, "{tid}/{name}");
        self.folder.read_into(&self.path, &mut self.buffer)
    }

    /// Reads a thread; `None` if it has ended.
    fn task(&mut self, tid: u32) -> Option<Task> {
        let mut tries = 0;
        let (schedule, position, stat) = loop {
            let schedule = self.read(tid, "schedstat").ok().and_then(text::schedstat);
            let position = self.read(tid, "syscall").map(text::syscall);
            let stat = text::stat(self.read(tid, "stat").ok()?)?;
            tries += 1;
            let fell_asleep = position == Ok(Some(Position::Running)) && matches!(stat.state, 'S' | 'D');
            if !fell_asleep || tries == TRIES {
                break (schedule, position, stat);
            }
        };
        let state = RunState::from(stat.state);
        let (sleep, registers) = self.sleep(position.ok().flatten(), state);
        let has_ended = matches!(state, RunState::Zombie | RunState::Dead);
        let hidden = position == Err(Failure::Refused) && !has_ended;
        let is_stopped = matches!(state, RunState::Stopped | RunState::Traced);
        let asks_status = self.common.has_own_ids || self.common.is_traced || is_stopped;
        let status = if asks_status || state == RunState::Running {
            self.read(tid, "status").ok().and_then(text::status)
        } else {
            None
        };
        let work = if state == RunState::Running { self.work(tid, stat.faults) } else { None };
        let asks_kernel = state == RunState::DiskSleep
            || sleep == Some(Sleep::Fault)
            || hidden && state == RunState::Sleeping;
        Some(Task {
            tid,
            own_tid: status.as_ref().and_then(|status| status.ids.last().copied()).unwrap_or(tid),
            name: stat.name,
            state,
            start_ticks: stat.start_ticks,
            processor: stat.processor,
            sleep,
            registers,
            schedule,
            sleeps: status.as_ref().and_then(|status| status.sleeps),
            work,
            nice: Some(stat.nice),
            tracer: status.map(|status| status.tracer).filter(|&tracer| tracer != 0),
            wchan: if asks_kernel { self.wchan(tid) } else { None },
            hidden,
        })
    }

    /// Reads a thread that sleeps in a system call, without its name and what else `stat` says. `None` if that is not
    /// enough: the thread does not sleep in a call, more has to be read, or a second reading could not show that it
    /// ran.
    fn sleeper(&mut self, tid: u32) -> Option<Task> {
        if self.common.has_own_ids || self.common.is_traced {
            return None;
        }
        let schedule = Some(text::schedstat(self.read(tid, "schedstat").ok()?)?);
        let position = text::syscall(self.read(tid, "syscall").ok()?);
        let state = RunState::Sleeping;
        let (sleep, registers) = self.sleep(position, state);
        let task = Task { sleep, registers, schedule, ..Task::new(tid, state) };
        matches!(sleep, Some(Sleep::Call(_))).then_some(task)
    }

    /// Reads a thread again; `None` if it has ended.
    fn task_again(&mut self, before: &Task) -> Option<Task> {
        self.sleeper_again(before).or_else(|| self.task(before.tid))
    }

    /// Reads a thread again that sleeps in a system call; `None` if it may have run since.
    fn sleeper_again(&mut self, before: &Task) -> Option<Task> {
        let slept = matches!(before.sleep, Some(Sleep::Call(_))) && before.schedule.is_some();
        if !slept || self.common.is_traced {
            return None;
        }
        if self.read(before.tid, "schedstat").ok().and_then(text::schedstat) != before.schedule {
            return None;
        }
        let stat = text::stat(self.read(before.tid, "stat").ok()?)?;
        // A thread that was woken and has not run yet has the same account, and another state.
        (RunState::from(stat.state) == before.state).then(|| Task {
            name: stat.name,
            start_ticks: stat.start_ticks,
            processor: stat.processor,
            nice: Some(stat.nice),
            ..before.clone()
        })
    }

    fn sleep(&self, position: Option<Position>, state: RunState) -> (Option<Sleep>, Option<Registers>) {
        let Some(architecture) = self.common.architecture else { return (None, None) };
        match position {
            // It was woken after its position was read.
            _ if state == RunState::Running => (None, None),
            Some(Position::InCall { number, arguments, registers }) => {
                let call = Call::new(architecture, number, arguments);
                (Some(Sleep::Call(call)), Some(registers))
            }
            // A thread that is ending has no registers.
            Some(Position::Elsewhere(registers)) if registers.sp != 0 => {
                let is_asleep = matches!(state, RunState::Sleeping | RunState::DiskSleep);
                (is_asleep.then_some(Sleep::Fault), Some(registers))
            }
            Some(Position::Elsewhere(_) | Position::Running) | None => (None, None),
        }
    }

    /// What the kernel has counted of its work so far.
    fn work(&mut self, tid: u32, faults: u64) -> Option<Work> {
        Some(Work { faults, transfers: text::reads_and_writes(self.read(tid, "io").ok()?)? })
    }

    /// The function of the kernel that a thread sleeps in.
    fn wchan(&mut self, tid: u32) -> Option<String> {
        let name = self.read(tid, "wchan").ok()?;
        (!matches!(name, b"" | b"0")).then(|| String::from_utf8_lossy(name).into_owned())
    }
}
