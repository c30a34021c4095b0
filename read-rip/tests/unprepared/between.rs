//! Deadlocks between processes: through pipes, sockets, locks on files, shared memory and the ends of children. And
//! healthy processes that look like them.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Instant;

use librip_test_kit::victim::{DEADLINE, Plan, Victim, is_root};
use read_rip_evidence::target::{Sleep, Task};

use crate::support::run::{Outcome, read_rip};
use crate::support::unprepared::{self, compile, contains};

fn program() -> &'static Path {
    static PROGRAM: OnceLock<std::path::PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        compile("between.c", "between", "cc", &["-g", "-O1", "-w", "-pthread"]).expect("a C compiler")
    })
}

/// Processes of `programs/between.c`. They end with the test.
struct Processes {
    victim: Victim,
    pids: Vec<u32>,
}

impl Processes {
    /// Returns when the threads of each sleep in these calls, in this order.
    fn start(mode: &str, calls: &[&[&str]]) -> Processes {
        let plan = Plan::new(program(), &[mode]);
        let files = [plan.dir().join("one"), plan.dir().join("other")];
        let mut victim = files.into_iter().fold(plan, Plan::argument).start();
        let pids: Vec<u32> = victim.line().split(' ').map(|pid| pid.parse().expect("a pid")).collect();
        let pids: Vec<u32> = pids.into_iter().filter(|&pid| pid != 0).collect();
        assert_eq!(pids.len(), calls.len());
        // One without calls has ended.
        let living = pids.iter().zip(calls).filter(|(_, calls)| !calls.is_empty());
        living.for_each(|(&pid, calls)| until(pid, calls));
        Processes { victim, pids }
    }

    fn check(&self, at: usize) -> Outcome {
        read_rip(["check", &self.pids[at].to_string()])
    }

    /// Each of them is told that all of them are in a proven deadlock.
    fn are_proven(&self, parts: &[&str]) {
        self.are_in_deadlock("proven deadlock: ", parts);
    }

    fn are_in_deadlock(&self, kind: &str, parts: &[&str]) {
        for at in 0..self.pids.len() {
            let outcome = self.check(at);
            assert_eq!(outcome.status, 1, "{outcome:#?}");
            contains(&outcome.stdout, &[kind]);
            contains(&outcome.stdout, parts);
            for pid in &self.pids {
                contains(&outcome.stdout, &[&format!("between[{pid}] ")]);
            }
        }
        self.is_told_once();
    }

    /// `check --all` has one line about all of them.
    fn is_told_once(&self) {
        let all = read_rip(["check", "--all"]);
        let is_about = |line: &&str| {
            self.pids.iter().any(|pid| line.ends_with(&format!("; next: read-rip check {pid}")))
        };
        let lines: Vec<&str> = all.stdout.lines().filter(is_about).collect();
        assert!(matches!(*lines, [line] if line.contains(" deadlock: ")), "{all:#?}");
    }

    /// Returns when one of them is not judged, and nothing was found until then.
    fn not_judged(&self, at: usize) -> Outcome {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let outcome = self.check(at);
            if outcome.status == 3 {
                return outcome;
            }
            assert!(outcome.status == 0 && Instant::now() < deadline, "{outcome:#?}");
        }
    }

    /// Nothing is found in one of them.
    fn has_nothing(&self, at: usize) {
        let outcome = self.check(at);
        assert!(outcome.status == 0 && outcome.stdout.contains("no findings"), "{outcome:#?}");
    }

    /// Nothing is found in any of them.
    fn are_healthy(&self) {
        for at in 0..self.pids.len() {
            self.has_nothing(at);
        }
        let all = read_rip(["check", "--all"]).stdout;
        for pid in &self.pids {
            assert!(!all.contains(&format!("between[{pid}]")), "{all}");
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        // The others end with it.
        self.victim.kill();
    }
}

fn name(task: &Task) -> &'static str {
    match task.sleep {
        Some(Sleep::Call(call)) => call.name.unwrap_or("?"),
        _ => "",
    }
}

/// Waits until the threads of a process sleep in these calls.
pub(crate) fn until(pid: u32, calls: &[&str]) {
    unprepared::until(pid, |tasks| tasks.iter().map(name).eq(calls.iter().copied()));
}

