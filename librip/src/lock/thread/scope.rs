//! [`scope`]: threads that end before the function returns. Where it waits for them, the ring says for which.
//!
//! # Method
//!
//! The standard library's scope waits for a number of threads, and knows none of them. So before it waits, all threads
//! that have not left their functions are waited for here, one after the other. Nothing else changes: the standard
//! library then finds them ended, or about to end.
//!
//! # Invariants
//!
//! * A thread is in the list before the thread that started it leaves its function, or its function in `scope`. So when
//!   the list is empty, no thread of the scope can start another one.
//! * What the program's threads refer to as the scope lives until the standard library's scope has ended. Results that
//!   nobody has taken are dropped before that, and may refer to it too.

#![allow(unsafe_code, reason = "the scope that the program sees lives longer than the compiler can know")]

use core::cell::OnceCell;
use core::fmt;
use core::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::handle::wait_for_end;
use super::life::Life;
use super::{Builder, ScopedJoinHandle};

/// [`std::thread::Scope`], for threads whose ends are waited for in the record.
pub struct Scope<'scope, 'env: 'scope> {
    pub(super) inner: &'scope thread::Scope<'scope, 'env>,
    pub(super) threads: Arc<Threads>,
}

impl<'scope> Scope<'scope, '_> {
    /// See [`std::thread::Scope::spawn`].
    ///
    /// # Panics
    ///
    /// If the system cannot start a thread. [`Builder::spawn_scoped`] returns an error instead.
    #[track_caller]
    pub fn spawn<F, T>(&'scope self, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        Builder::new().spawn_scoped(self, f).expect("failed to spawn thread")
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// The threads of a scope that may be running.
#[derive(Debug, Default)]
pub(super) struct Threads {
    all: Mutex<Vec<Arc<Life>>>,
}

impl Threads {
    /// Adds a thread that has been started.
    pub(super) fn add(&self, life: &Arc<Life>) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        // A scope may live for long, and start many threads.
        if all.len() == all.capacity() {
            all.retain(|life| !life.has_ended());
        }
        all.push(Arc::clone(life));
    }

    fn take(&self) -> Option<Arc<Life>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Waits until all threads have left their functions.
    fn wait_for_ends(&self, location: &'static Location<'static>) {
        while let Some(life) = self.take() {
            if !life.has_ended() {
                wait_for_end(location, &life, || life.wait_for_end());
            }
            life.joined();
        }
    }
}

/// Waits for the threads of a scope when it is dropped: also if the program's function panics.
struct End {
    threads: Arc<Threads>,
    location: &'static Location<'static>,
}

impl Drop for End {
    fn drop(&mut self) {
        self.threads.wait_for_ends(self.location);
    }
}

/// See [`std::thread::scope`]. Where the scope ends, the ring says for which of its threads the caller waits.
///
/// # Panics
///
/// If a thread of the scope panicked, and nobody has joined it.
///
/// # Examples
///
/// ```
/// let mut numbers = vec![1, 2, 3];
/// librip::thread::scope(|scope| {
///     scope.spawn(|| numbers.push(4));
/// });
/// assert_eq!(numbers.len(), 4);
/// ```
#[track_caller]
pub fn scope<'env, F, T>(f: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let location = Location::caller();
    // Here, because it lives until the standard library's scope has ended.
    let place = OnceCell::new();
    thread::scope(|inner| {
        let threads = Arc::<Threads>::default();
        let _end = End { threads: Arc::clone(&threads), location };
        // SAFETY: `place` is used for nothing else, and lives until all threads and their results are gone.
        f(unsafe { put(&place, inner, threads) })
    })
}

/// Makes the scope that the program sees.
///
/// # Safety
///
/// The caller drops and moves `place` only when the standard library's scope `inner` has ended, and takes nothing from
/// it.
unsafe fn put<'scope, 'env>(
    place: &OnceCell<Scope<'static, 'static>>,
    inner: &'scope thread::Scope<'scope, 'env>,
    threads: Arc<Threads>,
) -> &'scope Scope<'scope, 'env> {
    // SAFETY: the lifetimes have no part in how a reference is stored, and those of the result are the true ones.
    let inner: &'static thread::Scope<'static, 'static> = unsafe { core::mem::transmute(inner) };
    let scope: *const Scope<'static, 'static> = place.get_or_init(|| Scope { inner, threads });
    // SAFETY: it stays until the scope has ended, by the caller's promise, and nobody changes it.
    unsafe { &*scope.cast::<Scope<'scope, 'env>>() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_have_ended_leave_the_list() {
        let threads = Threads::default();
        let running = Arc::new(Life::default());
        threads.add(&running);
        for _ in 0..1000 {
            let life = Arc::new(Life::default());
            threads.add(&life);
            drop(Life::starts(&life).begin());
        }
        let all = threads.all.lock().unwrap();
        assert!(all.len() < 16 && all.iter().any(|life| Arc::ptr_eq(life, &running)), "{}", all.len());
    }
}
