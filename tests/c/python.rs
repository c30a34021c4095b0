//! The module for Python in `librip/python`: its own tests, and what the reader says of a killed program, with each
//! version of Python that this machine has.

use std::process::Command;

use librip_test_kit::reader;
use librip_test_kit::tool::pythons;
use librip_test_kit::victim::Plan;

use crate::examples::{answer, expect};
use crate::{fixture, prefix, repository};

/// A program in Python that finds the module, and the library if there is one.
fn plan(python: &str, arguments: &[&str], library: &str) -> Plan {
    let module = repository().join("librip/python");
    let plan = Plan::new(python, arguments).env("PYTHONPATH", module);
    plan.env("LIBRIP_LIBRARY", library).env("PYTHONDONTWRITEBYTECODE", "1")
}

fn library() -> String {
    prefix().join("lib/librip.so").to_str().unwrap().to_owned()
}

#[test]
fn locks_of_python_behave_as_those_of_threading_with_and_without_the_library() {
    let tests = repository().join("librip/python/tests");
    let arguments = ["-m", "unittest", "discover", "-s", tests.to_str().unwrap()];
    let pythons = pythons();
    let all = pythons.iter().map(|python| (python, library()));
    let without = pythons.first().map(|python| (python, "/nowhere/librip.so".to_owned()));
    let running: Vec<_> = all
        .chain(without)
        .map(|(python, library)| (python, plan(python, &arguments, &library).start()))
        .collect();
    for (python, running) in running {
        let remains = running.wait();
        assert!(remains.status.success(), "{python}: {}", remains.stderr);
    }
}

#[test]
fn no_lock_of_python_counts_as_held_after_a_fork_or_where_the_ring_is_full() {
    let ended = fixture("ended.py");
    let Some(python) = pythons().pop() else { return };
    let mut victim = plan(&python, &[ended.to_str().unwrap()], &library()).start();
    victim.until("ready");
    let ring = victim.ring_now(&victim.ring_path()).unwrap();
    assert!(ring.metadata_refused > 0, "it has room");
    let held: Vec<_> = ring.slots.iter().flat_map(|slot| &slot.held).collect();
    // The child has a lock of its own.
    assert_eq!(held.len(), 1, "{held:?}");
}

#[test]
fn a_killed_program_in_python_tells_the_lines_of_its_deadlock() {
    let stuck = fixture("stuck.py");
    let arguments = [stuck.to_str().unwrap()];
    let start = |python: String| (plan(&python, &arguments, &library()).start(), python);
    let running: Vec<_> = pythons().into_iter().map(start).collect();
    for (mut victim, python) in running {
        victim.until("ready");
        let check = || {
            let output =
                Command::new(reader::program()).arg("check").arg(victim.ring_path()).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        while check().matches("proven deadlock: 2 threads wait for one another").count() < 2 {
            librip_test_kit::pause();
        }
        let remains = victim.killed();
        let said = answer(&["check"], &remains.ring_path(), 1);
        assert_eq!(
            said.matches("proven deadlock: 2 threads wait for one another").count(),
            2,
            "{python}: {said}"
        );
        let says = |thread: &str, what: &str| {
            let mut lines = said.lines().map(str::trim_start);
            let is_it = |line: &str| line.starts_with(&format!("{thread}[")) && line.contains(what);
            assert!(lines.any(is_it), "{python}: {thread} {what}: {said}");
        };
        says("saver", "holds savings, acquired at transfer stuck.py:18");
        says("saver", "waits for current at transfer stuck.py:20");
        says("spender", "holds current, acquired at transfer stuck.py:18");
        says("flusher", ", acquired at take stuck.py:36");
        says("flusher", " at take stuck.py:38");
        says("writer", ", acquired at take stuck.py:36");
        expect(&answer(&["log"], &remains.ring_path(), 0), &["moves ", " to <librip.Lock of"]);
        expect(&answer(&["spans"], &remains.ring_path(), 0), &["stuck.py:17", "open: saver[", "with 5"]);
    }
}
