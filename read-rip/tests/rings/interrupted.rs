//! Exports that end too early: nothing has the name of the result, and nothing is left.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::support::fixture::{Fixture, Scratch};
use crate::support::locks::*;
use crate::support::run::{clean, command, finish};
use crate::support::synth::{Ring, Slot};

/// A ring that takes long to export.
fn large() -> Ring {
    let thread = |tid| {
        let slot = Slot::thread("worker", tid);
        (0..9).fold(slot, |slot, hold| {
            let from = 3.0 + f64::from(hold);
            slot.event(TAKES, &[at(from), A]).event(RELEASED, &[at(from + 0.5), at(from), A])
        })
    };
    ring().with_slots((1..=4000).map(thread))
}

fn entries(folder: &Path) -> Vec<String> {
    let all = fs::read_dir(folder).unwrap();
    all.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// An export that was stopped while it wrote, and what is in its folder.
fn stopped(format: &str, ring: &Path, folder: &Path) -> (Child, Vec<String>) {
    loop {
        // A shell without job control has its background jobs ignore SIGINT, and `nohup` SIGHUP.
        let mut export = clean(Command::new("env"));
        export.arg("--default-signal").arg(command().get_program());
        export.args(["export", "-f", format, "-o"]).arg(folder.join("result")).arg(ring);
        let mut child = export.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let pid = Pid::from_raw(child.id() as i32);
        while entries(folder).is_empty() && child.try_wait().unwrap().is_none() {
            librip_test_kit::pause();
        }
        if child.try_wait().unwrap().is_none() {
            kill(pid, Signal::SIGSTOP).unwrap();
            if let WaitStatus::Stopped(..) = waitpid(pid, Some(WaitPidFlag::WUNTRACED)).unwrap() {
                let seen = entries(folder);
                if seen.iter().all(|name| name.starts_with(".result.")) && !seen.is_empty() {
                    return (child, seen);
                }
                kill(pid, Signal::SIGKILL).unwrap();
                child.wait().unwrap();
            }
        }
        // It was faster than this test: once more.
        for name in entries(folder) {
            let path = folder.join(name);
            if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        }
    }
}

#[test]
fn a_signal_that_ends_an_export_leaves_neither_a_result_nor_a_part_of_it() {
    use std::os::unix::process::ExitStatusExt;
    let fixture = Fixture::of(&large());
    for format in ["ctf", "chrome"] {
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL] {
            // An export that is done before its thread for signals runs is no interrupted one: once more.
            let (scratch, status, before) = loop {
                let scratch = Scratch::new();
                let (mut child, before) = stopped(format, &fixture.path, scratch.0.path());
                let pid = Pid::from_raw(child.id() as i32);
                kill(pid, signal).unwrap();
                let _ = kill(pid, Signal::SIGCONT);
                let status = child.wait().unwrap();
                if !status.success() {
                    break (scratch, status, before);
                }
            };
            let folder = scratch.0.path();
            assert_eq!(status.signal(), Some(signal as i32), "{format}");
            // Nobody can tidy up after SIGKILL, but what it leaves has another name.
            let expected = if signal == Signal::SIGKILL { before } else { Vec::new() };
            assert_eq!(entries(folder), expected, "{format} {signal}");
        }
    }
}

#[test]
fn a_signal_that_is_ignored_does_not_end_an_export() {
    let fixture = Fixture::of(&large());
    let scratch = Scratch::new();
    let mut shell = clean(Command::new("/bin/sh"));
    let script = "trap '' INT; \"$@\" & trap - INT; while ! [ -e \"$0\"/.result.* ] && kill -0 $!; do :; done; \
        kill -INT $!; wait $!";
    shell.args(["-c", script]).arg(scratch.0.path()).arg(env!("CARGO_BIN_EXE_read-rip"));
    shell.args(["export", "-f", "chrome", "-o"]).arg(scratch.path("result")).arg(&fixture.path);
    let outcome = finish(shell);
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    assert_eq!(entries(scratch.0.path()), ["result"]);
}

#[test]
fn a_full_file_system_gets_no_part_of_a_result() {
    let fixture = Fixture::of(&large());
    for format in ["ctf", "chrome"] {
        let scratch = Scratch::new();
        let mut shell = clean(Command::new("unshare"));
        let script =
            "mount -t tmpfs -o size=64k none \"$0\" || exit 77; \"$@\"; echo \"status $?\"; ls -A \"$0\"";
        shell.args(["--user", "--map-root-user", "--mount", "/bin/sh", "-c", script]).arg(scratch.0.path());
        shell.arg(env!("CARGO_BIN_EXE_read-rip")).args(["export", "-f", format, "-o"]);
        shell.arg(scratch.path("result")).arg(&fixture.path);
        let outcome = finish(shell);
        if outcome.status == 77 || outcome.stderr.contains("unshare failed") {
            eprintln!("SKIPPED: no file system can be mounted here");
            return;
        }
        assert_eq!(outcome.stdout, "status 2\n", "nothing is left: {outcome:#?}");
        assert!(outcome.stderr.contains("could not write"), "{outcome:#?}");
        assert!(outcome.stderr.contains("No space left on device"), "{outcome:#?}");
    }
}

#[test]
fn a_reader_that_closes_the_pipe_ends_an_export_without_an_error() {
    let fixture = Fixture::of(&large());
    let mut shell = clean(Command::new("/bin/sh"));
    shell.args([
        "-c",
        "{ \"$@\"; echo \"status $?\" >&2; } | head -c 9",
        "sh",
        env!("CARGO_BIN_EXE_read-rip"),
    ]);
    shell.args(["export", "-f", "chrome"]).arg(&fixture.path);
    let outcome = finish(shell);
    assert_eq!((&*outcome.stdout, &*outcome.stderr), ("{\"display", "status 0\n"));
}
