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

/// What a cycle takes, us: to read, to wait for the lock, to update under it, and to grow.
#[derive(Clone, Copy)]
struct Cycle {
    begin_us: u64,
    read: u64,
    wait: u64,
    update: u64,
    grow: u64,
}

/// A cycle that takes no longer than usual.
const NORMAL: Cycle = Cycle { begin_us: 0, read: 60, wait: 0, update: 40, grow: 10 };

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
        slot = begin(slot, GROW.0, now);
        slot = end(slot, GROW.1, now, now + self.grow);
        now += self.grow;
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
    let (json, _) = run(&mixed(), &["check", "--json"]);
    let checked = json.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let checked = checked.into_iter().find(|line| line["type"] == "checked").unwrap();
    let cycles = &checked["data"]["slow_cycles"];
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
