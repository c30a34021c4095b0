//! Rings that the tests of exports read, and what hostile names in them are.

use super::fixture::Fixture;
use super::locks::*;
use super::run::Outcome;
use super::synth::{BIAS, Held, Ring, Site, Slot, Task};

/// What breaks out of strings of the formats, and what a terminal would obey.
pub(crate) const NASTY: &str = "a\"b\\\n;x \u{1b}[2J\u{202e}</";
/// The same as people see it.
pub(crate) const SEEN: &str = "a\"b\\\\n;x \\u{1b}[2J\\u{202e}</";

/// An event, and the end of a span.
pub(crate) const SAID: u64 = 0x5000;
pub(crate) const ENDS: u64 = 0x5200;
/// A time and one value of 32 bits: two words before it.
const SHAPE: u64 = 1 | 2 << 40 | 1 << 46;

/// A thread that held A from 3 to 6 s and B from 4 to 7 s, released A to a waiter, and holds B again since 8 s.
pub(crate) fn holder() -> Slot {
    Slot::thread(NASTY, 1)
        .event(TAKES, &[at(3.0), A])
        .event(TAKES, &[at(4.0), B])
        .event(RELEASED, &[at(6.0), at(3.0), A])
        .event(RELEASED, &[at(7.0), at(4.0), B])
        .event(TAKES, &[at(8.0), B])
        .has(Held::new(HELD, B, TAKES).since(at(8.0)))
}

/// One that waited for A from 5 s on, and got it when it was released.
pub(crate) fn follower() -> Slot {
    Slot::thread("follower", 2)
        .event(WAIT, &[at(5.0), A])
        .event(RELEASED, &[at(6.5), at(6.0), A])
        .event(WAIT, &[at(9.0), B])
        .has(Held::new(WAITING, B, WAIT).since(at(9.0)))
}

pub(crate) fn waiter(tid: u32) -> Slot {
    Slot::thread("waiter", tid).event(WAIT, &[at(9.0), B]).has(Held::new(WAITING, B, WAIT).since(at(9.0)))
}

/// One that said "3 apples" at 4.5 s, within a span from 4 to 5 s.
pub(crate) fn grocer() -> Slot {
    Slot::thread("grocer", 5).event(SAID, &[at(4.5), 3, SHAPE]).event(ENDS, &[at(5.0), at(4.0)])
}

/// All of them but the grocer.
pub(crate) fn story() -> Ring {
    let threads = [holder(), follower(), waiter(3), waiter(4)];
    let names = vec![(4321, A, NASTY.to_owned()), (4321, B, "queue".to_owned())];
    // It exited 66 s after the boot.
    Ring { exit_status: Some(3), lock_names: names, ..ring().with_slots(threads) }
}

/// The story with what the grocer said. A line feed and others are in the format and in the name of the span.
pub(crate) fn talk() -> Ring {
    let mut ring = story().with_slots([grocer()]);
    let said = |pc, label: &str, kind, operands: &[u8]| Site {
        label: label.into(),
        ..Site::new(pc, "src/said.rs", 7).of(kind, 3, operands)
    };
    ring.sites.push(said(SAID, &format!("{{}} apples{NASTY}"), 14, &[4, 10]));
    ring.sites.push(said(ENDS, &format!("sale{NASTY}"), 16, &[4, 5]));
    ring
}

/// Where tasks are spawned, and two places where futures are awaited.
const SPAWNS: u64 = 0x6000;
const SERVES: u64 = 0x6100;
const SAVES: u64 = 0x6200;
/// In place of a recursion: the entry is a future's.
pub(crate) const OF_FUTURE: u64 = 4095;

/// A worker that holds A since 8 s, and five tasks: one that waits for A since 8.5 s in `save`, which `serve` awaits,
/// and is suspended since 9 s; one that the worker polls since 10 s; one that was woken at 11 s; one that was never
/// polled; and one that has ended. One more was refused.
pub(crate) fn crew() -> Ring {
    let mut ring = ring();
    ring.sites.push(Site::new(SPAWNS, "src/main.rs", 9).within("main"));
    ring.sites.push(Site::new(SERVES, "src/serve.rs", 20).within("serve"));
    ring.sites.push(Site::new(SAVES, "src/save.rs", 7).within("save"));
    let task = Task { location: BIAS + SPAWNS, runtime: 1, workers: 2, counts_wakes: true, ..Task::new() };
    let suspended = |since, poller| Task {
        turn: 4,
        since: Some((since, true)),
        poller: Some(poller),
        wakers: Some(1),
        awaits: vec![(BIAS + SERVES, None, 3)],
        ..task.clone()
    };
    let waiting = Task {
        awaits: vec![(BIAS + SERVES, None, 3), (BIAS + SAVES, Some(0), 3)],
        entry_turns: vec![(3, true, Some(1))],
        ..suspended(at(9.0), -1)
    };
    let polled = Task { turn: 3, wakers: None, ..suspended(at(10.0), -2) };
    let woken = Task { wakes: 1, woken: Some(at(11.0)), ..suspended(at(9.5), -3) };
    let wait = Held { recursion: OF_FUTURE, ..Held::new(WAITING, A, WAIT).since(at(8.5)) };
    let worker = Held { sequence: 2, ..Held::new(HELD, A, TAKES).since(at(8.0)) };
    let slots = [
        Slot::thread("worker", 10).event(TAKES, &[at(8.0), A]).has(worker),
        Slot::task("server", 7, waiting).event(WAIT, &[at(8.5), A]).has(wait),
        Slot::task("busy", 8, polled),
        Slot::task("woken", 9, woken),
        Slot::task("new", 11, task.clone()),
        Slot::task("done", 6, Task { turn: 2, ..task }).exited(),
    ];
    let lock_names = vec![(ring.pid, A, "queue".to_owned())];
    Ring { exit_status: Some(3), has_tasks: true, tasks_refused: 1, lock_names, ..ring.with_slots(slots) }
}

pub(crate) fn export(ring: &Ring, format: &str, options: &[&str]) -> Outcome {
    Fixture::of(ring).show(&[&["export", "--format", format], options].concat())
}
