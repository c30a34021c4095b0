//! Channels in C and C++: rare events stay, what is switched off costs no value, and Rust shares them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use librip_test_kit::reader;
use librip_test_kit::victim::Plan;

use crate::events::{json, named, plan, read, refusal, texts};
use crate::parts::with_c;
use crate::{CLANG, CLANGPP, GCC, GPP, build, installed, run, tool};

/// The program, by each compiler: in the oldest standard without optimisation, and in the newest one with it.
fn programs() -> &'static [PathBuf] {
    static BUILT: OnceLock<Vec<PathBuf>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let mut programs = Vec::new();
        for compiler in installed(&[GCC, GPP, CLANG, CLANGPP]) {
            let [oldest, .., newest] = compiler.standards else { panic!("{compiler:?}") };
            for (standard, level) in [(oldest, "-O0"), (newest, "-O2")] {
                let flags = [&format!("-std={}", standard.replace("c99", "gnu99"))[..], level];
                let name = format!("channels-{}-{standard}", compiler.name);
                programs.push(build(compiler, &["channels.c", "channels_part.c"], &name, &flags));
            }
        }
        programs
    })
}

/// The program by gcc alone.
fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build(GCC, &["channels.c", "channels_part.c"], "channels", &["-O2"]))
}

/// What the events of a channel say, in order. A span is its name.
fn said(ring: &Path, channel: &str) -> Vec<String> {
    let events = json(&["log", "--channel", channel], "event", ring);
    texts(&events).into_iter().map(str::to_owned).collect()
}

fn set(ring: &Path, settings: &[&str]) {
    tool(Command::new(reader::program()).arg("set").arg(ring).args(settings));
}

#[test]
fn rare_events_are_there_after_ten_million_marks_and_a_kill() {
    for program in programs() {
        let mut victim = Plan::new(program, &["rare"]).env("RIP_WORDS", "64").start();
        victim.until("done");
        let live = said(&victim.ring_path(), "RARE");
        let remains = victim.killed();
        let ring = remains.ring_path();
        let rare: Vec<String> = (0..20).map(|number| format!("rare {number}")).collect();
        let around = ["short", "in another file 1", "short"].map(str::to_owned);
        let expected = [&["serving: port 8080".to_owned()][..], &rare, &around].concat();
        assert_eq!(live, expected, "{program:?}");
        assert_eq!(said(&ring, "RARE"), expected, "{program:?}: the same alive and dead");
        // Sixteen words hold four events of four words.
        assert_eq!(said(&ring, "SMALL"), ["small 16", "small 17", "small 18", "small 19"]);
        let all = json(&["log"], "event", &ring);
        let others: Vec<_> = all.iter().filter(|entry| entry["channel"].is_null()).cloned().collect();
        assert_eq!(texts(&others), ["the last"], "{program:?}: the marks have replaced the others");
        let spans = json(&["spans"], "span", &ring);
        assert_eq!(named(&spans, "serving")["open"][0]["value"], 8080, "{program:?}");
        assert_eq!(
            (&named(&spans, "short")["ended"], &named(&spans, "short")["open"][0]),
            (&1.into(), &().into())
        );
        let info = read(&["info"], &ring);
        assert!(
            info.contains("\nchannel     RARE, 256 words for each thread, records: all\n"),
            "{program:?}: {info}"
        );
        assert_eq!(info.matches("\nchannel ").count(), 2, "{program:?}: one for both files: {info}");
    }
}

#[test]
fn events_that_are_switched_off_evaluate_nothing() {
    for program in programs() {
        let mut victim = plan(program, &["switched"]).start();
        let ring = victim.ring_path();
        let rounds: [(u32, &[&str]); 5] = [
            (3, &["RARE=off"]),
            (0, &["RARE=error", "SMALL=off"]),
            (1, &["SMALL=all", "RARE=info"]),
            (2, &["RARE=all"]),
            (3, &[]),
        ];
        for (round, (evaluated, settings)) in rounds.into_iter().enumerate() {
            assert_eq!(victim.line(), format!("round {round} evaluated {evaluated}"), "{program:?}");
            if !settings.is_empty() {
                set(&ring, settings);
                victim.go_on();
            }
        }
        assert_eq!(
            said(&ring, "RARE"),
            [
                "debug 0", "error 0", "span: 0", "span", "error 2", "error 3", "span: 3", "span", "debug 4",
                "error 4", "span: 4", "span"
            ],
            "{program:?}"
        );
        assert_eq!(said(&ring, "SMALL"), ["small 0", "small 1", "small 3", "small 4"], "{program:?}");
        victim.killed();
    }
}

#[test]
fn a_variable_that_is_first_used_when_its_channel_is_off_obeys() {
    let mut victim = plan(program(), &["late"]).start();
    victim.until("recorded");
    set(&victim.ring_path(), &["RARE=off"]);
    victim.go_on();
    victim.until("done");
    assert_eq!(said(&victim.ring_path(), "RARE"), ["in this file"]);
    victim.killed();
}

