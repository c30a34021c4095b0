//! What stops a command, as `Error:`, `Caused by:` and `Hint:` on standard error.
//!
//! It does not choose the exit status.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use read_rip_case as case;
use read_rip_evidence::process::live;
use read_rip_report::printable;
use read_rip_ring as ring;

use super::output::remark;
use crate::cli::similar_command;

#[derive(Debug)]
pub(super) enum AppError {
    /// A ring, a process or a core file that cannot be read.
    Read(case::Error),
    /// A directory that cannot be searched.
    Directory { path: PathBuf, source: io::Error },
    /// No process that this user can see is in this control group.
    NoProcessIn { group: String },
    /// Nothing is called so: no ring, no living process, no file.
    Nothing { name: OsString },
    /// Several living processes have this name, and no ring. They have been listed.
    ManyProcesses { name: String, count: usize },
    /// Stacks of a process that has ended, or that this user may not look at.
    NoStacks { path: PathBuf },
    /// Neither a core file nor a process without a ring has events.
    NoEvents { path: PathBuf },
    /// Only rings have times; those in the legacy format, and what the kernel says, have none.
    NoTimes { path: PathBuf },
    /// A command for rings was given a core file.
    NotForCores { path: PathBuf },
    /// The directory has no ring that this user can read.
    NoRing { dir: PathBuf },
    /// No ring of this process was found.
    ///
    /// `owner` is the user of a file with its name that this user may not read.
    NoRingOf { pid: u32, is_alive: bool, dir: PathBuf, owner: Option<String> },
    /// There are several rings. They have been listed.
    ManyRings { count: usize },
    /// A suppression file that cannot be used.
    Suppressions { path: PathBuf, why: String, hint: &'static str },
    /// A program that cannot be run.
    Run { program: PathBuf, why: String, hint: &'static str },
    /// A file for CI that cannot be written.
    Report { path: PathBuf, source: io::Error },
    /// A directory for rings that cannot be made.
    RingDirectory { path: PathBuf, source: io::Error },
    /// The interposer is not at the path that the user gave.
    PreloadLibrary { path: PathBuf, source: io::Error },
    /// The interposer was not found.
    NoPreload,
    /// A ring to save that is a saved one.
    AlreadySaved { path: PathBuf },
    /// A ring that cannot be saved.
    Save { path: PathBuf, source: io::Error },
    /// An export of several files that has no folder for them.
    NeedsFolder,
    /// A file for another program that cannot be written.
    Export { path: PathBuf, source: io::Error },
    /// A folder to write whose name is in use.
    InTheWay { path: PathBuf },
    /// A recording into several files that goes to standard output.
    NoFiles,
    /// A recording that cannot be written.
    Record { path: PathBuf, source: io::Error },
    /// One reading, which no later one can differ from.
    NothingToCompare { path: PathBuf },
    /// What `record --all` was given in place of a program's name.
    NotAProgram { name: OsString },
    /// A channel that the ring does not have.
    NoChannel { path: PathBuf, name: String, known: Vec<String> },
    /// A ring to change whose process has ended.
    NotLiving { path: PathBuf },
    /// Levels that cannot be written to a ring.
    Set { path: PathBuf, source: io::Error },
    /// The live screen needs a terminal, which standard output or standard input is not, or which cannot move its
    /// cursor.
    #[cfg(feature = "top")]
    NoTerminal { why: &'static str },
    /// This build of the program is without an optional part.
    #[cfg_attr(
        all(feature = "parquet", feature = "top"),
        expect(dead_code, reason = "this build has all parts")
    )]
    NotBuilt { what: &'static str, feature: &'static str },
    /// Standard output cannot be written.
    Output(io::Error),
}

impl From<io::Error> for AppError {
    fn from(error: io::Error) -> AppError {
        AppError::Output(error)
    }
}

impl From<case::Error> for AppError {
    fn from(error: case::Error) -> AppError {
        AppError::Read(error)
    }
}

impl From<ring::Error> for AppError {
    fn from(error: ring::Error) -> AppError {
        AppError::Read(error.into())
    }
}

impl From<live::Error> for AppError {
    fn from(error: live::Error) -> AppError {
        AppError::Read(case::Error::Process(error))
    }
}

pub(super) const NO_RING_HINT: &str = "\
    `read-rip check --all` finds stuck processes without a ring, and `read-rip PID` shows one; a program makes a ring \
    with librip::init() or rip_start(), or under `read-rip run --preload`: in /dev/shm, until it exits with status 0; \
    if RIP_RING names another directory, give it with --dir";

const NOTHING_HINT: &str = "\
    `read-rip list` shows the rings, `read-rip check --all` looks at all processes, and `read-rip help` shows all \
    commands";

impl AppError {
    /// Writes what happened, why, and what to do about it.
    pub(super) fn report(&self) {
        let (what, cause, hint) = self.parts();
        remark(format_args!("Error: {}", printable(&what)));
        if let Some(cause) = cause {
            remark(format_args!("Caused by: {}", printable(&cause)));
        }
        if let Some(hint) = hint {
            remark(format_args!("Hint: {hint}"));
        }
    }

