//! What the package `librip-preload` needs of the recorder. It is not part of the public API.

pub use crate::lock::interposed::*;

/// From now on the recorder makes no system call that a program with threads does not make anyway. Later threads do not
/// record, and a clean exit leaves the ring.
pub fn avoid_system_calls() {
    crate::process::state::avoid_system_calls();
}

/// The process ends with this status, and the C library runs no exit handlers. Safe in a signal handler, and in a child
/// of `vfork`.
pub fn process_ends(status: core::ffi::c_int) {
    crate::process::exit::process_ends(status);
}
