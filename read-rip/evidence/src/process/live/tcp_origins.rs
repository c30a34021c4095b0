//! Which end of a connection of TCP began it.
//!
//! FOLKLORE: the kernel counts the bytes that the peer has confirmed, and for the end that connected, its first message
//! (`SYN`) as one of them: "bytes_acked:51 bytes_sent:50". The end that accepted has as many as it sent. It has been so
//! since Linux 4.1. Since 4.19 the kernel also counts what was sent.

use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};
use rustix::net::AddressFamily;
use rustix::net::ipproto::TCP;

use super::sock_diag::SockDiag;
use super::sockets::TcpSocket;

/// A cookie that says that the addresses suffice.
const ANY_COOKIE: [u8; 8] = [0xff; 8];

/// Where the kernel's `struct tcp_info` has the number of segments that were sent and are not confirmed.
const UNCONFIRMED_AT: usize = 24;
/// How many bytes were confirmed.
const CONFIRMED_AT: usize = 120;
/// How many bytes were sent, those that were sent again included.
const SENT_AT: usize = 200;
/// How many of these were sent again.
const SENT_AGAIN_AT: usize = 208;

/// Which end of a connection a socket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It accepted the connection.
    CameIn,
    /// It made the connection.
    WentOut,
}

impl SockDiag {
    /// Which end a connected socket is; `None` if that is not known, as while data is on its way.
    pub(super) fn origin(&self, socket: &TcpSocket) -> Option<Origin> {
        // The end of a connection is counted as a byte too.
        if !matches!(socket.state, "ESTABLISHED" | "CLOSE_WAIT") {
            return None;
        }
        let answer = self.ask(&request(socket)?)?;
        let message = NetlinkMessage::<SockDiagMessage>::deserialize(&answer).ok()?;
        let NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) = message.payload else {
            return None;
        };
        let information = response.nlas.iter().find_map(|nla| match nla {
            Nla::TcpInfo(information) => Some(information),
            _ => None,
        });
        (u64::from(response.header.inode) == socket.inode).then_some(())?;
        by_counts(information?)
    }
}

fn request(socket: &TcpSocket) -> Option<Vec<u8>> {
    let (local, peer) = (socket.local, socket.peer?);
    let family = if local.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST;
    let request = SockDiagMessage::InetRequest(InetRequest {
        family: u8::try_from(family.as_raw()).ok()?,
        protocol: u8::try_from(TCP.as_raw().get()).ok()?,
        extensions: ExtensionFlags::INFO,
        states: StateFlags::all(),
        socket_id: SocketId {
            source_port: local.port(),
            destination_port: peer.port(),
            source_address: local.ip(),
            destination_address: peer.ip(),
            interface_id: 0,
            cookie: ANY_COOKIE,
        },
    });
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    Some(bytes)
}

/// What the counts of a `tcp_info` say.
fn by_counts(information: &[u8]) -> Option<Origin> {
    let at = |at: usize| Some(u64::from_ne_bytes(*information.get(at..)?.first_chunk()?));
    let unconfirmed = u32::from_ne_bytes(*information.get(UNCONFIRMED_AT..)?.first_chunk()?);
    let sent = at(SENT_AT)?.checked_sub(at(SENT_AGAIN_AT)?)?;
    match at(CONFIRMED_AT)?.checked_sub(sent)? {
        _ if unconfirmed > 0 => None,
        0 => Some(Origin::CameIn),
        1 => Some(Origin::WentOut),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn socket(stream: &TcpStream) -> TcpSocket {
        let path = format!("/proc/self/fd/{}", stream.as_raw_fd());
        TcpSocket {
            inode: std::fs::metadata(path).expect("a descriptor").ino(),
            local: stream.local_addr().expect("it is connected"),
            peer: stream.peer_addr().ok(),
            state: "ESTABLISHED",
            to_send: 0,
            to_read: 0,
        }
    }

    #[test]
    fn the_kernel_tells_which_end_connected() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // A machine may be without IPv6.
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let mut client =
                TcpStream::connect(listener.local_addr().expect("it listens")).expect("it listens");
            let (mut server, _) = listener.accept().expect("a client has come");
            let diag = SockDiag::new();
            let both = |client: &TcpStream, server: &TcpStream| {
                [client, server].map(|stream| diag.origin(&socket(stream)))
            };
            let known = [Some(Origin::WentOut), Some(Origin::CameIn)];
            assert_eq!(both(&client, &server), known, "{address}");
            client.write_all(b"a question").expect("it is connected");
            server.read_exact(&mut [0; 10]).expect("it was sent");
            server.write_all(b"an answer").expect("it is connected");
            client.read_exact(&mut [0; 9]).expect("it was sent");
            drop(listener);
            assert_eq!(both(&client, &server), known, "{address}");
            let other = TcpSocket { inode: 1, ..socket(&client) };
            assert_eq!(diag.origin(&other), None, "another socket has the addresses now");
        }
    }

    #[test]
    fn counts_that_fit_no_end_say_nothing() {
        let of = |unconfirmed: u32, confirmed: u64, sent: u64, again: u64| {
            let mut information = vec![0; 232];
            information[UNCONFIRMED_AT..][..4].copy_from_slice(&unconfirmed.to_ne_bytes());
            for (at, count) in [(CONFIRMED_AT, confirmed), (SENT_AT, sent), (SENT_AGAIN_AT, again)] {
                information[at..][..8].copy_from_slice(&count.to_ne_bytes());
            }
            by_counts(&information)
        };
        assert_eq!(of(0, 100, 100, 0), Some(Origin::CameIn));
        assert_eq!(of(0, 101, 130, 30), Some(Origin::WentOut));
        assert_eq!(of(1, 100, 100, 0), None, "some may be on its way");
        assert_eq!(of(0, 100, 0, 0), None, "a kernel that does not count what was sent");
        assert_eq!(of(0, 1, 100, 0), None);
        assert_eq!(of(0, 1, 0, u64::MAX), None);
        assert_eq!(by_counts(&[0; 200]), None, "an older kernel");
    }
}
