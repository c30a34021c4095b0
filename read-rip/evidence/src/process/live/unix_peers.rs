//! Which unix sockets are connected with which.
//!
//! An inode of another network namespace's socket is of another socket here, or of none.

use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::unix::{ShowFlags, StateFlags, UnixRequest};

use super::sock_diag::SockDiag;

/// A cookie that says that the inode suffices.
const ANY_COOKIE: [u8; 8] = [0xff; 8];
/// The number of datagram sockets.
const SOCK_DGRAM: u8 = 2;

impl SockDiag {
    /// The inode of the unix socket that the one with this inode is connected with.
    pub(super) fn unix_peer(&self, inode: u64) -> Option<u64> {
        self.unix_peer_if(inode, |_| true)
    }

    /// The same, if only the other end can send to this one: it is no datagram socket.
    pub(super) fn unix_peer_of_connection(&self, inode: u64) -> Option<u64> {
        self.unix_peer_if(inode, |kind| kind != SOCK_DGRAM)
    }

    fn unix_peer_if(&self, inode: u64, is_kind: impl Fn(u8) -> bool) -> Option<u64> {
        peer(&self.ask(&request(u32::try_from(inode).ok()?))?, inode, is_kind)
    }
}

fn request(inode: u32) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST;
    let request = SockDiagMessage::UnixRequest(UnixRequest {
        state_flags: StateFlags::all(),
        inode,
        show_flags: ShowFlags::PEER,
        cookie: ANY_COOKIE,
    });
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

/// The other end, by the kernel's answer about the socket with this inode.
fn peer(answer: &[u8], inode: u64, is_kind: impl Fn(u8) -> bool) -> Option<u64> {
    let message = NetlinkMessage::<SockDiagMessage>::deserialize(answer).ok()?;
    let NetlinkPayload::InnerMessage(SockDiagMessage::UnixResponse(response)) = message.payload else {
        return None;
    };
    let is_of_it = u64::from(response.header.inode) == inode && is_kind(response.header.kind);
    // A connection that nobody has accepted has no inode at its other end.
    response.peer().filter(|&peer| is_of_it && peer != 0).map(u64::from)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn inode(socket: &UnixStream) -> u64 {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(format!("/proc/self/fd/{}", socket.as_raw_fd())).expect("a descriptor").ino()
    }

    #[test]
    fn each_of_two_connected_sockets_names_the_other() {
        let (one, other) = UnixStream::pair().expect("sockets");
        let peers = SockDiag::new();
        assert_eq!(peers.unix_peer(inode(&one)), Some(inode(&other)));
        assert_eq!(peers.unix_peer(inode(&other)), Some(inode(&one)));
        drop(other);
        assert_eq!(peers.unix_peer(inode(&one)), None, "its other end is closed");
        for absent in [0, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(peers.unix_peer(absent), None, "{absent}");
        }
    }

    #[test]
    fn an_answer_that_is_cut_or_of_another_socket_says_nothing() {
        let (one, _other) = UnixStream::pair().expect("sockets");
        let request = request(u32::try_from(inode(&one)).expect("an inode"));
        for len in 0..request.len() {
            assert_eq!(peer(&request[..len], inode(&one), |_| true), None, "{len}");
        }
        assert_eq!(peer(&[0xff; 100], 1, |_| true), None);
    }
}
