//! Names that the program gives to its locks.
//!
//! The key of a name is in the control block, in one of four groups of eight that are computed from the lock's address
//! and the process. So naming a lock, and removing its name, takes the same time however many names there are. The
//! first group is near those of neighbouring locks, so that a few names take few pages. The others may be anywhere.
//!
//! A key gets an entry in the file with its first name, and keeps it. The entry has a copy of the key, and the name.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use librip_format::{Checksum, NAME_CLAIMED, NAME_FREE, NAME_LEN_BYTES};

use super::control::NameKey;
use super::names;
use super::{Ring, Table};
use crate::sys;

/// Keys of a group: two cache lines.
const GROUP_KEYS: usize = 8;
/// Neighbouring locks take only this many of a group, so that they never fill it.
const NEAR_KEYS: usize = 3;
const PAGE_GROUPS: usize = 32;
/// Locks whose addresses have the same bits from this one on try the same page of keys first.
const NEIGHBOURS_SHIFT: u32 = 16;

/// [`NameKey::owner`]: the key is complete.
const NAME_COMPLETE: u32 = 1;
/// [`NameKey::owner`]: the first bit of the `NAME_*`. A process id of Linux has 22 bits.
const STATE_SHIFT: u32 = 30;

/// Names a lock. An empty name removes the present one. A name of more than 48 bytes is cut. If the ring has no room,
/// the lock gets no name, and the header counts that.
pub(crate) fn write(ring: &Ring, lock: u64, name: &[u8]) {
    let pid = sys::pid();
    if name.is_empty() {
        // If two threads named the lock for the first time at the same time, it has two keys.
        while let Some(key) = claimed_own(ring, pid, lock) {
            set_free(ring, key);
        }
        return;
    }
    let Some(key) = claimed_own(ring, pid, lock).or_else(|| claimed_free(ring, pid, lock)) else {
        // ORDERING: relaxed, a statistic.
        ring.header().lock_names_refused.fetch_add(1, Relaxed);
        return;
    };
    // ORDERING: relaxed for the key: `publish` publishes it.
    key.lock.store(lock, Relaxed);
    if let Some(index) = entry_of(key) {
        let entry = ring.lock_name(index);
        // ORDERING: release on the fields: a reader that sees a new one also sees that the entry is claimed.
        entry.state.store(NAME_CLAIMED, Release);
        entry.pid.store(pid, Release);
        entry.lock.store(lock, Release);
        names::store(&entry.name, name);
    }
    set_complete(ring, key, pid, lock, name);
}

/// The key of this lock's name, claimed.
fn claimed_own(ring: &Ring, pid: u32, lock: u64) -> Option<&NameKey> {
    let complete = owner(NAME_COMPLETE, pid);
    groups(ring.control.name_keys(), pid, lock).into_iter().flatten().find(|key| {
        // ORDERING: acquire, pairs with the release in `publish`: the lock belongs to this owner or a later one.
        if key.owner.load(Acquire) != complete || key.lock.load(Relaxed) != lock || !claim(key, complete) {
            return false;
        }
        let is_own = key.lock.load(Relaxed) == lock;
        if !is_own {
            // Between the two loads the key was freed, and this process took it for another lock.
            // ORDERING: release: as in `publish`.
            key.owner.store(complete, Release);
        }
        is_own
    })
}

/// A free key for this lock, claimed, with an entry in the file.
fn claimed_free(ring: &Ring, pid: u32, lock: u64) -> Option<&NameKey> {
    let key = take_free(ring.control.name_keys(), pid, lock)?;
    if entry_of(key).is_none() {
        let Ok(index) = ring.append(Table::LockNames, 1) else {
            // ORDERING: release: as in `publish`.
            key.owner.store(owner(NAME_FREE, 0), Release);
            return None;
        };
        // ORDERING: relaxed: `publish` publishes it.
        key.entry.store(index as u32 + 1, Relaxed);
    }
    Some(key)
}

/// Claims a free key: in the near group, or else in the emptiest of the others. That fills the table evenly (Azar,
/// Broder, Karlin and Upfal, "Balanced allocations", 1999).
fn take_free(keys: &[NameKey], pid: u32, lock: u64) -> Option<&NameKey> {
    const FREE: u32 = owner(NAME_FREE, 0);
    // ORDERING: relaxed: a hint. The exchange decides. A load first, because the exchange would make the cache line of
    // each passed key exclusive.
    let is_free = |key: &&NameKey| key.owner.load(Relaxed) == FREE;
    let take = |group: &[NameKey]| group.iter().position(|key| is_free(&key) && claim(key, FREE));
    let [near, others @ ..] = groups(keys, pid, lock);
    if let Some(at) = take(near.get(..NEAR_KEYS).unwrap_or_default()) {
        return Some(&near[at]);
    }
    let emptiest = others.into_iter().max_by_key(|group| group.iter().filter(is_free).count())?;
    take(emptiest).map(|at| &emptiest[at])
}

