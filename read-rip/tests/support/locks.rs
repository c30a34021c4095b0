//! A ring with a clock and sites of lock operations, to which the tests of locks add threads.

use super::synth::{Held, Ring, Site, Slot};

pub(crate) const A: u64 = 0x7f00_0000_1000;
pub(crate) const B: u64 = 0x7f00_0000_2000;

/// Sites of a mutex's wrapper.
pub(crate) const TAKES: u64 = 0x1000;
pub(crate) const WAIT: u64 = 0x1100;
pub(crate) const RELEASED: u64 = 0x1200;
pub(crate) const TRY_TAKES: u64 = 0x1300;
pub(crate) const TRY_FAILED: u64 = 0x1400;
/// Marks by hand.
pub(crate) const HAND_WAIT: u64 = 0x2000;
pub(crate) const HAND_ACQUIRED: u64 = 0x2100;
pub(crate) const HAND_RELEASED: u64 = 0x2200;
/// A readers-writer lock in shared mode.
pub(crate) const READS: u64 = 0x3000;
pub(crate) const READ_WAIT: u64 = 0x3100;
/// A wait of limited time.
pub(crate) const TIMED_WAIT: u64 = 0x3200;
pub(crate) const SNAP: u64 = 0x4000;

/// States of an entry of the held-lock table.
pub(crate) const TAKING: u64 = 1;
pub(crate) const WAITING: u64 = 2;
pub(crate) const HELD: u64 = 3;
pub(crate) const RELEASING: u64 = 4;
pub(crate) const CONDITION: u64 = 5;
pub(crate) const DESTROYED: u64 = 6;
pub(crate) const SEMAPHORE: u64 = 7;

/// Seconds since boot as ticks of a ring with a clock.
pub(crate) fn at(seconds: f64) -> u64 {
    1000 + ((seconds - 2.0) * 125_000_000.0) as u64
}

pub(crate) fn ring() -> Ring {
    let mutex = 1 << 8 | 4;
    let rwlock = 2 << 8 | 4 | 1;
    let site = |pc, file, line, within| Site::new(pc, file, line).within(within);
    let mut ring = Ring::new().with_sites(&[]).with_clock(3);
    ring.sites = vec![
        site(TAKES, "src/cache.rs", 10, "server::cache").of(6, mutex, &[4, 3]),
        site(WAIT, "src/cache.rs", 11, "server::cache").of(2, mutex, &[4, 3]),
        site(RELEASED, "src/cache.rs", 12, "server::cache").of(4, mutex, &[4, 5, 3]),
        site(TRY_TAKES, "src/cache.rs", 13, "server::cache").of(6, mutex | 2, &[3]),
        site(TRY_FAILED, "src/cache.rs", 14, "server::cache").of(5, mutex | 2, &[3]),
        site(HAND_WAIT, "src/hand.c", 20, "").of(2, 0, &[4, 3]),
        site(HAND_ACQUIRED, "src/hand.c", 21, "").of(3, 0, &[4, 3]),
        site(HAND_RELEASED, "src/hand.c", 22, "").of(4, 0, &[4, 5, 3]),
        site(READS, "src/net.rs", 30, "server::net").of(6, rwlock, &[3]),
        site(READ_WAIT, "src/net.rs", 31, "server::net").of(2, rwlock, &[4, 3]),
        site(TIMED_WAIT, "src/net.rs", 32, "server::net").of(2, mutex | 2, &[4, 3]),
        site(SNAP, "src/main.rs", 1, "server"),
    ];
    ring
}

/// A thread that holds one lock and waits for another since 4 s.
pub(crate) fn transfer(name: &str, tid: u32, holds: u64, waits_for: u64) -> Slot {
    Slot::thread(name, tid)
        .event(TAKES, &[at(3.0), holds])
        .event(TAKES, &[at(4.0), waits_for])
        .event(WAIT, &[at(4.0), waits_for])
        .has(Held { sequence: 2, ..Held::new(HELD, holds, TAKES).since(at(3.0)) })
        .has(Held { sequence: 8, ..Held::new(WAITING, waits_for, WAIT).since(at(4.0)) })
}

/// Two threads wait for a lock, since 8 s and 9 s. The one that holds it, `keeper[3]`, recorded no time: the lock was
/// free.
pub(crate) fn kept() -> Ring {
    let waiter = |name: &str, tid, since| {
        let wait = Held::new(WAITING, A, WAIT).since(at(since));
        Slot::thread(name, tid).event(WAIT, &[at(since), A]).has(wait)
    };
    let keeper = Slot::thread("keeper", 3).event(TRY_TAKES, &[A]).has(Held::new(HELD, A, TRY_TAKES));
    let slots = [waiter("first", 1, 8.0), waiter("second", 2, 9.0), keeper];
    Ring { lock_names: vec![(ring().pid, A, "savings".into())], ..ring() }.with_slots(slots)
}

/// Two threads that hold what the other one wants. The guards of their locks stay with them.
pub(crate) fn deadlock() -> Ring {
    let mutex = 1 << 8 | 4 | 64;
    let mut ring = Ring::new().with_sites(&[]).with_clock(3);
    ring.sites = vec![
        Site::new(TAKES, "src/bank.rs", 35).within("bank").of(6, mutex, &[4, 3]),
        Site::new(WAIT, "src/bank.rs", 37).within("bank").of(2, mutex, &[4, 3]),
    ];
    let transfers = [("saver", 1, A, B), ("spender", 2, B, A)];
    ring.with_slots(transfers.map(|(name, tid, holds, wants)| transfer(name, tid, holds, wants)))
}
