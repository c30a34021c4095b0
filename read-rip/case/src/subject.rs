//! What is read: decided once, by the first bytes of a file.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use read_rip_evidence::core::is_core;
use read_rip_ring::{self as ring, Saved, Source};

use crate::{Error, Options};

/// What is read.
#[derive(Clone, Debug)]
pub enum Subject {
    /// The file of a ring, which a process may write to.
    Ring {
        /// The file. It is opened for each reading, so no descriptor stays open in between.
        path: PathBuf,
        /// Only this process, of those that share the ring.
        process: Option<u32>,
    },
    /// A compressed copy of a ring, unpacked.
    Copy(Source),
    /// What `read-rip save` has written, taken apart.
    Saved(Saved),
    /// What `read-rip record` has written, put together.
    Recording(Source),
    /// A living process that has no ring, or whose ring is of no interest.
    Process(u32),
    /// A core file.
    Core(PathBuf),
}

impl Subject {
    /// Decides what a file is. A compressed ring is unpacked for that, once.
    ///
    /// # Errors
    ///
    /// [`Error::Ring`] if the file cannot be read or unpacked. Whether it is sound is found out when it is read.
    pub fn of_file(path: &Path, options: &Options) -> Result<Subject, Error> {
        if is_core(path) {
            return Ok(Subject::Core(path.to_owned()));
        }
        let source = Source::open_within(path, options.unpack_limit)?;
        if source.is_recording() {
            return Ok(Subject::Recording(source));
        }
        Ok(match Saved::of(&source) {
            Some(saved) => Subject::Saved(saved),
            None if !source.may_change() || path == Path::new(ring::STANDARD_INPUT) => Subject::Copy(source),
            None => Subject::Ring { path: path.to_owned(), process: None },
        })
    }

    /// The same subject, but only this process of those that share the ring.
    #[must_use]
    pub fn of_process(mut self, pid: Option<u32>) -> Subject {
        if let Subject::Ring { process, .. } = &mut self {
            *process = pid;
        }
        self
    }

    /// The file; for a process, its directory in `/proc`.
    pub fn path(&self) -> Cow<'_, Path> {
        match self {
            Subject::Ring { path, .. } | Subject::Core(path) => path.into(),
            Subject::Copy(source) | Subject::Recording(source) => source.path().into(),
            Subject::Saved(saved) => saved.later.path().into(),
            Subject::Process(pid) => PathBuf::from(format!("/proc/{pid}")).into(),
        }
    }

    /// Whether the subject has a record: a ring, or a copy of one. A core file may have one inside.
    pub fn is_ring(&self) -> bool {
        !matches!(self, Subject::Process(_) | Subject::Core(_))
    }
}
