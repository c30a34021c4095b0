//! Events with values, spans, captures and dumps in C and C++: what `read-rip` shows is what `printf` prints.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use librip_test_kit::reader;
pub(crate) use librip_test_kit::reader::json;
pub(crate) use librip_test_kit::run::named;
use librip_test_kit::victim::{Plan, tempdir};
use serde_json::Value;

use crate::{CLANG, CLANGPP, Compiler, GCC, GPP, STRICT, build, installed, line_of, package, tool};

const LONG: &str = "a text that is longer than the forty-eight bytes which an event keeps by value";

/// The program, by each compiler: in the oldest standard without optimisation, and in the newest one with it.
fn programs() -> &'static [PathBuf] {
    static BUILT: OnceLock<Vec<PathBuf>> = OnceLock::new();
    BUILT.get_or_init(build_all)
}

fn build_all() -> Vec<PathBuf> {
    let mut programs = Vec::new();
    for compiler in installed(&[GCC, GPP, CLANG, CLANGPP]) {
        let [oldest, .., newest] = compiler.standards else { panic!("{compiler:?}") };
        for (standard, level) in [(oldest, "-O0"), (newest, "-O2")] {
            // Formats of GNU and POSIX are tested too, so not `-pedantic`. `strict.c` is compiled with it.
            let flags = [&format!("-std={}", standard.replace("c99", "gnu99"))[..], level];
            let name = format!("events-{}-{standard}", compiler.name);
            programs.push(build(compiler, &["events.c"], &name, &flags));
        }
    }
    programs
}

/// The program by gcc alone.
fn program() -> &'static PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build(GCC, &["events.c"], "events", &["-O2"]))
}

pub(crate) fn plan(program: &Path, arguments: &[&str]) -> Plan {
    Plan::new(program, arguments).env("RIP_WORDS", "4096")
}

pub(crate) fn read(arguments: &[&str], ring: &Path) -> String {
    tool(Command::new(reader::program()).args(arguments).arg(ring))
}

pub(crate) fn texts(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["text"].as_str().unwrap_or_default()).collect()
}

#[test]
fn each_value_is_shown_as_printf_prints_it() {
    for program in programs() {
        let remains = plan(program, &["values"]).run();
        assert_eq!(remains.status.code(), Some(3), "{program:?}: {remains:?}");
        let (printed, _) = remains.stdout.split_once("that was printed\n").unwrap();
        let mut expected: Vec<String> = printed.lines().map(str::to_owned).collect();
        assert!(expected.len() > 20, "{printed}");
        expected.extend([
            format!("{}...", &LONG[..48]),
            vec![format!("{}...", &LONG[..18]); 8].join(" "),
            format!("{LONG}       idle|lit (null)"),
            "\u{fffd} no UTF-8".into(),
            "0x10 ".into(),
            "0x10 ".into(),
            "€".into(),
            "here".into(),
        ]);
        let events = json(&["log"], "event", &remains.ring_path());
        let found = texts(&events);
        assert_eq!(found[..expected.len()], expected, "{program:?}");
        let [evaluated, levels @ ..] = &events[expected.len()..] else { panic!("{program:?}: {found:?}") };
        // A function's arguments are evaluated in any order.
        let evaluated = evaluated["text"].as_str().unwrap();
        assert!(["evaluated 1 time and 2", "evaluated 2 time and 1"].contains(&evaluated), "{evaluated}");
        assert_eq!(texts(levels), ["finest", "finer 1", "strange", "failed: 13"]);
        let names: Vec<&Value> = levels.iter().map(|event| &event["level"]).collect();
        assert_eq!(names, ["trace", "debug", "warn", "error"]);
        assert_eq!((&events[0]["level"], &events[2]["syntax"]), (&"info".into(), &"printf".into()));
        assert_eq!(events[2]["format"], "%hhu %hu %u %lu %llu");
        assert_eq!((&events[6]["values"][0], &events[6]["values"][1]), (&true.into(), &false.into()));
        let raw: Vec<&Value> =
            events.iter().filter(|event| event["text"] == "raw! ra    42|43    |").collect();
        assert_eq!(raw.len(), 2);
        for event in raw {
            assert_eq!(
                event["values"],
                serde_json::json!(["raw!", 2, "ra", 5, 42, 6, 43]),
                "no byte more is read"
            );
        }
        // A human's log, and the history of the thread, use the same formatter.
        let ring = remains.ring_path();
        let line = line_of("events.c", "\"failed: %d\"");
        let log = read(&["log"], &ring);
        assert!(log.contains(&format!(" failed: 13  events.c:{line}\n")), "{program:?}: {log}");
        let history = read(&["-t", "-v"], &ring);
        assert!(history.contains("\"failed: 13\""), "{program:?}: {history}");
    }
}

