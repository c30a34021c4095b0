//! `read-rip export`: files for other programs, of rings made by hand.
//!
//! graphviz reads the graphs, if it is there. Not tested here: the spans and events of real programs.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::exports::*;
use crate::support::fixture::{Fixture, Scratch};
use crate::support::locks::*;
use crate::support::run::{command, on_terminal, read_rip};
use crate::support::synth::{Ring, Slot};

fn trace(ring: &Ring, options: &[&str]) -> Vec<Value> {
    let out = export(ring, "chrome", options).sound().stdout;
    let trace: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"));
    trace["traceEvents"].as_array().unwrap().clone()
}

/// Events of one phase, as name, thread, begin and length in ms.
fn of_phase(trace: &[Value], phase: &str) -> Vec<(String, u64, u64, u64)> {
    let ms = |event: &Value, key: &str| (event[key].as_f64().unwrap_or(0.0) / 1000.0).round() as u64;
    let of = trace.iter().filter(|event| event["ph"] == phase);
    of.map(|event| {
        let name = event["name"].as_str().unwrap().to_owned();
        (name, event["tid"].as_u64().unwrap(), ms(event, "ts"), ms(event, "dur"))
    })
    .collect()
}

#[test]
fn a_timeline_has_waits_and_holds_with_their_times_and_slices_that_nest() {
    let trace = trace(&story(), &[]);
    let slice = |name: &str, tid, begin, length| (name.to_owned(), tid, begin, length);
    let slices = of_phase(&trace, "X");
    for expected in [
        slice("waits for queue", 2, 9000, 57_000),
        slice("holds queue", 1, 8000, 58_000),
        slice("waits for queue", 3, 9000, 57_000),
    ] {
        assert!(slices.contains(&expected), "{expected:?}: {slices:#?}");
    }
    assert_eq!(slices.iter().filter(|(name, ..)| name.starts_with("holds a")).count(), 2);
    // B was released after A, and acquired after it.
    let begins = of_phase(&trace, "b");
    assert!(begins.contains(&slice("holds queue", 1, 4000, 0)), "{begins:#?}");
    for (_, tid, begin, length) in &slices {
        let others = slices.iter().filter(|(_, other, ..)| other == tid);
        for (_, _, from, lasts) in others {
            let overlaps = from < begin && *begin < from + lasts && from + lasts < begin + length;
            assert!(!overlaps, "{slices:#?}");
        }
    }
    let is_open = |event: &&Value| event["args"]["open"] == true && event["ph"] == "X";
    assert_eq!(trace.iter().filter(is_open).count(), 4);
}

#[test]
fn an_arrow_leads_from_the_release_to_the_wait_that_it_ended_and_waiters_are_counted() {
    let trace = trace(&story(), &[]);
    assert_eq!(of_phase(&trace, "s"), [("release".to_owned(), 1, 6000, 0)]);
    assert_eq!(of_phase(&trace, "f"), [("release".to_owned(), 2, 6000, 0)]);
    let mut counts: Vec<(&str, u64, u64)> = trace
        .iter()
        .filter(|event| event["ph"] == "C")
        .map(|event| {
            let seconds = (event["ts"].as_f64().unwrap() / 1e6).round() as u64;
            (event["name"].as_str().unwrap(), seconds, event["args"]["threads"].as_u64().unwrap())
        })
        .collect();
    counts.sort_by_key(|count| count.1);
    let first = format!("waiters of {SEEN}");
    assert_eq!(counts, [(&*first, 5, 1), (&*first, 6, 0), ("waiters of queue", 9, 3)]);
}

#[test]
fn no_arrow_leads_to_the_end_of_a_wait_that_did_not_get_the_lock() {
    let timed = Slot::thread("timed", 2)
        .event(TIMED_WAIT, &[at(5.0), A])
        .event(TRY_FAILED, &[A])
        .event(WAIT, &[at(5.5), B]);
    let trace = trace(&Ring { slots: vec![holder(), timed], ..story() }, &[]);
    assert_eq!(of_phase(&trace, "s"), []);
}

#[test]
fn the_threads_that_matter_come_first_and_the_others_are_counted() {
    let busy = Slot::thread("busy", 9).event(TAKES, &[at(3.0), A]).event(RELEASED, &[at(3.5), at(3.0), A]);
    let ring = Ring { slots: std::iter::once(busy).chain(story().slots).collect(), ..story() };
    let outcome = export(&ring, "chrome", &["--threads", "1"]);
    assert!(outcome.stderr.contains("4 threads left out: see --threads."), "{outcome:#?}");
    let tids: Vec<u64> =
        of_phase(&trace(&ring, &["--threads", "1"]), "X").iter().map(|slice| slice.1).collect();
    assert!(!tids.is_empty() && tids.iter().all(|&tid| tid == 1), "the one that others wait for: {tids:?}");
    let trace = trace(&ring, &["--threads", "1"]);
    let of_queue = trace.iter().find(|event| event["name"] == "waiters of queue").unwrap();
    assert_eq!(of_queue["args"]["threads"], 3, "those that are left out wait too");
}

#[test]
fn what_has_no_time_is_counted_and_not_drawn() {
    let undated = Slot::thread("a", 1).event(TRY_TAKES, &[A]).event(RELEASED, &[0, 0, A]);
    let outcome = export(&ring().with_slots([undated]), "chrome", &[]);
    assert!(!outcome.stdout.contains("\"X\""), "{outcome:#?}");
    assert!(outcome.stderr.contains("1 of waits, holds, spans and events have no time"), "{outcome:#?}");
}

