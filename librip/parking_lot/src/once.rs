//! [`Once`]: an initialisation that one thread does. That thread holds a recorded lock meanwhile, and the others wait
//! for it.

use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::Mutex;

/// The state of a [`Once`](crate::Once).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnceState {
    /// No thread has called it yet.
    New,
    /// The closure of a thread has panicked.
    Poisoned,
    /// A thread runs its closure.
    InProgress,
    /// A closure has run.
    Done,
}

impl OnceState {
    /// Returns whether the closure of a thread has panicked.
    #[inline]
    #[must_use]
    pub const fn poisoned(self) -> bool {
        matches!(self, OnceState::Poisoned)
    }

    /// Returns whether a closure has run.
    #[inline]
    #[must_use]
    pub const fn done(self) -> bool {
        matches!(self, OnceState::Done)
    }
}

const NEW: u8 = 0;
const POISONED: u8 = 1;
const IN_PROGRESS: u8 = 2;
pub(crate) const DONE: u8 = 3;

/// Panics because a closure has panicked.
#[cold]
#[track_caller]
pub(crate) fn panic_of_poison() -> ! {
    panic!("Once instance has previously been poisoned");
}

/// An initialisation that happens once.
///
/// # Examples
///
/// ```
/// static START: parking_lot::Once = parking_lot::Once::new();
///
/// START.call_once(|| println!("starts"));
/// START.call_once(|| unreachable!());
/// ```
// The lock is the first, so that it has the address, and in `read-rip` the name, of a static.
#[repr(C)]
pub struct Once {
    pub(crate) running: Mutex<()>,
    /// [`NEW`], [`POISONED`], [`IN_PROGRESS`] or [`DONE`]. Written by the thread that has the lock.
    pub(crate) state: AtomicU8,
}

impl Once {
    /// Creates one whose closure has not run yet.
    #[inline]
    #[must_use]
    pub const fn new() -> Once {
        Once { running: Mutex::new(()), state: AtomicU8::new(NEW) }
    }

    /// Returns its present state.
    #[inline]
    pub fn state(&self) -> OnceState {
        // ORDERING: acquire: who sees that it is done sees what the closure did. Pairs with the release in `run`.
        match self.state.load(Acquire) {
            DONE => OnceState::Done,
            IN_PROGRESS => OnceState::InProgress,
            POISONED => OnceState::Poisoned,
            _ => OnceState::New,
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
        // ORDERING: acquire, as in `state`.
        if self.state.load(Acquire) != DONE {
            self.run(false, |_| f());
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
        // ORDERING: acquire, as in `state`.
        if self.state.load(Acquire) != DONE {
            self.run(true, f);
        }
    }

    #[cold]
    #[track_caller]
    fn run(&self, is_forced: bool, f: impl FnOnce(OnceState)) {
        let guard = self.running.lock();
        // ORDERING: relaxed: only the thread that has the lock writes it.
        let before = match self.state.load(Relaxed) {
            DONE => return,
            POISONED => OnceState::Poisoned,
            _ => OnceState::New,
        };
        if before.poisoned() && !is_forced {
            drop(guard);
            panic_of_poison();
        }
        // ORDERING: relaxed: it says nothing of what the closure does.
        self.state.store(IN_PROGRESS, Relaxed);
        let mut finish = Finish { once: self, state: POISONED };
        f(before);
        finish.state = DONE;
        drop(finish);
        drop(guard);
    }
}

// Its lock protects nothing, and its state records that a closure has panicked.
impl UnwindSafe for Once {}
impl RefUnwindSafe for Once {}

/// Stores the new state, also if the closure panics.
struct Finish<'a> {
    once: &'a Once,
    state: u8,
}

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        // ORDERING: release: pairs with the acquisitions of those who see that it is done.
        self.once.state.store(self.state, Release);
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
        f.debug_struct("Once").field("state", &self.state()).finish()
    }
}
