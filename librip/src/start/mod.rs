//! Starting: what ring to make, where, and making it.
//!
//! [`plan`] runs once, in ordinary code. [`create`] makes the ring by that plan, at once or at the first mark.
//! `runtime` decides when, and opens the ring to threads.

mod bound;
pub(crate) mod config;
pub(crate) mod create;
pub(crate) mod error;
pub(crate) mod file;
mod former;
pub(crate) mod found;
pub(crate) mod identity;
pub(crate) mod plan;
