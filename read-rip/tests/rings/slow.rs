//! Slow cycles that a ring has kept: what each command says of them. The rings are made by hand.
//!
//! Not tested here: that a program keeps exactly its slow cycles.

use serde_json::Value;

use crate::support::fixture::Fixture;
use crate::support::run::read_rip;
use crate::support::synth::{Ring, Site, Slot};

const TABLE: u64 = 0x7f00_0000_1000;
/// The time of the ring's clock at its base, ns since boot and ticks. A tick takes 8 ns.
const BASE: (u64, u64) = (2_000_000_000, 1000);
/// No cycle may take longer.
const LIMIT_US: u64 = 3000;
/// The marks.
const READ: (u64, u64) = (0x1000, 0x1100);
const UPDATE: (u64, u64) = (0x1200, 0x1300);
const GROW: (u64, u64) = (0x1400, 0x1500);
const TAKES: u64 = 0x1600;
const WAITS: u64 = 0x1700;
const RELEASES: u64 = 0x1800;
const CYCLE: u64 = 0x1900;
const USED: u64 = 0x1a00;
/// What the event of a cycle's usage says.
const USED_FORMAT: &str = "work: {} us, and {} us around it: {} us on a processor, {} us of it in the kernel, {} us \
                           ready for one; {} voluntary and {} involuntary switches; {} minor and {} major page faults";

/// What a cycle takes, us: to read, to wait for the lock, to update under it, and to grow.
#[derive(Clone, Copy)]
struct Cycle {
    begin_us: u64,
    read: u64,
    wait: u64,
    update: u64,
    grow: u64,
    used: Option<Used>,
    /// How many times it reads, in no time, between its update and its growth.
    reads: u64,
}

/// What the thread used in a cycle, us and numbers.
#[derive(Clone, Copy)]
struct Used {
    on_cpu: u64,
    system: u64,
    /// -1: not known.
    ready: i32,
    switches: [u64; 2],
    faults: u64,
}

const USED_LITTLE: Used = Used { on_cpu: 110, system: 10, ready: 0, switches: [1, 0], faults: 0 };

/// A cycle that takes no longer than usual.
const NORMAL: Cycle = Cycle { begin_us: 0, read: 60, wait: 0, update: 40, grow: 10, used: None, reads: 0 };

fn ticks(us: u64) -> u64 {
    BASE.1 + us * 125
}

fn shape(types: u64, words: u64) -> u64 {
    types | words << 40 | 1 << 46
}

impl Cycle {
    fn took(&self) -> u64 {
        self.read + self.wait + self.update + self.grow
    }

    /// The same slot after this cycle.
    fn recorded(&self, mut slot: Slot) -> Slot {
        let mut now = self.begin_us;
        let begin = |slot: Slot, at: u64, now: u64| slot.event(at, &[ticks(now), shape(0, 1)]);
        let end = |slot: Slot, at: u64, since: u64, now: u64| slot.event(at, &[ticks(now), ticks(since)]);
        slot = begin(slot, READ.0, now);
        slot = end(slot, READ.1, now, now + self.read);
        now += self.read;
        let update = now;
        slot = begin(slot, UPDATE.0, now).event(TAKES, &[TABLE]);
        if self.wait > 0 {
            slot = slot.event(WAITS, &[ticks(now), TABLE]);
        }
        now += self.wait;
        let held = now;
        now += self.update;
        slot = slot.event(RELEASES, &[ticks(now), ticks(held), TABLE]);
        slot = end(slot, UPDATE.1, update, now);
        for _ in 0..self.reads {
            slot = end(begin(slot, READ.0, now), READ.1, now, now);
        }
        slot = begin(slot, GROW.0, now);
        slot = end(slot, GROW.1, now, now + self.grow);
        now += self.grow;
        if let Some(Used { on_cpu, system, ready, switches, faults }) = self.used {
            let ready = u64::from(ready.cast_unsigned());
            let values = [self.took(), 5, on_cpu, system, ready, switches[0], switches[1], faults, 0];
            let operands: Vec<u64> =
                [ticks(now)].into_iter().chain(values).chain([shape(0x1_1114_1111, 10)]).collect();
            slot = slot.event(USED, &operands);
        }
        if self.took() > LIMIT_US {
            slot = slot.event(CYCLE, &[ticks(now), self.took(), LIMIT_US, shape(0x11, 3)]);
        }
        slot
    }

