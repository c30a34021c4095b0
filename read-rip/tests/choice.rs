//! Which ring the user means, which processes are alive, and what `list` and `gc` do, for rings made by hand.
//!
//! Not tested here: what the views of a ring show (`output.rs`).

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, TryLockError};

use support::fixture::{DONE, Fixture, WAITS, lock_sites, pile_up};
use support::locks;
use support::run::{Outcome, clean, command, finish, read_rip, show};
use support::synth::{Ring, Slot, own_pid_namespace};

/// Writes a second ring next to the first, of a living process: this one.
fn with_living_ring(fixture: &Fixture) -> PathBuf {
    let own = std::process::id();
    let mut ring = lock_sites().of_this_process();
    ring.created_realtime_ns += 1;
    ring.slots = vec![
        Slot::thread("main", own).marks([DONE]),
        // No thread has this id, but its slot is live: the thread disappeared without exiting.
        Slot::thread("gone", 0x7fff_fff0).marks([WAITS]),
    ];
    let path = fixture.directory.path().join("living");
    // This process does not map it. On such a file system, that proves nothing.
    ring.file_system = 0xef53;
    ring.build().write(&path);
    path
}

/// The rings of this process are those of all tests that run at the same time: one such test at a time. The others do
/// not wait for a lock meanwhile: the reader would say so.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    loop {
        match ALONE.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
}

#[test]
fn an_empty_name_is_not_that_of_a_ring_whose_program_is_unknown() {
    let mut ring = lock_sites().of_this_process();
    ring.modules.clear();
    let fixture = Fixture::of(&ring);
    let mut command = command();
    command.arg("--dir").arg(fixture.directory.path()).arg("");
    finish(command).fails_with("Error: could not open \n");
}