#[test]
fn spans_that_are_open_at_the_death_are_known_with_their_values() {
    for program in programs() {
        let mut victim = plan(program, &["spans"]).start();
        victim.until("open");
        let live = json(&["spans"], "span", &victim.ring_path());
        let remains = victim.killed();
        let spans = json(&["spans"], "span", &remains.ring_path());
        assert_eq!(live, spans, "{program:?}: the same alive and dead");
        for (name, ended) in
            [("early", 3), ("depth", 3), ("outer", 1), ("inner", 1), ("unwound", 1), ("twice", 2)]
        {
            let span = named(&spans, name);
            assert_eq!(
                (&span["ended"], &span["open"]),
                (&ended.into(), &Vec::<Value>::new().into()),
                "{span}"
            );
            assert!(span["max_ns"].is_u64(), "{span}");
        }
        for (name, value) in
            [("request", Value::from(4711)), ("query", "SELECT 1...".into()), ("name", LONG.into())]
        {
            let open = &named(&spans, name)["open"];
            assert_eq!((&open[0]["value"], &open[1]), (&value, &Value::Null), "{program:?}: {open}");
            assert!(open[0]["since_boottime_ns"].is_string(), "{open}");
        }
        let log = json(&["log"], "event", &remains.ring_path());
        let begins: Vec<Value> = log.into_iter().filter(|entry| entry["kind"] == "begin").collect();
        let found = texts(&begins);
        for text in ["early", "depth: 2 deep", "outer: 1 of two", "request: 14711", "query: SELECT 1"] {
            assert!(found.contains(&text), "{program:?}: {text:?} in {found:?}");
        }
    }
}

#[test]
fn spans_without_room_in_the_table_end_too() {
    let mut victim = plan(program(), &["crowded"]).start();
    victim.until("open");
    let open = |spans: &[Value]| named(spans, "nested")["open"].as_array().unwrap().len();
    assert_eq!(open(&json(&["spans"], "span", &victim.ring_path())), 16);
    victim.go_on();
    victim.until("closed");
    let spans = json(&["spans"], "span", &victim.ring_path());
    assert_eq!((open(&spans), &named(&spans, "nested")["ended"]), (0, &20.into()));
    victim.killed();
}

#[test]
fn a_span_that_ends_in_a_forked_child_stays_open_in_the_parent() {
    let mut victim = plan(program(), &["forked"]).start();
    let state = |ring: &Path| {
        let spans = json(&["spans"], "span", ring);
        let span = named(&spans, "across a fork");
        (span["ended"].as_u64().unwrap(), span["open"].as_array().unwrap().len())
    };
    victim.until("ended in the child");
    assert_eq!(state(&victim.ring_path()), (1, 1));
    victim.go_on();
    victim.until("ended");
    assert_eq!(state(&victim.ring_path()), (2, 0));
    victim.killed();
}

