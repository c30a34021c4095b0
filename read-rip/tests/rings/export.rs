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
            (event["name"].as_str().unwrap(), seconds, event["args"]["waiters"].as_u64().unwrap())
        })
        .collect();
    counts.sort_by_key(|count| count.1);
    let first = format!("waiters of {SEEN}");
    assert_eq!(counts, [(&*first, 5, 1), (&*first, 6, 0), ("waiters of queue", 9, 3)]);
}

#[test]
fn tasks_are_tracks_of_a_process_of_their_own_with_what_they_do_now_since_it_began() {
    let trace = trace(&crew(), &[]);
    let named = |what: &str| {
        let of = trace.iter().filter(|event| event["name"] == what);
        of.map(|event| (event["pid"].as_u64().unwrap(), event["args"]["name"].as_str().unwrap()))
            .collect::<Vec<_>>()
    };
    let process = |name: &str| named("process_name").iter().find(|(_, of)| *of == name).unwrap().0;
    let (threads, tasks) = (process("server"), process("tasks of server"));
    let tracks = named("thread_name");
    let of = |process: u64| tracks.iter().filter(move |(pid, _)| *pid == process).map(|(_, name)| *name);
    assert_eq!(of(threads).collect::<Vec<_>>(), ["worker"]);
    let names = ["done[task 6]", "server[task 7]", "busy[task 8]", "woken[task 9]", "new[task 11]"];
    assert_eq!(of(tasks).collect::<Vec<_>>(), names);
    // The process ended 66 s after the boot. A task is there by its number.
    let slice = |name: &str, task, begin| (name.to_owned(), task, begin, 66_000 - begin);
    let slices = of_phase(&trace, "X");
    for expected in [
        slice("waits for queue", 7, 8500),
        slice("suspended at server::cache::? cache.rs:11<0x1100>", 7, 9000),
        slice("polled by worker[10]", 8, 10_000),
        slice("ready and not polled", 9, 11_000),
    ] {
        assert!(slices.contains(&expected), "{expected:?}: {slices:#?}");
    }
    let of_tasks = trace.iter().filter(|event| event["cat"] == "task");
    let states: Vec<&Value> = of_tasks.collect();
    assert_eq!(states.len(), 4, "one has ended");
    assert!(states.iter().all(|event| event["args"]["open"] == true && event["pid"] == tasks));
    assert_eq!(states[0]["args"]["location"], "server::cache::? cache.rs:11<0x1100>");
}

#[test]
fn a_state_of_a_task_whose_begin_may_be_too_early_says_so() {
    let mut ring = crew();
    let busy = ring.slots[2].task.as_mut().unwrap();
    busy.since = busy.since.map(|(since, _)| (since, false));
    let slices = of_phase(&trace(&ring, &[]), "X");
    let polled = "polled by worker[10], since then or later".to_owned();
    assert!(slices.contains(&(polled, 8, 10_000, 56_000)), "{slices:#?}");
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
    let outcome = export(&crew(), "chrome", &["--threads", "1"]);
    assert!(outcome.stderr.contains("5 tasks left out: see --threads."), "{outcome:#?}");
    let tids: Vec<u64> =
        of_phase(&trace(&ring, &["--threads", "1"]), "X").iter().map(|slice| slice.1).collect();
    assert!(!tids.is_empty() && tids.iter().all(|&tid| tid == 1), "the one that others wait for: {tids:?}");
    let trace = trace(&ring, &["--threads", "1"]);
    let of_queue = trace.iter().find(|event| event["name"] == "waiters of queue").unwrap();
    assert_eq!(of_queue["args"]["waiters"], 3, "those that are left out wait too");
}

#[test]
fn what_has_no_time_is_counted_and_not_drawn() {
    let undated = Slot::thread("a", 1).event(TRY_TAKES, &[A]).event(RELEASED, &[0, 0, A]);
    let outcome = export(&ring().with_slots([undated]), "chrome", &[]);
    assert!(!outcome.stdout.contains("\"X\""), "{outcome:#?}");
    assert!(
        outcome.stderr.contains("1 wait, hold, span or event has no time and is not drawn"),
        "{outcome:#?}"
    );
}

