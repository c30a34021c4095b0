//! What happens when there is no memory: an error and exit status 2, and no signal.
//!
//! Rust's collections abort the process when an allocation fails, and stable Rust has no hook for that. So the
//! allocator remembers that the thread's last allocation failed, and a handler of SIGABRT writes the error, after the
//! line of the standard library. Code that asks whether there is memory (`try_reserve`) still gets its answer. A file
//! that was being written stays, as after a kill.

#![allow(unsafe_code, reason = "an allocator, and a signal handler")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Write;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};

use crate::heap;

/// The system's allocator.
struct Remembering;

#[global_allocator]
static ALLOCATOR: Remembering = Remembering;

thread_local! {
    /// The length of the thread's last allocation, bytes, if it failed; 0 if it did not.
    static FAILED_BYTES: Cell<usize> = const { Cell::new(0) };
}

fn remembered(allocated: *mut u8, bytes: usize) -> *mut u8 {
    FAILED_BYTES.set(if allocated.is_null() { bytes } else { 0 });
    heap::allocated(allocated, bytes);
    allocated
}

// SAFETY: the system's allocator does the work, and keeps the contract.
unsafe impl GlobalAlloc for Remembering {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        remembered(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        remembered(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        remembered(unsafe { System.realloc(pointer, layout, new_size) }, new_size)
    }
}

/// From now on, an allocation that fails ends the program with an error.
pub(crate) fn end_with_an_error() {
    let action = SigAction::new(SigHandler::Handler(aborted), SaFlags::SA_RESETHAND, SigSet::empty());
    // SAFETY: the handler calls functions that are safe in a signal handler.
    let _ = unsafe { sigaction(Signal::SIGABRT, &action) };
}

extern "C" fn aborted(_: i32) {
    // A thread that aborts handles the signal itself.
    let bytes = FAILED_BYTES.get();
    if bytes == 0 {
        // Another reason. The action is the default one again.
        let _ = raise(Signal::SIGABRT);
        return;
    }
    read_rip::app::give_back_terminal();
    let mut text = Text { bytes: [0; 256], len: 0 };
    let _ = writeln!(
        text,
        "Error: there is no memory for {bytes} bytes more\nHint: raise the limit of memory (ulimit, or the control \
         group), or read the file on another machine"
    );
    // SAFETY: the text is readable.
    unsafe { libc::write(libc::STDERR_FILENO, text.bytes.as_ptr().cast(), text.len) };
    // SAFETY: it ends the process, and runs nothing of this program.
    unsafe { libc::_exit(2) };
}

/// A text that takes no memory. What does not fit is cut.
struct Text {
    bytes: [u8; 256],
    len: usize,
}

impl Write for Text {
    fn write_str(&mut self, part: &str) -> std::fmt::Result {
        let room = &mut self.bytes[self.len..];
        let count = part.len().min(room.len());
        room[..count].copy_from_slice(&part.as_bytes()[..count]);
        self.len += count;
        Ok(())
    }
}
