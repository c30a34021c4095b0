//! Whether a socket has a time limit for those who wait: `SO_RCVTIMEO` and `SO_SNDTIMEO`, and for data of TCP that
//! nobody takes `TCP_USER_TIMEOUT`.
//!
//! No file of `/proc` has that. This asks a second descriptor of the same socket, which `pidfd_getfd` makes in this
//! process, and which is closed at once. The process whose socket it is does not notice. It takes the rights that its
//! memory takes.

use rustix::net::sockopt::{Timeout, socket_timeout, tcp_user_timeout};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

/// Whether a socket of a process has a limit for those who read from it, or write to it; `None` if that is not known.
pub(super) fn has_limit(pid: u32, descriptor: u32, reads: bool) -> Option<bool> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let socket = pidfd_getfd(process, i32::try_from(descriptor).ok()?, PidfdGetfdFlags::empty()).ok()?;
    let limit = socket_timeout(&socket, if reads { Timeout::Recv } else { Timeout::Send }).ok()?;
    // Other sockets than those of TCP have no such option.
    let user_timeout_ms = tcp_user_timeout(&socket).unwrap_or(0);
    Some(limit.is_some() || !reads && user_timeout_ms > 0)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use rustix::net::sockopt::set_tcp_user_timeout;

    use super::*;

    #[test]
    fn a_socket_says_whether_its_readers_wait_for_ever() {
        let (one, _other) = UnixStream::pair().unwrap();
        let ask = |reads| has_limit(std::process::id(), one.as_raw_fd() as u32, reads);
        if ask(true).is_none() {
            eprintln!("skipped: the kernel does not give a descriptor of another process");
            return;
        }
        assert_eq!((ask(true), ask(false)), (Some(false), Some(false)));
        one.set_read_timeout(Some(Duration::from_secs(15))).unwrap();
        assert_eq!((ask(true), ask(false)), (Some(true), Some(false)));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let ask = |reads| has_limit(std::process::id(), client.as_raw_fd() as u32, reads);
        assert_eq!((ask(true), ask(false)), (Some(false), Some(false)));
        set_tcp_user_timeout(&client, 20_000).unwrap();
        assert_eq!((ask(true), ask(false)), (Some(false), Some(true)));
    }
}
