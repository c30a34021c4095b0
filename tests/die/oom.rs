//! No more memory: the kernel's OOM killer, if the test can make a memory cgroup, and a failed allocation.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{check, check_until_death, plan};

/// A memory cgroup. The test removes it when it ends.
struct Cgroup(PathBuf);

impl Cgroup {
    /// `None` if this machine does not permit it. The reason is then on standard error.
    fn new(limit_bytes: u64) -> Option<Cgroup> {
        let name = format!("rip-test-{}", std::process::id());
        for (root, file) in [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
            ("/sys/fs/cgroup/unified", "memory.max"),
        ] {
            let path = Path::new(root).join(&name);
            if !Path::new(root).join("cgroup.procs").exists() || fs::create_dir(&path).is_err() {
                continue;
            }
            let group = Cgroup(path);
            if fs::write(group.0.join(file), limit_bytes.to_string()).is_ok() {
                return Some(group);
            }
        }
        eprintln!("SKIPPED: no memory cgroup can be made here");
        None
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_process_that_the_kernel_kills_for_its_memory_leaves_every_mark_it_made() {
    let Some(group) = Cgroup::new(32 << 20) else { return };
    let processes = group.0.join("cgroup.procs");
    let remains = plan(&["eat"]).before(move || fs::write(&processes, "0")).run();
    assert_eq!(remains.signal(), Some(libc::SIGKILL), "{remains:?}");
    check_until_death(&remains, "about to eat");
}

#[test]
fn a_process_that_aborts_because_an_allocation_failed_leaves_every_mark_it_made() {
    let remains = plan(&["alloc"]).limit(nix::sys::resource::Resource::RLIMIT_AS, 1 << 30).run();
    assert_eq!(remains.signal(), Some(libc::SIGABRT), "{remains:?}");
    check(&remains, &["about to die"]);
}
