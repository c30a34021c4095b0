//! Is the process that made a ring alive, and under which pid do we see it?

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;

use procfs::process::Process;

use crate::ring::Header;

/// Whether a process is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Life {
    /// It is, and this is its pid where we are.
    Alive {
        /// The pid.
        pid: i32,
    },
    /// It is not.
    Dead,
    /// It cannot be told.
    Unknown {
        /// Why not, as a fragment.
        why: &'static str,
    },
}

/// The inode of the PID namespace that every other one descends from (`PROC_PID_INIT_INO` of Linux).
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

/// Whether the process that made a ring is alive.
///
/// A pid alone proves nothing: it must be the same boot, the same PID namespace and the same start time.
pub fn life(header: &Header) -> Life {
    let is_boot_known = header.boot_id != [0; 16];
    if is_boot_known && own_boot_id().is_some_and(|boot_id| boot_id != header.boot_id) {
        // Another boot, or another machine: nothing of it lives here.
        return Life::Dead;
    }
    let own_namespace = std::fs::metadata("/proc/self/ns/pid").map_or(0, |metadata| metadata.ino());
    if own_namespace == 0 {
        return Life::Unknown { why: "there is no /proc" };
    }
    if own_namespace == header.pid_namespace || header.pid_namespace == 0 {
        let pid = header.pid as i32;
        return if has_started_at(pid, header.start_time_ticks) { Life::Alive { pid } } else { Life::Dead };
    }
    // The ring of a container. Its processes are visible from outside, under other pids.
    let found = procfs::process::all_processes().ok().and_then(|processes| {
        processes.flatten().find(|process| {
            let namespaces = process.status().ok().and_then(|status| status.nspid);
            let is_same_pid = namespaces.and_then(|pids| pids.last().copied()) == Some(header.pid as i32);
            is_same_pid && has_started_at(process.pid, header.start_time_ticks)
        })
    });
    match found {
        Some(process) => Life::Alive { pid: process.pid },
        None if own_namespace == FIRST_PID_NAMESPACE => Life::Dead,
        None => {
            Life::Unknown { why: "it ran in another PID namespace, whose processes are not visible here" }
        }
    }
}

fn has_started_at(pid: i32, start_time_ticks: u64) -> bool {
    let Ok(status) = Process::new(pid).and_then(|process| process.stat()) else { return false };
    // A zombie has ended; only its parent has not looked yet.
    let is_running = !matches!(status.state, 'Z' | 'X' | 'x');
    is_running && (start_time_ticks == 0 || status.starttime == start_time_ticks)
}

/// The threads that a living process has now; empty when it has ended or may not be looked at.
pub fn living_threads(pid: i32) -> HashSet<u32> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return HashSet::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn own_boot_id() -> Option<[u8; 16]> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()?.to_be_bytes())
}
