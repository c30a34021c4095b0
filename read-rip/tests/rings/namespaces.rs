//! Rings in other mount namespaces: those of a container are found, and one that means harm leads the reader nowhere.
//!
//! Each container is a process that has mounted what it likes over `/dev`. Nothing of the host changes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::support::fixture::{Fixture, pile_up};
use crate::support::run::{Ended, read_rip};

/// A process in a mount namespace of its own.
struct Container(Ended);

impl Container {
    /// Runs a script in it, and goes on when the script is done. `None` if this machine does not allow it.
    fn start(script: &str) -> Option<Container> {
        let script = format!("{script} && echo ready && exec sleep 1000");
        let mut child = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-ec", &script])
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let mut said = String::new();
        BufReader::new(child.stdout.take()?).read_line(&mut said).ok()?;
        let container = Container(Ended(child));
        if said != "ready\n" {
            println!("skipped: no user namespaces here, or no mounts in them");
            return None;
        }
        Some(container)
    }
}

/// Whether `read-rip list` finds a ring that is in a directory of the host, and below `/dev/shm` of a container.
#[track_caller]
fn is_listed(script: impl Fn(&str, &str) -> String) -> Option<bool> {
    let fixture = Fixture::of(&pile_up());
    let directory = fixture.path.with_extension("directory");
    fs::create_dir(&directory).unwrap();
    let name = "rip.server.4321.17";
    fs::copy(&fixture.path, directory.join(name)).unwrap();
    let container = Container::start(&script(directory.to_str().unwrap(), name))?;
    let listed = read_rip(["list"]).sound().stdout;
    Some(listed.contains(&format!("/proc/{}/root/dev/shm/{name}", container.0.0.id())))
}

#[test]
fn the_ring_of_a_container_is_listed() {
    let found = is_listed(|from, name| format!("mount -t tmpfs none /dev/shm && cp {from}/{name} /dev/shm/"));
    assert_ne!(found, Some(false));
}

#[test]
fn a_container_that_links_its_dev_shm_elsewhere_leads_nowhere() {
    let found = is_listed(|from, _| {
        format!("mount -t tmpfs none /dev/shm && mount -t tmpfs none /dev && ln -s {from} /dev/shm")
    });
    assert_ne!(found, Some(true));
}

#[test]
fn a_container_whose_dev_shm_is_no_file_system_of_memory_leads_nowhere() {
    // A directory of the host, and the files of processes: to read some of those takes something away.
    for mounted in ["--bind \"$from\"", "--rbind /proc"] {
        let found = is_listed(|from, _| format!("from={from}; mount {mounted} /dev/shm"));
        // Where temporary files are in memory, a directory of the host is as good as any.
        let is_in_memory = mounted.contains("from") && is_in_memory();
        assert!(found != Some(true) || is_in_memory, "{mounted}");
    }
}

/// Whether temporary files are on a tmpfs.
fn is_in_memory() -> bool {
    let directory = read_rip_files::Directory::open(&std::env::temp_dir());
    directory.and_then(|directory| directory.is_in_memory()).unwrap()
}
