//! What the function that a thread waits in is for: values.

use serde::{Deserialize, Serialize};

use crate::saved_text::Constant;

/// What the function that waits is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Construct {
    /// Its name, as its users know it: `std::sync::Mutex`, `malloc`.
    #[serde(deserialize_with = "crate::saved_text::constant")]
    pub name: Constant,
    /// What it does for them.
    pub role: Role,
}

/// What a construct does for its users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// One thread at a time has it, or several that read.
    Lock,
    /// Threads wait until another one signals.
    Condition,
    /// Threads take from a number of things.
    Semaphore,
    /// Threads wait until all have arrived.
    Barrier,
    /// Something is initialised by one thread.
    Initialisation,
    /// A thread must end, or several.
    Join,
    /// A value must come, or there must be room for one.
    Channel,
    /// An object of a pool must be given back.
    Pool,
    /// Calls that block must end, on the pool of an executor that ends.
    Calls,
    /// Another thread must wake this one.
    Park,
    /// A worker has nothing to do.
    Idle,
    /// The C library protects its memory allocator.
    Allocator,
    /// The C library protects a stream, as `stdout`.
    Stream,
    /// The C library protects its list of loaded libraries.
    Loader,
    /// The C library protects a fork, or the start or the end of a thread or of the process.
    Lifecycle,
}

/// The kind of object whose function a thread is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Primitive {
    Mutex,
    ReadLock,
    WriteLock,
    Condition,
    Semaphore,
    Barrier,
    Once,
    /// The guard of a static variable of C++.
    Guard,
    Join,
    /// A lock of the C library's own.
    LibraryLock,
    /// An object whose memory this reader does not interpret.
    Opaque {
        place: Place,
        is_exclusive: bool,
    },
}

/// Where an object is that this reader does not interpret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At the address of the futex.
    AtFutex,
    /// One word before it.
    BeforeFutex,
    /// Not known: the futex belongs to the thread that waits.
    Elsewhere,
}
