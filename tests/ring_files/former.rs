//! What a program does about rings that are there already: it removes those of this very process's former programs, and
//! never one of another process, user or container.

#![allow(unsafe_code, reason = "a fork")]

use std::fs;
use std::io::Write;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use librip_test_kit::builder::Ring;
use librip_test_kit::victim::{is_root, tempdir};

/// A shell whose pid is known becomes a recorded program. Before that, `plant` gets its pid and start time, and makes a
/// file at the path. Returns whether that file is still there at the end.
fn stays(plant: impl FnOnce(Ring, &Path)) -> bool {
    let dir = tempdir();
    let mut shell = Command::new("sh")
        .args(["-c", &format!("read line; exec {} cycle-2", env!("CARGO_BIN_EXE_scenario"))])
        .env("RIP_RING", format!("{}/", dir.path().display()))
        .env("RIP_SLOTS", "64")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let status = fs::read_to_string(format!("/proc/{}/stat", shell.id())).unwrap();
    let start: u64 = status.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap();
    let ring = Ring { pid: shell.id(), start_time_ticks: start, ..Ring::new().of_this_process() };
    let path: PathBuf = dir.path().join(format!("rip.scenario.{}.{start:x}", shell.id()));
    plant(ring, &path);
    let planted = fs::read(&path).unwrap();
    shell.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let mut ready = [0; 6];
    std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut ready).unwrap();
    let stays = fs::read(&path).is_ok_and(|now| now == planted);
    // The program has a ring of its own in either case.
    let rings = fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(rings, if stays { 2 } else { 1 });
    shell.kill().unwrap();
    shell.wait().unwrap();
    stays
}

#[test]
fn the_ring_of_a_program_that_this_process_was_before_is_removed() {
    assert!(!stays(|ring, path| ring.build().write(path)));
}

#[test]
fn the_ring_of_an_equal_process_in_another_container_stays() {
    assert!(stays(|ring, path| Ring { pid_namespace: ring.pid_namespace ^ 1, ..ring }.build().write(path)));
}

#[test]
fn a_copy_of_a_former_ring_stays() {
    assert!(stays(|ring, path| {
        let original = path.with_extension("original");
        ring.build().write(&original);
        fs::rename(&original, path.with_file_name("kept")).unwrap();
        fs::copy(path.with_file_name("kept"), path).unwrap();
        fs::remove_file(path.with_file_name("kept")).unwrap();
    }));
}

#[test]
fn the_ring_of_another_user_stays() {
    if is_root("the_ring_of_another_user_stays") {
        assert!(stays(|ring, path| {
            ring.build().write(path);
            chown(path, Some(65534), None).unwrap();
        }));
    }
}

#[test]
fn a_former_ring_stays_while_a_child_has_it_mapped() {
    let mut mapped = None;
    assert!(stays(|ring, path| {
        // This process plays the child.
        Ring { children: (1, vec![std::process::id()]), ..ring }.build().write(path);
        mapped = Some(librip_test_kit::map(path));
    }));
    drop(mapped);
    // A child that was forked long ago is not noted any more.
    let mut child = None;
    assert!(stays(|ring, path| {
        Ring { children: (100, vec![u32::MAX >> 2; 15]), ..ring }.build().write(path);
        let mapped = librip_test_kit::map(path);
        child = Some(Inheritor::of_this_process());
        drop(mapped);
    }));
    drop(child);
    assert!(!stays(|ring, path| {
        Ring { children: (100, vec![u32::MAX >> 2; 15]), ..ring }.build().write(path);
    }));
}

/// A process that has everything mapped that this one has mapped now. It sleeps, and ends with this value.
struct Inheritor(nix::unistd::Pid);

impl Inheritor {
    fn of_this_process() -> Inheritor {
        // SAFETY: the child makes system calls only.
        match unsafe { nix::unistd::fork() }.unwrap() {
            nix::unistd::ForkResult::Parent { child } => Inheritor(child),
            nix::unistd::ForkResult::Child => loop {
                nix::unistd::pause();
            },
        }
    }
}

impl Drop for Inheritor {
    fn drop(&mut self) {
        nix::sys::signal::kill(self.0, nix::sys::signal::Signal::SIGKILL).unwrap();
        nix::sys::wait::waitpid(self.0, None).unwrap();
    }
}
