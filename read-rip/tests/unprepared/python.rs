//! Python: the lines that its threads are at, and the interpreter's lock as a lock with an owner, from memory, in each
//! version that this machine has.

use std::path::Path;

use librip_test_kit::tool::pythons;
use librip_test_kit::victim::Plan;
use read_rip_evidence::process::live::LiveTarget;
use read_rip_evidence::target::{CallKind, Sleep, Task};

use crate::support::run::read_rip;
use crate::support::unprepared::{Stuck, compile, contains, futex, is_proven_deadlock};

fn program(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name);
    path.to_str().unwrap().to_owned()
}

/// A program that has said `ready`, and so many threads of which sleep in a futex then.
fn started(python: &str, arguments: &[&str], sleepers: usize) -> Stuck {
    Stuck::start_plan(Plan::new(python, arguments), sleepers)
}

#[test]
fn waiting_threads_are_at_their_lines() {
    for python in pythons() {
        let stuck = started(&python, &[&program("abba.py")], 3);
        let view = stuck.read(&[]).sound().stdout;
        contains(&view, &["transfer : 1 thread at abba.py:14", "transfer : 1 thread at abba.py:16"]);
        contains(&view, &["<module> : 1 thread at abba.py:27"]);
        let names: &[&str] = if knows_blocks(&python) { &["saver[", "spender["] } else { &[] };
        contains(&stuck.read(&["-t"]).sound().stdout, names);
        if knows_blocks(&python) {
            continue;
        }
        let checked = stuck.read(&["check"]);
        assert_eq!(checked.status, 3, "{python}: {checked:#?}");
        contains(
            &checked.stdout,
            &["2 threads wait for locks that do not store their holder: transfer abba.py:1"],
        );
    }
}

/// Whether the exceptions of a version have tables, which tell in what blocks a function is.
fn knows_blocks(python: &str) -> bool {
    !["3.8", "3.9", "3.10"].iter().any(|old| python.ends_with(old))
}

/// Who has a lock without an owner was not told, and neither was the owner of an `RLock`: not judged.
#[test]
fn threads_in_blocks_on_locks_of_one_another_are_suspected() {
    let start = |python: String| (started(&python, &[&program("inside.py")], 6), python);
    let all: Vec<_> = pythons().into_iter().filter(|python| knows_blocks(python)).map(start).collect();
    for (stuck, python) in all {
        let mut findings = stuck.findings();
        // They must have waited for a second.
        while findings.len() < 3 {
            findings = stuck.findings();
        }
        let confidence = |of: &serde_json::Value| of["confidence"].as_str().unwrap().to_owned();
        let mut confidences: Vec<String> = findings.iter().map(confidence).collect();
        confidences.sort();
        assert_eq!(confidences, ["proven", "suspected", "suspected"], "{python}: {findings:#?}");
        let checked = stuck.read(&["check"]);
        assert_eq!(checked.status, 1, "{python}: {checked:#?}");
        let says = |thread: &str, what: &str| {
            let mut lines = checked.stdout.lines().map(str::trim_start);
            let is_it = |line: &str| line.starts_with(&format!("{thread}[")) && line.contains(what);
            assert!(lines.any(is_it), "{python}: {thread} {what}: {checked:#?}");
        };
        says("saver", "is presumed to hold lock ");
        says("saver", "acquired at save inside.py:12");
        says("saver", "at save inside.py:16");
        says("spendr", "acquired at spend inside.py:25");
        says("spendr", "at take inside.py:33 from inside.py:27");
        says("checkr", "acquired at check inside.py:38");
        says("bookr", "holds lock ");
        says("bookr", "at book inside.py:47");
        says("child", "at enter inside.py:51");
        contains(&checked.stdout, &["waits for the end of child[", "<module> inside.py:60"]);
        contains(
            &checked.stdout,
            &["doubt: its owner is not stored: this thread is in a `with` block on it"],
        );
    }
}

#[test]
fn who_works_or_has_let_go_of_its_lock_in_a_block_is_not_accused() {
    let start = |python: String| {
        let mut healthy = Stuck(Plan::new(&python, &[&program("outside.py")]).start());
        healthy.0.until("ready");
        (healthy, python)
    };
    let all: Vec<_> = pythons().into_iter().filter(|python| knows_blocks(python)).map(start).collect();
    let mut told = 0;
    while told < all.len() {
        told = 0;
        for (healthy, python) in &all {
            let checked = healthy.read(&["check"]);
            assert_ne!(checked.status, 1, "{python}: {checked:#?}");
            told += usize::from(
                checked.stdout.contains("] is in a `with` block on one of them: work outside.py:61"),
            );
        }
    }
}

#[test]
fn the_interpreters_lock_against_a_mutex_is_a_proven_deadlock() {
    let flags = ["-shared", "-fPIC", "-g", "-O1", "-pthread"];
    let Some(library) = compile("registry.c", "libregistry.so", "cc", &flags) else { return };
    for python in pythons() {
        let stuck = started(&python, &[&program("gil.py"), library.to_str().unwrap()], 3);
        let findings = stuck.findings();
        assert_eq!(findings.len(), 1, "{python}: {findings:#?}");
        is_proven_deadlock(&findings[0]);
        let checked = stuck.read(&["check"]).stdout;
        let waits = "waits for Python's global interpreter lock";
        contains(&checked, &[waits, "at flush_registry registry.c:23 from gil.py:12", "] holds registry"]);
        contains(&checked, &["waits for registry", "at add_entry registry.c:14 from gil.py:16"]);
    }
}

#[test]
fn threads_that_take_turns_with_the_interpreter_are_not_accused() {
    for python in pythons() {
        let mut busy = Stuck(Plan::new(&python, &[&program("busy.py")]).start());
        busy.0.until("ready");
        for _ in 0..3 {
            let checked = busy.read(&["check"]);
            assert_eq!(checked.status, 0, "{python}: {checked:#?}");
        }
    }
}

#[test]
fn an_event_loop_is_not_judged_and_its_line_is_told() {
    let code = "import asyncio\nasync def main():\n    print('ready', flush=True)\n    \
                await asyncio.get_running_loop().create_future()\nasyncio.run(main())";
    for python in pythons() {
        let mut stuck = Stuck(Plan::new(&python, &["-c", code]).start());
        stuck.0.until("ready");
        let is_poll =
            |task: &Task| matches!(task.sleep, Some(Sleep::Call(call)) if call.kind == CallKind::Epoll);
        stuck.until(|tasks| tasks.iter().all(is_poll));
        let checked = stuck.read(&["check"]);
        assert_eq!(checked.status, 3, "{python}: {checked:#?}");
        let line = "1 thread runs an event loop, whose tasks are not seen: <module> <string>:5";
        contains(&checked.stdout, &[line]);
    }
}

/// A fork while another thread has a lock of Python. The child was not judged, and its parent had no findings.
#[test]
fn a_fork_that_may_wait_for_nobody_is_not_judged_and_so_is_its_parent() {
    for python in pythons() {
        let mut stuck = Stuck(Plan::new(&python, &[&program("fork.py")]).start());
        let child = stuck.0.line();
        let tasks = || LiveTarget::open(child.parse().unwrap()).and_then(|live| live.tasks()).unwrap();
        while !tasks().iter().all(|task| futex(task).is_some()) {
            librip_test_kit::pause();
        }
        for pid in [&stuck.0.pid().to_string(), &child] {
            let checked = read_rip(["check", pid]);
            assert_eq!(checked.status, 3, "{python}: {checked:#?}");
            contains(&checked.stdout, &[&format!("py-spy dump --pid {child}"), "<module> fork.py:20"]);
        }
    }
}
