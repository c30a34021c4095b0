//! What this reader can see of the system: its boot, its namespaces, its `/proc`.
//!
//! It looks at no other process.

use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

use procfs::process::Process;
use read_rip_ring::Header;

/// The inode of the initial PID namespace (`PROC_PID_INIT_INO` of Linux).
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;
/// The inode of the initial time namespace (`PROC_TIME_INIT_INO` of Linux), which adds nothing to times.
const FIRST_TIME_NAMESPACE: u64 = 0xEFFF_FFFA;

/// See the [module](self). Nothing of it changes while this program runs.
#[derive(Debug)]
pub(super) struct Observer {
    boot_id: Option<[u8; 16]>,
    /// Inode of this reader's PID namespace; 0 if `/proc` is not mounted.
    pub(super) pid_namespace: u64,
    /// Whether `/proc` numbers processes as this reader's PID namespace does.
    pub(super) has_own_proc: bool,
    /// Whether the processes of all PID namespaces are in `/proc`, and this reader may look at them.
    pub(super) sees_all: bool,
    time_namespace: u64,
    boottime_offset_ns: Option<i64>,
}

/// What this reader can see.
pub(super) fn observer() -> &'static Observer {
    static OBSERVER: OnceLock<Observer> = OnceLock::new();
    OBSERVER.get_or_init(Observer::new)
}

impl Observer {
    fn new() -> Observer {
        let pid_namespace = inode("/proc/self/ns/pid").unwrap_or(0);
        // A `/proc` that was mounted in an outer PID namespace shows the pids of that one first.
        let pids = Process::myself().and_then(|own| own.status()).ok().and_then(|status| status.nspid);
        let has_own_proc = pids.is_some_and(|pids| pids.len() == 1);
        // With `hidepid`, this reader may not look at the first process, unless it may look at all.
        let sees_init = Process::new(1).and_then(|init| init.status()).is_ok();
        let time_namespace = inode("/proc/self/ns/time").unwrap_or(0);
        Observer {
            boot_id: own_boot_id(),
            pid_namespace,
            has_own_proc,
            sees_all: has_own_proc && sees_init && pid_namespace == FIRST_PID_NAMESPACE,
            time_namespace,
            boottime_offset_ns: own_offset_ns(time_namespace, "boottime "),
        }
    }

    /// Whether a ring is known to be of another boot: before a restart, or on another machine.
    pub(super) fn is_of_another_boot(&self, header: &Header) -> bool {
        let is_known = header.boot_id != [0; 16];
        is_known && self.boot_id.is_some_and(|boot_id| boot_id != header.boot_id)
    }

    /// What must be added to a time since boot of the ring to get this reader's; `None` if that is not known. Time
    /// namespaces add different offsets.
    pub(super) fn boottime_ahead_ns(&self, header: &Header) -> Option<i64> {
        if header.time_namespace == self.time_namespace && header.time_namespace != 0 {
            return Some(0);
        }
        self.boottime_offset_ns?.checked_sub(header.boottime_offset_ns?)
    }
}

fn inode(path: &str) -> Option<u64> {
    std::fs::metadata(path).ok().map(|metadata| metadata.ino())
}

/// The name of this machine, and the id of its boot. What is not known is empty or zero.
pub fn own_machine() -> (String, [u8; 16]) {
    let host = nix::unistd::gethostname().unwrap_or_default();
    (host.to_string_lossy().into_owned(), own_boot_id().unwrap_or_default())
}

fn own_boot_id() -> Option<[u8; 16]> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()?.to_be_bytes())
}

/// Whether this reader numbers processes as the kernel itself does.
pub(crate) fn is_in_first_pid_namespace() -> bool {
    observer().pid_namespace == FIRST_PID_NAMESPACE
}

/// Whether this reader numbers threads as the process of a ring does.
pub(crate) fn sees_ids_of(header: &Header) -> bool {
    header.pid_namespace == observer().pid_namespace
}

/// What must be added to the kernel's `CLOCK_MONOTONIC` to get this reader's, ns; `None` if that is not known.
pub(crate) fn monotonic_offset_ns() -> Option<i64> {
    own_offset_ns(observer().time_namespace, "monotonic ")
}

/// What must be added to a clock of the kernel to get this reader's, ns.
fn own_offset_ns(time_namespace: u64, clock: &str) -> Option<i64> {
    match time_namespace {
        FIRST_TIME_NAMESPACE => Some(0),
        // The kernel has no time namespaces.
        0 => std::fs::metadata("/proc/self/ns").ok().map(|_| 0),
        _ => {
            // FOLKLORE: the kernel shows the offsets of the namespace in which this process's children will be.
            if inode("/proc/self/ns/time_for_children") != Some(time_namespace) {
                return None;
            }
            let text = std::fs::read_to_string("/proc/self/timens_offsets").ok()?;
            let mut words = text.lines().find_map(|line| line.strip_prefix(clock))?.split_whitespace();
            let seconds: i64 = words.next()?.parse().ok()?;
            let nanoseconds: i64 = words.next()?.parse().ok()?;
            seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
        }
    }
}
