//! Whether the process that made a ring is alive, and which pid it has in the reader's PID namespace.
//!
//! It sends no signals.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;

use procfs::process::Process;

use crate::ring::{Header, Slot, SlotState};

/// Whether a process is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It is alive.
    Alive {
        /// Its pid in the reader's PID namespace.
        pid: i32,
    },
    /// It is dead, and a process that it forked is alive and records in the same ring.
    Forked {
        /// The pid of that process.
        pid: i32,
    },
    /// It is dead.
    Dead,
    /// It is not known whether it is alive.
    Unknown {
        /// Why not, as a lowercase fragment.
        why: &'static str,
    },
}

/// The inode of the initial PID namespace (`PROC_PID_INIT_INO` of Linux).
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

/// Whether the process that made a ring is alive.
///
/// A pid alone proves nothing: boot, PID namespace and start time must be the same too.
pub fn liveness(header: &Header) -> Liveness {
    if is_of_another_boot(header) {
        // No process of another boot or another machine is alive here.
        return Liveness::Dead;
    }
    let own_namespace = own_pid_namespace();
    if own_namespace == 0 {
        return Liveness::Unknown { why: "/proc is not mounted" };
    }
    if own_namespace == header.pid_namespace || header.pid_namespace == 0 {
        let pid = header.pid as i32;
        return if has_started_at(pid, header.start_time_ticks) {
            Liveness::Alive { pid }
        } else {
            Liveness::Dead
        };
    }
    // The ring is from a container. Its processes may be visible here, under other pids.
    let found = procfs::process::all_processes().ok().and_then(|processes| {
        processes.flatten().find(|process| {
            let namespaces = process.status().ok().and_then(|status| status.nspid);
            let is_same_pid = namespaces.and_then(|pids| pids.last().copied()) == Some(header.pid as i32);
            is_same_pid && has_started_at(process.pid, header.start_time_ticks)
        })
    });
    match found {
        Some(process) => Liveness::Alive { pid: process.pid },
        None if own_namespace == FIRST_PID_NAMESPACE => Liveness::Dead,
        None => {
            Liveness::Unknown { why: "it ran in another PID namespace, whose processes are not visible here" }
        }
    }
}

/// Whether the process that made a ring, or a process that it forked, is alive.
pub fn liveness_of_ring(header: &Header, slots: &[Slot]) -> Liveness {
    let liveness = liveness(header);
    let own_namespace = own_pid_namespace();
    if liveness != Liveness::Dead || own_namespace != header.pid_namespace || is_of_another_boot(header) {
        return liveness;
    }
    let forked = recorders(slots, own_namespace, |slot| slot.state != SlotState::Exited)
        .into_iter()
        .find(|&recorder| is_recorder_alive(header, recorder));
    forked.map_or(Liveness::Dead, |(pid, _)| Liveness::Forked { pid: pid as i32 })
}

/// The processes that recorded in a ring, were forked by the process that made it, and have ended. Empty for a ring
/// of another PID namespace or another boot.
pub fn ended_children(header: &Header, slots: &[Slot]) -> HashSet<u32> {
    let own_namespace = own_pid_namespace();
    if own_namespace == 0 || own_namespace != header.pid_namespace || is_of_another_boot(header) {
        return HashSet::new();
    }
    recorders(slots, own_namespace, |slot| slot.pid != header.pid)
        .into_iter()
        .filter(|&recorder| !is_recorder_alive(header, recorder))
        .map(|(pid, _)| pid)
        .collect()
}

/// The processes of the wanted slots, with the time at which each claimed its first slot. The process started
/// before that.
fn recorders(slots: &[Slot], pid_namespace: u64, is_wanted: impl Fn(&Slot) -> bool) -> Vec<(u32, u64)> {
    let mut pids: Vec<(u32, u64)> = slots
        .iter()
        .filter(|slot| is_wanted(slot) && slot.pid_namespace == pid_namespace)
        .map(|slot| (slot.pid, slot.claimed_boottime_ns))
        .collect();
    pids.sort_unstable();
    pids.dedup_by_key(|&mut (pid, _)| pid);
    pids
}

/// Whether a process that claimed a slot at this time is alive.
fn is_recorder_alive(header: &Header, (pid, claimed_ns): (u32, u64)) -> bool {
    let tick_ns = 1_000_000_000 / u64::from(header.ticks_per_second.max(1));
    let began = start_time_ticks(pid as i32).map(|ticks| ticks.saturating_mul(tick_ns));
    // Start times are rounded to ticks.
    began.is_some_and(|began_ns| began_ns <= claimed_ns.saturating_add(tick_ns))
}

fn has_started_at(pid: i32, ticks: u64) -> bool {
    start_time_ticks(pid).is_some_and(|started| ticks == 0 || started == ticks)
}

/// When a process started, clock ticks since boot; `None` if no such process runs.
fn start_time_ticks(pid: i32) -> Option<u64> {
    let process = Process::new(pid).ok()?;
    let status = process.stat().ok()?;
    let has_ended = |state| matches!(state, 'Z' | 'X' | 'x');
    // A zombie has ended, unless its first thread has ended and others run.
    let is_running = !has_ended(status.state)
        || process.tasks().is_ok_and(|tasks| {
            tasks.flatten().any(|task| task.stat().is_ok_and(|stat| !has_ended(stat.state)))
        });
    is_running.then_some(status.starttime)
}

fn own_pid_namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |metadata| metadata.ino())
}

/// Whether a ring is known to be of another boot: before a restart, or on another machine.
pub fn is_of_another_boot(header: &Header) -> bool {
    let is_known = header.boot_id != [0; 16];
    is_known && own_boot_id().is_some_and(|boot_id| boot_id != header.boot_id)
}

/// The ids of the threads of a living process; empty if it has ended or its threads cannot be read.
pub fn living_threads(pid: i32) -> HashSet<u32> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return HashSet::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn own_boot_id() -> Option<[u8; 16]> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()?.to_be_bytes())
}
