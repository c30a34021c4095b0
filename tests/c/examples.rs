//! The examples in C and C++: built with the command in their first comment, killed, and read.

use std::process::Command;

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
    victim.kill();
    let remains = victim.wait();
    let mut reader = Command::new(env!("CARGO_BIN_EXE_reader"));
    if !command.is_empty() {
        reader.arg(command);
    }
    if command == "check" {
        // Its status says that there are findings.
        let output = reader.arg(remains.ring_path()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        return String::from_utf8(output.stdout).unwrap();
    }
    tool(reader.arg(remains.ring_path()))
}

#[track_caller]
fn expect(said: &str, parts: &[&str]) {
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
fn the_server_in_cpp_says_which_threads_are_deadlocked() {
    for compiler in installed(&[GPP, CLANGPP]) {
        let said = ask(compiler, "server.cc", "check");
        expect(
            &said,
            &["potential deadlock: 2 threads wait for one another", "waits for bob", "waits for alice"],
        );
    }
}

#[test]
fn a_thread_that_waits_for_a_condition_does_not_hold_the_mutex() {
    let program = build(GCC, &["condition.c"], "condition", &["-g", "-O2"]);
    let mut victim = Plan::new(program, &[]).start();
    victim.until("stuck");
    victim.kill();
    let remains = victim.wait();
    let said = tool(Command::new(env!("CARGO_BIN_EXE_reader")).arg("locks").arg(remains.ring_path()));
    assert!(said.contains("queue") && !said.contains("held by"), "{said}");
}
