//! [`Once`] with what 0.13 has and 0.12 has not: a thread can wait until another one has done the initialisation.

use core::fmt;
use core::sync::atomic::AtomicU8;

use crate::once_of_0_12::{self, DONE, panic_of_poison};
use crate::{Condvar, Mutex, OnceState};

impl OnceState {
    /// Returns whether the closure of a thread has panicked.
    #[inline]
    #[must_use]
    pub const fn is_poisoned(self) -> bool {
        self.poisoned()
    }

    /// Returns whether a closure has run.
    #[inline]
    #[must_use]
    pub const fn is_completed(self) -> bool {
        self.done()
    }
}

/// An initialisation that happens once.
///
/// # Examples
///
/// ```
/// static START: parking_lot::Once = parking_lot::Once::new();
///
/// std::thread::scope(|scope| {
///     scope.spawn(|| START.wait());
///     START.call_once(|| println!("starts"));
/// });
/// assert!(START.is_completed());
/// ```
// The lock in `once` is the first, so that it has the address, and in `read-rip` the name, of a static.
#[repr(C)]
pub struct Once {
    once: once_of_0_12::Once,
    /// Notified when a closure has ended.
    ended: Condvar,
}

impl Once {
    /// Creates one whose closure has not run yet.
    #[inline]
    #[must_use]
    pub const fn new() -> Once {
        Once { once: once_of_0_12::Once::new(), ended: Condvar::new() }
    }

    /// Creates one that is done: it runs no closure.
    #[inline]
    #[must_use]
    pub const fn new_completed() -> Once {
        let once = once_of_0_12::Once { running: Mutex::new(()), state: AtomicU8::new(DONE) };
        Once { once, ended: Condvar::new() }
    }

    /// Returns its present state.
    #[inline]
    pub fn state(&self) -> OnceState {
        self.once.state()
    }

    /// Returns whether a closure has run.
    #[inline]
    pub fn is_completed(&self) -> bool {
        self.state().done()
    }

    /// Waits until a closure has run.
    ///
    /// # Panics
    ///
    /// If a closure has panicked. A thread that calls this within its own closure waits for itself forever.
    /// `read-rip check` reports it.
    #[inline]
    #[track_caller]
    pub fn wait(&self) {
        if !self.is_completed() {
            self.wait_for_end(false);
        }
    }

    /// Like [`wait`](Once::wait), and goes on waiting if a closure has panicked.
    #[inline]
    #[track_caller]
    pub fn wait_force(&self) {
        if !self.is_completed() {
            self.wait_for_end(true);
        }
    }

    /// Runs the closure if no closure has run yet, and waits if another thread runs one.
    ///
    /// # Panics
    ///
    /// If a closure has panicked, or if this one panics. A thread that calls this within its own closure waits for
    /// itself forever. `read-rip check` reports it.
    #[inline]
    #[track_caller]
    pub fn call_once<F: FnOnce()>(&self, f: F) {
        if !self.is_completed() {
            let _end = End(&self.ended);
            self.once.call_once(f);
        }
    }

    /// Like [`call_once`](Once::call_once), also if a closure has panicked.
    ///
    /// # Panics
    ///
    /// If the closure panics.
    #[inline]
    #[track_caller]
    pub fn call_once_force<F: FnOnce(OnceState)>(&self, f: F) {
        if !self.is_completed() {
            let _end = End(&self.ended);
            self.once.call_once_force(f);
        }
    }

    /// While a closure runs, this waits for the thread that runs it, and else for a condition.
    #[cold]
    #[track_caller]
    fn wait_for_end(&self, is_forced: bool) {
        let mut running = self.once.running.lock();
        loop {
            match self.state() {
                OnceState::Done => return,
                OnceState::Poisoned if !is_forced => {
                    drop(running);
                    panic_of_poison();
                }
                _ => self.ended.wait(&mut running),
            }
        }
    }
}

/// Wakes the threads that wait for the end of a closure, also if it panics.
///
/// Such a thread has looked at the state while it had the lock, and so has whoever runs a closure. So either it has
/// seen the new state, or it is here.
struct End<'a>(&'a Condvar);

impl Drop for End<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.notify_all();
    }
}

impl Default for Once {
    #[inline]
    fn default() -> Once {
        Once::new()
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.once.fmt(f)
    }
}
