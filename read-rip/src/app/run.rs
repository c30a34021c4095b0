//! `read-rip run`: runs a program, and explains what went wrong with it.
//!
//! It records nothing itself: the program does, or with `--preload` the interposer. It returns the exit status of the
//! program; after a signal, the status that a shell would return. Without `--check` it looks at the program's own ring,
//! and only if the program fails. With `--check` it looks at the rings of all processes beneath it.

mod hung;
mod preload;
mod ring_directory;
mod start;
mod supervise;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use librip_format::settings;
use read_rip_case::Subject;
use read_rip_evidence::process::{Ends, rings_of_process};
use read_rip_model::findings::Confidence;
use read_rip_report::{counted, duration, printable};

use super::check::{Filter, suppressions};
use super::collect::Collection;
use super::error::AppError;
use super::output::{SOUND, UNJUDGED, remark};
use super::show;
use crate::cli::{Common, RingArgs, RunArgs, ShowArgs};
use ring_directory::RingDirectory;
use supervise::Supervised;

/// Shells add this to the number of a signal.
const SIGNALLED: i32 = 128;
/// The status that shells give for a program that cannot be run.
const NOT_RUN: u8 = 127;
/// The status that timeout(1) gives.
const TIMED_OUT: u8 = 124;
/// The history of a thread with `--check`, words. What a test does once must not be overwritten before its end.
const WORDS: &str = "1024";

/// `read-rip run`.
pub(super) fn run(args: &RunArgs, common: &Common) -> Result<u8, AppError> {
    let Some((name, arguments)) = args.command.split_first() else { return Ok(NOT_RUN) };
    let program = find(name).map_err(|why| fails(name, &why))?;
    let mut command = Command::new(&program);
    command.args(arguments);
    if args.preload {
        let library = preload::library(args.preload_library.as_deref())?;
        if let Some(why) = preload::why_not(&program) {
            return Err(AppError::Run { program, why, hint: preload::NOT_PRELOADED_HINT });
        }
        command.env("LD_PRELOAD", preload::with_others(&library, std::env::var_os("LD_PRELOAD")));
    }
    if args.check { run_checked(name, command, args, common) } else { run_once(name, command, args, common) }
}

/// Says which settings in the program's environment the recorder will not understand.
fn warn_of_settings(command: &Command) {
    for setting in settings::SETTINGS {
        let own = command.get_envs().find(|(name, _)| *name == setting.name);
        let value = match own {
            Some((_, value)) => value.map(OsStr::to_owned),
            None => std::env::var_os(setting.name),
        };
        let Some(value) = value else { continue };
        if !value.to_str().is_some_and(|value| setting.accepts(value)) {
            let (name, takes, value) = (setting.name, setting.takes, value.to_string_lossy());
            remark(format_args!("Warning: {name}={} is ignored: it is not {takes}", printable(&value)));
        }
    }
}

/// Runs the program, and explains how it ended if it failed.
fn run_once(name: &OsStr, mut command: Command, args: &RunArgs, common: &Common) -> Result<u8, AppError> {
    let failed = |error: std::io::Error| fails(name, &error.to_string());
    warn_of_settings(&command);
    let mut program = Supervised::start(&mut command, false).map_err(failed)?;
    let Some(status) = program.wait(None).map_err(failed)? else { return Ok(NOT_RUN) };
    if status.success() {
        return Ok(SOUND);
    }
    report_end(name, status);
    if let Some(ring) = rings_of_process(program.pid(), &common.directories()).into_iter().next() {
        remark(format_args!("Its ring: {}", printable(&ring.path.to_string_lossy())));
        if status.signal().is_some() {
            let options = common.options();
            let subject = Subject::of_file(&ring.path, &options)?;
            // Both print whether the ring is damaged. The exit status is that of the program.
            show::show_subject(&subject, &RingArgs::default(), &ShowArgs::default(), common)?;
            let mut collection = Collection::new(Filter::default(), &args.source, &options, common);
            collection.check(subject, &program.ends())?;
        }
    } else {
        remark(format_args!("It left no readable ring in {}", printable(&common.dir.to_string_lossy())));
    }
    Ok(code(status))
}

