//! [`Coroutine`]: a coroutine with a stack of its own, which a scheduler in C or C++ switches to and from.
//!
//! A future is polled by a call, so its turns nest. A scheduler switches from one coroutine to any other. So a thread
//! is in one coroutine at a time, and a switch ends the turn of that one before the next turn begins.
//!
//! It does not switch stacks and knows no scheduler: `librip.h` says when a program calls this.
//!
//! # Invariants
//!
//! * [`CURRENT`] of a thread is null, or a coroutine that this thread has entered and not left. It exists: whoever
//!   destroys it leaves it first, and no other thread can destroy it.
//! * One thread at a time has entered a coroutine: the one that has changed [`Coroutine::is_entered`] to `true`. Only
//!   that thread reads and writes [`Coroutine::turn`], and only it has a turn of the coroutine's slot.

use core::cell::Cell;
use core::ptr::{self, NonNull};
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::alloc::{Layout, alloc, dealloc};

use super::polling::{begin_turn, end_turn};
use crate::lock::place::{self, Place};
use crate::process::instance;
use crate::process::task_slot::{TaskSlot, Turn};
use librip_format::{TASK_COROUTINE, WAKERS_UNKNOWN, task_origin};

/// What a `rip_context` is.
#[derive(Debug)]
pub struct Coroutine {
    slot: TaskSlot,
    /// A thread is in it.
    is_entered: AtomicBool,
    turn: Cell<Turn>,
}

thread_local! {
    /// The coroutine that the calling thread is in, or null.
    static CURRENT: Cell<*const Coroutine> = const { Cell::new(ptr::null()) };
}

/// Makes a coroutine. Its place is a site of the kind TASK. Returns `None` if there is no ring, no slot for it, or no
/// memory.
pub fn create(name: &[u8], origin: Place<'_>) -> Option<NonNull<Coroutine>> {
    instance::owner()?;
    let slot = instance::claim_task(origin.pc, task_origin(TASK_COROUTINE, 0, 0), name);
    if !slot.exists() {
        return None;
    }
    place::enter(origin);
    let coroutine = Coroutine { slot, is_entered: AtomicBool::new(false), turn: Cell::new(Turn::NONE) };
    // Not a `Box`: that ends the process if there is no memory.
    // SAFETY: the type has a size.
    let memory = NonNull::new(unsafe { alloc(Layout::new::<Coroutine>()) }.cast::<Coroutine>());
    match memory {
        // SAFETY: it was allocated for this type, and is not used yet.
        Some(memory) => unsafe { memory.write(coroutine) },
        None => instance::end_task(&slot),
    }
    memory
}

/// The calling thread is about to go on in a coroutine, or, with null, on its own stack. If another thread is in the
/// coroutine, the calling thread records for itself instead.
///
/// # Safety
///
/// `next` is null, or a coroutine that was made by [`create`] and was not destroyed.
#[inline]
pub unsafe fn switch(next: *const Coroutine) {
    CURRENT.with(|current| {
        // SAFETY: null, or it exists, by the invariant.
        if let Some(former) = unsafe { current.replace(ptr::null()).as_ref() } {
            former.leave();
        }
        // SAFETY: the caller's promise.
        if let Some(coroutine) = unsafe { next.as_ref() }
            && coroutine.enter()
        {
            current.set(next);
        }
    });
}

/// The coroutine that the calling thread is in, or null.
#[inline]
pub fn current() -> *const Coroutine {
    CURRENT.get()
}

/// Ends a coroutine. If the calling thread is in it, the thread records for itself from now on. If another thread is in
/// it, nothing happens. Null is no coroutine.
///
/// # Safety
///
/// As [`switch`]. No other thread uses the coroutine from now on.
pub unsafe fn destroy(coroutine: *mut Coroutine) {
    // SAFETY: the caller's promise.
    let Some(existing) = (unsafe { coroutine.as_ref() }) else { return };
    if ptr::eq(CURRENT.get(), coroutine) {
        // SAFETY: null is allowed.
        unsafe { switch(ptr::null()) };
    }
    if existing.claim() {
        instance::end_task(&existing.slot);
        // SAFETY: `create` has allocated it, with this layout. No thread is in it, so none uses it. It has nothing to
        // drop.
        unsafe { dealloc(coroutine.cast(), Layout::new::<Coroutine>()) };
    }
}

impl Coroutine {
    /// Whether no thread was in it. Then the calling thread is.
    #[inline]
    fn claim(&self) -> bool {
        // ORDERING: acquire, pairs with the release in `leave`: what the last thread has stored in the slot comes
        // before what this thread stores. Relaxed if it fails: nothing is accessed then.
        self.is_entered.compare_exchange(false, true, Acquire, Relaxed).is_ok()
    }

    #[inline]
    fn enter(&self) -> bool {
        let is_free = self.claim();
        if is_free {
            // SAFETY: a coroutine has a slot.
            self.turn.set(unsafe { begin_turn(&self.slot) });
        }
        is_free
    }

    #[inline]
    fn leave(&self) {
        let turn = self.turn.replace(Turn::NONE);
        // SAFETY: a coroutine has a slot.
        unsafe { end_turn(&self.slot, turn, WAKERS_UNKNOWN) };
        // ORDERING: release, pairs with the acquire in `claim`.
        self.is_entered.store(false, Release);
    }
}

const _: () = assert!(!core::mem::needs_drop::<Coroutine>());
