//! File systems that do not answer: whoever looks at a process that uses them waits for a limited time, and says so.
//!
//! They are tested one after the other, and beside no other test: what waits for such a file system cannot be ended.

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use read_rip::process::live::LiveTarget;
use support::run::read_rip;
use support::unprepared::{compile, contains, futex};

/// A process with a thread whose stack is on such a file system.
struct Silent {
    process: Child,
    server: i32,
    _directory: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Silent {
    /// `None` if this machine does not allow it. Its program is on the file system too if the process is a copy.
    fn start(is_copy: bool) -> Option<Silent> {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let program = compile("silent_files.c", "silent_files", "cc", &["-O1", "-g", "-pthread"])?;
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(&program);
        command.arg(directory.path()).args(is_copy.then_some(&program)).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut said = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let Some(server) = said.strip_prefix("ready ") else {
            process.wait().unwrap();
            println!("{}", said.trim_end());
            return None;
        };
        let live = LiveTarget::open(process.id()).unwrap();
        while !live.tasks().unwrap().iter().any(|task| futex(task).is_some()) {
            std::thread::yield_now();
        }
        Some(Silent {
            process,
            server: server.trim_end().parse().unwrap(),
            _directory: directory,
            _alone: alone,
        })
    }

    fn pid(&self) -> String {
        self.process.id().to_string()
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        // With its server, the file system ends, and with that whatever waits for it.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.server), nix::sys::signal::SIGKILL);
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_stack_on_a_file_system_that_does_not_answer_holds_up_nobody() {
    let Some(silent) = Silent::start(false) else { return };
    let pid = silent.pid();
    let shown = [&["stacks", &*pid][..], &["check", &pid], &["check", "--all"]].map(|command| {
        let outcome = read_rip(command);
        let said = format!("Warning: process {pid}: ");
        let is_said = outcome.stderr.contains(&said)
            && outcome.stderr.contains("/file is on a file system that may not answer");
        assert!(is_said, "{command:?}: {outcome:#?}");
        outcome.stdout
    });
    contains(&shown[0], &["wait_there", "main"]);
}

#[test]
fn a_program_on_a_file_system_that_does_not_answer_is_shown_without_its_symbols() {
    let Some(silent) = Silent::start(true) else { return };
    let pid = silent.pid();
    let outcome = read_rip([&*pid]);
    let said = format!("Warning: process {pid}: ");
    contains(&outcome.stderr, &[&said, "/file did not answer within 2 s"]);
    contains(&outcome.stdout, &["file[", "1 thread"]);
}

#[test]
fn a_ring_may_be_looked_for_where_a_file_system_does_not_answer() {
    let Some(_silent) = Silent::start(false) else { return };
    // Nothing that is listed is on it.
    let outcome = read_rip(["list"]).sound();
    assert!(!outcome.stderr.contains("did not answer"), "{outcome:#?}");
}
