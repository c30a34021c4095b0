//! The ring's file: its name, and creating it without touching what others have put there.
//!
//! It writes nothing into the file. [`Place`] is found out in ordinary code; the rest is safe in a signal handler.
//!
//! # Complete or not there
//!
//! The file has no name while the ring is made (`O_TMPFILE`), and gets it when the ring is complete. If the program is
//! killed meanwhile, nothing is left. Where the file system or a missing `/proc` does not allow that, the file has its
//! name from the start. Then it is locked (`flock`) until it is complete: a collector that finds an unfinished file
//! that nobody has locked knows that its maker is dead.

use std::ffi::{CStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use librip_format::{DEFAULT_DIRECTORY, PROGRAM_LETTERS_MAX};

use super::bound::remove_surplus;
use super::error::InitError;
use super::former::remove_if_former;
use super::identity::start_time_ticks;
use crate::sys;
use crate::sys::file::{self, Errno, File, FileId, Terminated};

/// Rings of earlier runs that a start looks at. Anybody may leave files with such names, and a later start looks at
/// those that are left.
const EARLIER_MAX: usize = 256;

/// At most this many numbered names are tried. If all of these files exist, there is no ring.
const NAMES_TRIED: u32 = 100;

/// A path, terminated.
pub(crate) type Name = Terminated<{ libc::PATH_MAX as usize }>;

/// Where the file shall be.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Of the file or of its directory. Absolute, because the program may change its directory.
    path: PathBuf,
    /// The start of a name in this directory: the rest is the process's. `None`: the path is the file's.
    program: Option<String>,
}

impl Place {
    /// Finds out where the file shall be. `wish` is a file or a directory.
    pub(crate) fn find(wish: Option<&Path>) -> Result<Place, InitError> {
        let mut directory = PathBuf::from(DEFAULT_DIRECTORY);
        if let Some(path) = wish {
            let absolute = std::path::absolute(path)
                .map_err(|source| InitError::Create { path: path.to_owned(), source })?;
            // A symlink counts as a directory only if the path ends in a slash: somebody may have planted the symlink
            // in a directory that others can write to.
            let is_directory = if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
                absolute.is_dir()
            } else {
                std::fs::symlink_metadata(&absolute).is_ok_and(|found| found.is_dir())
            };
            if !is_directory {
                return Ok(Place { path: absolute, program: None });
            }
            directory = absolute;
        }
        Ok(Place { path: directory, program: Some(program_name()) })
    }

    pub(crate) fn directory(&self) -> &Path {
        match self.program {
            Some(_) => &self.path,
            None => self.path.parent().unwrap_or(Path::new("/")),
        }
    }

    /// The path that this process's ring gets if it is free.
    pub(crate) fn path(&self, pid: u32) -> PathBuf {
        let mut name = Name::new();
        match self.write_name(&mut name, pid) {
            Ok(()) => PathBuf::from(OsString::from(std::ffi::OsStr::from_bytes(name.as_c_str().to_bytes()))),
            Err(_) => self.path.clone(),
        }
    }

    fn write_name(&self, name: &mut Name, pid: u32) -> Result<(), Errno> {
        let too_long = |_| Errno(libc::ENAMETOOLONG);
        name.clear();
        name.push(self.path.as_os_str().as_bytes()).map_err(too_long)?;
        if let Some(program) = &self.program {
            let start = start_time_ticks(pid).unwrap_or_else(sys::boottime_ns);
            let end = format_args!("/rip.{program}.{pid}.{start:x}");
            core::fmt::Write::write_fmt(name, end).map_err(too_long)?;
        }
        Ok(())
    }

    /// Removes the rings of programs that this process ran before it called `exec`: they describe programs that are
    /// gone. If `is_bounded`, also some of the rings that earlier runs of the program have left, if there are many.
    pub(crate) fn clean_up(&self, is_bounded: bool) {
        let mut earlier = Vec::new();
        match &self.program {
            None => {
                let paths = (0..=NAMES_TRIED).map(|number| numbered(&self.path, number));
                for path in paths.take_while(|path| path.symlink_metadata().is_ok()) {
                    if !remove_if_former(&path) {
                        earlier.push(path);
                    }
                }
            }
            Some(program) => {
                let prefix = format!("rip.{program}.");
                let suffix =
                    format!(".{}.{:x}", sys::pid(), start_time_ticks(sys::pid()).unwrap_or_default());
                let Ok(entries) = std::fs::read_dir(&self.path) else { return };
                for entry in entries.flatten() {
                    let name = entry.file_name();
                    let name = name.as_encoded_bytes();
                    let may_be_former = name.starts_with(b"rip.") && name.ends_with(suffix.as_bytes());
                    if !(may_be_former && remove_if_former(&entry.path()))
                        && name.starts_with(prefix.as_bytes())
                        && earlier.len() < EARLIER_MAX
                    {
                        earlier.push(entry.path());
                    }
                }
            }
        }
        if is_bounded {
            remove_surplus(earlier);
        }
    }
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    if number > 0 {
        name.push(format!(".{number}"));
    }
    name.into()
}

