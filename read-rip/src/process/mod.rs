//! What the running system knows: which processes live, and where rings are.
//!
//! The only layer that asks about processes. It reads no ring beyond its header.

mod find;
mod life;

pub use find::{Found, rings_in, rings_of_process};
pub use life::{Life, life, living_threads};
