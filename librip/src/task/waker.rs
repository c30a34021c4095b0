//! The waker that a task's futures get: it counts the wake, and passes it on to the executor.
//!
//! It is the same waker in all polls, so `Waker::will_wake` says so. A lock keeps the executor's waker, because an
//! executor may give another one with each poll, while any thread wakes.

use core::mem;
use core::task::Waker;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake;

use crate::process::instance;
use crate::process::task_slot::TaskSlot;

/// The wakers of a task.
pub(super) struct Wakers {
    /// What the task's futures get. It shares `counting`.
    of_futures: Waker,
    counting: Arc<Counting>,
    /// A copy of the executor's waker, to see that it is another one without a lock.
    last: Waker,
}

impl Wakers {
    pub(super) fn new(slot: TaskSlot) -> Wakers {
        let last = Waker::noop().clone();
        let state = State { executors: last.clone(), slot };
        let counting = Arc::new(Counting(Mutex::new(state)));
        Wakers { of_futures: Waker::from(Arc::clone(&counting)), counting, last }
    }

    /// The waker for the task's futures, if the executor gives this one.
    #[inline]
    pub(super) fn of(&mut self, executors: &Waker) -> &Waker {
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

    /// The task is no more: from now on its slot is not written to.
    pub(super) fn end(self) {
        self.counting.with(|state| state.slot = TaskSlot::NONE);
    }
}

struct State {
    executors: Waker,
    slot: TaskSlot,
}

struct Counting(Mutex<State>);

impl Counting {
    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        // The lock is held for a few instructions and calls of the executor's `clone`. If that panics, nothing is half
        // done.
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
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

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.count().wake();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.count().wake();
    }
}
