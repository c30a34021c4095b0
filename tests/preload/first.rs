//! The ring is made at the process's first mark, wherever that is, and is gone after each clean end.

use std::ffi::OsString;

use librip_test_kit::oracle::Ring;
use librip_test_kit::victim::Remains;

use crate::{compile, expect_same, plan, preload};

/// Runs the fixture with the interposer and without it, and compares.
fn first_mark(place: &str, keep: &str) -> Remains {
    let program = compile("first", &["-fno-builtin"]);
    let with = plan(&program, &[place], &[preload()]).env("RIP_KEEP", keep).run();
    expect_same(&with, &plan(&program, &[place], &[]).run());
    with
}

fn rings(remains: &Remains) -> Vec<OsString> {
    remains.files().into_iter().filter(|name| name.to_string_lossy().starts_with("ring")).collect()
}

#[test]
fn a_process_that_marks_nothing_makes_no_ring() {
    assert_eq!(rings(&first_mark("nothing", "always")), [""; 0]);
}

#[test]
fn a_first_mark_within_an_allocator_allocates_nothing() {
    assert_eq!(first_mark("allocator", "always").ring().slots.len(), 1);
    // Nor does the lookup that enters a new library in the ring.
    assert_eq!(first_mark("allocator-looks-up", "always").ring().slots.len(), 1);
}

#[test]
fn a_first_mark_in_a_signal_handler_makes_the_ring() {
    assert_eq!(first_mark("handler", "always").ring().slots.len(), 1);
}

#[test]
fn the_ring_of_a_program_without_tasks_has_no_room_for_any() {
    let plan = plan(&compile("first", &["-fno-builtin"]), &["handler"], &[preload()]);
    // Empty: the default.
    let remains = plan.env("RIP_SLOTS", "").env("RIP_KEEP", "always").run();
    assert_eq!(remains.ring().slot_capacity, 65_536);
}

#[test]
fn first_marks_of_many_threads_at_once_make_one_ring() {
    for _ in 0..10 {
        let remains = first_mark("threads", "always");
        assert_eq!(rings(&remains), ["ring"]);
        // The main thread records if it waits for one of them.
        assert!([16, 17].contains(&remains.ring().slots.len()), "{:?}", remains.ring().slots.len());
    }
}

#[test]
fn forked_children_of_a_process_without_a_ring_have_rings_of_their_own() {
    let remains = first_mark("children", "always");
    let rings = rings(&remains);
    assert_eq!(rings.len(), 8, "{rings:?}");
    for name in rings {
        let ring = Ring::read(remains.dir().join(name)).unwrap();
        assert_eq!((ring.slots.len(), ring.exit_status), (1, Some(0)));
        assert_eq!(ring.slots[0].pid, ring.pid);
    }
}

#[test]
fn a_first_mark_in_a_child_of_vfork_makes_the_ring_of_its_parent() {
    let remains = first_mark("vfork", "always");
    assert_eq!(rings(&remains), ["ring"]);
    assert_eq!(remains.ring().exit_status, Some(0), "that of the parent");
}

#[test]
fn processes_that_share_a_lock_share_a_ring_even_if_their_parent_only_initialises_the_lock() {
    for lock in ["mutex", "rwlock"] {
        let remains = first_mark(&format!("prefork-{lock}"), "always");
        assert_eq!(rings(&remains), ["ring"], "{lock}");
        let mut pids: Vec<u32> = remains.ring().slots.iter().map(|slot| slot.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        assert_eq!(pids.len(), 3, "{lock}: the slots of {pids:?}");
    }
}

#[test]
fn no_ring_stays_after_a_clean_end() {
    for place in ["threads", "children", "quick_exit", "exit_group"] {
        assert_eq!(rings(&first_mark(place, "failure")), [""; 0], "{place}");
    }
    let remains = first_mark("quick_exit-fails", "failure");
    assert_eq!(remains.ring().exit_status, Some(9));
}

const WAYS: [&str; 9] =
    ["execve", "execv", "execvp", "execvpe", "fexecve", "execveat", "execl", "execlp", "execle"];

#[test]
fn no_ring_stays_after_exec_of_a_program_that_does_not_record() {
    for way in WAYS {
        let remains = first_mark(&format!("exec-{way}"), "failure");
        assert_eq!((remains.stdout.as_str(), rings(&remains)), ("a b c d e f g h i\n", vec![]), "{way}");
    }
    // It stays if it was asked for.
    assert_eq!(rings(&first_mark("exec-execve", "always")), ["ring"]);
}

#[test]
fn recording_goes_on_if_exec_fails() {
    for way in WAYS {
        let remains = first_mark(&format!("exec-fails-{way}"), "failure");
        assert!(remains.stdout.starts_with("errno ") && remains.signal() == Some(libc::SIGKILL), "{way}");
        assert_eq!(rings(&remains), ["ring"], "{way}");
        let ring = remains.ring();
        let [slot] = &ring.slots[..] else { panic!("{way}: {:?}", ring.slots) };
        // Six times a mutex was locked and unlocked, and one is held.
        assert_eq!(slot.held.len(), 1, "{way}");
        assert!(slot.count >= 6 * 4, "{way}: {}", slot.count);
    }
}

/// They are looked at once each, and all of them fit.
#[test]
fn hundreds_of_libraries_are_all_in_the_ring() {
    let directory = tempfile::tempdir().unwrap();
    let library = compile("plugin", &["-fPIC", "-shared"]);
    for index in 0..600 {
        std::fs::copy(&library, directory.path().join(format!("library-{index}.so"))).unwrap();
    }
    let program = compile("trouble", &[]);
    let arguments = ["libraries", directory.path().to_str().unwrap()];
    let remains = plan(&program, &arguments, &[preload()]).run();
    assert_eq!((remains.stdout.as_str(), remains.signal()), ("loaded 600\n", Some(libc::SIGKILL)));
    let ring = remains.ring();
    let names = |module: &librip_test_kit::oracle::Module| module.path.contains("library-");
    assert_eq!((ring.modules.iter().filter(|module| names(module)).count(), ring.metadata_refused), (600, 0));
}
