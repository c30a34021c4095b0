//! Spans: how long they took, which are open at the instant of death, and whose.

use serde_json::Value;

use librip_test_kit::run::named;

use crate::{json, plan, plan_of, read};

#[test]
fn spans_that_were_open_at_the_death_are_known_with_their_values() {
    let mut victim = plan(&["spans"]).start();
    victim.until("open");
    let live = json(&["spans"], "span", &victim.ring_path());
    let remains = victim.killed();
    let spans = json(&["spans"], "span", &remains.ring_path());
    assert_eq!(live, spans, "the same alive and dead");
    for name in ["closure", "outer", "inner", "unwound"] {
        let span = named(&spans, name);
        assert_eq!((&span["ended"], &span["open"]), (&1.into(), &Vec::<Value>::new().into()), "{span}");
        assert!(span["p50_ns"].as_u64() == span["max_ns"].as_u64() && span["max_ns"].is_u64(), "{span}");
    }
    assert_eq!(
        (&named(&spans, "a_function")["ended"], &named(&spans, "by hand")["ended"]),
        (&3.into(), &2.into())
    );
    for (name, value) in [("request", Value::from(4711)), ("query", "SELECT 1...".into())] {
        let open = &named(&spans, name)["open"];
        assert_eq!(open[0]["value"], value, "{open}");
        assert!(open[0]["since_boottime_ns"].is_string() && open[1].is_null(), "{open}");
    }
    let text = named(&spans, "name")["open"][0]["value"].as_str().unwrap();
    assert!(text.starts_with("a text that is longer") && text.len() > 48, "{text}");
    let (out, _) = read(&["spans", "--color", "never"], &remains.ring_path());
    let request = out.lines().skip_while(|line| !line.starts_with("request  events.rs:")).nth(1);
    assert!(
        request.is_some_and(|line| line.starts_with("  open: victim[") && line.ends_with(", with 4711")),
        "{out}"
    );
    let only = json(&["spans", "-m", "^request$"], "span", &remains.ring_path());
    assert_eq!(only.len(), 1);
}

#[test]
fn the_kernel_says_what_spans_used_that_ask() {
    let mut victim =
        plan_of("captures", &["measured"]).env("RIP_USAGE", "delays").env("RIP_CLOCK", "all").start();
    victim.until("done");
    let live = json(&["spans"], "span", &victim.ring_path());
    let remains = victim.killed();
    let ring = remains.ring_path();
    let spans = json(&["spans"], "span", &ring);
    assert_eq!(live, spans, "the same alive and dead");
    let number = |name: &str, what: &str| {
        let usage = &named(&spans, name)["usage"];
        usage[what].as_u64().unwrap_or_else(|| panic!("{name}, {what}: {usage:#}"))
    };
    for name in ["nothing", "computes", "faults", "sleeps", "same"] {
        let span = named(&spans, name);
        let (took, max) = (number(name, "took_ns"), span["max_ns"].as_u64().unwrap());
        assert!(span["measured"] == 1 && took.abs_diff(max) < 5_000_000, "{span:#}");
        assert_eq!(span["longest"]["usage"], span["usage"], "{span:#}");
    }
    assert!(number("nothing", "minor_faults") < 100 && number("nothing", "on_cpu_ns") < 40_000_000);
    assert!(number("computes", "on_cpu_ns") >= 50_000_000 && number("computes", "minor_faults") < 1000);
    assert!(number("faults", "minor_faults") > 1000 && number("faults", "on_cpu_ns") >= 50_000_000);
    assert!(number("sleeps", "voluntary_switches") > 0 && number("sleeps", "on_cpu_ns") < 40_000_000);
    // What the cycle around it used is not its own, though both have one name.
    assert!(number("same", "on_cpu_ns") < 40_000_000, "{spans:#?}");
    let kept = json(&["captures"], "capture", &ring);
    let [cycle] = &kept[..] else { panic!("{kept:#?}") };
    assert!(cycle["usage"]["on_cpu_ns"].as_u64().unwrap() >= 50_000_000, "{cycle:#}");
    // The child that ended it was not asked for what its parent used.
    assert_eq!(
        (&named(&spans, "forked")["ended"], &named(&spans, "forked")["measured"]),
        (&2.into(), &1.into())
    );
    for name in ["not asked", "open"] {
        assert!(named(&spans, name).get("usage").is_none(), "{spans:#?}");
    }
    assert_eq!(named(&spans, "open")["open"][0]["value"], 7);
    let log = json(&["log"], "event", &ring);
    let end = log.iter().find(|entry| entry["kind"] == "end" && entry["span"] == "sleeps").unwrap();
    assert_eq!((&end["usage"], &end["channel"]), (&named(&spans, "sleeps")["usage"], &"MEASURED".into()));
    let (text, _) = read(&["spans", "-m", "computes", "--color", "never"], &ring);
    assert!(text.contains("\n  used in 1 span: ") && text.contains(" on a processor ("), "{text}");
    for format in ["chrome", "perfetto"] {
        let file = remains.dir().join(format);
        read(&["export", "-f", format, "-o", file.to_str().unwrap()], &ring);
        let bytes = std::fs::read(&file).unwrap();
        assert!(bytes.windows(16).any(|text| text == b" on a processor "), "{format}");
    }
}