#[test]
fn a_parent_that_waits_for_a_child_which_writes_to_it_is_a_deadlock() {
    let processes = Processes::start("writer", &[&["wait4"], &["write"]]);
    processes.are_proven(&[
        "2 processes wait for one another",
        " waits for the end of its child between[",
        ", at wait_for_child between.c:",
        " writes to a pipe that is full, at fill between.c:",
        " alone can read from it",
        "next: read all that the child writes before waiting for its end",
        "of 2 threads: 1 waits for a child process, 1 waits for room in a pipe or a socket that is full",
    ]);
}

#[test]
fn two_processes_that_write_to_one_another_are_a_deadlock() {
    let processes = Processes::start("pipes", &[&["write"], &["write"]]);
    processes
        .are_proven(&[" writes to a pipe that is full, at fill between.c:", "next: read while you write"]);
}

#[test]
fn two_processes_that_read_from_one_another_are_a_deadlock() {
    for mode in ["sockets", "tcp"] {
        let processes = Processes::start(mode, &[&["read"], &["read"]]);
        let parts = [
            " reads from a socket, at read_one between.c:",
            " alone can write at its other end",
            "assumed: no end of these pipes or sockets is on its way to another process in a message",
            "next: one side has to write before it reads",
            "of 2 threads: 2 wait for data in pipes or sockets",
        ];
        processes.are_proven(&parts);
    }
}

#[test]
fn the_lengths_of_waits_in_one_deadlock_are_of_one_moment() {
    let processes = Processes::start("pipes", &[&["write"], &["write"]]);
    let [pid, other] = processes.pids[..] else { panic!("{:?}", processes.pids) };
    // By how much the first one has waited for longer than the other one, by the answer about each of them.
    let apart = [pid, other].map(|asked| {
        let found = read_rip(["check", "--json", &asked.to_string()]).data("finding");
        let waits = found[0]["evidence"]["waits"].as_array().expect("waits");
        let of = |pid: u32| waits.iter().find(|wait| wait["pid"] == pid).expect("a wait")["for_ns"].as_i64();
        of(pid).expect("a time") - of(other).expect("a time")
    });
    assert!((apart[0] - apart[1]).abs() < 100_000_000, "{apart:?}");
}

#[test]
fn a_child_whose_first_thread_has_ended_is_waited_for() {
    let processes = Processes::start("writer-without-first-thread", &[&["wait4"], &["", "write"]]);
    processes.are_proven(&["2 processes wait for one another", " waits for the end of its child between["]);
}

#[test]
fn a_process_that_waits_for_itself_to_close_a_pipe_is_a_deadlock() {
    let processes = Processes::start("own-end", &[&["read"]]);
    processes.are_proven(&[
        "a process waits for itself",
        "the process itself (descriptor 4) alone can write to it",
        "next: close the end for writing in the process that reads",
    ]);
}

#[test]
fn two_files_that_are_locked_in_opposite_orders_are_a_deadlock() {
    for (mode, call) in [("flock", "flock"), ("ofd", "fcntl")] {
        let processes = Processes::start(mode, &[&[call], &[call]]);
        let (one, other) = (processes.victim.dir().join("one"), processes.victim.dir().join("other"));
        processes.are_proven(&[
            &format!(" waits for a lock on {}, at lock_file between.c:", one.display()),
            &format!(" waits for a lock on {}, at lock_file between.c:", other.display()),
            "next: acquire these locks in one order everywhere",
            "of 2 threads: 2 wait for locks on files",
        ]);
    }
    Processes::start("flock-without-first-thread", &[&["flock"], &["", "flock"]])
        .are_proven(&[" waits for a lock on ", " has it"]);
}

#[test]
fn who_has_the_lock_on_a_file_already_is_told_so() {
    let twice = Processes::start("flock-twice", &[&["flock"]]);
    twice.are_proven(&[
        "a process waits for itself",
        "; the process itself (descriptor 3) has it",
        "next: lock the file through one descriptor",
    ]);
    Processes::start("flock-of-parent", &[&["wait4"], &["flock"]])
        .are_proven(&["next: release the lock before waiting for a process that needs it"]);
}

