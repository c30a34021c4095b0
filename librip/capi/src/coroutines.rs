//! What `rip_context_create` and the other functions for coroutines call.
//!
//! A switch has nothing to clean up, so cancellation may interrupt it. To make and to end a coroutine allocates and
//! frees memory, so the thread cannot be cancelled meanwhile.

use core::ffi::c_char;
use core::ptr;

use librip::capi::coroutine::{self, Coroutine};
use librip::capi::place::Place;
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
        let made = coroutine::create(name, Place { pc, file, line });
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

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn create(name: &core::ffi::CStr, pc: u64) -> *mut Coroutine {
        // SAFETY: zero-terminated strings.
        unsafe { librip_context_create_1(name.as_ptr(), pc, c"coroutines.rs".as_ptr(), 1) }
    }

    /// The state of a slot with this name, its count, and its turn.
    fn slot(name: &str) -> (u64, u64, u64) {
        let file = std::fs::read(librip::ring_path().unwrap()).unwrap();
        let number = |at: usize, len: usize| {
            file[at..at + len].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
        };
        let region = (0..16).map(|index| 192 + 32 * index).find(|&at| number(at, 4) == 4).unwrap();
        let (len, offset) = (number(region + 4, 4) as usize, number(region + 8, 8) as usize);
        let mut slots = (0..number(region + 24, 8) as usize).map(|index| offset + index * len);
        let has_name = |&at: &usize| file[at + 64..].starts_with(&[name.as_bytes(), &[0]].concat());
        let at = slots.find(has_name).unwrap();
        (number(at, 4), number(at + 504, 8), number(at + len - 256, 8))
    }

    #[test]
    fn a_coroutine_may_be_left_in_the_middle_of_a_poll() {
        let path = std::env::temp_dir().join(format!("rip-coroutines.{}", std::process::id()));
        librip::Builder::new().path(path).slots(64).keep(librip::Keep::Never).create().unwrap();
        librip::set_thread_name("own");
        let coroutine = create(c"coroutine", 16);
        let switch = |to: *mut Coroutine| {
            // SAFETY: null, or the coroutine, which exists.
            unsafe { rip_context_switch(to) };
        };
        let mut polls = 0;
        let future = poll_fn(|_| {
            polls += 1;
            if polls == 1 {
                librip::rip_snap!("task");
                switch(ptr::null_mut());
                // The scheduler, on the thread's own stack.
                librip::rip_snap!("own");
                switch(coroutine);
                librip::rip_snap!("coroutine: the poll that is left is not known any more");
            }
            if polls == 1 { Poll::Pending } else { Poll::Ready(()) }
        });
        let mut task = pin!(librip::task::Builder::new().name("task").traced(future));
        let cx = &mut Context::from_waker(Waker::noop());
        switch(coroutine);
        assert!(task.as_mut().poll(cx).is_pending());
        librip::rip_snap!("coroutine");
        let [exited, live] = [2, 1];
        assert_eq!(slot("task"), (live, 1, 2));
        assert_eq!(slot("coroutine"), (live, 2, 3));
        assert_eq!(task.as_mut().poll(cx), Poll::Ready(()));
        assert_eq!(slot("task"), (exited, 1, 4));
        switch(ptr::null_mut());
        librip::rip_snap!("own");
        assert_eq!(slot("coroutine"), (live, 2, 4));
        assert_eq!(slot("own").1, 2);
        assert!(rip_context_current().is_null());
        // SAFETY: it exists.
        unsafe { rip_context_destroy(coroutine) };
        assert_eq!(slot("coroutine").0, exited);
        std::fs::remove_file(librip::ring_path().unwrap()).unwrap();
    }
}