    /// What the thread `loop` keeps of it.
    fn kept(&self) -> Slot {
        let exited_ns = BASE.0 + (self.begin_us + self.took()) * 1000;
        let slot = self.recorded(Slot::thread("loop", 9).from(self.begin_us));
        Slot { is_capture: true, exited_ns, ..slot.exited() }
    }
}

/// A ring with these kept cycles of the thread `loop`, whose history has a normal cycle only.
fn ring(kept: &[Cycle]) -> Ring {
    let mutex = 1 << 8 | 4 | 64;
    let site = |pc, line, kind, flags, operands: &[u8], label: &str| Site {
        label: label.into(),
        ..Site::new(pc, "src/loop.rs", line).of(kind, flags, operands)
    };
    let mut ring = Ring::new().with_sites(&[]).with_clock(3);
    for ((begin, end), line, name) in [(READ, 8, "read"), (UPDATE, 9, "update"), (GROW, 10, "grow")] {
        ring.sites.push(site(begin, line, 15, 0, &[10], &format!("{name}\0")));
        ring.sites.push(site(end, line, 16, 0, &[4, 5], &format!("{name}\0")));
    }
    ring.sites.push(site(TAKES, 9, 6, mutex, &[3], ""));
    ring.sites.push(site(WAITS, 9, 2, mutex, &[4, 3], ""));
    ring.sites.push(site(RELEASES, 9, 4, mutex, &[4, 5, 3], ""));
    ring.sites.push(site(CYCLE, 28, 14, 4, &[10], "work: a cycle took {} us, more than {} us"));
    ring.sites.push(site(USED, 28, 14, 2 | 32, &[10], USED_FORMAT));
    let last = Cycle { begin_us: 900_000, ..NORMAL };
    let history = last.recorded(Slot::thread("loop", 9).from(last.begin_us));
    let ring = ring.with_slots([history]).with_slots(kept.iter().map(Cycle::kept));
    Ring { lock_names: vec![(ring.pid, TABLE, "TABLE".into())], ..ring }
}

/// Cycles that were slow for different reasons.
fn mixed() -> Ring {
    ring(&[
        Cycle { begin_us: 100_000, grow: 5000, ..NORMAL },
        Cycle { begin_us: 200_000, wait: 6000, ..NORMAL },
        Cycle { begin_us: 300_000, grow: 9000, ..NORMAL },
        Cycle { begin_us: 400_000, read: 4000, ..NORMAL },
        Cycle { begin_us: 500_000, read: 4100, ..NORMAL },
    ])
}

fn run(ring: &Ring, options: &[&str]) -> (String, String) {
    let fixture = Fixture::of(ring);
    let path = fixture.path.to_str().unwrap();
    let outcome = read_rip(options.iter().copied().chain([path]));
    (outcome.stdout.clone(), path.to_owned())
}

#[test]
fn check_and_the_view_say_which_cycles_were_slow_and_in_which_step() {
    let expected = |path: &str| {
        format!(
            "5 slow cycles were kept; the worst took 9.1 ms: 98 % in `grow`; next: read-rip captures {path}"
        )
    };
    let (checked, path) = run(&mixed(), &["check"]);
    assert!(checked.lines().any(|line| line.trim() == expected(&path)), "{checked}");
    let (view, path) = run(&mixed(), &[]);
    assert_eq!(view.lines().last().unwrap(), expected(&path), "{view}");
    let cycles = &Fixture::of(&mixed()).show(&["check", "--json"]).data("checked")[0]["slow_cycles"];
    assert_eq!((&cycles["count"], &cycles["worst"]), (&5.into(), &"work".into()), "{cycles}");
    assert_eq!((&cycles["step"], &cycles["step_ns"]), (&"grow".into(), &9_000_000.into()), "{cycles}");
    assert_eq!(cycles["usual_ns"], 10_000, "{cycles}");
}

#[test]
fn a_wait_is_named_with_its_lock_and_a_ring_without_captures_says_nothing() {
    let (checked, _) = run(&ring(&[Cycle { begin_us: 100_000, wait: 6000, ..NORMAL }]), &["check"]);
    let expected = "1 slow cycle was kept; it took 6.1 ms: 98 % waiting for TABLE in `update`; next: ";
    assert!(checked.contains(expected), "{checked}");
    let (checked, _) = run(&ring(&[]), &["check"]);
    assert!(checked.contains("no findings") && !checked.contains("slow"), "{checked}");
}

