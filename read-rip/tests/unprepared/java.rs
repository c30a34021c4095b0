//! A Java virtual machine: what the kernel and its C++ stacks say of it, and that its heap is not judged.

use std::fs;
use std::process::Command;
use std::sync::OnceLock;

use librip_test_kit::tool::{is_installed, tool};
use librip_test_kit::victim::Plan;

use crate::support::unprepared::{Stuck, contains, directory};

/// So many readings show each thread at rest.
const READINGS: usize = 50;

/// A program with a deadlock of monitors; `None` without Java.
fn deadlock() -> Option<Stuck> {
    if !is_installed("javac") || !is_installed("java") {
        eprintln!("SKIPPED java: javac and java are not installed");
        return None;
    }
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        let source = directory().join("Deadlock.java");
        fs::write(&source, include_str!("../programs/Deadlock.java")).unwrap();
        tool(Command::new("javac").arg("-d").arg(directory()).arg(&source));
    });
    let classes = directory().to_str().unwrap();
    let plan = Plan::new("java", &["-Xint", "-Xmx64m", "-XX:+UseSerialGC", "-cp", classes, "Deadlock"]);
    let mut stuck = Stuck(plan.start());
    stuck.0.until("ready");
    Some(stuck)
}

#[test]
fn what_threads_of_java_wait_for_is_named_and_their_heap_is_not_judged() {
    let Some(stuck) = deadlock() else { return };
    // A thread that waits for a monitor looks once a second whether it is free, and moves then.
    let waits = |name: &str, wait: &str| {
        let begin = format!("{name}[");
        (0..READINGS).any(|_| {
            let threads = stuck.read(&["-t"]).sound().stdout;
            threads.lines().any(|line| line.starts_with(&begin) && line.contains(wait))
        })
    };
    for name in ["saver", "spender"] {
        assert!(waits(name, "waiting for Java monitor, on the condition variable "), "{name}");
    }
    for name in ["waiter", "worker"] {
        assert!(
            waits(name, "waiting to be woken (Java LockSupport.park), on the condition variable "),
            "{name}"
        );
    }
    let checked = stuck.read(&["check"]);
    assert_eq!(checked.status, 3, "a stuck program is not called sound: {checked:#?}");
    assert!(!checked.stdout.contains("proven"), "{checked:#?}");
    let advice = format!("`jstack {}` shows who has them", stuck.0.pid());
    contains(&checked.stdout, &["not judged: Java's monitors and locks ", &advice]);
    let view = stuck.read(&[]).sound().stdout;
    contains(&view, &["check: not judged: Java's monitors and locks are not seen; next: "]);
}

#[test]
fn stacks_of_java_end_where_its_own_code_begins_and_say_so() {
    let Some(stuck) = deadlock() else { return };
    let expected = [
        "1 thread: saver[",
        "ObjectMonitor::enter(",
        ", in generated code\n    cut: the next address is in no file",
    ];
    let is_seen = (0..READINGS).any(|_| {
        let stacks = stuck.read(&["stacks", "-m", "saver"]).sound().stdout;
        expected.iter().all(|part| stacks.contains(part))
    });
    assert!(is_seen, "{}", stuck.read(&["stacks"]).stdout);
}
