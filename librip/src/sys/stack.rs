//! A stack of its own for work that may not fit on an alternate signal stack.
//!
//! A signal handler may make a thread's first mark, on an alternate stack (`sigaltstack`) that is just long enough for
//! the handler. A claim takes a kilobyte more. So it runs on memory that is mapped for it.

#![allow(unsafe_code, reason = "the stack pointer changes")]

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use super::{avoids_calls, file, raw};

/// The work of the caller takes less than this much of a stack, also in a debug build.
const ENOUGH_BYTES: usize = 16 << 10;

/// The length of the stack that is mapped.
const MAPPED_BYTES: usize = 64 << 10;

/// Runs `body`: on a stack of its own if the thread is on an alternate stack with little room.
///
/// Where no memory can be mapped, or system calls are to be avoided, it runs `body` on the stack that there is. Panics
/// end in `body`.
///
/// Meanwhile the thread has no alternate stack. To deliver a signal whose handler wants one, the kernel looks whether
/// the stack pointer is there, and would begin to write at its beginning otherwise. SIGBUS comes in the middle of a
/// claim if somebody truncates the ring.
///
/// An alternate stack with `SS_AUTODISARM` is not noticed: the kernel forgets it while a handler runs.
#[inline(always)]
pub(crate) fn with_room<T>(body: impl FnOnce() -> T) -> T {
    if avoids_calls() || has_room() {
        return body();
    }
    match Mapped::new() {
        Some(stack) => stack.run(|| without_alternate_stack(body)),
        None => body(),
    }
}

/// Whether the thread is on an ordinary stack, or on an alternate one with enough room. Not inlined: its frame is gone
/// when the work begins.
#[inline(never)]
fn has_room() -> bool {
    let stack = alternate_stack();
    let here = (&raw const stack).addr();
    stack.is_none_or(|stack| {
        let is_there = stack.ss_flags & libc::SS_ONSTACK != 0;
        !is_there || here.wrapping_sub(stack.ss_sp.addr()) >= ENOUGH_BYTES
    })
}

/// Runs `body` on a stack that is not the alternate one, and the thread has no alternate one meanwhile.
fn without_alternate_stack<T>(body: impl FnOnce() -> T) -> T {
    let Some(own) = alternate_stack() else { return body() };
    set_alternate_stack(&libc::stack_t { ss_flags: libc::SS_DISABLE, ..own });
    let result = body();
    set_alternate_stack(&own);
    result
}

/// The thread's alternate stack, and whether the thread is on it. `None` if the kernel does not say.
fn alternate_stack() -> Option<libc::stack_t> {
    let mut stack = MaybeUninit::<libc::stack_t>::uninit();
    let into = stack.as_mut_ptr().expose_provenance();
    // SAFETY: it changes nothing if the new stack is null, and writes the present one.
    let result = unsafe { raw::call(libc::SYS_sigaltstack, [0, into]) };
    // SAFETY: the call has succeeded, so the kernel has written it.
    (result == 0).then(|| unsafe { stack.assume_init() })
}

/// Called on another stack than the present alternate one.
fn set_alternate_stack(stack: &libc::stack_t) {
    // SAFETY: none, or the one that the thread had.
    unsafe { raw::call(libc::SYS_sigaltstack, [(&raw const *stack).expose_provenance(), 0]) };
}

/// Memory that this thread uses as a stack.
struct Mapped {
    start: NonNull<u8>,
}

impl Mapped {
    fn new() -> Option<Mapped> {
        file::map_private(MAPPED_BYTES).ok().map(|start| Mapped { start })
    }

    fn run<T, F: FnOnce() -> T>(self, body: F) -> T {
        /// The body before the call, and its result after it.
        struct Work<T, F> {
            body: Option<F>,
            result: Option<T>,
        }
        extern "C" fn work<T, F: FnOnce() -> T>(work: *mut c_void) {
            // SAFETY: `run` passes its own work, and waits.
            let work = unsafe { &mut *work.cast::<Work<T, F>>() };
            work.result = work.body.take().map(|body| body());
        }
        let mut own = Work { body: Some(body), result: None };
        let top = self.start.as_ptr().wrapping_add(MAPPED_BYTES).cast();
        // SAFETY: the memory below `top` is this thread's alone, and longer than any work takes. `work` gets what it
        // expects.
        unsafe { call_on(top, (&raw mut own).cast(), work::<T, F>) };
        // SANITY: the body was there, and has returned.
        own.result.expect("the work was done")
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the memory any more.
        unsafe { file::unmap(self.start, MAPPED_BYTES) };
    }
}

/// Calls `work` with `data`, with the stack pointer at `top`. Its frame has a frame pointer and call frame information,
/// so that a debugger finds the handler above it.
///
/// # Safety
///
/// There is enough writable memory below `top`, which is a multiple of 16. `work` may be called with `data`.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn call_on(top: *mut c_void, data: *mut c_void, work: extern "C" fn(*mut c_void)) {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "mov rsp, rdi",
        "mov rdi, rsi",
        "call rdx",
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
    )
}

/// As above.
///
/// # Safety
///
/// As above.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn call_on(top: *mut c_void, data: *mut c_void, work: extern "C" fn(*mut c_void)) {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "stp x29, x30, [sp, #-16]!",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset x29, -16",
        ".cfi_offset x30, -8",
        "mov x29, sp",
        ".cfi_def_cfa x29, 16",
        "mov sp, x0",
        "mov x0, x1",
        "blr x2",
        "mov sp, x29",
        "ldp x29, x30, [sp], #16",
        ".cfi_def_cfa sp, 0",
        "ret",
        ".cfi_endproc",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn stack_address() -> usize {
        let local = 0u8;
        (&raw const local).addr()
    }

    #[test]
    fn work_runs_on_a_thread_s_own_stack() {
        let (outside, inside) = (stack_address(), with_room(stack_address));
        assert!(outside.abs_diff(inside) < 4096, "{outside:#x}, {inside:#x}");
    }

    #[test]
    fn work_on_mapped_memory_gets_its_arguments_and_its_result_back() {
        let (stack, numbers) = (Mapped::new().unwrap(), [1u64, 2, 3]);
        let start = stack.start.as_ptr().addr();
        let (sum, address) = stack.run(|| (numbers.iter().sum::<u64>(), stack_address()));
        assert_eq!(sum, 6);
        assert!((start..start + MAPPED_BYTES).contains(&address), "{address:#x} is not from {start:#x} on");
    }
}