#[test]
fn nothing_is_asked_for_spans_unless_the_operator_wants_it() {
    let mut victim = plan_of("captures", &["measured"]).start();
    victim.until("done");
    let remains = victim.killed();
    let spans = json(&["spans"], "span", &remains.ring_path());
    assert_eq!(named(&spans, "computes")["ended"], 1);
    assert!(spans.iter().all(|span| span.get("usage").is_none()), "{spans:#?}");
    let log = json(&["log", "--no-spans"], "event", &remains.ring_path());
    assert!(log.iter().all(|event| event["span"].is_null() && event["text"] != "computes"), "{log:#?}");
}

#[test]
fn the_longest_spans_are_shown_with_what_they_said_when_they_began() {
    let mut victim = plan(&["spans"]).start();
    victim.until("open");
    let remains = victim.killed();
    let all = json(&["spans", "--slow"], "event", &remains.ring_path());
    let took: Vec<u64> = all.iter().map(|end| end["took_ns"].as_u64().unwrap()).collect();
    assert!(took.len() == 9 && took.is_sorted_by(|one, next| one >= next), "{all:#?}");
    assert!(all.iter().all(|end| end["kind"] == "end"), "{all:#?}");
    let outer = all.iter().find(|end| end["span"] == "outer").unwrap();
    assert_eq!(
        (&outer["text"], &outer["values"]),
        (&"outer: 1 of two".into(), &Value::from_iter([1.into(), Value::from("two")]))
    );
    let first = json(&["spans", "--slow=2"], "event", &remains.ring_path());
    assert_eq!(first, all[..2]);
    let (out, _) = read(&["spans", "--slow", "-m", "outer", "--color", "never"], &remains.ring_path());
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines.len() == 2 && lines[1].contains(" outer: 1 of two, after "), "{out}");
}

#[test]
fn a_saved_copy_has_the_same_events_and_spans_also_of_a_busy_process() {
    let mut victim = plan(&["spans"]).start();
    victim.until("open");
    let saved = victim.dir().join("saved.gz");
    read(&["save", "-o", saved.to_str().unwrap()], &victim.ring_path());
    for (command, kind) in [("spans", "span"), ("log", "event")] {
        assert_eq!(json(&[command], kind, &saved), json(&[command], kind, &victim.ring_path()), "{command}");
    }
    victim.killed();
    // A copy has the words that did not change meanwhile: of a short history at full speed that is none.
    let mut busy = plan(&["storm", "1"]).env("RIP_WORDS", "8192").start();
    busy.until("ready");
    let saved = busy.dir().join("saved.gz");
    let mut has_events = false;
    while !has_events {
        read(&["save", "-o", saved.to_str().unwrap()], &busy.ring_path());
        has_events = crate::storm::steps(&saved).values().any(|steps| !steps.is_empty());
        let spans = json(&["spans"], "span", &saved);
        assert!(
            spans.iter().all(|span| ["outer", "inner"].contains(&span["name"].as_str().unwrap())),
            "{spans:#?}"
        );
    }
    busy.killed();
}

#[test]
fn the_log_has_the_beginnings_and_ends_of_spans_in_order() {
    let mut victim = plan(&["spans"]).start();
    victim.until("open");
    let remains = victim.killed();
    let entries = json(&["log"], "event", &remains.ring_path());
    let said: Vec<String> = entries
        .iter()
        .map(|entry| format!("{} {}", entry["kind"].as_str().unwrap(), entry["text"].as_str().unwrap()))
        .collect();
    let wanted = [
        "begin closure",
        "end closure",
        "begin a_function",
        "begin by hand: 1 deep",
        "begin a_function",
        "begin by hand: 0 deep",
        "begin a_function",
        "end a_function",
        "end by hand",
        "end a_function",
        "end by hand",
        "end a_function",
        "begin outer: 1 of two",
        "begin inner",
        "end outer",
        "end inner",
        "begin unwound",
        "end unwound",
        "begin request: 4711",
        "begin query: SELECT 1",
    ];
    assert_eq!(said[..wanted.len()], wanted);
}

#[test]
fn open_spans_survive_whatever_their_histories_lose_and_those_without_room_are_counted() {
    let mut victim = plan(&["crowded"]).env("RIP_WORDS", "16").start();
    victim.until("open");
    let remains = victim.killed();
    let spans = json(&["spans"], "span", &remains.ring_path());
    let open = named(&spans, "nested")["open"].as_array().unwrap();
    let values: Vec<u64> = open.iter().filter_map(|open| open["value"].as_u64()).collect();
    assert_eq!(values, (0..16).collect::<Vec<_>>());
    let (_, errors) = read(&["spans"], &remains.ring_path());
    assert!(errors.contains("4 spans were not entered as open: a thread has room for 16"), "{errors}");
}

#[test]
fn a_span_may_end_in_a_forked_child_and_in_its_parent() {
    let remains = plan(&["forked"]).run();
    assert_eq!(remains.status.code(), Some(3), "{remains:?}");
    let entries = json(&["log"], "event", &remains.ring_path());
    let count = |text: &str, kind: &str| {
        entries.iter().filter(|entry| entry["text"] == text && entry["kind"] == kind).count()
    };
    assert_eq!((count("across a fork", "begin"), count("across a fork", "end")), (1, 2), "{entries:#?}");
    assert_eq!((count("in the child", "event"), count("in the parent", "event")), (1, 1));
    let spans = json(&["spans"], "span", &remains.ring_path());
    assert_eq!(named(&spans, "across a fork")["open"].as_array().map(Vec::len), Some(0));
}