#[test]
fn captures_and_slow_cycles_are_kept_with_their_events() {
    for program in programs() {
        // The history is short.
        let mut victim = Plan::new(program, &["captures"]).env("RIP_WORDS", "64").start();
        victim.until("kept");
        let remains = victim.killed();
        let captures = json(&["captures"], "capture", &remains.ring_path());
        let [first, slow, last] = &captures[..] else { panic!("{program:?}: {captures:#?}") };
        let events = |capture: &Value| -> Vec<String> {
            let events = capture["events"].as_array().unwrap().iter();
            events.filter_map(|event| event["text"].as_str()).map(str::to_owned).collect()
        };
        assert_eq!(events(first), ["before 1", "kept a text"]);
        let [inside, took] = &events(slow)[..] else { panic!("{slow:#}") };
        assert_eq!(inside, "in a slow cycle");
        let took = took.strip_prefix("slow: a cycle took ").unwrap();
        let (took, limit) = took.split_once(" us, more than ").unwrap();
        assert!(took.parse::<u64>().unwrap() > 2000 && limit == "2000 us", "{took} {limit}");
        assert_eq!(events(last).last().unwrap(), "kept again");
        let log = json(&["log", "--level", "error"], "event", &remains.ring_path());
        assert_eq!(texts(&log), ["kept again"]);
    }
}

#[test]
fn the_kernel_says_what_a_slow_cycle_used() {
    let mut victim = Plan::new(program(), &["captures"]).env("RIP_USAGE", "counts").start();
    victim.until("kept");
    let captures = json(&["captures"], "capture", &victim.killed().ring_path());
    let slow = captures.iter().find(|capture| capture.get("slow_cycle").is_some()).unwrap();
    let texts: Vec<&str> =
        slow["events"].as_array().unwrap().iter().filter_map(|event| event["text"].as_str()).collect();
    assert!(texts[1].starts_with("slow: ") && texts[1].ends_with(" major page faults"), "{slow:#}");
    // It computes by the clock, so it may have been preempted as well.
    let (on_cpu_ns, took_ns) = (&slow["usage"]["on_cpu_ns"], &slow["usage"]["took_ns"]);
    assert!(on_cpu_ns.as_u64().unwrap() > 0 && took_ns.as_u64().unwrap() > 2_000_000, "{slow:#}");
    assert!(!slow["slow_cycle"]["causes"].as_array().unwrap().is_empty(), "{slow:#}");
}

#[test]
fn signal_handlers_record_at_any_instruction() {
    let remains = plan(program(), &["handlers"]).run();
    assert_eq!(remains.status.code(), Some(3), "{remains:?}");
    let log = json(&["log", "--no-spans"], "event", &remains.ring_path());
    let mut last = None;
    let (mut inside, mut outside) = (0, 0);
    for text in texts(&log) {
        if text == "11 in the handler by value" {
            inside += 1;
            continue;
        }
        let step: u64 =
            text.strip_suffix(" outside also by value").unwrap_or_else(|| panic!("{text}")).parse().unwrap();
        assert!(last.is_none_or(|last| step == last + 1), "{last:?}, {step}");
        last = Some(step);
        outside += 1;
    }
    assert!(inside > 0 && outside > 0, "{inside}, {outside}");
    let spans = json(&["spans"], "span", &remains.ring_path());
    assert!(spans.iter().all(|span| span["open"].as_array().unwrap().is_empty()), "{spans:#?}");
    assert!(named(&spans, "handler")["ended"].as_u64() > Some(0));
}

#[test]
fn a_dump_is_made_by_a_call_and_at_a_signal() {
    let directory = tempdir();
    let path = directory.path().join("dump");
    let remains = plan(program(), &["dumps", path.to_str().unwrap()]).run();
    assert_eq!(remains.status.code(), Some(3), "{remains:?}");
    assert_eq!(remains.stdout, "1 1 1\n0\n0 1 1\n");
    let said = |path: &Path| json(&["log"], "event", path);
    assert_eq!(texts(&said(&path)), ["before the dump"]);
    assert_eq!(texts(&said(&path.with_extension("signal"))), ["before the dump", "after the dump"]);
    let all = ["before the dump", "after the dump", "after the signal"];
    assert_eq!(texts(&said(&remains.ring_path())), all);
}

