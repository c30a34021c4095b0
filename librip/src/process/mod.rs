//! This process: its threads and their slots, forks, the exit, dumps, the clock, what the loader has loaded, SIGBUS.
//!
//! It knows the ring, and neither locks nor how marks are compiled. `instance` is the way to the instance of librip
//! that owns the ring; `runtime` fills it in.

mod blocks;
pub(crate) mod channels;
pub(crate) mod clock;
pub(crate) mod current;
pub(crate) mod dump;
pub(crate) mod exit;
pub(crate) mod fork;
pub(crate) mod futures;
pub(crate) mod image;
pub(crate) mod instance;
pub(crate) mod kin;
pub(crate) mod loader;
pub(crate) mod polls;
pub(crate) mod present;
pub(crate) mod sampled;
pub(crate) mod seen;
pub(crate) mod sigbus;
pub(crate) mod slot;
pub(crate) mod state;
pub(crate) mod task;
pub(crate) mod task_slot;
pub(crate) mod task_waker;
pub(crate) mod thread;
pub(crate) mod usage;
