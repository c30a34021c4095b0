//! [`JoinSet`]: tokio's, with recorded tasks.

use std::future::Future;
use std::panic::Location;
use std::task::{Context, Poll};

use librip::task::lock::{self, NOTIFICATION};
use tokio::runtime::Handle;
use tokio::task::{self, AbortHandle, Id, JoinError, LocalSet};

use crate::Task;
use crate::forward::{debug_as_inner, forward};
use crate::watch::spawns_recorded;

/// [`tokio::task::JoinSet`], recorded: its tasks are in the ring, and so are the waits for one of them.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let mut set = librip_tokio::task::JoinSet::new();
/// for number in 0..3 {
///     set.spawn(async move { number });
/// }
/// let mut sum = 0;
/// while let Some(number) = set.join_next().await {
///     sum += number.unwrap();
/// }
/// assert_eq!(sum, 3);
/// # }
/// ```
pub struct JoinSet<T> {
    inner: task::JoinSet<T>,
}

impl<T> JoinSet<T> {
    /// See [`tokio::task::JoinSet::new`].
    pub fn new() -> JoinSet<T> {
        JoinSet { inner: task::JoinSet::new() }
    }

    forward! {
        tokio::task::JoinSet;
        fn len(&self) -> usize;
        fn is_empty(&self) -> bool;
    }
}

impl<T: 'static> JoinSet<T> {
    /// See [`tokio::task::JoinSet::spawn`].
    ///
    /// # Panics
    ///
    /// If the calling thread has not entered a runtime.
    #[track_caller]
    pub fn spawn<F>(&mut self, task: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        let task = Task::new().spawned(task);
        let _recorded = spawns_recorded();
        self.inner.spawn(task)
    }

    /// See [`tokio::task::JoinSet::spawn_on`].
    #[track_caller]
    pub fn spawn_on<F>(&mut self, task: F, handle: &Handle) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        let task = Task::new().spawned_on(task, handle);
        let _recorded = spawns_recorded();
        self.inner.spawn_on(task, handle)
    }

    /// See [`tokio::task::JoinSet::spawn_local`].
    ///
    /// # Panics
    ///
    /// Outside of a [`LocalSet`] and of a local runtime.
    #[track_caller]
    pub fn spawn_local<F>(&mut self, task: F) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        let task = Task::new().local(task);
        let _recorded = spawns_recorded();
        self.inner.spawn_local(task)
    }

    /// See [`tokio::task::JoinSet::spawn_local_on`].
    #[track_caller]
    pub fn spawn_local_on<F>(&mut self, task: F, local_set: &LocalSet) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        let task = Task::new().local(task);
        let _recorded = spawns_recorded();
        self.inner.spawn_local_on(task, local_set)
    }

    /// See [`tokio::task::JoinSet::spawn_blocking`].
    ///
    /// # Panics
    ///
    /// If the calling thread has not entered a runtime.
    #[track_caller]
    pub fn spawn_blocking<F>(&mut self, f: F) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        let call = Task::new().blocking(f);
        self.inner.spawn_blocking(|| call.run())
    }

    /// See [`tokio::task::JoinSet::spawn_blocking_on`].
    #[track_caller]
    pub fn spawn_blocking_on<F>(&mut self, f: F, handle: &Handle) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        let call = Task::new().blocking_on(f, handle);
        self.inner.spawn_blocking_on(|| call.run(), handle)
    }

    /// See [`tokio::task::JoinSet::join_next`].
    #[track_caller]
    pub fn join_next(&mut self) -> impl Future<Output = Option<Result<T, JoinError>>> {
        let object = self.object();
        lock::wait::<NOTIFICATION, _>(object, self.inner.join_next(), false, Option::is_some)
    }

    /// See [`tokio::task::JoinSet::join_next_with_id`].
    #[track_caller]
    pub fn join_next_with_id(&mut self) -> impl Future<Output = Option<Result<(Id, T), JoinError>>> {
        let object = self.object();
        lock::wait::<NOTIFICATION, _>(object, self.inner.join_next_with_id(), false, Option::is_some)
    }

    forward! {
        tokio::task::JoinSet;
        fn try_join_next(&mut self) -> Option<Result<T, JoinError>>;
        fn try_join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>>;
        fn abort_all(&mut self);
        fn detach_all(&mut self);
    }

    /// See [`tokio::task::JoinSet::shutdown`].
    #[track_caller]
    pub fn shutdown(&mut self) -> impl Future<Output = ()> {
        let object = self.object();
        lock::wait::<NOTIFICATION, _>(object, self.inner.shutdown(), false, |_| true)
    }

    /// See [`tokio::task::JoinSet::join_all`].
    ///
    /// # Panics
    ///
    /// If a task has panicked or was aborted.
    #[track_caller]
    pub fn join_all(self) -> impl Future<Output = Vec<T>> {
        let at = Location::caller();
        async move {
            let object = self.object();
            lock::wait_at::<NOTIFICATION, _>(at, object, self.inner.join_all(), false, |_| true).await
        }
    }

    /// See [`tokio::task::JoinSet::poll_join_next`]. It records nothing.
    pub fn poll_join_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        self.inner.poll_join_next(cx)
    }

    /// See [`tokio::task::JoinSet::poll_join_next_with_id`]. It records nothing.
    pub fn poll_join_next_with_id(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<(Id, T), JoinError>>> {
        self.inner.poll_join_next_with_id(cx)
    }

    /// What stands for the end of one of the tasks. The set is borrowed during a wait, so it stays where it is.
    fn object(&self) -> u64 {
        lock::address(self)
    }
}

impl<T> Default for JoinSet<T> {
    fn default() -> JoinSet<T> {
        JoinSet::new()
    }
}

debug_as_inner!(JoinSet<T>);

impl<T, F> FromIterator<F> for JoinSet<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    #[track_caller]
    fn from_iter<I: IntoIterator<Item = F>>(iter: I) -> JoinSet<T> {
        let mut set = JoinSet::new();
        set.extend(iter);
        set
    }
}

impl<T, F> Extend<F> for JoinSet<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    #[track_caller]
    fn extend<I: IntoIterator<Item = F>>(&mut self, iter: I) {
        for task in iter {
            self.spawn(task);
        }
    }
}
