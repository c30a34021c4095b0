//! Whether the process that made a ring is alive, and which pid it has in the reader's PID namespace.
//!
//! It sends no signals. What it cannot know, it calls unknown.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use procfs::ProcError;
use procfs::process::{Process, all_processes};
use read_rip_ring::Header;

use super::mapped::maps;
use super::observer::{Observer, observer};
use super::state::{Running, Seen, look, look_until};

/// Whether a process is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Liveness {
    Alive {
        /// Its pid in the reader's PID namespace.
        pid: i32,
        /// Whether it runs, as far as others let it.
        control: RunControl,
    },
    /// It was killed, and some of its threads may execute a few more instructions.
    Dying {
        /// Its pid in the reader's PID namespace.
        pid: i32,
    },
    /// It is alive, has called `exec`, and does not record in this ring any more.
    Replaced {
        /// Its pid in the reader's PID namespace.
        pid: i32,
    },
    /// It is dead, and a process that it forked is alive and may record in the same ring.
    Forked {
        pid: i32,
    },
    Dead,
    /// It is not known whether it is alive.
    Unknown {
        /// Why not, as a lowercase fragment.
        why: &'static str,
    },
}

/// Whether a living process runs, as far as others let it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunControl {
    /// Nobody has stopped it.
    #[default]
    Free,
    Stopped,
    /// Another process traces it.
    Traced {
        /// The pid of that process.
        by: i32,
        /// The name of that process, as the kernel has it; empty if it is not known.
        name: String,
        /// Whether it is stopped at present.
        is_stopped: bool,
    },
}

impl Liveness {
    /// Whether the file belongs to another user than the process that it speaks of, and that process does not use it.
    pub fn is_foreign(&self) -> bool {
        *self == Liveness::Unknown { why: FOREIGN }
    }

    /// Whether nothing will be recorded in the ring any more.
    pub fn is_final(&self) -> bool {
        matches!(self, Liveness::Dead | Liveness::Replaced { .. })
    }
}

/// Whether the process that made a ring is alive.
///
/// A pid alone proves nothing: boot, PID namespace and start time must be the same too.
pub fn liveness(header: &Header) -> Liveness {
    liveness_by(header, |pid| look(pid, observer().has_own_proc))
}

/// Like [`liveness`], but if the process is dying, this waits for its end, at most as long as `patience`.
pub fn settled_liveness(header: &Header, patience: Duration) -> Liveness {
    let deadline = Instant::now() + patience;
    liveness_by(header, |pid| look_until(pid, observer().has_own_proc, deadline))
}

const UNKNOWN_NAMESPACE: &str = "its ring does not say in which PID namespace it ran";
const NO_PROC: &str = "/proc is not mounted";
pub(super) const HIDDEN: &str = "/proc does not show whether the process with its pid is this one";
const NO_START: &str = "its start time cannot be compared with that of the process that has its pid now";
const NO_ANSWER: &str = "the kernel does not say whether it exists";
const FOREIGN: &str =
    "it is foreign: the process with its pid belongs to another user than the file, which may be forged";
pub(super) const OTHER_NAMESPACE: &str =
    "it ran in another PID namespace, and this user cannot see all processes there";

fn liveness_by(header: &Header, look: impl Fn(i32) -> Seen) -> Liveness {
    let observer = observer();
    if observer.is_of_another_boot(header) {
        // No process of another boot or another machine is alive here.
        return Liveness::Dead;
    }
    let pid = header.pid as i32;
    let seen = match () {
        () if observer.pid_namespace == 0 => return Liveness::Unknown { why: NO_PROC },
        () if header.pid_namespace == 0 => return Liveness::Unknown { why: UNKNOWN_NAMESPACE },
        () if header.pid_namespace == observer.pid_namespace => (pid, look(pid)),
        () => match find_in_namespace(header, observer) {
            Ok(Some(pid)) => (pid, look(pid)),
            Ok(None) if observer.sees_all => return Liveness::Dead,
            Ok(None) | Err(()) => return Liveness::Unknown { why: OTHER_NAMESPACE },
        },
    };
    match seen {
        (_, Seen::Gone) => Liveness::Dead,
        (_, Seen::Hidden) => Liveness::Unknown { why: HIDDEN },
        (_, Seen::Unknown) => Liveness::Unknown { why: NO_ANSWER },
        (pid, Seen::Running(running)) => match has_started(header, running.start_ticks, observer) {
            Some(true) => of_running(header, pid, &running),
            Some(false) => Liveness::Dead,
            None => Liveness::Unknown { why: NO_START },
        },
        (pid, Seen::Dying(running)) => match has_started(header, running.start_ticks, observer) {
            Some(true) => Liveness::Dying { pid },
            Some(false) => Liveness::Dead,
            None => Liveness::Unknown { why: NO_START },
        },
    }
}

