//! Processes that somebody has stopped: a finding says who, and what lets them run.

use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use read_rip_evidence::target::{RunState, Task};

use crate::support::run::{Ended, Outcome, read_rip};
use crate::support::unprepared;

/// `cat`, which waits for input. It ends with the test.
struct Cat(Ended);

impl Cat {
    fn start() -> Cat {
        let cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("cat");
        let cat = Cat(Ended(cat));
        cat.until(|task| task.name == "cat" && task.sleep.is_some());
        cat
    }

    fn id(&self) -> u32 {
        self.0.0.id()
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.id()).expect("a pid"))
    }

    fn until(&self, is: impl Fn(&Task) -> bool) {
        unprepared::until(self.id(), |tasks| tasks.iter().all(&is));
    }

    fn check(&self) -> Outcome {
        read_rip(["check", &self.id().to_string()])
    }
}

#[test]
fn a_stopped_process_is_told_with_the_command_that_continues_it() {
    let cat = Cat::start();
    let sound = cat.check();
    assert!(sound.status == 0 && sound.stdout.contains("no findings"), "{sound:#?}");
    kill(cat.pid(), Signal::SIGSTOP).expect("a child of this process");
    cat.until(|task| task.state == RunState::Stopped);
    let stopped = cat.check();
    let summary = "proven stopped: the only thread is stopped by a signal, for at least ";
    let command = format!("`kill -CONT {}` lets it run on", cat.id());
    assert!(stopped.status == 1 && stopped.stdout.contains(summary), "{stopped:#?}");
    assert!(stopped.stdout.contains(&command), "{stopped:#?}");
    let all = read_rip(["check", "--all"]);
    let line = all.stdout.lines().find(|line| line.ends_with(&format!("next: read-rip check {}", cat.id())));
    assert!(line.is_some_and(|line| line.starts_with("proven stopped: cat[")), "{all:#?}");
    kill(cat.pid(), Signal::SIGCONT).expect("a child of this process");
    cat.until(|task| task.state == RunState::Sleeping);
    assert_eq!(cat.check().status, 0);
}

#[test]
fn a_process_that_its_tracer_has_stopped_names_the_tracer() {
    let cat = Cat::start();
    // The tracer is the thread that attaches. It lives until the end of the test.
    if nix::sys::ptrace::attach(cat.pid()).is_err() {
        println!("SKIPPED a traced process: this user may not trace");
        return;
    }
    nix::sys::wait::waitpid(cat.pid(), None).expect("it stops");
    let traced = cat.check();
    assert!(traced.status == 1 && traced.stdout.contains("proven traced: the only thread is"), "{traced:#?}");
    // The kernel names the thread that traces.
    let tracer = format!("[{}] traces the process", nix::unistd::gettid());
    assert!(traced.stdout.contains(&tracer), "{tracer}\n{traced:#?}");
    nix::sys::ptrace::detach(cat.pid(), None).expect("it was attached");
    cat.until(|task| task.state == RunState::Sleeping);
    assert_eq!(cat.check().status, 0);
}
