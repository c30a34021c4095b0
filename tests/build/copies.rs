//! Several copies of librip in one process: one in the executable, one in a shared library.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use librip_test_kit::oracle::{Ring, State};

use crate::{compile, directory, fixture, run, tool};

fn plugin() -> &'static PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| compile("plugin.rs", "libplugin.so", &["-O", "--crate-type", "cdylib"]))
}

fn host(quiet: bool) -> &'static PathBuf {
    static BUILT: [OnceLock<PathBuf>; 2] = [OnceLock::new(), OnceLock::new()];
    BUILT[usize::from(quiet)].get_or_init(|| {
        let flags: &[&str] = if quiet { &["-O", "--cfg", "quiet"] } else { &["-O"] };
        compile("host.rs", if quiet { "host-quiet" } else { "host" }, flags)
    })
}

/// Runs a host, checks what all hosts have in common, and returns the ring.
fn check(quiet: bool, who: &str, when: &str) -> Ring {
    let remains = run(host(quiet), &[who, when, plugin().to_str().unwrap()]);
    assert_eq!(remains.stdout, "stays\n", "a library with blocks of threads must not be unloaded");
    assert_eq!(remains.files(), ["ring"], "one ring a process");
    let ring = remains.ring();
    assert_eq!((ring.refused_full, ring.metadata_refused), (0, 0));
    let libraries = ring.modules.iter().filter(|module| module.path.ends_with("libplugin.so"));
    assert_eq!(libraries.count(), 1, "the library is registered once");
    for slot in &ring.slots {
        let is_main = slot.tid == ring.pid;
        assert_eq!(slot.state, if is_main { State::Live } else { State::Exited }, "{}", slot.name);
        // Two copies share one slot per thread.
        assert_eq!(ring.slots_named(&slot.name).count(), 1);
    }
    ring
}

fn main_slot(ring: &Ring) -> Vec<&str> {
    ring.labels(ring.slots.iter().find(|slot| slot.tid == ring.pid).unwrap())
}

#[test]
fn marks_of_a_library_that_is_loaded_after_init_are_in_the_threads_slot_in_order() {
    let ring = check(false, "host", "before");
    assert_eq!(main_slot(&ring), [&["host"][..], &["host", "plugin"].repeat(5)].concat());
    let older = ring.labels(ring.slot_named("older"));
    assert_eq!(older, [&["older"][..], &["host", "plugin"].repeat(3)].concat());
    let newer = ring.labels(ring.slot_named("newer"));
    assert_eq!(newer, [&["plugin", "host"].repeat(3)[..], &["host"]].concat());
    assert_eq!(ring.labels(ring.slot_named("last")), ["host"]);
}

#[test]
fn marks_of_a_library_that_is_loaded_before_init_are_in_the_threads_slot_in_order() {
    let ring = check(false, "host", "after");
    assert_eq!(main_slot(&ring), ["host", "plugin"].repeat(5));
    let newer = ring.labels(ring.slot_named("newer"));
    assert_eq!(newer, [&["plugin", "host"].repeat(3)[..], &["host"]].concat());
}

#[test]
fn a_ring_that_the_library_makes_serves_the_program_too() {
    let ring = check(false, "plugin", "before");
    assert_eq!(main_slot(&ring), ["host", "plugin"].repeat(5));
    assert_eq!(ring.labels(ring.slot_named("last")), ["host"]);
}

#[test]
fn a_program_and_a_library_that_start_at_the_same_time_share_one_ring() {
    for _ in 0..5 {
        let ring = check(false, "both", "after");
        assert_eq!(main_slot(&ring), ["host", "plugin"].repeat(5));
    }
}

#[test]
fn a_library_that_marks_while_the_programs_mark_claims_the_slot_records_after_that() {
    let host = compile("host.rs", "host-nested", &["-O", "--cfg", "nested"]);
    let ring = run(&host, &["host", "before", plugin().to_str().unwrap()]).ring();
    assert_eq!(ring.labels(ring.slot_named("nested")), ["host", "plugin", "host"]);
}

#[test]
fn a_program_without_marks_that_makes_the_ring_records_its_librarys_marks() {
    for when in ["before", "after"] {
        let ring = check(true, "host", when);
        assert_eq!(main_slot(&ring), ["plugin"; 5], "{when}");
        assert_eq!(ring.labels(ring.slot_named("newer")), ["plugin"; 3]);
        assert_eq!(ring.slots_named("last").count(), 0, "it does not mark");
    }
}

#[test]
fn a_program_in_c_without_librip_may_load_a_library_that_records() {
    let program = directory().join("host-c");
    tool(Command::new("cc").arg(fixture("host.c")).args(["-O2", "-pthread", "-o"]).arg(&program).arg("-ldl"));
    let ring = run(&program, &[plugin().to_str().unwrap()]).ring();
    assert_eq!(ring.slots.len(), 2);
    assert_eq!(main_slot(&ring), ["plugin"; 2], "the mark before init is nowhere");
    let thread = ring.slots.iter().find(|slot| slot.tid != ring.pid).unwrap();
    assert_eq!((thread.state, ring.labels(thread)), (State::Exited, vec!["plugin"; 2]));
}
