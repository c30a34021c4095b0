//! Many tasks, misused ones, kills at any moment, and slots that do not suffice.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use librip_test_kit::oracle::State;
use librip_test_kit::reader;

use super::{plan, started};
use crate::ask::{check, printed};

#[test]
fn accuses_no_tasks_that_go_on() {
    let victim = started(plan("healthy").env("RIP_SLOTS", "256"));
    for _ in 0..10 {
        let answer = check(&victim.ring_path(), &[]);
        let wrong = ["deadlock", "futurelock", "starved-runtime", "unpolled-task", "long-poll"];
        assert!(!answer.accuses(&wrong), "{answer:#?}");
    }
}

#[test]
fn accuses_no_tasks_that_use_locks_in_several_futures_at_once() {
    let wrong = ["deadlock", "futurelock", "double-lock", "nested-read", "lock-order", "starvation"];
    for round in 0..3 * librip_test_kit::victim::torture() {
        let mut victim = started(plan("healthy-branches"));
        for _ in 0..3 {
            let answer = check(&victim.ring_path(), &[]);
            assert!(!answer.accuses(&wrong), "{answer:#?}");
        }
        victim.kill_after(u64::from(round * 617 % 5000));
        let answer = check(&victim.wait().ring_path(), &[]);
        assert!(!answer.accuses(&wrong), "{answer:#?}");
    }
}

#[test]
fn a_kill_at_any_moment_leaves_sound_tasks_and_no_proof_of_trouble() {
    for round in 0..10 * librip_test_kit::victim::torture() {
        let mut victim = started(plan("healthy").env("RIP_SLOTS", "256"));
        victim.kill_after(u64::from(round * 617 % 5000));
        let ring = victim.wait();
        let output = reader::ask(&["tasks", "--json"], ring.ring_path());
        let text = output.stdout;
        assert_eq!(output.status, 0, "{}", output.stderr);
        let [idle, workers] =
            ["idle", "worker"].map(|name| text.matches(&format!("\"name\":\"{name}\"")).count());
        assert_eq!((idle, workers), (40, 40));
        let answer = check(&ring.ring_path(), &[]);
        assert!(!answer.findings.iter().any(|found| found.starts_with("proven")), "{answer:#?}");
    }
}

#[test]
fn many_short_tasks_lose_nothing_of_those_that_live() {
    let tasks = (200_000 * librip_test_kit::victim::torture()).to_string();
    let victim = started(plan("many-short").env("RIP_SLOTS", "2048").env("TASKS_SHORT", &tasks));
    let text = printed(&["tasks", "-t"], &victim.ring_path());
    let of = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
    assert_eq!((of("keeper[task"), of("waiter[task")), (1, 2), "{text}");
    assert!(text.contains("    holds kept, acquired at "), "{text}");
    let info = printed(&["info"], &victim.ring_path());
    assert!(!info.contains(" tasks because no slot was free"), "{info}");
}

/// What a task of the scenario `truth` has said that it holds: the lock's name.
fn said(what: u64) -> Option<String> {
    match what {
        0 => None,
        101 | 102 => Some("rw".into()),
        200 => Some("permits".into()),
        mutex => Some(format!("m{}", mutex - 1)),
    }
}

#[test]
fn after_a_kill_at_full_speed_the_ring_has_each_hold_that_the_tasks_themselves_have_noted() {
    let mut holds = 0;
    for round in 0..10 * librip_test_kit::victim::torture() {
        let plan = plan("truth").env("RIP_SLOTS", "64");
        let truth = plan.dir().join("truth");
        let mut victim = started(plan.env("TASKS_TRUTH", &truth));
        victim.kill_after(u64::from(round * 617 % 5000));
        let ring = victim.wait();
        let tasks = reader::ask(&["tasks", "--json"], ring.ring_path()).data("task");
        let recorded: HashMap<&str, Vec<&str>> = tasks
            .iter()
            .map(|task| {
                let locks = task["holds"].as_array().unwrap().iter();
                let locks = locks.map(|hold| hold["lock_name"].as_str().unwrap()).collect();
                (task["name"].as_str().unwrap(), locks)
            })
            .collect();
        let bytes = std::fs::read(&truth).unwrap();
        for (task, word) in bytes.chunks_exact(8).enumerate() {
            let Some(lock) = said(u64::from_ne_bytes(word.try_into().unwrap())) else { continue };
            holds += 1;
            assert_eq!(recorded[&*task.to_string()], [lock], "round {round}, task {task}: {recorded:?}");
        }
        // Nobody else has it at the same time.
        for mutex in ["m0", "m1", "m2"] {
            let holders = recorded.values().flatten().filter(|lock| **lock == mutex).count();
            assert!(holders <= 1, "round {round}, {mutex}: {recorded:?}");
        }
        let answer = check(&ring.ring_path(), &[]);
        assert!(!answer.findings.iter().any(|found| found.starts_with("proven")), "{answer:#?}");
    }
    assert!(holds > 0, "the tasks hold something most of the time");
}

