//! Traces in the Common Trace Format, read by babeltrace2.
//!
//! Not tested here: Trace Compass.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use regex::Regex;

use crate::support::exports::*;
use crate::support::fixture::{Fixture, Scratch};
use crate::support::locks::*;
use crate::support::run::{Outcome, finish, read_rip};
use crate::support::synth::{Held, Ring, Site, Slot};
use crate::tools;

/// The time since boot of the rings' first moment, s since 1970: they were made 55 s after the boot.
const BOOTED_S: u64 = 1_700_000_000 - 55;

static LINE: LazyLock<Regex> = LazyLock::new(|| {
    let common = "pid = (?<pid>\\d+), tid = (?<tid>\\d+), thread = \"(?<thread>.*?)\", \
                  task = (?<task>\\d+), channel = \"(?<channel>.*?)\", \
        function = \"(?<function>.*?)\", file = \"(?<file>.*?)\", \
        line = (?<line>\\d+), pc = 0x[0-9A-F]+, sequence = (?<sequence>\\d+), is_exact = (?<exact>[01]), \
        latest_time = (?<latest>\\d+)";
    Regex::new(&format!(
        "^\\[(?<s>\\d+)\\.(?<ns>\\d+)\\] .*?(?<name>\\w+): \\{{ {common} \\}}, \\{{ (?<fields>.*) \\}}$"
    ))
    .unwrap()
});

/// An event as babeltrace2 shows it.
#[derive(Debug)]
struct Shown {
    name: String,
    tid: u32,
    thread: String,
    task: u64,
    place: String,
    sequence: u64,
    /// ns since boot.
    at_ns: u64,
    is_exact: bool,
    latest_ns: u64,
    fields: String,
}

/// A folder that `read-rip export` has written.
struct Trace {
    scratch: Scratch,
    exported: Outcome,
}

impl Trace {
    fn of(ring: &Ring) -> Trace {
        Trace::of_file(&Fixture::of(ring).path)
    }

    fn of_file(ring: &Path) -> Trace {
        let scratch = Scratch::new();
        let target = scratch.path("trace");
        let exported =
            read_rip(["export", "-f", "ctf", "-o", target.to_str().unwrap(), ring.to_str().unwrap()]);
        Trace { scratch, exported }
    }

    fn path(&self) -> PathBuf {
        self.scratch.path("trace")
    }

    /// What babeltrace2 reads: the events, and how many words it says are missing. It must say nothing else.
    fn read(&self, mut babeltrace: Command) -> (Vec<Shown>, u64) {
        babeltrace.args(["--no-delta", "--clock-seconds", "--fields=trace:hostname"]).arg(self.path());
        let outcome = finish(babeltrace);
        assert_eq!(outcome.status, 0, "{}\n{}", outcome.stderr, self.exported.stderr);
        let discarded = outcome.stderr.lines().map(|line| {
            let count = line.strip_prefix("WARNING: Tracer discarded ").and_then(|rest| rest.split_once(' '));
            count.unwrap_or_else(|| panic!("{line}")).0.parse::<u64>().unwrap()
        });
        (outcome.stdout.lines().map(shown).collect(), discarded.sum())
    }
}

fn shown(line: &str) -> Shown {
    let found = LINE.captures(line).unwrap_or_else(|| panic!("{line}"));
    let number = |name: &str| found[name].parse::<u64>().unwrap();
    Shown {
        name: found["name"].to_owned(),
        tid: number("tid") as u32,
        thread: found["thread"].to_owned(),
        task: number("task"),
        place: format!("{}:{}", &found["file"], number("line")),
        sequence: number("sequence"),
        at_ns: (number("s") - BOOTED_S) * 1_000_000_000 + number("ns"),
        is_exact: &found["exact"] == "1",
        latest_ns: number("latest"),
        fields: found["fields"].to_owned(),
    }
}

fn babeltrace() -> Option<Command> {
    tools::program("babeltrace2", "babeltrace2")
}

/// `read-rip -t`: for each thread, the sequences of its events with their places.
fn histories(ring: &Path) -> BTreeMap<u32, Vec<(u64, String)>> {
    let out = read_rip(["-t", "--json", ring.to_str().unwrap()]).sound();
    let threads = out.data("thread");
    threads
        .iter()
        .map(|data| {
            let events = data["events"].as_array().unwrap().iter().map(|event| {
                let location = &event["location"];
                let place = format!("{}:{}", location["file"].as_str().unwrap(), location["line"]);
                (event["sequence"].as_u64().unwrap(), place)
            });
            (data["tid"].as_u64().unwrap() as u32, events.collect())
        })
        .collect()
}

