//! Asks the kernel for sockets, by messages of the kind `sock_diag`: `unix_peers` and `tcp_origins` do.
//!
//! The kernel answers for the network namespace of the one who asks: the caller makes sure that it is this reader's.

use rustix::fd::OwnedFd;
use rustix::io::retry_on_intr;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

/// No answer about one socket is longer.
const ANSWER_MAX_BYTES: usize = 4096;

/// Where a sandbox or the kernel refuses to answer, nothing is known.
#[derive(Debug)]
pub(super) struct SockDiag(Option<OwnedFd>);

impl SockDiag {
    pub(super) fn new() -> SockDiag {
        let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
        let socket = rustix::net::socket_with(family, SocketType::RAW, flags, Some(netlink::SOCK_DIAG));
        SockDiag(socket.ok())
    }

    /// The kernel's answer to a request for one socket.
    pub(super) fn ask(&self, request: &[u8]) -> Option<Vec<u8>> {
        let socket = self.0.as_ref()?;
        retry_on_intr(|| rustix::net::send(socket, request, SendFlags::empty())).ok()?;
        let mut answer = vec![0; ANSWER_MAX_BYTES];
        // The kernel has answered when the sending returns.
        let received = retry_on_intr(|| rustix::net::recv(socket, &mut answer[..], RecvFlags::DONTWAIT));
        answer.truncate(received.ok()?.0);
        Some(answer)
    }
}
