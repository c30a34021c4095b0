//! fork, ends of threads, signals, faults, libraries loaded late: the same as with marks in Rust.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use librip_test_kit::oracle::{Ring, State};
use librip_test_kit::tool::{is_installed, tool};
use librip_test_kit::victim::{Plan, Remains, tempdir};

use crate::{CLANG, GCC, build, build_with, installed, main_slot, package, prefix, run};

fn program() -> &'static PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build(GCC, &["process.c"], "process", &["-O2"]))
}

fn plugin() -> &'static PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build(GCC, &["plugin.c"], "libplugin-c.so", &["-O2", "-fPIC", "-shared"]))
}

fn ring_of(what: &[&str]) -> (Ring, Remains) {
    let remains = run(program(), what);
    let ring = remains.ring();
    assert_eq!((ring.refused_full, ring.without_exit, ring.metadata_refused), (0, 0, 0));
    (ring, remains)
}

#[test]
fn threads_that_end_release_their_slots() {
    let (ring, _) = ring_of(&["threads"]);
    for name in ["first", "second"] {
        let slot = ring.slot_named(name);
        assert_eq!((slot.state, ring.labels(slot)), (State::Exited, vec!["thread"]));
    }
    assert_eq!(ring.slots.len(), 2, "the main thread has not marked");
}

#[test]
fn no_function_of_the_header_changes_errno() {
    let program = build(GCC, &["errno.c"], "errno", &["-O2"]);
    assert_eq!(run(&program, &[]).stdout, "errno at the start of main: 0\n");
    let remains = Plan::new(&program, &[]).env("RIP_RING", "/nonexistent/ring").run();
    assert_eq!(remains.stdout, "errno at the start of main: 0\n");
}

#[test]
fn a_forked_child_records_under_its_own_pid() {
    let (ring, _) = ring_of(&["forks"]);
    assert_eq!(ring.labels(main_slot(&ring)), ["before", "parent"]);
    let child = ring.slot_named("child");
    assert_ne!(child.pid, ring.pid);
    assert_eq!((child.tid, ring.labels(child)), (child.pid, vec!["child"]));
    let thread = ring.slot_named("child's thread");
    assert_eq!((thread.pid, thread.state), (child.pid, State::Exited));
}

#[test]
fn signal_handlers_record_even_a_threads_first_mark() {
    let (ring, _) = ring_of(&["signals"]);
    assert_eq!(ring.labels(main_slot(&ring)), ["handler", "main", "handler"]);
}

#[test]
fn a_mark_directly_before_a_fault_is_in_the_ring() {
    for level in ["-O0", "-O2", "-O3"] {
        let program = build(GCC, &["process.c"], &format!("process-fault{level}"), &[level]);
        let remains = Plan::new(program, &["fault"]).run();
        assert_eq!(remains.signal(), Some(libc::SIGSEGV));
        let ring = remains.ring();
        assert_eq!(ring.labels(main_slot(&ring)), ["before the fault"]);
    }
}

#[test]
fn a_library_that_is_loaded_late_is_registered_and_stays() {
    let (ring, remains) = ring_of(&["load", plugin().to_str().unwrap()]);
    assert_eq!(remains.stdout, "stays\n", "threads have blocks of it, and the ring has its addresses");
    assert_eq!(ring.labels(main_slot(&ring)), ["before", "plugin", "between", "plugin"]);
    let libraries = ring.modules.iter().filter(|module| module.path.ends_with("libplugin-c.so"));
    assert_eq!(libraries.count(), 1);
    let last = ring.slot_named("after dlclose");
    assert_eq!(last.state, State::Exited);
}

