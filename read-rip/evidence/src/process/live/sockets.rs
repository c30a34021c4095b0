//! The sockets of a network namespace, by inode: `/proc/PID/net/{tcp,tcp6,udp,udp6,unix}`.
//!
//! The tables do not name the other end of a unix socket: `unix_peers` does.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::folder::Folder;
use super::text::{decimal, hexadecimal};
use crate::target::DescriptorKind;

/// The states of TCP, from 1 on, as in the kernel's `tcp_states.h`.
const TCP_STATES: [&str; 12] = [
    "ESTABLISHED",
    "SYN_SENT",
    "SYN_RECV",
    "FIN_WAIT1",
    "FIN_WAIT2",
    "TIME_WAIT",
    "CLOSE",
    "CLOSE_WAIT",
    "LAST_ACK",
    "LISTEN",
    "CLOSING",
    "NEW_SYN_RECV",
];

#[derive(Debug, Default)]
pub(super) struct Sockets {
    by_inode: HashMap<u64, DescriptorKind>,
    /// The connections of TCP by their two addresses, their own first.
    connections: HashMap<(SocketAddr, SocketAddr), Connection>,
    /// What waits in the sockets of TCP: to be sent, and to be read.
    queues: HashMap<u64, (u64, u64)>,
    /// The ports at which a socket of TCP listens.
    listening: HashSet<u16>,
}

#[derive(Clone, Copy, Debug)]
struct Connection {
    inode: u64,
    /// How much it has sent that the other end has not confirmed yet, bytes.
    to_send: u64,
}

/// A socket of TCP, and what waits in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TcpSocket {
    pub(super) inode: u64,
    pub(super) local: SocketAddr,
    /// The other end; `None` if it listens.
    pub(super) peer: Option<SocketAddr>,
    pub(super) state: &'static str,
    /// How much it has sent that the other end has not confirmed yet, bytes.
    pub(super) to_send: u64,
    /// How much it has got that was not read, bytes. If it listens: how many connections were not accepted.
    pub(super) to_read: u64,
}

impl Sockets {
    /// Those of a thread's network namespace. A table that cannot be read is left out.
    pub(super) fn of(thread: &Folder) -> Sockets {
        let mut sockets = Sockets::default();
        for (table, parse) in [
            ("net/tcp", tcp as fn(&[u8]) -> Option<(u64, DescriptorKind)>),
            ("net/tcp6", tcp),
            ("net/udp", udp),
            ("net/udp6", udp),
            ("net/unix", unix),
        ] {
            let text = thread.read(table).unwrap_or_default();
            if table.starts_with("net/tcp") {
                sockets.connections.extend(lines(&text).filter_map(connection));
                let queues = lines(&text).filter_map(|line| Some((internet(line)?.3, queues(line)?)));
                sockets.queues.extend(queues);
            }
            sockets.by_inode.extend(lines(&text).filter_map(parse));
        }
        sockets.listening = sockets.by_inode.values().filter_map(listens_at).collect();
        sockets
    }

    pub(super) fn get(&self, inode: u64) -> Option<DescriptorKind> {
        self.by_inode.get(&inode).cloned()
    }

    pub(super) fn tcp(&self, inode: u64) -> Option<TcpSocket> {
        let DescriptorKind::Tcp { local, peer, state } = *self.by_inode.get(&inode)? else { return None };
        let (to_send, to_read) = self.queues.get(&inode).copied().unwrap_or_default();
        Some(TcpSocket { inode, local, peer, state, to_send, to_read })
    }

    /// Whether a socket of TCP listens at this port.
    pub(super) fn listens_at(&self, port: u16) -> bool {
        self.listening.contains(&port)
    }

    /// The other end of a connection of TCP, if it is in this network namespace and the connection stands. `reads`: it
    /// is asked for a thread that reads, so nothing may be on its way.
    pub(super) fn other_end(&self, inode: u64, reads: bool) -> Option<u64> {
        let DescriptorKind::Tcp { local, peer: Some(peer), state } = self.by_inode.get(&inode)? else {
            return None;
        };
        let other = self.connections.get(&(*peer, *local))?;
        let is_quiet = !reads || other.to_send == 0;
        (*state == "ESTABLISHED" && is_quiet && other.inode != 0).then_some(other.inode)
    }
}

/// The port at which a socket of TCP listens.
fn listens_at(socket: &DescriptorKind) -> Option<u16> {
    match socket {
        DescriptorKind::Tcp { local, peer: None, state: "LISTEN" } => Some(local.port()),
        _ => None,
    }
}

/// The lines of a table after its heading.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b'\n').skip(1)
}

fn connection(line: &[u8]) -> Option<((SocketAddr, SocketAddr), Connection)> {
    let (local, peer, _, inode) = internet(line)?;
    Some(((local, peer?), Connection { inode, to_send: queues(line)?.0 }))
}