/// Compiles a statement in a function that has an `int n` and a `const char *s`, and returns what the compiler says
/// against it.
pub(crate) fn refusal(compiler: Compiler, standard: &str, flags: &[&str], statement: &str) -> Option<String> {
    // Two tests do this at once.
    let scratch = tempdir();
    let source = scratch.path().join(if compiler.is_cpp { "refused.cc" } else { "refused.c" });
    let text = format!(
        "#include <librip.h>\nvoid f(int n, const char *s);\n\
         void f(int n, const char *s) {{ (void)n; (void)s; {statement} }}\n"
    );
    std::fs::write(&source, text).unwrap();
    let mut command = Command::new(compiler.name);
    command.arg(format!("-std={standard}")).args(STRICT).args(flags).args(package("Cflags"));
    let output = command.args(["-c", "-o", "/dev/null"]).arg(&source).output().unwrap();
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
#[ignore = "compiles for long: scripts/test-builds"]
fn a_format_that_does_not_fit_its_values_is_refused() {
    const FORMAT: &str = "-Wformat";
    // Clang and gcc name warnings differently: `-Werror=format=`, `-Werror,-Wformat`.
    let is_of_format = |said: &str| said.contains(FORMAT) || said.contains("-Werror=format");
    for compiler in installed(&[GCC, GPP, CLANG, CLANGPP]) {
        let [oldest, .., newest] = compiler.standards else { panic!("{compiler:?}") };
        for (standard, flags) in [(oldest, &["-O0"][..]), (newest, &["-O2"]), (newest, &["-DRIP_DISABLE"])] {
            let refusal = |statement: &str| refusal(compiler, standard, flags, statement);
            let place = format!("{} {standard} {flags:?}", compiler.name);
            for wrong in [
                "RIP_EVENT(\"%d\", s);",
                "RIP_EVENT(\"%s\", n);",
                "RIP_EVENT(\"%d %d\", n);",
                "RIP_EVENT(\"%d\", n, n);",
                "RIP_EVENT(\"no place\", n);",
                "RIP_EVENT(\"%d\");",
                "RIP_EVENT(\"%ld\", n);",
                "RIP_EVENT(\"%d\", RIP_TEXT(\"text\"));",
                "RIP_EVENT_LEVEL(RIP_WARN, \"%f\", n);",
                "RIP_SPAN_WITH(\"span\", \"%s\", n);",
                "RIP_SPAN_END(RIP_SPAN_BEGIN_WITH(\"span\", \"%s\", n));",
                "RIP_CAPTURE(\"%s\", n);",
                "RIP_SLOW_CYCLE(\"100 % n\", 5);",
            ] {
                let said = refusal(wrong).unwrap_or_else(|| panic!("{place}: {wrong} is accepted"));
                assert!(is_of_format(&said), "{place}: {wrong}: {said}");
            }
            let eleven = format!("RIP_EVENT(\"{}\"{});", "%d".repeat(11), ", n".repeat(11));
            let said = refusal(&eleven).unwrap_or_else(|| panic!("{place}: eleven values are accepted"));
            assert!(said.contains("AN_EVENT_HAS_AT_MOST_TEN_VALUES"), "{place}: {said}");
            assert!(refusal("RIP_EVENT(s);").is_some(), "{place}: a format that is no literal is accepted");
            for right in [
                "RIP_EVENT(\"%d %s\", n, s);",
                "if (n) RIP_EVENT(\"%s\", RIP_TEXT(s)); else RIP_CAPTURE(\"%.*s\", n, s);",
                "RIP_SPAN(\"a\"); RIP_SPAN_WITH(\"b\", \"%d\", n); RIP_SLOW_CYCLE(\"100 %% n\", 5);",
            ] {
                assert_eq!(refusal(right), None, "{place}: {right}");
            }
        }
    }
}
