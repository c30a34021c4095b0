//! A thread that blocks on what nobody holds: how the wait ends, also if the thread is cancelled meanwhile.

use core::ffi::{c_int, c_void};

use librip::interpose::{Blocking, Flags};

use crate::real::Cleanup;

/// Blocks by the program's own call, which may be a cancellation point, and records the end. `has_it`: whether the
/// thread has what it waited for, by the result.
#[inline(always)]
pub(crate) fn block<const FLAGS: Flags>(
    mut blocking: Blocking,
    has_it: impl FnOnce(c_int) -> bool,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let mut cleanup = Cleanup::new();
    // SAFETY: both stay in this frame, and `pop` is below.
    unsafe { cleanup.push(cancelled::<FLAGS>, (&raw mut blocking).cast()) };
    let result = wait();
    // SAFETY: pushed above.
    unsafe { cleanup.pop() };
    blocking.end::<FLAGS>(has_it(result));
    result
}

extern "C" fn cancelled<const FLAGS: Flags>(blocking: *mut c_void) {
    // SAFETY: the thread unwinds, but the frame of `block` is still there.
    let blocking = unsafe { blocking.cast::<Blocking>().read() };
    blocking.end::<FLAGS>(false);
}
