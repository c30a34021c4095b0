//! Starting: what ring to make, where, and making it.
//!
//! It runs once, in ordinary code. `runtime` decides when, and opens the ring to threads.

pub(crate) mod config;
pub(crate) mod create;
pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod identity;
