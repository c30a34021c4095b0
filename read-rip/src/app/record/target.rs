//! The file that a recording is written to, and those that it has filled before.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::cli::RotationArgs;
use crate::ring::{NewWords, Parts, RecordingWriter};

/// Where a recording goes.
pub(super) struct Target {
    path: PathBuf,
    rotation: RotationArgs,
    writer: RecordingWriter<File>,
    begun: Instant,
    /// What an image takes in the file, bytes: the last one.
    image_bytes: u64,
    /// What words take in the file, bytes.
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
    pub(super) fn create(path: &Path, rotation: RotationArgs) -> io::Result<Target> {
        Ok(Target {
            path: path.to_owned(),
            rotation,
            writer: begin(path)?,
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

    /// Writes what threads have recorded.
    pub(super) fn words(&mut self, new: &[NewWords]) -> io::Result<()> {
        let before = self.writer.written_bytes();
        self.writer.words(new)?;
        self.words_bytes += self.writer.written_bytes() - before;
        Ok(())
    }

    /// Writes an image.
    pub(super) fn image(&mut self, parts: &Parts) -> io::Result<()> {
        let before = self.writer.written_bytes();
        self.writer.image(parts)?;
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
    pub(super) fn rotate(&mut self) -> io::Result<()> {
        let mut numbered = self.numbered();
        while numbered.symlink_metadata().is_ok() {
            self.number += 1;
            numbered = self.numbered();
        }
        fs::rename(&self.path, &numbered)?;
        self.number += 1;
        self.full.push_back(numbered);
        self.full_bytes += self.writer.written_bytes();
        self.writer = begin(&self.path)?;
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

fn begin(path: &Path) -> io::Result<RecordingWriter<File>> {
    RecordingWriter::new(File::options().write(true).create_new(true).open(path)?)
}