#[test]
fn two_mutexes_in_shared_memory_that_are_locked_in_opposite_orders_are_a_deadlock() {
    let processes = Processes::start("mutexes", &[&["futex"], &["futex"]]);
    processes.are_proven(&[" waits for the lock 0x", " in shared memory, at shared_mutexes between.c:"]);
}

#[test]
fn a_mutex_in_shared_memory_whose_owner_has_ended_is_lost() {
    // In one of them nobody has waited for the process of the owner.
    for mode in ["mutex-lost", "mutex-of-zombie"] {
        let processes = Processes::start(mode, &[&["futex"], &[]]);
        let outcome = processes.check(0);
        assert_eq!(outcome.status, 1, "{outcome:#?}");
        let ended = format!("; thread {} has it, and has ended", processes.pids[1]);
        contains(
            &outcome.stdout,
            &["proven unreleased: 1 thread waits for a lock in shared memory whose owner has ended", &ended],
        );
        assert!(!outcome.stdout.contains("stall"), "{outcome:#?}");
    }
}

#[test]
fn all_who_have_a_semaphore_and_the_like_and_wait_are_suspected() {
    let of = [
        ("shared-semaphores", "the semaphore"),
        ("shared-semaphore", "the semaphore"),
        ("shared-barrier", "the barrier"),
        ("shared-condition", "the condition variable"),
    ];
    for (at, (mode, object)) in of.into_iter().enumerate() {
        let processes = Processes::start(mode, &[&["futex"], &["futex"]]);
        let outcome = processes.check(at % 2);
        assert_eq!(outcome.status, 1, "{outcome:#?}");
        let [one, other] = processes.pids[..] else { panic!("{:?}", processes.pids) };
        contains(
            &outcome.stdout,
            &[
                "suspected deadlock: 2 processes wait for one another",
                &format!(" waits for {object} 0x"),
                &format!("{other}] have this memory"),
                &format!("between[{one}] "),
                "doubt: a semaphore, a condition variable or a barrier does not say who has to end the wait",
                "of 2 threads: 2 wait for semaphores or the like that processes share",
            ],
        );
        if at == 0 {
            processes.is_told_once();
        }
    }
}

#[test]
fn a_core_file_says_that_it_has_no_other_processes() {
    let processes = Processes::start("event-of-none", &[&["read"], &["read"]]);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("core");
    librip_test_kit::core::write(processes.pids[0], 6, &path);
    let said = "    a core file has no other processes: who could have ended a wait for input is not known\n";
    contains(&read_rip(["check".as_ref(), path.as_os_str()]).stdout, &["\nno findings in 1 thread", said]);
    assert!(!processes.check(0).stdout.contains(said), "the living have partners");
}

#[test]
fn who_waits_for_a_process_that_waits_for_itself_is_not_called_sound() {
    let processes = Processes::start("stuck-child", &[&["wait4"], &["futex"]]);
    let began = Instant::now();
    let check = loop {
        let check = processes.check(0);
        if check.status == 3 || began.elapsed() > DEADLINE {
            break check;
        }
    };
    let child = processes.pids[1];
    let name = format!("between[{child}]");
    contains(
        &check.stdout,
        &[
            &format!("not judged: 1 thread waits for {name}, whose threads all wait for one another"),
            &format!("; next: read-rip check {child} (1 thread, 0 locks)"),
            &format!("only {name} can end the wait of between["),
        ],
    );
}

