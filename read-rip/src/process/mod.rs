//! What the running system knows: which processes live, and where rings are.
//!
//! No other layer asks the system about processes. This one reads the headers and slots of rings, and no events.

mod find;
mod liveness;

pub use find::{Found, rings_in, rings_of_process};
pub use liveness::{
    Liveness, ended_children, is_of_another_boot, liveness, liveness_of_ring, living_threads,
};
