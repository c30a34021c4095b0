//! What is behind a file descriptor.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::saved_text::Constant;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptor {
    pub number: u32,
    pub kind: DescriptorKind,
}

/// A process that has the other end of a pipe or of a socket. It may be the target itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// Its pid in this reader's PID namespace.
    pub pid: u32,
    /// The name of its first thread; may contain anything.
    pub name: String,
    pub descriptor: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DescriptorKind {
    File(#[serde(serialize_with = "crate::saved_text::path")] PathBuf),
    /// A TCP connection or a listening socket.
    Tcp {
        local: SocketAddr,
        /// The other end; `None` if the socket listens.
        peer: Option<SocketAddr>,
        /// The kernel's word for its state, as in `ESTABLISHED`.
        #[serde(deserialize_with = "crate::saved_text::constant")]
        state: Constant,
    },
    Udp {
        local: SocketAddr,
        /// The other end, if the socket is connected.
        peer: Option<SocketAddr>,
    },
    Unix {
        inode: u64,
        /// Its path, or its abstract name after an `@`, or that of its other end; `None` if neither has one.
        name: Option<String>,
        /// The processes that have the other end, as far as this reader may know.
        peers: Vec<Peer>,
    },
    /// A socket of another kind; its inode.
    Socket(u64),
    Pipe {
        inode: u64,
        /// The processes that have the other end, as far as this reader may know.
        peers: Vec<Peer>,
    },
    Epoll {
        /// The numbers of the descriptors that it watches.
        watched: Vec<u32>,
    },
    Process {
        /// Its pid in this reader's PID namespace; `None` if it has ended, or is of another namespace.
        pid: Option<u32>,
    },
    /// Another file without a path: `eventfd`, `timerfd`, `signalfd`, `inotify` and so on.
    Anonymous(String),
    /// It is open, and nothing else is known.
    Unknown,
}

impl DescriptorKind {
    /// Whether it is a connection to a server or to a client: of TCP, or of a unix socket with a name.
    pub fn is_connection(&self) -> bool {
        match self {
            DescriptorKind::Tcp { peer, .. } => peer.is_some(),
            // A socket without a connection, from which whole messages are read, has no other end.
            DescriptorKind::Unix { name, peers, .. } => name.is_some() && !peers.is_empty(),
            _ => false,
        }
    }
}