#[test]
fn a_constructor_of_a_library_that_is_loaded_late_may_mark() {
    for compiler in installed(&[GCC, CLANG]) {
        let name = format!("libplugin-early-{}.so", compiler.name);
        let early = build(compiler, &["early_plugin.c"], &name, &["-O2", "-fPIC", "-shared"]);
        let archive = [prefix().join("lib/librip.a").to_str().unwrap().to_owned()];
        let archive = [&archive[..], &package("Libs.private")].concat();
        let name = format!("libplugin-early-{}-archive.so", compiler.name);
        let flags = ["-O2", "-fPIC", "-shared"];
        let with_archive = build_with(compiler, &["early_plugin.c"], &name, &flags, &archive);
        for plugin in [&early, &with_archive] {
            let (ring, _) = ring_of(&["load", plugin.to_str().unwrap()]);
            let expected = ["before", "constructor", "plugin", "between", "plugin"];
            assert_eq!(ring.labels(main_slot(&ring)), expected, "{plugin:?}");
        }
    }
}

#[test]
fn options_are_checked_and_used() {
    let remains = Plan::new(program(), &["options"]).env("RIP_SLOTS", "no number").run();
    remains.expect_success();
    let ring = remains.ring();
    assert_eq!((ring.slot_words, ring.slot_capacity), (128, 9));
    let path = remains.ring_path();
    assert_eq!(remains.stdout, format!("{} 1 1 /dev\n", path.display()));
    let off = Plan::new(program(), &["options"]).env("RIP_RING", "off").run();
    assert_eq!(off.status.code(), Some(3), "{off:?}");
}

#[test]
fn threads_without_a_free_slot_record_nothing() {
    let remains = Plan::new(program(), &["forks"]).env("RIP_SLOTS", "1").run();
    assert_eq!(remains.status.code(), Some(3), "{remains:?}");
    let ring = remains.ring();
    assert_eq!(ring.labels(main_slot(&ring)), ["before", "parent"]);
    assert_eq!((ring.slots.len(), ring.refused_full), (1, 2), "the child, and its thread");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_backtrace_from_within_a_first_mark_shows_all_callers() {
    if !is_installed("gdb") {
        eprintln!("SKIPPED gdb: it is not installed");
        return;
    }
    for compiler in installed(&[GCC, CLANG]) {
        for (number, flags) in
            [&["-O0"][..], &["-O2"], &["-O2", "-fno-omit-frame-pointer"]].iter().enumerate()
        {
            let flags = [&["-fexceptions"][..], flags].concat();
            let name = format!("unwinds-{}-{number}", compiler.name);
            let program = build(compiler, &["unwinds.c"], &name, &flags);
            // The first mark asks for the thread's name in the middle of its claim.
            let commands = ["break outer", "run", "catch syscall prctl", "continue", "backtrace", "kill"];
            let rings = tempdir();
            let mut gdb = Command::new("gdb");
            gdb.args(["-nx", "-batch"]).env("RIP_RING", rings.path()).env("DEBUGINFOD_URLS", "");
            gdb.args(commands.iter().flat_map(|command| ["-ex", command])).arg(&program);
            let said = tool(&mut gdb);
            if !said.contains("Breakpoint 1, ") {
                eprintln!("SKIPPED gdb: it may not trace programs here: {said}");
                return;
            }
            let (_, backtrace) = said.split_once("#0 ").unwrap_or_else(|| panic!("no backtrace in {said}"));
            let callers = ["inner", "outer", "main"];
            let shown: Vec<&str> = backtrace
                .lines()
                .filter_map(|line| callers.into_iter().find(|caller| line.contains(&format!(" {caller} ("))))
                .collect();
            assert_eq!(shown, callers, "{name}: {said}");
        }
    }
}

#[test]
fn threads_may_be_cancelled_anywhere_and_at_any_time() {
    for level in ["-O0", "-O2"] {
        let program = build(GCC, &["cancels.c"], &format!("cancels{level}"), &[level]);
        for what in ["start", "first mark", "init", "anywhere"] {
            // Some victims mark nothing, and so leave no ring.
            let remains = Plan::new(&program, &[what]).env("RIP_KEEP", "always").run();
            assert_eq!(remains.status.code(), Some(3), "{what} {level}: {remains:?}");
            let ring = remains.ring();
            let threads: Vec<_> = ring.slots.iter().filter(|slot| slot.tid != ring.pid).collect();
            assert!(!threads.is_empty(), "{what} {level}");
            assert!(threads.iter().all(|slot| slot.state == State::Exited), "{what} {level}: {threads:?}");
        }
    }
}
