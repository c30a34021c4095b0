//! The TCP connections of a target: with whom, and what waits in them.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// The connections of a target with one peer, or those that came in at one port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    pub with: ConnectedWith,
    /// How many there are.
    pub count: usize,
    /// How many of them have data that the target has not read.
    pub unread: usize,
    /// How many of them have data that the peer has not confirmed.
    pub unconfirmed: usize,
    /// How many of them the peer has closed, and the target has not.
    pub closed_by_peer: usize,
    /// How many more wait until the target accepts them.
    pub not_accepted: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ConnectedWith {
    /// Those who connected to the target, at this address.
    Clients(SocketAddr),
    /// Those who connected to the target at this address, where nobody listens any more.
    FormerClients(SocketAddr),
    /// A server to which the target has connected.
    Server(SocketAddr),
}
