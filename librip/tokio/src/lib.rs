#![doc = include_str!("../README.md")]

mod blocking;
mod forward;
#[cfg(feature = "hyper")]
mod hyper_executor;
mod join_set;
#[cfg(feature = "tower")]
mod layer;
#[cfg(feature = "tower")]
mod request_name;
mod runtime;
mod spawn;
pub mod sync;
mod watch;

#[cfg(feature = "hyper")]
pub use hyper_executor::HyperExecutor;
#[cfg(feature = "tower")]
pub use layer::{RequestLayer, RequestService, layer};
/// `#[tokio::main]`, recorded: starts librip, builds a runtime with [`watch`], and makes a task of the main function.
/// It takes `flavor`, `worker_threads` and `start_paused`.
///
/// If librip cannot start, the program says so on the standard error, and runs unrecorded.
///
/// # Examples
///
/// ```
/// #[librip_tokio::main(flavor = "current_thread")]
/// async fn main() -> Result<(), std::num::ParseIntError> {
///     let seven: u32 = tokio::spawn(async { "7".parse() }).await.expect("it does not panic")?;
///     assert_eq!(seven, 7);
///     Ok(())
/// }
/// ```
///
/// ```compile_fail
/// #[librip_tokio::main]
/// fn main() {}
/// ```
#[cfg(feature = "macros")]
pub use librip_macros::tokio_main as main;
/// `#[tokio::test]`, recorded: as [`main`](macro@main), with a runtime of one thread unless the `flavor` is another
/// one. The task has the name of the test.
///
/// So `read-rip run --check -- cargo test` can explain a test that hangs.
#[cfg(feature = "macros")]
pub use librip_macros::tokio_test as test;
pub use runtime::Executor;
pub use spawn::{Task, block_on, spawn, spawn_blocking, spawn_local, traced};
pub use watch::{SEES_ALL_TASKS, Watch, watch};

/// What the expansions of the macros use.
#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod __private {
    pub use tokio::runtime::Builder;

    /// Failing to record is no reason to fail.
    pub fn init() {
        if let Err(error) = librip::init() {
            eprintln!("not recording: {error}");
        }
    }
}

/// `tokio::task` with tasks that are recorded: replace `use tokio::task` by `use librip_tokio::task`.
pub mod task {
    pub use crate::join_set::JoinSet;
    #[cfg(feature = "rt-multi-thread")]
    pub use crate::spawn::block_in_place;
    pub use crate::spawn::{JoinHandle, spawn, spawn_blocking, spawn_local};
    #[doc(hidden)]
    #[allow(deprecated, reason = "programs use it")]
    pub use tokio::task::consume_budget;
    pub use tokio::task::{
        AbortHandle, Id, JoinError, LocalEnterGuard, LocalKey, LocalSet, Unconstrained, coop, futures, id,
        try_id, unconstrained, yield_now,
    };
}
