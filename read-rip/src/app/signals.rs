//! The signals that end a recording, an export or a live screen.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// What ends them. A file is complete then, and a terminal as it was.
const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Signals that do not end this process, but are waited for.
pub(super) struct Signals(SignalFd);

impl Signals {
    pub(super) fn catch() -> io::Result<Signals> {
        let ignored = ignored();
        let awaited = ENDING.into_iter().filter(|&signal| ignored & 1 << (signal as u32 - 1) == 0);
        let awaited = SigSet::from_iter(awaited);
        awaited.thread_block()?;
        Ok(Signals(SignalFd::with_flags(&awaited, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?))
    }

    /// Waits for this time, or until a signal comes. Returns whether one came.
    pub(super) fn wait(&self, limit: Duration) -> io::Result<bool> {
        self.next(limit).map(|signal| signal.is_some())
    }

    /// Waits for this time, or until a signal comes, and returns it.
    pub(super) fn next(&self, limit: Duration) -> io::Result<Option<Signal>> {
        let limit = PollTimeout::try_from(limit.max(Duration::from_millis(1))).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)], limit) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let came = self.0.read_signal()?;
        Ok(came.and_then(|info| Signal::try_from(info.ssi_signo as i32).ok()))
    }
}

/// The signals that whoever started the program wants it to ignore, as `nohup` does: signal 1 is bit 0. Who waits for
/// a signal gets it even if it is ignored.
fn ignored() -> u64 {
    let status = procfs::process::Process::myself().and_then(|own| own.status());
    status.map_or(0, |status| status.sigign)
}

/// Ends the program by a signal that was waited for, as if it had not been.
pub(super) fn end_by(signal: Signal) -> ! {
    let _ = SigSet::from_iter([signal]).thread_unblock();
    let _ = raise(signal);
    // It may be ignored by now.
    std::process::exit(128 + signal as i32)
}
