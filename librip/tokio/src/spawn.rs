//! [`Task`], which spawns recorded tasks, and [`JoinHandle`].

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use librip::task::lock::{self, TASK, Waits};
use librip::task::{Blocking, Traced};
use tokio::runtime::Handle;
use tokio::task::{self, AbortHandle, Id, JoinError, LocalSet};

use crate::runtime::{Executor, Facts};
use crate::watch::spawns_recorded;

/// Says more about a task than [`spawn`] does.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let ticker = librip_tokio::Task::new().name("ticker").spawn(async { 7 });
/// assert_eq!(ticker.await.unwrap(), 7);
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct Task<'a> {
    name: &'a str,
    /// The name says of which kind the task is.
    is_of_kind: bool,
}

impl<'a> Task<'a> {
    /// A task of which nothing is said.
    pub fn new() -> Task<'a> {
        Task::default()
    }

    /// A name, of which 40 bytes are kept.
    pub fn name(self, name: &'a str) -> Task<'a> {
        Task { name, is_of_kind: false }
    }

    /// A name that says of which kind the task is: polls are counted for each of these names. See
    /// [`librip::task::Builder::kind_name`].
    pub fn kind_name(self, name: &'a str) -> Task<'a> {
        Task { name, is_of_kind: true }
    }

    /// See [`tokio::spawn`].
    ///
    /// # Panics
    ///
    /// If the calling thread has not entered a runtime.
    #[track_caller]
    pub fn spawn<F>(self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let future = self.spawned(future);
        let number = future.id();
        let _recorded = spawns_recorded();
        JoinHandle::new(task::spawn(future), number)
    }

    /// See [`Handle::spawn`].
    #[track_caller]
    pub fn spawn_on<F>(self, future: F, handle: &Handle) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let future = self.spawned_on(future, handle);
        let number = future.id();
        let _recorded = spawns_recorded();
        JoinHandle::new(handle.spawn(future), number)
    }

    /// See [`tokio::task::spawn_local`].
    ///
    /// # Panics
    ///
    /// Outside of a [`LocalSet`] and of a local runtime.
    #[track_caller]
    pub fn spawn_local<F>(self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: 'static> + 'static,
    {
        let future = self.local(future);
        let number = future.id();
        let _recorded = spawns_recorded();
        JoinHandle::new(task::spawn_local(future), number)
    }

    /// See [`LocalSet::spawn_local`].
    #[track_caller]
    pub fn spawn_local_on<F>(self, future: F, set: &LocalSet) -> JoinHandle<F::Output>
    where
        F: Future<Output: 'static> + 'static,
    {
        let future = self.local(future);
        let number = future.id();
        let _recorded = spawns_recorded();
        JoinHandle::new(set.spawn_local(future), number)
    }

    /// See [`tokio::task::spawn_blocking`].
    ///
    /// # Panics
    ///
    /// If the calling thread has not entered a runtime.
    #[track_caller]
    pub fn spawn_blocking<F, R>(self, call: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let call = self.blocking(call);
        let number = call.id();
        JoinHandle::new(task::spawn_blocking(|| call.run()), number)
    }

    /// See [`Handle::spawn_blocking`].
    #[track_caller]
    pub fn spawn_blocking_on<F, R>(self, call: F, handle: &Handle) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let call = self.blocking_on(call, handle);
        let number = call.id();
        JoinHandle::new(handle.spawn_blocking(|| call.run()), number)
    }

    /// Runs a future on the calling thread until it is ready: see [`block_on`].
    ///
    /// # Panics
    ///
    /// As [`tokio::runtime::Runtime::block_on`] and [`Handle::block_on`].
    #[track_caller]
    pub fn block_on<F: Future>(self, executor: &impl Executor, future: F) -> F::Output {
        let facts = Facts::of_blocked_on(executor);
        executor.run(self.of(Some(facts)).local().traced(future))
    }

    /// Makes a task of a future, for those who spawn it by other means, or do not spawn it: see [`traced`].
    #[track_caller]
    pub fn traced<F: Future>(self, future: F) -> Traced<F> {
        self.of(Facts::current(Facts::of_local)).traced(future)
    }

    /// Like [`traced`](Task::traced): the place of the task is `at`.
    #[cfg(feature = "tower")]
    pub(crate) fn traced_at<F: Future>(self, at: &'static Location<'static>, future: F) -> Traced<F> {
        self.of(Facts::current(Facts::of_local)).traced_at(at, future)
    }

    /// A task that is spawned onto the runtime that the calling thread has entered.
    #[track_caller]
    pub(crate) fn spawned<F: Future>(self, future: F) -> Traced<F> {
        self.of(Facts::current(Facts::of_spawned)).traced(future)
    }

    /// Like [`spawned`](Task::spawned): the place of the task is `at`.
    #[cfg(feature = "hyper")]
    pub(crate) fn spawned_at<F: Future>(self, at: &'static Location<'static>, future: F) -> Traced<F> {
        self.of(Facts::current(Facts::of_spawned)).traced_at(at, future)
    }

    #[track_caller]
    pub(crate) fn spawned_on<F: Future>(self, future: F, handle: &Handle) -> Traced<F> {
        self.of(Some(Facts::of_spawned(handle))).traced(future)
    }

    /// A call on the pool of the runtime that the calling thread has entered.
    #[track_caller]
    pub(crate) fn blocking<F>(self, call: F) -> Blocking<F> {
        self.of(Facts::current(Facts::of_spawned)).blocking(call)
    }

    #[track_caller]
    pub(crate) fn blocking_on<F>(self, call: F, handle: &Handle) -> Blocking<F> {
        self.of(Some(Facts::of_spawned(handle))).blocking(call)
    }

    /// A task that is spawned onto a [`LocalSet`].
    #[track_caller]
    pub(crate) fn local<F: Future>(self, future: F) -> Traced<F> {
        self.of(Facts::current(Facts::of_local)).local().traced(future)
    }

    fn of(self, runtime: Option<Facts>) -> librip::task::Builder<'a> {
        let task = librip::task::Builder::new();
        let task = if self.is_of_kind { task.kind_name(self.name) } else { task.name(self.name) };
        match runtime {
            Some(Facts { number, workers }) => task.runtime(number, workers),
            None => task,
        }
    }
}

