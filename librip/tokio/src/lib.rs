#![doc = include_str!("../README.md")]

mod blocking;
mod join_set;
mod runtime;
mod spawn;
pub mod sync;
mod watch;

pub use runtime::Executor;
pub use spawn::{Task, block_on, spawn, spawn_blocking, spawn_local, traced};
pub use watch::{SEES_ALL_TASKS, Watch, watch};

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
