//! Whether a path is below the root directory of a process.

use std::path::{Component, Path, PathBuf};

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place<'p> {
    /// To a file as this process sees it.
    Here(&'p Path),
    /// To a file that a process runs or has mapped: it is `/proc/PID/exe`, or below `/proc/PID/map_files`.
    Mapped(&'p Path),
    /// To a file as another process sees it.
    Below {
        /// That process's root directory, `/proc/PID/root` or `/proc/PID/task/TID/root`.
        root: PathBuf,
        /// The path in it, without the first slash. `.` is the root directory itself.
        path: &'p Path,
    },
}

impl Place<'_> {
    pub(crate) fn of(path: &Path) -> Place<'_> {
        let mut parts = path.components();
        let mut next = || match parts.next()? {
            Component::Normal(name) => name.to_str(),
            Component::RootDir => Some("/"),
            _ => None,
        };
        let (Some("/"), Some("proc"), Some(process), Some(kind)) = (next(), next(), next(), next()) else {
            return Place::Here(path);
        };
        let root = Path::new("/proc").join(process);
        let root = match kind {
            _ if process != "self" && process.parse::<u32>().is_err() => return Place::Here(path),
            "root" => root.join("root"),
            "task" => match (next(), next()) {
                (Some(thread), Some("root")) => root.join("task").join(thread).join("root"),
                _ => return Place::Here(path),
            },
            "exe" | "map_files" => return Place::Mapped(path),
            _ => return Place::Here(path),
        };
        let path = parts.as_path();
        Place::Below { root, path: if path.as_os_str().is_empty() { Path::new(".") } else { path } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_the_root_of_a_process_are_told_from_others() {
        let below = |root: &str, path| Place::Below { root: root.into(), path: Path::new(path) };
        let of = |path| Place::of(Path::new(path));
        assert_eq!(of("/proc/17/root/dev/shm/x"), below("/proc/17/root", "dev/shm/x"));
        assert_eq!(of("//proc/./17/root//x/../y"), below("/proc/17/root", "x/../y"));
        assert_eq!(of("/proc/17/root"), below("/proc/17/root", "."));
        assert_eq!(of("/proc/17/root/"), below("/proc/17/root", "."));
        assert_eq!(of("/proc/self/root/x"), below("/proc/self/root", "x"));
        assert_eq!(of("/proc/17/task/18/root/x"), below("/proc/17/task/18/root", "x"));
        assert_eq!(of("/proc/17/task/18/exe"), Place::Here(Path::new("/proc/17/task/18/exe")));
        for mapped in ["/proc/17/map_files/1000-2000", "/proc/17/exe"] {
            assert_eq!(of(mapped), Place::Mapped(Path::new(mapped)));
        }
        for here in
            ["/proc/17/rootx", "/proc/x/root/y", "proc/17/root/x", "/proc/17", "/", "", "/tmp/proc/17/root/x"]
        {
            assert_eq!(of(here), Place::Here(Path::new(here)));
        }
    }
}
