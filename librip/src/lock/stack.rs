//! Words of the waiting thread's stack that may be return addresses: who called the function that called us.
//!
//! Programs wrap their locks. Then the return address of an interposed call is in the wrapper, and says nothing about
//! who waits. Libraries have locks too, and the caller of a recorded one is in the library then. To unwind takes
//! tables, and the C library's unwinder takes locks. So the first words above the return address, or in and above the
//! frame that a recorded lock is inlined into, go into the event of the wait if they look like return addresses. The
//! reader finds out which of them are: it has the program's file, and time.
//!
//! # Invariants
//!
//! * Only a thread that is about to wait comes here.
//! * Nothing outside of the thread's stack is read, but for code and data of this module: see [`end_of_stack`],
//!   `image`.
//! * No system call is made. To ask the kernel whether a page can be read takes a wait's time: an asking `futex` call
//!   slept for the 50 microseconds of the timer's slack where the word happened to be 0, and held the program's mutex
//!   meanwhile.

#![allow(unsafe_code, reason = "reads the calling thread's stack")]
#![cfg_attr(
    not(feature = "interpose"),
    allow(unreachable_pub, reason = "with that feature, `interpose` exports the stack pointer")
)]

use core::ptr;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use crate::lock::caller::At;
#[cfg(feature = "interpose")]
use crate::lock::site::Caller;
use crate::lock::site::{Flags, Origin};
use crate::lock::table::Slot;
use crate::process::image;
#[cfg(feature = "interpose")]
use crate::process::present;
use crate::sys;

/// An event has this many words of the stack.
const WORDS: usize = 4;
/// The stack is looked through up to this far, bytes. Functions that are not optimised have large frames.
const LOOKED_THROUGH_BYTES: u64 = if cfg!(debug_assertions) { 16384 } else { 4096 };
/// The stack of each thread has at least this many bytes below the thread pointer: the C library makes no smaller one.
const THREAD_STACK_MIN_BYTES: u64 = 16 << 10;
/// The return address is at most this far from where the interposer's function begins to look, bytes.
#[cfg(feature = "interpose")]
const FRAME_MAX_BYTES: u64 = if cfg!(debug_assertions) { 2048 } else { 512 };
/// The interposer's frames may have copies of the return address below it. The distance from one to the next is at most
/// this, bytes.
#[cfg(feature = "interpose")]
const COPY_MAX_BYTES: u64 = if cfg!(debug_assertions) { 512 } else { 64 };
/// Functions are taken to be this long at most, bytes.
const FUNCTION_MAX_BYTES: u64 = 64 << 10;
/// Pages are at least this long, bytes.
const PAGE_BYTES: u64 = 4096;
/// A word of the stack, bytes.
const WORD_BYTES: u64 = 8;

/// The stack pointer of a function of the interposer, or of the one that a wrapper is inlined into.
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
#[cfg(feature = "interpose")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    caller: Caller,
    stack: [u64; WORDS],
}

#[cfg(feature = "interpose")]
impl Waiter {
    #[cold]
    #[inline(never)]
    pub(crate) fn new(caller: Caller, from: StackPointer) -> Waiter {
        let begin = from.0.next_multiple_of(WORD_BYTES);
        let end = readable_until(begin);
        let stack = match return_address_at(begin, end, caller.0) {
            Some(own) => code_words(own + WORD_BYTES, end, caller.0),
            None => [0; WORDS],
        };
        Waiter { caller, stack }
    }

    /// The same for a call whose place in the program is no return address. `from` is the stack pointer of the function
    /// that the program has called, whose frame is small.
    #[cold]
    #[inline(never)]
    pub(crate) fn of_place(caller: Caller, from: StackPointer) -> Waiter {
        if image::code_range().contains(&caller.0) {
            // The library is linked into the program.
            return Waiter { caller, stack: callers(from, caller.0) };
        }
        let begin = from.0.next_multiple_of(WORD_BYTES);
        let end = readable_until(begin);
        let mut stack = framed_words(begin, end);
        if stack[0] == 0 {
            stack = code_words(begin, end, caller.0);
        }
        Waiter { caller, stack }
    }
}

#[cfg(feature = "interpose")]
impl Origin for Waiter {
    /// A thread that is about to wait has time.
    const HAS_TIME: bool = true;
    type Place = [u64; 1 + WORDS];

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
    fn place(self, _pc: u64) -> [u64; 1 + WORDS] {
        let [first, second, third, fourth] = self.stack;
        [self.caller.0, first, second, third, fourth]
    }
}

