//! Rings made by hand, with each kind of wait and of hold, and what real programs seldom leave.

use librip_test_kit::builder::{BIAS, Held, Ring, Site, Slot, Task};

const A: u64 = 0x7f00_0000_1000;
const B: u64 = 0x7f00_0000_2000;
const QUEUE: u64 = 0x7f00_0000_3000;
const UNITS: u64 = 0x7f00_0000_4000;
const ROUND: u64 = 0x7f00_0000_5000;
const MESSAGES: u64 = 0x7f00_0000_6000;
const TABLE: u64 = 0x7f00_0000_7000;
const GONE: u64 = 0x7f00_0000_8000;

/// Sites.
const TAKES: u64 = 0x1000;
const WAIT: u64 = 0x1100;
const READS: u64 = 0x1200;
const IDLES: u64 = 0x1300;
const SLEEPS: u64 = 0x1400;
const MEETS: u64 = 0x1500;
const RECEIVES: u64 = 0x1600;
const JOINS: u64 = 0x1700;
const SPAWNS: u64 = 0x1800;
const SERVES: u64 = 0x1900;
const SAVES: u64 = 0x1a00;
const SNAP: u64 = 0x1b00;
const GIVES: u64 = 0x1c00;

/// States of an entry.
const WAITING: u64 = 2;
const HELD: u64 = 3;
const CONDITION: u64 = 5;
const UNHELD: u64 = 7;
/// In place of a recursion: the entry is a future's.
const OF_FUTURE: u64 = 4095;

/// Seconds since boot as ticks.
fn at(seconds: f64) -> u64 {
    1000 + ((seconds - 2.0) * 125_000_000.0) as u64
}

fn ring() -> Ring {
    let of = |lock_type: u16| lock_type << 8 | 4;
    let site = |pc, line, within| Site::new(pc, "src/server.rs", line).within(within);
    let mut ring = Ring::new().with_sites(&[]).with_clock(3);
    ring.sites = vec![
        site(TAKES, 10, "server::takes").of(6, of(1), &[4, 3]),
        site(WAIT, 11, "server::waits").of(2, of(1), &[4, 3]),
        site(READS, 12, "server::reads").of(6, of(2) | 1, &[3]),
        site(IDLES, 13, "server::idles").of(7, of(1), &[4, 3]),
        site(SLEEPS, 14, "server::sleeps").of(2, of(4), &[4, 3]),
        site(MEETS, 15, "server::meets").of(2, of(6), &[4, 3]),
        site(RECEIVES, 16, "server::receives").of(2, of(7), &[4, 3]),
        site(JOINS, 17, "server::joins").of(2, of(5), &[4, 3]),
        site(SPAWNS, 20, "server::spawns"),
        site(SERVES, 21, "server::serves"),
        site(SAVES, 22, "server::saves"),
        site(SNAP, 23, "server::snaps"),
        site(GIVES, 24, "server::gives").of(4, of(1), &[4, 3]),
    ];
    ring.lock_names = [(A, "accounts"), (B, "books"), (QUEUE, "queue"), (UNITS, "units"), (TABLE, "table")]
        .map(|(lock, name)| (ring.pid, lock, name.to_owned()))
        .to_vec();
    ring
}

fn holds(lock: u64, since: f64) -> Held {
    Held { sequence: 2, ..Held::new(HELD, lock, TAKES).since(at(since)) }
}

fn waits(lock: u64, since: f64) -> Held {
    Held::new(WAITING, lock, WAIT).since(at(since))
}

fn on_condition(lock: u64, since: f64) -> Held {
    Held::new(CONDITION, lock, IDLES).since(at(since))
}

fn for_unit(object: u64, place: u64, since: f64) -> Held {
    Held::new(UNHELD, object, place).since(at(since))
}

fn for_message(object: u64, since: f64) -> Held {
    Held { shared: true, process_shared: true, ..for_unit(object, RECEIVES, since) }
}

fn for_end(tid: u32, since: f64) -> Held {
    Held { process_shared: true, ..for_unit(u64::from(tid), JOINS, since) }
}

fn of_future(held: Held) -> Held {
    Held { recursion: OF_FUTURE, ..held }
}

