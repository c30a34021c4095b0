//! [`Channel`]: what the ends of a channel have in common.

use std::future::Future;
use std::sync::Arc;

use librip::task::lock::{self, Identity, MESSAGE, Waits};

/// Identifies a channel. Tokio does not say where a channel is, so each has something of its own on the heap, whose
/// address stands for it.
#[derive(Clone, Debug)]
pub(crate) struct Channel(Arc<Identity>);

impl Channel {
    pub(crate) fn new() -> Channel {
        Channel(Arc::new(Identity::new()))
    }

    pub(crate) fn set_name(&self, name: &str) {
        self.0.set_name(name);
    }

    /// Records a wait at the channel. One that does not block is not recorded.
    #[track_caller]
    pub(crate) fn wait<F: Future>(&self, future: F, has_it: fn(&F::Output) -> bool) -> Waits<MESSAGE, F> {
        // Its end is not recorded: at a channel nothing is held, so a later one is not mixed up with it.
        lock::wait(self.0.address(), future, false, has_it)
    }

    pub(crate) fn at(&self) -> u64 {
        self.0.address()
    }
}

/// Defines `set_name` of an end of a channel.
macro_rules! set_name {
    () => {
        /// Names the channel in the ring, up to 48 bytes.
        pub fn set_name(&self, name: &str) {
            self.channel.set_name(name);
        }
    };
}
pub(crate) use set_name;
