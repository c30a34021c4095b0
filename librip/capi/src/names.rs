//! Names of locks that are given before there is a ring: those of a C++ program's static locks, whose constructors run
//! before `main`.
//!
//! The ring gets them when it is made, or when the first lock of `rip.hpp` is used after that: another instance of
//! librip may have made it. The table allocates nothing and waits for nobody. A name that finds no room is lost.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize};

use librip::capi::name_lock;

/// At most this many locks have names before there is a ring.
const NAMES_MAX: usize = 256;
/// Names are cut after this many bytes, as those in the ring are.
const NAME_LEN_BYTES: usize = 48;

const FREE: u32 = 0;
const CLAIMED: u32 = 1;
const COMPLETE: u32 = 2;

struct Entry {
    state: AtomicU32,
    lock: AtomicU64,
    name: [AtomicU8; NAME_LEN_BYTES],
}

static ENTRIES: [Entry; NAMES_MAX] = [const {
    Entry {
        state: AtomicU32::new(FREE),
        lock: AtomicU64::new(0),
        name: [const { AtomicU8::new(0) }; NAME_LEN_BYTES],
    }
}; NAMES_MAX];

/// How many entries are in use, so that a program without such names never looks through them.
static USED: AtomicUsize = AtomicUsize::new(0);

/// Names a lock, now or as soon as there is a ring. An empty name removes the present one.
pub(crate) fn set(lock: u64, name: &[u8]) {
    if librip::is_recording() {
        give();
        name_lock(lock, name);
        return;
    }
    forget(lock);
    if name.is_empty() {
        return;
    }
    let Some(entry) = ENTRIES.iter().find(|entry| claim(entry, FREE)) else { return };
    // ORDERING: relaxed for what the release below publishes.
    entry.lock.store(lock, Relaxed);
    let name = name.iter().copied().chain(core::iter::repeat(0));
    for (to, byte) in entry.name.iter().zip(name) {
        to.store(byte, Relaxed);
    }
    USED.fetch_add(1, Relaxed);
    entry.state.store(COMPLETE, Release);
}

/// Removes the name of a lock that no ring has yet.
pub(crate) fn forget(lock: u64) {
    take(|entry| entry.lock.load(Relaxed) == lock, |_, _| {});
}

/// Gives the names to the ring, if there is one.
pub(crate) fn give() {
    // ORDERING: relaxed: a hint. Whoever makes the ring has seen the names.
    if USED.load(Relaxed) != 0 && librip::is_recording() {
        take(|_| true, name_lock);
    }
}

/// Removes the entries that are wanted, and hands over their locks and names.
fn take(is_wanted: impl Fn(&Entry) -> bool, to: impl Fn(u64, &[u8])) {
    if USED.load(Relaxed) == 0 {
        return;
    }
    for entry in &ENTRIES {
        if entry.state.load(Acquire) != COMPLETE || !is_wanted(entry) || !claim(entry, COMPLETE) {
            continue;
        }
        let name: [u8; NAME_LEN_BYTES] = core::array::from_fn(|at| entry.name[at].load(Relaxed));
        let len = name.iter().position(|&byte| byte == 0).unwrap_or(NAME_LEN_BYTES);
        let lock = entry.lock.load(Relaxed);
        USED.fetch_sub(1, Relaxed);
        entry.state.store(FREE, Release);
        to(lock, &name[..len]);
    }
}

fn claim(entry: &Entry, state: u32) -> bool {
    // ORDERING: acquire: what the former owner of the entry stored comes before.
    entry.state.compare_exchange(state, CLAIMED, Acquire, Relaxed).is_ok()
}
