//! What lines of JSON say, of each command that has `--json`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::facts::{Facts, Key};
use crate::names::{Names, by_tid, condition, end_of, for_lock};
use crate::texts::{findings, kinds};

fn parsed(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

fn of_type<'l>(lines: &'l [Value], of: &'l str) -> impl Iterator<Item = &'l Value> {
    lines.iter().filter(move |line| line["type"] == of).map(|line| &line["data"])
}

fn text<'v>(of: &'v Value, field: &str) -> &'v str {
    of[field].as_str().unwrap_or_default()
}

fn list<'v>(of: &'v Value, field: &str) -> &'v [Value] {
    of[field].as_array().map_or(&[], Vec::as_slice)
}

fn who(of: &Value) -> String {
    by_tid(of["tid"].as_u64().unwrap_or_else(|| panic!("no tid: {of}")))
}

/// A moment since boot as a text of ns.
fn ns(of: &Value, field: &str) -> Option<u64> {
    Some(of[field].as_str()?.parse().unwrap())
}

/// A thread's name, and what the kernel says that it does.
fn thread(facts: &mut Facts, of: &Value) {
    let who = who(of);
    facts.name(&who, text(of, "name"));
    let doing = &of["doing"];
    if let Some(words) = doing.as_str().or(doing["text"].as_str()) {
        // A task that is polled does what its thread does.
        if who.starts_with("thread") {
            facts.kernel(&who, words);
        }
    }
}

/// `-t --json`, and the view with `--json` without a ring.
pub(crate) fn threads(json: &str, _: &Names) -> Facts {
    let (mut facts, lines) = (Facts::default(), parsed(json));
    of_type(&lines, "thread").for_each(|of| thread(&mut facts, of));
    of_type(&lines, "standing").for_each(|of| thread(&mut facts, of));
    facts
}

/// `locks --json`.
pub(crate) fn locks(json: &str, names: &Names) -> Facts {
    let (mut facts, lines) = (Facts::default(), parsed(json));
    let now_ns = of_type(&lines, "locks").find_map(|of| ns(of, "now_boottime_ns"));
    for lock in of_type(&lines, "lock") {
        let name = names.lock_at(text(lock, "address"));
        for holder in list(lock, "holders").iter().filter(|holder| holder["state"] == "held") {
            facts.name(&who(holder), text(holder, "name"));
            facts.holds(&who(holder), &name);
        }
        let what = [
            ("waiters", for_lock(&name)),
            ("condition_waiters", condition(&name)),
            ("semaphore_waiters", for_lock(&name)),
        ];
        for (field, what) in what {
            for group in list(lock, field) {
                let tids: Vec<u64> = list(group, "tids").iter().filter_map(Value::as_u64).collect();
                assert_eq!(Some(tids.len() as u64), group["threads"].as_u64(), "{group}");
                for &tid in &tids {
                    facts.waits(&by_tid(tid), &what);
                    if let (1, Some(longest_ns), Some(now_ns)) =
                        (tids.len(), group["longest_ns"].as_u64(), now_ns)
                    {
                        facts.since(&by_tid(tid), &what, names.date_us(now_ns - longest_ns));
                    }
                }
            }
        }
    }
    facts.lists(|key| match key {
        Key::Holds { .. } => true,
        Key::Waits { what, .. } => !what.starts_with("for the end of "),
        _ => false,
    });
    facts
}

/// `tasks --json`.
pub(crate) fn tasks(json: &str, names: &Names) -> Facts {
    let (mut facts, lines) = (Facts::default(), parsed(json));
    for task in of_type(&lines, "task") {
        let who = who(task);
        facts.name(&who, text(task, "name"));
        facts.say(Key::Does { task: who.clone() }, text(task, "state"));
        let date_us = |of: &Value| ns(of, "since_boottime_ns").and_then(|ns| names.date_us(ns));
        facts.does_since(&who, date_us(task));
        for wait in list(task, "waits") {
            let what = for_lock(&names.lock_at(text(wait, "lock")));
            facts.waits(&who, &what);
            // A task may wait for one lock in several futures.
            if list(task, "waits").iter().filter(|other| other["lock"] == wait["lock"]).count() == 1 {
                facts.since(&who, &what, date_us(wait));
            }
        }
        for hold in list(task, "holds") {
            facts.holds(&who, &names.lock_at(text(hold, "lock")));
        }
    }
    // Ended ones are not asked for, and what is awaited by its end is not among the waits.
    facts.lists(|key| match key {
        Key::Holds { who, .. } => who.starts_with("task "),
        Key::Waits { who, what } => {
            who.starts_with("task ") && what.starts_with("for ") && !what.starts_with("for the end of ")
        }
        _ => false,
    });
    facts
}