#[test]
fn a_living_process_is_recognised_and_its_lost_threads_counted() {
    let fixture = Fixture::of(&lock_sites());
    let living = with_living_ring(&fixture);
    let outcome = show(&[], &living).sound();
    let expected =
        format!("server[{}], alive: 2 threads, 1 disappeared without exiting\n", std::process::id());
    assert!(outcome.stdout.starts_with(&expected), "{outcome:#?}");
    let lines = show(&["-t", "--json"], &living).sound().json();
    let state = |tid: u32| {
        let line = lines.iter().find(|line| line["data"]["tid"] == tid).unwrap();
        line["data"]["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(state(std::process::id()), "present");
    assert_eq!(state(0x7fff_fff0), "abandoned");
}

#[test]
fn an_equal_pid_of_another_boot_or_start_time_is_another_process() {
    let dead =
        "server[PID], dead (killed, crashed or _exit): ".replace("PID", &std::process::id().to_string());
    let alive = lock_sites().of_this_process();
    let another_boot = Ring { boot_id: [7; 16], ..alive.clone() };
    let another_start = Ring { start_time_ticks: alive.start_time_ticks + 1, ..alive.clone() };
    for ring in [another_boot, another_start] {
        let outcome = Fixture::of(&ring).show(&[]).sound();
        assert!(outcome.stdout.starts_with(&dead), "{outcome:#?}");
    }
    // Missing values do not prove that the process is dead.
    let nothing_known = Ring { boot_id: [0; 16], start_time_ticks: 0, pid_namespace: 0, ..alive };
    let outcome = Fixture::of(&nothing_known).show(&[]).sound();
    assert!(
        outcome.heading().contains(", unknown: its ring does not say in which PID namespace"),
        "{outcome:#?}"
    );
}

fn in_directory(fixture: &Fixture, args: &[&str]) -> Outcome {
    let directory = ["--dir".as_ref(), fixture.directory.path().as_os_str()];
    read_rip(args.iter().map(|arg| std::ffi::OsStr::new(*arg)).chain(directory))
}

#[test]
fn the_only_ring_is_shown_without_being_named() {
    let fixture = Fixture::of(&pile_up());
    assert!(in_directory(&fixture, &[]).sound().result().starts_with("server::cache::? : 3 threads"));
}

#[test]
fn several_rings_are_listed_to_choose_from() {
    let fixture = Fixture::of(&pile_up());
    let other = fixture.directory.path().join("other");
    pile_up().build().write(&other);
    let outcome = in_directory(&fixture, &[]).fails_with("Error: 2 rings found; name one\n");
    assert_eq!(outcome.stdout, "");
    for path in [&other, &fixture.path] {
        assert!(outcome.stderr.contains(path.to_str().unwrap()), "{outcome:#?}");
    }
    assert!(outcome.stderr.contains("Hint: name one of those above, by path or pid; "), "{outcome:#?}");
}

#[test]
fn the_only_ring_of_a_living_process_is_chosen_among_those_of_dead_ones() {
    let fixture = Fixture::of(&pile_up());
    pile_up().build().write(&fixture.directory.path().join("other"));
    let living = with_living_ring(&fixture);
    for name in [&[] as &[&str], &["server"]] {
        let outcome = in_directory(&fixture, name).sound();
        assert!(outcome.heading().contains(", alive: "), "{outcome:#?}");
        let chosen = format!("Chosen: {}, the only one of 3 rings", living.display());
        assert!(outcome.stderr.contains(&chosen), "{outcome:#?}");
    }
}

#[test]
fn a_ring_is_found_by_the_name_of_its_program_the_newest_of_dead_ones() {
    let fixture = Fixture::of(&pile_up());
    let newer = fixture.directory.path().join("newer");
    Ring { created_realtime_ns: 1_800_000_000_000_000_000, pid: 77, ..pile_up() }.build().write(&newer);
    let outcome = in_directory(&fixture, &["server"]).sound();
    assert!(outcome.heading().starts_with("server[77], "), "{outcome:#?}");
    let chosen = format!("Chosen: {}, the newest of 2 rings", newer.display());
    assert!(outcome.stderr.contains(&chosen), "{outcome:#?}");
    in_directory(&fixture, &["client"]).fails_with("Error: ");
    // Several of living processes are listed.
    with_living_ring(&fixture);
    let living = fs::read(fixture.directory.path().join("living")).unwrap();
    let mut image = support::synth::Image { file_len: living.len(), bytes: living };
    image.set64(support::synth::FILE_DEVICE, 0);
    image.set64(support::synth::FILE_DEVICE + 8, 0);
    image.write(&fixture.directory.path().join("second"));
    in_directory(&fixture, &["server"]).fails_with("Error: 4 rings found; name one\n");
}

#[test]
fn the_directory_that_rip_ring_names_is_searched_too() {
    let fixture = Fixture::of(&pile_up().of_a_dead_process());
    for wish in [fixture.directory.path(), &fixture.path, &fixture.directory.path().join("not-yet")] {
        let mut list = command();
        list.args(["list", "--json"]).env("RIP_RING", wish);
        let listed = finish(list).sound().stdout;
        assert!(listed.contains(fixture.path.to_str().unwrap()), "{listed}");
    }
    let mut gc = command();
    gc.arg("gc").arg("-n").env("RIP_RING", fixture.directory.path());
    assert!(finish(gc).sound().stdout.contains(fixture.path.to_str().unwrap()));
}

#[test]
fn without_a_ring_the_hint_says_how_to_make_one() {
    let directory = tempfile::tempdir().unwrap();
    let outcome = read_rip(["--dir".as_ref(), directory.path().as_os_str()]);
    let outcome = outcome.fails_with(&format!("Error: no readable ring in {}\n", directory.path().display()));
    assert!(outcome.stderr.contains("a program makes a ring with librip::init()"), "{outcome:#?}");
    let outcome = read_rip(["--dir", "/nowhere"]).fails_with("Error: could not search /nowhere for rings\n");
    assert!(outcome.stderr.contains("Caused by: No such file or directory"), "{outcome:#?}");
}

#[test]
fn a_ring_is_found_by_the_pid_of_its_process_living_or_dead() {
    let _alone = alone();
    let fixture = Fixture::of(&pile_up());
    with_living_ring(&fixture);
    let living = std::process::id().to_string();
    let outcome = in_directory(&fixture, &[&living]).sound();
    let verdict = format!("check: no findings; next: read-rip check {living}\n");
    let view = "unknown : 2 threads, 2 locations: source_a.c:124 (1); source_a.c:129 (1)\n";
    // Between them is what the threads of this test do.
    let result = outcome.result();
    assert!(result.starts_with(view) && result.ends_with(&verdict), "{outcome:#?}");
    assert!(result.contains("\nof ") && result.contains(" threads recorded nothing:\n"), "{outcome:#?}");
    let outcome = in_directory(&fixture, &["-r", "4321"]).sound();
    assert!(outcome.result().starts_with("server::cache::? : 3 threads"));
    let outcome = in_directory(&fixture, &["4000000000"]);
    outcome.fails_with("Error: there is no process 4000000000, and no readable ring of it in ");
}

#[test]
fn a_copy_does_not_compete_with_the_ring_of_a_process() {
    let _alone = alone();
    let fixture = Fixture::of(&pile_up());
    let living = with_living_ring(&fixture);
    fs::copy(&living, fixture.directory.path().join("copy")).unwrap();
    let judged = in_directory(&fixture, &["check", &std::process::id().to_string()]).sound();
    assert!(judged.heading().contains(", alive: 2 threads"), "{judged:#?}");
    assert!(!judged.stderr.contains("rings"), "{judged:#?}");
    // A copy alone is better than nothing.
    fs::copy(&fixture.path, fixture.directory.path().join("other")).unwrap();
    fs::remove_file(&fixture.path).unwrap();
    let shown = in_directory(&fixture, &["4321"]).sound();
    assert!(shown.result().starts_with("server::cache::? : 3 threads"), "{shown:#?}");
}

#[test]
fn the_newest_ring_is_chosen_of_dead_processes_that_had_the_same_pid() {
    let fixture = Fixture::of(&pile_up());
    let newest = fixture.directory.path().join("newest");
    let mut ring = pile_up();
    ring.created_realtime_ns += 1;
    ring.build().write(&newest);
    let shown = in_directory(&fixture, &["4321"]).sound();
    let chosen = format!("Chosen: {}, the newest of 2 rings\n", newest.display());
    assert!(shown.stderr.starts_with(&chosen), "{shown:#?}");
}

#[test]
fn a_ring_that_a_process_has_mapped_is_found_wherever_it_is() {
    let _alone = alone();
    let other_directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::of(&pile_up());
    let path = other_directory.path().join("mapped");
    lock_sites().of_this_process().with_slots([Slot::thread("a", 1).marks([DONE])]).build().write(&path);
    let _mapping = support::map(&path);
    let outcome = in_directory(&fixture, &[&std::process::id().to_string()]).sound();
    assert!(outcome.result().starts_with("unknown : 1 thread, 1 location: source_a.c:129 (1)\n"));
}

#[test]
fn a_file_whose_name_is_a_number_is_a_file() {
    let fixture = Fixture::of(&pile_up());
    fs::rename(&fixture.path, fixture.directory.path().join("4711")).unwrap();
    let mut command = command();
    command.arg("4711").current_dir(fixture.directory.path());
    assert!(finish(command).sound().result().starts_with("server::cache::? : 3 threads"));
}

#[test]
fn a_ring_may_have_a_name_that_is_not_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let fixture = Fixture::of(&pile_up());
    let path = fixture.directory.path().join(std::ffi::OsStr::from_bytes(b"r\xffng"));
    fs::rename(&fixture.path, &path).unwrap();
    assert!(show(&[], &path).sound().result().starts_with("server::cache::? : 3 threads"));
    assert_eq!(show(&["--json"], &path).sound().json()[0]["data"]["pid"], 4321);
}

#[test]
fn rings_are_listed_with_how_their_processes_ended_the_newest_first() {
    let fixture = Fixture::of(&Ring { exit_status: Some(3), ..pile_up() });
    let living = with_living_ring(&fixture);
    symlink(&fixture.path, fixture.directory.path().join("link")).unwrap();
    fs::write(fixture.directory.path().join("notes"), "no ring").unwrap();
    let outcome = in_directory(&fixture, &["list"]).sound();
    let rows: Vec<Vec<&str>> = outcome.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), 3, "{}", outcome.stdout);
    assert_eq!(rows[0], ["PROGRAM", "PID", "AGE", "THREADS", "MEMORY", "STATE", "RING"]);
    let own = std::process::id().to_string();
    assert_eq!(rows[1][..2], ["server", &own]);
    assert_eq!(rows[1][rows[1].len() - 2..], ["alive", living.to_str().unwrap()]);
    assert_eq!(rows[2][..2], ["server", "4321"]);
    assert_eq!(
        rows[2][rows[2].len() - 5..],
        ["exited", "with", "status", "3", fixture.path.to_str().unwrap()]
    );

    let lines = in_directory(&fixture, &["list", "--json"]).sound().json();
    let states: Vec<_> = lines.iter().map(|line| line["data"]["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["alive", "exited"]);
    assert_eq!(lines[1]["data"]["exit_status"], 3);
    assert_eq!(lines[1]["data"]["state_text"], "exited with status 3");
    assert_eq!(lines[1]["data"]["program"], "server");
}

#[test]
fn gc_removes_the_rings_of_dead_processes_and_nothing_else() {
    let fixture = Fixture::of(&pile_up().of_a_dead_process());
    let living = with_living_ring(&fixture);
    let directory = fixture.directory.path();
    symlink(&fixture.path, directory.join("link")).unwrap();
    fs::write(directory.join("notes"), "no ring").unwrap();
    fs::write(directory.join("unfinished"), vec![0; 8192]).unwrap();
    // A compressed copy is evidence that a user keeps.
    let copy = directory.join("evidence.gz");
    support::gzip(&pile_up().build().bytes, &copy);
    fs::create_dir(directory.join("directory")).unwrap();
    pile_up().build().write(&directory.join("directory/ring"));
    let mut left = entries(directory);

    let outcome = in_directory(&fixture, &["gc", "-n"]).sound();
    let of_dead = format!("{}: server[{}], ", fixture.path.display(), std::process::id());
    assert!(outcome.stdout.starts_with(&format!("would remove {of_dead}")), "{outcome:#?}");
    assert_eq!(entries(directory), left);

    let outcome = in_directory(&fixture, &["gc"]).sound();
    assert!(outcome.stdout.starts_with(&format!("removed {of_dead}")), "{outcome:#?}");
    assert_eq!(outcome.stdout.lines().count(), 1);
    left.retain(|path| path != &fixture.path);
    assert_eq!(entries(directory), left);
    assert!(left.contains(&living) && left.contains(&copy));

    let again = in_directory(&fixture, &["gc"]).sound();
    assert_eq!(again.stdout, "");
}

#[test]
fn gc_keeps_rings_of_another_boot_or_machine() {
    let fixture = Fixture::of(&pile_up());
    let outcome = in_directory(&fixture, &["gc"]).sound();
    assert_eq!(outcome.stdout, "");
    assert!(
        outcome.stderr.ends_with("it is a copy from another boot or another machine; remove it yourself\n"),
        "{outcome:#?}"
    );
    assert!(fixture.path.exists());
}

#[test]
fn gc_keeps_the_ring_of_a_dead_process_whose_forked_child_records_in_it() {
    // This process plays the child: the slot has its pid, and was claimed after it started.
    let mut ring = lock_sites().of_a_dead_process();
    ring.slots = vec![Slot { claimed_ns: u64::MAX / 2, ..Slot::thread("child", std::process::id()) }];
    let fixture = Fixture::of(&ring);
    assert_eq!(in_directory(&fixture, &["gc"]).sound().stdout, "");
    assert!(fixture.path.exists());
    let listed = in_directory(&fixture, &["list"]).sound().stdout;
    let child = format!("its child {} is alive", std::process::id());
    assert!(listed.contains(&child), "{listed}");
    // A slot that was claimed before the process with its pid started belongs to another process.
    ring.slots[0].claimed_ns = 1;
    let fixture = Fixture::of(&ring);
    assert!(in_directory(&fixture, &["gc"]).sound().stdout.starts_with("removed "));
    assert!(!fixture.path.exists());
}

#[test]
fn processes_that_share_a_ring_are_listed_and_shown_one_by_one() {
    let _alone = alone();
    let (own, child) = (std::process::id(), 0x3fff_ff00);
    let mut ring = lock_sites().of_this_process();
    ring.file_system = 0xef53;
    ring.children = (1, vec![child]);
    ring.slots = vec![
        Slot::thread("main", own).marks([DONE]),
        Slot { pid: Some(child), ..Slot::thread("worker", child).marks([WAITS]) },
        Slot { pid: Some(child), ..Slot::thread("helper", child + 1).marks([WAITS]) },
    ];
    let fixture = Fixture::of(&ring);
    let lines = in_directory(&fixture, &["list", "--json"]).sound().json();
    let listed: Vec<_> = lines
        .iter()
        .map(|line| &line["data"])
        .map(|ring| (ring["pid"].as_u64(), ring["parent_pid"].as_u64(), ring["state"].as_str()))
        .collect();
    let (own_pid, child_pid) = (Some(u64::from(own)), Some(u64::from(child)));
    assert_eq!(listed, [(own_pid, None, Some("alive")), (child_pid, own_pid, Some("dead"))]);
    let text = in_directory(&fixture, &["list"]).sound().stdout;
    assert!(text.contains(&format!("has ended; child of {own}")), "{text}");

    let of_parent = in_directory(&fixture, &[&own.to_string()]).sound();
    assert!(of_parent.heading().starts_with(&format!("server[{own}], alive: 1 thread")), "{of_parent:#?}");
    let of_child = in_directory(&fixture, &["-t", "--json", &child.to_string()]).sound().json();
    let names: Vec<_> = of_child.iter().filter_map(|line| line["data"]["name"].as_str()).collect();
    assert_eq!(names, ["worker", "helper"]);
    let of_child = in_directory(&fixture, &[&child.to_string()]).sound();
    assert!(of_child.heading().starts_with(&format!("server[{child}], dead")), "{of_child:#?}");
    assert!(of_child.heading().contains(": 2 threads"), "{of_child:#?}");
    // The ring itself has all of them.
    let of_ring = fixture.show(&[]).sound();
    assert!(
        of_ring.stdout.contains(": 1 thread\n") && of_ring.stdout.contains(": 2 threads, "),
        "{of_ring:#?}"
    );
}

#[test]
fn gc_keeps_the_ring_of_a_dead_process_whose_child_has_not_marked_yet() {
    // This process plays the child: it has the ring mapped, and no slot. The header notes it, or has announced it, or
    // has forgotten it since.
    let own = std::process::id();
    for children in [(1, vec![own]), (1, vec![u32::MAX]), (100, vec![u32::MAX >> 2; 15]), (0, vec![])] {
        let fixture = Fixture::of(&Ring { children: children.clone(), ..pile_up().of_a_dead_process() });
        let mapped = support::map(&fixture.path);
        assert_eq!(in_directory(&fixture, &["gc"]).sound().stdout, "", "{children:?}");
        assert!(fixture.path.exists());
        if children.0 > 0 {
            // Another test may start a program just now. Until it runs, that process has the mapping too.
            let listed = in_directory(&fixture, &["list"]).sound().stdout;
            assert!(listed.contains("its child ") && listed.contains(" is alive"), "{children:?}: {listed}");
        }
        drop(mapped);
        assert!(in_directory(&fixture, &["gc"]).sound().stdout.starts_with("removed "), "{children:?}");
    }
}

#[test]
fn gc_leaves_rings_of_other_users_and_young_ones_and_a_number_of_each_program_if_asked() {
    let fixture = Fixture::of(&pile_up().of_a_dead_process());
    let newer = fixture.directory.path().join("newer");
    let now_ns =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    Ring { created_realtime_ns: now_ns, ..pile_up().of_a_dead_process() }.build().write(&newer);
    let would_remove = |options: &[&str]| {
        let outcome = in_directory(&fixture, &[&["gc", "-n"], options].concat()).sound();
        let has = |path: &Path| outcome.stdout.contains(&format!("would remove {}: ", path.display()));
        (has(&fixture.path), has(&newer))
    };
    assert_eq!(would_remove(&[]), (true, true));
    assert_eq!(would_remove(&["--older-than", "24h"]), (true, false));
    assert_eq!(would_remove(&["--keep", "1"]), (true, false));
    assert_eq!(would_remove(&["--keep", "2"]), (false, false));
    if std::os::unix::fs::chown(&newer, Some(65534), None).is_ok() {
        assert_eq!(would_remove(&[]), (true, false));
        assert_eq!(would_remove(&["--all"]), (true, true));
        let outcome = in_directory(&fixture, &["gc", "-n"]).sound();
        assert!(outcome.stderr.contains("newer: it belongs to user "), "{outcome:#?}");
        let listed = in_directory(&fixture, &["list"]).sound().stdout;
        assert!(listed.contains("; of user "), "{listed}");
    }
}

#[test]
fn a_file_of_another_user_is_not_believed_to_be_a_living_processs_ring() {
    let fixture = Fixture::of(&pile_up().of_this_process());
    let copy = fixture.directory.path().join("copy");
    fs::copy(&fixture.path, &copy).unwrap();
    for path in [&fixture.path, &copy] {
        // Only root can give a file away.
        if std::os::unix::fs::chown(path, Some(65534), None).is_err() {
            return;
        }
        let shown = read_rip(["info".as_ref(), path.as_os_str()]).sound().stdout;
        let unknown = "it is foreign: the process with its pid belongs to another user than the file";
        assert!(shown.contains(unknown), "{}: {shown}", path.display());
    }
}

#[test]
fn gc_reports_in_json_what_it_removed() {
    let fixture = Fixture::of(&pile_up().of_a_dead_process());
    let lines = in_directory(&fixture, &["gc", "--json"]).sound().json();
    assert_eq!(
        lines,
        [
            serde_json::json!({"type": "removed", "data": {"schema": 1, "path": fixture.path, "dry_run": false}})
        ]
    );
    assert!(!fixture.path.exists());
}

#[test]
fn gc_keeps_a_ring_whose_process_it_cannot_see() {
    // In the first PID namespace every process is visible, so run in another one.
    let ring = lock_sites().of_this_process();
    let ring = Ring { pid_namespace: ring.pid_namespace ^ 1, ..ring };
    let fixture = Fixture::of(&ring);
    let is_first_namespace = own_pid_namespace() == 0xefff_fffc;
    let mut command = if is_first_namespace { Command::new("unshare") } else { command() };
    if is_first_namespace {
        command.args(["--pid", "--fork", "--mount-proc", env!("CARGO_BIN_EXE_read-rip")]);
    }
    command.args(["gc", "--dir"]).arg(fixture.directory.path());
    let outcome = finish(clean(command));
    if outcome.stderr.contains("unshare failed") {
        // This machine does not permit it. Check the answer of the first namespace instead.
        in_directory(&fixture, &["gc"]).sound();
        assert!(!fixture.path.exists(), "no process in any namespace has that pid and start time");
        return;
    }
    let outcome = outcome.sound();
    assert!(fixture.path.exists(), "{outcome:#?}");
    assert!(outcome.stderr.contains("it ran in another PID namespace"), "{outcome:#?}");
}

#[test]
fn a_process_that_does_not_map_its_ring_any_more_has_called_exec() {
    let fixture =
        Fixture::of(&lock_sites().of_this_process().with_slots([Slot::thread("a", 1).marks([DONE])]));
    let outcome = fixture.show(&[]).sound();
    assert!(outcome.heading().contains(", ended by exec: it runs another program: "), "{outcome:#?}");
    let lines = in_directory(&fixture, &["list", "--json"]).sound().json();
    assert_eq!(lines[0]["data"]["state"], "replaced");
}

#[test]
fn an_equal_pid_and_start_time_in_another_namespace_is_another_process() {
    let ring = Ring { pid_namespace: own_pid_namespace() ^ 1, ..lock_sites().of_this_process() };
    let ring = ring.with_slots([Slot::thread("a", 1).marks([DONE])]);
    let outcome = Fixture::of(&ring).show(&[]).sound();
    // This process has the innermost pid and the start time of the ring, as one in another container may have them.
    assert!(!outcome.heading().contains(", alive"), "{outcome:#?}");
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn a_foreign_ring_does_not_speak_for_a_process() {
    let _alone = alone();
    let fixture = Fixture::of(&locks::deadlock().of_this_process());
    let forged = fixture.path.clone();
    // Only root can give a file away.
    if std::os::unix::fs::chown(&forged, Some(65534), None).is_err() {
        return println!("skipped: only root may give files away");
    }
    let own = std::process::id().to_string();
    let judged = in_directory(&fixture, &["check", &own]);
    assert!(!judged.stdout.contains("deadlock"), "the process itself is looked at: {judged:#?}");
    with_living_ring(&fixture);
    let judged = in_directory(&fixture, &["check", &own]);
    assert!(judged.heading().contains(", alive: 2 threads"), "the other one is chosen: {judged:#?}");
    for judged in [in_directory(&fixture, &["check", "--all"]), show_check(&forged)] {
        assert!(judged.stdout.contains("unknown: it is foreign: "), "{judged:#?}");
        assert!(judged.stdout.contains("deadlock") && !judged.stdout.contains("proven"), "{judged:#?}");
        // It would be proven otherwise.
        let doubt = "the file belongs to another user than the process, and may be forged";
        assert!(judged.stdout.contains(doubt), "{judged:#?}");
    }
}

fn show_check(path: &Path) -> Outcome {
    read_rip(["check".as_ref(), path.as_os_str()])
}

#[test]
fn what_is_no_ring_hides_no_process_of_its_name() {
    let _alone = alone();
    let own = std::process::id().to_string();
    let fixture = Fixture::of(&pile_up());
    let directory = fixture.directory.path();
    let in_directory = |arguments: &[&str]| {
        let mut command = command();
        command.args(arguments).current_dir(directory);
        finish(command)
    };
    fs::create_dir(directory.join(&own)).unwrap();
    fs::write(directory.join("choice"), "#!/bin/sh\n").unwrap();
    let outcome = in_directory(&["check", &own]);
    assert!(outcome.stdout.contains("choice-"), "{outcome:#?}");
    // Where there is no process, the file is the answer.
    let named = in_directory(&["check", "choice"]);
    named.fails_with("Error: choice ");
    fs::create_dir(directory.join("nobody")).unwrap();
    in_directory(&["check", "nobody"]).fails_with("Error: nobody is a directory, not a ring\n");
    fs::rename(&fixture.path, directory.join("server")).unwrap();
    assert!(in_directory(&["server"]).sound().result().starts_with("server::cache::? : 3 threads"));
}
