//! A thread's relation to its slot: the cold path of the first mark, the thread's exit, and fork.
//!
//! It does not touch the ring's bytes (`slot` does) and does not know how marks are compiled (`arch` does).
//!
//! # States of a thread's cursor
//!
//! ```text
//!            first mark, a ring is there                 last round of destructors
//!   null  ------------------------------->  slot  ------------------------------->  sink
//!     ^  \------------------------------------------------------------------------>  ^
//!     |          refused: ring full, no memory
//!     +-- in the child of a fork, from any state
//! ```
//!
//! The thread itself makes every step, with signals blocked; so no handler of its own sees a step half done,
//! and no other thread looks.

#![allow(unsafe_code, reason = "thread-local blocks are raw memory, and the C library calls back")]

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64};

use crate::arch::{self, ThreadBlock};
use crate::copies;
use crate::ring::Ring;
use crate::slot::{self, Owner};
use crate::sys;

/// The ring that this copy of librip owns.
static RING: AtomicPtr<Ring> = AtomicPtr::new(ptr::null_mut());
/// The key whose destructor sees threads end; -1 without one.
static EXIT_KEY: AtomicI32 = AtomicI32::new(-1);
/// Inode of this process's PID namespace.
static PID_NAMESPACE: AtomicU64 = AtomicU64::new(0);

/// The C library runs destructors of thread-specific data in up to this many rounds
/// (`PTHREAD_DESTRUCTOR_ITERATIONS`). The slot is given back in the last, so that the destructors of others,
/// in whatever order, may record.
const EXIT_ROUNDS: u64 = 4;

/// FOLKLORE: glibc keeps the values of the first 32 keys in the thread's descriptor and allocates for the
/// others. A first mark may come from a signal handler that interrupted `malloc`, so only the former will do.
const EXIT_KEYS_WITHOUT_ALLOCATION: u32 = 32;

/// Makes `ring` the one that this copy's threads record in.
pub(crate) fn install(ring: &'static Ring, pid_namespace: u64) {
    let mut key = 0;
    // SAFETY: `key` is writable, and `thread_exits` has the signature of a destructor.
    let made = unsafe { libc::pthread_key_create(&raw mut key, Some(thread_exits)) } == 0;
    if made && key < EXIT_KEYS_WITHOUT_ALLOCATION {
        EXIT_KEY.store(key as i32, Relaxed);
    }
    PID_NAMESPACE.store(pid_namespace, Relaxed);
    // SAFETY: registers a function of the required signature. Without it (no memory) a forked child would
    // write into its parent's slot until it execs; there is no better answer than to go on.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    // ORDERING: release, pairs with the acquire in `ring`: the ring and the key are complete.
    RING.store(ptr::from_ref(ring).cast_mut(), Release);
}

/// The ring that this copy of librip owns, if it owns one.
pub(crate) fn ring() -> Option<&'static Ring> {
    // ORDERING: acquire, pairs with the release in `install`.
    let ring = RING.load(Acquire);
    // SAFETY: null, or a leaked ring.
    unsafe { ring.as_ref() }
}

/// What `librip_enter_1` calls: the mark found no cursor, and there is a ring. Afterwards there is one.
pub(crate) extern "C" fn enter() {
    sys::with_errno_kept(|| sys::with_signals_blocked(|| copies::attach(arch::thread_block())));
}

/// Gives `block` a cursor: this thread's slot, shared by all copies of librip in the process.
///
/// Called with signals blocked, on the thread that `block` belongs to, in the copy that owns the ring.
pub(crate) fn attach(block: *mut ThreadBlock) {
    let own = arch::thread_block();
    // SAFETY: both blocks are this thread's and no reference to them exists elsewhere; a handler cannot come.
    let own_cursor = unsafe { &raw mut (*own).cursor };
    // SAFETY: as above.
    if unsafe { own_cursor.read() }.is_null() {
        let cursor = match ring() {
            Some(ring) => first_mark(ring, own),
            None => sink_of(own),
        };
        // SAFETY: as above.
        unsafe { own_cursor.write(cursor) };
    }
    if block == own {
        return;
    }
    // SAFETY: as above.
    let cursor = unsafe { own_cursor.read() };
    let cursor = if cursor == sink_of(own) { sink_of(block) } else { cursor };
    // SAFETY: `block` is this thread's block of another copy, with the same layout (`copies` checks).
    unsafe { (&raw mut (*block).cursor).write(cursor) };
    // SAFETY: as above.
    if blocks(own).all(|linked| linked != block) {
        // SAFETY: as above; the list is this thread's.
        let first = unsafe { (&raw mut (*own).next).read() };
        // SAFETY: as above.
        unsafe { (&raw mut (*block).next).write(first) };
        // SAFETY: as above.
        unsafe { (&raw mut (*own).next).write(block) };
    }
}

