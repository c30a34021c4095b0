//! Functions of the recorder for the package `librip-preload`. They are not part of the public interface.

pub use crate::lock::interposed::*;
pub use crate::sys::symbols::Symbols;

/// From now on the recorder makes no system call that a program with threads does not make anyway. Later threads record
/// nowhere, and a clean exit leaves the ring.
pub fn avoid_system_calls() {
    crate::process::state::avoid_system_calls();
}

/// The process ends with this status, in a way that the C library does not announce. Safe in a signal handler, and in a
/// child of `vfork`.
pub fn process_ends(status: core::ffi::c_int) {
    crate::process::exit::process_ends(status);
}