#[test]
fn who_waits_for_one_of_several_descriptors_of_others_that_wait_too_is_suspected() {
    let epoll = if cfg!(target_arch = "x86_64") { "epoll_wait" } else { "epoll_pwait" };
    let poll = if cfg!(target_arch = "x86_64") { "poll" } else { "ppoll" };
    for (mode, call, waits) in [
        ("events", epoll, " waits for one of 2 descriptors, at wait_for_event between.c:"),
        ("events-of-poll", poll, " waits for one of 2 descriptors, at wait_for_event between.c:"),
        ("events-of-select", "pselect6", " waits for one of 2 descriptors, at wait_for_event between.c:"),
        ("eventfd", "read", " reads from an eventfd that is 0, at read_one between.c:"),
    ] {
        let processes = Processes::start(mode, &[&[call], &[call]]);
        let outcome = processes.check(0);
        assert_eq!(outcome.status, 1, "{outcome:#?}");
        contains(&outcome.stdout, &["suspected deadlock: 2 processes wait for one another", waits]);
    }
    let answers = Processes::start("eventfd-of-kernel", &[&["read"], &["read"]]);
    assert_eq!(answers.check(0).status, 0, "the kernel may write to the eventfd of one");
    assert_eq!(Processes::start("event-of-none", &[&["read"], &["read"]]).check(0).status, 1);
    let answers = Processes::start("event-of-ring", &[&["read"], &["read"]]);
    let has_ring = |pid: u32| {
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        let links = descriptors.map(|of| std::fs::read_link(of.unwrap().path()).unwrap());
        links.into_iter().any(|link| link.to_string_lossy() == "anon_inode:[io_uring]")
    };
    match answers.pids.iter().any(|&pid| has_ring(pid)) {
        true => assert_eq!(answers.check(0).status, 0, "the kernel may write for one"),
        false => eprintln!("skipped: the kernel does not allow an io_uring"),
    }
    let processes = Processes::start("pidfd", &[&["wait4"], &[poll]]);
    let ends = " waits for one of 1 descriptor, at end_of_parent between.c:";
    processes.are_in_deadlock("suspected deadlock: 2 processes wait for one another", &[ends]);
    let sleeps = "clock_nanosleep";
    Processes::start("pidfd-of-worker", &[&[sleeps], &[poll]]).are_healthy();
    Processes::start("events-and-worker", &[&[sleeps], &[epoll]]).has_nothing(1);
    Processes::start("events-and-clock", &[&[epoll], &[epoll]]).has_nothing(0);
    Processes::start("events-and-term", &[&[epoll], &[epoll]]).has_nothing(1);
}

#[test]
fn a_server_of_files_that_uses_them_itself_is_a_deadlock() {
    if !is_root("a FUSE file system") || !Path::new("/dev/fuse").exists() {
        return;
    }
    Processes::start("files-of-itself", &[&["openat"]]).are_proven(&[
        "a process waits for itself",
        " waits for an answer of the file system at ",
        "; the process itself (descriptor 3) answers for it",
        "next: end the program behind the file system",
    ]);
}

#[test]
fn who_waits_in_shared_memory_for_one_who_goes_on_is_in_no_deadlock() {
    let sleeps = "clock_nanosleep";
    Processes::start("shared-semaphore-and-producer", &[&[sleeps], &["futex"]]).has_nothing(1);
    Processes::start("shared-semaphore-and-third", &[&["futex"], &["futex"], &[sleeps]]).are_healthy();
}

#[test]
fn who_waits_in_memory_that_others_may_open_is_not_judged() {
    let processes = Processes::start("shared-semaphore-of-file", &[&["futex"], &["futex"]]);
    let outcome = processes.check(1);
    assert!(outcome.status == 3 && outcome.stdout.contains("not judged: all threads wait"), "{outcome:#?}");
    let all = read_rip(["check", "--all"]).stdout;
    let name = format!("between[{}]", processes.pids[0]);
    let told: Vec<&str> = all.lines().filter(|line| line.contains(&name)).collect();
    assert!(matches!(*told, [line] if line.starts_with("not judged: all threads wait")), "{all}");
}

#[test]
fn two_fifos_that_are_opened_in_opposite_orders_are_suspected() {
    let processes = Processes::start("fifos", &[&["openat"], &["openat"]]);
    let outcome = processes.check(0);
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    let one = processes.victim.dir().join("one");
    contains(
        &outcome.stdout,
        &[
            "suspected deadlock: 2 processes wait for one another",
            &format!(" opens the FIFO {}, and nobody opens its other end, at ", one.display()),
            "doubt: another process may open a FIFO by its path",
        ],
    );
    processes.is_told_once();
    let children = Processes::start("fifos-of-children", &[&["clock_nanosleep"], &["openat"], &["openat"]]);
    for child in [1, 2] {
        let outcome = children.check(child);
        assert_eq!(outcome.status, 1, "their parent goes on: {outcome:#?}");
        contains(&outcome.stdout, &["suspected deadlock: 2 processes wait for one another"]);
    }
}

