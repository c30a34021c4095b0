//! Where the interposer is, and whether the dynamic linker can preload it into a program. It runs nothing.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, elf};

use super::super::error::AppError;

/// The interposer's file.
const LIBRARY: &str = "librip_preload.so";
/// The headers of a program are within this many bytes from its beginning.
const HEADERS_MAX_BYTES: u64 = 1 << 20;
/// What to do if nothing can be preloaded.
pub(super) const NOT_PRELOADED_HINT: &str =
    "rebuild the program with librip.h or the crate librip, which record in statically linked programs too";
/// The ELF machine of the interposer, which is built for the machine of this program.
const MACHINE: elf::Machine = if cfg!(target_arch = "aarch64") { elf::EM_AARCH64 } else { elf::EM_X86_64 };

/// Where the interposer is: at the requested path, beside this program, or where libraries are installed.
pub(super) fn library(requested: Option<&Path>) -> Result<PathBuf, AppError> {
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
pub(super) fn with_others(library: &Path, others: Option<OsString>) -> OsString {
    let mut list = library.as_os_str().to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        list.push(":");
        list.push(others);
    }
    list
}

/// Why a library cannot be preloaded into a program; `None` if it can be, as far as known.
pub(super) fn why_not(program: &Path) -> Option<String> {
    let metadata = fs::metadata(program).ok()?;
    let gives_rights = metadata.mode() & 0o6000 != 0 && metadata.uid() != nix::unistd::geteuid().as_raw();
    if gives_rights {
        return Some(
            "it is setuid or setgid, and the dynamic linker preloads nothing into such programs".into(),
        );
    }
    let bytes = start_of(program)?;
    match interpreter_of_script(&bytes) {
        // The kernel runs no script as the interpreter of a script. So this ends.
        Some(interpreter) => {
            let why = why_not_elf(&start_of(interpreter)?)?;
            Some(format!("it is a script of {}, of which this is true: {why}", interpreter.display()))
        }
        None => why_not_elf(&bytes).map(str::to_owned),
    }
}

/// Headers are at the beginning of a program.
fn start_of(program: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(program).ok()?.take(HEADERS_MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The program after `#!`.
fn interpreter_of_script(bytes: &[u8]) -> Option<&Path> {
    let line = bytes.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?.trim_ascii();
    let path = line.split(|&byte| byte == b' ' || byte == b'\t').next()?;
    Some(Path::new(OsStr::from_bytes(path)))
}

fn why_not_elf(bytes: &[u8]) -> Option<&'static str> {
    let ident = bytes.strip_prefix(&elf::ELFMAG)?;
    if ident.first() == Some(&elf::ELFCLASS32.0) {
        return Some("it is a 32-bit program, and the interposer has 64 bits");
    }
    let header = elf::FileHeader64::<Endianness>::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    if header.e_machine(endian) != MACHINE {
        return Some("it is built for another processor than the interposer");
    }
    let segments = header.program_headers(endian, bytes).ok()?;
    let Some(linker) = segments.iter().find(|segment| segment.p_type(endian) == elf::PT_INTERP) else {
        return Some(
            "it is statically linked: there is no dynamic linker to preload anything, and no call to intercept",
        );
    };
    let linker = linker.data(endian, bytes).ok()?;
    let is_musl = linker.windows(LD_MUSL.len()).any(|window| window == LD_MUSL);
    is_musl.then_some("it uses musl's C library, and the interposer needs glibc")
}

/// Part of the name of musl's dynamic linker.
const LD_MUSL: &[u8] = b"ld-musl";

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
    fn a_script_is_judged_by_its_interpreter() {
        assert_eq!(interpreter_of_script(b"#! /bin/sh -e\nexit"), Some(Path::new("/bin/sh")));
        assert_eq!(interpreter_of_script(b"\x7fELF"), None);
    }

    /// A header and one segment: the program's interpreter.
    fn program(machine: u16, interpreter: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 120];
        bytes[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1]);
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(16, &3u16.to_le_bytes());
        put(18, &machine.to_le_bytes());
        put(20, &1u32.to_le_bytes());
        put(32, &64u64.to_le_bytes());
        put(52, &64u16.to_le_bytes());
        put(54, &56u16.to_le_bytes());
        put(56, &1u16.to_le_bytes());
        // The segment.
        put(64, &3u32.to_le_bytes());
        put(72, &120u64.to_le_bytes());
        put(96, &(interpreter.len() as u64).to_le_bytes());
        bytes.extend(interpreter);
        bytes
    }

    #[test]
    fn what_the_interposer_cannot_be_preloaded_into_is_recognised() {
        let machine = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
        assert_eq!(why_not_elf(&program(machine, b"/lib64/ld-linux-x86-64.so.2\0")), None);
        let why = |bytes: &[u8]| why_not_elf(bytes).unwrap_or_default();
        assert!(why(&program(machine, b"/lib/ld-musl-x86_64.so.1\0")).contains("musl"));
        assert!(why(&program(243, b"/lib/ld.so\0")).contains("another processor"));
        let mut short = program(machine, b"");
        short[4] = 1;
        assert!(why(&short).contains("32-bit"));
        assert_eq!(why_not_elf(b"text"), None);
    }
}