/// The groups that the key of a lock may be in. The first one is near those of neighbouring locks.
fn groups(keys: &[NameKey], pid: u32, lock: u64) -> [&[NameKey]; 4] {
    let count = keys.len() / GROUP_KEYS;
    let near = spread(lock >> NEIGHBOURS_SHIFT, pid, 0, count / PAGE_GROUPS) * PAGE_GROUPS
        + spread(lock, pid, 1, PAGE_GROUPS);
    let far = |salt| spread(lock, pid, salt, count);
    [near, far(2), far(3), far(4)].map(|group| {
        let first = group * GROUP_KEYS;
        keys.get(first..first + GROUP_KEYS).unwrap_or_default()
    })
}

/// Spreads values evenly over the numbers below `range`, differently for each `salt`.
fn spread(value: u64, pid: u32, salt: u64, range: usize) -> usize {
    // The finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
    let mut mixed =
        (value ^ u64::from(pid) << 40).wrapping_add((salt + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    ((u128::from(mixed) * range as u128) >> 64) as usize
}

const fn owner(state: u32, pid: u32) -> u32 {
    state << STATE_SHIFT | pid
}

fn claim(key: &NameKey, seen: u32) -> bool {
    // ORDERING: acquire, pairs with the release in `publish`: the claim comes after the last owner's stores.
    key.owner.compare_exchange(seen, owner(NAME_CLAIMED, 0), Acquire, Relaxed).is_ok()
}

/// The index of a key's entry in the file.
fn entry_of(key: &NameKey) -> Option<u64> {
    // ORDERING: relaxed: the caller has claimed the key.
    key.entry.load(Relaxed).checked_sub(1).map(u64::from)
}

fn set_free(ring: &Ring, key: &NameKey) {
    publish(ring, key, NAME_FREE, owner(NAME_FREE, 0));
}

fn set_complete(ring: &Ring, key: &NameKey, pid: u32, lock: u64, name: &[u8]) {
    let mut covered = [0; 60];
    covered[..4].copy_from_slice(&pid.to_le_bytes());
    covered[4..12].copy_from_slice(&lock.to_le_bytes());
    covered[12..].copy_from_slice(&names::padded::<NAME_LEN_BYTES>(name));
    publish(ring, key, Checksum::new().with(&covered).state(), owner(NAME_COMPLETE, pid));
}

/// Ends the claim of a key, with the state of its entry in the file.
fn publish(ring: &Ring, key: &NameKey, state: u32, owner: u32) {
    // ORDERING: release on both: a thread or a reader that sees the state sees the key or the entry.
    if let Some(index) = entry_of(key) {
        ring.lock_name(index).state.store(state, Release);
    }
    key.owner.store(owner, Release);
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// As many keys as a ring has.
    const KEYS: usize = 131_072;

    fn take(keys: &[NameKey], lock: u64) -> bool {
        take_free(keys, 77, lock).is_some()
    }

    fn keys() -> Vec<NameKey> {
        (0..KEYS).map(|_| NameKey::default()).collect()
    }

    #[test]
    fn a_hundred_thousand_locks_find_a_key_wherever_they_are() {
        for (what, stride) in [("an array", 40), ("heap blocks", 272), ("pages", 4096), ("stacks", 8 << 20)] {
            let keys = keys();
            let named = (0..100_000).filter(|at| take(&keys, 0x7f12_3456_7010 + at * stride)).count();
            assert_eq!(named, 100_000, "{what}");
        }
    }

    #[test]
    fn the_names_of_neighbouring_locks_take_few_pages_of_keys() {
        let keys = keys();
        assert!((0..40).all(|at| take(&keys, 0x5555_5555_0000 + at * 64)));
        let used = (0..KEYS).filter(|&at| keys[at].owner.load(Relaxed) != 0);
        let pages: HashSet<usize> = used.map(|at| at / (PAGE_GROUPS * GROUP_KEYS)).collect();
        assert!(pages.len() < 8, "{pages:?}");
    }
}
