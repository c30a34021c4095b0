//! Opens files whose paths come from a ring or from debug information, and so cannot be trusted.
//!
//! It opens regular files only, and never waits for a writer. It does not read what is in them.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use super::problem::Problem;

/// The kernel refuses longer paths.
const PATH_MAX_BYTES: usize = 4096;
/// More symbolic links on one path are a loop. The kernel has the same limit.
const LINKS_MAX: usize = 40;

/// A regular file, opened for reading.
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) len_bytes: u64,
    /// ns since 1970, as the recorder writes it.
    pub(super) modified_ns: u64,
}

/// Opens a regular file; never a FIFO, device, socket or directory.
pub(super) fn open_regular(path: &Path) -> Result<Opened, Problem> {
    // Checked before the file is opened, because opening a device can have effects: a tape rewinds, a watchdog starts.
    if !fs::metadata(path).map_err(|error| from_io(&error))?.is_file() {
        return Err(Problem::NotRegularFile);
    }
    let file = OpenOptions::new()
        .read(true)
        // The file may have been replaced since: do not wait for the writer of a FIFO, and get no controlling terminal.
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOCTTY)
        .open(path)
        .map_err(|error| from_io(&error))?;
    // Checked again for the file that was opened.
    let metadata = file.metadata().map_err(|error| from_io(&error))?;
    if !metadata.is_file() {
        return Err(Problem::NotRegularFile);
    }
    let seconds = (metadata.mtime() as u64).wrapping_mul(1_000_000_000);
    Ok(Opened {
        len_bytes: metadata.len(),
        modified_ns: seconds.wrapping_add(metadata.mtime_nsec() as u64),
        file,
    })
}

pub(super) fn from_io(error: &io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Problem::Missing,
        _ => Problem::Unreadable(error.to_string()),
    }
}

/// The path of a recorded process's file as this process sees it: below `root`, if there is one.
///
/// Below a root, `..` and symbolic links are followed as a process confined to that root would follow them: neither
/// leads out of it. The walk is done without the kernel's help. So a process in the container that replaces a
/// directory by a link at the right instant can still lead the walk out. A file found there is used only if it is a
/// regular ELF file with the recorded build id, and only names and line numbers of it are shown.
pub(super) fn find(root: Option<&Path>, path: &Path) -> Result<PathBuf, Problem> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() {
        return Err(Problem::BadPath("it is empty"));
    }
    if bytes.len() >= PATH_MAX_BYTES {
        return Err(Problem::BadPath("it is too long"));
    }
    if bytes.contains(&0) {
        return Err(Problem::BadPath("it has a zero byte"));
    }
    if !path.is_absolute() {
        return Err(Problem::BadPath("it is not absolute"));
    }
    match root {
        Some(root) => walk(root, path),
        None => Ok(path.to_owned()),
    }
}

fn walk(root: &Path, path: &Path) -> Result<PathBuf, Problem> {
    let mut pending = names(path);
    let mut reached: Vec<OsString> = Vec::new();
    let mut links = 0;
    while let Some(name) = pending.pop_front() {
        if name == ".." {
            reached.pop();
            continue;
        }
        reached.push(name);
        let here = join(root, &reached);
        // The caller finds out whether the file exists.
        let Ok(target) = fs::read_link(&here) else { continue };
        links += 1;
        if links > LINKS_MAX {
            return Err(Problem::Unreadable("too many symbolic links".to_owned()));
        }
        if target.is_absolute() {
            reached.clear();
        } else {
            reached.pop();
        }
        let mut first = names(&target);
        first.append(&mut pending);
        pending = first;
    }
    Ok(join(root, &reached))
}

/// The names of a path, `..` included.
fn names(path: &Path) -> VecDeque<OsString> {
    let named = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(named).collect()
}

fn join(root: &Path, names: &[OsString]) -> PathBuf {
    let mut path = root.to_owned();
    path.extend(names);
    path
}

/// A path with a suffix after its last name.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn parent_components_and_links_stay_below_the_root() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        fs::create_dir_all(root.join("usr/bin")).unwrap();
        symlink("/usr/bin", root.join("bin")).unwrap();
        symlink("../../../../etc", root.join("usr/up")).unwrap();
        let found = |path: &str| find(Some(root), Path::new(path)).unwrap();
        assert_eq!(found("/../../usr/../bin/prog"), root.join("usr/bin/prog"));
        assert_eq!(found("/usr/up/passwd"), root.join("etc/passwd"));
        assert_eq!(found("/bin/../x"), root.join("usr/x"));
    }

    #[test]
    fn a_loop_of_links_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        symlink("/b", root.path().join("a")).unwrap();
        symlink("/a", root.path().join("b")).unwrap();
        assert!(matches!(find(Some(root.path()), Path::new("/a")), Err(Problem::Unreadable(_))));
    }
}
