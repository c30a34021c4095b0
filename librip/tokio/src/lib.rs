#![doc = include_str!("../README.md")]

mod blocking;
mod join_set;
mod runtime;
mod spawn;
pub mod sync;

pub use runtime::{Executor, watch};
pub use spawn::{Task, block_on, spawn, spawn_blocking, spawn_local, traced};

/// `tokio::task` with tasks that are recorded: replace `use tokio::task` by `use librip_tokio::task`.
pub mod task {
    pub use crate::join_set::JoinSet;
    pub use crate::spawn::{JoinHandle, spawn, spawn_blocking, spawn_local};
    pub use tokio::task::{
        AbortHandle, Id, JoinError, LocalEnterGuard, LocalKey, LocalSet, Unconstrained, coop, futures, id,
        try_id, unconstrained, yield_now,
    };
}
