//! A program behaves the same with the interposer as without it.

use std::path::Path;

use librip_test_kit::oracle::State;
use librip_test_kit::tool::{can, copy_program};
use librip_test_kit::victim::{Remains, is_root, tempdir};

use crate::{compile, directory, expect_same, plan, preload};

/// Runs a program with the interposer and without it, and compares. Returns what the run with the interposer left.
fn same(program: &Path, arguments: &[&str]) -> Remains {
    let with = plan(program, arguments, &[preload()]).run();
    let without = plan(program, arguments, &[]).run();
    expect_same(&with, &without);
    assert!(!without.has_ring());
    with
}

#[test]
fn every_call_on_every_kind_of_lock_gives_the_same_answer() {
    let program = compile("operations", &[]);
    let without = plan(&program, &[], &[]).run();
    without.expect_success();
    assert!(without.stdout.lines().count() > 2000);
    for (name, value) in
        [("RIP_CLOCK", "contended"), ("RIP_CLOCK", "ticks"), ("RIP_CLOCK", "all"), ("RIP_RING", "off")]
    {
        expect_same(&plan(&program, &[], &[preload()]).env(name, value).run(), &without);
    }
}

#[test]
fn a_cancelled_thread_cleans_up_with_the_mutex_locked() {
    let remains = same(&compile("trouble", &[]), &["cancel"]);
    assert!(remains.stdout.contains("condition cleans up: 16\nunlocks: 0\n"), "{remains:?}");
    assert!(remains.stdout.ends_with("cancelled 1, units 1\n"), "{remains:?}");
}

#[test]
fn a_handler_locks_on_an_alternate_stack_of_the_least_length() {
    // Calls are resolved at the start: to resolve one in the handler would need more than such a stack has.
    let program = compile("small_stack", &["-Wl,-z,now"]);
    for first in ["0", "1", "2"] {
        let without = plan(&program, &[first], &[]).run();
        assert_eq!(without.stdout, "the handler has returned two times\n", "{without:?}");
        let with = plan(&program, &[first], &[preload()]).env("RIP_KEEP", "always").run();
        expect_same(&with, &without);
        let ring = with.ring();
        assert!(
            ring.slots.iter().any(|slot| slot.tid != slot.pid),
            "{first}: the thread has recorded: {ring:?}"
        );
    }
}

#[test]
fn a_handler_on_a_short_stack_keeps_its_variables_if_somebody_truncates_the_ring_meanwhile() {
    let program = compile("small_stack", &["-Wl,-z,now"]);
    for first in ["0", "1", "2"] {
        let plan = plan(&program, &[first], &[preload()]);
        let directory = plan.dir().to_owned();
        let remains = plan.argument(directory).run();
        assert_eq!(remains.stdout, "the handler has returned two times\n", "{remains:?}");
    }
}

#[test]
fn signals_forks_and_exits_behave_as_without_the_interposer() {
    let program = compile("trouble", &[]);
    for what in
        ["work", "fork", "shared", "close", "filter", "memory", "exit", "leave", "exec", "nothing", "vfork"]
    {
        let remains = same(&program, &[what]);
        assert_eq!(remains.signal(), (what == "vfork").then_some(libc::SIGKILL), "{what}");
        // Once a filter is installed, the recorder removes no ring.
        assert_eq!(remains.has_ring(), matches!(what, "filter" | "exit" | "vfork"), "{what}");
        assert!(remains.files().len() < 2, "{what}: {:?}", remains.files());
    }
    let remains = same(&program, &["exit"]);
    assert_eq!(
        (remains.status.code(), remains.ring().exit_status),
        (Some(5), Some(5)),
        "_exit tells it, too"
    );
    assert_eq!(same(&program, &["vfork"]).ring().exit_status, None, "that was the child's");
    let remains = plan(&program, &["vfork-in-child"], &[preload()]).env("RIP_KEEP", "always").run();
    let ring = remains.ring();
    let states: Vec<_> =
        ring.slots.iter().filter(|slot| slot.pid != ring.pid).map(|slot| slot.state).collect();
    assert!(states.contains(&State::Live), "nor has its parent ended, a forked child: {states:?}");
}

