//! The TCP connections of a living process, by `/proc/PID/fd` and the tables of sockets.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::descriptors::Descriptors;
use super::sockets::TcpSocket;
use crate::target::{ConnectedWith, Connections};

impl Descriptors<'_> {
    /// Its connections, those with the same peer together, the most first. Those in which nothing waits count too.
    pub fn connections(&self) -> Vec<Connections> {
        grouped(self.tcp_sockets(), |port| self.sockets().listens_at(port))
    }
}

/// `listens_at` says whether anybody listens at a port.
fn grouped(sockets: Vec<TcpSocket>, listens_at: impl Fn(u16) -> bool) -> Vec<Connections> {
    let is_listening = |socket: &&TcpSocket| socket.peer.is_none();
    // A connection that goes out has a port of its own. Those that came in share the port of the server.
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
            (None, Some(_)) if sharing[&socket.local] > 1 => match listens_at(socket.local.port()) {
                true => ConnectedWith::Clients(socket.local),
                false => ConnectedWith::FormerClients(socket.local),
            },
            (None, Some(peer)) => ConnectedWith::Server(peer),
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
        let [clients, server] = &grouped(sockets, |_| false)[..] else { panic!("two groups") };
        assert_eq!(clients.with, ConnectedWith::Clients("0.0.0.0:8080".parse().expect("an address")));
        assert_eq!((clients.count, clients.unread, clients.unconfirmed, clients.not_accepted), (2, 1, 0, 3));
        assert_eq!(server.with, ConnectedWith::Server("10.0.0.9:5432".parse().expect("an address")));
        assert_eq!((server.count, server.unread, server.unconfirmed, server.not_accepted), (1, 0, 1, 0));
    }

    #[test]
    fn connections_that_share_a_port_where_nobody_listens_came_in_before() {
        let sockets = vec![
            socket("10.0.0.1:8080", Some("10.0.0.7:50000"), 0, 0),
            socket("10.0.0.1:8080", Some("10.0.0.8:50000"), 0, 0),
            socket("10.0.0.1:50001", Some("10.0.0.9:5432"), 0, 0),
            socket("10.0.0.1:50002", Some("10.0.0.9:5432"), 0, 0),
        ];
        let local = "10.0.0.1:8080".parse().expect("an address");
        let first = |is_open: bool| grouped(sockets.clone(), |_| is_open)[0].clone();
        assert_eq!((first(false).with, first(false).count), (ConnectedWith::FormerClients(local), 2));
        assert_eq!(first(true).with, ConnectedWith::Clients(local), "another process listens");
        let servers = grouped(sockets[2..].to_vec(), |_| false);
        let server = ConnectedWith::Server("10.0.0.9:5432".parse().expect("an address"));
        assert_eq!((servers.len(), servers[0].with, servers[0].count), (1, server, 2));
    }
}
