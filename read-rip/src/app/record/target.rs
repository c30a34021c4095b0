//! The file that a recording is written to, and those that it has filled before.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use read_rip_ring::{NewWords, Parts, RecordingWriter, Scheduled, Source};

use crate::app::output::is_terminal;
use crate::app::written::{FILE_MODE, is_standard_output, rename_without_replacing};
use crate::cli::RotationArgs;

/// Where a recording goes.
pub(super) struct Target {
    path: PathBuf,
    rotation: RotationArgs,
    writer: RecordingWriter<File>,
    begun: Instant,
    /// What an image takes in the file, bytes: the last one.
    image_bytes: u64,
    /// What words and turns take in the file, bytes.
    words_bytes: u64,
    /// The number of the next file that is full.
    number: u64,
    /// The full files that are still there, the oldest first.
    full: VecDeque<PathBuf>,
    /// What all full files have, bytes.
    full_bytes: u64,
}

impl Target {
    /// Begins a file.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::AlreadyExists`] if there is one, and other errors of writing.
    pub(super) fn create(source: &Source, path: &Path, rotation: RotationArgs) -> io::Result<Target> {
        Ok(Target {
            path: path.to_owned(),
            rotation,
            writer: begin(source, path)?,
            begun: Instant::now(),
            image_bytes: 0,
            words_bytes: 0,
            number: 1,
            full: VecDeque::new(),
            full_bytes: 0,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The length of all files, bytes, with those that were removed.
    pub(super) fn written_bytes(&self) -> u64 {
        self.full_bytes + self.writer.written_bytes()
    }

    /// Writes what threads have recorded between two moments, ns since boot.
    pub(super) fn words(&mut self, new: &[NewWords], times_ns: Range<u64>) -> io::Result<()> {
        let before = self.writer.written_bytes();
        self.writer.words(new, times_ns)?;
        self.words_bytes += self.writer.written_bytes() - before;
        Ok(())
    }

    /// Writes what the kernel said of turns between two moments, ns since boot.
    pub(super) fn schedule(&mut self, all: &[Scheduled], times_ns: Range<u64>) -> io::Result<()> {
        let before = self.writer.written_bytes();
        self.writer.schedule(all, times_ns)?;
        self.words_bytes += self.writer.written_bytes() - before;
        Ok(())
    }

    /// Writes an image that was complete at this moment, ns since boot.
    pub(super) fn image(&mut self, parts: &Parts, at_ns: u64) -> io::Result<()> {
        let before = self.writer.written_bytes();
        self.writer.image(parts, at_ns)?;
        self.image_bytes = self.writer.written_bytes() - before;
        Ok(())
    }

    /// Whether the file should be closed: it has no room for more words and a last image.
    pub(super) fn is_full(&self) -> bool {
        // A limit that is less than two images would otherwise give one file a round.
        let is_long = self.rotation.max_size.is_some_and(|max| {
            self.words_bytes >= self.image_bytes && self.writer.written_bytes() + self.image_bytes >= max
        });
        is_long || self.rotation.max_time.is_some_and(|max| self.begun.elapsed() >= max)
    }

    /// Goes on in another file of the same name. The full one gets a number that no file has.
    pub(super) fn rotate(&mut self, source: &Source) -> io::Result<()> {
        let full = loop {
            let numbered = self.numbered();
            self.number += 1;
            match rename_without_replacing(&self.path, &numbered) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                renamed => break renamed.map(|()| numbered)?,
            }
        };
        self.full.push_back(full);
        self.full_bytes += self.writer.written_bytes();
        self.writer = begin(source, &self.path)?;
        (self.begun, self.words_bytes) = (Instant::now(), 0);
        let keep = self.rotation.keep.unwrap_or(u64::MAX);
        while self.full.len() as u64 > keep
            && let Some(oldest) = self.full.pop_front()
        {
            match fs::remove_file(oldest) {
                // Somebody has moved it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
        Ok(())
    }

    fn numbered(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{}", self.number));
        name.into()
    }
}

/// Makes a file that is as private as the ring.
fn begin(source: &Source, path: &Path) -> io::Result<RecordingWriter<File>> {
    if is_standard_output(path) {
        if is_terminal() {
            return Err(io::Error::other("it is a terminal, and a recording is not text"));
        }
        return RecordingWriter::new(File::from(io::stdout().as_fd().try_clone_to_owned()?));
    }
    // Nothing that has the name is followed: it must be a new one.
    let file = File::options().write(true).create_new(true).mode(FILE_MODE).open(path)?;
    source.keep_owner(&file)?;
    RecordingWriter::new(file)
}