/// [`tokio::spawn`], recorded: the task is in the ring, with the place of this call.
///
/// # Panics
///
/// If the calling thread has not entered a runtime.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// assert_eq!(librip_tokio::spawn(async { 7 }).await.unwrap(), 7);
/// # }
/// ```
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    Task::new().spawn(future)
}

/// [`tokio::task::spawn_local`], recorded: the task is in the ring, with the place of this call.
///
/// # Panics
///
/// Outside of a [`LocalSet`] and of a local runtime.
#[track_caller]
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: 'static> + 'static,
{
    Task::new().spawn_local(future)
}

/// [`tokio::task::spawn_blocking`], recorded: the call is in the ring, with the place of this one, also while it waits
/// for a thread.
///
/// # Panics
///
/// If the calling thread has not entered a runtime.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// assert_eq!(librip_tokio::spawn_blocking(|| 7).await.unwrap(), 7);
/// # }
/// ```
#[track_caller]
pub fn spawn_blocking<F, R>(call: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    Task::new().spawn_blocking(call)
}

/// [`tokio::task::block_in_place`], recorded: until the poll of the calling task ends, the ring says that it occupies
/// no worker of its runtime. So `read-rip check` does not take it for one of the polls that keep all workers.
///
/// # Panics
///
/// As [`tokio::task::block_in_place`].
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build()?;
/// # runtime.block_on(async {
/// let seven = librip_tokio::spawn(async { librip_tokio::task::block_in_place(|| 7) });
/// assert_eq!(seven.await.unwrap(), 7);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[cfg(feature = "rt-multi-thread")]
#[track_caller]
pub fn block_in_place<F: FnOnce() -> R, R>(call: F) -> R {
    // Before: another thread may have the worker as soon as the call begins, and may keep it.
    librip::task::left_worker();
    task::block_in_place(call)
}

/// The `block_on` of a runtime or of a handle, recorded: the future is a task, as those are that it spawns.
///
/// A program with `#[tokio::main]` has `traced(...).await` in its main function instead: see [`traced`].
///
/// # Panics
///
/// As [`tokio::runtime::Runtime::block_on`] and [`Handle::block_on`].
///
/// # Examples
///
/// ```
/// let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// assert_eq!(librip_tokio::block_on(&runtime, async { 7 }), 7);
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn block_on<F: Future>(executor: &impl Executor, future: F) -> F::Output {
    Task::new().block_on(executor, future)
}

/// Makes a task of a future, for those who spawn it by other means, or do not spawn it.
///
/// It is not known then whether the workers of a runtime with several poll the task, or the thread of a `block_on`. So
/// `read-rip check` never says that such a task keeps a worker, or needs one. Those of [`spawn`] do.
///
/// # Examples
///
/// ```
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() {
///     librip_tokio::traced(serve()).await;
/// }
/// # async fn serve() {}
/// ```
#[track_caller]
pub fn traced<F: Future>(future: F) -> Traced<F> {
    Task::new().traced(future)
}

/// Stands for a task that has no slot. The first task has the number after it.
const UNKNOWN_TASK: u64 = 1 << 31;

/// [`tokio::task::JoinHandle`], recorded: the ring says who waits for the end of the task.
///
/// The place of the wait is that of the spawn. [`AtExt::at`](librip::task::AtExt::at) names the place of the await.
pub struct JoinHandle<T> {
    wait: Waits<TASK, task::JoinHandle<T>>,
}

impl<T> JoinHandle<T> {
    #[track_caller]
    fn new(inner: task::JoinHandle<T>, number: Option<u32>) -> JoinHandle<T> {
        JoinHandle::at(Location::caller(), inner, number)
    }

    fn at(at: &'static Location<'static>, inner: task::JoinHandle<T>, number: Option<u32>) -> JoinHandle<T> {
        let task = number.map_or(UNKNOWN_TASK, u64::from);
        // Whatever became of the task, it has ended.
        JoinHandle { wait: lock::wait_at(at, task, inner, false, |_| true) }
    }

    fn inner(&self) -> &task::JoinHandle<T> {
        self.wait.get_ref()
    }

    /// See [`tokio::task::JoinHandle::abort`].
    pub fn abort(&self) {
        self.inner().abort();
    }

    /// See [`tokio::task::JoinHandle::is_finished`].
    pub fn is_finished(&self) -> bool {
        self.inner().is_finished()
    }

    /// See [`tokio::task::JoinHandle::abort_handle`].
    pub fn abort_handle(&self) -> AbortHandle {
        self.inner().abort_handle()
    }

    /// See [`tokio::task::JoinHandle::id`].
    pub fn id(&self) -> Id {
        self.inner().id()
    }

    /// Tokio's handle, for what asks for that one. Its wait is not recorded.
    pub fn into_inner(self) -> task::JoinHandle<T> {
        self.wait.into_inner()
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.wait).poll(cx)
    }
}

impl<T: fmt::Debug> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner().fmt(f)
    }
}
