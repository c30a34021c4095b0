//! What the exports say that are drawn: folded stacks, the graph, and the timelines.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

use crate::facts::{Facts, Key, NOTHING};
use crate::names::{Names, by_tid, condition, end_of, for_lock};
use crate::tables::is_awaited;
use crate::texts::task_state;

/// `export -f folded`.
pub(crate) fn folded(text: &str, names: &Names) -> Facts {
    let mut facts = Facts::default();
    for line in text.lines() {
        let (stack, count) = line.rsplit_once(' ').expect(line);
        if let Some(what) = awaited_frame(stack.rsplit(';').next().unwrap_or_default(), names) {
            facts.add(what, count.parse().unwrap());
        }
    }
    // Each thread and task that exists has a line.
    facts.lists(|key| matches!(key, Key::Count { what } if is_awaited(what)));
    facts
}

/// `[waits for L]`.
fn awaited_frame(frame: &str, names: &Names) -> Option<String> {
    if task_state(frame.trim_start_matches('[')).is_some() {
        return None;
    }
    let words = frame.strip_prefix("[waits ")?.strip_suffix(']')?;
    Some(names.all_awaited(words).unwrap_or_else(|| panic!("{frame}")))
}

/// `export -f dot`.
pub(crate) fn dot(text: &str, names: &Names) -> Facts {
    let node = Regex::new(r#"^  (n[0-9]+) \[shape=(box|ellipse).*, label="(.*)"\];$"#).unwrap();
    let edge = Regex::new(r#"^  (n[0-9]+) -> (n[0-9]+) \[(?:style=(\w+), )?label="(.*)"\];$"#).unwrap();
    let mut facts = Facts::default();
    let mut nodes: BTreeMap<String, String> = BTreeMap::new();
    for line in text.lines() {
        if let Some(found) = node.captures(line) {
            let label = found[3].replace("\\\"", "\"").replace("\\\\", "\\");
            if let (Some((who, "")), "ellipse") = (names.who(&label), &found[2]) {
                facts.name(&who, Names::name_in(&label));
                facts.add(format!("nodes of {who}"), 1);
            }
            nodes.insert(found[1].to_owned(), label);
        } else if let Some(found) = edge.captures(line) {
            let (from, to) = (&nodes[&found[1]], &nodes[&found[2]]);
            let who = |label: &str| names.who(label).filter(|(_, rest)| rest.is_empty()).map(|(who, _)| who);
            match (found.get(3).map(|style| style.as_str()), &found[4]) {
                (Some("bold"), _) => {
                    who(to).iter().for_each(|who| facts.holds(who, from));
                }
                (Some("dashed"), label) if label.starts_with("waits on a condition variable") => {
                    who(from).iter().for_each(|who| facts.waits(who, &condition(to)));
                }
                (Some("dashed"), _) => {
                    let joined = who(to).unwrap_or_else(|| panic!("{line}"));
                    who(from).iter().for_each(|who| facts.waits(who, &end_of(&joined)));
                }
                (None, _) => who(from).iter().for_each(|who| facts.waits(who, &for_lock(to))),
                _ => {}
            }
        }
    }
    // A thread or task is one thing.
    for who in facts.keys().filter_map(of_nodes).collect::<Vec<_>>() {
        facts.count(format!("nodes of {who}"), 1);
    }
    facts
}

fn of_nodes(key: &Key) -> Option<String> {
    match key {
        Key::Count { what } => what.strip_prefix("nodes of ").map(str::to_owned),
        _ => None,
    }
}

/// A slice of a thread or task that goes on.
fn open_slice(
    facts: &mut Facts,
    who: &str,
    category: &str,
    words: &str,
    begin_ns: Option<u64>,
    names: &Names,
) {
    match category {
        "wait" => {
            let what = words.strip_prefix("waits ").and_then(|words| names.all_awaited(words));
            let what = what.unwrap_or_else(|| panic!("{who}: {words}"));
            facts.waits(who, &what);
            facts.since(who, &what, begin_ns.and_then(|ns| names.date_us(ns)));
        }
        "hold" => {
            let lock = words.strip_prefix("holds ").and_then(|lock| names.lock(lock));
            facts.holds(who, lock.unwrap_or_else(|| panic!("{who}: {words}")).0);
        }
        "task" => {
            facts.say(
                Key::Does { task: who.to_owned() },
                task_state(words).unwrap_or_else(|| panic!("{words}")),
            );
            facts.does_since(who, begin_ns.and_then(|ns| names.date_us(ns)));
        }
        _ => {}
    }
}

/// `export -f chrome`.
pub(crate) fn chrome(json: &str, names: &Names) -> Facts {
    let mut facts = Facts::default();
    let all: Value = serde_json::from_str(json).expect(json);
    let events = all["traceEvents"].as_array().unwrap();
    let track = |event: &Value| (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
    let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
    let named = |of: &str| -> BTreeMap<(u64, u64), String> {
        let of = events.iter().filter(|event| event["name"] == of);
        of.map(|event| (track(event), event["args"]["name"].as_str().unwrap().to_owned())).collect()
    };
    let (processes, threads) = (named("process_name"), named("thread_name"));
    for event in events.iter().filter(|event| event["args"]["open"] == true) {
        let track = track(event);
        let (name, words) = (&threads[&track], text(event, "name"));
        let begin_ns = Some((event["ts"].as_f64().unwrap() * 1000.0).round() as u64);
        let process = &processes[&(track.0, 0)];
        if process.starts_with("locks of ") {
            let (who, _) = names.who(&words).unwrap_or_else(|| panic!("{event}"));
            facts.holds(&who, name);
        } else if process.starts_with("tasks of ") {
            let (who, _) = names.who(name).unwrap_or_else(|| panic!("{name}"));
            facts.name(&who, Names::name_in(name));
            open_slice(&mut facts, &who, &text(event, "cat"), &words, begin_ns, names);
        } else {
            facts.name(&by_tid(track.1), name);
            open_slice(&mut facts, &by_tid(track.1), &text(event, "cat"), &words, begin_ns, names);
        }
    }
    facts
}

/// `export -f firefox`.
pub(crate) fn firefox(json: &str, names: &Names) -> Facts {
    let mut facts = Facts::default();
    let profile: Value = serde_json::from_str(json).expect(json);
    let categories = profile["meta"]["categories"].as_array().unwrap();
    for thread in profile["threads"].as_array().unwrap() {
        let name = thread["name"].as_str().unwrap();
        let is_task = thread["processName"].as_str().unwrap().starts_with("tasks of ");
        let who = match is_task {
            true => names.who(name).unwrap_or_else(|| panic!("{name}")).0,
            // A second thread with the same id has a suffix.
            false => by_tid(thread["tid"].as_str().unwrap().split('.').next().unwrap().parse().unwrap()),
        };
        // A profile calls the main thread by the name of the process.
        if thread["isMainThread"] != true {
            facts.name(&who, if is_task { Names::name_in(name) } else { name });
        }
        let texts: Vec<&str> =
            thread["stringArray"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
        let column = |of: &Value, at: usize| of[at].as_u64().unwrap_or(u64::MAX) as usize;
        let markers = &thread["markers"];
        for at in 0..markers["length"].as_u64().unwrap() as usize {
            let words = texts[column(&markers["name"], at)];
            let category = categories[column(&markers["category"], at)]["name"].as_str().unwrap();
            let state = &markers["data"][at]["state"];
            let state = state.as_u64().map_or(state.as_str().unwrap_or(""), |at| texts[at as usize]);
            if state == "goes on" && ["wait", "hold"].contains(&category) {
                let mut of_slice = Facts::default();
                open_slice(&mut of_slice, &who, category, words, None, names);
                for key in of_slice.keys() {
                    match key {
                        Key::Waits { who, what } => facts.waits(who, what),
                        Key::Holds { who, lock } => facts.holds(who, lock),
                        _ => {}
                    }
                }
            }
        }
        // The stack of the one sample that has one.
        let samples = &thread["samples"]["stack"];
        let Some(stack) = samples.as_array().unwrap().iter().find_map(Value::as_u64) else { continue };
        let frame = column(&thread["stackTable"]["frame"], stack as usize);
        let function = column(&thread["frameTable"]["func"], frame);
        let innermost = texts[column(&thread["funcTable"]["name"], function)];
        match awaited_frame(innermost, names) {
            Some(what) => facts.answer(&who, &what),
            // What a task waits for is not said while it is polled or ready.
            None if !is_task || innermost == "[suspended]" => facts.answer(&who, NOTHING),
            None => {}
        }
    }
    facts
}

/// A field of a message: its number, and a number or bytes.
enum Field<'b> {
    Number(u64, u64),
    Bytes(u64, &'b [u8]),
}

/// The fields of a message of protobuf, as <https://protobuf.dev/programming-guides/encoding/> describes them.
fn fields(mut bytes: &[u8]) -> Vec<Field<'_>> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = bytes.split_first().expect("a varint ends");
            *bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        match tag & 7 {
            0 => fields.push(Field::Number(tag >> 3, varint(&mut bytes))),
            1 => {
                let (number, rest) = bytes.split_at(8);
                fields.push(Field::Number(tag >> 3, u64::from_le_bytes(number.try_into().unwrap())));
                bytes = rest;
            }
            2 => {
                let len = varint(&mut bytes) as usize;
                let (inner, rest) = bytes.split_at(len);
                fields.push(Field::Bytes(tag >> 3, inner));
                bytes = rest;
            }
            other => panic!("wire type {other}"),
        }
    }
    fields
}

fn number(bytes: &[u8], of: u64) -> Option<u64> {
    fields(bytes).into_iter().find_map(|field| match field {
        Field::Number(number, value) if number == of => Some(value),
        _ => None,
    })
}

fn all(bytes: &[u8], of: u64) -> Vec<&[u8]> {
    let wanted = |field| match field {
        Field::Bytes(number, inner) if number == of => Some(inner),
        _ => None,
    };
    fields(bytes).into_iter().filter_map(wanted).collect()
}

fn first(bytes: &[u8], of: u64) -> Option<&[u8]> {
    all(bytes, of).first().copied()
}

fn string(bytes: &[u8], of: u64) -> Option<String> {
    first(bytes, of).map(|text| String::from_utf8(text.to_vec()).unwrap())
}

/// When the host was started, ns since 1970, by the first packet of a trace.
pub(crate) fn boot_ns(trace: &[u8]) -> Option<u64> {
    let snapshot = first(first(trace, 1)?, 6)?;
    let clocks: BTreeMap<u64, u64> = all(snapshot, 1)
        .into_iter()
        .filter_map(|clock| Some((number(clock, 1)?, number(clock, 2)?)))
        .collect();
    Some(clocks.get(&1)? - clocks.get(&6)?)
}

/// `export -f perfetto`. The numbers are those of Perfetto's `.proto` files.
pub(crate) fn perfetto(trace: &[u8], names: &Names) -> Facts {
    let mut facts = Facts::default();
    let (mut tracks, mut events) = (BTreeMap::<u64, (String, Option<u64>, u64)>::new(), BTreeMap::new());
    let mut categories = BTreeMap::new();
    for packet in all(trace, 1) {
        if let Some(interned) = first(packet, 12) {
            let texts = |of| {
                all(interned, of).into_iter().map(|one| (number(one, 1).unwrap(), string(one, 2).unwrap()))
            };
            categories.extend(texts(1));
            events.extend(texts(2));
        }
        if let Some(track) = first(packet, 60) {
            let thread = first(track, 4);
            let name = string(track, 2).or(thread.and_then(|thread| string(thread, 5))).unwrap_or_default();
            let tid = thread.and_then(|thread| number(thread, 2));
            tracks.insert(number(track, 1).unwrap(), (name, tid, number(track, 5).unwrap_or(0)));
        }
        let Some(event) = first(packet, 11).filter(|event| number(event, 9) == Some(1)) else { continue };
        // An argument that is true: the slice goes on.
        let is_open = all(event, 4).into_iter().any(|argument| number(argument, 2) == Some(1));
        let words =
            string(event, 23).or_else(|| events.get(&number(event, 10)?).cloned()).unwrap_or_default();
        let category = number(event, 3).and_then(|iid| categories.get(&iid).cloned()).unwrap_or_default();
        let mut track = number(event, 11).unwrap();
        if tracks[&track].0 == "overlapping" {
            track = tracks[&track].2;
        }
        let (name, tid, parent) = &tracks[&track];
        let group = tracks.get(parent).map_or("", |(name, ..)| name);
        let who = match tid {
            Some(tid) => Some(by_tid(*tid)),
            None if group.starts_with("tasks of ") => names.who(name).map(|(who, _)| who),
            None => None,
        };
        let begin_ns = number(packet, 8);
        if let Some(who) = who.filter(|_| is_open) {
            facts.name(&who, if tid.is_some() { name } else { Names::name_in(name) });
            open_slice(&mut facts, &who, &category, &words, begin_ns, names);
        }
    }
    facts
}