/// The slices and instants of the thread `loop` in a Chrome trace: name, begin and length in us.
fn drawn(ring: &Ring, phase: &str) -> Vec<(String, u64, u64)> {
    let (out, _) = run(ring, &["export", "--format", "chrome"]);
    let trace: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"));
    let us = |event: &Value, key: &str| event[key].as_f64().unwrap_or(0.0).round() as u64;
    let events = trace["traceEvents"].as_array().unwrap().iter();
    let events = events.filter(|event| event["ph"] == phase && event["tid"] == 9);
    let base_us = BASE.0 / 1000;
    events
        .map(|event| {
            (event["name"].as_str().unwrap().to_owned(), us(event, "ts") - base_us, us(event, "dur"))
        })
        .collect()
}

#[test]
fn exports_have_the_slow_cycles_at_their_times_and_nothing_twice() {
    let slow = Cycle { begin_us: 200_000, wait: 6000, ..NORMAL };
    let ring = ring(&[slow]);
    let slices = drawn(&ring, "X");
    let of = |name: &str, begin: u64, length: u64| (name.to_owned(), begin, length);
    for expected in [
        of("slow cycle: work", 200_000, 6110),
        of("read", 200_000, 60),
        of("update", 200_060, 6040),
        of("waits for TABLE", 200_060, 6000),
        of("grow", 206_100, 10),
        of("read", 900_000, 60),
    ] {
        assert_eq!(slices.iter().filter(|slice| **slice == expected).count(), 1, "{expected:?}: {slices:#?}");
    }
    let said = drawn(&ring, "i");
    assert_eq!(said, [of("work: a cycle took 6110 us, more than 3000 us", 206_110, 0)]);
    let (out, _) = run(&ring, &["export", "--format", "ndjson"]);
    let rows: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |table: &str, column: &str, value: &str| {
        rows.iter().filter(|row| row["table"] == table && row[column] == value).count()
    };
    assert_eq!(count("spans", "span", "slow cycle: work"), 1, "{out}");
    assert_eq!(count("spans", "span", "grow"), 2, "{out}");
    assert_eq!(count("waits", "object", "TABLE"), 1, "{out}");
    assert_eq!(count("events", "text", "work: a cycle took 6110 us, more than 3000 us"), 1, "{out}");
}

#[test]
fn what_the_history_still_has_is_drawn_once() {
    let slow = Cycle { begin_us: 900_000, wait: 6000, ..NORMAL };
    let mut ring = ring(&[slow]);
    // The thread has done nothing since.
    ring.slots[0] = slow.recorded(Slot::thread("loop", 9).from(slow.begin_us));
    let slices = drawn(&ring, "X");
    for name in ["slow cycle: work", "read", "update", "waits for TABLE", "grow"] {
        assert_eq!(slices.iter().filter(|(of, ..)| of == name).count(), 1, "{name}: {slices:#?}");
    }
    assert_eq!(drawn(&ring, "i").len(), 1);
}

/// The ring of a thread that waited for a lock, and of `janitor`, which has recorded when it held the lock.
fn with_holder(held: (u64, u64)) -> Ring {
    let ring = ring(&[Cycle { begin_us: 200_000, wait: 6000, ..NORMAL }]);
    let hold = [ticks(held.1), ticks(held.0), TABLE];
    ring.with_slots([Slot::thread("janitor", 10).event(TAKES, &[TABLE]).event(RELEASES, &hold)])
}

