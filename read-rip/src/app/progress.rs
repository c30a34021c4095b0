//! How far a long export is, or a look at many rings, on a terminal.

use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What takes no longer than this shows nothing.
const SILENCE: Duration = Duration::from_secs(1);
/// How often the line is drawn.
const TICK: Duration = Duration::from_millis(100);

/// A line on standard error that says how long the program works and how far it is. Dropped, it disappears.
pub(super) struct Progress {
    bar: ProgressBar,
    /// Dropped, it ends the thread.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Says how many bytes of a file were written.
    pub(super) fn of_file() -> Progress {
        Progress::begin(None, "{spinner} {elapsed}, {binary_bytes} written")
    }

    /// Says how many of these rings were read.
    pub(super) fn of_rings(count: usize) -> Progress {
        Progress::begin(Some(count as u64), "{spinner} {elapsed}, {pos} of {len} rings of dead processes")
    }

    /// Shows the line after a while, if standard error is a terminal.
    fn begin(count: Option<u64>, template: &str) -> Progress {
        let bar = ProgressBar::with_draw_target(count, ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template(template);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        let (end, ended) = channel();
        let shown = bar.clone();
        let show = move || {
            if ended.recv_timeout(SILENCE) == Err(RecvTimeoutError::Timeout) {
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(TICK);
            }
        };
        // Without a thread, nothing is shown.
        let thread = thread::Builder::new().name("progress".into()).spawn(show).ok();
        Progress { bar, end: Some(end), thread }
    }

    /// One more ring was read.
    pub(super) fn next(&self) {
        self.bar.inc(1);
    }

    /// Writes to the terminal while the line is not there.
    pub(super) fn hidden<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    /// A file whose bytes are counted.
    pub(super) fn counting(&self, file: File) -> Counting {
        Counting(file, self.bar.clone())
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
    }
}

/// Counts what is written to a file.
pub(super) struct Counting(pub(super) File, ProgressBar);

impl Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes)?;
        self.1.inc(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
