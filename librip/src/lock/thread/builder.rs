//! [`Builder`]: how a thread is started.

#![allow(unsafe_code, reason = "passes on the contract of `spawn_unchecked`")]

use std::io;
use std::sync::Arc;
use std::thread;

use super::life::Life;
use super::{JoinHandle, Scope, ScopedJoinHandle, living};

/// [`std::thread::Builder`], for threads whose joins are recorded.
///
/// # Examples
///
/// ```
/// let saver = librip::thread::Builder::new().name("saver".to_owned()).spawn(|| 7).unwrap();
/// assert_eq!(saver.thread().name(), Some("saver"));
/// assert_eq!(saver.join().unwrap(), 7);
/// ```
#[must_use = "must eventually spawn the thread"]
#[derive(Debug)]
pub struct Builder {
    inner: thread::Builder,
}

impl Builder {
    /// See [`std::thread::Builder::new`].
    #[expect(clippy::new_without_default, reason = "the standard library's has no default either")]
    pub fn new() -> Builder {
        Builder { inner: thread::Builder::new() }
    }

    /// See [`std::thread::Builder::name`].
    pub fn name(self, name: String) -> Builder {
        Builder { inner: self.inner.name(name) }
    }

    /// See [`std::thread::Builder::stack_size`].
    pub fn stack_size(self, size: usize) -> Builder {
        Builder { inner: self.inner.stack_size(size) }
    }

    /// See [`std::thread::Builder::spawn`].
    ///
    /// # Errors
    ///
    /// If the system cannot start a thread.
    pub fn spawn<F, T>(self, f: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let life = Arc::new(Life::default());
        let inner = self.inner.spawn(living(&life, f))?;
        Ok(JoinHandle { inner, life })
    }

    /// See [`std::thread::Builder::spawn_unchecked`].
    ///
    /// # Errors
    ///
    /// If the system cannot start a thread.
    ///
    /// # Safety
    ///
    /// The caller ensures that the thread does not outlive what it uses, as for
    /// [`std::thread::Builder::spawn_unchecked`].
    pub unsafe fn spawn_unchecked<F, T>(self, f: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        let life = Arc::new(Life::default());
        // SAFETY: the caller's promise. What is added to `f` lives as long as the thread wants.
        let inner = unsafe { self.inner.spawn_unchecked(living(&life, f)) }?;
        Ok(JoinHandle { inner, life })
    }

    /// See [`std::thread::Builder::spawn_scoped`].
    ///
    /// # Errors
    ///
    /// If the system cannot start a thread.
    pub fn spawn_scoped<'scope, F, T>(
        self,
        scope: &'scope Scope<'scope, '_>,
        f: F,
    ) -> io::Result<ScopedJoinHandle<'scope, T>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let life = Arc::new(Life::default());
        let inner = self.inner.spawn_scoped(scope.inner, living(&life, f))?;
        scope.threads.add(&life);
        Ok(ScopedJoinHandle { inner, life })
    }
}
