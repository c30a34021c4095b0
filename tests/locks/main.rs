//! The records of locks: the held-lock table when the process dies, and the events.

#![allow(missing_docs, reason = "tests")]

mod ends;
mod lot;
mod storm;
mod table;
mod waits;

use librip_test_kit::oracle::{Held, Holding, Ring, Slot};
use librip_test_kit::victim::{Plan, Victim};

/// Site flags, literally: shared, try, wrapper, readers first, upgradable, owned; types mutex and rwlock.
const SHARED: u16 = 1;
const TRY: u16 = 2;
const WRAPPER: u16 = 4;
const READERS_FIRST: u16 = 16;
const UPGRADABLE: u16 = 32;
/// The flag of locks whose guards stay in their thread: those of `sync`.
const OWNED: u16 = 64;
/// Only the owner may release the lock, and nothing enforces that.
const OWNED_BY_RULE: u16 = 128;
const MUTEX: u16 = 1 << 8;
const RWLOCK: u16 = 2 << 8;

/// Site kinds, literally.
const WAIT: u8 = 2;
const ACQUIRED: u8 = 3;
const RELEASED: u8 = 4;
const TRY_FAILED: u8 = 5;
const TAKES: u8 = 6;
const CONDITION_WAIT: u8 = 7;
const CONDITION_WOKEN: u8 = 8;
const DESTROYED: u8 = 9;

fn plan(arguments: &[&str]) -> Plan {
    let mut all = vec!["locks"];
    all.extend(arguments);
    Plan::new(env!("CARGO_BIN_EXE_victim"), &all)
}

/// Starts a victim that prints the addresses of this many locks, one a line.
fn start(plan: Plan, locks: usize) -> (Victim, Vec<u64>) {
    let mut victim = plan.start();
    let locks = (0..locks).map(|_| u64::from_str_radix(&victim.line(), 16).unwrap()).collect();
    (victim, locks)
}

/// Reads the ring once the victim pauses. The victim stays paused.
fn at_pause(victim: &mut Victim) -> Ring {
    victim.until("paused");
    victim.ring_now(&victim.ring_path()).unwrap()
}

/// Continues the victim and reads the ring at its next pause.
fn next(victim: &mut Victim) -> Ring {
    victim.go_on();
    at_pause(victim)
}

/// Continues the victim until it ends.
fn end(mut victim: Victim) {
    victim.go_on();
    let remains = victim.wait();
    assert_eq!(remains.status.code(), Some(3), "{remains:?}");
}

fn main_slot(ring: &Ring) -> &Slot {
    ring.slot_named("victim")
}

/// The main thread's entry for a lock.
fn main_entry(ring: &Ring, lock: u64) -> Option<Held> {
    main_slot(ring).held_of(lock)
}

fn state(held: Option<Held>) -> Option<Holding> {
    held.map(|held| held.state)
}

/// The kind and flags of the site where an entry was made. A call, which has no site, stands for one.
fn site_of(ring: &Ring, held: Held) -> (u8, u16) {
    if let Some(flags) = held.call {
        assert!(ring.is_call(held.pc), "{held:?}");
        let kind = match held.state {
            Holding::Waiting => WAIT,
            Holding::CondWait => CONDITION_WAIT,
            _ => TAKES,
        };
        return (kind, flags);
    }
    let site = ring.site_of(held.pc).unwrap();
    (site.kind, site.flags)
}