#[test]
fn times_that_somebody_invented_leave_valid_json() {
    let mut slot = holder();
    slot.claimed_ns = 1 << 63;
    let ring = Ring { clock: Some((3, 1000, 1 << 63)), ..story().with_slots([slot, follower()]) };
    assert!(!trace(&ring, &[]).is_empty());
}

#[test]
fn a_perfetto_trace_is_the_same_in_a_file_and_in_a_pipe_and_a_terminal_gets_none() {
    let scratch = Scratch::new();
    let (fixture, target) = (Fixture::of(&talk()), scratch.path("trace"));
    let mut run = command();
    run.args(["export", "-f", "perfetto", "--color=never", fixture.path.to_str().unwrap()]);
    let piped = run.output().unwrap().stdout;
    run.args(["-o", target.to_str().unwrap()]).output().unwrap();
    // A trace is a list of fields of number 1 with a length.
    assert!(piped.first() == Some(&0x0a) && fs::read(target).unwrap() == piped);
    let mut run = command();
    run.args(["export", "-f", "perfetto", fixture.path.to_str().unwrap()]);
    assert_eq!(on_terminal(run), "");
}

#[test]
fn a_graph_has_a_circle_for_a_deadlock_and_one_node_for_a_crowd_and_graphviz_reads_it() {
    let out = export(&story(), "dot", &[]).sound().stdout;
    assert!(out.contains("[shape=box, style=rounded, label=\"queue\"];"), "{out}");
    assert!(out.contains("label=\"3 threads\""), "they wait at one place: {out}");
    assert_eq!(out.matches(" -> ").count(), 2, "{out}");
    let drawn = Command::new("dot").arg("-Tplain").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut drawn) = drawn else {
        eprintln!("SKIPPED that graphviz reads it: no dot; apt install graphviz");
        return;
    };
    drawn.stdin.take().unwrap().write_all(out.as_bytes()).unwrap();
    let drawn = drawn.wait_with_output().unwrap();
    assert!(drawn.status.success(), "{out}");
    let plain = String::from_utf8(drawn.stdout).unwrap();
    let lines = |of: &str| plain.lines().filter(|line| line.starts_with(of)).count();
    assert_eq!((lines("node "), lines("edge ")), (3, 2), "{plain}");
}

#[test]
fn folded_lines_have_frames_a_number_and_nothing_that_breaks_them() {
    let mut slots = story().slots;
    slots[1].name = NASTY.into();
    let out = export(&Ring { slots, ..story() }, "folded", &[]).sound().stdout;
    let mut threads = 0;
    for line in out.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        threads += count.parse::<u32>().unwrap();
        let frames = stack.split(';').count();
        assert!((2..=3).contains(&frames) && !stack.chars().any(char::is_control), "{line}");
    }
    assert_eq!(threads, 4, "{out}");
    assert!(out.contains(";[waits for queue] 3\n"), "{out}");
}

/// The boxes of a flame graph that inferno draws: their titles, and how far down they are.
fn flame_graph(folded: &str) -> Vec<(String, u32)> {
    let mut svg = Vec::new();
    let mut options = inferno::flamegraph::Options::default();
    options.count_name = "threads".into();
    inferno::flamegraph::from_lines(&mut options, folded.lines(), &mut svg).unwrap();
    let svg = String::from_utf8(svg).unwrap();
    let boxes = svg.split("<title>").skip(1).map(|rest| {
        let (title, rest) = rest.split_once("</title>").unwrap();
        let (y, _) = rest.split_once(" y=\"").unwrap().1.split_once('"').unwrap();
        (title.to_owned(), y.parse().unwrap())
    });
    boxes.collect()
}

#[test]
fn inferno_draws_a_flame_graph_of_where_threads_wait_by_place_and_by_lock() {
    let draw = |options: &[&str]| flame_graph(&export(&story(), "folded", options).sound().stdout);
    let at = |boxes: &[(String, u32)], title: &str| {
        let found = boxes.iter().find(|(one, _)| one == title);
        found.unwrap_or_else(|| panic!("{title}: {boxes:#?}")).1
    };
    let (by_place, by_lock) = (draw(&[]), draw(&["--by-lock"]));
    let program = "server[4321] (4 threads, 100.00%)";
    let place = "server::cache::? cache.rs:11&lt;0x1100&gt; (3 threads, 75.00%)";
    let wait = "[waits for queue] (3 threads, 75.00%)";
    // What is within another box stands on it.
    assert!(at(&by_place, program) > at(&by_place, place) && at(&by_place, place) > at(&by_place, wait));
    assert!(at(&by_lock, program) > at(&by_lock, wait) && at(&by_lock, wait) > at(&by_lock, place));
    let holder = "server::cache::? cache.rs:10&lt;0x1000&gt; (1 threads, 25.00%)";
    assert_eq!(at(&by_place, holder), at(&by_lock, holder), "it waits for nothing");
}

#[test]
fn a_file_gets_its_name_when_it_is_complete_and_none_is_left_if_it_cannot_be() {
    let scratch = Scratch::new();
    let fixture = Fixture::of(&story());
    let run =
        |target: &str| read_rip(["export", "-f", "folded", "-o", target, fixture.path.to_str().unwrap()]);
    let good = scratch.file("good.folded", b"earlier");
    run(good.to_str().unwrap()).sound();
    assert!(fs::read_to_string(&good).unwrap().contains("[waits for queue]"));
    let missing = good.with_file_name("missing").join("x");
    for target in [missing.to_str().unwrap(), "/dev/full/x"] {
        let outcome = run(target);
        assert_eq!(outcome.status, 2, "{outcome:#?}");
        assert!(outcome.stderr.contains(&format!("could not write {target}")), "{outcome:#?}");
    }
    let left = fs::read_dir(good.parent().unwrap()).unwrap().count();
    assert_eq!(left, 1, "no unfinished file");
}
