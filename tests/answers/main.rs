//! All commands and all formats about the same rings, processes and core files: no output contradicts another one.
//!
//! Each output becomes facts: who waits for what since when, who holds what, what a task does, what was found, and what
//! follows. An output may leave a fact out. `facts` compares them.
//!
//! Not tested here: whether the facts are true. `verdicts` and the tests of the reader ask that.

#![allow(missing_docs, reason = "tests")]

mod ask;
mod drawn;
mod facts;
mod lines;
mod names;
mod page;
mod rings;
mod tables;
mod texts;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use librip_test_kit::builder::Ring;
use librip_test_kit::core;
use librip_test_kit::reader;
use librip_test_kit::tool::{repository, tool};
use librip_test_kit::victim::{DEADLINE, Plan, Victim, shared_directory, tempdir, torture};

use ask::Subject;
use facts::{Answers, Key, NOTHING};

/// Fails if two outputs contradict each other.
#[track_caller]
fn agree(subject: &str, answers: &Answers) {
    let contradictions = answers.contradictions();
    assert!(contradictions.is_empty(), "{subject}:\n{contradictions}");
}

/// How much is asked about a living process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Much {
    /// Also what takes long: `top`, `check --all`, and all commands about a copy.
    All,
    Enough,
}

/// Asks about a file, or about a living process with this id.
fn ask(name: &str, target: &str, lives: Option<(u32, Much)>, answers: &mut Answers) {
    let scratch = tempdir();
    let pid = lives.filter(|(_, much)| *much == Much::All).map(|(pid, _)| pid);
    Subject { name, target, pid, has_top: pid.is_some(), scratch: scratch.path() }.ask(answers);
}

/// All answers about a ring that was made by hand.
#[track_caller]
fn of_ring(ring: &Ring) -> Answers {
    let (directory, mut answers) = (tempdir(), Answers::default());
    let path = directory.path().join("ring");
    ring.build().write(&path);
    let scratch = tempdir();
    let target = &path.to_string_lossy();
    Subject { name: "", target, pid: None, has_top: true, scratch: scratch.path() }.ask(&mut answers);
    agree("a ring", &answers);
    answers
}

/// Each of these outputs says what everybody waits for who waits for something. Otherwise nothing was compared.
#[track_caller]
fn say_who_waits(answers: &Answers, outputs: &[&str], is_wanted: impl Fn(&str) -> bool) {
    let mut waiting = 0;
    for key in answers.keys() {
        let Key::Answer { who } = key else { continue };
        if answers.value(key) != Some(NOTHING) && is_wanted(who) {
            waiting += 1;
            let by = answers.said_by(key);
            for output in outputs {
                assert!(
                    by.iter().any(|by| by.ends_with(output)),
                    "{output} does not say what {who} waits for: {by:?}"
                );
            }
        }
    }
    assert!(waiting > 0, "nobody waits");
}

/// Each of these outputs has the verdict.
#[track_caller]
fn say_verdict(answers: &Answers, verdict: &str, outputs: &[&str]) {
    let said = answers.value(&Key::Verdict).unwrap_or_default();
    assert!(said.starts_with(verdict), "{said}");
    let by = answers.said_by(&Key::Verdict);
    for output in outputs {
        assert!(by.iter().any(|by| by.ends_with(output)), "{output} has no verdict: {by:?}");
    }
}

const WITH_VERDICTS: &[&str] = &["read-rip", "read-rip check", "report"];

#[test]
fn threads_wait_for_all_that_can_be_awaited() {
    let answers = of_ring(&rings::threads());
    say_who_waits(&answers, &["ndjson", "parquet", "firefox", "report"], |_| true);
    say_verdict(&answers, "suspected deadlock: 2 threads wait for one another", WITH_VERDICTS);
    for (who, lock) in [("thread 10", "accounts"), ("thread 11", "books"), ("thread 18", "table")] {
        let by = answers.said_by(&Key::Holds { who: who.to_owned(), lock: lock.to_owned() });
        for output in
            ["locks -av", "locks -a --json", "ndjson", "perfetto", "chrome", "firefox", "report", "dot"]
        {
            assert!(
                by.iter().any(|by| by.ends_with(output)),
                "{output} does not say that {who} holds {lock}"
            );
        }
    }
    for (who, what) in [
        ("thread 11", "for accounts"),
        ("thread 12", "on a condition variable, with queue"),
        ("thread 17", "for the end of thread 10"),
    ] {
        let by = answers.said_by(&Key::Waits { who: who.to_owned(), what: what.to_owned() });
        for output in ["ndjson", "perfetto", "chrome", "firefox", "report", "parquet"] {
            assert!(
                by.iter().any(|by| by.ends_with(output)),
                "{output} does not say that {who} waits {what}"
            );
        }
        let by = answers.said_by(&Key::Since { who: who.to_owned(), what: what.to_owned() });
        for output in ["ndjson", "perfetto", "chrome", "parquet"] {
            assert!(
                by.iter().any(|by| by.ends_with(output)),
                "{output} does not say since when {who} waits {what}"
            );
        }
    }
}

