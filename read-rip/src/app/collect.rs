//! `read-rip check`, and several rings checked one after the other: `check --all --dir` and `run --check`.
//!
//! A ring that cannot be read does not stop the others. It analyses nothing itself.

use std::ffi::OsStr;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use read_rip_evidence::process::Ends;
use read_rip_model::findings::Suppression;
use read_rip_report::ci::{Case, CaseFinding, junit, sarif};
use read_rip_ring::read_header;
use read_rip_symbols::OpenedFiles;

use super::check::{Manner, Readings, judge, show, suppressions};
use super::error::AppError;
use super::output::{ERROR, FINDINGS, SOUND, UNJUDGED};
use super::rings::{self, program_of_ring};
use super::written::{Unfinished, is_standard_output};
use crate::cli::{CheckArgs, CiArgs, Common};

/// `read-rip check`.
pub(super) fn check(args: &CheckArgs, wanted: &Common) -> Result<u8, AppError> {
    let rules = suppressions(&args.suppress)?;
    let mut collection = Collection::new(args, &rules, wanted);
    let paths = if args.all { rings::all(wanted)? } else { vec![rings::choose(&args.ring, wanted)?] };
    for path in paths {
        collection.check(&path, &Ends::default())?;
    }
    collection.write(&args.ci)?;
    Ok(collection.status())
}

/// What came of several rings.
pub(super) struct Collection<'a> {
    pub(super) args: &'a CheckArgs,
    pub(super) rules: &'a [Suppression],
    pub(super) wanted: &'a Common,
    /// Whether rings without findings are passed over in silence.
    is_brief: bool,
    /// Many rings may name one program.
    opened: OpenedFiles,
    cases: Vec<Case>,
    rings: usize,
    /// `None` before the first ring.
    status: Option<Severity>,
}

/// The exit status of a ring. The most severe of several counts: nothing was judged only if that is so for all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    Unjudged,
    Sound,
    Findings,
    Error,
}

impl Severity {
    fn of(status: u8) -> Severity {
        match status {
            UNJUDGED => Severity::Unjudged,
            SOUND => Severity::Sound,
            FINDINGS => Severity::Findings,
            _ => Severity::Error,
        }
    }

    fn status(self) -> u8 {
        match self {
            Severity::Unjudged => UNJUDGED,
            Severity::Sound => SOUND,
            Severity::Findings => FINDINGS,
            Severity::Error => ERROR,
        }
    }
}

impl<'a> Collection<'a> {
    pub(super) fn new(args: &'a CheckArgs, rules: &'a [Suppression], wanted: &'a Common) -> Collection<'a> {
        Collection {
            args,
            rules,
            wanted,
            is_brief: false,
            opened: OpenedFiles::default(),
            cases: Vec::new(),
            rings: 0,
            status: None,
        }
    }

    /// Passes over rings without findings in silence.
    pub(super) fn briefly(self) -> Collection<'a> {
        Collection { is_brief: true, ..self }
    }

    /// Checks a ring and shows its findings; `ends` says when processes ended. Returns whether nothing is wrong with
    /// it.
    pub(super) fn check(&mut self, path: &Path, ends: &Ends) -> Result<bool, AppError> {
        let header = read_header(path).ok();
        let mut case = Case {
            program: header.as_ref().map_or_else(String::new, |header| program_of_ring(path, header)),
            pid: header.map(|header| header.pid),
            findings: Vec::new(),
            error: None,
        };
        let wanted = self.wanted;
        let manner = if self.is_brief { Manner::IfNeeded } else { Manner::Full };
        let checked = Readings::of(path, self.args, ends, wanted).and_then(|readings| {
            let readings = readings.sharing(&self.opened);
            judge(readings, self.args, self.rules, wanted, manner, &mut |found, checked, names, reading| {
                (case.program, case.pid) = (reading.program(), reading.pid());
                case.findings = found.iter().map(|finding| CaseFinding::of(finding, names)).collect();
                show(found, checked, names, reading, &self.args.source, wanted)
            })
        });
        if case.program.is_empty() {
            case.program = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        }
        let status = self.add(case, checked)?;
        self.rings += 1;
        Ok(matches!(status, SOUND | UNJUDGED))
    }

    /// Adds a ring or a process, with its exit status. A ring that cannot be read is an error of its own.
    pub(super) fn add(&mut self, mut case: Case, checked: Result<u8, AppError>) -> Result<u8, AppError> {
        let status = match checked {
            Ok(status) => status,
            Err(AppError::Ring(error)) => {
                case.error = Some(error.to_string());
                AppError::Ring(error).report();
                ERROR
            }
            Err(error) => return Err(error),
        };
        self.cases.push(case);
        // An error takes precedence: what could not be read may hide findings.
        self.status = self.status.max(Some(Severity::of(status)));
        Ok(status)
    }

    /// Adds a process that was not checked.
    pub(super) fn add_error(&mut self, program: &OsStr, pid: u32, error: String) {
        let program = program.to_string_lossy().into_owned();
        self.cases.push(Case { program, pid: Some(pid), findings: Vec::new(), error: Some(error) });
    }

    /// The number of rings so far.
    pub(super) fn rings(&self) -> usize {
        self.rings
    }

    /// How many of them have findings.
    pub(super) fn with_findings(&self) -> usize {
        self.cases.iter().filter(|case| !case.findings.is_empty()).count()
    }

    /// The exit status that follows from all of them: an error, findings, neither, or nothing to judge.
    pub(super) fn status(&self) -> u8 {
        self.status.map_or(SOUND, Severity::status)
    }

    /// Writes the files for CI.
    pub(super) fn write(&self, ci: &CiArgs) -> Result<(), AppError> {
        let directory = std::env::current_dir().unwrap_or_default();
        if let Some(path) = &ci.junit {
            write(path, |out| junit(out, &self.cases))?;
        }
        if let Some(path) = &ci.sarif {
            write(path, |out| sarif(out, &self.cases, &directory))?;
        }
        Ok(())
    }
}

fn write(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), AppError> {
    if is_standard_output(path) {
        let source = io::Error::other("the findings are written to standard output: name a file");
        return Err(AppError::Report { path: path.to_owned(), source });
    }
    let written = Unfinished::new(path).and_then(|unfinished| {
        let mut out = BufWriter::new(unfinished);
        write(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.complete()
    });
    written.map_err(|source| AppError::Report { path: path.to_owned(), source })
}
