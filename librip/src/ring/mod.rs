//! A ring as the recorder sees it: where its parts are, and the operations on them.
//!
//! There are no statics here: a [`Ring`] is passed in. Nothing here knows the thread that calls, the clock or the
//! loader.
//!
//! # What is trusted
//!
//! The file can be mapped by other processes, and its contents can change at any time. So the recorder only writes to
//! it. Everything that it needs to know again is private: [`Geometry`] in this process, and [`Control`] in memory that
//! this process shares with its forked children only. The exceptions are the words, the count and the held-lock table
//! of a thread's own slot, and names of other threads' held locks. They are read back, and a wrong value there changes
//! what is recorded, but never where a store goes, or for how long a loop runs.

pub(crate) mod atomic {
    //! The atomics of [`exit_queue`](super::exit_queue). The model of that file in the tests has others.
    pub(crate) use core::hint::spin_loop;
    pub(crate) use core::sync::atomic::AtomicU64;
}
pub(crate) mod children;
pub(crate) mod control;
pub(crate) mod exit_queue;
pub(crate) mod fork_copy;
pub(crate) mod geometry;
pub(crate) mod lock_names;
mod map;
pub(crate) mod module_registry;
pub(crate) mod remote_tables;
pub(crate) mod slots;

pub(crate) use control::Control;
pub(crate) use geometry::{Geometry, Table};
pub(crate) use map::Ring;
