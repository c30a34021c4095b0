//! `read-rip run`: runs a program, and shows its ring if a signal ends it.
//!
//! It records nothing itself: the program does, or with `--preload` the interposer. It returns the exit status of the
//! program; after a signal, the status that a shell would return.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::{SigSet, Signal};
use object::read::elf::{FileHeader, ProgramHeader};

use super::error::AppError;
use super::output::remark;
use super::{check, show};
use crate::cli::{CheckArgs, Common, RingArgs, RunArgs, ShowArgs};
use crate::process::rings_of_process;
use crate::report::printable;

/// The interposer's file.
const LIBRARY: &str = "librip_preload.so";
/// Shells add this to the number of a signal.
const SIGNALLED: i32 = 128;
/// The headers of a program are within this many bytes from its beginning.
const HEADERS_MAX_BYTES: u64 = 1 << 20;
/// What to do if nothing can be preloaded.
const NOT_PRELOADED_HINT: &str =
    "rebuild the program with librip.h or the crate librip, which record in statically linked programs too";
/// Why `find` found nothing.
const NOT_FOUND: &str = "no executable file of this name";
/// The status that shells give for a program that cannot be run.
const NOT_RUN: u8 = 127;

/// `read-rip run`.
pub(super) fn run(args: &RunArgs, wanted: &Common) -> Result<u8, AppError> {
    let Some((name, arguments)) = args.command.split_first() else { return Ok(NOT_RUN) };
    let program = find(name).ok_or_else(|| fails(name, NOT_FOUND))?;
    let mut command = Command::new(&program);
    command.args(arguments);
    if args.preload {
        let library = library(args.preload_library.as_deref())?;
        if let Some(why) = why_not_preloaded(&program) {
            return Err(AppError::Run { program, why: why.to_owned(), hint: NOT_PRELOADED_HINT });
        }
        command.env("LD_PRELOAD", with_others(&library, std::env::var_os("LD_PRELOAD")));
    }
    // Ctrl-C is meant for the program. This process blocks it, to report how the program ended. The program does not
    // inherit the blocked signals.
    let mut ours = SigSet::empty();
    ours.add(Signal::SIGINT);
    ours.add(Signal::SIGQUIT);
    let _ = ours.thread_block();
    let mut child = command.spawn().map_err(|error| fails(name, &error.to_string()))?;
    let pid = child.id();
    let status = child.wait().map_err(|error| fails(name, &error.to_string()))?;
    if status.success() {
        return Ok(0);
    }
    let name = name.to_string_lossy();
    remark(format_args!("{} ended with {status}", printable(&name)));
    let code = status.signal().map_or(status.code().unwrap_or(1), |signal| SIGNALLED + signal);
    if let Some(ring) = rings_of_process(pid, &wanted.dir).into_iter().next() {
        remark(format_args!("Its ring: {}", printable(&ring.path.to_string_lossy())));
        if status.signal().is_some() {
            let ring = || RingArgs { ring: Some(ring.path.clone().into()), ring_option: None };
            // Both print whether the ring is damaged. The exit status is that of the program.
            show::show(&ring(), &ShowArgs::default(), wanted)?;
            check::check(&CheckArgs::of(ring()), wanted)?;
        }
    } else {
        remark(format_args!("It left no readable ring in {}", printable(&wanted.dir.to_string_lossy())));
    }
    Ok(u8::try_from(code).unwrap_or(u8::MAX))
}

fn fails(program: &OsStr, why: &str) -> AppError {
    AppError::Run {
        program: PathBuf::from(program),
        why: why.to_owned(),
        hint: "give its path, or check PATH",
    }
}

/// The program's file, as a shell finds it.
fn find(name: &OsStr) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    if name.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(name)).filter(is_program);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(is_program)
}

/// Where the interposer is: at the requested path, beside this program, or where libraries are installed.
fn library(requested: Option<&Path>) -> Result<PathBuf, AppError> {
    if let Some(requested) = requested {
        let found = fs::canonicalize(requested);
        return found.map_err(|source| AppError::PreloadLibrary { path: requested.to_owned(), source });
    }
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent);
    let candidates =
        beside.into_iter().flat_map(|directory| [directory.to_owned(), directory.join("../lib")]);
    let installed = ["/usr/local/lib", "/usr/lib"].map(PathBuf::from);
    candidates
        .chain(installed)
        .find_map(|directory| fs::canonicalize(directory.join(LIBRARY)).ok())
        .ok_or(AppError::NoPreload)
}

/// `LD_PRELOAD` with the interposer first.
fn with_others(library: &Path, others: Option<OsString>) -> OsString {
    let mut list = library.as_os_str().to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        list.push(":");
        list.push(others);
    }
    list
}

/// Why a library cannot be preloaded into a program; `None` if it can be, as far as known.
fn why_not_preloaded(program: &Path) -> Option<&'static str> {
    let metadata = fs::metadata(program).ok()?;
    let gives_rights = metadata.mode() & 0o6000 != 0 && metadata.uid() != nix::unistd::geteuid().as_raw();
    if gives_rights {
        return Some("it is setuid or setgid, and the dynamic linker preloads nothing into such programs");
    }
    // Headers are at the beginning of a program. A script has none: its interpreter is a program of its own.
    let mut bytes = Vec::new();
    fs::File::open(program).ok()?.take(HEADERS_MAX_BYTES).read_to_end(&mut bytes).ok()?;
    let header = object::elf::FileHeader64::<object::Endianness>::parse(&*bytes).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, &*bytes).ok()?;
    let has_linker = segments.iter().any(|segment| segment.p_type(endian) == object::elf::PT_INTERP);
    (!has_linker).then_some(
        "it is statically linked: there is no dynamic linker to preload anything, and no call to intercept",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interposer_precedes_other_preloaded_libraries() {
        let library = Path::new("/lib/a.so");
        assert_eq!(with_others(library, None), "/lib/a.so");
        assert_eq!(with_others(library, Some("".into())), "/lib/a.so");
        assert_eq!(with_others(library, Some("b.so c.so".into())), "/lib/a.so:b.so c.so");
    }

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        assert!(find(OsStr::new("sh")).is_some_and(|path| path.is_absolute()));
        assert_eq!(find(OsStr::new("/dev/null")), None);
        assert_eq!(find(OsStr::new("no-such-program")), None);
        assert_eq!(why_not_preloaded(&find(OsStr::new("sh")).unwrap()), None);
    }
}
