//! Programs that use `tracing` and `log`: what the bridge records of them, as `read-rip log` and `spans` show it.

#![allow(missing_docs, reason = "tests")]

use librip_test_kit::reader::{json, read};
use librip_test_kit::run::named;
use librip_test_kit::victim::{Plan, Remains, expect_same, torture};
use serde_json::{Value, json};

fn plan(way: &str) -> Plan {
    Plan::new(env!("CARGO_BIN_EXE_traced"), &[way]).env("RIP_WORDS", "2048")
}

/// What a victim leaves that is killed when it has said so.
fn killed(way: &str, said: &str) -> Remains {
    let mut victim = plan(way).start();
    victim.until(said);
    let remains = victim.killed();
    assert_eq!(remains.signal(), Some(9), "{remains:?}");
    remains
}

/// The log of a victim that ends by itself.
fn log_of(way: &str) -> Vec<Value> {
    let remains = plan(way).run();
    assert_eq!(remains.status.code(), Some(3), "{remains:?}");
    json(&["log"], "event", &remains.ring_path())
}

/// Each event's level or kind, and its text.
fn said(log: &[Value]) -> Vec<String> {
    let of = |entry: &Value| {
        let kind = if entry["kind"] == "event" { &entry["level"] } else { &entry["kind"] };
        format!("{} {}", kind.as_str().unwrap(), entry["text"].as_str().unwrap())
    };
    log.iter().map(of).collect()
}

fn event<'l>(log: &'l [Value], text: &str) -> &'l Value {
    log.iter().find(|entry| entry["text"] == text).unwrap_or_else(|| panic!("{text}: {log:#?}"))
}

/// The line of the program's source with this text.
fn line_with(text: &str) -> usize {
    let source = include_str!("../src/bin/traced.rs");
    1 + source.lines().position(|line| line.contains(text)).unwrap_or_else(|| panic!("{text}"))
}

const LONG: &str = "a message that has no arguments, and is longer than anything that an event keeps by value: its \
                    text is a part of the format, which the ring has once, so nothing of it is cut, however long it \
                    is, and that is worth a test, because messages of this length do exist in programs";

#[test]
fn events_of_a_killed_program_have_their_fields_with_their_types() {
    let remains = killed("events", "done");
    let log = json(&["log"], "event", &remains.ring_path());
    let digits = "0123456789".repeat(40);
    let wanted = [
        "trace finest".to_owned(),
        "debug typed unsigned=255 large=18446744073709551615 signed=-9223372036854775808 truth=true float=1.5".into(),
        format!("info {LONG}"),
        "info braces {} in a literal round=0".into(),
        "info braces {} in a literal round=1".into(),
        "info braces {} in a literal round=2".into(),
        "warn first".into(),
        "warn second".into(),
        "warn first".into(),
        "warn a third one".into(),
        "error cannot open \"/etc/passwd\": permission denied code=13".into(),
        format!(
            "info {}/{}... text={}... debug=Disk {{ name: \"sda\" }}",
            &digits[..200],
            &digits[..39],
            &digits[..48]
        ),
        "info eleven a=1 b=2 c=3 d=4 e=5 f=6 g=7 h=8 i=9 (not recorded: j, k)".into(),
        "info optional missing=(none) given=1".into(),
        "info custom: of a target type=raw".into(),
        "warn alone=only a field".into(),
        "info other types wide=340282366920938463463374607431768211455 bytes=[01 02]".into(),
        "debug formatting inner=true".into(),
        "info outer value=talkative".into(),
        "info after a panic value=half (its Debug panicked)".into(),
        "info {escaped} half (its Debug panicked)".into(),
    ];
    assert_eq!(said(&log), wanted);
    // A message without arguments is no value.
    assert_eq!(
        event(&log, &wanted[1][6..])["values"],
        json!([255, u64::MAX.to_string(), i64::MIN.to_string(), true, 1.5])
    );
    let third = event(&log, "a third one");
    assert_eq!((&third["values"], &third["format"]), (&json!(["a third one"]), &json!("{}")));
    for (text, source) in [("finest", "trace!(\"finest\")"), ("a third one", "warn!(\"{}\", name)")] {
        let entry = event(&log, text);
        assert!(entry["file"].as_str().unwrap().ends_with("src/bin/traced.rs"), "{entry}");
        assert_eq!(entry["line"], line_with(source), "{entry}");
    }
    let (out, errors) = read(&["log", "--level", "error"], &remains.ring_path());
    let wanted = format!("code=13  traced.rs:{}", line_with("cannot open"));
    assert!(out.lines().any(|line| line.ends_with(&wanted)), "{out}\n{errors}");
    assert!(!out.contains("finest"), "{out}");
}

