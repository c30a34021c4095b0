//! What identifies this process and its ring in the ring's header: boot, start time, time namespace, file.
//!
//! What is not known is said to be unknown. The reader then takes nothing for granted.

use std::fs::{File, read_to_string};
use std::io;
use std::os::unix::fs::MetadataExt;

use librip_format::OFFSET_UNKNOWN;

/// The process's start time, clock ticks since boot: field 22 of `/proc/self/stat`. Field 2, the program's name, may
/// contain anything, so the fields are counted after its end.
pub(crate) fn start_time_ticks() -> Option<u64> {
    let status = read_to_string("/proc/self/stat").ok()?;
    status.rsplit_once(')')?.1.split_whitespace().nth(22 - 3)?.parse().ok()
}

/// The id of this boot of the machine.
pub(crate) fn boot_id() -> Option<[u8; 16]> {
    let text = read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let number = u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()?;
    Some(number.to_be_bytes())
}

/// A file, whatever its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl FileId {
    pub(crate) fn of(file: &File) -> io::Result<FileId> {
        let metadata = file.metadata()?;
        Ok(FileId { device: metadata.dev(), inode: metadata.ino() })
    }
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
        let inode = |path| std::fs::metadata(path).map(|metadata| metadata.ino());
        let own = match inode("/proc/self/ns/time") {
            Ok(own) => own,
            Err(_) if std::fs::metadata("/proc/self/ns").is_ok() => {
                // The kernel has no time namespaces.
                return TimeNamespace { inode: 0, boottime_offset_ns: 0 };
            }
            Err(_) => return TimeNamespace { inode: 0, boottime_offset_ns: OFFSET_UNKNOWN },
        };
        if own == FIRST_TIME_NAMESPACE {
            return TimeNamespace { inode: own, boottime_offset_ns: 0 };
        }
        // FOLKLORE: the kernel shows the offsets of the namespace in which this process's children will be.
        let is_childrens = inode("/proc/self/ns/time_for_children").is_ok_and(|other| other == own);
        let text = read_to_string("/proc/self/timens_offsets").ok().filter(|_| is_childrens);
        let offset = text.as_deref().and_then(boottime_offset_ns);
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
    fn the_offset_of_a_time_namespace_has_a_sign() {
        let text = "monotonic           0         0\nboottime      -86400 500000000\n";
        assert_eq!(boottime_offset_ns(text), Some(-86_399_500_000_000));
        assert_eq!(boottime_offset_ns("monotonic 0 0\n"), None);
    }
}
