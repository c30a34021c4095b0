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

use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64};

use crate::arch::{self, ThreadBlock};
use crate::ring::Ring;
use crate::slot::{self, Owner};
use crate::sys;
use crate::{children, copies};
use librip_format::{
    HELD_HELD, HELD_MAX, HELD_NONE, HELD_PROCESS_SHARED, HELD_SEQUENCE_SHIFT, HELD_STATE_SHIFT, SlotHeader,
    held_state, pack, payload,
};

/// The ring that this copy of librip owns.
static RING: AtomicPtr<Ring> = AtomicPtr::new(ptr::null_mut());
/// The key whose destructor sees threads end; -1 without one.
static EXIT_KEY: AtomicI32 = AtomicI32::new(-1);
/// Whether this process came out of a fork since the ring was made.
static IS_FORKED_CHILD: AtomicBool = AtomicBool::new(false);
/// Inode of this process's PID namespace.
static PID_NAMESPACE: AtomicU64 = AtomicU64::new(0);

/// The C library runs destructors of thread-specific data in up to this many rounds
/// (`PTHREAD_DESTRUCTOR_ITERATIONS`). The slot is given back in the last, so that the destructors of others may
/// record. A thread whose very first mark comes in the second round or later is not seen to exit: its slot looks
/// abandoned, which is nearly the same, until it is reclaimed.
const EXIT_ROUNDS: u64 = 4;

/// FOLKLORE: glibc keeps the values of the first 32 keys in the thread's descriptor and allocates for the
/// others. A first mark may come from a signal handler that interrupted `malloc`, so only the former will do.
const EXIT_KEYS_WITHOUT_ALLOCATION: usize = 32;

/// Makes `ring` the one that this copy's threads record in.
pub(crate) fn install(ring: &'static Ring, pid_namespace: u64) {
    if let Some(key) = exit_key() {
        EXIT_KEY.store(key as i32, Relaxed);
    }
    PID_NAMESPACE.store(pid_namespace, Relaxed);
    // ORDERING: release, pairs with the acquire in `ring`: the ring and the key are complete.
    RING.store(ptr::from_ref(ring).cast_mut(), Release);
}

unsafe extern "C" {
    /// Declared here for the destructor's type: a thread may be cancelled in it, and is unwound then.
    fn pthread_key_create(
        key: *mut libc::pthread_key_t,
        destructor: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    ) -> c_int;
}

/// The last key that needs no allocation, or as late a one as there is.
///
/// Destructors run in the order of keys: in each round, ours comes behind those that may mark.
fn exit_key() -> Option<libc::pthread_key_t> {
    let mut keys = [0; EXIT_KEYS_WITHOUT_ALLOCATION];
    let mut made = 0;
    for key in &mut keys {
        // SAFETY: `key` is writable, and `thread_exits` has the signature of a destructor.
        if unsafe { pthread_key_create(key, Some(thread_exits)) } != 0 {
            break;
        }
        made += 1;
        if *key as usize + 1 >= EXIT_KEYS_WITHOUT_ALLOCATION {
            break;
        }
    }
    let made = &keys[..made];
    let best = made.iter().copied().filter(|&key| (key as usize) < EXIT_KEYS_WITHOUT_ALLOCATION).max();
    for &key in made.iter().filter(|&&key| Some(key) != best) {
        // SAFETY: made above, and nobody has used it.
        unsafe { libc::pthread_key_delete(key) };
    }
    best
}

/// Registers what happens around a fork; runs when the module is loaded.
///
/// That early, because children run fork handlers in the order of their registration: a handler that comes
/// behind ours may mark.
pub(crate) fn watch_forks() {
    // SAFETY: registers functions of the required signature. Without them (no memory) a forked child would
    // write into its parent's slot until it execs; there is no better answer than to go on.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(forked)) };
}

/// The ring that this copy of librip owns, if it owns one.
pub(crate) fn ring() -> Option<&'static Ring> {
    // ORDERING: acquire, pairs with the release in `install`.
    let ring = RING.load(Acquire);
    // SAFETY: null, or a leaked ring.
    unsafe { ring.as_ref() }
}

/// Whether this process came out of a fork since the ring was made.
pub(crate) fn is_forked_child() -> bool {
    // ORDERING: relaxed: set before there was a second thread.
    IS_FORKED_CHILD.load(Relaxed)
}

/// Whether the program may be killed for system calls that are not its own.
static AVOIDS_SYSTEM_CALLS: AtomicBool = AtomicBool::new(false);

/// From here on, no system call is made that a program with threads does not make anyway: threads without a slot get none.
#[cfg(feature = "interpose")]
pub(crate) fn avoid_system_calls() {
    // ORDERING: relaxed: threads that begin later see it, and others have made theirs.
    AVOIDS_SYSTEM_CALLS.store(true, Relaxed);
}