/// `stacks --json`.
pub(crate) fn stacks(json: &str, _: &Names) -> Facts {
    let (mut facts, lines) = (Facts::default(), parsed(json));
    for stack in of_type(&lines, "stack") {
        let mut words: BTreeMap<u64, &str> =
            list(stack, "tids").iter().map(|tid| (tid.as_u64().unwrap(), text(stack, "doing"))).collect();
        for other in list(stack, "others") {
            list(other, "tids").iter().for_each(|tid| {
                words.insert(tid.as_u64().unwrap(), text(other, "doing"));
            });
        }
        words.iter().for_each(|(&tid, words)| facts.kernel(&by_tid(tid), words));
    }
    facts
}

/// `check --json`.
pub(crate) fn check(json: &str, names: &Names) -> Facts {
    checked(&parsed(json), names)
}

/// What `check --all --json` says of one process. Those without findings are not listed.
pub(crate) fn check_all(json: &str, pid: u32, names: &Names) -> Facts {
    let lines = parsed(json);
    let is_of_pid =
        |block: &&[Value]| block.iter().any(|line| line["data"]["pid"] == pid || names_pid(line, pid));
    // Each process or ring ends with what was checked.
    let mut blocks = lines.split_inclusive(|line| line["type"] == "checked");
    match blocks.find(is_of_pid) {
        Some(block) => checked(block, names),
        None => {
            let mut facts = Facts::default();
            kinds(&mut facts, Vec::new());
            facts
        }
    }
}

/// Whether a finding is about threads of a process.
fn names_pid(line: &Value, pid: u32) -> bool {
    list(&line["data"], "threads").iter().any(|thread| thread["pid"] == pid)
}

fn checked(lines: &[Value], names: &Names) -> Facts {
    let mut facts = Facts::default();
    let kind = |finding: &Value| format!("{} {}", text(finding, "confidence"), text(finding, "kind"));
    let found: Vec<String> = of_type(lines, "finding").map(kind).collect();
    match of_type(lines, "finding").next() {
        Some(first) => {
            let first = format!("{}: {}", found[0], text(&first["text"], "summary"));
            findings(&mut facts, found, &first);
        }
        None => kinds(&mut facts, found),
    }
    for finding in of_type(lines, "finding") {
        // Who held a lock when it was destroyed does not hold it any more.
        let is_of_now = !text(finding, "kind").starts_with("destroyed");
        list(finding, "threads").iter().for_each(|of| thread(&mut facts, of));
        let by_id = |field: &str| -> BTreeMap<u64, &Value> {
            list(finding, field).iter().filter_map(|of| Some((of["id"].as_u64()?, of))).collect()
        };
        let (threads, locks) = (by_id("threads"), by_id("locks"));
        let id = |of: &Value, field: &str| of[field].as_u64();
        walk(&finding["evidence"], "", &mut |field, of| {
            let thread = |field| Some(who(threads.get(&id(of, field)?)?));
            let lock = || Some(names.lock_at(text(locks.get(&id(of, "lock")?)?, "address")));
            match (field, thread("thread"), lock(), thread("joined")) {
                ("wait", Some(who), Some(lock), _) => {
                    let is_relock = of["relock"] == true;
                    facts.waits(&who, &if is_relock { condition(&lock) } else { for_lock(&lock) });
                }
                ("hold" | "holder", Some(who), Some(lock), _) if is_of_now => facts.holds(&who, &lock),
                ("join", Some(who), _, Some(joined)) => facts.waits(&who, &end_of(&joined)),
                _ => {}
            }
        });
    }
    let checked = of_type(lines, "checked").next().expect("a line of what was checked");
    let balance = &checked["balance"];
    facts.say(Key::Outcome, text(balance, "outcome"));
    facts.count("findings", checked["findings"].as_u64().unwrap());
    facts.count("threads present", balance["present"].as_u64().unwrap());
    for (field, code) in [
        ("on_locks", "locks"),
        ("on_conditions", "conditions"),
        ("on_semaphores", "semaphores"),
        ("on_barriers", "barriers"),
        ("on_messages", "messages"),
        ("on_threads", "threads"),
    ] {
        facts.add(format!("threads that do: {code}"), balance[field].as_u64().unwrap());
    }
    for (code, count) in balance["doing"].as_object().into_iter().flatten() {
        let code = if code == "waits_for_lock" { "locks" } else { code };
        facts.add(format!("threads that do: {code}"), count.as_u64().unwrap());
    }
    let tasks = &balance["tasks"];
    for (field, code) in
        [("on_locks", "locks"), ("running", "running"), ("ready", "ready"), ("suspended", "suspended")]
    {
        facts.add(format!("tasks that do: {code}"), tasks[field].as_u64().unwrap_or(0));
    }
    facts
}

/// Calls `each` with every object within a value, and the field that it is in.
fn walk(value: &Value, field: &str, each: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Object(fields) => {
            each(field, value);
            fields.iter().for_each(|(field, inner)| walk(inner, field, each));
        }
        Value::Array(all) => all.iter().for_each(|inner| walk(inner, field, each)),
        _ => {}
    }
}