#[test]
fn misused_tasks_harm_neither_the_program_nor_what_is_known_of_others() {
    let victim = started(plan("misused").env("RIP_SLOTS", "2048"));
    let tasks = reader::ask(&["tasks", "-a", "--json"], victim.ring_path()).data("task");
    let of = |name: &'static str| tasks.iter().filter(move |task| task["name"] == name);
    let all = |name: &'static str, count: usize, state: &str| {
        assert_eq!(of(name).filter(|task| task["state"] == state).count(), count, "{name}: {tasks:#?}");
    };
    all("leaked", 50, "suspended");
    all("fresh", 50, "suspended");
    // Nobody has woken them: those who have their slots now are others.
    assert!(
        of("fresh").chain(of("leaked")).all(|task| task["wakes"] == 0 && task["polls"] == 1),
        "{tasks:#?}"
    );
    let inner = of("inner").next().expect("it is suspended");
    assert_eq!(inner["within"], of("outer").next().expect("it is suspended")["tid"], "{tasks:#?}");
    assert!(of("ended").count() > 0 && of("ended").all(|task| task["state"] == "ended"), "{tasks:#?}");
    assert!(!tasks.iter().any(|task| task["state"] == "running"), "a panic ends a poll: {tasks:#?}");
    let answer = check(&victim.ring_path(), &["--threshold", "1ms"]);
    assert!(answer.findings.is_empty(), "{answer:#?}");
}

#[test]
fn a_task_that_goes_on_in_another_runtime_takes_its_history_along() {
    let victim = started(plan("moved"));
    let judge = |ring: &Path| {
        let tasks = reader::json(&["tasks", "-a"], "task", ring);
        let states: Vec<_> = tasks.iter().map(|task| (&task["name"], &task["state"])).collect();
        assert_eq!(
            states,
            [(&"moved".into(), &"ended".into()), (&"moved".into(), &"suspended".into())],
            "{tasks:#?}"
        );
        let moved = &tasks[1];
        // One poll in each runtime. Nobody has woken it: the second runtime polls whatever it is given.
        assert_eq!((&moved["polls"], &moved["wakes"]), (&2.into(), &0.into()), "{moved:#}");
        let made = moved["made_at"]["line"].as_u64().unwrap() as usize;
        let source = include_str!("../../src/bin/tasks/misuse.rs");
        let line_of = |text: &str| source.lines().position(|line| line.contains(text)).unwrap() + 1;
        assert_eq!(made, line_of(r#".name("moved")"#), "{moved:#}");
        let text = printed(&["-t"], ring);
        let of = |name: &str| text.lines().find(|line| line.starts_with(name)).expect(&text).to_owned();
        // The words between are those of awaits.
        let at = |text: &str| format!("}}misuse.rs:{}", line_of(text));
        let (first, second) = (at("in the first runtime"), at("in the second runtime"));
        let history = of(&format!("moved[task {}]: ", moved["number"]));
        let marks: Vec<&str> = history.split(", ").map(|mark| &mark[mark.find('}').unwrap()..]).collect();
        assert_eq!(marks, [first, second], "{text}");
        // Neither has the thread that polled it last.
        let tid = format!("[{}]: ", moved["polled_by"]);
        let second = text.lines().find(|line| line.contains(&tid));
        assert!(
            second.is_none_or(|line| line.starts_with("second[") && !line.contains("misuse.rs")),
            "{text}"
        );
        let answer = check(ring, &["--threshold", "1ms"]);
        assert_eq!((answer.findings, answer.status), (vec![], 0));
    };
    judge(&victim.ring_path());
    judge(&victim.killed().ring_path());
}

#[test]
fn ten_thousand_tasks_take_what_the_documents_say() {
    // The documentation of `librip::task` has the bytes of a task, and the README of librip-tokio the sum for 100,000.
    for (words, bytes) in [("64", 1280), ("16", 896)] {
        let plan = plan("crowd").env("RIP_SLOTS", "16384").env("TASKS_CROWD", "10000");
        let victim = started(plan.env("RIP_WORDS", words));
        let text = printed(&["tasks"], &victim.ring_path());
        assert!(text.contains(": 10000 tasks, the longest for "), "{text}");
        let taken = 512 * std::fs::metadata(victim.ring_path()).unwrap().blocks();
        let of_tasks = 10_000 * bytes;
        // Besides there are the tables of the ring, and the slots of a few threads.
        assert!((of_tasks..of_tasks + (2 << 20)).contains(&taken), "{taken} bytes with {words} words");
    }
}

#[test]
fn tasks_without_a_slot_are_counted_and_threads_keep_theirs() {
    let victim = started(plan("crowd").env("RIP_SLOTS", "32").env("TASKS_CROWD", "100"));
    let text = printed(&["tasks", "--json"], &victim.ring_path());
    let recorded = text.matches("\"name\":\"one of many\"").count();
    assert_eq!(recorded, 32 * 7 / 8);
    let output = reader::ask(&["tasks"], victim.ring_path());
    let refused = format!("{} tasks were not recorded", 100 - recorded);
    let remarks = output.stderr;
    assert!(remarks.contains(&refused), "{remarks}");
    let ring = victim.ring_now(&victim.ring_path()).unwrap();
    let main = ring.slots.iter().find(|slot| slot.tid == victim.pid());
    assert!(main.is_none_or(|slot| slot.state == State::Live));
}
