//! Words of the waiting thread's stack that may be return addresses: who called the function that called us.
//!
//! Programs wrap their locks. Then the return address of an interposed call is in the wrapper, and says nothing about
//! who waits. To unwind takes tables, and the C library's unwinder takes locks. So the first words above the return
//! address that point into code go into the event of the wait. The reader finds out which of them are return addresses:
//! it has the program's file, and time.
//!
//! # Invariants
//!
//! * Only a thread that is about to wait comes here.
//! * Nothing outside of the thread's stack is read. The page of the stack pointer is the stack's. The next page is read
//!   only up to the thread pointer, above which the C library keeps the thread's own data, and only if the kernel can
//!   read it. The kernel is asked by a `futex` call, which a waiting thread makes anyway: a filter of system calls may
//!   kill the thread for another one, such as `process_vm_readv`.

#![allow(unsafe_code, reason = "reads the calling thread's stack")]

use core::ptr;

use crate::lock::site::{Caller, Flags, Origin};
use crate::lock::table::Slot;
use crate::process::code;
use crate::sys;

/// An event has this many words of the stack.
const WORDS: usize = 4;
/// The stack is looked through up to this far, bytes.
const LOOKED_THROUGH_BYTES: u64 = 4096;
/// The return address is at most this far from where the interposer's function begins to look, bytes.
const FRAME_MAX_BYTES: u64 = if cfg!(debug_assertions) { 2048 } else { 512 };
/// The interposer's frames may have copies of the return address below it. The distance from one to the next is at most
/// this, bytes.
const COPY_MAX_BYTES: u64 = if cfg!(debug_assertions) { 512 } else { 64 };
/// Pages are at least this long, bytes.
const PAGE_BYTES: u64 = 4096;
/// A word of the stack, bytes.
const WORD_BYTES: u64 = 8;

/// The stack pointer of a function of the interposer.
#[derive(Clone, Copy, Debug)]
pub struct StackPointer(u64);

impl StackPointer {
    /// That of the function that this is inlined into.
    #[inline(always)]
    pub fn here() -> StackPointer {
        let pointer: u64;
        // SAFETY: it copies a register. Not `pure`, so that it stays where it is.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            core::arch::asm!("mov {}, rsp", out(reg) pointer, options(nomem, nostack, preserves_flags));
        }
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        unsafe {
            core::arch::asm!("mov {}, sp", out(reg) pointer, options(nomem, nostack, preserves_flags));
        }
        StackPointer(pointer)
    }
}

/// An interposed call that is about to wait, with words of the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    caller: Caller,
    stack: [u64; WORDS],
}

impl Waiter {
    #[cold]
    #[inline(never)]
    pub(crate) fn new(caller: Caller, from: StackPointer) -> Waiter {
        let mut waiter = Waiter { caller, stack: [0; WORDS] };
        let begin = from.0.next_multiple_of(WORD_BYTES);
        let end = readable_until(begin);
        let Some(own) = return_address_at(begin, end, caller.0) else { return waiter };
        let mut found = 0;
        for at in (own + WORD_BYTES..end).step_by(WORD_BYTES as usize) {
            let word = read(at);
            // A word may stand there several times.
            if word == caller.0 || !code::contains(word) || waiter.stack.contains(&word) {
                continue;
            }
            waiter.stack[found] = word;
            found += 1;
            if found == WORDS {
                break;
            }
        }
        waiter
    }
}

impl Origin for Waiter {
    #[inline(always)]
    fn entry_pc(self, site: u64) -> u64 {
        self.caller.entry_pc(site)
    }

    #[inline(always)]
    fn entry_flags(site_flags: Flags) -> u64 {
        Caller::entry_flags(site_flags)
    }

    /// The words of the stack come after the caller, as in the sites of waits.
    #[inline(always)]
    fn event<const A: usize, const B: usize>(
        self,
        slot: Slot,
        times: [u64; A],
        operands: [u64; B],
        pc: u64,
    ) -> u64 {
        let [first, second, third, fourth] = self.stack;
        slot.event((times, [self.caller.0, first, second, third, fourth], operands), pc)
    }
}

/// The end of what is read of the stack.
fn readable_until(begin: u64) -> u64 {
    let end = begin.saturating_add(LOOKED_THROUGH_BYTES);
    let thread_pointer = crate::arch::thread_pointer() & !(WORD_BYTES - 1);
    let end = if thread_pointer > begin { end.min(thread_pointer) } else { end };
    let next_page = (begin | (PAGE_BYTES - 1)).saturating_add(1);
    if end <= next_page || sys::can_read(next_page) { end } else { next_page }
}

/// Where the return address of the interposed call is: it is the last of the copies that are close together.
fn return_address_at(begin: u64, end: u64, address: u64) -> Option<u64> {
    let mut found = None;
    for at in (begin..end).step_by(WORD_BYTES as usize) {
        let until = found.map_or(begin + FRAME_MAX_BYTES, |last| last + COPY_MAX_BYTES);
        if at > until {
            break;
        }
        // On x86-64 the stack is aligned at a call, and the return address is directly below.
        let is_aligned = cfg!(not(target_arch = "x86_64")) || at % 16 == 8;
        if is_aligned && read(at) == address {
            found = Some(at);
        }
    }
    found
}

/// Reads a word of the stack.
fn read(at: u64) -> u64 {
    // SAFETY: it is aligned, and in a part of this thread's stack that can be read. Volatile, because the word may be
    // a variable of the program, which another thread may write to.
    unsafe { ptr::with_exposed_provenance::<u64>(at as usize).read_volatile() }
}