/// See [`avoid_system_calls`].
pub(crate) fn avoids_system_calls() -> bool {
    AVOIDS_SYSTEM_CALLS.load(Relaxed)
}

/// The calling thread has no cursor in this module, and there is a ring. Afterwards there is one.
pub(crate) fn enter() {
    enter_block(arch::thread_block());
}

/// What `librip_enter_block_1` calls: the mark found no cursor in this block, the calling thread's of some module.
///
/// The thread may be cancelled here and is unwound then.
pub(crate) extern "C-unwind" fn enter_block(block: &ThreadBlock) {
    sys::with_errno_kept(|| sys::with_signals_blocked(|| copies::attach(block)));
}

/// Gives `block` a cursor: this thread's slot, shared by all copies of librip in the process.
///
/// Called with signals blocked, on the thread that `block` belongs to, in the copy that owns the ring.
pub(crate) fn attach(block: &ThreadBlock) {
    let own = arch::thread_block();
    if own.cursor.get().is_null() {
        own.cursor.set(ring().map_or(own.sink(), |ring| first_mark(ring, own)));
        if is_forked_child()
            && let Some(slot) = own_slot(own)
        {
            inherit_locks(slot, &HELD_BEFORE_FORK.replace(NONE_HELD));
        }
    }
    if ptr::eq(block, own) {
        return;
    }
    let is_refused = own.cursor.get() == own.sink();
    block.cursor.set(if is_refused { block.sink() } else { own.cursor.get() });
    if blocks(own).all(|linked| !ptr::eq(linked, block)) {
        block.next.set(own.next.get());
        own.next.set(block);
    }
}

/// Names the calling thread in its slot, claiming one if need be. Longer names are cut.
pub(crate) fn set_name(name: &[u8]) {
    enter();
    if let Some(slot) = own_slot(arch::thread_block()) {
        slot::set_name(slot, name);
    }
}

/// The slot that the calling thread's block points at.
fn own_slot(block: &ThreadBlock) -> Option<&'static SlotHeader> {
    let cursor = block.cursor.get();
    if cursor.is_null() || cursor == block.sink() {
        return None;
    }
    let header = cursor.wrapping_byte_sub(size_of::<SlotHeader>());
    // SAFETY: a cursor that is no sink points behind the header of a slot in a ring, of this copy or another, which is
    // never unmapped; all of its fields are atomics.
    Some(unsafe { &*header.cast::<SlotHeader>() })
}

/// Takes back what [`leave`] did: the calling thread's next mark claims a slot. Without a slot it changes nothing.
pub(crate) fn come_back() {
    sys::with_signals_blocked(|| {
        let own = arch::thread_block();
        if own.cursor.get() == own.sink() {
            for block in blocks(own) {
                block.cursor.set(ptr::null_mut());
            }
        }
    });
}

/// Ends the calling thread's part in the ring because its process ends: what it holds is nobody's trouble then.
pub(crate) fn leave_with_process() {
    if let Some(slot) = own_slot(arch::thread_block()) {
        for entry in &slot.held {
            // ORDERING: release, as in `lock::table`.
            entry.meta.store(HELD_NONE << HELD_STATE_SHIFT, Release);
        }
    }
    leave();
}

/// Ends the calling thread's ownership of its slot: what it marks from here on is recorded nowhere.
pub(crate) fn leave() {
    sys::with_errno_kept(|| {
        sys::with_signals_blocked(|| {
            let own = arch::thread_block();
            let cursor = own.cursor.get();
            for block in blocks(own) {
                block.cursor.set(block.sink());
            }
            if let Some(ring) = ring()
                && let Some(index) = ring.slot_of(cursor)
            {
                slot::release(ring, index);
            }
        });
    });
}

/// Claims a slot for the calling thread, and arranges that its exit is seen. The result is its cursor.
fn first_mark(ring: &Ring, own: &ThreadBlock) -> *mut u64 {
    if avoids_system_calls() {
        // ORDERING: relaxed, a statistic.
        ring.header().threads_refused_memory.fetch_add(1, Relaxed);
        return own.sink();
    }
    let owner = Owner { pid: sys::pid(), tid: sys::tid(), pid_namespace: PID_NAMESPACE.load(Relaxed) };
    match slot::claim(ring, owner) {
        Ok(index) => {
            if !watch_exit(own) {
                // ORDERING: relaxed, a statistic.
                ring.header().threads_without_exit.fetch_add(1, Relaxed);
            }
            ring.words(index)
        }
        Err(refusal) => {
            slot::count_refusal(ring, refusal);
            own.sink()
        }
    }
}

fn watch_exit(own: &ThreadBlock) -> bool {
    // ORDERING: relaxed: set once, before the ring that brought us here was published.
    let key = EXIT_KEY.load(Relaxed);
    // SAFETY: the key was made by `install` and is never deleted.
    key >= 0
        && unsafe { libc::pthread_setspecific(key as libc::pthread_key_t, ptr::from_ref(own).cast()) } == 0
}

