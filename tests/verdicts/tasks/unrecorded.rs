//! Tasks of tokio that nobody recorded: what its memory says of them, alive and in a core file.

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use librip_test_kit::core;
use librip_test_kit::reader;
use librip_test_kit::run::{clean, finish};
use librip_test_kit::victim::{Plan, Victim, tempdir};

use crate::ask::{check, printed};

fn executor(kind: &str) -> Victim {
    let mut victim = Plan::new(env!("CARGO_BIN_EXE_executor"), &[kind]).start();
    victim.until("ready");
    victim
}

/// What each view says of the tasks of a process.
#[track_caller]
fn says(victim: &Victim, wanted: &[&str]) {
    let pid = victim.pid().to_string();
    for arguments in [&[][..], &["check"], &["tasks"]] {
        let text = printed(arguments, Path::new(&pid));
        for wanted in wanted {
            assert!(text.contains(wanted), "{arguments:?}: {wanted}: {text}");
        }
    }
}

#[test]
fn the_tasks_of_a_strange_program_are_known_by_their_functions() {
    let victim = executor("crowd");
    says(
        &victim,
        &[
            "of 41 tasks (tokio, by its memory): 41 are suspended",
            "  executor::handle : 40 tasks suspended\n",
            "  executor::supervise : 1 task suspended until a task of executor::handle ends\n",
        ],
    );
    let pid = victim.pid().to_string();
    let answer = check(Path::new(&pid), &[]);
    assert_eq!((answer.status, answer.findings.len()), (3, 0), "{answer:#?}");
    let groups = answer.data("seen_tasks");
    assert_eq!(groups.len(), 2, "{answer:#?}");
    assert_eq!((&groups[0]["count"], &groups[0]["still"]), (&40.into(), &40.into()), "{answer:#?}");
    assert_eq!(groups[1]["awaited_function"], "executor::handle", "{answer:#?}");
    let tasks = printed(&["tasks", "--json"], Path::new(&pid));
    let woken = tasks.lines().filter(|line| line.contains("\"end_wakes\":")).count();
    assert_eq!(
        (tasks.lines().filter(|line| line.contains("seen_task\"")).count(), woken),
        (41, 1),
        "{tasks}"
    );
}

#[test]
fn of_a_strange_server_is_said_what_can_be_done_now() {
    let mut victim = Plan::new(env!("CARGO_BIN_EXE_executor"), &["deaf"]).start();
    let address = victim.line();
    victim.until("ready");
    let clients = [(); 2].map(|()| TcpStream::connect(&address).unwrap());
    let pid = victim.pid();
    let checked = reader::ask(&["check"], Path::new(&pid.to_string()));
    let (text, remarks) = (checked.stdout, checked.stderr);
    let of_clients = format!("0 connections of clients at {address}: 2 more wait until the process accepts");
    let at = |wanted: &str| text.find(wanted).unwrap_or_else(|| panic!("{wanted}: {text}"));
    assert!(at("2 workers of async tasks:") < at(&of_clients), "{text}");
    assert!(at(&of_clients) < at("of 41 tasks (tokio, by its memory)"), "{text}");
    let at = |wanted: &str| remarks.find(wanted).unwrap_or_else(|| panic!("{wanted}: {remarks}"));
    assert!(at(&format!("Now: `gcore {pid}`")) < at("For the next time: call librip::init"), "{remarks}");
    drop(clients);
}

#[test]
fn a_server_whose_clients_stay_after_it_has_stopped_listening_says_so() {
    // The kernel has chosen the port of the server. Connections that go out may share it by chance, and one shares it
    // with nobody: the kernel says that it came in.
    for (count, are) in [(1, "1 client is"), (4, "4 clients are")] {
        let arguments = ["leaves", &count.to_string()];
        let mut victim = Plan::new(env!("CARGO_BIN_EXE_executor"), &arguments).start();
        let address = victim.line();
        let clients: Vec<TcpStream> = (0..count).map(|_| TcpStream::connect(&address).unwrap()).collect();
        victim.until("ready");
        let said = reader::ask(&["check"], Path::new(&victim.pid().to_string()));
        let sentence = format!(
            "not judged: {are} still connected at {address}, where nobody listens any more, and a process that"
        );
        assert!(said.status == 3 && said.stdout.contains(&sentence), "{said:?}");
        drop(clients);
    }
}

#[test]
fn tasks_of_a_local_set_are_seen() {
    says(
        &executor("local"),
        &["of 40 tasks (tokio, by its memory): 40 are suspended", "executor::handle : 40 tasks"],
    );
    // A loop of the program polls the set, and has nothing of tokio on its stack while it sleeps. It was called sound.
    let bare = executor("bare-local");
    says(&bare, &["of 40 tasks (tokio, by its memory): 40 are suspended"]);
    assert_eq!(check(Path::new(&bare.pid().to_string()), &[]).status, 3);
}

#[test]
fn tasks_that_wait_for_the_ends_of_one_another_are_proven_alive_and_in_a_core_file() {
    let victim = executor("circle");
    let directory = tempdir();
    let path = directory.path().join("core");
    core::write(victim.pid(), 6, &path);
    for subject in [Path::new(&victim.pid().to_string()), &path] {
        let answer = check(subject, &[]);
        assert_eq!(answer.findings, ["proven deadlock"], "{answer:#?}");
        let found = answer.data("finding")[0];
        assert_eq!(found["evidence"]["count"], 2, "{answer:#?}");
        assert_eq!(found["evidence"]["tasks"][1]["function"], "executor::outlive", "{answer:#?}");
        assert_eq!(found["premises"][0]["code"], "not-aborted", "{answer:#?}");
    }
}

#[test]
fn tasks_that_wait_for_one_another_and_for_a_time_are_not_accused() {
    let victim = executor("watchers");
    let answer = check(Path::new(&victim.pid().to_string()), &[]);
    assert_eq!((answer.status, answer.findings.len()), (3, 0), "{answer:#?}");
    // Each has a waker more than the one of its partner.
    says(&victim, &["executor::outlive : 2 tasks suspended until a task of executor::outlive ends"]);
}

#[test]
fn one_look_at_all_processes_finds_tasks_that_wait_for_one_another() {
    let victim = executor("circle");
    let mut reader = clean(Command::new(reader::program()));
    reader.args(["check", "--all"]);
    let all = finish(reader).stdout;
    let next = format!("; next: read-rip check {}", victim.pid());
    let line = all.lines().find(|line| line.ends_with(&next)).unwrap_or_else(|| panic!("{all}"));
    assert!(line.starts_with("proven deadlock: ") && line.contains("2 tasks of tokio wait"), "{line}");
}
