//! Whether the control group of a process is frozen, and which group keeps it so.
//!
//! A group is frozen if it is told so, or if one above it is. The one that is told so has to be thawed.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::folder::Folder;
use crate::target::Freezer;

/// What the freezer does to a process; `None` if that is not known.
pub(super) fn freezer(thread: &Folder) -> Option<Freezer> {
    let groups = String::from_utf8(thread.read("cgroup").ok()?).ok()?;
    let mut known = None;
    for group in groups.lines() {
        // Hierarchy, controllers, path. Version 2 has no controllers.
        let mut fields = group.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let is_second = controllers.is_empty();
        if !is_second && !controllers.split(',').any(|controller| controller == "freezer") {
            continue;
        }
        let Some(mount) = &mounts()[usize::from(is_second)] else { continue };
        let folder = mount.join(path.trim_start_matches('/'));
        let is_frozen = match is_second {
            true => read_to_string(folder.join("cgroup.events"))
                .map(|events| events.lines().any(|line| line == "frozen 1")),
            false => read_to_string(folder.join("freezer.state")).map(|state| state.trim() == "FROZEN"),
        };
        match is_frozen {
            Ok(true) => return Some(Freezer::Frozen { switch: switch(&folder, mount, is_second) }),
            Ok(false) => known = Some(Freezer::Thawed),
            // The group at the top cannot be frozen, and has no such file.
            Err(_) if path == "/" => known = known.or(Some(Freezer::Thawed)),
            Err(_) => {}
        }
    }
    known
}

/// Where the freezer of the first version and the hierarchy of the second one are mounted. The table of mounts is read
/// once: thousands of processes may be asked about.
fn mounts() -> &'static [Option<PathBuf>; 2] {
    static MOUNTS: OnceLock<[Option<PathBuf>; 2]> = OnceLock::new();
    MOUNTS.get_or_init(|| {
        let mounts = read_to_string("/proc/self/mountinfo").unwrap_or_default();
        [mount_of(&mounts, Some("freezer")), mount_of(&mounts, None)]
    })
}

/// The file of the group that was told to be frozen: this one, or one above it.
fn switch(folder: &Path, mount: &Path, is_second: bool) -> PathBuf {
    let (name, told) = if is_second { ("cgroup.freeze", "1") } else { ("freezer.state", "1") };
    let is_told = |group: &&Path| {
        let file = group.join(if is_second { name } else { "freezer.self_freezing" });
        read_to_string(file).is_ok_and(|state| state.trim() == told)
    };
    let above = folder.ancestors().take_while(|group| group.starts_with(mount));
    above.into_iter().find(is_told).unwrap_or(folder).join(name)
}

/// Where a hierarchy of control groups is mounted: the second version's, or that of a controller of the first.
fn mount_of(mounts: &str, controller: Option<&str>) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let is_it = match (after.next()?, controller) {
            ("cgroup2", None) => true,
            ("cgroup", Some(wanted)) => after.nth(1)?.split(',').any(|option| option == wanted),
            _ => false,
        };
        is_it.then(|| before.split(' ').nth(4).map(PathBuf::from))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hierarchy_is_found_by_its_version_or_controller() {
        let mounts = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
            32 31 0:29 / /sys/fs/cgroup/cpu rw shared:5 - cgroup cgroup rw,cpu\n\
            37 31 0:34 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer\n\
            41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        assert_eq!(mount_of(mounts, None), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(mount_of(mounts, Some("freezer")), Some("/sys/fs/cgroup/freezer".into()));
        assert_eq!(mount_of(mounts, Some("pids")), None);
        assert_eq!(mount_of("", None), None);
    }

    #[test]
    fn the_group_that_was_told_has_the_switch() {
        let root = tempfile::tempdir().expect("a directory");
        let inner = root.path().join("outer/inner");
        std::fs::create_dir_all(&inner).expect("directories");
        let write = |path: &str, text: &str| std::fs::write(root.path().join(path), text).expect("a file");
        write("outer/inner/cgroup.freeze", "0\n");
        write("outer/cgroup.freeze", "1\n");
        assert_eq!(switch(&inner, root.path(), true), root.path().join("outer/cgroup.freeze"));
        write("outer/inner/freezer.self_freezing", "1\n");
        assert_eq!(switch(&inner, root.path(), false), inner.join("freezer.state"));
        assert_eq!(
            Freezer::Frozen { switch: "a/freezer.state".into() }.thaw().map(|of| of.1),
            Some("THAWED")
        );
        assert_eq!(Freezer::Frozen { switch: "a/cgroup.freeze".into() }.thaw().map(|of| of.1), Some("0"));
    }
}
