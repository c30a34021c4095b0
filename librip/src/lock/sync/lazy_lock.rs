//! [`LazyLock`]: a value that is initialised when it is first used, recorded.
//!
//! The standard library's type does not say which thread runs its initialiser, and does not take another one in its
//! place. So this is an [`OnceLock`] with an initialiser, which a panic leaves without one: it is poisoned.

use core::fmt;
use core::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

use super::OnceLock;

/// [`std::sync::LazyLock`], recorded: the ring says which thread initialises it, and which threads wait for that.
///
/// Once it is initialised, it costs what the standard library's costs.
///
/// # Examples
///
/// ```
/// use librip::sync::LazyLock;
///
/// static ROUTES: LazyLock<Vec<u32>> = LazyLock::new(|| vec![7]);
///
/// assert_eq!(ROUTES.len(), 1);
/// ```
#[repr(C)]
pub struct LazyLock<T, F = fn() -> T> {
    value: OnceLock<T>,
    /// `None` once it was begun. Locked for a moment, by the thread that initialises.
    initialiser: Mutex<Option<F>>,
}

impl<T, F: FnOnce() -> T> LazyLock<T, F> {
    /// See [`std::sync::LazyLock::new`].
    #[inline]
    pub const fn new(f: F) -> LazyLock<T, F> {
        LazyLock { value: OnceLock::new(), initialiser: Mutex::new(Some(f)) }
    }

    /// See [`std::sync::LazyLock::force`].
    ///
    /// # Panics
    ///
    /// If the initialiser does, now or earlier.
    #[inline]
    #[track_caller]
    pub fn force(this: &LazyLock<T, F>) -> &T {
        this.value.get_or_init(|| {
            let initialiser = this.initialiser.lock().unwrap_or_else(PoisonError::into_inner).take();
            initialised(initialiser)
        })
    }

    /// See [`std::sync::LazyLock::force_mut`].
    ///
    /// # Panics
    ///
    /// If the initialiser does, now or earlier.
    #[inline]
    #[track_caller]
    pub fn force_mut(this: &mut LazyLock<T, F>) -> &mut T {
        LazyLock::force(this);
        // SANITY: it was initialised in the line before, and nobody else has it.
        this.value.get_mut().expect("it is initialised")
    }
}

/// The value of an initialiser; `None` if an earlier call has taken it, and panicked.
#[track_caller]
fn initialised<T>(initialiser: Option<impl FnOnce() -> T>) -> T {
    match initialiser {
        Some(initialiser) => initialiser(),
        None => panic!("LazyLock instance has previously been poisoned"),
    }
}

impl<T, F> LazyLock<T, F> {
    /// See [`std::sync::LazyLock::get`].
    #[inline]
    pub fn get(this: &LazyLock<T, F>) -> Option<&T> {
        this.value.get()
    }

    /// See [`std::sync::LazyLock::get_mut`].
    #[inline]
    pub fn get_mut(this: &mut LazyLock<T, F>) -> Option<&mut T> {
        this.value.get_mut()
    }
}

impl<T, F: FnOnce() -> T> Deref for LazyLock<T, F> {
    type Target = T;

    #[inline]
    #[track_caller]
    fn deref(&self) -> &T {
        LazyLock::force(self)
    }
}

impl<T, F: FnOnce() -> T> DerefMut for LazyLock<T, F> {
    #[inline]
    #[track_caller]
    fn deref_mut(&mut self) -> &mut T {
        LazyLock::force_mut(self)
    }
}

impl<T: Default> Default for LazyLock<T> {
    fn default() -> LazyLock<T> {
        LazyLock::new(T::default)
    }
}

impl<T: fmt::Debug, F> fmt::Debug for LazyLock<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tuple = f.debug_tuple("LazyLock");
        match self.value.get() {
            Some(value) => tuple.field(value),
            None => tuple.field(&format_args!("<uninit>")),
        };
        tuple.finish()
    }
}
