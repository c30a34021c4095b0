//! A thread's relation to its slot: the cold path of its first mark, and its exit.
//!
//! It does not touch the ring's bytes (`ring::slots` does) and does not know how marks are compiled (`arch` does).
//!
//! # States of a thread's block
//!
//! ```text
//!               the first mark, if there is a ring or a plan of one
//!   no cursor ------> absent ------> cursor ------> absent
//!     ^       \          |   claimed         last round of destructors, or rip_exit()
//!     |        \         +-> stays absent: the ring is full, or there is no memory
//!     +-- in the child of a fork, from any state; by rip_init(), from absent
//! ```
//!
//! *Absent* means that marks of the thread record nowhere. A thread is absent while it claims its slot, because the
//! claim calls functions of the C library. Another library may have replaced one of them by a function that marks.
//!
//! The thread itself makes every step, with signals blocked, so none of its handlers sees a step half done. No other
//! thread accesses the block.

#![allow(unsafe_code, reason = "thread-local blocks are raw memory, and the C library calls back")]

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::AtomicI32;
use core::sync::atomic::Ordering::Relaxed;

use super::blocks::{blocks, slot_at, slot_of};
use super::{clock, current, instance, kin, sampled, state, task};
use crate::arch::{self, ThreadBlock};
use crate::ring::captures::Kept;
use crate::ring::fork_copy::{self, NONE_HELD};
use crate::ring::slots::{self, Claimant, Position, Refusal};
use crate::ring::{Ring, captures, histories};
use crate::sys;

/// The key whose destructor runs when a thread ends; -1 if there is none.
static EXIT_KEY: AtomicI32 = AtomicI32::new(-1);

/// The C library runs destructors of thread-specific data in up to this many rounds (`PTHREAD_DESTRUCTOR_ITERATIONS`).
/// The slot is released in the last round, so that the destructors of others may record. If a thread's very first mark
/// comes in the second round or later, its exit goes unnoticed, and its slot looks abandoned until it is reclaimed.
const EXIT_ROUNDS: u64 = 4;

/// FOLKLORE: glibc keeps the values of the first 32 keys in the thread's descriptor and allocates memory for the
/// others. A first mark may come from a signal handler that interrupted `malloc`, so only the former will do.
const EXIT_KEYS_WITHOUT_ALLOCATION: usize = 32;

/// Makes the key by which ends of threads are noticed. Runs when the ring is made, before threads record.
///
/// It calls the C library, which allocates and locks nothing there.
pub(crate) fn watch_exits() {
    if let Some(key) = exit_key() {
        // ORDERING: relaxed: the ring is published after this, with release.
        EXIT_KEY.store(key as i32, Relaxed);
    }
}

unsafe extern "C" {
    /// Declared here for the destructor's type: a thread may be cancelled in it, and is unwound then.
    fn pthread_key_create(
        key: *mut libc::pthread_key_t,
        destructor: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    ) -> c_int;
}

/// Makes the last key that needs no allocation, or the latest that is free.
///
/// Destructors run in the order of their keys. So in each round, ours runs after those that may mark.
fn exit_key() -> Option<libc::pthread_key_t> {
    let mut keys = [0; EXIT_KEYS_WITHOUT_ALLOCATION];
    let mut made = 0;
    for key in &mut keys {
        // SAFETY: `key` is writable, and `thread_exits` is a destructor for any value.
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
        // SAFETY: this function made the key, and nothing uses it.
        unsafe { libc::pthread_key_delete(key) };
    }
    best
}

/// Gives `block` a cursor, the one of this thread's slot, or marks it absent.
///
/// Called with signals blocked, on the thread that `block` belongs to, in the instance that owns the ring.
pub(crate) fn attach(block: &ThreadBlock) {
    let own = arch::thread_block();
    if own.cursor.get().is_null() && own.is_absent.get() == 0 {
        own.is_absent.set(1);
        if let Some(cursor) = first_mark(own) {
            current::ring().into_iter().for_each(task::claimed);
            // All blocks: a function that the claim called may have marked in another module, whose block is absent
            // since.
            for linked in blocks(own) {
                linked.due.set(sampled::first_due());
                linked.cursor.set(cursor);
                linked.is_absent.set(0);
            }
        }
    }
    if ptr::eq(block, own) {
        task::note_blocks(sampled::first_due() != arch::DUE_NEVER);
        return;
    }
    task::note_blocks(true);
    block.due.set(sampled::first_due());
    block.cursor.set(own.cursor.get());
    block.is_absent.set(own.is_absent.get());
    if blocks(own).all(|linked| !ptr::eq(linked, block)) {
        block.next.set(own.next.get());
        own.next.set(block);
    }
}

/// Names the calling thread in its slot, and claims a slot if the thread has none. Longer names are cut; an empty name
/// changes nothing.
pub(crate) fn set_name(name: &[u8]) {
    if arch::module().is_open() {
        arch::enter();
    }
    if let Some(slot) = slot_at(task::home(arch::thread_block()))
        && !name.is_empty()
    {
        slots::set_name(slot, name);
    }
}

/// How far the calling thread has come in its slot, if it has one in this instance's ring.
fn position() -> Option<Position> {
    let block = arch::thread_block();
    let (ring, slot) = (current::ring()?, slot_of(block)?);
    // ORDERING: relaxed: the calling thread has stored it.
    Some(Position { index: ring.slot_of(block.cursor.get())?, count: slot.count.load(Relaxed) })
}