/// Names the calling thread in its slot, claiming one if need be. Longer names are cut.
pub(crate) fn set_name(name: &[u8]) {
    enter();
    let block = arch::thread_block();
    // SAFETY: this thread's block.
    let cursor = unsafe { (&raw const (*block).cursor).read() };
    // The slot may lie in the mapping of another copy; its header precedes the words all the same.
    if !cursor.is_null() && cursor != sink_of(block) {
        let header = cursor.wrapping_byte_sub(size_of::<crate::layout::SlotHeader>());
        // SAFETY: a cursor that is no sink points behind the header of a slot in a ring, which is never
        // unmapped; all of its fields are atomics.
        let header = unsafe { &*header.cast::<crate::layout::SlotHeader>() };
        slot::set_name(header, name);
    }
}

/// Ends the calling thread's ownership: by its last destructor, or in a forked child that exits.
pub(crate) fn leave() {
    sys::with_errno_kept(|| {
        sys::with_signals_blocked(|| {
            let own = arch::thread_block();
            // SAFETY: this thread's block.
            let cursor = unsafe { (&raw const (*own).cursor).read() };
            for block in blocks(own) {
                // SAFETY: blocks of this thread, signals are blocked.
                unsafe { (&raw mut (*block).cursor).write(sink_of(block)) };
            }
            if let Some(ring) = ring()
                && let Some(index) = ring.slot_of(cursor)
            {
                slot::release(ring, index);
            }
        });
    });
}

/// Claims a slot for the calling thread, and arranges that its exit is seen.
fn first_mark(ring: &Ring, own: *mut ThreadBlock) -> *mut u64 {
    let owner =
        Owner { pid: sys::pid(), tid: sys::tid(), pid_namespace: PID_NAMESPACE.load(Relaxed) };
    match slot::claim(ring, owner) {
        Ok(index) => {
            if !watch_exit(own) {
                ring.header().threads_without_exit.fetch_add(1, Relaxed);
            }
            ring.words(index)
        }
        Err(refusal) => {
            slot::count_refusal(ring, refusal);
            sink_of(own)
        }
    }
}

fn watch_exit(own: *mut ThreadBlock) -> bool {
    let key = EXIT_KEY.load(Relaxed);
    // SAFETY: the key was made by `install` and is never deleted.
    key >= 0 && unsafe { libc::pthread_setspecific(key as libc::pthread_key_t, own.cast()) } == 0
}

fn sink_of(block: *mut ThreadBlock) -> *mut u64 {
    // SAFETY: only computes the field's address, in a block that is there while its thread lives.
    unsafe { &raw mut (*block).sink }
}

/// This thread's blocks: the owner's, then those of the copies that have joined.
fn blocks(own: *mut ThreadBlock) -> impl Iterator<Item = *mut ThreadBlock> {
    core::iter::successors(Some(own), |&block| {
        // SAFETY: the list is this thread's, and libraries in it are pinned, so blocks stay.
        let next = unsafe { (&raw const (*block).next).read() };
        (!next.is_null()).then_some(next)
    })
}

/// The destructor of the thread-specific key.
unsafe extern "C" fn thread_exits(_value: *mut c_void) {
    let own = arch::thread_block();
    // SAFETY: this thread's block.
    let rounds = unsafe { &raw mut (*own).exit_rounds };
    // SAFETY: as above.
    let round = unsafe { rounds.read() } + 1;
    // SAFETY: as above.
    unsafe { rounds.write(round) };
    if round >= EXIT_ROUNDS || !watch_exit(own) {
        leave();
    }
}

/// Runs in the child of a fork, on its only thread: the slot is the parent's, the child will claim its own.
unsafe extern "C" fn forked() {
    let own = arch::thread_block();
    let mut block = own;
    while !block.is_null() {
        // SAFETY: blocks of this thread.
        unsafe { (&raw mut (*block).cursor).write(ptr::null_mut()) };
        // SAFETY: as above.
        let next = unsafe { (&raw const (*block).next).read() };
        // SAFETY: as above.
        unsafe { (&raw mut (*block).next).write(ptr::null_mut()) };
        block = next;
    }
    // SAFETY: as above.
    unsafe { (&raw mut (*own).exit_rounds).write(0) };
    PID_NAMESPACE.store(pid_namespace(), Relaxed);
}

/// Inode of `/proc/self/ns/pid`; 0 where there is no `/proc`. Safe in a signal handler.
pub(crate) fn pid_namespace() -> u64 {
    let mut status = core::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the path is terminated and `status` is writable.
    let result = unsafe { libc::stat(c"/proc/self/ns/pid".as_ptr(), status.as_mut_ptr()) };
    // SAFETY: zeroed, which is a valid stat, or filled.
    let inode = unsafe { status.assume_init() }.st_ino;
    if result == 0 { inode } else { 0 }
}
