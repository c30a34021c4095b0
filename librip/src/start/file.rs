//! The ring's file: its name, and creating it without touching what others have put there.
//!
//! It writes nothing into the file.

use core::mem::offset_of;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use librip_format::{DEFAULT_DIRECTORY, Header, MAGIC};
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, fchmod};

use super::error::InitError;
use super::identity::{boot_id, start_time_ticks};
use crate::sys;

/// At most this many numbered names are tried. If all of these files exist, there is no ring.
const NAMES_TRIED: u32 = 100;

/// Creates the file at `wish`, a file or a directory, under the first free name.
pub(super) fn create(wish: Option<&Path>) -> Result<(File, PathBuf), InitError> {
    let wished = wished_path(wish)?;
    let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut number = 0;
    loop {
        let path = if number == 0 { wished.clone() } else { numbered(&wished, number) };
        match open(&path, flags, Mode::S_IRUSR | Mode::S_IWUSR) {
            Ok(descriptor) => {
                // The umask may have removed the owner's rights.
                let _ = fchmod(descriptor.as_fd(), Mode::S_IRUSR | Mode::S_IWUSR);
                return Ok((descriptor.into(), path));
            }
            Err(nix::Error::EEXIST) if is_of_this_process(&path) => {
                std::fs::remove_file(&path).map_err(|source| InitError::Create { path, source })?;
            }
            Err(nix::Error::EEXIST) if number < NAMES_TRIED => number += 1,
            Err(error) => return Err(InitError::Create { path, source: error.into() }),
        }
    }
}

/// The path to create, before a number is appended.
fn wished_path(wish: Option<&Path>) -> Result<PathBuf, InitError> {
    let mut directory = PathBuf::from(DEFAULT_DIRECTORY);
    if let Some(path) = wish {
        // Absolute, because the program may change its directory before it ends.
        let absolute = std::path::absolute(path)
            .map_err(|source| InitError::Create { path: path.to_owned(), source })?;
        // A symlink counts as a directory only if the path ends in a slash: somebody may have planted the symlink in a
        // directory that others can write to.
        let is_directory = if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            absolute.is_dir()
        } else {
            std::fs::symlink_metadata(&absolute).is_ok_and(|found| found.is_dir())
        };
        if !is_directory {
            return Ok(absolute);
        }
        directory = absolute;
    }
    let suffix = process_suffix();
    remove_former(&directory, &suffix);
    Ok(directory.join(default_name(&suffix)))
}

/// Removes the rings of programs that this process ran before it called `exec`: they describe programs that are gone.
fn remove_former(directory: &Path, suffix: &str) {
    // A file that cannot be read or removed stays. It does no harm.
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        if name.starts_with(b"rip.") && name.ends_with(suffix.as_bytes()) && is_of_this_process(&entry.path())
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Whether a file is a ring that this process has made, by its id, start and boot.
fn is_of_this_process(path: &Path) -> bool {
    // NONBLOCK: somebody may have planted a FIFO under this name, and opening it must not wait for a writer.
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    let Ok(descriptor) = open(path, flags, Mode::empty()) else { return false };
    let mut bytes = [0; offset_of!(Header, start_time_ticks) + 8];
    if File::from(descriptor).read_exact(&mut bytes).is_err() {
        return false;
    }
    let is_same = |at: usize, value: &[u8]| bytes.get(at..at + value.len()) == Some(value);
    let (Some(start), Some(boot)) = (start_time_ticks(), boot_id()) else { return false };
    is_same(offset_of!(Header, magic), &MAGIC)
        && is_same(offset_of!(Header, pid), &sys::pid().to_ne_bytes())
        && is_same(offset_of!(Header, start_time_ticks), &start.to_ne_bytes())
        && is_same(offset_of!(Header, boot_id), &boot)
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

/// `rip.PROGRAM.PID.START`. Containers that share a directory have equal pids, but no two processes of one machine have
/// the same pid and the same start time.
fn default_name(suffix: &str) -> String {
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let program: String = program
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '_' })
        .take(64)
        .collect();
    format!("rip.{program}{suffix}")
}

/// The end of the names of this process's rings.
fn process_suffix() -> String {
    format!(".{}.{:x}", sys::pid(), start_time_ticks().unwrap_or_else(sys::boottime_ns))
}