/// This thread's blocks: the owner's, then those of the copies that have joined.
fn blocks(own: &ThreadBlock) -> impl Iterator<Item = &ThreadBlock> {
    core::iter::successors(Some(own), |block| {
        // SAFETY: null, or a block that `attach` linked: this thread's, of a library that is pinned in memory.
        unsafe { block.next.get().as_ref() }
    })
}

/// The destructor of the thread-specific key.
unsafe extern "C-unwind" fn thread_exits(_value: *mut c_void) {
    let own = arch::thread_block();
    own.exit_rounds.set(own.exit_rounds.get() + 1);
    if own.exit_rounds.get() >= EXIT_ROUNDS || !watch_exit(own) {
        leave();
    }
}

std::thread_local! {
    /// The signals that were blocked before a fork; `None` outside of one.
    static MASK_BEFORE_FORK: Cell<Option<sys::Signals>> = const { Cell::new(None) };
    /// The locks that the forking thread had: its image in the child has them too.
    static HELD_BEFORE_FORK: Cell<HeldCopy> = const { Cell::new(NONE_HELD) };
    /// See [`children::announce`].
    static CHILD_NUMBER: Cell<u32> = const { Cell::new(0) };
}

/// A copy of a held-lock table: lock, place and since of each entry; a place of zero stands for no entry.
type HeldCopy = [[u64; 3]; HELD_MAX];

const NONE_HELD: HeldCopy = [[0; 3]; HELD_MAX];

/// The entries of locks that the owner has for certain, and that its copy in a forked child will have, too.
fn held_locks(slot: &SlotHeader) -> HeldCopy {
    core::array::from_fn(|index| {
        let entry = &slot.held[index];
        // ORDERING: relaxed: this thread's own stores.
        let [lock, place, since] = [&entry.lock, &entry.meta, &entry.since].map(|word| word.load(Relaxed));
        let is_inherited = held_state(place) == HELD_HELD && place & HELD_PROCESS_SHARED == 0;
        if is_inherited { [lock, place, since] } else { [0; 3] }
    })
}

/// Enters what the forking thread had into the slot of its image in the child.
fn inherit_locks(slot: &SlotHeader, locks: &HeldCopy) {
    // ORDERING: relaxed: this thread's own.
    let sequence = slot.count.load(Relaxed);
    // One behind the other: the table is searched up to the first entry that was never used.
    let held = locks.iter().filter(|entry| **entry != [0; 3]);
    for (entry, &[lock, place, since]) in slot.held.iter().zip(held) {
        // What carried a sequence of the parent's slot carries one of this.
        let place = place << (u64::BITS - HELD_SEQUENCE_SHIFT) >> (u64::BITS - HELD_SEQUENCE_SHIFT);
        // ORDERING: release, in the order that `lock::table` keeps; the slot is fresh, and its entries are free.
        entry.meta.store(place | sequence << HELD_SEQUENCE_SHIFT, Release);
        entry.since.store(since, Release);
        entry.lock.store(pack(sequence, payload(lock), true), Release);
    }
}

/// Blocks signals, so that in the child no handler marks before [`forked`] has taken away the parent's slot.
unsafe extern "C" fn before_fork() {
    if let Some(ring) = ring() {
        CHILD_NUMBER.set(children::announce(ring));
        MASK_BEFORE_FORK.set(Some(sys::block_signals()));
        HELD_BEFORE_FORK.set(own_slot(arch::thread_block()).map_or(NONE_HELD, held_locks));
    }
}

unsafe extern "C" fn after_fork() {
    HELD_BEFORE_FORK.set(NONE_HELD);
    restore_mask();
}

fn restore_mask() {
    if let Some(mask) = MASK_BEFORE_FORK.take() {
        sys::restore_signals(mask);
    }
}

/// Runs in the child of a fork, on its only thread: the slot is the parent's, the child will claim its own when it marks,
/// if it ever does; most call `exec` soon. What the forking thread had locked, the child has locked too, and enters then.
unsafe extern "C" fn forked() {
    // A handler that runs when signals are let through may fork again.
    let number = CHILD_NUMBER.get();
    if ring().is_some() {
        let own = arch::thread_block();
        for block in blocks(own) {
            block.cursor.set(ptr::null_mut());
        }
        own.next.set(ptr::null());
        own.exit_rounds.set(0);
        // ORDERING: relaxed: there is no other thread.
        IS_FORKED_CHILD.store(true, Relaxed);
        if !avoids_system_calls() {
            PID_NAMESPACE.store(pid_namespace(), Relaxed);
        }
    }
    restore_mask();
    // Not while SIGBUS is blocked: somebody may have truncated the file just now.
    if let Some(ring) = ring()
        && !avoids_system_calls()
    {
        children::note(ring, number);
    }
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