/// A call of a wrapper that is about to wait. Its event has words of the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingAt<const FLAGS: Flags> {
    at: At<FLAGS>,
    from: StackPointer,
}

impl<const FLAGS: Flags> WaitingAt<FLAGS> {
    /// That of the function that this is inlined into.
    #[inline(always)]
    pub(crate) fn here(at: At<FLAGS>) -> WaitingAt<FLAGS> {
        WaitingAt { at, from: StackPointer::here() }
    }
}

impl<const FLAGS: Flags> Origin for WaitingAt<FLAGS> {
    const IS_CALL: bool = true;
    /// A thread that is about to wait has time.
    const HAS_TIME: bool = true;
    type Place = [u64; 1 + WORDS];

    #[inline(always)]
    fn entry_pc(self, site: u64) -> u64 {
        self.at.entry_pc(site)
    }

    #[inline(always)]
    fn entry_flags(site_flags: Flags) -> u64 {
        At::<FLAGS>::entry_flags(site_flags)
    }

    /// The words of the stack come after the place, as in the sites of waits.
    #[inline(always)]
    fn place(self, pc: u64) -> [u64; 1 + WORDS] {
        let [first, second, third, fourth] = callers(self.from, pc);
        [self.at.address(), first, second, third, fourth]
    }

    fn note(self, slot: Slot) {
        self.at.note(slot);
    }
}

/// The first different words in this part of the stack that are wanted. Those that are missing are 0. `is_wanted` gets
/// a word, and those before it.
#[inline(always)]
fn first_words(begin: u64, end: u64, is_wanted: impl Fn(u64, &[u64; WORDS]) -> bool) -> [u64; WORDS] {
    let (mut words, mut found) = ([0; WORDS], 0);
    for at in (begin..end).step_by(WORD_BYTES as usize) {
        let word = read(at);
        // A word may stand there several times.
        if !is_wanted(word, &words) || words.contains(&word) {
            continue;
        }
        words[found] = word;
        found += 1;
        if found == WORDS {
            break;
        }
    }
    words
}

/// The first different words in this part of the stack that point into code, but for one.
#[cfg(feature = "interpose")]
fn code_words(begin: u64, end: u64, but: u64) -> [u64; WORDS] {
    first_words(begin, end, |word, _| word != but && present::is_code(word))
}

/// The first different words that stand where a function with a frame pointer has its return address: above the address
/// of its caller's frame, where the same holds.
///
/// The frame of a function that was not optimised has many old return addresses, but few such pairs.
#[cfg(feature = "interpose")]
fn framed_words(begin: u64, end: u64) -> [u64; WORDS] {
    let return_address_of = |frame: u64| Some(frame + WORD_BYTES).filter(|&at| at < end).map(read);
    let (mut words, mut found) = ([0; WORDS], 0);
    let mut at = begin;
    while at + WORD_BYTES < end && found < WORDS {
        let frame = read(at);
        let is_frame = frame.is_multiple_of(WORD_BYTES) && (at + WORD_BYTES..end).contains(&frame);
        let word = if is_frame { read(at + WORD_BYTES) } else { 0 };
        if word != 0
            && present::is_code(word)
            && return_address_of(frame).is_some_and(present::is_code)
            && !words.contains(&word)
        {
            words[found] = word;
            found += 1;
        }
        at += WORD_BYTES;
    }
    words
}

/// The first words of the stack that may lead to the code at `pc`: the return addresses of calls of functions that
/// begin a little before it, or before another of these words.
///
/// The frame of a function that was not optimised has many old return addresses, and code is full of addresses of
/// functions. So this looks at the calls themselves, in this module, which stays mapped. Only the reader knows where
/// functions begin, and which of the words lead to `pc`.
#[inline(never)]
fn callers(from: StackPointer, pc: u64) -> [u64; WORDS] {
    let begin = from.0.next_multiple_of(WORD_BYTES);
    let code = image::code_range();
    first_words(begin, readable_until(begin), |word, words| {
        // Most words are no addresses of code.
        if !code.contains(&word) {
            return false;
        }
        let Some(target) = call_target(word) else { return false };
        let is_a_little_before = |callee: u64| target <= callee && callee - target < FUNCTION_MAX_BYTES;
        is_a_little_before(pc) || words.iter().copied().any(is_a_little_before)
    })
}

