//! The program `read-rip`, for tests of other packages. It builds nothing.
//!
//! Cargo builds a program for the tests of its own package only. Other tests find the program in the directory where
//! cargo puts programs. A test must not run an old one, so it fails if a source of the program is newer. Cargo then
//! builds again too: it compares each source with the time when it began to build.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::SystemTime;

use crate::run::{Outcome, clean, finish};
use crate::tool::repository;

/// Returns the path of the program.
///
/// # Panics
///
/// When the program is not built, or a source is newer.
#[track_caller]
pub fn program() -> &'static Path {
    static PROGRAM: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
        let test = std::env::current_exe().expect("a test knows its program");
        // It is in `deps`, below the directory of the programs.
        up_to_date(test.ancestors().nth(2).expect("a test is in a directory of cargo"))
    });
    match &*PROGRAM {
        Ok(program) => program,
        Err(problem) => panic!("{problem}"),
    }
}

/// Runs the program with these arguments, and with a subject as the last one.
#[track_caller]
pub fn ask(arguments: &[&str], subject: impl AsRef<OsStr>) -> Outcome {
    let mut command = clean(Command::new(program()));
    command.args(arguments).arg(subject);
    finish(command)
}

/// What the program writes to standard output and to standard error. Its status must be 0.
#[track_caller]
pub fn read(arguments: &[&str], subject: &Path) -> (String, String) {
    let run = ask(arguments, subject).sound();
    (run.stdout, run.stderr)
}

/// The data of all lines of one type that the program writes as JSON. Its status must be 0.
#[track_caller]
pub fn json(arguments: &[&str], kind: &str, subject: &Path) -> Vec<serde_json::Value> {
    ask(&[arguments, &["--json"]].concat(), subject).sound().data(kind)
}

/// The program in the directory of a profile, or what is wrong with it and how to build it.
fn up_to_date(directory: &Path) -> Result<PathBuf, String> {
    let program = directory.join("read-rip");
    let problem = match newer_source(&program) {
        Ok(None) => return Ok(program),
        Ok(Some(source)) => format!("{} is older than {}", program.display(), source.display()),
        Err(error) => format!("{} is not built: {error}", program.display()),
    };
    let profile = match directory.file_name().and_then(|name| name.to_str()) {
        Some(name) if name != "debug" => format!(" --profile {name}"),
        _ => String::new(),
    };
    Err(format!("{problem}\nRun `cargo build --package read-rip{profile}` before this test."))
}

/// A source that has changed or gone since the program was built.
fn newer_source(program: &Path) -> io::Result<Option<PathBuf>> {
    let built = modified(program)?;
    // `PROGRAM: SOURCE SOURCE ...`: cargo writes it beside the program. A backslash precedes a space within a path.
    let list = fs::read_to_string(program.with_extension("d"))?.replace("\\ ", "\0");
    let (_, sources) = list.split_once(": ").unwrap_or_default();
    let mut sources = sources.split_whitespace().map(|source| repository().join(source.replace('\0', " ")));
    Ok(sources.find(|source| modified(source).map_or(true, |changed| changed > built)))
}

fn modified(path: &Path) -> io::Result<SystemTime> {
    fs::metadata(path)?.modified()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Writes a program, its list and two sources, all of one age.
    fn built(directory: &Path) -> [PathBuf; 2] {
        let [program, list] = ["read-rip", "read-rip.d"].map(|name| directory.join(name));
        let sources = ["main.rs", "a part.rs"].map(|name| directory.join(name));
        let names = sources.each_ref().map(|source| source.display().to_string().replace(' ', "\\ "));
        fs::write(&program, "").unwrap();
        fs::write(list, format!("{}: {}\n", program.display(), names.join(" "))).unwrap();
        for file in sources.iter().chain([&program]) {
            fs::write(file, "").unwrap();
            set_age(file, 10);
        }
        sources
    }

    fn set_age(file: &Path, seconds: u64) {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 - seconds);
        fs::File::options().write(true).open(file).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn a_program_that_is_as_old_as_its_sources_is_up_to_date() {
        let directory = tempfile::tempdir().unwrap();
        built(directory.path());
        assert_eq!(up_to_date(directory.path()), Ok(directory.path().join("read-rip")));
    }

    #[test]
    fn a_program_whose_source_has_changed_or_gone_is_refused() {
        for index in 0..2 {
            for change in
                [|source: &Path| set_age(source, 9), |source: &Path| fs::remove_file(source).unwrap()]
            {
                let directory = tempfile::tempdir().unwrap();
                let source = &built(directory.path())[index];
                change(source);
                let problem = up_to_date(directory.path()).unwrap_err();
                let expected = format!("read-rip is older than {}\n", source.display());
                assert!(problem.contains(&expected), "{problem}");
            }
        }
    }

    #[test]
    fn a_program_that_is_missing_is_refused_with_the_command_that_builds_it() {
        let directory = tempfile::tempdir().unwrap();
        for (profile, command) in [("debug", ""), ("release", " --profile release")] {
            let directory = directory.path().join(profile);
            let problem = up_to_date(&directory).unwrap_err();
            let start = format!("{}/read-rip is not built: ", directory.display());
            let end = format!("\nRun `cargo build --package read-rip{command}` before this test.");
            assert!(problem.starts_with(&start) && problem.ends_with(&end), "{problem}");
        }
    }
}