/// The program's name as part of a file's. The whole name is `rip.PROGRAM.PID.START`. Containers that share a directory
/// have equal pids, but seldom two processes with the same pid and the same start time.
///
/// A program that was started through a link has the name of the link.
fn program_name() -> String {
    let executable = std::env::current_exe().ok();
    let link = sys::executed_path().filter(|path| Some(path) != executable.as_ref());
    let link = link.filter(|path| is_link_to(path, executable.as_deref()));
    let program = link.as_deref().or(executable.as_deref()).and_then(Path::file_name);
    let program = program.unwrap_or_default().to_string_lossy();
    program.chars().map(librip_format::letter_in_file_name).take(PROGRAM_LETTERS_MAX).collect()
}

/// Whether a path leads to the executable and is a name of it. `fexecve` executes a path of a descriptor, which is
/// none.
fn is_link_to(path: &Path, executable: Option<&Path>) -> bool {
    let is_descriptor = path.starts_with("/dev/fd") || path.starts_with("/proc");
    !is_descriptor && std::fs::canonicalize(path).ok().as_deref() == executable
}

/// How the file gets its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// When the ring is complete.
    AtTheEnd,
    /// When the file is made.
    AtTheStart,
}

#[derive(Debug)]
pub(crate) struct NewFile {
    pub(crate) file: File,
    naming: Naming,
}

impl NewFile {
    /// Makes the file. Its path is in `name` if it has one already.
    pub(crate) fn create(place: &Place, pid: u32, naming: Naming, name: &mut Name) -> Result<NewFile, Errno> {
        let file = match naming {
            Naming::AtTheStart => at_free_name(place, pid, name, File::create_locked)?,
            Naming::AtTheEnd => {
                name.clear();
                // The slash: the directory may be a symlink, as in the path of a file in it.
                name.push(place.directory().as_os_str().as_bytes())
                    .and_then(|()| name.push(b"/"))
                    .map_err(|_| Errno(libc::ENAMETOOLONG))?;
                let file = File::open(name.as_c_str(), libc::O_RDWR | libc::O_TMPFILE)?;
                // Without `/proc` it could not get a name later.
                let opened = file::id_at(link_to(&file)?.as_c_str(), true)?;
                if opened != file.id()? {
                    return Err(Errno(libc::ENOENT));
                }
                file
            }
        };
        // The umask may have removed the owner's rights.
        file.restrict_to_owner();
        Ok(NewFile { file, naming })
    }

    /// The ring is complete: the file has a name from now on, which is in `name`. Returns its identity.
    pub(crate) fn complete(self, place: &Place, pid: u32, name: &mut Name) -> Result<FileId, Errno> {
        if self.naming == Naming::AtTheEnd {
            let old = link_to(&self.file)?;
            at_free_name(place, pid, name, |path| file::link(old.as_c_str(), path))?;
        }
        self.file.id()
    }

    /// The ring could not be made.
    pub(crate) fn discard(self, name: &Name) {
        if self.naming == Naming::AtTheStart {
            file::unlink(name.as_c_str());
        }
    }
}

/// The path of an open file in `/proc`.
fn link_to(file: &File) -> Result<Terminated<32>, Errno> {
    Terminated::formatted(format_args!("/proc/self/fd/{}", file.descriptor()))
        .ok_or(Errno(libc::ENAMETOOLONG))
}

/// Tries the place's path, and then numbered ones, until one is free.
fn at_free_name<T>(
    place: &Place,
    pid: u32,
    name: &mut Name,
    mut create: impl FnMut(&CStr) -> Result<T, Errno>,
) -> Result<T, Errno> {
    place.write_name(name, pid)?;
    let len = name.len();
    for number in 0..=NAMES_TRIED {
        name.cut(len);
        if number > 0 {
            core::fmt::Write::write_fmt(name, format_args!(".{number}"))
                .map_err(|_| Errno(libc::ENAMETOOLONG))?;
        }
        match create(name.as_c_str()) {
            Err(Errno(libc::EEXIST)) => {}
            result => return result,
        }
    }
    Err(Errno(libc::EEXIST))
}
