//! Each type of value, in formats that show it.

use serde_json::{Value, json};

use crate::{json, plan, read};

/// The events of the victim's `values`, in the words of the standard library.
fn expected() -> Vec<String> {
    let long = "a text that is longer than the forty-eight bytes which an event keeps by value";
    vec![
        "nothing".into(),
        format!("{} {} {}", 255u8, u16::MAX, u32::MAX),
        format!("{} {} {} {}", i8::MIN, i16::MIN, i32::MIN, i64::MIN),
        format!("{:x} {:#b} {:>4} {:<4}|{:^5}|{:04}", -1i8, 5u8, 7, 8, 9, -3i32),
        format!("{} {} {}", u64::MAX, usize::MAX, isize::MIN),
        format!("{} {} {:?} {:.2}", 0.1f32, 0.1f64, f64::NAN, -1.005f64),
        format!("{} {:?} {} {:?}", true, false, 'ß', '\n'),
        format!("{:p}", std::ptr::without_provenance::<u8>(0x10)),
        format!("{} {:?}", "text", "quoted \"text\""),
        format!("{}...", &long[..48]),
        vec![format!("{}...", &long[..18]); 8].join(" "),
        format!("{} {:?}", long, "short"),
        "7 7 8".into(),
        "Idle Busy  Stopped|".into(),
        "sda \"sdb\" 7".into(),
        "{} braces 100 %".into(),
        "0 1 2 3 4 5 6 7 8 9".into(),
        "ünïcode größe".into(),
        "finest".into(),
        "failed: 13".into(),
        "\x1b[31m\x1b]0;title\x07".into(),
        "evaluated 1 time".into(),
    ]
}

#[test]
fn each_value_is_shown_as_the_standard_library_shows_it() {
    let remains = plan(&["values"]).run();
    assert_eq!(remains.status.code(), Some(3), "{remains:?}");
    let events = json(&["log"], "event", &remains.ring_path());
    let texts: Vec<&str> = events.iter().filter_map(|event| event["text"].as_str()).collect();
    assert_eq!(texts, expected());
    let values = |index: usize| events[index]["values"].clone();
    assert_eq!(values(1), json!([255, 65535, 4_294_967_295u32]));
    assert_eq!(values(4), json!(["18446744073709551615", "18446744073709551615", "-9223372036854775808"]));
    assert_eq!(values(6), json!([true, false, "ß", "\n"]));
    let levels: Vec<&Value> = events[17..20].iter().map(|event| &event["level"]).collect();
    assert_eq!(levels, ["info", "trace", "error"]);
}

#[test]
fn a_log_has_times_threads_and_places_and_cannot_harm_a_terminal() {
    let remains = plan(&["values"]).run();
    let ring = remains.ring_path();
    let (out, errors) = read(&["log", "--color", "never"], &ring);
    assert!(errors.ends_with("0 older ones were overwritten.\n"), "{errors}");
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].ends_with(", times in UTC"), "{out}");
    assert_eq!(lines.len(), 1 + expected().len(), "{out}");
    let form =
        regex::Regex::new(r"^\d\d:\d\d:\d\d\.\d{6} info   victim\[\d+\] nothing  events\.rs:\d+$").unwrap();
    assert!(form.is_match(lines[1]), "{}", lines[1]);
    assert!(out.contains(r"\u{1b}[31m\u{1b}]0;title\u{7}") && !out.contains('\x1b'), "{out}");
    let warnings = json(&["log", "--level", "warn"], "event", &ring);
    assert_eq!(warnings.iter().map(|event| &event["text"]).collect::<Vec<_>>(), ["failed: 13"]);
    let matching = json(&["log", "-m", "gr.ße"], "event", &ring);
    assert_eq!(matching.len(), 1);
    assert_eq!(json(&["log", "--last", "1h"], "event", &ring).len(), expected().len());
    assert_eq!(json(&["log", "--since", "2100-01-01T00:00:00Z"], "event", &ring), [Value::Null; 0]);
    assert_eq!(json(&["log", "--until", "2001-01-01T00:00:00Z"], "event", &ring), [Value::Null; 0]);
}

#[test]
fn without_a_clock_events_have_no_times_and_keep_the_order_of_their_thread() {
    let remains = plan(&["values"]).env("RIP_CLOCK", "off").run();
    let ring = remains.ring_path();
    let events = json(&["log"], "event", &ring);
    let texts: Vec<&str> = events.iter().filter_map(|event| event["text"].as_str()).collect();
    assert_eq!(texts, expected());
    assert!(events.iter().all(|event| event.get("boottime_ns").is_none()));
    let (out, _) = read(&["log"], &ring);
    assert!(out.lines().all(|line| line.starts_with("--:--:--.------ ")), "{out}");
}

#[test]
fn values_that_do_not_fit_are_left_out_and_said_to_be() {
    let mut victim = plan(&["crowded"]).env("RIP_WORDS", "16").start();
    victim.until("open");
    victim.go_on();
    let remains = victim.wait();
    let events = json(&["log", "--no-spans"], "event", &remains.ring_path());
    let [event] = events.as_slice() else { panic!("{events:?}") };
    let text = event["text"].as_str().unwrap();
    assert!(text.ends_with("(its values were not recorded: they need more words than a slot has)"), "{text}");
}

#[test]
fn a_ring_without_events_says_so() {
    let remains = librip_test_kit::victim::Plan::new(env!("CARGO_BIN_EXE_victim"), &["die", "abort"]).run();
    let (out, errors) = read(&["log"], &remains.ring_path());
    assert_eq!(out, "");
    assert!(errors.contains("The record has no events"), "{errors}");
}
