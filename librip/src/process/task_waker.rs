//! The waker that a task's futures get: it counts the wake, and passes it on to the executor.
//!
//! It is the same waker in all polls, so `Waker::will_wake` says so. A lock keeps the executor's waker, because an
//! executor may give another one with each poll, while any thread wakes.
//!
//! # Who can wake a task
//!
//! Whoever may wake the task has a clone of its waker. So the number of clones after a poll says how many there are
//! ([`Wakers::clones`]). If each of them is kept by a lock for which the task waits, nothing else can wake the task: no
//! time limit, no message, no other branch of a `select!`. Then its wait is as certain as that of a thread. A future
//! may be polled with another waker, which some combinator has made of the task's. So a wait for a lock says whether it
//! was polled with the task's own waker ([`is_of_task`]).

#![allow(unsafe_code, reason = "a waker is a pointer with a table of functions")]

use core::mem::{self, ManuallyDrop};
use core::task::{RawWaker, RawWakerVTable, Waker};
use std::sync::{Arc, Mutex, PoisonError};

use super::instance;
use super::task_slot::TaskSlot;
use librip_format::WAKERS_UNKNOWN;

/// The wakers of a task.
pub(crate) struct Wakers {
    /// What the task's futures get. It shares `counting`.
    of_futures: Waker,
    counting: Arc<Counting>,
    /// A copy of the executor's waker, to see that it is another one without a lock.
    last: Waker,
}

/// The references to [`Counting`] in a [`Wakers`].
const OWN_REFERENCES: usize = 2;

impl Wakers {
    pub(crate) fn new(slot: TaskSlot) -> Wakers {
        let last = Waker::noop().clone();
        let state = Mutex::new(State { executors: last.clone(), slot });
        let counting = Arc::new(Counting { words: slot.address(), state });
        Wakers { of_futures: waker(Arc::clone(&counting)), counting, last }
    }

    /// The waker for the task's futures, if the executor gives this one.
    #[inline]
    pub(crate) fn of(&mut self, executors: &Waker) -> &Waker {
        if !self.last.will_wake(executors) {
            self.replace(executors);
        }
        &self.of_futures
    }

    #[cold]
    fn replace(&mut self, executors: &Waker) {
        self.last.clone_from(executors);
        let former = self.counting.with(|state| mem::replace(&mut state.executors, executors.clone()));
        // Not under the lock: it may be the end of another task.
        drop(former);
    }

    /// How many clones of the waker there are: those who may wake the task.
    #[inline(always)]
    pub(crate) fn clones(&self) -> u32 {
        let clones = Arc::strong_count(&self.counting).wrapping_sub(OWN_REFERENCES);
        clones.min(WAKERS_UNKNOWN as usize) as u32
    }

    /// The task is no more: from now on its slot is not written to.
    pub(crate) fn end(self) {
        self.counting.with(|state| state.slot = TaskSlot::NONE);
    }
}

struct State {
    executors: Waker,
    slot: TaskSlot,
}

struct Counting {
    /// Where the words of the task's slot are.
    words: usize,
    state: Mutex<State>,
}

impl Counting {
    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        // The lock is held for a few instructions and calls of the executor's `clone`. If that panics, nothing is half
        // done.
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts a wake, and returns the executor's waker.
    fn count(&self) -> Waker {
        self.with(|state| {
            if let (true, Some(owner)) = (state.slot.exists(), instance::owner()) {
                (owner.tasks.woken)(&state.slot);
            }
            state.executors.clone()
        })
    }
}

/// Whether a waker is that of the task whose slot has its words at this address.
pub(crate) fn is_of_task(waker: &Waker, words: *mut u64) -> bool {
    if !core::ptr::eq(waker.vtable(), &raw const VTABLE) {
        return false;
    }
    // SAFETY: a waker with this table has a pointer from `Arc::into_raw`, of which it owns a reference.
    let counting = unsafe { &*waker.data().cast::<Counting>() };
    counting.words == words.addr()
}

fn waker(counting: Arc<Counting>) -> Waker {
    // SAFETY: the functions of the table take such a pointer, and keep the count of references. What they do is safe in
    // any thread.
    unsafe { Waker::from_raw(raw(counting)) }
}

fn raw(counting: Arc<Counting>) -> RawWaker {
    RawWaker::new(Arc::into_raw(counting).cast(), &VTABLE)
}

/// A static and not a constant, so that its address tells these wakers from others.
static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

/// The pointer of a waker as what it is.
///
/// # Safety
///
/// The waker owns a reference, and the pointer is from `Arc::into_raw`.
unsafe fn of_pointer(pointer: *const ()) -> Arc<Counting> {
    // SAFETY: the caller's promise.
    unsafe { Arc::from_raw(pointer.cast()) }
}

unsafe fn clone(pointer: *const ()) -> RawWaker {
    // SAFETY: the waker lives, and so does its reference, which stays its own.
    let counting = ManuallyDrop::new(unsafe { of_pointer(pointer) });
    raw(Arc::clone(&counting))
}

unsafe fn wake(pointer: *const ()) {
    // The reference ends here, before the executor learns of the wake: it may poll the task at once, and after that poll this
    // waker must not count as one that can wake the task.
    // SAFETY: the waker gives its reference up.
    let executors = unsafe { of_pointer(pointer) }.count();
    executors.wake();
}

unsafe fn wake_by_ref(pointer: *const ()) {
    // SAFETY: the waker lives, and so does its reference, which stays its own.
    ManuallyDrop::new(unsafe { of_pointer(pointer) }).count().wake();
}

unsafe fn drop_waker(pointer: *const ()) {
    // SAFETY: the waker gives its reference up.
    drop(unsafe { of_pointer(pointer) });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::task::Wake;

    use super::*;

    /// An executor that counts the references to the task's wakers when it is woken.
    struct Executor {
        counting: Arc<Counting>,
        references: AtomicUsize,
    }

    impl Wake for Executor {
        fn wake(self: Arc<Self>) {
            self.references.store(Arc::strong_count(&self.counting), SeqCst);
        }
    }

    #[test]
    fn a_waker_that_wakes_is_none_any_more_when_the_executor_polls_the_task() {
        let mut wakers = Wakers::new(TaskSlot::NONE);
        let counting = Arc::clone(&wakers.counting);
        let executor = Arc::new(Executor { counting, references: AtomicUsize::new(0) });
        let own = OWN_REFERENCES + 1;
        let of_executor = Waker::from(Arc::clone(&executor));
        let [first, second] = [0; 2].map(|_| wakers.of(&of_executor).clone());
        first.wake();
        assert_eq!(executor.references.load(SeqCst), own + 1, "the second one");
        second.wake_by_ref();
        assert_eq!(executor.references.load(SeqCst), own + 1, "it stays");
        second.wake();
        assert_eq!(executor.references.load(SeqCst), own);
    }
}
