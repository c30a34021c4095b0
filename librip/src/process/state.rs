//! Facts about this process: its PID namespace, whether it is a forked child, and the locks that its thread inherits.
//!
//! It decides nothing: `fork` and the interposer write it, and `thread` and `exit` read it.

use core::sync::atomic::Ordering::Relaxed;

use crate::arch;
use crate::ring::fork_copy::{HeldCopy, NONE_HELD};
use crate::sys::{self, OF_PROCESS};

/// In place of a PID namespace: it cannot be known.
const UNKNOWN: u64 = u64::MAX;

/// Inode of this process's PID namespace; 0 if it is not known.
///
/// The first caller looks: most forked children never do, and looking takes a tenth of the time of a fork.
pub(super) fn pid_namespace() -> u64 {
    // ORDERING: relaxed, here and below: a single word. All threads store the same value.
    let mut namespace = OF_PROCESS.pid_namespace.load(Relaxed);
    if namespace == 0 {
        namespace = sys::pid_namespace();
        OF_PROCESS.pid_namespace.store(if namespace == 0 { UNKNOWN } else { namespace }, Relaxed);
    }
    if namespace == UNKNOWN { 0 } else { namespace }
}

/// A forked child may be in another namespace.
pub(super) fn forget_pid_namespace() {
    OF_PROCESS.pid_namespace.store(0, Relaxed);
}

/// Notes that this process is a forked child.
pub(super) fn note_forked_child() {
    // ORDERING: relaxed: there is no other thread.
    OF_PROCESS.forks.store(OF_PROCESS.forks.load(Relaxed).wrapping_add(1).max(1), Relaxed);
}

/// Another number in each process: what was made in a parent is not the child's.
#[inline(always)]
pub(super) fn forks() -> u32 {
    // ORDERING: relaxed: set before there was a second thread.
    OF_PROCESS.forks.load(Relaxed)
}

/// Whether this process was forked since the ring was made.
pub(super) fn is_forked_child() -> bool {
    forks() != 0
}

/// Keeps the locks that the calling thread holds, for its image in a forked child.
pub(super) fn keep_held(locks: HeldCopy) {
    arch::fork_block().held.set(locks);
}

/// Takes the locks that were kept.
pub(super) fn take_held() -> HeldCopy {
    arch::fork_block().held.replace(NONE_HELD)
}
