//! What `rip_context_create` and the other functions for coroutines call.
//!
//! A switch has nothing to clean up, so cancellation may interrupt it. To make and to end a coroutine allocates and
//! frees memory, so the thread cannot be cancelled meanwhile.

use core::ffi::c_char;
use core::ptr;

use librip::capi::coroutine::{self, Coroutine, Origin};
use librip::capi::with_cancellation_off;

use crate::bytes_of;

/// `rip_context_create`. The PC is a site of the kind TASK. Returns null if the coroutine gets no slot.
///
/// # Safety
///
/// `name` and `file` are null or zero-terminated strings.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn librip_context_create_1(
    name: *const c_char,
    pc: u64,
    file: *const c_char,
    line: u32,
) -> *mut Coroutine {
    // SAFETY: the caller's promise.
    let name = unsafe { bytes_of(&name) }.unwrap_or_default();
    // SAFETY: the caller's promise.
    let file = unsafe { bytes_of(&file) }.unwrap_or_default();
    with_cancellation_off(|| {
        let made = coroutine::create(name, Origin { pc, file, line });
        made.map_or(ptr::null_mut(), ptr::NonNull::as_ptr)
    })
}

/// The calling thread is about to go on in this coroutine; with null, on its own stack.
///
/// # Safety
///
/// `context` is null, or was made by [`librip_context_create_1`] and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rip_context_switch(context: *const Coroutine) {
    // SAFETY: the caller's promise.
    unsafe { coroutine::switch(context) };
}

/// The coroutine that the calling thread is in, or null.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn rip_context_current() -> *mut Coroutine {
    coroutine::current().cast_mut()
}

/// Ends a coroutine. If another thread is in it, nothing happens.
///
/// # Safety
///
/// As [`rip_context_switch`]. No thread uses the coroutine from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rip_context_destroy(context: *mut Coroutine) {
    with_cancellation_off(|| {
        // SAFETY: the caller's promise.
        unsafe { coroutine::destroy(context) };
    });
}