#[test]
fn histories_of_threads_have_the_places_of_events() {
    let remains = killed("events", "done");
    let (out, _) = read(&["-t"], &remains.ring_path());
    let last = format!("}}traced.rs:{}", line_with("{{escaped}}"));
    assert!(out.trim_end().ends_with(&last), "{out}");
    assert!(!out.contains('?') && !out.contains("unknown"), "{out}");
}

#[test]
fn an_event_without_room_for_its_texts_cuts_its_message_first_and_then_all() {
    let mut victim = plan("narrow").env("RIP_WORDS", "64").start();
    // 64 words are the shape, the PC, the time, and 61 of values: five texts of 9 words, and 16 of the message. Seven
    // texts have no room beside a message of 48 bytes.
    for (said, places, message, text) in [("few", "abcde", 90, 48), ("many", "abcdefg", 18, 18)] {
        victim.until(said);
        let log = json(&["log"], "event", &victim.ring_path());
        let cut = |len: usize| "0123456789".repeat(10)[..len].to_owned() + "...";
        let fields: String = places.chars().map(|place| format!(" {place}={}", cut(text))).collect();
        assert_eq!(log.last().unwrap()["text"], cut(message) + &fields);
        victim.go_on();
    }
    assert_eq!(victim.wait().status.code(), Some(3));
}

#[test]
fn each_time_that_a_thread_enters_a_span_is_one() {
    let remains = killed("spans", "open");
    let log = json(&["log"], "event", &remains.ring_path());
    let said = said(&log);
    let wanted = [
        "begin descend: name=ladder depth=2",
        "begin descend: name=ladder depth=1",
        "begin descend: name=ladder depth=0",
        "end descend",
        "end descend",
        "end descend",
        "begin reentered: round=0 kept=as it was",
        "debug inside",
        "end reentered",
        "begin reentered: round=1 kept=as it was",
        "debug inside",
        "end reentered",
        "begin reentered: round=2 kept=as it was",
        "debug inside",
        "end reentered",
        "begin first",
        "begin second",
        "end first",
        "end second",
    ];
    assert_eq!(said[..wanted.len()], wanted);
    let spans = json(&["spans"], "span", &remains.ring_path());
    for (name, ended) in [("descend", 3), ("reentered", 3), ("first", 1), ("second", 1)] {
        let span = named(&spans, name);
        assert_eq!((&span["ended"], &span["open"]), (&ended.into(), &json!([])), "{span}");
        assert!(span["max_ns"].is_u64(), "{span}");
    }
    // Two threads are in one span.
    for (name, values) in [("shared", [4711, 4711]), ("own", [0, 1])] {
        let open = named(&spans, name)["open"].as_array().unwrap();
        let mut threads: Vec<_> = open
            .iter()
            .map(|open| (open["thread"]["name"].as_str().unwrap(), open["value"].as_u64()))
            .collect();
        threads.sort_unstable();
        assert_eq!(threads, [("t0", Some(values[0])), ("t1", Some(values[1]))], "{name}");
        assert!(open.iter().all(|open| open["since_boottime_ns"].is_string()), "{open:?}");
    }
    assert_eq!(named(&spans, "shared")["line"], line_with("info_span!(\"shared\""));
}

#[test]
fn spans_beyond_the_room_of_a_thread_are_said_to_be_missing() {
    let remains = killed("deep", "open");
    let log = json(&["log"], "event", &remains.ring_path());
    let count = |kind: &str, begin: &str| {
        let is_one =
            |entry: &&Value| entry["kind"] == kind && entry["text"].as_str().unwrap().starts_with(begin);
        log.iter().filter(is_one).count()
    };
    assert_eq!((count("begin", "deep"), count("end", "deep")), (64, 64));
    assert_eq!(count("event", "a span is not recorded: this thread is in 64 others"), 6);
    // The room is free again, also in the table of open spans.
    let spans = json(&["spans"], "span", &remains.ring_path());
    let open: Vec<_> =
        spans.iter().filter(|span| span["open"] != json!([])).map(|span| &span["name"]).collect();
    assert_eq!(open, ["again"], "{spans:#?}");
}

#[test]
fn records_of_log_have_their_place_and_their_level() {
    let remains = killed("log", "done");
    let log = json(&["log"], "event", &remains.ring_path());
    let rounds = (0..3).flat_map(|round| {
        let cut = format!("round {round}: {}", "x".repeat(300));
        ["info a literal {}".to_owned(), format!("warn {}...", &cut[..240])]
    });
    let wanted: Vec<String> = ["trace finest".to_owned()]
        .into_iter()
        .chain(rounds)
        .chain([format!("error custom: {LONG}"), "debug half (its Debug panicked)".to_owned()])
        .collect();
    assert_eq!(said(&log), wanted);
    for (text, source) in [("finest", "log::trace!(\"finest\")"), ("a literal {}", "log::info!(\"a literal")]
    {
        let entry = event(&log, text);
        assert_eq!((&entry["line"], &entry["values"]), (&line_with(source).into(), &Value::Null), "{entry}");
    }
}

