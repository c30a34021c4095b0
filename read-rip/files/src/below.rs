//! Opens a path in a root directory as a process would that has this root directory.
//!
//! The kernel does it since Linux 5.6 (`openat2`). Where it does not, or a filter refuses that, [`walk`] opens one
//! directory after the other. It holds each of them open, and goes up only to one that it came from. So nobody who
//! exchanges directories meanwhile leads it out either.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, readlinkat};
use rustix::io::{Errno, Result, retry_on_intr};

/// More links on one path are a loop. The kernel has the same limit.
const LINKS_MAX: usize = 40;

/// Whether links on a path count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// A path with a link is an error.
    Refused,
    /// They lead to other places below the same root directory.
    Followed,
}

/// Opens a path below a root directory. Links of `/proc` that are no paths are errors, whatever `links` says.
pub(crate) fn open(root: BorrowedFd<'_>, path: &Path, links: Links, flags: OFlags) -> Result<OwnedFd> {
    let mut resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    if links == Links::Refused {
        resolve |= ResolveFlags::NO_SYMLINKS;
    }
    loop {
        match openat2(root, path, flags, Mode::empty(), resolve) {
            // AGAIN: somebody has renamed a directory on the way.
            Err(Errno::INTR | Errno::AGAIN) => {}
            // A filter that does not know the call refuses it with one of these.
            Err(Errno::NOSYS | Errno::PERM) => return walk(root, path, links, flags),
            done => return done,
        }
    }
}

/// The same without the kernel's help.
fn walk(root: BorrowedFd<'_>, path: &Path, links: Links, flags: OFlags) -> Result<OwnedFd> {
    let mut pending = names(path.as_os_str());
    // The directories from below the root to where it is.
    let mut reached: Vec<OwnedFd> = Vec::new();
    let mut followed = 0;
    while let Some(name) = pending.pop_front() {
        if name == ".." {
            reached.pop();
            continue;
        }
        let here = reached.last().map_or(root, AsFd::as_fd);
        let step = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = retry_on_intr(|| openat(here, &name, step, Mode::empty()))?;
        if FileType::from_raw_mode(fstat(&found)?.st_mode) != FileType::Symlink {
            reached.push(found);
            continue;
        }
        followed += 1;
        if links == Links::Refused || followed > LINKS_MAX {
            return Err(Errno::LOOP);
        }
        let target = OsString::from_vec(readlinkat(&found, "", Vec::new())?.into_bytes());
        if target.as_bytes().starts_with(b"/") {
            reached.clear();
        }
        let mut first = names(&target);
        first.append(&mut pending);
        pending = first;
    }
    let here = reached.last().map_or(root, AsFd::as_fd);
    let is_directory = FileType::from_raw_mode(fstat(here)?.st_mode) == FileType::Directory;
    if flags.contains(OFlags::DIRECTORY) && !is_directory {
        return Err(Errno::NOTDIR);
    }
    match reached.pop() {
        Some(found) => Ok(found),
        None => Ok(root.try_clone_to_owned().map_err(|_| Errno::MFILE)?),
    }
}

/// The names of a path, `..` included.
fn names(path: &OsStr) -> VecDeque<OsString> {
    let named = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    Path::new(path).components().filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::path::PathBuf;

    /// A root directory, and a file outside of it.
    fn root() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("usr/bin")).unwrap();
        fs::write(root.join("usr/bin/prog"), "inside").unwrap();
        fs::write(folder.path().join("secret"), "outside").unwrap();
        fs::create_dir(root.join("usr/empty")).unwrap();
        symlink("/usr/bin", root.join("bin")).unwrap();
        symlink("../../../../secret", root.join("usr/up")).unwrap();
        symlink(folder.path().join("secret"), root.join("absolute")).unwrap();
        symlink("/b", root.join("a")).unwrap();
        symlink("/a", root.join("b")).unwrap();
        (folder, root)
    }

    type Open = fn(BorrowedFd<'_>, &Path, Links, OFlags) -> Result<OwnedFd>;

    /// Both ways must have the same results.
    fn each(check: impl Fn(Open, &Path)) {
        let (_folder, root) = root();
        for way in [open as Open, walk] {
            check(way, &root);
        }
    }

    fn found(way: Open, root: &Path, path: &str, links: Links) -> Result<PathBuf> {
        let fd = File::open(root).unwrap();
        let found = way(fd.as_fd(), Path::new(path), links, OFlags::PATH | OFlags::CLOEXEC)?;
        let path = format!("/proc/self/fd/{}", rustix::fd::AsRawFd::as_raw_fd(&found));
        Ok(fs::read_link(path).unwrap())
    }

    #[test]
    fn parents_and_links_stay_below_the_root() {
        each(|way, root| {
            let found = |path| found(way, root, path, Links::Followed);
            let program = root.canonicalize().unwrap().join("usr/bin/prog");
            for path in [
                "usr/bin/prog",
                "bin/prog",
                "../../usr/../bin/prog",
                "usr/bin/../../bin/prog",
                "bin/../bin/prog",
            ] {
                assert_eq!(found(path), Ok(program.clone()), "{path}");
            }
            for outside in ["usr/up", "absolute", "../secret", "usr/empty/../../../secret", "nothing"] {
                assert_eq!(found(outside), Err(Errno::NOENT), "{outside}");
            }
            assert_eq!(found("a"), Err(Errno::LOOP));
            assert_eq!(found("usr/bin/prog/x"), Err(Errno::NOTDIR));
        });
    }

    #[test]
    fn links_are_refused_where_they_do_not_count() {
        each(|way, root| {
            let found = |path| found(way, root, path, Links::Refused);
            assert!(found("usr/bin/prog").is_ok());
            assert_eq!(found("bin/prog"), Err(Errno::LOOP));
            assert_eq!(found("absolute"), Err(Errno::LOOP));
        });
    }

    #[test]
    fn a_root_directory_is_below_itself() {
        each(|way, root| {
            let fd = File::open(root).unwrap();
            for path in [".", "..", "usr/.."] {
                let found =
                    way(fd.as_fd(), Path::new(path), Links::Refused, OFlags::PATH | OFlags::DIRECTORY);
                let found = File::from(found.unwrap()).metadata().unwrap().ino();
                assert_eq!(found, fd.metadata().unwrap().ino(), "{path}");
            }
            let file =
                way(fd.as_fd(), Path::new("usr/bin/prog"), Links::Refused, OFlags::PATH | OFlags::DIRECTORY);
            assert_eq!(file.unwrap_err(), Errno::NOTDIR);
        });
    }
}
