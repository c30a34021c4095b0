//! The SIGBUS guard: keeps the program alive when somebody truncates the ring's file.
//!
//! A store behind the end of a mapped file raises SIGBUS, and no check beforehand can exclude that: the file
//! may shrink between the check and the store. So the handler puts private memory where the file was, and the
//! mark that faulted is repeated there, recording nowhere. Every other SIGBUS goes where it went before.
//!
//! # Limits
//!
//! A thread that blocks SIGBUS is killed by the kernel before any handler; so is a program whose own handler,
//! installed later, does not pass signals on. Private memory starts as zeros: a slot with mask 0 takes all
//! its words in one place, which is what the mark's code does with any mask.

#![allow(unsafe_code, reason = "signal handling")]

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Release};

use crate::ring::Ring;
use crate::sys;

static RING: AtomicPtr<Ring> = AtomicPtr::new(ptr::null_mut());
/// What handled SIGBUS before, leaked.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// Installs the handler in front of the present one. To be called once.
pub(crate) fn install(ring: &'static Ring) {
    let mut before = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: asks for the present action.
    if unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr()) } != 0 {
        return;
    }
    // SAFETY: the call above filled it.
    let before = unsafe { before.assume_init() };
    // ORDERING: release on both, pairs with the acquire in `on_sigbus`.
    BEFORE.store(Box::leak(Box::new(before)), Release);
    RING.store(ptr::from_ref(ring).cast_mut(), Release);
    let mut action = before;
    action.sa_sigaction = on_sigbus as extern "C" fn(_, _, _) as usize;
    // On the alternate stack where the thread has one. The rest of what the earlier handler asked for stays,
    // but being reset is ours to do for it.
    action.sa_flags = (before.sa_flags | libc::SA_SIGINFO | libc::SA_ONSTACK) & !libc::SA_RESETHAND;
    // SAFETY: a complete action whose handler has the three-argument form that SA_SIGINFO asks for.
    unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) };
}

extern "C" fn on_sigbus(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    sys::with_errno_kept(|| {
        if !replace_lost_memory(info) {
            pass_on(signal, info, context);
        }
    });
}

/// Says whether the fault was in the ring, and is mended.
fn replace_lost_memory(info: *mut libc::siginfo_t) -> bool {
    // SAFETY: the kernel passes a valid record to handlers with SA_SIGINFO.
    let info = unsafe { &*info };
    if info.si_code != libc::BUS_ADRERR {
        return false;
    }
    // SAFETY: BUS_ADRERR records have an address.
    let address = unsafe { info.si_addr() }.addr();
    // ORDERING: acquire, pairs with `install`.
    // SAFETY: null, or a leaked ring.
    let Some(ring) = (unsafe { RING.load(Acquire).as_ref() }) else { return false };
    let begin = ring.base().addr();
    let end = begin + ring.geometry.file_len_bytes as usize;
    if !(begin..end).contains(&address) {
        return false;
    }
    // From here to the end, in one piece: one hole for each of many threads would use up the mappings that a
    // process may have. What lies before is in the file still, and goes on being recorded.
    let from = address & !(ring.geometry.page_len_bytes - 1);
    // First, so that nobody takes a zeroed counter for a sound one.
    // ORDERING: release, pairs with the acquire in `slot::claim`.
    ring.is_damaged.store(true, Release);
    // SAFETY: replaces a part of our own mapping, which nothing but marks and `slot` uses; both allow for
    // zeros.
    let replaced = unsafe {
        libc::mmap(
            ring.base().with_addr(from).cast(),
            end - from,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    replaced != libc::MAP_FAILED
}

/// Does what would have happened without the guard.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // ORDERING: acquire, pairs with `install`.
    // SAFETY: null, or leaked by `install`.
    let Some(before) = (unsafe { BEFORE.load(Acquire).as_ref() }) else { return };
    let handler = before.sa_sigaction;
    // SAFETY: the kernel passes a valid record.
    let was_sent = unsafe { (*info).si_code } <= 0;
    if handler == libc::SIG_IGN && was_sent {
        return;
    }
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN || before.sa_flags & libc::SA_RESETHAND != 0 {
        let mut default = *before;
        default.sa_sigaction = libc::SIG_DFL;
        default.sa_flags = 0;
        // SAFETY: the default action. A fault repeats when we return and then ends the process as it should;
        // nobody ignores a fault, the kernel does not let them.
        unsafe { libc::sigaction(signal, &raw const default, ptr::null_mut()) };
        if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
            if was_sent {
                // Blocked while we are in its handler, and delivered when we return.
                // SAFETY: raises a signal in this thread.
                unsafe { libc::raise(signal) };
            }
            return;
        }
    }
    if before.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: installed with SA_SIGINFO, so it has this type.
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
            unsafe { core::mem::transmute(handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: installed without SA_SIGINFO, so it has this type.
        let handler: extern "C" fn(c_int) = unsafe { core::mem::transmute(handler) };
        handler(signal);
    }
}