/// A process of the ring runs.
pub(super) fn of_running(header: &Header, pid: i32, running: &Running) -> Liveness {
    // Anybody may make a file that says what this one says. Root may make one for a process of others.
    let may_be_forged =
        header.read_from.is_some_and(|file| file.owner != 0 && !running.users.contains(&file.owner));
    let is_mapped = if header.is_copy() { None } else { maps(pid, header) };
    if may_be_forged && is_mapped != Some(true) {
        return Liveness::Unknown { why: FOREIGN };
    }
    // A recorder never unmaps its ring. So the program that it was part of is gone, if the ring is not mapped.
    if is_mapped == Some(false) {
        return Liveness::Replaced { pid };
    }
    let control = match running.tracer {
        Some(by) => {
            let name = Process::new(by).and_then(|tracer| tracer.stat()).map(|stat| stat.comm);
            let name = name.unwrap_or_default();
            RunControl::Traced { by, name, is_stopped: running.is_stopped }
        }
        None if running.is_stopped => RunControl::Stopped,
        None => RunControl::Free,
    };
    Liveness::Alive { pid, control }
}

/// Whether a process that started at this time is the one that made the ring; `None` if the times do not compare.
fn has_started(header: &Header, start_ticks: u64, observer: &Observer) -> Option<bool> {
    if header.start_time_ticks == 0 || header.boot_id == [0; 16] {
        return None;
    }
    let ahead_ns = observer.boottime_ahead_ns(header)?;
    let expected = header.start_time_ticks.checked_add_signed(ahead_ns / tick_ns(header) as i64)?;
    // The kernel rounds the sum of a time and an offset to ticks.
    let tolerance = u64::from(ahead_ns % tick_ns(header) as i64 != 0);
    Some(expected.abs_diff(start_ticks) <= tolerance)
}

/// The length of a clock tick, ns.
pub(super) fn tick_ns(header: &Header) -> u64 {
    1_000_000_000 / u64::from(header.ticks_per_second.clamp(1, 1_000_000_000))
}

/// Looks for the process of a ring of another PID namespace, which has another pid here. `Err` if the reader may not
/// look at a process that may be this one.
fn find_in_namespace(header: &Header, observer: &Observer) -> Result<Option<i32>, ()> {
    let mut is_complete = true;
    for process in all_processes().map_err(drop)? {
        let found = process.and_then(|process| Ok((process.pid, process.status()?, process.stat()?)));
        let (pid, status, stat) = match found {
            Ok(found) => found,
            Err(ProcError::NotFound(_)) => continue,
            Err(_) => {
                is_complete = false;
                continue;
            }
        };
        let innermost_pid = status.nspid.and_then(|pids| pids.last().copied());
        let may_be_it = innermost_pid == Some(header.pid as i32)
            && has_started(header, stat.starttime, observer) != Some(false);
        if !may_be_it {
            continue;
        }
        match fs::metadata(format!("/proc/{pid}/ns/pid")) {
            Ok(namespace) if namespace.ino() == header.pid_namespace => return Ok(Some(pid)),
            Ok(_) => {}
            // Gone, or hidden.
            Err(_) => is_complete = false,
        }
    }
    if is_complete { Ok(None) } else { Err(()) }
}

/// Whether a ring is known to be of another boot: before a restart, or on another machine.
pub fn is_of_another_boot(header: &Header) -> bool {
    observer().is_of_another_boot(header)
}

/// A time since boot of this reader as the ring's processes have it, ns; `None` if they do not compare.
pub fn boottime_in_ring_ns(header: &Header, own_ns: u64) -> Option<u64> {
    own_ns.checked_add_signed(observer().boottime_ahead_ns(header)?.checked_neg()?)
}

/// The ids of the threads of a living process; empty if it has ended or its threads cannot be read.
pub fn living_threads(pid: i32) -> HashSet<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return HashSet::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether a process exists, and its threads can be listed. It does not list them: there may be many.
pub fn has_threads(pid: i32) -> bool {
    fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|mut entries| entries.next().is_some())
}