#[test]
fn who_waits_for_a_process_that_is_stopped_is_told_what_lets_it_run() {
    let of = [
        ("stopped", "wait4", "waits for the end of its child between["),
        ("stopped-reader", "write", "writes to a socket that is full, at fill between.c:"),
    ];
    for (mode, call, waits) in of {
        let processes = Processes::start(mode, &[&[call], &[]]);
        let outcome = processes.check(0);
        assert_eq!(outcome.status, 1, "{outcome:#?}");
        let [_, child] = processes.pids[..] else { panic!("{:?}", processes.pids) };
        contains(
            &outcome.stdout,
            &[
                &format!(
                    "proven stopped: 1 thread waits for between[{child}], which is stopped by a signal\n"
                ),
                waits,
                &format!("`kill -CONT {child}` lets between[{child}] run on"),
            ],
        );
        contains(&outcome.stderr, &["1 finding in"]);
        if mode == "stopped-reader" {
            continue;
        }
        // The child has a finding of its own, and both are one for the machine.
        contains(&processes.check(1).stdout, &["proven stopped: the only thread is stopped by a signal"]);
        let all = read_rip(["check", "--all"]).stdout;
        let names = processes.pids.iter().map(|pid| format!("; next: read-rip check {pid}"));
        let told = names.map(|name| all.lines().filter(|line| line.ends_with(&name)).count()).sum::<usize>();
        assert_eq!(told, 1, "{all}");
    }
}

#[test]
fn who_waits_for_others_too_or_for_a_client_is_not_kept_by_one_that_is_stopped() {
    let sleeps = "clock_nanosleep";
    Processes::start("stopped-and-another", &[&["wait4"], &[], &[sleeps]]).has_nothing(0);
    let processes = Processes::start("stopped-client", &[&["read"], &[]]);
    processes.has_nothing(0);
    let stopped = format!("between[{}]: the only thread is stopped by a signal", processes.pids[1]);
    contains(&read_rip(["check", "--all"]).stdout, &[&stopped]);
}

#[test]
fn who_has_a_thread_that_can_help_is_in_no_deadlock() {
    let sleeps = "clock_nanosleep";
    Processes::start("writer-and-thread", &[&["wait4", sleeps], &["write"]]).are_healthy();
    Processes::start("sockets-and-third", &[&["read"], &["read"], &[sleeps]]).are_healthy();
    // The first thread of the other process has ended.
    Processes::start("own-end-and-sleeper", &[&["read"], &["", sleeps]]).are_healthy();
}

/// Each server has a thread that ticks. It made all of these sound.
#[test]
fn a_circle_beside_threads_that_sleep_again_and_again_is_not_called_sound() {
    let sleeps = "clock_nanosleep";
    let start = |&(mode, calls): &(&str, &[&[&str]])| Processes::start(mode, calls);
    let healthy: &[(&str, &[&[&str]])] = &[
        // The child is idle, and nobody waits for it.
        ("beat+producer", &[&[sleeps, sleeps], &["read", sleeps]]),
        ("beat+flock-held", &[&[sleeps, sleeps], &["flock", sleeps]]),
        // A thread reads, and sleeps in between.
        ("beat+writer-and-reader", &[&["wait4", sleeps, sleeps], &["write", sleeps]]),
        ("beat+sockets-and-term", &[&["read", sleeps], &["read", sleeps]]),
    ];
    let stuck: &[(&str, &[&[&str]])] = &[
        ("beat+pipes", &[&["write", sleeps], &["write", sleeps]]),
        ("beat+sockets", &[&["read", sleeps], &["read", sleeps]]),
        ("beat+own-end", &[&["read", sleeps]]),
        ("beat+flock", &[&["flock", sleeps], &["flock", sleeps]]),
        ("beat+flock-of-parent", &[&["wait4", sleeps], &["flock", sleeps]]),
        ("beat+flock-twice", &[&["flock", sleeps]]),
        ("beat+shared-semaphores", &[&["futex", sleeps], &["futex", sleeps]]),
        ("beat+writer", &[&["wait4", sleeps], &["write", sleeps]]),
    ];
    let healthy: Vec<Processes> = healthy.iter().map(start).collect();
    let stuck: Vec<Processes> = stuck.iter().map(start).collect();
    let writer = stuck.last().expect("some");
    for at in 0..2 {
        let parts = [
            "not judged: 2 processes wait for one another, for at least ",
            ", and only 2 threads, which sleep for a time again and again, go on: ",
            &format!("; between[{}] ", writer.pids[0]),
            " waits for a child process at wait_for_child between.c:",
        ];
        contains(&writer.not_judged(at).stdout, &parts);
    }
    let all = read_rip(["check", "--all"]).stdout;
    let lines_about = |processes: &Processes| {
        let names: Vec<String> = processes.pids.iter().map(|pid| format!("between[{pid}]")).collect();
        let is_about = |line: &&str| names.iter().any(|name| line.contains(name));
        all.lines().filter(is_about).map(str::to_owned).collect::<Vec<String>>()
    };
    for processes in &stuck {
        let lines = lines_about(processes);
        assert!(matches!(&*lines, [line] if line.starts_with("not judged: ")), "{lines:?}: {all}");
    }
    for processes in &healthy {
        assert!(lines_about(processes).is_empty(), "{all}");
        processes.has_nothing(processes.pids.len() - 1);
    }
}

