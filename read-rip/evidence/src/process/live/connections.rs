//! The TCP connections of a living process, by `/proc/PID/fd` and the tables of sockets.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use super::descriptors::Descriptors;
use super::sock_diag::SockDiag;
use super::sockets::TcpSocket;
use super::tcp_origins::Origin;
use crate::target::{ConnectedWith, Connections};

impl Descriptors<'_> {
    /// Its connections, those with the same peer together, the most first. Those in which nothing waits count too.
    pub fn connections(&self) -> Vec<Connections> {
        let diag = self.has_own_network().then(SockDiag::new);
        let asked = Cell::new(0);
        let origin = |socket: &TcpSocket| {
            let diag = diag.as_ref().filter(|_| asked.replace(asked.get() + 1) < ASKED_MAX)?;
            diag.origin(socket)
        };
        grouped(self.tcp_sockets(), |port| self.sockets().listens_at(port), self.outgoing_ports(), origin)
    }
}

/// The kernel is asked for no more connections of a process.
const ASKED_MAX: usize = 1000;

/// How many ports a network namespace has for connections that go out, unless somebody changes that.
const OUTGOING_USUAL: usize = 28_232;
/// What happens this often in a process is no chance.
const CHANCE_MAX: f64 = 1e-6;

/// Whether so many connections with one local port came in, where nobody listens any more. Those that came in share
/// the port of the server. `may_go_out`: how many connections of the process may go out; `outgoing`: the ports for
/// these, if they are known.
///
/// FOLKLORE: Linux gives one port to several connections that go out, if these have different peers. It chooses the
/// port by chance, and takes every second port first. Of 299 connections to different addresses, two pairs shared one.
fn came_in(port: u16, sharing: usize, may_go_out: usize, outgoing: Option<&RangeInclusive<u16>>) -> bool {
    let ports = match outgoing {
        Some(outgoing) if !outgoing.contains(&port) => return sharing > 1,
        Some(outgoing) => outgoing.len() / 2,
        None => OUTGOING_USUAL / 2,
    };
    // How many ports have so many connections on average.
    let ports = ports as f64;
    let by_chance =
        (1..=sharing).fold(ports, |ports_with, nth| ports_with * may_go_out as f64 / (nth as f64 * ports));
    sharing > 1 && by_chance < CHANCE_MAX
}

