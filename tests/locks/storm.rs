//! SIGKILL at random instants, while locks are acquired and released in every order: the recorded holders are true.

use std::time::{Duration, Instant};

use librip_test_kit::oracle::{Holding, Ring};
use librip_test_kit::progress;
use librip_test_kit::victim::torture;

use crate::plan;

const THREADS: usize = 3;
const LOCKS: usize = 15;
/// These locks note their own holder, from after their acquisition until before their release.
const TOLD: std::ops::Range<usize> = 9..13;
/// The last locks have marks by hand, after each operation.
const BY_HAND: usize = 2;

/// After as many kills without all hard moments, something is wrong.
const MOST_ROUNDS: u64 = 2000;

/// How often a thread truly held a lock, and whether shared.
fn truth(cells: &[[u64; 4]], thread: usize, lock: usize) -> (u64, bool) {
    let value = cells.get(thread * 32 + lock).map_or(0, |cell| cell[0]);
    (value >> 8, value & 0xff == 2)
}

#[derive(Debug, Default)]
struct Seen {
    held: usize,
    shared: usize,
    again: usize,
    full: usize,
    in_between: usize,
    sampled: usize,
}

impl Seen {
    /// Whether kills came at all moments that are hard.
    fn is_enough(&self) -> bool {
        let Seen { held, shared, again, full, in_between, sampled } = *self;
        sampled > 300 && held > 300 && shared > 30 && again > 3 && full > 0 && in_between > 20
    }
}

fn check(ring: &Ring, cells: &[[u64; 4]], seen: &mut Seen) {
    let addresses: Vec<u64> = (0..LOCKS).map(|lock| cells[lock][1]).collect();
    let mut holders: Vec<Vec<bool>> = vec![Vec::new(); LOCKS];
    for thread in 0..THREADS {
        let Some(slot) = ring.slots_named(&format!("w{thread}")).next() else { continue };
        assert_eq!(slot.held_overflowed, 0, "there was room for all");
        assert!(slot.sampled_torn <= 1, "it died at most in one: {:?}", slot.sampled);
        assert!(slot.sampled.is_sorted_by_key(|&(_, ticks)| ticks), "{:?}", slot.sampled);
        seen.sampled += slot.sampled.len();
        assert!(slot.held.iter().all(|held| addresses.contains(&held.lock)), "{:?}", slot.held);
        seen.full += usize::from(slot.held.len() == LOCKS);
        // A thread does one operation at a time, so at most one lock may be between two steps.
        let mut in_between = 0;
        for (lock, &address) in addresses.iter().enumerate() {
            let (times, is_shared) = truth(cells, thread, lock);
            let entry = slot.held_of(address);
            let held = entry.filter(|entry| entry.state == Holding::Held);
            let recorded = held.map_or(0, |held| held.recursion + 1);
            let what = || format!("w{thread}, lock {lock}: truly {times} times, {entry:?}");
            assert!(recorded == times || recorded == times + 1, "{}", what());
            if let Some(held) = held.filter(|_| times > 0) {
                assert_eq!(held.shared, is_shared, "{}", what());
            }
            let is_open = recorded != times || entry.is_some_and(|entry| entry.state != Holding::Held);
            in_between += usize::from(is_open);
            seen.again += usize::from(recorded > 1);
            if let Some(held) = held {
                let owner = cells[lock][2];
                assert!(!TOLD.contains(&lock) || owner == thread as u64 + 1, "owned by {owner}; {}", what());
                seen.held += 1;
                seen.shared += usize::from(held.shared);
                let is_taken = match ring.site_of(held.pc) {
                    Some(site) => matches!(site.kind, 2 | 3 | 6),
                    None => ring.is_call(held.pc) && held.call.is_some(),
                };
                assert!(is_taken, "taken where locks are taken: {held:?}");
                if lock < LOCKS - BY_HAND {
                    holders[lock].push(held.shared);
                }
            }
        }
        assert!(in_between <= 1, "w{thread}: {:?}", slot.held);
        seen.in_between += in_between;
    }
    for (lock, holders) in holders.iter().enumerate() {
        let is_allowed = holders.len() <= 1 || holders.iter().all(|&shared| shared);
        assert!(is_allowed, "lock {lock} is had by several: {holders:?}");
    }
}

#[test]
fn the_recorded_holders_are_true_at_any_instant_of_death() {
    let mut seen = Seen::default();
    let mut random = 0x5eed_0004_u64;
    let (mut round, least) = (0, 120 * u64::from(torture()));
    while round < least || !seen.is_enough() && round < MOST_ROUNDS {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let clock = ["contended", "all", "off", "ticks"][round as usize % 4];
        let words = ["64", "16"][round as usize % 2];
        let plan = plan(&["storm", &round.to_string()]).env("RIP_CLOCK", clock).env("RIP_WORDS", words);
        let mut victim = plan.start();
        victim.until("ready");
        let end = Instant::now() + Duration::from_micros(random % 3000);
        while Instant::now() < end {
            std::hint::spin_loop();
        }
        let remains = victim.killed();
        assert_eq!(remains.signal(), Some(libc::SIGKILL), "{remains:?}");
        let cells = progress::read_all(&remains.dir().join("progress"));
        check(&remains.ring(), &cells, &mut seen);
        round += 1;
    }
    eprintln!("{seen:?}");
    assert!(seen.is_enough(), "the test is too kind: {seen:?}");
}