#[test]
fn who_waits_for_a_process_that_works_is_in_no_deadlock() {
    let sleeps = "clock_nanosleep";
    Processes::start("producer", &[&[sleeps], &["read"]]).are_healthy();
    Processes::start("flock-held", &[&[sleeps], &["flock"]]).are_healthy();
    Processes::start("posix-held", &[&[sleeps], &["fcntl"]]).are_healthy();
    Processes::start("mutex-held", &[&[sleeps], &["futex"]]).are_healthy();
}

#[test]
fn the_only_process_that_can_end_a_wait_is_named() {
    let sleeps = "clock_nanosleep";
    let says = |mode: &str, calls: [&[&str]; 2], waits: usize, does: &str| {
        let processes = Processes::start(mode, &calls);
        let [waiting, helper] = [processes.pids[waits], processes.pids[1 - waits]];
        let line = format!(
            "only between[{helper}] can end the wait of between[{waiting}], and it {does}; next: read-rip check {helper}"
        );
        let outcome = processes.check(waits);
        assert!(outcome.status == 0 && outcome.stdout.contains(&line), "{outcome:#?}");
        contains(&read_rip([&waiting.to_string()]).stdout, &[&line]);
    };
    says("producer", [&[sleeps], &["read"]], 1, "sleeps");
    says("posix-held", [&[sleeps], &["fcntl"]], 1, "sleeps");
    says("stopped-client", [&["read"], &[]], 0, "is stopped");
    let third = Processes::start("sockets-and-third", &[&["read"], &["read"], &[sleeps]]);
    let outcome = third.check(0);
    assert!(!outcome.stdout.contains("only "), "{outcome:#?}");
}

#[test]
fn who_handles_the_signal_of_a_timer_is_suspected() {
    let processes = Processes::start("writer-and-alarm", &[&["wait4"], &["write"]]);
    let outcome = processes.check(1);
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    contains(
        &outcome.stdout,
        &["suspected deadlock: 2 processes wait", "doubt: a process handles the signals of timers"],
    );
}

#[test]
fn who_waits_for_a_signal_whose_handler_may_write_is_in_no_deadlock() {
    Processes::start("own-end-and-term", &[&["read"]]).are_healthy();
    Processes::start("sockets-and-term", &[&["read"], &["read"]]).are_healthy();
    // Programs in Python handle this one, whatever they do.
    let processes = Processes::start("sockets-and-interrupt", &[&["read"], &["read"]]);
    let outcome = processes.check(1);
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    contains(&outcome.stdout, &["suspected deadlock: 2 processes wait", "doubt: a process handles signals"]);
}

#[test]
fn a_socket_with_a_time_limit_lets_its_reader_go_on() {
    Processes::start("sockets-limited", &[&["read"], &["read"]]).are_healthy();
}

#[test]
fn a_fifo_that_its_reader_keeps_open_is_open_to_others() {
    Processes::start("fifo-for-both", &[&["read"]]).are_healthy();
}

#[test]
fn the_parent_of_a_vfork_does_not_wait_for_a_disk() {
    // The child tells the pids. A sleep in the kernel counts from a second on.
    let processes = Processes::start("vfork", &[&["clock_nanosleep"], &["vfork"]]);
    let outcome = read_rip(["check", "--window", "1100ms", &processes.pids[1].to_string()]);
    assert!(outcome.status == 0 && outcome.stdout.contains("no findings"), "{outcome:#?}");
}

