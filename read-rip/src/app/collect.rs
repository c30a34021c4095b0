//! `read-rip check`, and several rings checked one after the other: `check --all --dir` and `run --check`.
//!
//! A ring that cannot be read does not stop the others. It analyses nothing itself.

use std::ffi::OsStr;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use read_rip_case::{Case, Error, Options, Readings, Subject};
use read_rip_evidence::process::Ends;
use read_rip_report::ci::{TestCase, junit, sarif};
use read_rip_ring::read_header;

use super::check::{Filter, judge, suppressions};
use super::error::AppError;
use super::machine::has_vanished;
use super::output::{ERROR, FINDINGS, SOUND, UNJUDGED, remark};
use super::remarks;
use super::rings::{self, program_of_ring};
use super::written::{Unfinished, is_standard_output};
use crate::cli::{CheckArgs, CiArgs, Common, SourceArgs};

/// `read-rip check`.
pub(super) fn check(args: &CheckArgs, common: &Common) -> Result<u8, AppError> {
    let options = args.options(common);
    let mut collection = Collection::new(filter(args)?, &args.source, &options, common);
    collection.is_verbose = args.verbose;
    match args.all {
        true => {
            for path in rings::all(common)? {
                collection.check_file(&path, &Ends::default())?;
            }
        }
        false => {
            let subject = rings::choose(&args.ring, common)?;
            tell_of_parent(&subject);
            collection.check(subject, &Ends::default())?;
        }
    }
    collection.write(&args.ci)?;
    Ok(collection.status())
}

/// Says so if the process that was asked for is one of several that share a ring: all of them are checked.
fn tell_of_parent(subject: &Subject) {
    let Subject::Ring { path, process: Some(pid) } = subject else { return };
    let maker = read_header(path).ok().map(|header| (header.pid, header.forks));
    if let Some((maker, _)) = maker.filter(|&(maker, forks)| maker != *pid && forks > 0) {
        remark(format_args!(
            "Process {pid} was forked, and records in the ring of process {maker}: all processes of that ring are \
             checked"
        ));
    }
}

/// Which findings the arguments ask for.
pub(super) fn filter(args: &CheckArgs) -> Result<Filter, AppError> {
    Ok(Filter {
        threshold: args.threshold,
        min_confidence: args.min_confidence.into(),
        rules: suppressions(&args.suppress)?,
        pattern: args.r#match.clone(),
    })
}

/// What came of several rings.
pub(super) struct Collection<'a> {
    pub(super) filter: Filter,
    source: &'a SourceArgs,
    pub(super) options: &'a Options,
    pub(super) common: &'a Common,
    /// Whether rings without findings are passed over in silence.
    is_brief: bool,
    /// Whether findings have all functions of a place.
    is_verbose: bool,
    cases: Vec<TestCase>,
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
    pub(super) fn new(
        filter: Filter,
        source: &'a SourceArgs,
        options: &'a Options,
        common: &'a Common,
    ) -> Collection<'a> {
        Collection {
            filter,
            source,
            options,
            common,
            is_brief: false,
            is_verbose: false,
            cases: Vec::new(),
            rings: 0,
            status: None,
        }
    }

    /// Passes over rings without findings in silence.
    pub(super) fn briefly(self) -> Collection<'a> {
        Collection { is_brief: true, ..self }
    }

    /// Checks a file that was found, and shows its findings; `ends` says when processes ended. Returns whether nothing
    /// is wrong with it. If somebody has removed it since, it is passed over.
    pub(super) fn check_file(&mut self, path: &Path, ends: &Ends) -> Result<bool, AppError> {
        let subject = Subject::of_file(path, self.options).map_err(AppError::from);
        self.check_subject(path, subject, ends, true)
    }

    /// The same for a subject.
    pub(super) fn check(&mut self, subject: Subject, ends: &Ends) -> Result<bool, AppError> {
        let path = subject.path().into_owned();
        self.check_subject(&path, Ok(subject), ends, false)
    }

    fn check_subject(
        &mut self,
        path: &Path,
        subject: Result<Subject, AppError>,
        ends: &Ends,
        may_vanish: bool,
    ) -> Result<bool, AppError> {
        let header = read_header(path).ok();
        let mut test = TestCase {
            program: header.as_ref().map_or_else(String::new, |header| program_of_ring(path, header)),
            pid: header.map(|header| header.pid),
            findings: Vec::new(),
            error: None,
        };
        let checked = subject.and_then(|subject| self.judge(&subject, ends, &mut test));
        if may_vanish && has_vanished(path, &checked) {
            return Ok(true);
        }
        if test.program.is_empty() {
            test.program = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        }
        let status = self.add(test, checked)?;
        self.rings += 1;
        Ok(matches!(status, SOUND | UNJUDGED))
    }

    /// Judges a subject, shows what is wrong, and returns the exit status.
    fn judge(&self, subject: &Subject, ends: &Ends, test: &mut TestCase) -> Result<u8, AppError> {
        let mut readings = Readings::of_ended(subject, ends, self.options)?;
        let mut case = Case::of(&mut readings, self.options);
        let verdict = judge(&mut case, &self.filter);
        if self.is_brief && verdict.found.is_empty() && !self.common.json {
            return Ok(verdict.status(remarks::report_defects(case.reading, self.common)?));
        }
        let texts = case.texts(self.is_verbose);
        let names = case.names(&texts);
        verdict.note(test, &names, case.reading);
        verdict.show(&names, case.reading, self.source, self.common)?;
        verdict.finish(&case, self.common)
    }

    /// Adds a ring or a process, with its exit status. A ring that cannot be read is an error of its own.
    pub(super) fn add(&mut self, mut test: TestCase, checked: Result<u8, AppError>) -> Result<u8, AppError> {
        let status = match checked {
            Ok(status) => status,
            Err(AppError::Read(Error::Ring(error))) => {
                test.error = Some(error.to_string());
                AppError::from(error).report();
                ERROR
            }
            Err(error) => return Err(error),
        };
        self.cases.push(test);
        // An error takes precedence: what could not be read may hide findings.
        self.status = self.status.max(Some(Severity::of(status)));
        Ok(status)
    }

    /// Adds a process that was not checked.
    pub(super) fn add_error(&mut self, program: &OsStr, pid: u32, error: String) {
        let program = program.to_string_lossy().into_owned();
        self.cases.push(TestCase { program, pid: Some(pid), findings: Vec::new(), error: Some(error) });
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
        let source = io::Error::other("standard output gets the findings: name a file");
        return Err(AppError::Report { path: path.to_owned(), source });
    }
    let written = Unfinished::new(path).and_then(|unfinished| {
        let mut out = BufWriter::new(unfinished);
        write(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.complete()
    });
    written.map_err(|source| AppError::Report { path: path.to_owned(), source })
}
