//! What is behind the descriptors of a living process: `/proc/PID/fd`, `/proc/PID/fdinfo` and the tables of sockets.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::folder::Folder;
use super::peers::{OtherEnd, peers};
use super::sock_diag::SockDiag;
use super::sockets::{Sockets, TcpSocket};
use super::text::{access, decimal};
use crate::target::{Descriptor, DescriptorKind};

/// No more descriptors are looked through for connections.
const SOCKETS_MAX: usize = 10_000;

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

    /// What is behind several descriptors, with the processes that have the other ends of pipes and unix sockets. That
    /// takes one search through the descriptors of all processes, if there are any such ends.
    pub fn get_with_peers(&self, numbers: impl IntoIterator<Item = u32>) -> Vec<Descriptor> {
        let mut found: Vec<Descriptor> = numbers.into_iter().filter_map(|number| self.get(number)).collect();
        let unix = OnceCell::new();
        let (mut ends, mut ends_of) = (Vec::new(), Vec::new());
        for (at, descriptor) in found.iter_mut().enumerate() {
            if let Some(end) = self.other_end(descriptor, &unix) {
                ends.push(end);
                ends_of.push(at);
            }
        }
        for (at, of_end) in ends_of.into_iter().zip(peers(&ends)) {
            if let DescriptorKind::Pipe { peers, .. } | DescriptorKind::Unix { peers, .. } =
                &mut found[at].kind
            {
                *peers = of_end;
            }
        }
        found
    }

    /// What is at the other end of a pipe or unix socket. A socket that has no name gets that of its other end.
    fn other_end(&self, descriptor: &mut Descriptor, unix: &OnceCell<Option<SockDiag>>) -> Option<OtherEnd> {
        match &mut descriptor.kind {
            DescriptorKind::Pipe { inode, .. } => {
                let information = self.thread.read(&format!("fdinfo/{}", descriptor.number)).ok()?;
                let link = format!("pipe:[{inode}]").into_bytes();
                Some(OtherEnd { link, unlike: Some(access(&information)?) })
            }
            DescriptorKind::Unix { inode, name, .. } => {
                // The kernel tells the other ends of the sockets in this reader's namespace alone.
                let unix = unix.get_or_init(|| self.has_own_network().then(SockDiag::new));
                let peer = unix.as_ref()?.unix_peer(*inode)?;
                if let Some(DescriptorKind::Unix { name: of_peer, .. }) = self.sockets().get(peer) {
                    *name = name.take().or(of_peer);
                }
                Some(OtherEnd { link: format!("socket:[{peer}]").into_bytes(), unlike: None })
            }
            _ => None,
        }
    }

    /// Whether the process is in this reader's network namespace.
    pub(super) fn has_own_network(&self) -> bool {
        let own = Folder::open("/proc/thread-self").and_then(|own| own.link("ns/net"));
        own.is_ok_and(|own| self.thread.link("ns/net") == Ok(own))
    }

    /// The ports that the kernel gives to connections of TCP that go out. `None` in another network namespace than this
    /// reader's: the kernel shows each reader the setting of its own one.
    pub(super) fn outgoing_ports(&self) -> Option<RangeInclusive<u16>> {
        let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok();
        range(&text.filter(|_| self.has_own_network())?)
    }

    /// Its sockets of TCP, as far as these are among its first descriptors.
    pub(super) fn tcp_sockets(&self) -> Vec<TcpSocket> {
        let Ok(numbers) = self.thread.folder("fd").and_then(|folder| folder.numbers()) else {
            return Vec::new();
        };
        let inode = |number: u32| {
            let link = self.thread.link(&format!("fd/{number}")).ok()?;
            decimal(link.strip_prefix(b"socket:[")?.strip_suffix(b"]")?)
        };
        let inodes = numbers.into_iter().take(SOCKETS_MAX).filter_map(inode);
        inodes.filter_map(|inode| self.sockets().tcp(inode)).collect()
    }

    pub(super) fn sockets(&self) -> &Sockets {
        self.sockets.get_or_init(|| Sockets::of(self.thread))
    }

    fn kind(&self, link: Vec<u8>, information: &[u8]) -> DescriptorKind {
        let inode = |name: &[u8]| {
            let number = link.strip_prefix(name)?.strip_prefix(b":[")?.strip_suffix(b"]")?;
            decimal(number)
        };
        if let Some(inode) = inode(b"socket") {
            return self.sockets().get(inode).unwrap_or(DescriptorKind::Socket(inode));
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

/// Two numbers, the first one and the last one.
fn range(text: &str) -> Option<RangeInclusive<u16>> {
    let mut numbers = text.split_whitespace().map(|number| number.parse().ok());
    Some(numbers.next()??..=numbers.next()??)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_of_ports_is_the_first_one_and_the_last_one() {
        assert_eq!(range("32768\t60999\n"), Some(32_768..=60_999));
        for other in ["", "32768", "32768\tx", "1 65536"] {
            assert_eq!(range(other), None, "{other}");
        }
    }

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
