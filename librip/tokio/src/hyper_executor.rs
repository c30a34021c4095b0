//! [`HyperExecutor`]: spawns what hyper spawns, as recorded tasks.

use std::panic::Location;

use librip::task::Traced;

use crate::Task;
use crate::watch::spawns_recorded;

/// Spawns what hyper spawns, such as the streams of HTTP/2, as recorded tasks. It stands in for `TokioExecutor` of
/// `hyper-util`.
///
/// The place of these tasks is that of the call of [`new`](HyperExecutor::new). The connections are yours: spawn them
/// with [`spawn`](crate::spawn()).
///
/// # Examples
///
/// ```
/// use hyper::rt::Executor;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// // hyper_util::server::conn::auto::Builder::new(executor)
/// let executor = librip_tokio::HyperExecutor::new();
/// let (done, is_done) = tokio::sync::oneshot::channel();
/// executor.execute(async { done.send(7) });
/// assert_eq!(is_done.await, Ok(7));
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct HyperExecutor {
    at: &'static Location<'static>,
}

impl HyperExecutor {
    /// One whose tasks have the place of this call.
    #[track_caller]
    #[allow(clippy::new_without_default, reason = "a default has no place")]
    pub fn new() -> HyperExecutor {
        HyperExecutor { at: Location::caller() }
    }
}

impl<F> hyper::rt::Executor<F> for HyperExecutor
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    fn execute(&self, future: F) {
        let future: Traced<F> = Task::new().name("hyper").spawned_at(self.at, future);
        let _recorded = spawns_recorded();
        drop(tokio::task::spawn(future));
    }
}
