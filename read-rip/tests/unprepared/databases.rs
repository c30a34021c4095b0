//! Threads that wait for locks of databases, and clients that wait for such a server; and healthy ones.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use librip_test_kit::victim::{Plan, Victim};

use crate::between::until;
use crate::support::run::{Outcome, read_rip};
use crate::support::unprepared::{compile, contains};

/// A program that stands in for one with this name.
fn program(name: &str) -> PathBuf {
    compile("databases.c", name, "cc", &["-O1", "-w"]).expect("a C compiler")
}

fn postgres() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| program("postgres"))
}

/// Starts one. Returns the two pids that it tells, once the processes sleep in these calls; an empty one runs.
fn start(program: &Path, mode: &str, calls: [&str; 2]) -> (Victim, [u32; 2]) {
    let plan = Plan::new(program, &[mode]);
    let file = plan.dir().join("file");
    let mut victim = plan.argument(file).start();
    let pids: Vec<u32> = victim.line().split(' ').map(|pid| pid.parse().expect("a pid")).collect();
    let sleeping = pids.iter().zip(calls).filter(|(_, call)| !call.is_empty());
    sleeping.for_each(|(&pid, call)| until(pid, &[call]));
    (victim, pids.try_into().expect("two pids"))
}

fn check(pid: u32) -> Outcome {
    read_rip(["check", &pid.to_string()])
}

#[test]
fn who_waits_for_a_lock_of_postgresql_and_its_client_are_told_who_knows_more() {
    let (_victim, [client, server]) = start(postgres(), "lock", ["read", "epoll_wait"]);
    let outcome = check(server);
    assert_eq!(outcome.status, 3, "{outcome:#?}");
    let advice =
        format!("`SELECT pg_blocking_pids({server})` in psql says who has it, and pg_locks which one it is");
    contains(
        &outcome.stdout,
        &[
            "not judged: 1 thread waits for a lock of PostgreSQL, for at least ",
            &advice,
            "of 1 thread: 1 waits for a lock of a database",
        ],
    );
    let outcome = check(client);
    assert_eq!(outcome.status, 3, "{outcome:#?}");
    let awaited =
        format!("not judged: 1 thread waits for postgres[{server}], which waits for a lock of PostgreSQL");
    contains(&outcome.stdout, &[&awaited, &advice]);
    let balance = &read_rip(["check", "--json", &client.to_string()]).data("checked")[0]["balance"];
    assert_eq!(balance["outcome"], "managed-lock", "{balance:#}");
    assert_eq!(balance["helpers"][0]["waits_for"], "a lock of PostgreSQL", "{balance:#}");
    let all = read_rip(["check", "--all"]);
    let unjudged = format!("postgres[{server}]");
    let is_about = |line: &&str| line.starts_with("not judged: 1 thread waits for a lock of PostgreSQL");
    assert!(all.stdout.lines().filter(is_about).any(|line| line.contains(&unjudged)), "{all:#?}");
}

#[test]
fn a_server_that_sleeps_or_runs_for_its_client_and_a_program_of_another_name_are_healthy() {
    for (mode, call) in [("sleep", "epoll_wait"), ("query", "")] {
        let (_victim, pids) = start(postgres(), mode, ["read", call]);
        for pid in pids {
            let outcome = check(pid);
            assert!(outcome.status == 0 && outcome.stdout.contains("no findings"), "{mode}: {outcome:#?}");
        }
    }
    let (_victim, pids) = start(&program("database"), "lock", ["read", "epoll_wait"]);
    assert!(pids.into_iter().all(|pid| check(pid).status == 0), "any program may have such a function");
}

#[test]
fn who_looks_whether_a_file_of_sqlite_is_free_is_told_who_has_it() {
    let database = program("database");
    let (_victim, [holder, waiter]) = start(&database, "file", ["clock_nanosleep", "clock_nanosleep"]);
    let outcome = check(waiter);
    assert_eq!(outcome.status, 3, "{outcome:#?}");
    contains(
        &outcome.stdout,
        &[
            "not judged: 1 thread waits for a lock of SQLite; `lslocks` shows who has locks on its files",
            &format!("only database[{holder}] can end the wait of database[{waiter}], and it sleeps"),
        ],
    );
    let outcome = check(holder);
    assert!(outcome.status == 0 && outcome.stdout.contains("no findings"), "{outcome:#?}");
    let (_victim, [pid, _]) = start(&database, "sleeps", ["clock_nanosleep", ""]);
    let outcome = check(pid);
    assert!(outcome.status == 0 && outcome.stdout.contains("no findings"), "{outcome:#?}");
}