#[test]
fn signal_handlers_wait_while_their_threads_wait() {
    let answers = of_ring(&rings::handlers());
    say_who_waits(&answers, &["ndjson", "parquet", "firefox", "report"], |_| true);
}

#[test]
fn tasks_wait_in_several_futures_and_on_the_threads_that_poll_them() {
    let answers = of_ring(&rings::tasks());
    let outputs = ["ndjson", "parquet", "tasks --each", "report"];
    say_who_waits(&answers, &outputs, |who| who.starts_with("task "));
}

#[test]
fn nothing_is_judged_and_all_say_why() {
    let answers = of_ring(&rings::marks());
    // The view leaves it out.
    say_verdict(&answers, "nothing to judge: the record has no locks", &["read-rip check", "report"]);
    let answers = of_ring(&rings::nobody_left());
    say_verdict(&answers, "not judged: all recorded threads wait", WITH_VERDICTS);
    let answers = of_ring(&rings::sound());
    say_verdict(&answers, "no findings", WITH_VERDICTS);
}

#[test]
fn most_threads_of_a_killed_process_waited_for_one() {
    let mut victim = Plan::new(env!("CARGO_BIN_EXE_example-server"), &["--threads", "5"]).start();
    victim.until("stuck: all workers wait");
    let answers = dead(victim, "the server");
    say_verdict(&answers, "suspected long-wait: 5 threads wait for session cache", WITH_VERDICTS);
    let answers = of_ring(&rings::held_at_end());
    say_verdict(&answers, "not judged: owner[", WITH_VERDICTS);
}

/// A recorded program in its state.
fn started(program: &str, scenario: &str) -> Victim {
    let mut victim = Plan::new(program, &[scenario]).start();
    victim.until("ready");
    victim
}

fn copy_of(ring: &Path, directory: &Path) -> String {
    let copy = directory.join("copy.gz").to_string_lossy().into_owned();
    let mut save = Command::new(reader::program());
    assert!(save.args(["save", "-o", &copy]).arg(ring).output().unwrap().status.success());
    copy
}

/// A recorded program while it lives, and after SIGKILL; with `Much::All`, a copy of its ring too.
#[track_caller]
fn of_recorded(program: &str, scenario: &str, much: Much, verdict: &str) {
    of_started(started(program, scenario), scenario, much, verdict);
}

/// The same of a deadlock. Once threads have waited for a second, the reader presumes who holds the locks. Before that,
/// an answer depends on when it is asked.
#[track_caller]
fn of_deadlock(scenario: &str, much: Much) {
    let victim = started(SCENARIO, scenario);
    std::thread::sleep(Duration::from_millis(1500));
    of_started(victim, scenario, much, "proven deadlock: ");
}

#[track_caller]
fn of_started(victim: Victim, scenario: &str, much: Much, verdict: &str) {
    let directory = tempdir();
    let ring = victim.ring_path();
    let mut answers = Answers::default();
    ask("alive", &ring.to_string_lossy(), Some((victim.pid(), much)), &mut answers);
    if much == Much::All {
        ask("copy", &copy_of(&ring, directory.path()), None, &mut answers);
    }
    agree(scenario, &answers);
    say_verdict(&answers, verdict, WITH_VERDICTS);
    dead(victim, scenario);
}

/// All answers about a recorded program after SIGKILL.
///
/// What is said of how long it waited depends on when its ring is read. So all outputs are about one copy.
#[track_caller]
fn dead(victim: Victim, scenario: &str) -> Answers {
    let (remains, directory, mut answers) = (victim.killed(), tempdir(), Answers::default());
    ask("dead", &copy_of(&remains.ring_path(), directory.path()), None, &mut answers);
    agree(scenario, &answers);
    answers
}

const SCENARIO: &str = env!("CARGO_BIN_EXE_scenario");
const TASKS: &str = env!("CARGO_BIN_EXE_tasks");

#[test]
fn a_task_waits_for_a_lock_or_the_end_of_a_task() {
    of_recorded(TASKS, "lock-or-end", Much::All, "suspected never-woken: ");
}

#[test]
fn a_task_waits_for_a_lock_in_two_futures() {
    of_recorded(TASKS, "futurelock", Much::Enough, "proven futurelock: ");
}

#[test]
fn a_thread_waits_on_a_condition_variable_and_another_one_for_its_lock() {
    of_deadlock("cycle-through-a-condition", Much::All);
}

#[test]
fn all_threads_wait_on_a_condition_variable() {
    of_recorded(SCENARIO, "nobody-left", Much::Enough, "not judged: all threads wait");
}