/// Keeps what the calling thread has recorded from a sequence on.
pub(crate) fn capture(ring: &Ring, first_sequence: u64, kept: Kept) {
    if let Some(index) = ring.slot_of(arch::thread_block().cursor.get()) {
        captures::keep(ring, index, first_sequence, kept);
    }
}

/// Gives the calling thread a history in a channel.
pub(crate) fn begin_history(ring: &Ring, channel: u64, words: u32) {
    if let Some(index) = ring.slot_of(arch::thread_block().cursor.get()) {
        histories::begin(ring, index, channel, words);
    }
}

/// How far the calling thread has come. If it has no slot, how far its creator had come.
pub(crate) fn position_of_creator() -> Option<Position> {
    position().or_else(kin::inherited)
}

/// The calling thread has joined the thread with this `pthread_t`.
pub(crate) fn joined(thread: usize) {
    if let (Some(ring), Some(joiner)) = (current::ring(), position()) {
        kin::joined(ring, thread, joiner);
    }
}

/// Undoes [`release_slot`]: the calling thread's next mark claims a slot. For a thread with a slot, nothing changes.
pub(crate) fn rejoin() {
    for block in blocks(arch::thread_block()) {
        block.is_absent.set(0);
    }
}

/// Releases the calling thread's slot because its process ends, and clears its held locks. A thread without a slot gets
/// none any more. Inlined, because most forked children have no slot, and another page of code costs them a page fault.
#[inline(always)]
pub(crate) fn release_slot_with_process() {
    let own = arch::thread_block();
    task::leave(own);
    // First: a signal handler that marks later claims no slot.
    for block in blocks(own) {
        block.is_absent.set(1);
    }
    if let Some(slot) = slot_of(own) {
        fork_copy::clear(slot);
        release_slot();
    }
}

/// Releases the calling thread's slot. Its marks record nowhere from now on.
#[inline(never)]
pub(crate) fn release_slot() {
    sys::with_errno_kept(|| {
        sys::with_signals_blocked(|| {
            let own = arch::thread_block();
            task::leave(own);
            let cursor = own.cursor.get();
            for block in blocks(own) {
                block.is_absent.set(1);
                block.cursor.set(ptr::null_mut());
            }
            if let Some(ring) = current::ring()
                && let Some(index) = ring.slot_of(cursor)
            {
                if fork_copy::copy(ring.slot(index)) != NONE_HELD {
                    instance::note_left_locks();
                }
                kin::exits(index, slots::generation(ring, index));
                slots::release(ring, index);
            }
        });
    });
}

/// Makes the calling thread forget its slot, which is the parent's in a forked child. Does not release it. Inlined: see
/// `fork`.
#[inline(always)]
pub(super) fn forget_slot() {
    let own = arch::thread_block();
    task::leave(own);
    for block in blocks(own) {
        block.cursor.set(ptr::null_mut());
        block.is_absent.set(0);
    }
    own.next.set(ptr::null());
    own.exit_rounds.set(0);
}

/// Whether a call has returned an id, and no error: that is a negative number, where a filter refuses the call.
fn is_id(returned: u32) -> bool {
    returned <= i32::MAX as u32
}

/// Claims a slot for the calling thread, and arranges for the thread's exit to be noticed. Returns its cursor. The
/// process's first mark makes the ring, if it is not there yet.
fn first_mark(own: &ThreadBlock) -> Option<*mut u64> {
    if sys::avoids_calls() {
        if let Some(ring) = current::ring() {
            // ORDERING: relaxed, a statistic.
            ring.header().threads_refused_filter.fetch_add(1, Relaxed);
        }
        return None;
    }
    let ring = current::ring_for_mark()?;
    let (pid_namespace, creator) = (state::pid_namespace(), kin::inherited());
    // The system is asked. In a child of a bare `clone`, the C library has the ids of the parent, and with these the
    // thread would seem to have ended.
    let pid = Some(sys::pid_by_call()).filter(|&pid| is_id(pid)).unwrap_or_else(sys::pid);
    let tid = Some(sys::tid_by_call()).filter(|&tid| is_id(tid)).unwrap_or_else(sys::tid);
    let claimant = Claimant { pid, tid, pid_namespace, creator };
    let claimed = if is_id(pid.max(tid)) { slots::claim(ring, claimant) } else { Err(Refusal::Filter) };
    match claimed {
        Ok(index) => {
            if !watch_exit(own) {
                // ORDERING: relaxed, a statistic.
                ring.header().threads_without_exit.fetch_add(1, Relaxed);
                instance::note_left_locks();
            }
            clock::recalibrate_if_due(ring.header());
            if state::is_forked_child() {
                fork_copy::enter(ring.slot(index), &state::take_held());
            }
            Some(ring.words(index))
        }
        Err(refusal) => {
            slots::count_refusal(ring, refusal);
            None
        }
    }
}

fn watch_exit(own: &ThreadBlock) -> bool {
    // ORDERING: relaxed: `watch_exits` stores it before the ring, which the caller has acquired.
    let key = EXIT_KEY.load(Relaxed);
    // SAFETY: `watch_exits` made the key, which is never deleted.
    key >= 0
        && unsafe { libc::pthread_setspecific(key as libc::pthread_key_t, ptr::from_ref(own).cast()) } == 0
}

/// The destructor of the thread-specific key.
unsafe extern "C-unwind" fn thread_exits(_value: *mut c_void) {
    let own = arch::thread_block();
    own.exit_rounds.set(own.exit_rounds.get() + 1);
    if own.exit_rounds.get() >= EXIT_ROUNDS || !watch_exit(own) {
        release_slot();
    }
}