#[test]
fn babeltrace2_reads_each_event_of_all_threads_and_what_was_overwritten() {
    assert_complete(500);
}

#[test]
#[ignore = "big: scripts/viewers --test"]
fn babeltrace2_reads_each_event_of_ten_thousand_threads() {
    assert_complete(10_000);
}

/// Exports a ring of so many threads, and compares what babeltrace2 reads with what `read-rip` shows.
fn assert_complete(threads: u32) {
    let Some(babeltrace) = babeltrace() else { return };
    // 64 words: one hold takes seven, so the oldest of each thread are gone.
    let thread = |tid: u32| {
        let lock = A + 64 * u64::from(tid % 100);
        let holds = 9 + tid as usize % 3;
        (0..holds).fold(Slot::thread("worker", tid), |slot, hold| {
            let from = 3.0 + hold as f64 * 0.5 + f64::from(tid) / 1e6;
            slot.event(TAKES, &[at(from), lock])
                .event(RELEASED, &[at(from + 0.25), at(from), lock])
                .marks([SNAP])
        })
    };
    let ring = ring().with_slots((1..=threads).map(thread));
    let fixture = Fixture::of(&ring);
    let truth = histories(&fixture.path);
    let trace = Trace::of_file(&fixture.path);
    let (events, discarded) = trace.read(babeltrace);
    trace.exported.sound();

    let overwritten = |shown: &&Shown| shown.name == "overwritten";
    let missing: u64 = (1..=u64::from(threads)).map(|tid| 8 * (9 + tid % 3) - 64).sum();
    let said = events
        .iter()
        .filter(overwritten)
        .map(|shown| shown.fields.strip_prefix("words = ").unwrap().parse::<u64>().unwrap());
    assert_eq!((said.sum::<u64>(), discarded), (missing, missing));
    let mut seen: BTreeMap<u32, Vec<(u64, String)>> = BTreeMap::new();
    let mut last_ns: BTreeMap<u32, u64> = BTreeMap::new();
    for shown in events.iter().filter(|shown| !overwritten(shown)) {
        seen.entry(shown.tid).or_default().push((shown.sequence, shown.place.clone()));
        let before = last_ns.insert(shown.tid, shown.at_ns);
        assert!(before.is_none_or(|before| before <= shown.at_ns), "{shown:?}");
    }
    assert!(truth.len() == threads as usize && seen == truth, "each event, in the order of its thread");
}

#[test]
fn an_event_says_its_lock_its_time_and_between_which_times_it_was() {
    let Some(babeltrace) = babeltrace() else { return };
    let slot = Slot { claimed_ns: 2_500_000_000, ..Slot::thread(NASTY, 7) }
        .marks([SNAP])
        .event(READ_WAIT, &[at(3.0), A])
        .event(RELEASED, &[at(6.0), at(4.0), A])
        .event(TRY_TAKES, &[B])
        .has(Held::new(HELD, B, TRY_TAKES));
    let mut ring = ring().with_slots([slot]);
    ring.lock_names = vec![(4321, A, NASTY.to_owned())];
    ring.host = NASTY.into();
    ring.sites.last_mut().unwrap().label = NASTY.to_owned();
    ring.sites.last_mut().unwrap().file = format!("/src/{NASTY}.rs");
    let (events, discarded) = Trace::of(&ring).read(babeltrace);
    assert_eq!(discarded, 0);
    // What babeltrace2 writes has no quotes around parts of strings: it escapes quotes and backslashes.
    let nasty = r#"a\"b\\\\n;x \\u{1b}[2J\\u{202e}</"#;
    let seen: Vec<_> = events.iter().map(|it| (&*it.name, it.at_ns, it.is_exact, it.latest_ns)).collect();
    let (third, sixth) = (3_000_000_000, 6_000_000_000);
    assert_eq!(
        seen,
        [
            ("snap", 2_500_000_000, false, third),
            ("lock_wait", third, true, third),
            ("lock_released", sixth, true, sixth),
            ("lock_acquire_begin", sixth, false, 0),
        ]
    );
    assert!(events.iter().all(|it| it.thread == nasty && it.tid == 7), "{events:#?}");
    assert_eq!(events[0].fields, format!("label = \"{nasty}\""));
    assert_eq!(events[0].place, format!("/src/{nasty}.rs:1"));
    let lock = "lock = 0x7F0000001000, lock_name";
    assert_eq!(
        events[1].fields,
        format!("{lock} = \"{nasty}\", condition = 0x0, is_shared = 1, is_try = 0, since_time = 0")
    );
    assert!(events[2].fields.ends_with("is_shared = 0, is_try = 0, since_time = 4000000000"), "{events:#?}");
    assert!(
        events[3]
            .fields
            .ends_with("lock_name = \"\", condition = 0x0, is_shared = 0, is_try = 1, since_time = 0")
    );
}