#[test]
fn the_words_of_a_thread_that_has_ended_are_not_those_of_the_next_one() {
    // The main thread has recorded nothing, and takes no slot.
    let mut victim = plan(program(), &["threads"]).env("RIP_SLOTS", "1").start();
    victim.until("started");
    assert_eq!(said(&victim.ring_path(), "SMALL"), [""; 0]);
    victim.go_on();
    victim.until("recorded");
    let entries = json(&["log", "--channel", "SMALL"], "event", &victim.ring_path());
    assert_eq!(texts(&entries), ["from the last"]);
    // The history's sequences go on where those of the threads before ended: each recorded three events of more than
    // four words.
    assert!(entries[0]["sequence"].as_u64().unwrap() > 50 * 3 * 4, "{entries:#?}");
    victim.killed();
}

#[test]
fn a_forked_child_records_in_the_channel_and_leaves_the_parents_span_open() {
    let mut victim = plan(program(), &["forked"]).start();
    let state = |ring: &Path| {
        let spans = json(&["spans"], "span", ring);
        let span = named(&spans, "across a fork");
        (span["ended"].as_u64().unwrap(), span["open"].as_array().unwrap().len())
    };
    victim.until("open");
    let ring = victim.ring_path();
    let events: Vec<String> =
        said(&ring, "RARE").into_iter().filter(|text| text != "across a fork").collect();
    assert_eq!(events, ["in the parent", "in the child", "in the parent again"]);
    // The child has ended a span of its parent. It stays open in the parent.
    assert_eq!(state(&ring), (1, 1));
    victim.go_on();
    victim.until("ended");
    assert_eq!(state(&ring), (2, 0));
    assert_eq!(said(&ring, "RARE").last().unwrap(), "across a fork", "the parent's end is in the channel");
    victim.killed();
}

#[test]
fn signal_handlers_record_in_the_channel_at_any_instruction() {
    let remains = plan(program(), &["handlers"]).run();
    assert_eq!(remains.status.code(), Some(3), "{remains:?}");
    let texts = said(&remains.ring_path(), "RARE");
    let numbers = |kind: &str| -> Vec<u64> {
        let of_kind = texts.iter().filter_map(|text| text.strip_prefix(kind));
        of_kind.map(|rest| rest.trim_end_matches(" by value").parse().unwrap()).collect()
    };
    let (inside, outside) = (numbers("handled "), numbers("outside "));
    assert_eq!(inside.len() + outside.len(), texts.len(), "{texts:?}");
    for numbers in [inside, outside] {
        assert!(!numbers.is_empty(), "{texts:?}");
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{texts:?}");
    }
}

#[test]
fn a_channel_of_rust_and_one_of_c_with_one_name_and_length_are_one() {
    let remains = run(&with_c("mixed", "mixed", &["-O"]), &[]);
    let ring = remains.ring_path();
    assert_eq!(said(&ring, "SHARED"), ["rust 0", "c 0", "rust 1", "c 1"]);
    let info = read(&["info"], &ring);
    // Another number of words is another channel.
    for line in ["SHARED, 64 words", "LONGER, 64 words", "LONGER, 128 words"] {
        assert_eq!(info.matches(&format!("\nchannel     {line}")).count(), 1, "{info}");
    }
}

#[test]
#[ignore = "compiles for long: scripts/test-builds"]
fn a_channel_with_a_wrong_number_of_words_or_name_is_refused() {
    let name = "A".repeat(41);
    for compiler in installed(&[GCC, GPP, CLANG, CLANGPP]) {
        for standard in compiler.standards {
            for flags in [&[][..], &["-DRIP_DISABLE"]] {
                let refusal = |statement: &str| refusal(compiler, standard, flags, statement);
                let place = format!("{} {standard} {flags:?}", compiler.name);
                for (wrong, words, message) in [
                    ("C", "15", "channel has 16 to 16384 words"),
                    ("C", "16385", "channel has 16 to 16384 words"),
                    ("C", "0", "channel has 16 to 16384 words"),
                    ("C", "-256", "channel has 16 to 16384 words"),
                    ("C", "0x100000100", "channel has 16 to 16384 words"),
                    (&name, "256", "name of a channel has 1 to 40 bytes"),
                ] {
                    let statement = format!("RIP_CHANNEL({wrong}, {words});");
                    let said =
                        refusal(&statement).unwrap_or_else(|| panic!("{place}: {statement} is accepted"));
                    assert!(said.replace('_', " ").contains(message), "{place}: {statement}: {said}");
                }
                assert!(refusal("RIP_CHANNEL(C, n);").is_some(), "{place}: words that are no constant");
                for wrong in
                    ["RIP_EVENT_IN(C, RIP_INFO, \"%s\", n);", "RIP_SPAN_IN_WITH(C, \"span\", \"%s\", n);"]
                {
                    assert!(refusal(&format!("RIP_CHANNEL(C, 16); {wrong}")).is_some(), "{place}: {wrong}");
                }
                for (name, words) in [("C", "16"), (&name[1..], "16384"), ("C", "5 * 200u")] {
                    let right = format!(
                        "RIP_CHANNEL({name}, {words}); RIP_EVENT_IN({name}, RIP_INFO, \"%d %s\", n, s); \
                         RIP_SPAN_IN_WITH({name}, \"span\", \"%d\", n); RIP_SPAN_IN({name}, \"span\");"
                    );
                    assert_eq!(refusal(&right), None, "{place}: {right}");
                }
            }
        }
    }
}
