//! Times of a real process, alive, dead and saved: those of the wall clock, and the bounds of its marks.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use librip_test_kit::victim::Victim;
use serde_json::Value;

use crate::{json, plan, read};

/// A moment of the wall clock, with time before and after it: the clock of the ring is not more exact than it was
/// measured.
fn moment(ring: &Path) -> SystemTime {
    let read_the_ring = || assert_eq!(json(&["-t"], "thread", ring).len(), 1);
    read_the_ring();
    let now = SystemTime::now();
    read_the_ring();
    now
}

fn utc(time: SystemTime) -> String {
    humantime::format_rfc3339_micros(time).to_string()
}

/// The labels and texts of the events of all threads.
fn events(arguments: &[&str], kind: &str, ring: &Path) -> Vec<String> {
    let label = |event: &Value| {
        let said = event["text"].as_str().or(event["location"]["label"].as_str());
        said.unwrap_or_else(|| panic!("{event:#}")).to_owned()
    };
    let threads = json(arguments, kind, ring);
    threads.iter().flat_map(|thread| thread["events"].as_array().unwrap()).map(label).collect()
}

/// The wall clock's times of the events in the log.
fn log_times(ring: &Path) -> Vec<SystemTime> {
    let ns = |event: &Value| event["realtime_ns"].as_str().unwrap().parse().unwrap();
    let events = json(&["log"], "event", ring);
    events.iter().map(|event| UNIX_EPOCH + Duration::from_nanos(ns(event))).collect()
}

fn saved(victim: &Victim, name: &str) -> PathBuf {
    let path = victim.dir().join(name);
    read(&["save", "-o", path.to_str().unwrap()], &victim.ring_path());
    path
}

#[test]
fn an_open_span_is_of_the_time_since_it_began() {
    let mut victim = plan(&["dated"]).start();
    victim.until("first");
    victim.go_on();
    victim.until("second");
    let before = moment(&victim.ring_path());
    victim.go_on();
    victim.until("third");
    let check = |ring: &Path| {
        let spans = |limits: &[&str]| json(&[&["spans"], limits].concat(), "span", ring).len();
        assert_eq!((spans(&["--until", &utc(before)]), spans(&["--since", &utc(before)])), (0, 1));
        let (_, errors) = read(&["spans", "--until", &utc(before)], ring);
        assert!(errors.contains("Nothing in the record matches."), "{errors}");
    };
    check(&victim.ring_path());
    let remains = victim.killed();
    check(&remains.ring_path());
}

#[test]
fn times_and_cuts_are_those_of_the_wall_clock_alive_dead_and_saved() {
    let before = SystemTime::now();
    let mut victim = plan(&["dated"]).start();
    victim.until("first");
    let ring = victim.ring_path();
    let between = moment(&ring);
    victim.go_on();
    victim.until("second");
    let after = moment(&ring);
    let live_copy = saved(&victim, "live.gz");
    let check = |ring: &Path| {
        let [first, second] = log_times(ring)[..] else { panic!("{}", ring.display()) };
        assert!(before < first && first < between, "{} {} {}", utc(before), utc(first), utc(between));
        assert!(between < second && second < after, "{} {} {}", utc(between), utc(second), utc(after));
        let (since, until) = (utc(between), utc(between));
        let cut = |limits: &[&str]| events(&[&["-t"], limits].concat(), "thread", ring);
        // The marks beside the moment may have been passed at it.
        assert_eq!(cut(&["--until", &until]), ["0", "first", "1", "2"]);
        assert_eq!(cut(&["--since", &since]), ["1", "2", "second", "3"]);
        assert_eq!(cut(&["--since", &since, "--until", &until]), ["1", "2"]);
        assert_eq!(cut(&["--since", &utc(after)]), ["3"]);
        let log = |limits: &[&str]| json(&[&["log"], limits].concat(), "event", ring).len();
        assert_eq!((log(&["--until", &until]), log(&["--since", &since])), (1, 1));
        // A capture is shown whole, in the time in which it was kept.
        let captures = |limits: &[&str]| events(&[&["captures"], limits].concat(), "capture", ring);
        assert_eq!(captures(&["--until", &until]), ["0", "first"]);
        assert_eq!(captures(&["--since", &since])[..2], ["0", "first"]);
        assert_eq!(captures(&["--since", &since]).last().unwrap(), "second");
        let (_, errors) = read(&["captures", "--since", &utc(after)], ring);
        assert!(errors.contains("No capture matches."), "{errors}");
        // The last mark of the thread is after the second event.
        let condensed = |limits: &[&str]| read(limits, ring).0.contains(" : 1 thread, ");
        assert_eq!((condensed(&["--until", &until]), condensed(&["--since", &since])), (false, true));
    };
    check(&ring);
    check(&live_copy);
    let remains = victim.killed();
    check(&remains.ring_path());
    let dead_copy = remains.dir().join("dead.gz");
    read(&["save", "-o", dead_copy.to_str().unwrap()], &remains.ring_path());
    check(&dead_copy);
    // A reading ends the bounds of a living process's last mark, and stays the end in a saved copy.
    let last_bound = |ring: &Path| -> u64 {
        let threads = json(&["-t"], "thread", ring);
        let last = threads[0]["events"].as_array().unwrap().last().unwrap().clone();
        assert!(last.get("boottime_ns").is_none() && last["after_boottime_ns"].is_string(), "{last:#}");
        last["before_boottime_ns"].as_str().unwrap().parse().unwrap()
    };
    let is_saved = last_bound(&live_copy);
    assert_eq!(last_bound(&live_copy), is_saved);
    assert!(is_saved < last_bound(&dead_copy), "it died after the first copy was saved");
    assert_eq!(last_bound(&dead_copy), last_bound(&dead_copy));
}

