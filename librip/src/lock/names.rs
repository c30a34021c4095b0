//! Names that the program gives to its locks.
//!
//! Cold: a name is set once a lock. The reader prefers it to the name of a static. Found by address and process; a
//! lock that is destroyed loses it.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::copies;
use crate::ring::Ring;
use crate::sys;
use librip_format::{LockName, NAME_CLAIMED, NAME_COMPLETE, NAME_FREE, NAME_LEN_BYTES};

/// Names a lock. Longer names than 48 bytes are cut; without room in the ring the lock stays nameless.
pub(crate) fn set(lock: u64, name: &[u8]) {
    copies::name_lock(lock, name);
}

/// Takes the name away.
pub(crate) fn forget(lock: u64) {
    copies::name_lock(lock, b"");
}

/// Runs in the copy that owns the ring. An empty name takes the present one away.
pub(crate) fn write(ring: &Ring, lock: u64, name: &[u8]) {
    let pid = sys::pid();
    // ORDERING: acquire and release on the state order what is behind it; two threads that name one lock at the
    // same time leave one of the names.
    let own = ring.lock_names().find(|entry| is_of(entry, pid, lock) && is_claimed(entry, NAME_COMPLETE));
    if name.is_empty() {
        if let Some(entry) = own {
            entry.state.store(NAME_FREE, Release);
        }
        return;
    }
    let Some(entry) =
        own.or_else(|| ring.lock_names().find(|entry| is_claimed(entry, NAME_FREE))).or_else(|| {
            let fresh = ring.fresh_lock_name()?;
            is_claimed(fresh, NAME_FREE).then_some(fresh)
        })
    else {
        // ORDERING: relaxed, a statistic.
        ring.header().metadata_refused.fetch_add(1, Relaxed);
        return;
    };
    entry.pid.store(pid, Relaxed);
    entry.lock.store(lock, Relaxed);
    let mut bytes = [0; NAME_LEN_BYTES];
    let len = name.len().min(NAME_LEN_BYTES);
    bytes[..len].copy_from_slice(&name[..len]);
    for (field, chunk) in entry.name.iter().zip(bytes.chunks_exact(8)) {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        field.store(u64::from_ne_bytes(word), Relaxed);
    }
    entry.state.store(NAME_COMPLETE, Release);
}

fn is_of(entry: &LockName, pid: u32, lock: u64) -> bool {
    entry.state.load(Acquire) == NAME_COMPLETE
        && entry.pid.load(Relaxed) == pid
        && entry.lock.load(Relaxed) == lock
}

fn is_claimed(entry: &LockName, from: u32) -> bool {
    entry.state.compare_exchange(from, NAME_CLAIMED, Acquire, Relaxed).is_ok()
}
