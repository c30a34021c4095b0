#![doc = include_str!("../README.md")]
#![allow(missing_docs, reason = "a name that says it all has no comment")]

mod below;
mod content;
mod directory;
mod helper;
mod module;
mod mounts;
mod place;
mod wire;

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, fstatfs, openat};
use rustix::io::{Errno, retry_on_intr};

pub use below::Links;
pub use content::{Content, FileFacts, answers};
pub use directory::Directory;
use helper::{Found, is_enabled, reach};
pub use helper::{PATIENCE, become_helper, helper_pids, note_unasked, unanswered, unasked};
pub use module::Module;
use place::Place;

#[derive(Debug)]
pub struct Opened {
    pub file: File,
    pub metadata: Metadata,
}

impl Opened {
    /// A file that is open already.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn new(file: File) -> io::Result<Opened> {
        let metadata = file.metadata()?;
        Ok(Opened { file, metadata })
    }

    /// The memory or disk space that it occupies, bytes.
    pub fn occupied_bytes(&self) -> u64 {
        // The system counts blocks of this length, whatever those of the file system are.
        self.metadata.blocks() * 512
    }
}

/// Why a file is not opened.
#[derive(Debug)]
pub enum OpenError {
    /// The system refuses it.
    Io(io::Error),
    /// It is no regular file of a file system that keeps files. This says what it is, for people.
    NotRegular(&'static str),
}

impl From<Errno> for OpenError {
    fn from(errno: Errno) -> OpenError {
        OpenError::Io(errno.into())
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> OpenError {
        OpenError::Io(error)
    }
}

impl From<OpenError> for io::Error {
    fn from(error: OpenError) -> io::Error {
        match error {
            OpenError::Io(error) => error,
            OpenError::NotRegular(found) => io::Error::other(format!("it is {found}, not a file")),
        }
    }
}

/// Opens a regular file for reading.
///
/// A path below `/proc/PID/root` is resolved as that process sees it: neither `..` nor a link leads out of its root
/// directory. `links` says whether links count there. Anywhere else they do.
///
/// # Errors
///
/// [`OpenError::NotRegular`] if it is a device, a FIFO, a socket, a directory, or a file that the kernel makes up: then
/// it is never opened, because to open a device can have effects, and to read one can take something away.
pub fn open(path: &Path, links: Links) -> Result<Opened, OpenError> {
    opened(&reached(path, links, OFlags::empty())?)
}

/// A handle of what a path leads to, by which nothing can be read yet. A file below `/proc/PID/root` that may never
/// answer is refused.
fn reached(path: &Path, links: Links, flags: OFlags) -> io::Result<OwnedFd> {
    let is_named_by_user = matches!(Place::of(path), Place::Here(_));
    let device = if is_named_by_user { None } else { mounts::suspect(path) };
    let Some(device) = device.filter(|_| is_enabled()) else { return Ok(reached_here(path, links, flags)?) };
    match reach(path, links, flags, device)? {
        Found::Local(reached) => Ok(reached),
        Found::Remote(..) => Err(io::Error::other("its file system may never answer")),
    }
}

/// The same, whatever the file system is.
fn reached_here(path: &Path, links: Links, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
    match Place::of(path) {
        Place::Here(path) | Place::Mapped(path) => retry_on_intr(|| openat(CWD, path, flags, Mode::empty())),
        Place::Below { root, path } => {
            let root_flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let root = retry_on_intr(|| openat(CWD, &root, root_flags, Mode::empty()))?;
            below::open(root.as_fd(), path, links, flags)
        }
    }
}

/// The flags that a regular file is opened with.
const FOR_READING: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Opens what a handle leads to, if it is a regular file.
fn opened(reached: &OwnedFd) -> Result<Opened, OpenError> {
    match FileType::from_raw_mode(fstat(reached)?.st_mode) {
        FileType::RegularFile if is_made_up(reached)? => {
            return Err(OpenError::NotRegular("a file of the kernel"));
        }
        FileType::RegularFile => {}
        other => return Err(OpenError::NotRegular(kind(other))),
    }
    Ok(Opened::new(File::from(again(reached, FOR_READING)?))?)
}

/// What a file is that is not regular, for people.
fn kind(found: FileType) -> &'static str {
    match found {
        FileType::Directory => "a directory",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::Symlink => "a link",
        _ => "a device",
    }
}

/// Opens what a handle leads to: that very file, whatever has its name by now.
fn again(reached: &OwnedFd, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", reached.as_raw_fd());
    retry_on_intr(|| openat(CWD, &path, flags, Mode::empty()))
}

/// The magic numbers of file systems whose files the kernel makes up as they are read: procfs, sysfs, debugfs, tracefs,
/// securityfs, selinuxfs, cgroup, cgroup2, bpf, configfs, efivarfs, pstore, binfmt_misc and resctrl. Source:
/// `include/uapi/linux/magic.h` and the file systems' sources.
const MADE_UP: [u64; 14] = [
    0x9fa0,
    0x6265_6572,
    0x6462_6720,
    0x7472_6163,
    0x7363_6673,
    0xf97c_ff8c,
    0x0027_e0eb,
    0x6367_7270,
    0xcafe_4a11,
    0x6265_6570,
    0xde5e_81e4,
    0x6165_676c,
    0x4249_4e4d,
    0x0765_5821,
];

const TMPFS: u64 = 0x0102_1994;

fn is_made_up(reached: &OwnedFd) -> rustix::io::Result<bool> {
    Ok(MADE_UP.contains(&magic(reached)?))
}

/// The magic number of the file system that an open file is on.
fn magic(file: &OwnedFd) -> rustix::io::Result<u64> {
    // The kernel's type is signed on some processors.
    Ok(fstatfs(file)?.f_type as u64 & u64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    fn found(path: impl AsRef<Path>) -> &'static str {
        match open(path.as_ref(), Links::Followed) {
            Ok(_) => "a file",
            Err(OpenError::NotRegular(found)) => found,
            Err(OpenError::Io(error)) => panic!("{error}"),
        }
    }

    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "text").unwrap();
        assert!(Command::new("mkfifo").arg(path("fifo")).status().unwrap().success());
        let _socket = UnixListener::bind(path("socket")).unwrap();
        assert_eq!(found(path("file")), "a file");
        assert_eq!(found(path("fifo")), "a FIFO");
        assert_eq!(found(path("socket")), "a socket");
        assert_eq!(found(folder.path()), "a directory");
        assert_eq!(found("/dev/null"), "a device");
        for made_up in [
            "/proc/self/status",
            "/proc/self/root/proc/self/status",
            "/sys/kernel/mm/transparent_hugepage/enabled",
        ] {
            if Path::new(made_up).exists() {
                assert_eq!(found(made_up), "a file of the kernel", "{made_up}");
            }
        }
    }

    #[test]
    fn a_path_below_the_root_of_a_process_is_resolved_in_that_root() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "text").unwrap();
        let below = Path::new("/proc/self/root").join(file.strip_prefix("/").unwrap());
        let opened = open(&below, Links::Refused).unwrap();
        assert_eq!(io::read_to_string(opened.file).unwrap(), "text");
    }
}