#[test]
fn without_times_events_lie_between_the_claim_and_the_reading() {
    let mut victim = plan(&["dated"]).env("RIP_CLOCK", "off").start();
    victim.until("first");
    let ring = victim.ring_path();
    let between = moment(&ring);
    for event in json(&["log"], "event", &ring) {
        let ns = |key: &str| event[key].as_str().unwrap().parse::<u64>().unwrap();
        assert!(event.get("boottime_ns").is_none() && ns("after_boottime_ns") < ns("before_boottime_ns"));
    }
    let log = |option: &str, time: SystemTime| json(&["log", option, &utc(time)], "event", &ring).len();
    assert_eq!(log("--since", between), 1);
    assert_eq!(log("--until", between), 1);
    assert_eq!(log("--until", between - Duration::from_secs(3600)), 0);
    victim.killed();
}

/// The rate of a young ring's clock is known to a hundredth, so its times may be wrong by this much.
const INEXACT_NS: u64 = 1_000_000;

/// When a mark was, ns since boot: the earliest and the latest moment. Equal if it has a time.
fn span_of(event: &Value) -> (u64, u64) {
    let ns = |key: &str| event[key].as_str().map(|ns| ns.parse::<u64>().unwrap());
    match ns("boottime_ns") {
        Some(time) => (time, time),
        None => (ns("after_boottime_ns").expect("a claim"), ns("before_boottime_ns").expect("a reading")),
    }
}

/// The next line of a part of the victim that says what it marked, and between which moments.
fn marked(victim: &mut Victim, what: &str) -> (u64, u64) {
    loop {
        let line = victim.line();
        if let [said, begin, end] = line.split(' ').collect::<Vec<_>>()[..]
            && said == what
        {
            return (begin.parse().unwrap(), end.parse().unwrap());
        }
    }
}

#[test]
fn with_ticks_marks_say_when_they_were_alive_dead_and_saved() {
    // More words than a period has: otherwise the last time may be one word older than the oldest word that is left.
    let mut victim = plan(&["sampled"]).env("RIP_CLOCK", "ticks").env("RIP_WORDS", "4096").start();
    let marks = |ring: &Path, label: &str| -> Vec<(u64, u64)> {
        let threads = json(&["-t"], "thread", ring);
        let events = threads[0]["events"].as_array().unwrap();
        events.iter().filter(|event| event["location"]["label"] == label).map(span_of).collect()
    };
    let is_within = |(after, before): (u64, u64), (begin, end): (u64, u64)| {
        begin <= after + INEXACT_NS && before <= end + INEXACT_NS
    };
    let ring = victim.ring_path();
    let truth = marked(&mut victim, "first");
    let [first] = marks(&ring, "first")[..] else { panic!("one mark") };
    assert!(
        is_within((first.0, first.0), (0, truth.1)) && first.1 >= truth.0,
        "{first:?} is not in {truth:?}"
    );

    victim.go_on();
    let busy = marked(&mut victim, "busy");
    let check_busy = |marks: &[(u64, u64)]| {
        // Marks of the last period have the reading as a bound.
        let (sampled, rest): (Vec<_>, Vec<_>) = marks.iter().partition(|(after, before)| after == before);
        assert!(!sampled.is_empty() && sampled.iter().all(|&&time| is_within(time, busy)), "{sampled:?}");
        assert!(rest.iter().all(|&&(after, _)| is_within((after, after), busy)), "{busy:?} {rest:?}");
        assert!(marks.is_sorted_by_key(|&(after, _)| after) && marks.is_sorted_by_key(|&(_, before)| before));
    };
    check_busy(&marks(&ring, "busy"));
    // A plain mark takes no time. It has those of the marks of progress around it as bounds.
    let plain = marks(&ring, "plain");
    assert!(!plain.is_empty() && plain.iter().all(|(after, before)| after < before), "{plain:?}");
    assert!(plain.iter().all(|&(after, _)| is_within((after, after), busy)), "{busy:?} {plain:?}");

    victim.go_on();
    let truth = marked(&mut victim, "last");
    let live_copy = saved(&victim, "live.gz");
    let check = |ring: &Path| {
        check_busy(&marks(ring, "busy"));
        let [last] = marks(ring, "last")[..] else { panic!("one mark") };
        // The thread does not know that it paused, so the time before the pause may be the bound.
        assert!(is_within((last.0, last.0), (busy.0, truth.1)) && truth.0 <= last.1 + INEXACT_NS, "{last:?}");
    };
    check(&ring);
    check(&live_copy);

    victim.go_on();
    let truth = marked(&mut victim, "waited");
    let remains = victim.killed();
    check(&remains.ring_path());
    let [waited] = marks(&remains.ring_path(), "waited")[..] else { panic!("one mark") };
    assert!(waited.0 == waited.1 && is_within(waited, truth), "{waited:?} is not in {truth:?}");
}
