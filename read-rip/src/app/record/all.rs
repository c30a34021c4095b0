//! All processes that have rings, or those of one program, each recorded into a file of its own.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use read_rip_case::{Error, Options, Subject, now_ns};
use read_rip_evidence::process::Found;

use super::Rounds;
use super::recorder::Recorder;
use crate::app::error::AppError;
use crate::app::output::{ERROR, SOUND, remark};
use crate::app::rings::{is_of_program, search_everywhere};
use crate::app::written::FOLDER_MODE;
use crate::cli::{Common, RecordArgs};

/// How often new processes are looked for.
const SEARCH_INTERVAL: Duration = Duration::from_secs(1);
/// After a search, there is none for so many times the time that it took.
const SEARCH_PAUSE: u32 = 20;
/// The ends of the names of recordings.
const EXTENSION: &str = "recording";

/// `read-rip record --all`.
pub(super) fn record(args: &RecordArgs, common: &Common) -> Result<u8, AppError> {
    let program = args.ring.name();
    if let Some(name) = program
        && (name.as_encoded_bytes().contains(&b'/') || args.ring.process().is_some())
    {
        return Err(AppError::NotAProgram { name: name.to_owned() });
    }
    // The recordings of all users are in it.
    let mut directory = DirBuilder::new();
    directory
        .recursive(true)
        .mode(FOLDER_MODE)
        .create(&args.output)
        .map_err(|source| AppError::Record { path: args.output.clone(), source })?;
    let options = common.options();
    let mut rounds = Rounds::begin(args)?;
    let mut rings = Rings::new(program);
    let mut recorders: Vec<Recorder> = Vec::new();
    let mut failed = false;
    loop {
        let is_last = rounds.is_last();
        for ring in rings.new_ones(common)? {
            match begin(&ring, args, &options) {
                Ok(recorder) => recorders.push(recorder),
                // Its process has ended well.
                Err(AppError::Read(Error::Ring(_))) if !ring.exists() => {}
                Err(error) => {
                    error.report();
                    failed = true;
                }
            }
        }
        recorders.retain_mut(|recorder| {
            let looked = recorder.look();
            failed |= looked.is_err();
            looked.map_err(|error| error.report()).is_ok()
        });
        let watched = rounds.watched();
        recorders.retain_mut(|recorder| match recorder.round(is_last, watched.as_ref(), &options) {
            Ok(false) => true,
            Ok(true) => {
                remark(recorder.summary());
                false
            }
            Err(error) => {
                error.report();
                failed = true;
                false
            }
        });
        if is_last {
            break;
        }
        rounds.pause()?;
    }
    match rings.known.is_empty() {
        true => Err(AppError::NoRing { dir: common.dir.clone() }),
        false if failed => Ok(ERROR),
        false => Ok(SOUND),
    }
}

/// Begins a recording whose name is that of the ring, with a number if there is such a file.
fn begin(ring: &Path, args: &RecordArgs, options: &Options) -> Result<Recorder, AppError> {
    let name = ring.file_name().unwrap_or("ring".as_ref()).to_string_lossy();
    let subject = Subject::of_file(ring, options)?;
    let mut number = 1;
    loop {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        let target = args.output.join(format!("{name}{suffix}.{EXTENSION}"));
        match Recorder::begin(&subject, &target, args) {
            Err(AppError::Record { source, .. }) if source.kind() == ErrorKind::AlreadyExists => number += 1,
            other => return other,
        }
    }
}

/// The rings that were found.
struct Rings<'a> {
    /// The name of their program; `None`: any.
    program: Option<&'a OsStr>,
    /// When the recording began, ns since 1970.
    begun_ns: u64,
    search_due: Instant,
    /// Paths, pids, and when the rings were made, ns since 1970.
    known: HashSet<(PathBuf, u32, u64)>,
}

impl Rings<'_> {
    fn new(program: Option<&OsStr>) -> Rings<'_> {
        Rings { program, begun_ns: now_ns(), search_due: Instant::now(), known: HashSet::new() }
    }

    /// Rings that were not found before, of processes that live or have started since the recording began. Now and
    /// then: otherwise there are none.
    fn new_ones(&mut self, common: &Common) -> Result<Vec<PathBuf>, AppError> {
        let now = Instant::now();
        if now < self.search_due {
            return Ok(Vec::new());
        }
        let mut found = search_everywhere(common)?;
        found.retain(|ring| self.is_wanted(ring));
        self.search_due = Instant::now() + SEARCH_INTERVAL.max(SEARCH_PAUSE * now.elapsed());
        Ok(found.into_iter().map(|ring| ring.path).collect())
    }

    fn is_wanted(&mut self, ring: &Found) -> bool {
        let made_ns = ring.header.created_realtime_ns;
        (!ring.liveness.is_final() || made_ns >= self.begun_ns)
            && self.program.is_none_or(|name| is_of_program(ring, name))
            && self.known.insert((ring.path.clone(), ring.header.pid, made_ns))
    }
}