/// How much is to be sent and to be read.
fn queues(line: &[u8]) -> Option<(u64, u64)> {
    let queues = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).nth(4)?;
    let colon = queues.iter().position(|&byte| byte == b':')?;
    Some((hexadecimal(&queues[..colon])?, hexadecimal(&queues[colon + 1..])?))
}

fn tcp(line: &[u8]) -> Option<(u64, DescriptorKind)> {
    let (local, peer, state, inode) = internet(line)?;
    let state = TCP_STATES.get(usize::try_from(state).ok()?.checked_sub(1)?)?;
    Some((inode, DescriptorKind::Tcp { local, peer, state }))
}

fn udp(line: &[u8]) -> Option<(u64, DescriptorKind)> {
    let (local, peer, _, inode) = internet(line)?;
    Some((inode, DescriptorKind::Udp { local, peer }))
}

/// Both ends, the state and the inode. A peer without a port is none.
fn internet(line: &[u8]) -> Option<(SocketAddr, Option<SocketAddr>, u64, u64)> {
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let local = address(fields.nth(1)?)?;
    let peer = address(fields.next()?)?;
    let state = hexadecimal(fields.next()?)?;
    // Then follow: queues, timer, retransmissions, user, time-out.
    let inode = decimal(fields.nth(5)?)?;
    Some((local, (peer.port() != 0).then_some(peer), state, inode))
}

/// An address and a port. The kernel prints each 32 bits of an address as a number of the machine's byte order.
fn address(text: &[u8]) -> Option<SocketAddr> {
    let colon = text.iter().position(|&byte| byte == b':')?;
    let port = u16::try_from(hexadecimal(&text[colon + 1..])?).ok()?;
    let (words, rest) = text[..colon].as_chunks::<8>();
    let mut bytes = [0; 16];
    for (word, four) in words.iter().zip(bytes.as_chunks_mut::<4>().0) {
        *four = u32::try_from(hexadecimal(word)?).ok()?.to_ne_bytes();
    }
    let ip = match (words.len(), rest) {
        (1, []) => IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])),
        (4, []) => IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

fn unix(line: &[u8]) -> Option<(u64, DescriptorKind)> {
    // Address, references, protocol, flags, type, state, inode, then perhaps a space and a name with any characters.
    let mut rest = line;
    let mut inode = None;
    for index in 0..7 {
        rest = rest.trim_ascii_start();
        let end = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
        if index == 6 {
            inode = decimal(&rest[..end]);
        }
        rest = &rest[end..];
    }
    let name = rest.strip_prefix(b" ").filter(|name| !name.is_empty());
    let name = name.map(|name| String::from_utf8_lossy(name).into_owned());
    Some((inode?, DescriptorKind::Unix { inode: inode?, name, peers: Vec::new() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn a_table_has_both_ends_of_a_connection() {
        let line =
            b" 0: 0100007F:1F90 0700000A:1538 01 00000000:00000000 00:00000000 00000000  1000  0 61234 1";
        let expected = DescriptorKind::Tcp {
            local: "127.0.0.1:8080".parse().expect("an address"),
            peer: Some("10.0.0.7:5432".parse().expect("an address")),
            state: "ESTABLISHED",
        };
        assert_eq!(tcp(line), Some((61234, expected)));
        let listens = b" 1: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A \
            00000000:00000000 00:00000000 00000000 0 0 7 1";
        let expected = DescriptorKind::Tcp {
            local: "[::1]:80".parse().expect("an address"),
            peer: None,
            state: "LISTEN",
        };
        assert_eq!(tcp(listens), Some((7, expected)));
        assert_eq!(tcp(b"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt"), None);
        assert_eq!(tcp(b""), None);
        assert_eq!(tcp(b"0: 0100007F 0100007F:1 01 0:0 0:0 0 0 0 1"), None);
    }

    #[test]
    fn a_unix_socket_may_have_any_name() {
        let named = |name: &str| {
            unix(format!("0000000000000000: 00000002 00000000 00010000 0001 01 26049{name}").as_bytes())
        };
        let socket = |name: Option<&str>| {
            let name = name.map(str::to_owned);
            Some((26049, DescriptorKind::Unix { inode: 26049, name, peers: Vec::new() }))
        };
        assert_eq!(named(" /run/a b"), socket(Some("/run/a b")));
        assert_eq!(named(" @/tmp/.X11-unix/X0"), socket(Some("@/tmp/.X11-unix/X0")));
        assert_eq!(named(""), socket(None));
        assert_eq!(unix(b"Num       RefCount Protocol Flags    Type St Inode Path"), None);
        assert_eq!(unix(b""), None);
    }
}
