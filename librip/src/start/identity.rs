//! What identifies this process in the ring's header: boot, start time, time namespace. Safe in a signal handler.
//!
//! What is not known is said to be unknown. The reader then takes nothing for granted.

use core::ffi::CStr;

use librip_format::OFFSET_UNKNOWN;

use crate::sys;
use crate::sys::file::{self, File, Terminated};

/// A process's start time, clock ticks since boot: field 22 of `/proc/PID/stat`. Field 2, the program's name, may
/// contain anything, so the fields are counted after its end.
pub(crate) fn start_time_ticks(pid: u32) -> Option<u64> {
    let mut bytes = [0; 1024];
    let status = if pid == sys::pid() {
        // Also right if `/proc` is that of another PID namespace.
        contents(c"/proc/self/stat", &mut bytes)?
    } else {
        let path = Terminated::<32>::formatted(format_args!("/proc/{pid}/stat"))?;
        contents(path.as_c_str(), &mut bytes)?
    };
    status.rsplit_once(')')?.1.split_whitespace().nth(22 - 3)?.parse().ok()
}

/// The id of this boot of the machine.
pub(crate) fn boot_id() -> Option<[u8; 16]> {
    let mut bytes = [0; 64];
    let text = contents(c"/proc/sys/kernel/random/boot_id", &mut bytes)?;
    let mut digits =
        text.bytes().filter(|&byte| byte != b'-').map_while(|byte| char::from(byte).to_digit(16));
    let mut id = [0; 16];
    for byte in &mut id {
        *byte = (digits.next()? << 4 | digits.next()?) as u8;
    }
    Some(id)
}

/// The start of a file of `/proc`, which the kernel gives in one piece, without bytes that are not ASCII.
fn contents<'a>(path: &CStr, bytes: &'a mut [u8]) -> Option<&'a str> {
    let len = File::open(path, 0).ok()?.read(bytes).ok()?;
    for byte in &mut bytes[..len] {
        if !byte.is_ascii() {
            *byte = b'?';
        }
    }
    core::str::from_utf8(&bytes[..len]).ok()
}

/// The time namespace of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeNamespace {
    /// 0 if the kernel has no time namespaces, or this one's is not known.
    pub(crate) inode: u64,
    /// What the namespace adds to `CLOCK_BOOTTIME`, ns; [`OFFSET_UNKNOWN`] if it is not known.
    pub(crate) boottime_offset_ns: i64,
}

/// The inode of the initial time namespace (`PROC_TIME_INIT_INO` of Linux), which adds nothing.
const FIRST_TIME_NAMESPACE: u64 = 0xEFFF_FFFA;

impl TimeNamespace {
    pub(crate) fn own() -> TimeNamespace {
        let inode = |path| file::id_at(path, true).map(|id| id.inode);
        let own = match inode(c"/proc/self/ns/time") {
            Ok(own) => own,
            Err(_) if inode(c"/proc/self/ns").is_ok() => {
                // The kernel has no time namespaces.
                return TimeNamespace { inode: 0, boottime_offset_ns: 0 };
            }
            Err(_) => return TimeNamespace { inode: 0, boottime_offset_ns: OFFSET_UNKNOWN },
        };
        if own == FIRST_TIME_NAMESPACE {
            return TimeNamespace { inode: own, boottime_offset_ns: 0 };
        }
        // FOLKLORE: the kernel shows the offsets of the namespace in which this process's children will be.
        let is_childrens = inode(c"/proc/self/ns/time_for_children").is_ok_and(|other| other == own);
        let mut bytes = [0; 256];
        let text = contents(c"/proc/self/timens_offsets", &mut bytes).filter(|_| is_childrens);
        let offset = text.and_then(boottime_offset_ns);
        TimeNamespace { inode: own, boottime_offset_ns: offset.unwrap_or(OFFSET_UNKNOWN) }
    }
}

/// The offset of the line `boottime SECONDS NANOSECONDS`, ns.
fn boottime_offset_ns(text: &str) -> Option<i64> {
    let mut words = text.lines().find_map(|line| line.strip_prefix("boottime "))?.split_whitespace();
    let seconds: i64 = words.next()?.parse().ok()?;
    let nanoseconds: i64 = words.next()?.parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_and_start_are_those_that_the_kernel_shows() {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let number = u128::from_str_radix(&text.trim().replace('-', ""), 16).unwrap();
        assert_eq!(boot_id(), Some(number.to_be_bytes()));
        let status = std::fs::read_to_string("/proc/self/stat").unwrap();
        let start = status.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap();
        assert_eq!(start_time_ticks(std::process::id()), Some(start));
    }

    #[test]
    fn the_offset_of_a_time_namespace_has_a_sign() {
        let text = "monotonic           0         0\nboottime      -86400 500000000\n";
        assert_eq!(boottime_offset_ns(text), Some(-86_399_500_000_000));
        assert_eq!(boottime_offset_ns("monotonic 0 0\n"), None);
    }
}
