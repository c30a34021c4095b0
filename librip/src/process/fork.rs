//! Forks: the child must not mark into its parent's slot, holds the locks that the forking thread held, and is noted in
//! the ring.
//!
//! The fork handlers are registered when the module is loaded. A child runs them in the order of their registration, so
//! those that were registered later may mark. Signals are blocked around a fork, so that no signal handler of the child
//! marks before the child has forgotten the parent's slot.
//!
//! # What a fork costs
//!
//! A page that a child touches costs it a page fault, about a hundredth of a fork. So what each child executes is in
//! one section, `.text_of_forks`, which is smaller than a page, and so is what it reads and writes, in
//! `.data_of_forks`. A test counts the faults (`tests/preload/forks.rs`).

#![allow(unsafe_code, reason = "the C library calls the handlers")]

use super::blocks::slot_of;
use super::{current, state, thread};
use crate::arch;
use crate::ring::children;
use crate::ring::fork_copy::{self, NONE_HELD};
use crate::sys;

pub(crate) fn watch() {
    // SAFETY: the functions have the required signature, and the module that they are in unregisters them when it is
    // unloaded. If there is no memory for the registration, a forked child writes into its parent's slot until it calls
    // `exec`; nothing better can be done.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(forked)) };
}

#[unsafe(link_section = ".text_of_forks")]
unsafe extern "C" fn before_fork() {
    if let Some(ring) = current::ring() {
        let block = arch::fork_block();
        block.child.set(u64::from(children::announce(ring)) + 1);
        block.mask.set(sys::block_signals());
        block.has_mask.set(1);
        let slot = slot_of(arch::thread_block());
        state::keep_held(slot.map_or(NONE_HELD, fork_copy::copy));
    }
}

#[unsafe(link_section = ".text_of_forks")]
unsafe extern "C" fn after_fork() {
    state::take_held();
    arch::fork_block().child.set(0);
    restore_mask();
}

/// A handler that runs when signals are unblocked may fork again.
fn restore_mask() {
    let block = arch::fork_block();
    let mask = block.mask.get();
    if block.has_mask.replace(0) != 0 {
        sys::restore_signals(mask);
    }
}

/// Runs in the child, on its only thread. The child claims a slot when it marks, if it ever does; most children call
/// `exec` soon.
#[unsafe(link_section = ".text_of_forks")]
unsafe extern "C" fn forked() {
    // Read now, before signals are unblocked.
    let number = arch::fork_block().child.replace(0).checked_sub(1);
    if current::forked() {
        thread::forget_slot();
        state::note_forked_child();
        state::forget_pid_namespace();
        sys::note_pid_of_child();
    }
    restore_mask();
    // Not while SIGBUS is blocked: somebody may have truncated the file at this moment.
    if let Some(ring) = current::ring()
        && !sys::avoids_calls()
    {
        // Without a number, another thread has made the ring since `before_fork`.
        children::note(ring, number.map_or_else(|| children::announce(ring), |number| number as u32));
    }
}
