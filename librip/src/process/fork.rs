//! Forks: the child must not mark into its parent's slot, holds the locks that the forking thread held, and is noted in
//! the ring.
//!
//! The handlers are registered when the module is loaded. Children run fork handlers in the order of their registration,
//! so a handler that comes after ours may mark. Signals are blocked around a fork, so that no handler of the child marks
//! before it has lost the parent's slot.

#![allow(unsafe_code, reason = "the C library calls the handlers")]

use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU64};

use librip_format::SlotHeader;

use super::thread::{self, avoids_system_calls, ring};
use crate::arch;
use crate::ring::children;
use crate::ring::fork_copy::{self, HeldCopy, NONE_HELD};
use crate::sys;

/// Whether this process was forked since the ring was made.
static IS_FORKED_CHILD: AtomicBool = AtomicBool::new(false);
/// Inode of this process's PID namespace; 0 if it is not known.
static PID_NAMESPACE: AtomicU64 = AtomicU64::new(0);

std::thread_local! {
    /// The signals that were blocked before a fork; `None` outside of one.
    static MASK_BEFORE_FORK: Cell<Option<sys::Signals>> = const { Cell::new(None) };
    /// The locks that the forking thread held.
    static HELD_BEFORE_FORK: Cell<HeldCopy> = const { Cell::new(NONE_HELD) };
    /// See [`children::announce`].
    static CHILD_NUMBER: Cell<u32> = const { Cell::new(0) };
}

/// Registers the handlers.
pub(crate) fn watch() {
    // SAFETY: registers functions of the required signature. If there is no memory for that, a forked child writes into
    // its parent's slot until it calls `exec`; nothing better can be done.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(forked)) };
}

/// Notes the PID namespace of the process.
pub(crate) fn note_pid_namespace() {
    // ORDERING: relaxed: a single word, written before there is a second thread that needs it.
    PID_NAMESPACE.store(sys::pid_namespace(), Relaxed);
}

/// Inode of this process's PID namespace; 0 if it is not known.
pub(crate) fn pid_namespace() -> u64 {
    // ORDERING: relaxed, see `note_pid_namespace`.
    PID_NAMESPACE.load(Relaxed)
}

/// Whether this process was forked since the ring was made.
pub(crate) fn is_forked_child() -> bool {
    // ORDERING: relaxed: set before there was a second thread.
    IS_FORKED_CHILD.load(Relaxed)
}

/// Enters the locks that the forking thread held into the slot that its image in the child has claimed. It does nothing
/// in other threads.
pub(super) fn inherit_locks(slot: &SlotHeader) {
    if is_forked_child() {
        fork_copy::enter(slot, &HELD_BEFORE_FORK.replace(NONE_HELD));
    }
}

unsafe extern "C" fn before_fork() {
    if let Some(ring) = ring() {
        CHILD_NUMBER.set(children::announce(ring));
        MASK_BEFORE_FORK.set(Some(sys::block_signals()));
        let slot = thread::slot_of(arch::thread_block());
        HELD_BEFORE_FORK.set(slot.map_or(NONE_HELD, fork_copy::copy));
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

/// Runs in the child, on its only thread. The child claims a slot when it marks, if it ever does; most children call
/// `exec` soon.
unsafe extern "C" fn forked() {
    // Read now: a handler that runs when signals are unblocked may fork again.
    let number = CHILD_NUMBER.get();
    if ring().is_some() {
        thread::forget_slot();
        // ORDERING: relaxed: there is no other thread.
        IS_FORKED_CHILD.store(true, Relaxed);
        if !avoids_system_calls() {
            note_pid_namespace();
        }
    }
    restore_mask();
    // Not while SIGBUS is blocked: somebody may have truncated the file at this moment.
    if let Some(ring) = ring()
        && !avoids_system_calls()
    {
        children::note(ring, number);
    }
}
