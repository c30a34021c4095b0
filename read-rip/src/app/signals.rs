//! The signals that end a recording or a live screen.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// What ends them. A file is complete then, and a terminal as it was.
const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Signals that do not end this process, but are waited for.
pub(super) struct Signals(SignalFd);

impl Signals {
    pub(super) fn catch() -> io::Result<Signals> {
        let awaited = SigSet::from_iter(ENDING);
        awaited.thread_block()?;
        Ok(Signals(SignalFd::with_flags(&awaited, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?))
    }

    /// Waits for this time, or until a signal comes. Returns whether one came.
    pub(super) fn wait(&self, limit: Duration) -> io::Result<bool> {
        let limit = PollTimeout::try_from(limit.max(Duration::from_millis(1))).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)], limit) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.0.read_signal()?.is_some())
    }
}