/// Two threads of a process that exited wait for one another. Others wait for all that can be awaited.
pub(crate) fn threads() -> Ring {
    let thread = Slot::thread;
    let slots = [
        thread("saver", 10).event(TAKES, &[at(3.0), A]).has(holds(A, 3.0)).has(waits(B, 4.0)),
        thread("spender", 11).event(TAKES, &[at(3.1), B]).has(holds(B, 3.1)).has(waits(A, 4.1)),
        thread("idle", 12).event(IDLES, &[at(5.0), QUEUE]).has(on_condition(QUEUE, 5.0)),
        thread("idle", 13).event(IDLES, &[at(5.1), QUEUE]).has(on_condition(QUEUE, 5.1)),
        thread("eater", 14).event(SLEEPS, &[at(5.2), UNITS]).has(for_unit(UNITS, SLEEPS, 5.2)),
        thread("runner", 15).event(MEETS, &[at(5.3), ROUND]).has(Held {
            shared: true,
            recursion: 3,
            ..for_unit(ROUND, MEETS, 5.3)
        }),
        thread("reader", 16).event(RECEIVES, &[at(5.4), MESSAGES]).has(for_message(MESSAGES, 5.4)),
        thread("parent", 17).event(JOINS, &[at(5.5), 10]).has(for_end(10, 5.5)),
        // Readers, and one that waits for them.
        thread("reads", 18).has(Held { shared: true, ..Held::new(HELD, TABLE, READS).since(at(6.0)) }),
        thread("reads", 19).has(Held { shared: true, ..Held::new(HELD, TABLE, READS).since(at(6.1)) }),
        thread("writes", 20).has(waits(TABLE, 6.2)),
        // What waits has no time.
        thread("untimed", 21).has(Held::new(WAITING, A, WAIT)),
        // The holder has exited.
        thread("gone", 22).event(TAKES, &[at(3.0), GONE]).has(holds(GONE, 3.0)).exited(),
        thread("left", 23).has(waits(GONE, 6.3)),
        thread("free", 24).marks([SNAP]),
    ];
    Ring { exit_status: Some(3), ..ring().with_slots(slots) }
}

/// Threads in a wait whose signal handlers wait too.
pub(crate) fn handlers() -> Ring {
    let slots = [
        Slot::thread("owner", 10).event(TAKES, &[at(3.0), A]).has(holds(A, 3.0)),
        // On a condition variable, and in the handler for a lock.
        Slot::thread("both", 11)
            .event(IDLES, &[at(4.0), QUEUE])
            .has(on_condition(QUEUE, 4.0))
            .event(WAIT, &[at(5.0), A])
            .has(Held { sequence: 5, ..waits(A, 5.0) }),
        // On a condition variable, and in the handler for a unit.
        Slot::thread("units", 12)
            .event(IDLES, &[at(4.0), QUEUE])
            .has(on_condition(QUEUE, 4.0))
            .event(SLEEPS, &[at(5.0), UNITS])
            .has(Held { sequence: 5, ..for_unit(UNITS, SLEEPS, 5.0) }),
        // For the end of a thread, and in the handler for a lock.
        Slot::thread("joins", 13)
            .event(JOINS, &[at(4.0), 10])
            .has(for_end(10, 4.0))
            .event(WAIT, &[at(5.0), A])
            .has(Held { sequence: 5, ..waits(A, 5.0) }),
        // For the end of a thread, and in the handler for a message.
        Slot::thread("receives", 14)
            .event(JOINS, &[at(4.0), 10])
            .has(for_end(10, 4.0))
            .event(RECEIVES, &[at(5.0), MESSAGES])
            .has(Held { sequence: 5, ..for_message(MESSAGES, 5.0) }),
    ];
    Ring { exit_status: Some(0), ..ring().with_slots(slots) }
}

