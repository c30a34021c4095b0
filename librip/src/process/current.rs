//! The ring that this instance owns, and making it at the process's first mark.
//!
//! How a ring is made, the layers above know: they give a function. Here is who calls it, and when.
//!
//! A first mark may interrupt anything: an allocator, the dynamic linker, another library's signal handler. So the
//! function allocates nothing and locks nothing. It runs in one thread, with signals blocked. Other threads that mark
//! meanwhile sleep until it has returned.

#![allow(unsafe_code, reason = "a function as a static")]

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicU32, fence};

use crate::ring::Ring;
use crate::sys;
use crate::sys::written::Written;

#[unsafe(link_section = ".data_of_forks")]
static RING: Written<Ring> = Written::new();
/// One of the following.
#[unsafe(link_section = ".data_of_forks")]
static STATE: AtomicU32 = AtomicU32::new(NONE);
/// There is no ring, and no plan of one.
const NONE: u32 = 0;
/// A first mark makes the ring.
const PLANNED: u32 = 1;
/// A thread makes the ring at this moment.
const BEGUN: u32 = 2;
/// Nothing more happens: there is a ring, or it could not be made.
const ENDED: u32 = 3;

/// Makes the ring, or returns `None` if it cannot be made.
pub(crate) type Maker = fn() -> Option<Ring>;
static MAKER: Written<Maker> = Written::new();

/// The ring, if there is one. Inlined, as below.
#[inline(always)]
pub(crate) fn ring() -> Option<&'static Ring> {
    RING.get()
}

/// Makes `ring` the one in which this instance's threads record.
///
/// # Safety
///
/// No other thread calls it, or has called `plan`.
pub(crate) unsafe fn install(ring: Ring) -> &'static Ring {
    // ORDERING: release: as in `make`.
    STATE.store(ENDED, Release);
    // SAFETY: the caller's promise.
    unsafe { RING.set(ring) }
}

/// From now on, the first mark makes the ring.
///
/// # Safety
///
/// No other thread calls it.
#[cfg(feature = "interpose")]
pub(crate) unsafe fn plan(maker: Maker) {
    // SAFETY: the caller's promise.
    unsafe { MAKER.set(maker) };
    // ORDERING: release, pairs with the acquire in `ring_for_mark`: the maker is there.
    STATE.store(PLANNED, Release);
}

/// The ring. If a thread makes it at this moment, waits until that is done: not for marks.
pub(crate) fn settled_ring() -> Option<&'static Ring> {
    // ORDERING: the fences, here and in `ring_for_mark`: either this load sees that the making has begun, or the maker
    // sees what the caller has stored before.
    fence(SeqCst);
    while STATE.load(Acquire) == BEGUN {
        sys::rest();
    }
    ring()
}

/// The ring. Makes it if it is planned. Called with signals blocked.
pub(crate) fn ring_for_mark() -> Option<&'static Ring> {
    loop {
        // ORDERING: acquire, pairs with the releases here and in `plan`.
        match STATE.compare_exchange(PLANNED, BEGUN, Acquire, Acquire) {
            Ok(_) => {
                fence(SeqCst);
                let ring = MAKER.get().and_then(sys::with_room);
                // SAFETY: `STATE` lets one thread come here, once, with signals blocked.
                let ring = ring.map(|ring| unsafe { RING.set(ring) });
                STATE.store(ENDED, Release);
                return ring;
            }
            // Not by yielding: the thread that makes the ring may have a lower priority.
            Err(BEGUN) => sys::rest(),
            Err(_) => return ring(),
        }
    }
}

/// Runs in a forked child. Returns whether it has a ring, which is its parent's. Inlined, because another page of code
/// costs the child a page fault.
#[inline(always)]
pub(super) fn forked() -> bool {
    let has_ring = ring().is_some();
    // ORDERING: relaxed: the child has one thread.
    if !has_ring && STATE.load(Relaxed) != NONE {
        // The child makes a ring of its own if it marks.
        sys::note_pid_of_child();
        // ORDERING: relaxed: the child has one thread. If another thread of the parent was making the ring, that one is
        // the parent's.
        let _ = STATE.compare_exchange(BEGUN, PLANNED, Relaxed, Relaxed);
    }
    has_ring
}
