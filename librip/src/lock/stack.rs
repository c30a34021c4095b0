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
//! * Nothing outside of the thread's stack is read: see [`end_of_stack`].
//! * No system call is made. To ask the kernel whether a page can be read takes a wait's time: an asking `futex` call
//!   slept for the 50 microseconds of the timer's slack where the word happened to be 0, and held the program's mutex
//!   meanwhile.

#![allow(unsafe_code, reason = "reads the calling thread's stack")]

use core::ptr;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use crate::lock::site::{Caller, Flags, Origin};
use crate::lock::table::Slot;
use crate::process::present;
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
            if word == caller.0 || !present::is_code(word) || waiter.stack.contains(&word) {
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

    /// A thread that is about to wait has time.
    #[inline(always)]
    fn plain_event<const B: usize>(self, slot: Slot, operands: [u64; B], pc: u64) -> u64 {
        self.event(slot, [], operands, pc)
    }
}

/// The end of what is read of the stack.
fn readable_until(begin: u64) -> u64 {
    begin.saturating_add(LOOKED_THROUGH_BYTES).min(end_of_stack(begin))
}

/// Where the stack with this pointer ends for sure, or an address before that.
///
/// * A thread that an interposed call has created knows where its own stack begins. It ends at the thread pointer,
///   above which the C library keeps the thread's own data.
/// * The stack of the process ends at the strings that the kernel has put there. The kernel leaves more room below that
///   than [`MAIN_STACK_BYTES`] when it chooses addresses for other mappings.
/// * Another stack, such as a coroutine's: only the page of the pointer is known.
fn end_of_stack(pointer: u64) -> u64 {
    let thread_pointer = crate::arch::thread_pointer() & !(WORD_BYTES - 1);
    let own_begin = crate::arch::creator().stack_begin.get();
    // ORDERING: relaxed: a number.
    let main_end = MAIN_STACK_END.load(Relaxed);
    if own_begin != 0 && (own_begin..thread_pointer).contains(&pointer) {
        thread_pointer
    } else if (main_end.saturating_sub(MAIN_STACK_BYTES)..main_end).contains(&pointer) {
        main_end
    } else {
        (pointer | (PAGE_BYTES - 1)).saturating_add(1)
    }
}

/// The stack of the process is taken to be this long at most: the default limit.
const MAIN_STACK_BYTES: u64 = 8 << 20;

/// An address near the end of the stack of the process; 0 before [`prepare`].
static MAIN_STACK_END: AtomicU64 = AtomicU64::new(0);

/// Notes where the stack of the process is. Call it once, before threads wait.
pub(crate) fn prepare() {
    // ORDERING: relaxed: a number.
    MAIN_STACK_END.store(sys::address_on_first_stack() & !(WORD_BYTES - 1), Relaxed);
}

/// The calling thread has begun, and has a stack of this length, bytes; 0 if that is not known.
///
/// The C library puts the thread's data at the top of the stack's memory, and a guard may be at its bottom. So three
/// quarters of the length count.
pub(crate) fn begins_with(stack_len_bytes: u64) {
    let begin = match stack_len_bytes {
        0 => 0,
        len => crate::arch::thread_pointer().saturating_sub(len - len / 4),
    };
    crate::arch::creator().stack_begin.set(begin);
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