#[test]
fn captures_begin_with_what_made_the_cycles_slow_and_mark_the_step_in_each() {
    let (out, _) = run(&mixed(), &["captures"]);
    let lines: Vec<&str> = out.lines().collect();
    let index = |start: &str| {
        lines.iter().position(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{out}"))
    };
    let first = index("2 slow cycles of work: in `grow`, up to 9.0 ms, usually 10.0 us");
    assert!(lines[first + 1].contains("no wait is recorded there: it ran longer, or waited for "), "{out}");
    index("2 slow cycles of work: in `read`, up to 4.1 ms, usually 60.0 us");
    let wait = index("1 slow cycle of work: waiting for TABLE in `update`, up to 6.0 ms, usually 0 ns");
    assert!(lines[wait + 1].starts_with("  who held it is not recorded"), "no holder is recorded: {out}");
    let marked: Vec<&&str> = lines.iter().filter(|line| line.contains("<-- ")).collect();
    assert_eq!(marked.len(), 5, "{out}");
    assert!(
        marked[0].contains("(span) \"grow\" for 5.0 ms") && marked[0].ends_with("<-- 98 % of the cycle"),
        "{out}"
    );
    // It is within the span.
    assert!(marked[1].contains("   loop.rs:9<0x1700>(waits) of TABLE"), "{out}");
    assert!(marked[1].ends_with("<-- 98 % of the cycle"), "{out}");
}

#[test]
fn the_holder_of_a_lock_is_named_by_its_own_record_and_only_if_it_held_the_lock_meanwhile() {
    let (out, _) = run(&with_holder((199_000, 206_060)), &["captures"]);
    assert!(
        out.contains("  held meanwhile by janitor[10], loop.rs:9<0x1800>: 1 time, for up to 7.0 ms\n"),
        "{out}"
    );
    assert!(out.contains("<-- 98 % of the cycle: janitor[10] held the lock for 7.0 ms, loop.rs:9"), "{out}");
    let (out, _) = run(&with_holder((199_000, 206_060)), &["captures", "--json"]);
    let line = out.lines().find(|line| line.contains("\"type\":\"capture\"")).unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    let cycle = &line["data"]["slow_cycle"];
    assert_eq!((&cycle["step"], &cycle["within"]), (&"TABLE".into(), &"update".into()), "{cycle}");
    assert_eq!((&cycle["holder"]["tid"], &cycle["held_ns"]), (&10.into(), &7_060_000.into()), "{cycle}");
    // It held the lock at another time.
    let (out, _) = run(&with_holder((150_000, 160_000)), &["captures"]);
    assert!(out.contains("waiting for TABLE") && !out.contains("janitor"), "{out}");
}

#[test]
fn a_cycle_whose_others_are_all_slow_in_the_same_step_is_slow_in_that_step() {
    let cycles: Vec<Cycle> = (0..9)
        .map(|at| Cycle { begin_us: 100_000 * at + 50_000, read: 60 + 10 * at, grow: 9000 + at, ..NORMAL })
        .collect();
    let (out, _) = run(&ring(&cycles), &["captures"]);
    assert!(out.contains("9 slow cycles of work: in `grow`, up to 9.0 ms\n"), "{out}");
}

/// Cycles that took 5 ms more in `read`, and what the kernel says of each; and cycles that were not slow.
fn measured(slow: &[Used]) -> Ring {
    let usual = Cycle { used: Some(USED_LITTLE), ..NORMAL };
    let kept = |at: u64, cycle: Cycle| Cycle { begin_us: 50_000 + 50_000 * at, ..cycle };
    let usual = (0..3).map(|at| kept(at, usual));
    let slow =
        slow.iter().zip(3..).map(|(used, at)| kept(at, Cycle { read: 5060, used: Some(*used), ..NORMAL }));
    ring(&usual.chain(slow).collect::<Vec<_>>())
}

#[test]
fn captures_say_why_a_cycle_was_slow_and_what_is_usual() {
    let preempted = Used { ready: 4990, switches: [1, 3], ..USED_LITTLE };
    let blocked = Used { ready: 20, switches: [2, 1], ..USED_LITTLE };
    let faults = Used { on_cpu: 5100, system: 4000, faults: 2500, ..USED_LITTLE };
    let computed = Used { on_cpu: 5100, faults: 3, ..USED_LITTLE };
    let ring = measured(&[preempted, preempted, blocked, faults, computed]);
    let (out, _) = run(&ring, &["captures"]);
    for expected in [
        "2 slow cycles of work: in `read`, off the processor without waiting (preempted), up to 5.0 ms, usually 60.0 us\n  \
         it was ready for up to 4.9 ms, and others had the processors\n",
        "1 slow cycle of work: in `read`, in a blocking call, up to 5.0 ms, usually 60.0 us\n  it slept, and no wait \
         for a lock is recorded there\n",
        "1 slow cycle of work: in `read`, page faults, up to 5.0 ms, usually 60.0 us\n  up to 2500 page faults, and 0 \
         that read from a disk; up to 5.1 ms on a processor, 4.0 ms of it in the kernel\n",
        "1 slow cycle of work: in `read`, merely computed longer, up to 5.0 ms, usually 60.0 us\n",
        "loop.rs:8(span) \"read\" for 5.0 ms  <-- 99 % of the cycle, 2500 page faults\n",
    ] {
        assert!(out.contains(expected), "{expected}: {out}");
    }
    assert!(out.contains("\ncompared with 3 usual cycles of work, of 110 us: see --json\n"), "{out}");
    assert_eq!(out.matches("\nloop[9], kept ").count(), 5, "the usual ones are not listed: {out}");
    assert!(!out.contains("Why is not known"), "{out}");
    let (checked, _) = run(&ring, &["check"]);
    assert!(
        checked.contains("    5 slow cycles were kept; the worst took 5.1 ms: 99 % in `read`, "),
        "{checked}"
    );
    let drawn: Vec<String> = drawn(&ring, "X").into_iter().map(|(name, ..)| name).collect();
    for name in ["preempted", "blocked", "page faults", "computed"] {
        assert!(drawn.contains(&format!("slow cycle: work ({name})")), "{drawn:#?}");
    }
    for format in ["ndjson", "chrome"] {
        let (out, _) = run(&ring, &["export", "--format", format]);
        assert!(out.contains("1 voluntary and 3 involuntary switches"), "{format}: {out}");
    }
}

#[test]
fn without_evidence_captures_say_how_to_get_it() {
    let (out, _) = run(&mixed(), &["captures"]);
    assert!(
        out.contains("\nWhy is not known: the kernel was not asked. With RIP_USAGE=delays it is"),
        "{out}"
    );
    let both = Used { ready: -1, switches: [1, 1], ..USED_LITTLE };
    let (out, _) = run(&measured(&[both]), &["captures"]);
    assert!(
        out.contains(
            "1 slow cycle of work: in `read`, in a blocking call, or ready and without a processor, up to 5.0 ms"
        ),
        "{out}"
    );
    let how = "\n  up to 1 voluntary and 1 involuntary switches: RIP_USAGE=delays tells which took long\n";
    assert!(out.contains(how), "{out}");
    let (json, _) = run(&measured(&[both]), &["captures", "--json"]);
    let slow = json.lines().find(|line| line.contains("\"slow_cycle\"")).unwrap();
    let slow: Value = serde_json::from_str(slow).unwrap();
    assert_eq!(slow["data"]["slow_cycle"]["causes"], serde_json::json!(["not_running"]), "{slow:#}");
    assert!(slow["data"]["usage"].get("ready_ns").is_none(), "{slow:#}");
}

#[test]
fn a_cycle_whose_first_words_were_replaced_is_not_said_to_have_waited_for_no_lock() {
    // A history has 64 words, and these reads take more.
    let blocked = Used { ready: 20, switches: [2, 1], ..USED_LITTLE };
    let lost = Cycle { wait: 5000, used: Some(blocked), reads: 11, ..NORMAL };
    let usual = Cycle { begin_us: 50_000, used: Some(USED_LITTLE), ..NORMAL };
    let ring = ring(&[usual, Cycle { begin_us: 100_000, ..lost }]);
    let (out, _) = run(&ring, &["captures"]);
    let said = "1 slow cycle of work: at its beginning, whose words were overwritten, asleep for a lock or in a \
                blocking call, up to 5.1 ms, usually 0 ns\n  it slept; what it recorded then was overwritten\n1 cycle \
                recorded up to ";
    assert!(out.contains(said), "{out}");
    assert!(out.contains(" words, and the last 64 are left. RIP_WORDS=128 keeps them all.\n"), "{out}");
    assert!(out.contains(" words before were overwritten\n"), "{out}");
    assert!(!out.contains("no wait for a lock is recorded") && !out.contains("outside"), "{out}");
    let (json, _) = run(&ring, &["captures", "--json"]);
    let cycle = slow_cycle(&json);
    let expected = (&"overwritten".into(), &serde_json::json!(["asleep"]), &5_100_000.into());
    assert_eq!((&cycle["step_kind"], &cycle["causes"], &cycle["lost_ns"]), expected, "{cycle:#}");
    // With fewer reads, the end of the update is left, and not the beginning of the wait in it.
    let (json, _) = run(&ring_of_update_cut(blocked), &["captures", "--json"]);
    let cycle = slow_cycle(&json);
    assert_eq!(
        (&cycle["step"], &cycle["causes"]),
        (&"update".into(), &serde_json::json!(["asleep"])),
        "{cycle:#}"
    );
    // Without what the kernel says.
    let (out, _) = run(&ring_of(Cycle { begin_us: 100_000, used: None, ..lost }), &["captures"]);
    assert!(!out.contains("no wait is recorded there"), "{out}");
}

/// Its other times were later than its end.
#[test]
fn a_cycle_does_not_lose_more_time_than_it_took() {
    let event = |slot: Slot, _| slot.event(READ.0, &[ticks(300_000), shape(0, 1)]);
    let slot = (0..32).fold(Slot::thread("loop", 9).from(100_000), event);
    let slot = slot.event(CYCLE, &[ticks(105_000), 5000, LIMIT_US, shape(0x11, 3)]);
    let kept = Slot { is_capture: true, exited_ns: BASE.0 + 105_000_000, ..slot.exited() };
    let (json, _) = run(&ring(&[]).with_slots([kept]), &["captures", "--json"]);
    let cycle = slow_cycle(&json);
    assert_eq!((&cycle["took_ns"], &cycle["lost_ns"]), (&5_000_000.into(), &5_000_000.into()), "{cycle:#}");
}

fn ring_of(cycle: Cycle) -> Ring {
    ring(&[Cycle { begin_us: 50_000, used: Some(USED_LITTLE), ..NORMAL }, cycle])
}

/// The ring of a cycle whose update waited. The end of the update is the first event that is left.
fn ring_of_update_cut(used: Used) -> Ring {
    ring_of(Cycle { begin_us: 100_000, wait: 5000, used: Some(used), reads: 6, ..NORMAL })
}

/// The slow cycle in lines of JSON.
fn slow_cycle(json: &str) -> Value {
    let line = json.lines().find(|line| line.contains("\"slow_cycle\"")).unwrap();
    serde_json::from_str::<Value>(line).unwrap()["data"]["slow_cycle"].take()
}

#[test]
fn each_step_that_made_a_cycle_slow_is_named() {
    let used = Used { on_cpu: 5100, ready: 20, switches: [2, 0], ..USED_LITTLE };
    let both = Cycle { begin_us: 100_000, wait: 4000, grow: 5010, used: Some(used), ..NORMAL };
    let more = Cycle { begin_us: 150_000, wait: 5500, ..both };
    let usual = Cycle { begin_us: 50_000, used: Some(USED_LITTLE), ..NORMAL };
    let ring = ring(&[usual, both, more]);
    let (out, _) = run(&ring, &["captures"]);
    let said = "2 slow cycles of work: waiting for TABLE in `update`, and in `grow`, and merely computed longer\n  \
                waiting for TABLE in `update`: up to 5.5 ms, usually 0 ns\n  \
                in `grow`: up to 5.0 ms, usually 10.0 us\n  up to 5.1 ms on a processor";
    assert!(out.contains(said), "{out}");
    for marked in ["(waits) of TABLE", "(span) \"grow\" for 5.0 ms"] {
        let of: Vec<&str> = out.lines().filter(|line| line.contains(marked)).collect();
        assert!(!of.is_empty() && of.iter().any(|line| line.ends_with(" % of the cycle")), "{marked}: {out}");
    }
    let last = "work: a cycle took 9110 us, more than 3000 us\", and merely computed longer\n";
    assert!(out.contains(last), "{out}");
    let (json, _) = run(&ring, &["captures", "--json"]);
    let cycle = slow_cycle(&json);
    assert_eq!(
        (&cycle["step"], &cycle["other_steps"][0]["step"]),
        (&"grow".into(), &"TABLE".into()),
        "{cycle:#}"
    );
    let (checked, _) = run(&ring, &["check"]);
    let said = "took 10.6 ms: 51 % waiting for TABLE in `update` and 47 % in `grow`, and merely computed longer; next";
    assert!(checked.contains(said), "{checked}");
}

#[test]
fn the_table_of_spans_fits_in_80_columns_and_the_places_follow() {
    let (out, _) = run(&mixed(), &["spans"]);
    let lines: Vec<&str> = out.lines().collect();
    let head = lines.iter().position(|line| line.starts_with("OPEN")).unwrap();
    assert!(lines[head].ends_with("IN ALL  SPAN"), "{out}");
    assert!(lines[head..head + 4].iter().all(|line| line.len() <= 80), "{out}");
    for place in ["read  loop.rs:8", "update  loop.rs:9", "grow  loop.rs:10"] {
        assert!(lines.contains(&place), "{place}: {out}");
    }
}