#[test]
fn a_thread_waits_for_the_end_of_one_that_waits_for_its_lock() {
    of_deadlock("recorded-join-under-a-lock", Much::Enough);
}

/// Returns when so many threads of a process sleep in a futex.
fn until_in_futex(pid: u32, sleepers: usize) {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let threads =
            std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|thread| thread.unwrap().path());
        let call =
            |thread: std::path::PathBuf| std::fs::read_to_string(thread.join("syscall")).unwrap_or_default();
        let is_futex = |call: &String| call.split(' ').next() == Some(&libc::SYS_futex.to_string());
        if threads.map(call).filter(is_futex).count() == sleepers {
            return;
        }
        assert!(Instant::now() < deadline, "{sleepers} threads do not sleep");
        librip_test_kit::pause();
    }
}

/// A program that nothing prepares while it lives, and a core file of it.
#[track_caller]
fn of_unprepared(case: &str, sleepers: usize, much: Much, verdict: &str) {
    let source = repository().join("read-rip/tests/programs/deadlocks.c");
    let program = shared_directory().join(format!("deadlocks-{case}"));
    tool(Command::new("cc").args(["-g", "-O1", "-pthread"]).arg(source).arg("-o").arg(&program));
    let directory = tempdir();
    let mut victim = Plan::new(&program, &[case]).start();
    until_in_futex(victim.pid(), sleepers);
    let mut answers = Answers::default();
    ask("process", &victim.pid().to_string(), Some((victim.pid(), much)), &mut answers);
    let path = directory.path().join("core");
    core::write(victim.pid(), 6, &path);
    agree(case, &answers);
    say_verdict(&answers, verdict, WITH_VERDICTS);
    let mut answers = Answers::default();
    ask("core", &path.to_string_lossy(), None, &mut answers);
    agree(case, &answers);
    victim.kill();
}

#[test]
fn unprepared_threads_wait_for_one_another() {
    of_unprepared("normal", 2, Much::All, "proven deadlock: 2 threads wait for one another");
}

#[test]
fn unprepared_threads_wait_for_readers_and_for_the_end_of_a_thread() {
    of_unprepared("join", 2, Much::Enough, "proven deadlock: ");
}

#[test]
fn unprepared_threads_wait_on_a_condition_variable() {
    of_unprepared("conditions", 2, Much::Enough, "");
}

/// A recorded program after SIGKILL.
#[track_caller]
fn of_killed(program: &str, scenario: &str) {
    dead(started(program, scenario), scenario);
}

/// Scenarios in which something waits, or holds, or is done that the tests above do not have.
const MORE_TASKS: &[&str] = &[
    "held-and-left-out",
    "owned-futurelock",
    "cell-and-lock",
    "thread-lock-over-await",
    "main-future-holds",
    "traced-main-future-holds",
    "lock-in-a-local-set",
    "lock-in-place",
    "long-poll",
    "undriven",
    "full-channel-and-lock",
    "full-both-ways",
    "own-sender",
    "change-under-a-lock",
    "leaked-receiver",
    "requests-both-ways",
    "request-under-a-lock",
    "lost-waker",
    "lock-over-sleep",
    "two-writes",
    "two-writes-of-async-lock",
    "two-locks-of-async-lock",
    "relocked-mutex-of-futures",
    "opposite-mutexes-of-futures",
    "thread-lock-in-two-futures",
    "buffered-permits",
    "philosophers",
    "queued-writer",
    "lock-of-a-current-thread",
    "joins",
    "pool-of-one",
    "forgotten-permits",
    "many-awaits",
    "moved",
    "misused",
];

/// The same of threads.
const MORE_SCENARIOS: &[&str] = &[
    "holder-joins",
    "holder-in-a-once",
    "holder-in-a-monitor",
    "holder-at-a-recorded-barrier",
    "holder-receives-recorded",
    "holder-sends-recorded",
    "holder-is-parked",
    "recorded-book-pool",
    "many-behind-one-of-many",
    "two-layers",
    "chain-of-locks",
    "cycle-of-three-through-a-condition",
    "cycle-through-a-raw-condition",
    "signalled-before-its-wait",
    "exited-with-the-lock",
    "destroyed-while-held",
    "pile-up",
    "guard-sent-away",
    "raw-circle",
    "cycle-by-hand",
    "handed-over",
    "waits-and-sleeps",
    "readers-after-a-queued-writer",
    "two-upgrades",
    "cycle-with-forty-locks",
    "cycle-of-mutex-and-rwlock",
    "self-deadlock",
    "once-lock-that-joins-its-user",
    "initialised-by-many",
];

#[test]
fn more_programs_of_the_verdicts_if_there_is_time() {
    if torture() > 1 {
        MORE_TASKS.iter().for_each(|scenario| of_killed(TASKS, scenario));
        MORE_SCENARIOS.iter().for_each(|scenario| of_killed(SCENARIO, scenario));
    }
}
