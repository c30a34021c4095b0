//! Threads that wait for long: what is told, live and dead, and what stays silent.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use librip_test_kit::reader;
use librip_test_kit::run::first_of;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::Value;

use super::ask::{Answer, check, codes, printed, start};

/// Long is what a live reading shows anyway: `check` takes 200 ms.
const SHORT: &[&str] = &["--threshold", "1s"];

/// Asks about a scenario while it lives and after its death.
fn ask(scenario: &str) -> [Answer; 2] {
    let victim = start(scenario);
    let live = check(&victim.ring_path(), SHORT);
    [live, check(&victim.killed().ring_path(), SHORT)]
}

/// One long wait, live and dead, and nothing else.
#[track_caller]
fn waits_long(scenario: &str, look: impl Fn(&Value)) {
    for answer in ask(scenario) {
        assert_eq!(answer.findings, ["suspected long-wait"], "{scenario}: {answer:#?}");
        assert_eq!(answer.status, 1);
        look(answer.finding());
    }
}

/// One thread waits for one that has the lock and is stuck in something that is not recorded.
#[track_caller]
fn waits_behind(scenario: &str) {
    waits_long(scenario, |finding| {
        let mut names: Vec<&str> =
            finding["threads"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
        // A thread that it joins has its name until it takes another one.
        names.dedup();
        assert_eq!(names, ["flusher", "client"]);
        // The kernel knows what a living thread does.
        let is_known = finding["threads"][0]["doing"].is_object();
        let advice = match scenario {
            "holder-joins" if is_known => "join-unlocked",
            _ if is_known => "wait-unlocked",
            _ => "check-silent-holder",
        };
        assert_eq!(codes(&finding["advice"]), [advice]);
        assert_eq!(finding["evidence"]["blocked"], 1);
    });
}

#[test]
fn finds_a_waiter_behind_a_thread_that_joins() {
    waits_behind("holder-joins");
}

#[test]
fn finds_a_waiter_behind_a_thread_that_receives() {
    waits_behind("holder-receives");
}

#[test]
fn finds_a_waiter_behind_a_thread_in_a_once() {
    waits_behind("holder-in-a-once");
}

#[test]
fn finds_a_waiter_behind_a_thread_at_a_barrier() {
    waits_behind("holder-at-a-barrier");
}

#[test]
fn finds_a_waiter_behind_a_thread_that_reads_a_socket() {
    waits_behind("holder-reads-a-socket");
}

#[test]
fn finds_a_waiter_behind_a_guard_that_is_not_dropped() {
    waits_behind("guard-forgotten");
}

#[test]
fn finds_a_waiter_behind_a_thread_in_a_nested_monitor() {
    waits_long("holder-in-a-monitor", |finding| {
        assert_eq!(codes(&finding["advice"]), ["check-signal", "no-locks-in-wait"]);
        assert_eq!(finding["evidence"]["holder"]["sleep"]["what"], "condition");
    });
}

#[test]
fn finds_a_waiter_behind_a_thread_whose_wait_is_recorded() {
    for (scenario, what) in [
        ("holder-at-a-recorded-barrier", "barrier"),
        ("holder-receives-recorded", "message"),
        ("holder-sends-recorded", "message"),
        ("holder-is-parked", "wake"),
    ] {
        waits_long(scenario, |finding| {
            assert_eq!(finding["evidence"]["holder"]["sleep"]["what"], what, "{scenario}");
        });
    }
}

#[test]
fn a_recorded_barrier_says_how_many_threads_wait_and_how_many_it_takes() {
    let victim = start("holder-at-a-recorded-barrier");
    let remains = victim.killed();
    let ring = remains.ring_path();
    for command in ["check", "locks"] {
        let said = printed(&[command], &ring);
        assert!(said.contains("1 of the 2 threads that it takes waits there\n"), "{said}");
    }
    let locks = reader::json(&["locks"], "lock", &ring);
    let barriers = locks.iter().filter(|lock| lock["type"] == "barrier");
    let rounds: Vec<&Value> = barriers.map(|lock| &lock["threads_of_round"]).collect();
    assert_eq!(rounds, [2]);
}

#[test]
fn forty_of_a_hundred_and_one_threads_are_one_long_wait() {
    waits_long("many-behind-one-of-many", |finding| {
        assert_eq!(finding["evidence"]["blocked"], 40);
        assert_eq!(finding["threads_hurt"], 40);
        let waits = finding["evidence"]["waiters"]["first"].as_array().unwrap();
        let lengths: Vec<Option<u64>> = waits.iter().map(|wait| wait["for_ns"].as_u64()).collect();
        assert!(lengths.is_sorted_by(|before, after| before >= after), "the longest first: {lengths:?}");
    });
}

#[test]
fn a_server_that_hangs_in_two_layers_has_one_finding() {
    waits_long("two-layers", |finding| {
        assert_eq!(finding["evidence"]["blocked"], 30);
        assert_eq!(finding["evidence"]["on_conditions"], 30);
    });
}

#[test]
fn a_chain_of_locks_has_one_finding_about_its_root() {
    waits_long("chain-of-locks", |finding| {
        assert_eq!(
            (&finding["evidence"]["blocked"], &finding["evidence"]["locks"]),
            (&10.into(), &10.into())
        );
        assert_eq!(finding["threads"][0]["name"], "flusher");
    });
}

#[test]
fn the_thread_pool_of_the_rust_book_is_no_finding() {
    // After its death nothing says that the thread whose turn it was waited for a message.
    is_a_pool("book-pool", 3);
}

#[test]
fn the_thread_pool_of_the_rust_book_with_a_recorded_channel_is_no_finding() {
    is_a_pool("recorded-book-pool", 0);
}

/// A pool, with this status after its death.
#[track_caller]
fn is_a_pool(scenario: &str, status_of_dead: i32) {
    for (answer, status) in ask(scenario).into_iter().zip([0, status_of_dead]) {
        assert_eq!((&answer.findings[..], answer.status), (&[][..], status), "{answer:#?}");
        let checked = answer.checked();
        let pools = &checked["balance"]["pools"];
        assert_eq!(
            (pools.as_array().map(Vec::len), &pools[0]["waiting"]),
            (Some(1), &3.into()),
            "it is told"
        );
        let mentions = &checked["mentions"];
        let threads = mentions["threads"].as_array().unwrap();
        let holder =
            threads.iter().find(|thread| thread["id"] == pools[0]["holder"]).expect("it is mentioned");
        assert!(holder["name"].as_str().unwrap().starts_with("worker "), "{mentions}");
        // Locations are listed by their ids. After the death, the last place of the holder is among them.
        let locations = mentions["locations"].as_array().unwrap();
        assert!(locations.iter().any(|location| location["id"] == pools[0]["location"]), "{mentions}");
    }
}

#[test]
fn a_thread_that_waits_for_the_receiver_of_an_idle_pool_is_found() {
    let [live, dead] = ask("book-pool-that-cannot-close");
    assert_eq!(live.findings, ["suspected long-wait"], "{live:#?}");
    assert_eq!(live.finding()["evidence"]["blocked"], 4);
    // After the death it is not known how long the last waits were. Short ones may be usual for this lock.
    assert!(dead.findings.iter().all(|finding| finding == "suspected long-wait"), "{dead:#?}");
}

#[test]
fn what_the_kernel_says_of_a_recorded_wait_is_told_where_it_is_no_wait() {
    let mut victim = start("waits-and-sleeps");
    let ring = victim.ring_path();
    // Until the wait is long enough, there is no finding.
    let text = loop {
        let text = printed(&["check", "--threshold", "1s"], &ring);
        if text.contains("suspected ") {
            break text;
        }
    };
    let line =
        text.lines().find(|line| line.contains("] waits for it at ")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.trim_start().starts_with("sleeper["), "{text}");
    let contradiction = "; the kernel says that it is sleeping for a time (clock_nanosleep)";
    assert!(line.ends_with(contradiction), "{text}");
    let locks = printed(&["locks"], &ring);
    assert!(locks.contains("the kernel says that sleeper["), "{locks}");
    assert!(locks.contains("] is sleeping for a time (clock_nanosleep)"), "{locks}");
    victim.kill();
}

#[test]
fn finds_a_process_in_which_all_threads_wait() {
    let mut victim = start("nobody-left");
    // The scenario says that it is ready before `main` itself waits.
    let answer = loop {
        let answer = check(&victim.ring_path(), SHORT);
        // Until the waits are long, all that is known is that nobody moves.
        if !answer.findings.is_empty() && answer.findings != ["suspected stall"] {
            break answer;
        }
    };
    assert_eq!(answer.findings, ["suspected long-wait"], "{answer:#?}");
    assert_eq!(answer.finding()["evidence"]["on_conditions"], 3);
    assert_eq!(codes(&answer.finding()["doubts"]), ["unrecorded-waker"]);
    victim.kill();
}

#[test]
fn a_parent_knows_when_the_program_was_killed() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().to_str().unwrap();
    for options in [&["--dir", dir][..], &["--check", "--rings", dir]] {
        knows_when_the_program_was_killed(scratch.path(), options);
    }
}

fn knows_when_the_program_was_killed(scratch: &Path, options: &[&str]) {
    let mut command = Command::new(reader::program());
    command.args(["run", "--json"]).args(options).arg("--");
    command.args([env!("CARGO_BIN_EXE_scenario"), "holder-joins"]).env("RIP_RING", scratch);
    let mut reader = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(reader.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().as_deref(), Some("ready"));
    nix::sys::signal::kill(child_of(reader.id()), Signal::SIGKILL).unwrap();
    let answers: Vec<Value> = lines.map(|line| serde_json::from_str(&line).expect(&line)).collect();
    reader.wait().unwrap();
    let checked = first_of(&answers, "checked");
    assert_eq!(checked["is_up_to_last_time"], false, "{answers:#?}");
    assert!(checked["balance"]["longest_wait_ns"].as_u64() > Some(0), "{answers:#?}");
}

/// The only child of a process.
fn child_of(parent: u32) -> Pid {
    let is_child = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        after_name.split(' ').nth(1) == Some(&parent.to_string())
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Pid::from_raw(pids.into_iter().find(is_child).expect("a child"))
}
