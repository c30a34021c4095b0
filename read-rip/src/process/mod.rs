//! What the running system knows: which processes live, and where rings are.
//!
//! The only layer that asks about processes.

mod find;
mod liveness;

pub use find::{Found, rings_in, rings_of_process};
pub use liveness::{
    Liveness, ended_children, is_of_another_boot, liveness, liveness_of_ring, living_threads,
};