#[test]
fn an_event_of_a_task_says_which_one_and_that_of_a_thread_none() {
    let Some(babeltrace) = babeltrace() else { return };
    let (events, _) = Trace::of(&crew()).read(babeltrace);
    let whose: Vec<_> = events.iter().map(|it| (&*it.thread, it.task, it.tid)).collect();
    assert_eq!(whose, [("worker", 0, 10), ("server", 7, 7 + (1 << 31))]);
}

#[test]
fn what_threads_said_and_the_ends_of_their_spans_are_events() {
    let Some(babeltrace) = babeltrace() else { return };
    let (events, _) = Trace::of(&talk()).read(babeltrace);
    let said: Vec<_> =
        events.iter().filter(|it| it.tid == 5).map(|it| (&*it.name, it.at_ns, &*it.fields)).collect();
    let nasty = r#"a\"b\\\\n;x \\u{1b}[2J\\u{202e}</"#;
    assert_eq!(
        said,
        [
            ("event", 4_500_000_000, &*format!("level = \"info\", text = \"3 apples{nasty}\"")),
            ("span_end", 5_000_000_000, &*format!("text = \"sale{nasty}\", took_ns = 1000000000")),
        ]
    );
}

#[test]
fn times_that_somebody_invented_and_rings_without_events_are_valid_traces() {
    let Some(_) = babeltrace() else { return };
    let mut slot = Slot::thread("a", 1).event(TAKES, &[at(3.0), A]).marks([SNAP]);
    slot.claimed_ns = 1 << 63;
    let late = Ring { clock: Some((3, 1000, 1 << 63)), ..ring().with_slots([slot.clone()]) };
    let undated = Ring { clock: None, created_realtime_ns: 0, ..ring().with_slots([slot]) };
    for (ring, count) in [(late, 2), (undated, 2), (ring(), 0)] {
        let trace = Trace::of(&ring);
        let mut babeltrace = babeltrace().unwrap();
        babeltrace.arg(trace.path());
        let outcome = finish(babeltrace).sound();
        assert_eq!((outcome.stdout.lines().count(), &*outcome.stderr), (count, ""), "{:?}", trace.exported);
    }
}

#[test]
fn a_trace_replaces_nothing_and_leaves_nothing_if_it_cannot_be_written() {
    let scratch = Scratch::new();
    let fixture = Fixture::of(&ring().with_slots([Slot::thread("a", 1).marks([SNAP])]));
    let export = |target: &Path| {
        read_rip(["export", "-f", "ctf", "-o", target.to_str().unwrap(), fixture.path.to_str().unwrap()])
    };
    let earlier = scratch.file("earlier", b"kept");
    export(&earlier).fails_with("a file or folder of this name exists");
    export(&scratch.path("missing").join("trace")).fails_with("could not write");
    export(&scratch.path("trace")).sound();
    export(&scratch.path("trace")).fails_with("a file or folder of this name exists");
    read_rip(["export", "-f", "ctf", fixture.path.to_str().unwrap()]).fails_with("no folder is named");
    assert_eq!(std::fs::read(&earlier).unwrap(), b"kept");
    assert_eq!(std::fs::read_dir(scratch.0.path()).unwrap().count(), 2);
}

#[test]
fn many_sites_are_not_as_many_names() {
    let Some(babeltrace) = babeltrace() else { return };
    let mut ring = ring().with_slots([]);
    let site =
        |index: u64| Site { module: 0, ..Site::new(0x10_000 + 16 * index, &format!("src/{index}.rs"), 3) };
    ring.modules[0].end = 1 << 32;
    ring.sites = (0..100_000).map(site).collect();
    ring = ring.with_slots([Slot::thread("a", 1).marks([0x10_000 + 16 * 99_999, 0x10_000])]);
    let trace = Trace::of(&ring);
    let (events, _) = trace.read(babeltrace);
    let places: Vec<&str> = events.iter().map(|shown| &*shown.place).collect();
    assert_eq!(places, ["src/99999.rs:3", "src/0.rs:3"]);
    let metadata = std::fs::read_to_string(trace.path().join("metadata")).unwrap();
    assert!(metadata.starts_with("/* CTF 1.8 */") && metadata.len() < 20_000, "{}", metadata.len());
}
