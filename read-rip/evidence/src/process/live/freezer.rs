//! Whether the control group of a process is frozen: none of its threads runs until it is thawed.

use std::path::PathBuf;

use super::folder::Folder;

/// Whether it is frozen; `None` if that is not known.
pub(super) fn is_frozen(thread: &Folder) -> Option<bool> {
    let groups = String::from_utf8(thread.read("cgroup").ok()?).ok()?;
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mut known = None;
    for group in groups.lines() {
        // Hierarchy, controllers, path. Version 2 has no controllers.
        let mut fields = group.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let is_second = controllers.is_empty();
        if !is_second && !controllers.split(',').any(|controller| controller == "freezer") {
            continue;
        }
        let Some(mount) = mount_of(&mounts, if is_second { None } else { Some("freezer") }) else { continue };
        let folder = mount.join(path.trim_start_matches('/'));
        let state = if is_second {
            let events = std::fs::read_to_string(folder.join("cgroup.events"));
            events.ok().map(|events| events.lines().any(|line| line == "frozen 1"))
        } else {
            let state = std::fs::read_to_string(folder.join("freezer.state"));
            state.ok().map(|state| state.trim() == "FROZEN")
        };
        // The group at the top cannot be frozen, and has no such file.
        let is_top = path == "/";
        known = match (known, state.or(is_top.then_some(false))) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (known, state) => state.or(known),
        };
    }
    known
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
}
