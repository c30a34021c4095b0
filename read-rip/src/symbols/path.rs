//! Opens files whose paths come from a ring or from debug information, and so from somebody else.
//!
//! It opens regular files only and never waits for one; it does not look at what is in them.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use super::Problem;

/// Longer paths are refused by the kernel.
const PATH_MAX_BYTES: usize = 4096;
/// As the kernel has it: more symbolic links on one way are a loop.
const LINKS_MAX: usize = 40;

/// A regular file, opened to be read.
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) len_bytes: u64,
    /// ns since 1970, as the recorder writes it.
    pub(super) modified_ns: u64,
}

/// Opens a regular file; never a FIFO, device, socket or directory.
pub(super) fn open_regular(path: &Path) -> Result<Opened, Problem> {
    // Asked before, because opening a device can do something (a tape rewinds, a watchdog starts) ...
    if !fs::metadata(path).map_err(|error| from_io(&error))?.is_file() {
        return Err(Problem::NotRegularFile);
    }
    let file = OpenOptions::new()
        .read(true)
        // ... not to wait for a FIFO's writer, and to get no controlling terminal, if it was exchanged meanwhile ...
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOCTTY)
        .open(path)
        .map_err(|error| from_io(&error))?;
    // ... and asked again of what was opened.
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

/// Where a path of the recorded process is found from here: below `root`, if there is one.
///
/// Below a root, `..` and symbolic links are followed as they are for a process that is confined to it: neither
/// leads out. This is done by walking, without the kernel's help, so a process in the container that exchanges
/// a directory for a link at the right instant can still lead the walk out; what is found there must be a regular ELF
/// file with the recorded build id to be used, and none of it is shown but names and line numbers.
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
        // What is no link, or is not there, is for the caller to find out.
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

/// The names on the way, `..` among them.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn neither_parent_components_nor_links_lead_out_of_the_root() {
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
    fn a_loop_of_links_ends() {
        let root = tempfile::tempdir().unwrap();
        symlink("/b", root.path().join("a")).unwrap();
        symlink("/a", root.path().join("b")).unwrap();
        assert!(matches!(find(Some(root.path()), Path::new("/a")), Err(Problem::Unreadable(_))));
    }
}