/// The function that the call before a return address in this module calls, if it names one: CALL rel32, or CALL
/// [RIP+disp32] of a word of this module's data.
#[cfg(target_arch = "x86_64")]
fn call_target(return_address: u64) -> Option<u64> {
    let [first, second, distance @ ..] = image::code::<6>(return_address.wrapping_sub(6))?;
    let distance = i64::from(i32::from_le_bytes(distance));
    let target = return_address.wrapping_add_signed(distance);
    match (first, second) {
        (_, 0xe8) => Some(target),
        (0xff, 0x15) => {
            let mut word = [0; WORD_BYTES as usize];
            image::copy(target, &mut word).then(|| u64::from_ne_bytes(word))
        }
        _ => None,
    }
}

/// The function that the call before a return address in this module calls, if it names one: BL imm26.
#[cfg(target_arch = "aarch64")]
fn call_target(return_address: u64) -> Option<u64> {
    let code = u32::from_le_bytes(image::code::<4>(return_address.wrapping_sub(4))?);
    let distance = i64::from((code << 6) as i32 >> 6) * 4;
    (code >> 26 == 0b10_0101).then(|| return_address.wrapping_sub(4).wrapping_add_signed(distance))
}

/// The end of what is read of the stack.
fn readable_until(begin: u64) -> u64 {
    begin.saturating_add(LOOKED_THROUGH_BYTES).min(end_of_stack(begin))
}

/// Where the stack with this pointer ends for sure, or an address before that.
///
/// * A thread that an interposed call has created knows where its own stack begins. It ends at the thread pointer,
///   above which the C library keeps the thread's own data.
/// * Each thread's own stack ends there, and is not shorter than the shortest one. What is less far below the thread
///   pointer is in it.
/// * The stack of the process ends at the strings that the kernel has put there. The kernel leaves more room below that
///   than [`MAIN_STACK_BYTES`] when it chooses addresses for other mappings.
/// * Another stack, such as a coroutine's: only the page of the pointer is known.
fn end_of_stack(pointer: u64) -> u64 {
    let thread_pointer = crate::arch::thread_pointer() & !(WORD_BYTES - 1);
    let own_begin = crate::arch::creator().stack_begin.get();
    // ORDERING: relaxed: a number.
    let main_end = MAIN_STACK_END.load(Relaxed);
    let near_begin = thread_pointer.saturating_sub(THREAD_STACK_MIN_BYTES);
    let own_begin = if own_begin == 0 { near_begin } else { own_begin.min(near_begin) };
    if (own_begin..thread_pointer).contains(&pointer) {
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
#[cfg(feature = "interpose")]
pub(crate) fn begins_with(stack_len_bytes: u64) {
    let begin = match stack_len_bytes {
        0 => 0,
        len => crate::arch::thread_pointer().saturating_sub(len - len / 4),
    };
    crate::arch::creator().stack_begin.set(begin);
}

/// Where the return address of the interposed call is: it is the last of the copies that are close together.
#[cfg(feature = "interpose")]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_call_in_this_modules_code_names_its_function() {
        // CALL rel32, CALL [RIP+disp32] of a word of data, CALL RAX, JMP rel32.
        static CODE: [u8; 24] = {
            let mut code = [0x90; 24];
            code[1] = 0xe8;
            [code[2], code[3], code[4], code[5]] = [0xfb, 0xff, 0xff, 0xff];
            [code[6], code[7]] = [0xff, 0x15];
            [code[16], code[17]] = [0xff, 0xd0];
            code[18] = 0xe9;
            code
        };
        let begin = CODE.as_ptr().expose_provenance() as u64;
        image::note_code(&[(begin, begin + CODE.len() as u64)]);
        assert_eq!(call_target(begin + 6), Some(begin + 1));
        assert_eq!(call_target(begin + 12), None, "the word is none of this module's data");
        for no_call in [begin + 18, begin + 23, begin + 5, begin + 25, 0, 3, u64::MAX] {
            assert_eq!(call_target(no_call), None, "{no_call:#x}");
        }
    }

    #[test]
    fn the_end_of_a_stack_is_known_near_its_beginning_alone() {
        std::thread::spawn(|| {
            let end = crate::arch::thread_pointer();
            let near = end - THREAD_STACK_MIN_BYTES / 2;
            assert_eq!(end_of_stack(near), end & !(WORD_BYTES - 1));
            let deep = end - 64 * THREAD_STACK_MIN_BYTES;
            assert_eq!(end_of_stack(deep), (deep | (PAGE_BYTES - 1)) + 1);
        })
        .join()
        .unwrap();
    }
}
