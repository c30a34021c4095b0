//! File systems that do not answer: the reader of a process that uses them waits for a limited time, and names them.
//!
//! They are tested one after the other, and beside no other test: what waits for such a file system cannot be ended.

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use read_rip_evidence::process::live::LiveTarget;
use read_rip_evidence::target::Task;

use support::run::read_rip;
use support::unprepared::{compile, contains, futex};

/// What such a process has on such a file system.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The stack of a thread.
    Stack,
    /// The stack of a thread, and its program.
    Program,
    /// A page that a thread waits for, while it keeps the memory of the process locked.
    Locked,
}

/// A process that uses such a file system.
struct Silent {
    process: Child,
    server: i32,
    _directory: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Silent {
    /// `None` if this machine does not allow it.
    fn start(kind: Kind) -> Option<Silent> {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let program = compile("silent_files.c", "silent_files", "cc", &["-O1", "-g", "-pthread"])?;
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(&program);
        command.arg(directory.path()).stdout(Stdio::piped());
        match kind {
            Kind::Stack => {}
            Kind::Program => drop(command.arg(&program)),
            Kind::Locked => drop(command.arg("locked")),
        }
        let mut process = command.spawn().unwrap();
        let mut said = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let Some(server) = said.strip_prefix("ready ") else {
            process.wait().unwrap();
            println!("{}", said.trim_end());
            return None;
        };
        let live = LiveTarget::open(process.id()).unwrap();
        let is_ready = |task: &Task| kind == Kind::Locked || futex(task).is_some();
        while !live.tasks().unwrap().iter().any(is_ready) {
            librip_test_kit::pause();
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
    let Some(silent) = Silent::start(Kind::Stack) else { return };
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
    let Some(silent) = Silent::start(Kind::Program) else { return };
    let pid = silent.pid();
    let outcome = read_rip([&*pid]);
    let said = format!("Warning: process {pid}: ");
    contains(&outcome.stderr, &[&said, "/file did not answer within 2 s"]);
    contains(&outcome.stdout, &["file[", "1 thread"]);
}

#[test]
fn a_ring_may_be_looked_for_where_a_file_system_does_not_answer() {
    let Some(_silent) = Silent::start(Kind::Stack) else { return };
    // Nothing that is listed is on it.
    let outcome = read_rip(["list"]).sound();
    assert!(!outcome.stderr.contains("did not answer"), "{outcome:#?}");
}

#[test]
fn a_process_that_keeps_its_memory_locked_holds_up_nobody() {
    let Some(silent) = Silent::start(Kind::Locked) else { return };
    let pid = silent.pid();
    let said = format!("Warning: process {pid} did not answer within 2 s");
    for command in [&["list"][..], &["check", "--all"], &["check", &pid], &[&pid]] {
        let outcome = read_rip(command);
        contains(&outcome.stderr, &[&said]);
        if command.contains(&&*pid) {
            contains(&outcome.stdout, &["silent_files[", "3 threads"]);
        }
        if command.contains(&"--all") {
            contains(&outcome.stdout, &["that did not answer within 2 s"]);
        }
    }
    let shown = read_rip([&*pid]);
    contains(&shown.stdout, &["1 thread, in disk sleep (state D), in mmap"]);
}
