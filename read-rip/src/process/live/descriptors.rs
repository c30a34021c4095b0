//! What is behind the descriptors of a living process: `/proc/PID/fd`, `/proc/PID/fdinfo` and the tables of sockets.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::folder::Folder;
use super::sockets::Sockets;
use super::text::decimal;
use crate::target::{Descriptor, DescriptorKind};

/// `O_ACCMODE`: a descriptor is for reading (0), for writing (1) or for both (2).
const ACCESS: u64 = 3;
/// A search for the other end of a pipe looks at this many descriptors at most.
const SEARCHED_MAX: usize = 200_000;

/// The descriptors of a process. The tables of sockets are read when the first socket is asked for.
#[derive(Debug)]
pub struct Descriptors<'a> {
    thread: &'a Folder,
    sockets: OnceCell<Sockets>,
}

impl<'a> Descriptors<'a> {
    pub(super) fn of(thread: &'a Folder) -> Descriptors<'a> {
        Descriptors { thread, sockets: OnceCell::new() }
    }

    /// What is behind a descriptor; `None` if it is not open, or if this reader may not know it.
    pub fn get(&self, number: u32) -> Option<Descriptor> {
        let link = self.thread.link(&format!("fd/{number}")).ok()?;
        let information = self.thread.read(&format!("fdinfo/{number}")).unwrap_or_default();
        Some(Descriptor { number, kind: self.kind(link, &information) })
    }

    /// The same, with the processes that have the other end of a pipe. That takes a search through the descriptors of
    /// all processes.
    pub fn get_with_peers(&self, number: u32) -> Option<Descriptor> {
        let mut descriptor = self.get(number)?;
        if let DescriptorKind::Pipe { peers, .. } = &mut descriptor.kind {
            let link = self.thread.link(&format!("fd/{number}")).ok()?;
            let information = self.thread.read(&format!("fdinfo/{number}")).unwrap_or_default();
            *peers = processes_at_other_end(&link, access(&information)?);
        }
        Some(descriptor)
    }

    fn kind(&self, link: Vec<u8>, information: &[u8]) -> DescriptorKind {
        let inode = |name: &[u8]| {
            let number = link.strip_prefix(name)?.strip_prefix(b":[")?.strip_suffix(b"]")?;
            decimal(number)
        };
        if let Some(inode) = inode(b"socket") {
            let sockets = self.sockets.get_or_init(|| Sockets::of(self.thread));
            return sockets.get(inode).unwrap_or(DescriptorKind::Socket(inode));
        }
        if let Some(inode) = inode(b"pipe") {
            return DescriptorKind::Pipe { inode, peers: Vec::new() };
        }
        if let Some(name) = link.strip_prefix(b"anon_inode:") {
            let name = name.strip_prefix(b"[").and_then(|name| name.strip_suffix(b"]")).unwrap_or(name);
            return match name {
                b"eventpoll" => DescriptorKind::Epoll { watched: values(information, b"tfd") },
                b"pidfd" => DescriptorKind::Process { pid: values(information, b"Pid").first().copied() },
                other => DescriptorKind::Anonymous(String::from_utf8_lossy(other).into_owned()),
            };
        }
        DescriptorKind::File(PathBuf::from(OsString::from_vec(link)))
    }
}

/// The numbers after each `key:` that begins a line. A negative number means none.
fn values(information: &[u8], key: &[u8]) -> Vec<u32> {
    let lines = information.split(|&byte| byte == b'\n');
    let after_key = lines.filter_map(|line| line.strip_prefix(key)?.strip_prefix(b":"));
    let numbers = after_key.filter_map(|rest| {
        let rest = rest.trim_ascii_start();
        let end = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        u32::try_from(decimal(&rest[..end])?).ok()
    });
    numbers.collect()
}

/// How a descriptor is open: see [`ACCESS`].
fn access(information: &[u8]) -> Option<u64> {
    let mut lines = information.split(|&byte| byte == b'\n');
    let flags = lines.find_map(|line| line.strip_prefix(b"flags:"))?.trim_ascii();
    Some(u64::from_str_radix(std::str::from_utf8(flags).ok()?, 8).ok()? & ACCESS)
}

/// The processes that have the other end of a pipe, as far as this reader may know, by pid.
fn processes_at_other_end(link: &[u8], own_access: u64) -> Vec<u32> {
    let mut found = Vec::new();
    let mut searched = 0;
    let Ok(processes) = Folder::open("/proc") else { return found };
    for pid in processes.numbers().unwrap_or_default() {
        let Ok(process) = processes.folder(&pid.to_string()) else { continue };
        let Ok(numbers) = process.folder("fd").and_then(|descriptors| descriptors.numbers()) else {
            continue;
        };
        searched += numbers.len();
        if searched > SEARCHED_MAX {
            break;
        }
        let is_other_end = |number: u32| {
            process.link(&format!("fd/{number}")).is_ok_and(|other| other == link)
                && process
                    .read(&format!("fdinfo/{number}"))
                    .is_ok_and(|information| access(&information).is_some_and(|access| access != own_access))
        };
        if numbers.into_iter().any(is_other_end) {
            found.push(pid);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoll_instance_names_what_it_watches() {
        let text = b"pos:\t0\nflags:\t02000002\nmnt_id:\t15\nino:\t1057\n\
            tfd:        5 events:       19 data:                5  pos:0 ino:61 sdev:9\n\
            tfd:       12 events: 80000019 data: ffffffffffffffff  pos:0 ino:62 sdev:9\n";
        assert_eq!(values(text, b"tfd"), [5, 12]);
        assert_eq!(access(text), Some(2));
        assert_eq!(values(b"Pid:\t-1\nNSpid:\t4\n", b"Pid"), [0; 0]);
        assert_eq!(values(b"Pid:\t4711\nNSpid:\t4\n", b"Pid"), [4711]);
        assert_eq!(values(b"tfd: 99999999999\ntfd:\ntfd", b"tfd"), [0; 0]);
        assert_eq!(access(b"flags:\tx\n"), None);
    }
}
