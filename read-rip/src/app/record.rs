//! `read-rip record`: follows a living ring into a file, for as long as wanted.
//!
//! `ring::Follower` copies what is new, and `ring::RecordingWriter` writes it. This file decides when. An image of the
//! ring is written at the start, from time to time, and at the end. So a recorder that is killed leaves an image that
//! is not old, and all words up to its last round.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::error::AppError;
use super::output::{SOUND, remark};
use super::reading::Reading;
use super::save::context;
use crate::cli::{Common, RecordArgs};
use crate::core::is_core;
use crate::process::liveness;
use crate::report::{self, printable};
use crate::ring::{self, Follower, IntoParts, NewWords, Parts, RecordingWriter, Saved, Source};

/// How often an image of the ring is written.
const IMAGE_INTERVAL: Duration = Duration::from_secs(10);
/// What ends the recording. The file is complete then.
const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// `read-rip record`.
pub(super) fn record(args: &RecordArgs, wanted: &Common) -> Result<u8, AppError> {
    let path = super::rings::choose(&args.ring, wanted)?;
    if is_core(&path) {
        return Err(AppError::NotForCores { path });
    }
    let source = Source::open(&path)?;
    if Saved::of(&source).is_some() || !source.may_change() {
        return Err(AppError::AlreadySaved { path });
    }
    let failed = |source| AppError::Record { path: args.output.clone(), source };
    let signals = Signals::catch().map_err(failed)?;
    let file = File::options().write(true).create_new(true).open(&args.output).map_err(failed)?;
    let writer = RecordingWriter::new(file).map_err(failed)?;
    let mut recorder = Recorder { source, writer, follower: Follower::default(), totals: Totals::default() };
    let begun = Instant::now();
    let mut image_due = begun;
    let mut is_stopped = false;
    remark(format_args!("Recording {} into {}.", shown(&path), shown(&args.output)));
    loop {
        // Asked before the words are copied: if the process is dead, these are its last ones.
        let is_last =
            recorder.is_over()? || is_stopped || args.r#for.is_some_and(|limit| begun.elapsed() >= limit);
        recorder.words().map_err(failed)?;
        if is_last || Instant::now() >= image_due {
            recorder.image(wanted, &failed)?;
            image_due = Instant::now() + IMAGE_INTERVAL;
        }
        if is_last {
            break;
        }
        is_stopped = signals.wait(args.interval).map_err(failed)?;
    }
    remark(recorder.summary(begun.elapsed(), &args.output));
    Ok(SOUND)
}

fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy()).to_string()
}

struct Recorder {
    source: Source,
    writer: RecordingWriter<File>,
    follower: Follower,
    totals: Totals,
}

#[derive(Default)]
struct Totals {
    words: u64,
    unseen: u64,
}

impl Recorder {
    fn is_over(&self) -> Result<bool, AppError> {
        Ok(liveness(&ring::present_header(&self.source)?).is_final())
    }

    /// Writes what is new.
    fn words(&mut self) -> io::Result<()> {
        let header = ring::present_header(&self.source).map_err(io::Error::other)?;
        let new = self.follower.new_words(&self.source, &header)?;
        for NewWords { words, unseen, .. } in &new {
            self.totals.words += words.iter().filter(|word| !word.is_missing()).count() as u64;
            self.totals.unseen += unseen;
        }
        self.writer.words(&new)
    }

    /// Writes an image.
    fn image(&mut self, wanted: &Common, failed: &dyn Fn(io::Error) -> AppError) -> Result<(), AppError> {
        let reading = Reading::of_ring(&self.source, wanted)?;
        let header = reading.snapshot.header.clone();
        let context = context(reading, None).to_bytes().map_err(io::Error::from).map_err(failed)?;
        let image = |out: &mut Parts| {
            let len = ring::write_image(&self.source, header.as_ref(), &mut IntoParts(out))?;
            Saved::write_rest(out, len, 0, &context)
        };
        self.writer.image(image).map_err(failed)
    }

    /// What was recorded.
    fn summary(&self, took: Duration, target: &Path) -> String {
        let Totals { words, unseen } = self.totals;
        let kib = self.writer.written_bytes() / 1024;
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let lost = report::remarks::of_unseen(unseen).unwrap_or_default();
        format!(
            "Recorded {words} words in {}: {}, {kib} KiB. {lost}",
            report::duration(took_ns),
            shown(target)
        )
        .trim_end()
        .to_owned()
    }
}

/// Signals that end the recording.
struct Signals(SignalFd);

impl Signals {
    fn catch() -> io::Result<Signals> {
        let awaited = SigSet::from_iter(ENDING);
        awaited.thread_block()?;
        Ok(Signals(SignalFd::with_flags(&awaited, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?))
    }

    /// Waits for this time, or until a signal comes. Returns whether one came.
    fn wait(&self, limit: Duration) -> io::Result<bool> {
        let limit = PollTimeout::try_from(limit.max(Duration::from_millis(1))).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)], limit) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.0.read_signal()?.is_some())
    }
}
