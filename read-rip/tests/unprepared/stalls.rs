//! `check` on programs that nothing prepared: what waits because it is idle is no finding, and what is stuck is one.
//!
//! `programs/idle.c`, `idle.rs` and `idle.py` have the threads.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use librip_test_kit::tool::is_installed;
use librip_test_kit::victim::DEADLINE;

use crate::support::run::{first_of, of_type, read_rip};
use crate::support::unprepared::{Stuck, compile, compile_rust, contains, directory};

fn c() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM
        .get_or_init(|| compile("idle.c", "idle-c", "cc", &["-g", "-O1", "-pthread"]).expect("a C compiler"))
}

fn rust() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compile_rust("idle.rs", "idle-rust", &["-g", "-O"]))
}

/// What `check` finds, as `CONFIDENCE KIND`. The balance counts each thread once, and the last line of the view says
/// the same.
#[track_caller]
fn check(stuck: &Stuck, case: &str) -> Vec<String> {
    let lines = stuck.read(&["check", "--json"]).json();
    let found = of_type(&lines, "finding").map(|finding| {
        let field = |name: &str| finding[name].as_str().expect(name).to_owned();
        format!("{} {}", field("confidence"), field("kind"))
    });
    let found: Vec<String> = found.collect();
    let checked = first_of(&lines, "checked");
    let balance = &checked["balance"];
    let of = |name: &str| balance[name].as_u64().expect(name);
    let doing = balance["doing"].as_object().into_iter().flatten();
    let doing: u64 = doing.filter_map(|(_, count)| count.as_u64()).sum();
    let counted = of("on_locks") + of("on_conditions") + of("on_semaphores") + doing;
    assert_eq!(
        (counted, of("present")),
        (of("present"), checked["threads"].as_u64().unwrap()),
        "{balance:#}"
    );
    let view = stuck.read(&[]).sound().stdout;
    let verdict = view.lines().rfind(|line| line.starts_with("check: ")).unwrap_or_else(|| panic!("{view}"));
    let expected = found.first().map_or("no findings", String::as_str);
    assert!(verdict.starts_with(&format!("check: {expected}")), "{case}: {verdict}\n{lines:#?}");
    found
}

#[track_caller]
fn silent(program: &Path, case: &str, sleepers: usize) {
    let stuck = Stuck::start(program, &[case], sleepers);
    assert_eq!(check(&stuck, case), [""; 0], "{case}: {:#?}", stuck.read(&["check"]));
}

#[track_caller]
fn stalled(program: &Path, case: &str, sleepers: usize) {
    let stuck = Stuck::start(program, &[case], sleepers);
    assert_eq!(check(&stuck, case), ["suspected stall"], "{case}: {:#?}", stuck.read(&["check"]));
}

#[test]
fn idle_pools_of_c_are_no_findings() {
    silent(c(), "queue", 4);
    silent(c(), "queue-and-epoll", 8);
    silent(c(), "leader", 3);
    silent(c(), "book-pool", 4);
}

/// Whether the kernel says when threads ran last.
fn is_known_when_threads_ran() -> bool {
    let is_known = fs::read_to_string("/proc/self/sched").is_ok_and(|text| text.contains("se.exec_start"));
    if !is_known {
        eprintln!("SKIPPED: the kernel does not say when threads ran last");
    }
    is_known
}

#[test]
fn a_process_in_which_a_thread_sleeps_for_longer_than_the_window_does_not_stand_still() {
    if !is_known_when_threads_ran() {
        return;
    }
    let stuck = Stuck::start(c(), &["slow-turns"], 4);
    for round in 0..5 {
        assert_eq!(check(&stuck, "slow-turns"), [""; 0], "{round}: {:#?}", stuck.read(&["check"]));
    }
}

