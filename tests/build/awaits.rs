//! What is said of the tasks of a program of tokio that has debug information of types, alive and in a core file.

use std::path::Path;
use std::process::Command;

use librip_test_kit::core;
use librip_test_kit::reader;
use librip_test_kit::run::{clean, finish};
use librip_test_kit::tool::repository;
use librip_test_kit::victim::{Plan, Victim, tempdir};

use crate::built_alone;

/// The ways to take a mutex and to keep it for certain.
const WAYS: [&str; 6] = ["plain", "scrutinee", "passed", "looped", "mapped", "optional"];

/// A program that has reached its state. `None` if it cannot be built.
fn started(arguments: &[&str]) -> Option<Victim> {
    let programs = built_alone("tests/build/awaits", None)?;
    let mut victim = Plan::new(programs.join("awaits"), arguments).start();
    victim.until("ready");
    Some(victim)
}

/// The line of the program that ends in this comment.
fn line_of(what: &str) -> usize {
    let text = std::fs::read_to_string(repository().join("tests/build/awaits/src/main.rs")).unwrap();
    text.lines().position(|line| line.ends_with(&format!("// {what}"))).expect(what) + 1
}

#[test]
#[ignore = "compiles for long; scripts/test-builds runs it"]
fn tasks_that_hold_what_they_await_are_proven() {
    for way in WAYS {
        let Some(victim) = started(&[way, "kept"]) else { return };
        let directory = tempdir();
        let dump = directory.path().join("core");
        core::write(victim.pid(), 6, &dump);
        for subject in [Path::new(&victim.pid().to_string()), &dump] {
            let said = reader::ask(&["check"], subject);
            let text = &said.stdout;
            assert!(
                text.contains("proven deadlock: 2 tasks of tokio await locks that they hold"),
                "{way} {said:?}"
            );
            assert_eq!(said.status, 1, "{way} {said:?}");
            if way == "plain" {
                let line = format!(
                    "(awaits::plain) awaits a mutex at main.rs:{} that task",
                    line_of("the other one")
                );
                assert_eq!(text.matches(&line).count(), 2, "{said:?}");
                assert_eq!(text.matches("(awaits::plain) holds in `guard`").count(), 2, "{said:?}");
            }
        }
    }
}

#[test]
#[ignore = "compiles for long; scripts/test-builds runs it"]
fn tasks_that_gave_back_what_they_held_are_not_accused() {
    for way in WAYS.into_iter().chain(["at_once"]) {
        let Some(victim) = started(&[way, "given"]) else { return };
        let said = reader::ask(&["check"], victim.pid().to_string());
        assert_eq!(said.status, 3, "{way} {said:?}");
        assert!(!said.stdout.contains("deadlock"), "{way} {said:?}");
        assert!(
            said.stdout.contains("wait for is seen only in part"),
            "what awaits are known is shown: {said:?}"
        );
    }
}

#[test]
#[ignore = "compiles for long; scripts/test-builds runs it"]
fn each_task_has_its_await() {
    let wanted = |scenario: &str, lines: &[&str]| {
        let Some(victim) = started(&[scenario]) else { return };
        let said = reader::ask(&["tasks"], victim.pid().to_string());
        for line in lines {
            assert!(said.stdout.contains(line), "{line} {said:?}");
        }
    };
    let at = line_of("no answer");
    let nested = format!(
        "awaits::outermost : 1 task suspended in awaits::innermost at main.rs:{at}, awaits tokio::sync::oneshot::Receiver"
    );
    let [middle, outermost] = ["the middle", "the outermost"].map(line_of);
    let around = format!(
        "awaited by awaits::middle at main.rs:{middle}, by awaits::outermost at main.rs:{outermost}\n"
    );
    wanted("nested", &[&nested, &around]);
    wanted(
        "permits",
        &["semaphore of tokio (", "): held by task 3 (awaits::keeps); awaited by task 4 (awaits::wants), "],
    );
    let boxed = nested.replace("outermost", "boxed");
    let around = format!("awaited by awaits::boxed at main.rs:{}\n", line_of("the box"));
    wanted("boxed", &[&boxed, &around]);
}

#[test]
#[ignore = "compiles for long; scripts/test-builds runs it"]
fn tasks_that_have_all_objects_of_a_pool_and_want_one_more_are_suspected() {
    for (way, is_stuck) in [("kept", true), ("given", false), ("busy", false)] {
        let Some(victim) = started(&["pool", way]) else { return };
        let said = reader::ask(&["check"], victim.pid().to_string());
        let holds =
            "suspected deadlock: 2 tasks of tokio hold objects of a pool (deadpool), and await one more";
        let line = format!(
            "(awaits::takes_two) awaits one at main.rs:{}, and holds one in `one`\n",
            line_of("one more")
        );
        assert_eq!(said.status, if is_stuck { 1 } else { 3 }, "{way} {said:?}");
        assert_eq!(said.stdout.contains(holds), is_stuck, "{way} {said:?}");
        assert_eq!(said.stdout.contains(&line), is_stuck, "{way} {said:?}");
        // One look at all processes says the same.
        let mut reader = clean(Command::new(reader::program()));
        reader.args(["check", "--all"]);
        let all = finish(reader).stdout;
        let next = format!("; next: read-rip check {}", victim.pid());
        let of_victim = |line: &&str| line.ends_with(&next) && line.starts_with("suspected deadlock: ");
        assert_eq!(all.lines().filter(of_victim).count(), usize::from(is_stuck), "{way} {all}");
    }
}
