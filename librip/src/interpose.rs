//! Functions of the recorder for the package `librip-preload`, and for the locks of `rip.hpp` in `librip-capi`. They
//! are not part of the public interface.

pub use crate::lock::interposed::*;
pub use crate::ring::slots::Position;
#[cfg(target_env = "gnu")]
pub use crate::sys::loaded::modules;
pub use crate::sys::symbols::Symbols;

/// Starts recording with the defaults: the process's first mark makes the ring. A process that marks nothing leaves
/// nothing.
///
/// # Errors
///
/// Those of [`init`](crate::init) that are known before the ring is made.
pub fn start_at_first_mark() -> Result<(), crate::InitError> {
    crate::runtime::start(crate::Builder::new(), crate::runtime::When::AtFirstMark)
}

/// How far the calling thread has come, for a thread that it creates now; `None` if it has recorded nothing, and nor
/// has the thread that created it.
pub fn position_of_creator() -> Option<Position> {
    crate::process::thread::position_of_creator()
}

/// The calling thread has just begun. Its creator had come so far, and its stack has this length, bytes; 0 if that is
/// not known.
pub fn created_at(position: Option<Position>, stack_len_bytes: u64) {
    if let Some(position) = position {
        crate::process::kin::created_at(position);
    }
    crate::lock::stack::begins_with(stack_len_bytes);
}

/// The id of the thread with this `pthread_t`, 0 if the thread has ended; `None` if it is not known where the C library
/// keeps it.
///
/// # Safety
///
/// Nobody has joined the thread yet.
#[allow(unsafe_code, reason = "the descriptor of a thread is read by its address")]
pub unsafe fn tid_of(thread: usize) -> Option<u32> {
    // SAFETY: the caller's promise.
    unsafe { crate::sys::tid_of(thread) }
}

/// The calling thread has joined the thread with this `pthread_t`.
pub fn joined(thread: usize) {
    crate::process::thread::joined(thread);
}

/// The file of a ring that was removed because `exec` was about to succeed.
#[derive(Debug)]
pub struct RemovedByExec(crate::sys::file::File);

/// The process is about to call `exec`.
pub fn exec_begins() -> Option<RemovedByExec> {
    crate::process::exit::exec_begins().map(RemovedByExec)
}

/// `exec` has failed.
pub fn exec_failed(removed: Option<RemovedByExec>) {
    if let Some(RemovedByExec(file)) = removed {
        crate::process::exit::exec_failed(&file);
    }
}

/// The process ends with this status, in a way that the C library does not announce. Safe in a signal handler, and in a
/// child of `vfork`.
#[inline]
pub fn process_ends(status: core::ffi::c_int) {
    crate::process::exit::process_ends(status);
}

/// The process has not ended after [`process_ends`]: the fork of `daemon` has failed.
pub fn process_goes_on() {
    crate::process::exit::process_goes_on();
}