    /// What happened and why, in one line.
    #[cfg(feature = "top")]
    pub(super) fn sentence(&self) -> String {
        let (what, cause, _) = self.parts();
        let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
        printable(&(what + &cause)).into_owned()
    }

    /// What happened, why, and what to do about it.
    fn parts(&self) -> (String, Option<String>, Option<String>) {
        let cause = |error: &dyn std::error::Error| error.source().map(ToString::to_string);
        let suggestion;
        let (what, cause, hint) = match self {
            AppError::Read(error) => {
                (error.to_string(), cause(error), Some(error.hint()).filter(|hint| !hint.is_empty()))
            }
            AppError::Directory { path, source } => (
                format!("could not search {} for rings", path.display()),
                Some(source.to_string()),
                Some("name the file of a ring, or another directory with --dir"),
            ),
            AppError::NoEvents { path } => (
                format!("{} has no ring, and only a ring has a record of what was done", path.display()),
                None,
                Some(
                    "record the program with librip (`read-rip list` shows all rings), or keep what a process does now \
                     by `gcore PID` or `read-rip report PID`",
                ),
            ),
            AppError::NoTimes { path } => (
                format!("{} has no times: read-rip cannot show a part of its time", path.display()),
                None,
                Some("leave out --since, --until and --last"),
            ),
            AppError::NotForCores { path } => (
                format!("{} is a core file, and this command is for rings", path.display()),
                None,
                Some("show the core file with `read-rip FILE`, `stacks`, `locks` or `check`"),
            ),
            AppError::NoProcessIn { group } => (
                format!("no process that this user can see is in the control group {group}"),
                None,
                Some("/proc/PID/cgroup names the control groups of a process"),
            ),
            AppError::Nothing { name } => {
                suggestion = match similar_command(name) {
                    Some(command) => format!("did you mean `read-rip {command}`?"),
                    None => NOTHING_HINT.to_owned(),
                };
                let what = format!("no process, program or file is called {}", name.display());
                (what, None, Some(&*suggestion))
            }
            AppError::ManyProcesses { name, count } => (
                format!("{count} living processes are called {name}; name one"),
                None,
                Some(
                    "`read-rip PID` shows one of those above, `read-rip check PID` judges it, and `read-rip check \
                     --all` judges all",
                ),
            ),
            AppError::NoStacks { path } => (
                format!(
                    "{} has no stacks: a ring has none, and its process has ended or may not be read",
                    path.display()
                ),
                None,
                Some("show the record of its marks with `read-rip RING`"),
            ),
            AppError::NoRing { dir } => {
                (format!("no readable ring in {}", dir.display()), None, Some(NO_RING_HINT))
            }
            AppError::NoRingOf { pid, owner: Some(owner), .. } => (
                format!("the ring of process {pid} belongs to {owner}, and you may not read it"),
                None,
                Some("read it as that user, or as root"),
            ),
            AppError::NoRingOf { pid, is_alive, dir, owner: None } => {
                let dir = dir.display();
                let what = match is_alive {
                    true => {
                        format!(
                            "no readable ring of process {pid}: searched {dir} and the maps of its memory"
                        )
                    }
                    false => format!("there is no process {pid}, and no readable ring of it in {dir}"),
                };
                (what, None, Some(NO_RING_HINT))
            }
            AppError::ManyRings { count } => (
                format!("{count} rings found; name one"),
                None,
                Some(
                    "name one of those above, by path or pid; `read-rip check --all` looks at all rings and processes",
                ),
            ),
            AppError::Suppressions { path, why, hint } => {
                let what = format!("could not use the suppression file {}", path.display());
                (what, Some(why.clone()), Some(*hint))
            }
            AppError::Run { program, why, hint } => {
                (format!("could not run {}", program.display()), Some(why.clone()), Some(*hint))
            }
            AppError::Report { path, source } => (
                format!("could not write {}", path.display()),
                Some(source.to_string()),
                Some("check the path and the rights of its directory"),
            ),
            AppError::RingDirectory { path, source } => (
                format!("could not make the directory {} for the rings", path.display()),
                Some(source.to_string()),
                Some("name a directory on a tmpfs, such as /dev/shm/NAME, with --rings"),
            ),
            AppError::PreloadLibrary { path, source } => (
                format!("could not preload {}", path.display()),
                Some(source.to_string()),
                Some("give the path of librip_preload.so with --preload-library"),
            ),
            AppError::NoPreload => (
                "no librip_preload.so beside this program, in /usr/local/lib or in /usr/lib".into(),
                None,
                Some(
                    "build it with cargo build --release -p librip-preload, or name it with --preload-library",
                ),
            ),
            AppError::AlreadySaved { path } => {
                (format!("{} is a saved ring", path.display()), None, Some("copy the file"))
            }
            AppError::Save { path, source } => (
                format!("could not save the ring as {}", path.display()),
                Some(source.to_string()),
                Some("name a file in a directory with room for it with --output"),
            ),
            AppError::InTheWay { path } => (
                format!("could not write {}: a file or folder of this name exists", path.display()),
                None,
                Some("read-rip replaces no folder: name another one with --output, or remove this one"),
            ),
            AppError::NeedsFolder => (
                "this format writes several files, and no folder is named".to_owned(),
                None,
                Some("name a folder with --output"),
            ),
            AppError::Export { path, source } => (
                format!("could not write {}", path.display()),
                Some(source.to_string()),
                Some("name a file in a directory with room with --output; no unfinished one is left"),
            ),
            AppError::NoFiles => (
                "standard output is one stream, and a recording with a limit has several files".to_owned(),
                None,
                Some("name a file with --output, or leave out --max-size, --max-time and --all"),
            ),
            AppError::Record { path, source } if source.kind() == io::ErrorKind::AlreadyExists => (
                format!("{} exists already", path.display()),
                None,
                Some("name another file with --output, or remove this one"),
            ),
            AppError::Record { path, source } => (
                format!("could not record into {}", path.display()),
                Some(source.to_string()),
                Some(
                    "the file keeps what was recorded before; with --output, name a file in a directory with room",
                ),
            ),
            AppError::NothingToCompare { path } => (
                format!("the process of {} has ended: nothing changes any more", path.display()),
                None,
                Some("name a second ring, or a copy of this one: `read-rip diff EARLIER LATER`"),
            ),
            AppError::NotAProgram { name } => (
                format!("--all takes the name of a program, not {}", name.display()),
                None,
                Some("without --all, record takes one ring, or one pid"),
            ),
            AppError::NoChannel { path, name, known } => {
                suggestion = match known.is_empty() {
                    true => "it has no channels yet: the first event of a channel enters it".to_owned(),
                    false => format!("it has {}", known.join(", ")),
                };
                (format!("{} has no channel {name}", path.display()), None, Some(&*suggestion))
            }
            AppError::NotLiving { path } => (
                format!(
                    "the process of {} has ended, or it is a copy: no process reads the levels",
                    path.display()
                ),
                None,
                Some("name the ring of a living process; `read-rip list` shows all rings"),
            ),
            AppError::Set { path, source } => (
                format!("could not write the levels to {}", path.display()),
                Some(source.to_string()),
                Some("write as the user of the process, or as root"),
            ),
            #[cfg(feature = "top")]
            AppError::NoTerminal { why } => (
                format!("`read-rip top` needs a terminal: {why}"),
                None,
                Some("run it in a terminal, or use `read-rip check` and `read-rip locks`, which write text"),
            ),
            AppError::NotBuilt { what, feature } => {
                suggestion = format!("build it with the feature {feature}, which is on by default");
                (format!("this build of read-rip has no {what}"), None, Some(&*suggestion))
            }
            AppError::Output(error) => ("could not write the output".into(), Some(error.to_string()), None),
        };
        (what, cause, hint.map(str::to_owned))
    }
}
