//! The SIGBUS handler: keeps the program alive if somebody truncates the ring's file.
//!
//! A store after the end of a mapped file raises SIGBUS. No check beforehand can exclude that, because the file may
//! shrink between the check and the store. So the handler maps private memory where the file was, and the store that
//! faulted is repeated there, recording nowhere. Every other SIGBUS goes where it went before.
//!
//! # Limits
//!
//! The kernel kills a thread that blocks SIGBUS before any handler runs. A program that installs a handler of its own
//! later, which does not pass signals on, is not protected.

#![allow(unsafe_code, reason = "signal handling")]

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Release};

use super::current;
use crate::sys;

/// The action that was in place before ours, leaked.
static FORMER: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// A handler that was installed with `SA_SIGINFO`.
type InfoHandler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
/// A handler that was installed without it.
type PlainHandler = extern "C" fn(c_int);

/// Installs the handler before the present one. To be called once.
pub(crate) fn install() {
    let mut before = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: only asks for the present action.
    if unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr()) } != 0 {
        return;
    }
    // SAFETY: the call above filled it.
    let before = unsafe { before.assume_init() };
    // ORDERING: release, pairs with the acquire in `pass_on`.
    FORMER.store(Box::leak(Box::new(before)), Release);
    let mut action = before;
    action.sa_sigaction = on_sigbus as extern "C" fn(_, _, _) as usize;
    // The flags of a former handler stay, except that we reset it ourselves. It may need more room than an alternate
    // stack has. Ours fits there.
    let is_handler = ![libc::SIG_DFL, libc::SIG_IGN].contains(&before.sa_sigaction);
    let stack = if is_handler { 0 } else { libc::SA_ONSTACK };
    action.sa_flags = (before.sa_flags | libc::SA_SIGINFO | stack) & !libc::SA_RESETHAND;
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

/// Returns whether the fault was in the ring, and the ring has memory there again.
fn replace_lost_memory(info: *mut libc::siginfo_t) -> bool {
    // SAFETY: the kernel passes a valid record to handlers with SA_SIGINFO.
    let info = unsafe { &*info };
    if info.si_code != libc::BUS_ADRERR {
        return false;
    }
    // SAFETY: BUS_ADRERR records have an address.
    let address = unsafe { info.si_addr() }.addr();
    let Some(ring) = current::ring() else { return false };
    let begin = ring.base().addr();
    let end = begin + ring.geometry.file_len_bytes as usize;
    if !(begin..end).contains(&address) {
        return false;
    }
    // All pages from here to the end become one mapping: a mapping for each page would use up the number that a process
    // may have. The pages before are still in the file, and recording continues there.
    let from = address & !(ring.geometry.page_len_bytes - 1);
    // ORDERING: release, pairs with the acquire in `slots::claim`: no thread claims a slot here any more.
    ring.is_damaged.store(true, Release);
    // SAFETY: it replaces a part of the ring's mapping, which only the recorder uses. All references to it are to
    // atomics, for which zeros are valid. The recorder reads nothing back that decides where it stores.
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

/// Does what would have happened without our handler.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // ORDERING: acquire, pairs with `install`.
    // SAFETY: null, or leaked by `install`.
    let Some(former) = (unsafe { FORMER.load(Acquire).as_ref() }) else { return };
    let handler = former.sa_sigaction;
    // SAFETY: the kernel passes a valid record.
    let was_sent = unsafe { (*info).si_code } <= 0;
    if handler == libc::SIG_IGN && was_sent {
        return;
    }
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN || former.sa_flags & libc::SA_RESETHAND != 0 {
        let mut default = *former;
        default.sa_sigaction = libc::SIG_DFL;
        default.sa_flags = 0;
        // SAFETY: installs the default action. A fault repeats when we return, and then ends the process as it should.
        // A program cannot ignore a fault, the kernel does not allow it.
        unsafe { libc::sigaction(signal, &raw const default, ptr::null_mut()) };
        if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
            if was_sent {
                // The signal is blocked while we are in its handler, and delivered when we return.
                // SAFETY: raises a signal in this thread.
                unsafe { libc::raise(signal) };
            }
            return;
        }
    }
    let handler = ptr::with_exposed_provenance::<()>(handler);
    if former.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: not null (SIG_DFL is) and installed with SA_SIGINFO, so it is a function of this type.
        let handler = unsafe { core::mem::transmute::<*const (), InfoHandler>(handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: not null and installed without SA_SIGINFO, so it is a function of this type.
        let handler = unsafe { core::mem::transmute::<*const (), PlainHandler>(handler) };
        handler(signal);
    }
}