#[test]
fn a_hold_without_a_time_is_drawn_from_when_somebody_waited() {
    let of_keeper = |ring: &Ring| {
        let slices = of_phase(&trace(ring, &[]), "X").into_iter().filter(|slice| slice.1 == 3);
        slices.map(|(name, _, begin, _)| (name, begin)).collect::<Vec<_>>()
    };
    assert_eq!(of_keeper(&kept()), [("holds savings, since then or earlier".to_owned(), 8000)]);
    // Somebody else had it until 8.5 s.
    let mut handed_on = kept();
    handed_on.slots[1] = handed_on.slots[1].clone().event(RELEASED, &[at(8.5), at(7.0), A]);
    assert_eq!(of_keeper(&handed_on), [("holds savings, since about then".to_owned(), 8500)]);
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
fn a_graph_calls_tasks_tasks() {
    let out = export(&crew(), "dot", &[]).sound().stdout;
    assert!(out.contains("label=\"server[task 7]\""), "{out}");
    let mut ring = crew();
    let mut second = ring.slots[1].clone();
    second.tid += 5;
    second.task.as_mut().unwrap().poller = Some(-2);
    ring.slots.insert(2, second);
    let out = export(&ring, "dot", &[]).sound().stdout;
    assert!(out.contains("label=\"2 tasks\""), "{out}");
}

#[test]
fn numbers_of_tasks_are_not_among_those_of_threads() {
    let out = export(&crew(), "openmetrics", &[]).sound().stdout;
    let process = "program=\"server\",pid=\"4321\"";
    for (line, value) in [
        (format!("rip_threads{{{process},state=\"waiting\"}}"), 0),
        (format!("rip_threads{{{process},state=\"other\"}}"), 1),
        (format!("rip_tasks{{{process},state=\"running\"}}"), 1),
        (format!("rip_tasks{{{process},state=\"ready\"}}"), 2),
        (format!("rip_tasks{{{process},state=\"suspended\"}}"), 1),
        (format!("rip_tasks_refused_total{{{process}}}"), 1),
    ] {
        assert!(out.contains(&format!("\n{line} {value}\n")), "{line}: {out}");
    }
    // The recorder counts these. A ring may forget the others.
    let is_counter = |line: &&str| line.starts_with("# TYPE") && line.ends_with(" counter");
    let counters: Vec<_> = out.lines().filter(is_counter).collect();
    assert_eq!(counters, ["# TYPE rip_words counter", "# TYPE rip_tasks_refused counter"]);
}

/// The rows of a table of `read-rip export -f ndjson`.
fn rows(ring: &Ring, table: &str) -> Vec<Value> {
    let out = export(ring, "ndjson", &[]).sound().stdout;
    let rows = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.filter(|row| row["table"] == table).collect()
}

#[test]
fn tasks_have_a_table_of_their_own_and_counts_do_not_mix_them_with_threads() {
    let ring = crew();
    let threads = rows(&ring, "threads");
    assert_eq!(threads.iter().map(|row| &row["thread"]).collect::<Vec<_>>(), ["worker"]);
    let tasks = rows(&ring, "tasks");
    let of = |column: &str| tasks.iter().map(|row| row[column].clone()).collect::<Vec<_>>();
    assert_eq!(of("task"), ["done", "server", "busy", "woken", "new"]);
    assert_eq!(of("state"), ["ended", "suspended", "running", "ready", "ready"]);
    assert_eq!(of("number"), [6, 7, 8, 9, 11]);
    assert_eq!(of("polls"), [1, 2, 2, 2, 0]);
    assert_eq!(of("wakes"), [0, 0, 0, 1, 0]);
    assert_eq!(of("place"), ["made", "await", "await", "await", "made"]);
    assert!(of("kind").iter().all(|kind| kind == "async") && of("runtime").iter().all(|number| number == 1));
    let waiting = &tasks[1];
    assert_eq!((&waiting["waits_for"], &waiting["object"]), (&"lock".into(), &"queue".into()));
    assert_eq!((&waiting["file"], &waiting["line"]), (&"src/cache.rs".into(), &11.into()));
    assert_eq!(waiting["for_ns"], 57_000_000_000_u64);
    assert_eq!(waiting["since"], "2023-11-14T22:12:34.000000Z", "9 s after the boot");
    assert_eq!((&tasks[2]["polled_by_tid"], &tasks[2]["polled_by"]), (&10.into(), &"worker".into()));
    let wait = &rows(&ring, "waits")[0];
    assert_eq!((&wait["tid"], &wait["holder"]), (&waiting["tid"], &"worker".into()));
    let process = &rows(&ring, "processes")[0];
    let counts =
        ["threads", "present", "waiting", "tasks", "tasks_present", "tasks_suspended", "tasks_refused"];
    assert_eq!(counts.map(|column| process[column].as_u64().unwrap()), [1, 1, 0, 5, 4, 1, 1]);
    assert_eq!(process["tasks_longest_wait_ns"], 57_500_000_000_u64);
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

#[test]
fn tasks_stand_apart_from_threads_with_their_awaits_and_what_they_do() {
    let awaits = "serve::? serve.rs:20;save::? save.rs:7;server::cache::? cache.rs:11<0x1100>";
    let worker = "server[4321];server::cache::? cache.rs:10<0x1000> 1";
    let lines = |options: &[&str]| {
        let out = export(&crew(), "folded", options).sound().stdout;
        out.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let by_place = [
        worker.to_owned(),
        "server[4321];tasks;made at main::? main.rs:9;[ready and not polled] 1".to_owned(),
        "server[4321];tasks;serve::? serve.rs:20;[polled] 1".to_owned(),
        "server[4321];tasks;serve::? serve.rs:20;[ready and not polled] 1".to_owned(),
        format!("server[4321];tasks;{awaits};[waits for queue] 1"),
    ];
    assert_eq!(lines(&[]), by_place);
    let by_lock = lines(&["--by-lock"]);
    assert!(by_lock.contains(&format!("server[4321];[waits for queue];tasks;{awaits} 1")), "{by_lock:#?}");
    // A task that waits for nothing that is recorded.
    let mut ring = crew();
    ring.slots[1].held.clear();
    let out = export(&ring, "folded", &[]).sound().stdout;
    let suspended = ";tasks;serve::? serve.rs:20;save::? save.rs:7;[suspended] 1\n";
    assert!(out.contains(suspended), "{out}");
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