#[test]
fn a_process_has_stood_still_since_its_last_thread_ran() {
    if !is_known_when_threads_ran() {
        return;
    }
    let stuck = Stuck::start(c(), &["nobody-left"], 5);
    // It stands still meanwhile.
    let began = Instant::now();
    for _ in 0..3 {
        assert_eq!(check(&stuck, "nobody-left"), ["suspected stall"]);
    }
    let stood = began.elapsed();
    let still_ns = stuck.findings()[0]["evidence"]["still_ns"].as_u64().expect("a living process");
    // A host takes a part of the time away.
    assert!(Duration::from_nanos(still_ns) >= stood * 9 / 10, "{still_ns}, {stood:?}");
    let text = stuck.read(&["check"]).stdout;
    assert!(text.contains("suspected stall: no thread moves, for at least "), "{text}");
}

#[test]
fn with_a_c_library_without_unwind_tables_the_same_is_found() {
    let flags = ["-g", "-O1", "-pthread", "-static"];
    let Some(idle) = compile("idle.c", "idle-musl", "musl-gcc", &flags) else { return };
    silent(&idle, "queue", 4);
    silent(&idle, "queue-and-epoll", 8);
    silent(&idle, "leader", 3);
    silent(&idle, "book-pool", 4);
    stalled(&idle, "nobody-left", 5);
    // A normal mutex of musl does not store its owner, so a cycle is not proven.
    let deadlocks = compile("deadlocks.c", "deadlocks-musl", "musl-gcc", &flags).unwrap();
    let stuck = Stuck::start(&deadlocks, &["normal"], 2);
    assert_eq!(check(&stuck, "musl"), ["suspected stall"]);
    let text = stuck.read(&["check"]).stdout;
    assert!(text.contains(" waits for a lock at transfer deadlocks.c:"), "{text}");
    assert!(text.contains("; so does 1 more thread\n"), "{text}");
    let view = stuck.read(&[]).sound().stdout;
    assert!(view.contains("waiting for the mutex savings"), "{view}");
}

/// In a static program the functions of the C library are among those of the program.
#[test]
fn without_debug_information_the_same_is_found_by_the_names_of_functions() {
    let rust = compile_rust("idle.rs", "idle-rust-release", &["-O"]);
    for (case, sleepers) in [("book-pool", 4), ("queue", 4), ("parked", 4)] {
        silent(&rust, case, sleepers);
    }
    stalled(&rust, "channel-under-a-lock", 5);
    let stuck = Stuck::start(&rust, &["channel-under-a-lock"], 5);
    let view = stuck.read(&[]).sound().stdout;
    assert!(view.contains("\nidle::looks_up : 4 threads at idle-rust-release+0x"), "{view}");
    for compiler in ["cc", "musl-gcc"] {
        let flags = ["-O1", "-pthread", "-static"];
        let Some(idle) = compile("idle.c", &format!("idle-{compiler}-release"), compiler, &flags) else {
            continue;
        };
        for (case, sleepers) in [("queue", 4), ("queue-and-epoll", 8), ("leader", 3), ("book-pool", 4)] {
            silent(&idle, case, sleepers);
        }
        stalled(&idle, "nobody-left", 5);
        let name = format!("deadlocks-{compiler}-release");
        let deadlocks = compile("deadlocks.c", &name, compiler, &flags).unwrap();
        let stuck = Stuck::start(&deadlocks, &["normal"], 2);
        let expected = if compiler == "cc" { "proven deadlock" } else { "suspected stall" };
        assert_eq!(check(&stuck, compiler), [expected]);
        let text = stuck.read(&["check"]).stdout;
        assert!(text.contains(&format!(" at transfer {name}+0x")), "{text}");
    }
}

#[test]
fn mutexes_of_a_stripped_static_program_are_seen_and_its_idle_pools_are_no_findings() {
    let flags = ["-O1", "-pthread", "-static", "-s"];
    let Some(idle) = compile("idle.c", "idle-musl-stripped", "musl-gcc", &flags) else { return };
    for (case, sleepers) in [("queue", 4), ("leader", 3), ("book-pool", 4)] {
        silent(&idle, case, sleepers);
    }
    let deadlocks = compile("deadlocks.c", "deadlocks-musl-stripped", "musl-gcc", &flags).unwrap();
    let view = Stuck::start(&deadlocks, &["normal"], 2).read(&[]).sound().stdout;
    let waits = view.lines().filter(|line| line.contains(", waiting for the mutex 0x"));
    assert_eq!(waits.filter(|line| line.ends_with(", which does not store its holder")).count(), 2, "{view}");
}

