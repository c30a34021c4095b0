//! `--stop`: the stacks of threads that were stopped for a moment. The program does not notice it, and no thread stays
//! stopped.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use librip_test_kit::victim::{DEADLINE, Plan, Victim};
use read_rip_evidence::process::live::{LiveTarget, stop_each};
use read_rip_evidence::target::{Registers, RunState, Sleep, Task, Unstopped};

use crate::support::compiled::Fixture;
use crate::support::run::read_rip;
use crate::support::unprepared;

const CALLS: &str = include_str!("../programs/calls.c");

/// A program with threads in calls that do not return by themselves.
struct Calls {
    victim: Victim,
    _fixture: Fixture,
}

impl Calls {
    /// Returns when all threads are in their calls.
    fn start() -> Calls {
        let fixture = Fixture::new("calls.c", CALLS);
        fixture.run("gcc -O1 -g -pthread calls.c -o prog");
        let mut victim = Plan::new(fixture.path("prog"), &[]).start();
        victim.until("ready");
        let calls = Calls { victim, _fixture: fixture };
        calls.until(|tasks| {
            let is_there = |task: &Task| match task.name.as_str() {
                "computes" => task.state == RunState::Running,
                // The barrier that all pass before is a futex too.
                "takes" | "takes-timed" | "word" | "word-timed" | "child" => is_in(task, &["futex", "wait4"]),
                _ => task.sleep.is_some() && !is_in(task, &["futex"]),
            };
            tasks.iter().all(is_there)
        });
        calls
    }

    fn pid(&self) -> u32 {
        self.victim.pid()
    }

    fn tasks(&self) -> Vec<Task> {
        LiveTarget::open(self.pid()).and_then(|live| live.tasks()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Waits until the threads are so.
    fn until(&self, are: impl Fn(&[Task]) -> bool) {
        unprepared::until(self.pid(), are);
    }

    fn tid(&self, name: &str) -> u32 {
        self.tasks().iter().find(|task| task.name == name).unwrap_or_else(|| panic!("no {name}")).tid
    }

    /// No call has returned, and all signals arrive.
    fn is_undisturbed(&mut self) {
        self.victim.go_on();
        assert_eq!(self.victim.line(), "returned: none");
        assert_eq!(self.victim.line(), "arrived: 500");
    }
}

fn is_in(task: &Task, calls: &[&str]) -> bool {
    matches!(task.sleep, Some(Sleep::Call(call)) if call.name.is_some_and(|name| calls.contains(&name)))
}

/// Whether a thread is stopped by its tracer, or has one.
fn is_held(task: &Task) -> bool {
    task.tracer.is_some() || matches!(task.state, RunState::Traced | RunState::Stopped)
}

#[test]
fn threads_that_run_have_stacks_if_they_are_stopped_and_the_program_does_not_notice() {
    let mut calls = Calls::start();
    let pid = calls.pid().to_string();
    let without = read_rip(["stacks", &pid]).sound().stdout;
    assert!(without.contains("cut: the thread runs"), "{without}");
    let parts =
        ["\n    computes calls.c:", "    takes_a_unit calls.c:", "    waits_for_a_word_in_time calls.c:"];
    let deadline = Instant::now() + DEADLINE;
    // The reader does not wait for long until a thread stops: on a busy machine some may still run.
    let with = loop {
        let with = read_rip(["stacks", "--stop", &pid]).sound().stdout;
        if parts.iter().all(|part| with.contains(part)) {
            break with;
        }
        assert!(Instant::now() < deadline, "{with}");
    };
    // The kernel shows a call with a time limit that was stopped as another one.
    assert!(!with.contains("restart_syscall") && !with.contains("\n  ? "), "{with}");
    for command in [&["check", "--stop"][..], &["--stop"], &["-t", "--stop"]] {
        let outcome = read_rip(command.iter().copied().chain([&*pid]));
        assert!(!outcome.stderr.contains("Warning"), "{outcome:#?}");
    }
    assert!(!calls.tasks().iter().any(is_held), "{:#?}", calls.tasks());
    calls.is_undisturbed();
}

#[test]
fn a_signal_that_is_on_its_way_to_a_thread_arrives_also_if_the_thread_is_stopped() {
    let mut calls = Calls::start();
    let tid = calls.tid("counts");
    calls.victim.go_on();
    assert_eq!(calls.victim.line(), "returned: none");
    let mut stopped = 0;
    for _ in 0..200 {
        stopped += stop_each(&[tid], || |_: &Registers| ()).0.len();
    }
    assert!(stopped > 0);
    assert_eq!(calls.victim.line(), "arrived: 500");
    assert!(!calls.tasks().iter().any(is_held), "{:#?}", calls.tasks());
}

/// Set for the process that holds a thread: the thread's id.
const HELD: &str = "TEST_HOLDS_THREAD";

#[test]
fn a_thread_goes_on_if_the_reader_is_killed_while_the_thread_is_stopped() {
    let mut calls = Calls::start();
    let tid = calls.tid("computes");
    let mut holder = Command::new(std::env::current_exe().unwrap());
    holder
        .args(["--exact", "stopped::holds_a_thread", "--ignored", "--nocapture"])
        .env(HELD, tid.to_string());
    let mut holder = holder.stdout(Stdio::piped()).spawn().unwrap();
    until_line(&mut holder, "stopped");
    let is_held_now = |tasks: &[Task]| tasks.iter().any(|task| task.tid == tid && is_held(task));
    assert!(is_held_now(&calls.tasks()), "{:#?}", calls.tasks());
    // Another tracer is refused. It goes on with other threads.
    let (stopped, refused) = stop_each(&[tid, calls.tid("takes")], || |_: &Registers| ());
    assert_eq!((stopped.len(), refused), (1, Some(Unstopped::Traced(holder.id()))));
    holder.kill().unwrap();
    holder.wait().unwrap();
    calls.until(|tasks| !tasks.iter().any(is_held));
    calls.is_undisturbed();
}

#[test]
#[ignore = "the test above starts it as a process of its own, and kills it"]
fn holds_a_thread() {
    let Ok(tid) = std::env::var(HELD) else { return };
    let _ = stop_each(&[tid.parse().unwrap()], || {
        |_: &Registers| {
            println!("\nstopped");
            loop {
                std::thread::park();
            }
        }
    });
}

#[test]
fn threads_of_another_user_are_not_stopped_and_it_is_said_why() {
    if !nix::unistd::geteuid().is_root() {
        println!("SKIPPED another user's threads: only root can become another user");
        return;
    }
    let mut other = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let tid = other.id();
    // This changes the rights of one thread, and of those that it starts.
    let reader = std::thread::spawn(move || {
        let nobody = rustix::process::Uid::from_raw(65534);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        stop_each(&[tid], || |_: &Registers| ())
    });
    assert_eq!(reader.join().unwrap(), (Vec::new(), Some(Unstopped::Refused)));
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(Unstopped::Refused.to_string().ends_with("the kernel does not let this user trace the process"));
}

fn until_line(child: &mut Child, wanted: &str) {
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == wanted), "it ended before");
}