/// Runs the program, and checks the rings of all processes beneath it.
fn run_checked(name: &OsStr, mut command: Command, args: &RunArgs, common: &Common) -> Result<u8, AppError> {
    let min_confidence = args.min_confidence.map_or(Confidence::Potential, Confidence::from);
    let filter = Filter { min_confidence, rules: suppressions(&args.suppress)?, ..Filter::default() };
    let options = common.options();
    let mut rings = RingDirectory::make(args.rings.as_deref(), &common.dir)?;
    command.env("RIP_RING", rings.name()).env("RIP_KEEP", "always");
    if std::env::var_os("RIP_WORDS").is_none() {
        command.env("RIP_WORDS", WORDS);
    }
    let failed = |error: std::io::Error| fails(name, &error.to_string());
    warn_of_settings(&command);
    let mut program = Supervised::start(&mut command, true).map_err(failed)?;
    let mut collection = Collection::new(filter, &args.source, &options, common).briefly();
    let ended = program.wait(args.timeout).map_err(failed)?;
    let mut unrecorded = 0;
    if ended.is_none() {
        let after = duration_of(args.timeout.unwrap_or_default());
        let name = name.to_string_lossy();
        let besides = if program.has_compiled() { ", compilation not counted" } else { "" };
        remark(format_args!(
            "{} still runs after {after}{besides}. This is what it waits for:",
            printable(&name)
        ));
        // That something is wrong is known.
        collection.filter.min_confidence =
            args.min_confidence.map_or(Confidence::Suspected, Confidence::from);
        check_new(&mut rings, &mut collection, &program.ends())?;
        unrecorded = hung::check(&rings, &mut collection, common)?;
        collection.filter.min_confidence = min_confidence;
        collection.add_error(OsStr::new(&*name), program.pid(), format!("still ran after {after}"));
        let left = program.stop(args.grace).map_err(failed)?;
        if left > 0 {
            remark(format_args!("{} cannot be ended", counted(left as u64, "process")));
        }
    }
    check_new(&mut rings, &mut collection, &program.ends())?;
    collection.write(&args.ci)?;
    let status = if rings.is_unused() { UNJUDGED } else { collection.status() };
    summarise(rings, &collection, unrecorded)?;
    Ok(match ended {
        None => TIMED_OUT,
        Some(status) if !status.success() => {
            report_end(name, status);
            code(status)
        }
        // Whoever sets a limit asks whether it hangs. It has ended.
        Some(_) if status == UNJUDGED && args.timeout.is_some() => SOUND,
        Some(_) => status,
    })
}

/// Checks the rings that have not been checked yet. `ends` says when processes ended.
fn check_new(
    rings: &mut RingDirectory,
    collection: &mut Collection<'_>,
    ends: &Ends,
) -> Result<(), AppError> {
    for ring in rings.take_new()? {
        let before = collection.with_findings();
        let is_sound = collection.check_file(&ring, ends)?;
        rings.checked(&ring, collection.with_findings() > before, is_sound);
    }
    Ok(())
}

/// Says what was checked, and where the rings are. `unrecorded`: how many processes without a ring are in the
/// collection.
fn summarise(rings: RingDirectory, collection: &Collection<'_>, unrecorded: usize) -> Result<(), AppError> {
    let of_rings =
        (!rings.is_unused()).then(|| counted((collection.rings().saturating_sub(unrecorded)) as u64, "ring"));
    let of_processes = match unrecorded {
        0 => None,
        1 => Some("1 process without a ring".to_owned()),
        several => Some(format!("{several} processes without a ring")),
    };
    let all: Vec<String> = of_rings.into_iter().chain(of_processes).collect();
    if all.is_empty() {
        remark(
            "No process recorded anything, so read-rip checked nothing.\n\
             Hint: a program records with librip::init() or rip_start(), or with `read-rip run --preload`",
        );
    } else {
        let (all, bad) = (all.join(" and "), collection.with_findings());
        remark(format_args!("{all} checked, {bad} of them with findings."));
        if collection.status() == UNJUDGED {
            remark(
                "read-rip could judge no process: no ring has locks, or all recorded threads wait.\n\
                 Hint: `read-rip run --check --rings DIR` keeps the rings, and `read-rip check RING` says why",
            );
        }
    }
    let path = rings.path().to_owned();
    if rings.clear()? {
        remark(format_args!("Rings are kept in {}", printable(&path.to_string_lossy())));
    }
    Ok(())
}

fn report_end(name: &OsStr, status: ExitStatus) {
    remark(format_args!("{} ended with {status}", printable(&name.to_string_lossy())));
}

/// The exit status of the program, as a shell gives it.
fn code(status: ExitStatus) -> u8 {
    let code = status.signal().map_or(status.code().unwrap_or(1), |signal| SIGNALLED + signal);
    u8::try_from(code).unwrap_or(u8::MAX)
}

fn duration_of(limit: Duration) -> String {
    duration(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX))
}

fn fails(program: &OsStr, why: &str) -> AppError {
    let hint = match has_path(program) {
        true => "name an executable file, and its arguments as words of their own",
        false => "give its path, or check PATH",
    };
    AppError::Run { program: PathBuf::from(program), why: why.to_owned(), hint }
}

fn has_path(name: &OsStr) -> bool {
    name.as_encoded_bytes().contains(&b'/')
}

/// The program's file, as a shell finds it, or why there is none.
fn find(name: &OsStr) -> Result<PathBuf, String> {
    if has_path(name) {
        let path = PathBuf::from(name);
        return match fs::metadata(&path) {
            Err(error) => Err(error.to_string()),
            Ok(file) if file.is_dir() => Err("it is a directory".to_owned()),
            Ok(file) if !is_program(&file) => Err("it is no executable file".to_owned()),
            Ok(_) => Ok(path),
        };
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(|path| fs::metadata(path).is_ok_and(|file| is_program(&file)));
    found.ok_or_else(|| "no executable file of this name".to_owned())
}

fn is_program(file: &fs::Metadata) -> bool {
    file.is_file() && file.permissions().mode() & 0o111 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        assert!(find(OsStr::new("sh")).is_ok_and(|path| path.is_absolute()));
        assert_eq!(find(OsStr::new("/dev/null")), Err("it is no executable file".to_owned()));
        assert_eq!(find(OsStr::new("/tmp")), Err("it is a directory".to_owned()));
        assert!(find(OsStr::new("/no/such/program")).is_err_and(|why| why.starts_with("No such file")));
        assert!(find(OsStr::new("no-such-program")).is_err());
        assert_eq!(preload::why_not(&find(OsStr::new("sh")).unwrap()), None);
    }
}