#[test]
fn idle_pools_of_rust_are_no_findings() {
    silent(rust(), "book-pool", 4);
    silent(rust(), "queue", 4);
    silent(rust(), "parked", 4);
}

#[test]
fn an_idle_pool_of_python_is_no_finding() {
    if !is_installed("python3") {
        eprintln!("SKIPPED python: it is not installed");
        return;
    }
    let script = directory().join("idle.py");
    fs::write(&script, include_str!("../programs/idle.py")).unwrap();
    let stuck = Stuck::start("python3".as_ref(), &[script.to_str().unwrap()], 4);
    assert_eq!(check(&stuck, "idle.py"), [""; 0], "{:#?}", stuck.read(&["check"]));
}

#[test]
fn a_semaphore_in_shared_memory_may_be_posted_by_another_process() {
    silent(c(), "pool-of-processes", 2);
}

#[test]
fn threads_that_wait_for_one_that_sleeps_for_a_short_time_are_no_finding() {
    let program = compile("patient.c", "patient", "cc", &["-g", "-O1", "-pthread"]).expect("a C compiler");
    // The holder goes on, so this becomes a finding after ten seconds. Until then, the process is not called sound.
    let forgets = Stuck::start_untimed(&program, &["forgets"], 3);
    let check = forgets.not_judged().stdout;
    contains(
        &check,
        &["not judged: 2 threads wait for journal, held by patient[", " was last at forgets patient.c:"],
    );
    // Two wait for the lock, and the main thread for one of them.
    let stuck = Stuck::start(&program, &[], 3);
    for _ in 0..5 {
        let answer = stuck.read(&["check"]);
        assert_eq!(answer.status, 0, "{answer:#?}");
        let all = read_rip(["check", "--all"]);
        let is_named = |line: &str| line.starts_with(&format!("patient[{}]", stuck.0.pid()));
        assert!(!all.stdout.lines().any(is_named), "{all:#?}");
    }
}

#[test]
fn a_holder_that_waits_for_no_work_keeps_its_lock_though_all_acquire_it_at_one_place() {
    let program = compile("held.c", "held", "cc", &["-g", "-O1", "-pthread"]).expect("a C compiler");
    // Its threads wait for longer than those of the other one. All is the same, but the holder may wait for work.
    let idle = Stuck::start(&program, &["idle"], 11);
    let stuck = Stuck::start(&program, &[], 8);
    let began = Instant::now();
    // Each becomes a long wait after a second.
    let found = loop {
        let found = check(&stuck, "held.c");
        if found.len() == 4 || began.elapsed() > DEADLINE {
            break found;
        }
    };
    assert_eq!(found, ["suspected long-wait"; 4], "{:#?}", stuck.read(&["check"]));
    let said = stuck.read(&["check"]).stdout;
    for what in ["naps", "answers", "reaps", "asks"] {
        assert!(said.contains(&format!(" 2 threads wait for it at {what} held.c:")), "{what}: {said}");
    }
    assert_eq!(check(&idle, "held.c idle"), [""; 0]);
}

#[test]
fn threads_that_nobody_is_left_to_wake_are_a_stall() {
    stalled(c(), "nobody-left", 5);
    stalled(rust(), "nobody-left", 5);
}

#[test]
fn threads_that_wait_for_a_lock_that_stores_no_owner_are_a_stall() {
    stalled(rust(), "channel-under-a-lock", 5);
    stalled(rust(), "itself", 1);
}

#[test]
fn threads_behind_a_thread_that_reads_are_a_finding_that_says_so() {
    let stuck = Stuck::start(c(), &["backend"], 4);
    assert_eq!(check(&stuck, "backend"), ["suspected long-wait"], "{:#?}", stuck.read(&["check"]));
    let text = stuck.read(&["check"]).stdout;
    let stacks = format!("`read-rip stacks {}` shows how the holder got there", stuck.0.pid());
    let parts =
        ["wait for cache", " has been in read on descriptor ", "(pipe", "at expires idle.c:", &stacks];
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}