#[test]
fn a_program_that_lowers_its_limit_on_files_before_its_first_lock_is_not_killed() {
    let program = compile("trouble", &[]);
    for limit in ["0", "1", "1000000", "82350079"] {
        let remains = same(&program, &["limit", limit]);
        assert!(remains.stdout.starts_with("limit: 0\ncounted 4000"), "{limit}: {remains:?}");
        assert!(remains.files().is_empty(), "{limit}: {:?}", remains.files());
    }
}

#[test]
fn errno_is_zero_when_main_begins() {
    assert_eq!(same(&compile("trouble", &[]), &["errno"]).stdout, "errno: 0\n");
}

#[test]
fn the_programs_allocator_learns_nothing_from_the_recorder() {
    assert_eq!(same(&compile("trouble", &[]), &["heap"]).stdout, "counted 4000, 0\nfound 1, mappings 1\n");
}

#[test]
fn a_filter_that_kills_for_unknown_system_calls_does_not_kill() {
    let remains = same(&compile("trouble", &[]), &["strict-filter"]);
    remains.expect_success();
    let ring = remains.ring();
    assert_eq!(
        (ring.exit_status, ring.refused_memory, ring.refused_filter),
        (Some(0), 0, 1),
        "the thread under the filter has no slot"
    );
}

#[test]
fn a_program_that_gives_up_its_rights_or_its_root_goes_on() {
    if !is_root("a_program_that_gives_up_its_rights_or_its_root_goes_on") {
        return;
    }
    let program = compile("trouble", &[]);
    let root = tempdir();
    let remains = same(&program, &["chroot", root.path().to_str().unwrap()]);
    assert!(remains.stdout.starts_with("chroot: 0, 0\ncounted 4000"), "{remains:?}");
    let remains = same(&program, &["drop"]);
    assert!(remains.stdout.starts_with("drop: 0, 0\ncounted 4000"), "{remains:?}");
}

#[test]
fn locks_before_any_constructor_has_run_work() {
    let remains = same(&compile("early", &[]), &[]);
    remains.expect_success();
    assert!(remains.stdout.starts_with("0 16 110 0 0 0 0 16 \n"), "{remains:?}");
}

#[test]
fn a_program_with_a_thread_sanitizer_runs() {
    if !can("cc", &["-fsanitize=thread"], directory()) {
        return;
    }
    let remains = same(&compile("sanitized", &["-fsanitize=thread"]), &[]);
    remains.expect_success();
    assert_eq!(remains.stdout, "counted 2000\n");
}

#[test]
fn a_setuid_program_is_left_alone() {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;
    if !is_root("a_setuid_program_is_left_alone") {
        return;
    }
    // In a directory that other users may enter, on a file system that allows setuid programs.
    let program = std::env::temp_dir().join(format!("rip-test-setuid.{}", std::process::id()));
    copy_program(compile("trouble", &[]), &program);
    chown(&program, Some(65533), None).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let dir = tempdir();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let output = std::process::Command::new(&program)
        .arg("work")
        .uid(65534)
        .env("LD_PRELOAD", preload())
        .env("RIP_RING", dir.path().join("ring"))
        .output();
    std::fs::remove_file(&program).unwrap();
    let output = output.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "counted 4000, 0\n", "{output:?}");
    assert!(!dir.path().join("ring").exists());
}

#[test]
fn an_interposer_that_is_loaded_twice_records_once() {
    let program = compile("trouble", &[]);
    let copy = directory().join("librip_preload_copy.so");
    std::fs::copy(preload(), &copy).unwrap();
    let once = plan(&program, &["exit"], &[preload()]).run();
    let twice = plan(&program, &["exit"], &[preload(), &copy]).run();
    expect_same(&twice, &once);
    assert_eq!(twice.files(), ["ring"]);
    let counts = |remains: &Remains| -> Vec<u64> {
        let mut counts: Vec<u64> = remains.ring().slots.iter().map(|slot| slot.count).collect();
        counts.sort_unstable();
        counts
    };
    // The number of waits varies a little. Recording twice would double it.
    for (once, twice) in counts(&once).into_iter().zip(counts(&twice)) {
        assert!(twice < once + once / 2, "{twice} words, {once} with one copy");
    }
}