#[test]
fn another_logger_gets_each_record_too() {
    let remains = plan("beside").run();
    assert_eq!(remains.stdout, "WARN both\nenabled true\nflushed\n");
    let log = json(&["log"], "event", &remains.ring_path());
    assert_eq!(said(&log), ["warn both", "info recorded only"]);
}

#[test]
fn a_forked_child_has_the_callsites_of_its_parent_and_its_own() {
    let log = log_of("forked");
    let parent = log[0]["thread"]["pid"].as_u64().unwrap();
    let said: Vec<(bool, &str)> = log
        .iter()
        .map(|entry| (entry["thread"]["pid"].as_u64() == Some(parent), entry["text"].as_str().unwrap()))
        .collect();
    let wanted = [
        (true, "before the fork"),
        (true, "in both who=neither yet"),
        (false, "in both who=child"),
        (false, "only in the child"),
        (false, "late: logged in the child"),
        (true, "in both who=parent"),
        (true, "only in the parent"),
        (true, "late: logged in the parent"),
    ];
    assert_eq!(said, wanted);
    assert_eq!((&log[4]["line"], &log[7]["line"]), (&1001.into(), &1002.into()));
}

#[test]
fn threads_that_use_a_callsite_for_the_first_time_at_once_agree_on_it() {
    let log = log_of("race");
    for site in 0..30 {
        let of_site = format!(" site={site}");
        let mut texts: Vec<&str> =
            log.iter().filter_map(|entry| entry["text"].as_str()?.strip_suffix(&of_site)).collect();
        texts.sort_unstable();
        assert_eq!(texts, ["one", "three", "two", "zero"], "{of_site}");
    }
}

#[test]
fn a_reader_of_a_living_program_knows_the_callsites_of_all_events_that_it_reads() {
    let mut events = 0;
    for _ in 0..6 * torture() {
        let mut victim = plan("growing").start();
        victim.until("growing");
        for thread in json(&["-t"], "thread", &victim.ring_path()) {
            for event in thread["events"].as_array().unwrap() {
                assert_eq!(event["location"]["file"], "growing.rs", "{event}");
                events += 1;
            }
        }
        victim.killed();
    }
    assert!(events > 0);
}

#[test]
fn what_has_no_room_in_the_ring_is_said_to_be_missing() {
    let remains = plan("crowded").run();
    assert_eq!(remains.status.code(), Some(3), "{remains:?}");
    let log = json(&["log"], "event", &remains.ring_path());
    let said = said(&log);
    assert!(
        said.contains(&"warn an event of crowded.rs:40000 is not recorded: no room for its site".to_owned()),
        "{said:#?}"
    );
    let place = format!("traced.rs:{}", line_with("info!(\"after them\")"));
    assert!(
        said.iter().any(|said| said.starts_with("warn an event of ") && said.contains(&place)),
        "{said:#?}"
    );
    let entered = "begin a span that is not recorded is entered: too late: no room for its site";
    assert!(said.contains(&entered.to_owned()), "{said:#?}");
    // Callsites of before are recorded as ever.
    assert_eq!(said.last().unwrap(), "warn first of all: once");
    let (out, _) = read(&["info"], &remains.ring_path());
    assert!(out.contains("of modules, sites or texts did not fit in the ring"), "{out}");
}

#[test]
fn a_program_without_a_ring_runs_as_ever() {
    for way in ["events", "spans", "deep", "log", "beside", "forked", "race"] {
        let pauses = ["events", "spans", "deep", "log"].contains(&way);
        let run = |plan: Plan| {
            let mut victim = plan.start();
            if pauses {
                victim.go_on();
            }
            victim.wait()
        };
        let with = run(plan(way));
        let without = run(plan(way).env("RIP_RING", "off"));
        assert!(with.has_ring() && !without.has_ring(), "{way}");
        expect_same(&with, &without);
        assert_eq!(without.status.code(), Some(3), "{way}");
    }
}

#[test]
fn a_filter_of_all_layers_that_lets_nothing_through_is_named() {
    let remains = killed("filtered", "done");
    for command in ["log", "spans"] {
        let (out, errors) = read(&[command], &remains.ring_path());
        assert!(!out.contains("is not given"), "{out}");
        let said = "a filter that is added to the registry is one of all its layers";
        assert!(errors.contains(said) && errors.contains(".with_filter("), "{command}: {errors}");
    }
    assert_eq!(said(&log_of("filtered apart")), ["info is given to this layer"]);
}