/// `listens_at` says whether anybody listens at a port; `outgoing`: the ports of connections that go out, if known;
/// `origin`: which end of a connection a socket is, if known.
fn grouped(
    sockets: Vec<TcpSocket>,
    listens_at: impl Fn(u16) -> bool,
    outgoing: Option<RangeInclusive<u16>>,
    origin: impl Fn(&TcpSocket) -> Option<Origin>,
) -> Vec<Connections> {
    let is_listening = |socket: &&TcpSocket| socket.peer.is_none();
    let may_go_out = |socket: &&TcpSocket| socket.peer.is_some() && !listens_at(socket.local.port());
    let may_go_out = sockets.iter().filter(may_go_out).count();
    let mut sharing: BTreeMap<SocketAddr, usize> = BTreeMap::new();
    for socket in sockets.iter().filter(|socket| socket.peer.is_some()) {
        *sharing.entry(socket.local).or_default() += 1;
    }
    let ports: BTreeMap<u16, SocketAddr> =
        sockets.iter().filter(is_listening).map(|socket| (socket.local.port(), socket.local)).collect();
    let mut groups: BTreeMap<ConnectedWith, Connections> = BTreeMap::new();
    for socket in &sockets {
        let with = match (ports.get(&socket.local.port()), socket.peer) {
            (Some(&local), _) => ConnectedWith::Clients(local),
            (None, Some(_)) if sharing[&socket.local] > 1 && listens_at(socket.local.port()) => {
                ConnectedWith::Clients(socket.local)
            }
            (None, Some(peer)) => {
                let (port, sharing) = (socket.local.port(), sharing[&socket.local]);
                let has_come_in = match origin(socket) {
                    Some(origin) => origin == Origin::CameIn,
                    None => came_in(port, sharing, may_go_out, outgoing.as_ref()),
                };
                match has_come_in {
                    true => ConnectedWith::FormerClients(socket.local),
                    false => ConnectedWith::Server(peer),
                }
            }
            (None, None) => continue,
        };
        let group = groups.entry(with).or_insert(Connections {
            with,
            count: 0,
            unread: 0,
            unconfirmed: 0,
            closed_by_peer: 0,
            not_accepted: 0,
        });
        match socket.peer {
            // The kernel counts the connections that wait at a listening socket.
            None => group.not_accepted += usize::try_from(socket.to_read).unwrap_or(usize::MAX),
            Some(_) => {
                group.count += 1;
                group.unread += usize::from(socket.to_read > 0);
                group.unconfirmed += usize::from(socket.to_send > 0);
                group.closed_by_peer += usize::from(socket.state == "CLOSE_WAIT");
            }
        }
    }
    let mut groups: Vec<Connections> = groups.into_values().collect();
    groups.sort_by_key(|group| (std::cmp::Reverse(group.count + group.not_accepted), group.with));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(local: &str, peer: Option<&str>, to_send: u64, to_read: u64) -> TcpSocket {
        let address = |text: &str| text.parse().expect("an address");
        TcpSocket {
            inode: 0,
            local: address(local),
            peer: peer.map(address),
            state: if peer.is_some() { "ESTABLISHED" } else { "LISTEN" },
            to_send,
            to_read,
        }
    }

    #[test]
    fn connections_are_counted_by_who_is_at_the_other_end() {
        let sockets = vec![
            socket("0.0.0.0:8080", None, 0, 3),
            socket("10.0.0.1:8080", Some("10.0.0.7:50000"), 0, 17),
            socket("10.0.0.1:8080", Some("10.0.0.8:50000"), 0, 0),
            socket("10.0.0.1:50001", Some("10.0.0.9:5432"), 12, 0),
        ];
        let [clients, server] = &grouped(sockets, |_| false, None, |_| None)[..] else {
            panic!("two groups")
        };
        assert_eq!(clients.with, ConnectedWith::Clients("0.0.0.0:8080".parse().expect("an address")));
        assert_eq!((clients.count, clients.unread, clients.unconfirmed, clients.not_accepted), (2, 1, 0, 3));
        assert_eq!(server.with, ConnectedWith::Server("10.0.0.9:5432".parse().expect("an address")));
        assert_eq!((server.count, server.unread, server.unconfirmed, server.not_accepted), (1, 0, 1, 0));
    }

    /// What a socket of a process is that has connected to these peers from one port, with as many others.
    fn shared(port: u16, peers: usize, others: u16, outgoing: Option<RangeInclusive<u16>>) -> ConnectedWith {
        let local = format!("10.0.0.1:{port}");
        let mut sockets: Vec<TcpSocket> =
            (1..=peers).map(|peer| socket(&local, Some(&format!("10.0.1.{peer}:443")), 0, 0)).collect();
        let other = |at| socket(&format!("10.0.0.1:{}", 33_000 + at), Some("10.0.0.9:5432"), 0, 0);
        sockets.extend((0..others).map(other));
        let groups = grouped(sockets, |_| false, outgoing, |_| None);
        let of_others = ConnectedWith::Server("10.0.0.9:5432".parse().expect("an address"));
        groups.iter().map(|group| group.with).find(|&with| with != of_others).expect("a group")
    }

    #[test]
    fn connections_that_share_a_port_where_nobody_listens_came_in_before() {
        let usual = Some(32_768..=60_999);
        let local = |port: u16| SocketAddr::new([10, 0, 0, 1].into(), port);
        for outgoing in [usual.clone(), Some(40_000..=50_000)] {
            assert_eq!(shared(8080, 2, 500, outgoing), ConnectedWith::FormerClients(local(8080)));
        }
        // Nobody shares a port so often by chance.
        for outgoing in [usual, None] {
            assert_eq!(shared(50_001, 3, 5, outgoing.clone()), ConnectedWith::FormerClients(local(50_001)));
            assert_eq!(shared(50_001, 6, 500, outgoing), ConnectedWith::FormerClients(local(50_001)));
        }
        let sockets = (2..4).map(|peer| socket("10.0.0.1:8080", Some(&format!("10.0.0.{peer}:443")), 0, 0));
        let open = grouped(sockets.collect(), |_| true, Some(32_768..=60_999), |_| None);
        assert_eq!(open[0].with, ConnectedWith::Clients(local(8080)), "another process listens");
    }

    /// Such a port was taken for that of a server which no longer listens, and a healthy crawler was not judged.
    #[test]
    fn connections_that_go_out_may_share_a_port() {
        let is_server = |with: ConnectedWith| matches!(with, ConnectedWith::Server(_));
        assert!(is_server(shared(50_001, 2, 0, Some(32_768..=60_999))));
        assert!(is_server(shared(50_001, 2, 300, Some(32_768..=60_999))));
        assert!(is_server(shared(50_001, 3, 300, Some(32_768..=60_999))), "three of three hundred");
        assert!(is_server(shared(50_001, 6, 200, Some(50_000..=50_100))), "there are few ports");
        assert!(is_server(shared(8080, 2, 300, Some(1024..=65_535))), "the range is a setting");
        assert!(is_server(shared(8080, 2, 300, None)), "that of another namespace is not known");
    }

    #[test]
    fn what_the_kernel_says_of_a_connection_is_believed() {
        let of = |origin: Origin, port: u16, count: u16| {
            let local = format!("10.0.0.1:{port}");
            let sockets = (0..count).map(|peer| socket(&local, Some(&format!("10.0.1.{peer}:443")), 0, 0));
            grouped(sockets.collect(), |_| false, Some(32_768..=60_999), |_| Some(origin))[0].with
        };
        let is_former = |with: ConnectedWith| matches!(with, ConnectedWith::FormerClients(_));
        assert!(is_former(of(Origin::CameIn, 50_001, 1)));
        assert!(!is_former(of(Origin::WentOut, 8080, 3)), "the program has chosen the port");
    }
}
