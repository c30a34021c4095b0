//! The examples in C and C++: built with the command in their first comment, killed, and read.

use std::path::Path;
use std::process::Command;

use librip_test_kit::reader;
use librip_test_kit::victim::Plan;

use crate::{CLANG, CLANGPP, Compiler, GCC, GPP, build, installed, repository, tool};

/// Builds an example, kills it when it is stuck, and asks `read-rip`.
fn ask(compiler: Compiler, source: &str, command: &str) -> String {
    let path = repository().join("examples/c").join(source);
    let program =
        build(compiler, &[path.to_str().unwrap()], &format!("{source}-{}", compiler.name), &["-g", "-O2"]);
    let plan = Plan::new(program, &[]);
    let mut victim = plan.start();
    victim.until("stuck");
    let remains = victim.killed();
    let arguments = if command.is_empty() { &[][..] } else { &[command] };
    // The status of `check` says that there are findings.
    answer(arguments, &remains.ring_path(), if command == "check" { 1 } else { 0 })
}

/// What `read-rip` says of a ring, with this exit status.
#[track_caller]
pub(crate) fn answer(arguments: &[&str], ring: &Path, status: i32) -> String {
    let output = Command::new(reader::program()).args(arguments).arg(ring).output().unwrap();
    assert_eq!(output.status.code(), Some(status), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
pub(crate) fn expect(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "no {part:?} in\n{said}");
    }
}

#[test]
fn the_server_in_c_shows_the_holder_of_a_lock_and_its_waiters() {
    for compiler in installed(&[GCC, CLANG]) {
        let said = ask(compiler, "server.c", "");
        expect(&said, &["serve : 20 threads, 1 location: server.c:", "ask_the_backend : 1 thread"]);
        let said = ask(compiler, "server.c", "locks");
        expect(&said, &["sessions  lock at", "held by janitor[", "20 threads wait at serve server.c:"]);
    }
}

#[test]
fn lock_holders_names_the_holder_of_a_lock_that_macros_mark() {
    let path = repository().join("examples/c/server.c");
    let program = build(GCC, &[path.to_str().unwrap()], "server-holders", &["-g", "-O2"]);
    let mut victim = Plan::new(program, &[]).start();
    victim.until("stuck");
    let remains = victim.killed();
    let threads = tool(Command::new(reader::program()).arg("-t").arg(remains.ring_path()));
    expect(&threads, &["(waits)", "(acquired)", "(released)"]);
    let input = remains.ring_path().with_extension("threads");
    std::fs::write(&input, &threads).unwrap();
    let file = std::fs::File::open(&input).unwrap();
    let holders = tool(Command::new(repository().join("scripts/lock-holders")).arg("-s").stdin(file));
    assert!(holders.starts_with("janitor[") && holders.lines().count() == 1, "{holders}");
}

#[test]
fn each_worker_of_the_manager_has_its_own_ring_and_the_stuck_one_its_own_verdict() {
    let path = repository().join("examples/c/manager.c");
    let program = build(GCC, &[path.to_str().unwrap()], "manager", &["-g", "-O2"]);
    let plan = Plan::new(program, &[]);
    let directory = plan.dir().to_owned();
    let mut victim = plan.env("RIP_RING", &directory).start();
    let lines = [(); 3].map(|()| victim.line());
    assert!(lines[0].starts_with("well: worker 1") && lines[2].starts_with("stuck: worker 2"), "{lines:?}");
    let check = |line: &str| {
        let (_, pid) = line.split_once("pid ").unwrap_or_else(|| panic!("no pid in {line:?}"));
        let mut reader = Command::new(reader::program());
        let output = reader.arg("--dir").arg(&directory).arg("check").arg(pid).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (status, said) = check(&lines[0]);
    assert_eq!(status, Some(0), "{said}");
    let (status, said) = check(&lines[2]);
    assert_eq!(status, Some(1), "{said}");
    expect(
        &said,
        &["deadlock: 2 threads wait for one another", "waits for statistics", "waits for &session->lock"],
    );
    victim.killed();
}

#[test]
fn the_readme_has_the_macros_of_the_example() {
    let words = |path: &str| {
        let text = std::fs::read_to_string(repository().join(path)).unwrap();
        text.split_whitespace().map(str::to_owned).collect::<Vec<String>>().join(" ")
    };
    let (readme, example) = (words("librip/capi/README.md"), words("examples/c/lck.h"));
    let (_, recipe) = readme.split_once("```c /* Tries first").expect("the recipe");
    let (recipe, _) = recipe.split_once(" ```").expect("its end");
    assert!(example.contains(recipe), "{recipe}");
}

#[test]
fn the_server_in_cpp_says_which_threads_are_deadlocked() {
    for compiler in installed(&[GPP, CLANGPP]) {
        let said = ask(compiler, "server.cc", "check");
        expect(
            &said,
            &[
                "proven deadlock: 2 threads wait for one another",
                "waits for bob",
                "waits for alice",
                "at transfer",
            ],
        );
    }
}

#[test]
fn a_thread_that_waits_for_a_condition_does_not_hold_the_mutex() {
    let program = build(GCC, &["condition.c"], "condition", &["-g", "-O2"]);
    let mut victim = Plan::new(program, &[]).start();
    victim.until("stuck");
    let remains = victim.killed();
    let said = tool(Command::new(reader::program()).arg("locks").arg(remains.ring_path()));
    assert!(said.contains("queue") && !said.contains("held by"), "{said}");
}

#[test]
fn the_towers_in_c_say_what_they_moved_and_which_were_open_at_the_death() {
    for compiler in installed(&[GCC, CLANG]) {
        let path = repository().join("examples/c/hanoi.c");
        let program =
            build(compiler, &[path.to_str().unwrap()], &format!("hanoi-{}", compiler.name), &["-g", "-O2"]);
        let read = |arguments: &[&str], ring: &Path| answer(arguments, ring, 0);
        let remains = Plan::new(&program, &["3"]).run();
        remains.expect_success();
        let log = read(&["log", "--level", "info", "--no-spans"], &remains.ring_path());
        let moves: Vec<&str> =
            log.lines().filter_map(|line| line.split_once("move a disk ")).map(|(_, to)| to).collect();
        assert_eq!(moves.len(), 7, "{log}");
        assert!(moves[0].starts_with("from left to right  hanoi.c:"), "{log}");
        let remains = Plan::new(&program, &["6", "stop"]).run();
        assert_eq!(remains.signal(), Some(libc::SIGABRT));
        let log = read(&["log", "--level", "error"], &remains.ring_path());
        expect(&log, &["error ", "no disk may lie on the middle post"]);
        let spans = read(&["spans"], &remains.ring_path());
        let open: Vec<&str> = spans.lines().filter(|line| line.starts_with("  open: ")).collect();
        assert_eq!(open.len(), 6, "{spans}");
        assert!(open[0].ends_with(", with 6") && open[5].ends_with(", with 2"), "{spans}");
    }
}
