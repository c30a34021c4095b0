//! This process: its threads and their slots, forks, the exit, dumps, the clock, what the loader has loaded, SIGBUS.
//!
//! It knows the ring, and neither locks nor how marks are compiled. `instance` is the way to the instance of librip
//! that owns the ring; `runtime` fills it in.

pub(crate) mod channels;
pub(crate) mod clock;
#[cfg(feature = "interpose")]
pub(crate) mod code;
pub(crate) mod current;
pub(crate) mod dump;
pub(crate) mod exit;
pub(crate) mod fork;
pub(crate) mod image;
pub(crate) mod instance;
pub(crate) mod kin;
pub(crate) mod loader;
pub(crate) mod sampled;
pub(crate) mod seen;
pub(crate) mod sigbus;
pub(crate) mod slot;
pub(crate) mod state;
pub(crate) mod thread;