#[test]
fn without_the_rights_to_look_at_the_others_nothing_is_said() {
    if !is_root("processes of another user") {
        return;
    }
    let processes = Processes::start("pipes", &[&["write"], &["write"]]);
    let pid = processes.pids[0].to_string();
    let mut command = std::process::Command::new("setpriv");
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    command.args(nobody).arg(env!("CARGO_BIN_EXE_read-rip")).args(["check", &pid]);
    let outcome = crate::support::run::finish(crate::support::run::clean(command));
    assert!(outcome.status == 3 && outcome.stdout.contains("not judged: "), "{outcome:#?}");
}

#[test]
fn objects_of_system_v_lead_to_who_used_them_last_and_idle_ones_are_healthy() {
    let processes = Processes::start("sysv", &[&["semop"], &["semop"]]);
    processes.are_in_deadlock(
        "suspected deadlock: ",
        &[
            " waits for semaphore 1 of set ",
            " of System V, at change between.c:",
            " changed it last",
            "doubt: any process with the rights may change a semaphore",
            "next: acquire these locks in one order everywhere",
            "of 2 threads: 2 wait for semaphores or the like that processes share",
        ],
    );
    let processes = Processes::start("messages-full", &[&["msgsnd"], &["msgsnd"]]);
    processes.are_in_deadlock(
        "suspected deadlock: ",
        &[" sends to message queue ", ", which is full", " received from it last"],
    );
    let view = read_rip(["stacks", &processes.pids[0].to_string()]);
    contains(&view.stdout, &["sending to queue ", " of System V, which is full (msgsnd)"]);
    let healthy = [
        ("sysv-order", ["clock_nanosleep", "semop"]),
        ("sysv-empty", ["semop", "semop"]),
        ("messages-empty", ["msgrcv", "msgrcv"]),
    ];
    for (mode, [one, other]) in healthy {
        let processes = Processes::start(mode, &[&[one], &[other]]);
        (0..2).for_each(|at| processes.has_nothing(at));
    }
}

#[test]
fn who_waits_for_a_child_may_learn_of_a_process_that_it_traces() {
    let processes = Processes::start("tracer", &[&["wait4"], &["read"]]);
    (0..2).for_each(|at| processes.has_nothing(at));
}

#[test]
fn who_opens_a_file_with_a_lease_is_told_who_has_it() {
    let processes = Processes::start("lease", &[&["clock_nanosleep"], &["openat"]]);
    let [owner, other] = processes.pids[..] else { panic!("{:?}", processes.pids) };
    let line = format!("only between[{owner}] can end the wait of between[{other}]");
    // The kernel lets it run from time to time.
    let deadline = Instant::now() + DEADLINE;
    loop {
        let outcome = processes.check(1);
        assert!(outcome.status == 0 && Instant::now() < deadline, "{outcome:#?}");
        if outcome.stdout.contains(&line) {
            return;
        }
    }
}

/// A shell handles the signal of a child, and counted as one that may wake by itself: no findings.
#[test]
fn a_shell_and_its_coprocess_that_read_from_one_another_are_in_a_deadlock() {
    let start = |more: &str| {
        let code = format!("coproc cat; {more} echo $COPROC_PID; read -u ${{COPROC[0]}} line");
        let mut shell = Plan::new("bash", &["-c", &code]).start();
        let coprocess: u32 = shell.line().parse().unwrap();
        [shell.pid(), coprocess].into_iter().for_each(|pid| until(pid, &["read"]));
        (shell, coprocess)
    };
    let (shell, coprocess) = start("");
    for pid in [shell.pid(), coprocess] {
        let outcome = read_rip(["check", &pid.to_string()]);
        assert_eq!(outcome.status, 1, "{outcome:#?}");
        // It is suspected if the shell handles SIGINT: in the background it does not.
        contains(&outcome.stdout, &["deadlock: 2 processes wait for one another"]);
    }
    // The end of another child makes this one go on.
    let (shell, coprocess) = start("trap 'echo ended >&${COPROC[1]}' CHLD; sleep 1000 &");
    for pid in [shell.pid(), coprocess] {
        let outcome = read_rip(["check", &pid.to_string()]);
        assert_eq!(outcome.status, 0, "{outcome:#?}");
    }
}