/// Tasks in all states, with waits of one future, of several, and of code on the thread that polls them.
pub(crate) fn tasks() -> Ring {
    let task = Task { location: BIAS + SPAWNS, runtime: 1, workers: 2, counts_wakes: true, ..Task::new() };
    let suspended = |since, worker| Task {
        turn: 4,
        since: Some((since, true)),
        poller: Some(worker),
        wakers: Some(1),
        awaits: vec![(BIAS + SERVES, None, 3), (BIAS + SAVES, Some(0), 3)],
        entry_turns: vec![(3, true, Some(1)), (3, true, Some(0)), (3, true, Some(0))],
        ..task.clone()
    };
    let polled = |since, worker| Task { turn: 3, wakers: None, ..suspended(since, worker) };
    let slots = [
        Slot::thread("worker", 10).event(TAKES, &[at(3.0), A]).has(holds(A, 3.0)),
        Slot::task("waits", 1, suspended(at(9.0), -1)).has(of_future(waits(A, 8.0))),
        Slot::task("two locks", 2, suspended(at(9.1), -2))
            .has(of_future(waits(A, 8.1)))
            .has(of_future(waits(B, 8.2))),
        Slot::task("lock or end", 3, suspended(at(9.2), -3))
            .has(of_future(for_end(1 << 31 | 1, 8.3)))
            .has(of_future(waits(A, 8.4))),
        Slot::task("end", 4, suspended(at(9.3), -4)).has(of_future(for_end(1 << 31 | 1, 8.5))),
        Slot::task("message or end", 5, suspended(at(9.4), -5))
            .has(of_future(for_message(MESSAGES, 8.6)))
            .has(of_future(for_end(10, 8.7))),
        Slot::task("lock or message", 6, suspended(at(9.5), -6))
            .has(of_future(for_message(MESSAGES, 8.8)))
            .has(of_future(waits(A, 8.9))),
        // The code that its poll runs waits.
        Slot::task("blocks", 7, polled(at(9.6), -7)).has(waits(A, 9.7)),
        Slot::task("blocks on a condition", 8, polled(at(9.8), -8)).has(on_condition(QUEUE, 9.9)),
        Slot::task("holds", 9, suspended(at(9.9), -9))
            .event(TAKES, &[at(9.0), B])
            .has(of_future(holds(B, 9.0))),
        Slot::task("woken", 10, Task { wakes: 1, woken: Some(at(11.0)), ..suspended(at(9.5), -10) })
            .has(of_future(waits(A, 8.5))),
        Slot::task("new", 11, task.clone()),
        Slot::task("done", 12, Task { turn: 2, ..task.clone() }).exited(),
        Slot::task("queued call", 13, Task { kind: 2, ..task.clone() }),
        Slot::task("call", 14, Task { kind: 2, ..polled(at(10.0), -14) }).has(on_condition(QUEUE, 10.1)),
    ];
    Ring { exit_status: Some(3), has_tasks: true, ..ring().with_slots(slots) }
}

/// Marks, and no lock.
pub(crate) fn marks() -> Ring {
    Ring { exit_status: Some(0), ..ring().with_slots([Slot::thread("only", 10).marks([SNAP])]) }
}

/// Nothing is wrong.
pub(crate) fn sound() -> Ring {
    let slots = [
        Slot::thread("owner", 10).event(TAKES, &[at(60.0), A]).has(holds(A, 60.0)),
        Slot::thread("free", 11).marks([SNAP]),
    ];
    Ring { exit_status: Some(0), ..ring().with_slots(slots) }
}

/// Killed, while the only other user of a lock waited for it. Its holder was where it had been often, and had gone on.
pub(crate) fn held_at_end() -> Ring {
    let often = |slot: Slot, _| slot.event(TAKES, &[at(3.0), A]).marks([SNAP]).event(GIVES, &[at(3.0), A]);
    let owner = (0..10).fold(Slot::thread("owner", 10), often);
    let slots = [
        owner.event(TAKES, &[at(5.0), A]).marks([SNAP]).has(holds(A, 5.0)),
        Slot::thread("worker", 11).event(WAIT, &[at(5.1), A]).has(waits(A, 5.1)),
    ];
    ring().of_a_dead_process().with_slots(slots)
}

/// All threads wait on a condition variable, and nobody is left.
pub(crate) fn nobody_left() -> Ring {
    let idle = |tid| Slot::thread("idle", tid).event(IDLES, &[at(5.0), QUEUE]).has(on_condition(QUEUE, 5.0));
    Ring { exit_status: Some(0), ..ring().with_slots([idle(10), idle(11)]) }
}
