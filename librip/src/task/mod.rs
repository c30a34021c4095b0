//! Async tasks, calls on pools of blocking threads, and coroutines: each has a history and locks of its own.
//!
//! A debugger sees nothing of a suspended task, because the task has no stack. Here it has a slot, as a thread has: its
//! marks, its locks and its waits follow it from thread to thread, and are in the file after any death of the process.
//! The slot says which thread polls the task, or since when it is suspended, and where. `read-rip tasks` shows that,
//! and `read-rip check` finds deadlocks among tasks, and between tasks and threads.
//!
//! ```
//! use std::pin::pin;
//! use std::task::{Context, Poll, Waker};
//!
//! async fn serve() -> u32 {
//!     librip::rip_snap!("serves"); // recorded for the task
//!     7
//! }
//!
//! // Any executor will do. With tokio: `librip_tokio::spawn(serve())`.
//! let task = pin!(librip::task::traced(serve()));
//! assert_eq!(task.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(7));
//! ```
//!
//! # What it costs
//!
//! A poll takes a few nanoseconds more, a mark in a task what it takes anywhere. A task takes a slot from when it is
//! made until it ends, 1280 bytes by default (896 with `RIP_WORDS=16`), and an allocation if its wakes are counted. If
//! there is no slot for a task, it runs as it would without librip, and is counted.
//!
//! # Where a task waits
//!
//! The drop-in locks of `librip-tokio` say where a task waits. For futures of other kinds, [`at`] names the place of an
//! await, and `#[librip::traced]` (feature `macros`) an async function. Together they are the tree of awaits, which
//! `read-rip tasks -t` shows.
//!
//! # What is not known
//!
//! A task that is neither [`traced`] nor [`Watched`] has no slot: what it does is recorded for the thread that polls
//! it, and a lock that it holds over an await seems to be held by that thread.

#![allow(unsafe_code, reason = "futures are pinned by hand, and sites are assembly")]

mod await_place;
#[cfg(feature = "capi")]
pub(crate) mod coroutine;
pub mod lock;
mod polling;
mod traced;
mod watched;

pub use await_place::{At, AtExt, at};
pub use traced::{Blocking, Builder, Traced, traced};
pub use watched::Watched;

use crate::process::instance;

/// The calling thread is about to sleep, because it has no task to poll: for executors. Afterwards it calls [`rested`].
///
/// So the record says which threads poll tasks, and since when each of them sleeps, or is awake.
pub fn rests() {
    if let Some(owner) = instance::owner() {
        (owner.tasks.rests)(true);
    }
}

/// The calling thread has slept: for executors.
///
/// To read a clock takes longer than to begin a poll, so several short polls of a thread share a time. A thread cannot
/// see that it slept. With this call, the polls after it have exact times. `librip-tokio` makes it, and [`rests`].
pub fn rested() {
    if let Some(owner) = instance::owner() {
        (owner.tasks.rests)(false);
    }
}

/// Whether each poll reads the clock ([`Polls::Times`](crate::Polls::Times)): for executors that can say how long ago a
/// task was woken. See [`Watched::poll_begins_after`].
pub fn are_polls_timed() -> bool {
    instance::owner().is_some_and(|owner| (owner.tasks.are_polls_timed)())
}

/// The calling thread is about to give its place among the threads of its executor to another one, for the rest of the
/// poll that it is in: for wrappers of what does that.
///
/// What the poll then waits for does not keep the executor from polling other tasks. `librip-tokio` makes this call in
/// `block_in_place`.
pub fn left_worker() {
    if let Some(owner) = instance::owner() {
        (owner.tasks.left_worker)();
    }
}
