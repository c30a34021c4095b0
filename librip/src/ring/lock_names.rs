//! Names that the program gives to its locks.
//!
//! A name is found by its lock's address and process, in a search over all names. That is slow, and naming is rare. The
//! control block says which entries are in use; the file has a copy with the name.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use librip_format::{NAME_CLAIMED, NAME_COMPLETE, NAME_FREE, NAME_LEN_BYTES};

use super::control::NameKey;
use super::{Ring, Table};
use crate::sys;

/// Names a lock. An empty name removes the present one. A name of more than 48 bytes is cut. If the ring has no room,
/// the lock gets no name, and the header counts that.
pub(crate) fn write(ring: &Ring, lock: u64, name: &[u8]) {
    let pid = sys::pid();
    // ORDERING: acquire and release on the state order the other fields. If two threads name a lock for the first time
    // at the same time, the ring has both names.
    let own = entries(ring).find(|(_, key)| is_for(key, pid, lock) && has_claimed(key, NAME_COMPLETE));
    if name.is_empty() {
        if let Some((index, key)) = own {
            set_state(ring, index, key, NAME_FREE);
        }
        return;
    }
    let free = || entries(ring).find(|(_, key)| has_claimed(key, NAME_FREE));
    let fresh = || {
        let index = ring.append(Table::LockNames, 1).ok()?;
        let key = &ring.control.name_keys()[index as usize];
        has_claimed(key, NAME_FREE).then_some((index, key))
    };
    let Some((index, key)) = own.or_else(free).or_else(fresh) else {
        // ORDERING: relaxed, a statistic.
        ring.header().metadata_refused.fetch_add(1, Relaxed);
        return;
    };
    let entry = ring.lock_name(index);
    // ORDERING: release on the fields in the file: a reader that sees a new one also sees that the entry is claimed.
    // The key's fields are relaxed: `set_state` publishes them.
    entry.state.store(NAME_CLAIMED, Release);
    key.pid.store(pid, Relaxed);
    key.lock.store(lock, Relaxed);
    entry.pid.store(pid, Release);
    entry.lock.store(lock, Release);
    store_name(&entry.name, name);
    set_state(ring, index, key, NAME_COMPLETE);
}

/// Writes a name, padded with zeros; longer names are cut.
pub(crate) fn store_name(fields: &[AtomicU64; NAME_LEN_BYTES / 8], name: &[u8]) {
    let mut bytes = [0; NAME_LEN_BYTES];
    let len = name.len().min(NAME_LEN_BYTES);
    bytes[..len].copy_from_slice(&name[..len]);
    for (field, chunk) in fields.iter().zip(bytes.chunks_exact(8)) {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        // ORDERING: release: a reader that sees a part of the new name also sees the state that was stored before it,
        // and reads again.
        field.store(u64::from_ne_bytes(word), Release);
    }
}

/// The entries that were handed out.
fn entries(ring: &Ring) -> impl Iterator<Item = (u64, &NameKey)> {
    // ORDERING: acquire, pairs with the release in `Ring::append`: the memory is reserved.
    let used = ring.used(Table::LockNames).load(Acquire) as usize;
    ring.control.name_keys()[..used].iter().enumerate().map(|(index, key)| (index as u64, key))
}

fn is_for(key: &NameKey, pid: u32, lock: u64) -> bool {
    // ORDERING: acquire, pairs with the release in `set_state`: the other fields belong to this state.
    key.state.load(Acquire) == NAME_COMPLETE && key.pid.load(Relaxed) == pid && key.lock.load(Relaxed) == lock
}

fn has_claimed(key: &NameKey, from: u32) -> bool {
    // A load first: the exchange would make the cache line of each passed entry exclusive.
    // ORDERING: acquire, pairs with the release in `set_state`: the claim comes after the last owner's stores.
    key.state.load(Relaxed) == from
        && key.state.compare_exchange(from, NAME_CLAIMED, Acquire, Relaxed).is_ok()
}

fn set_state(ring: &Ring, index: u64, key: &NameKey, state: u32) {
    // ORDERING: release on both: a thread or a reader that sees the state sees the entry.
    ring.lock_name(index).state.store(state, Release);
    key.state.store(state, Release);
}
