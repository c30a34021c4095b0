//! Marks for about a nanosecond each, in a file that outlives the process.
//!
//! A program calls [`init`] once and puts [`rip_snap!`] around its locks and wherever else it may get stuck.
//! Each mark stores its own address in the calling thread's part of a shared file. `read-rip` reads that file,
//! of a living process without stopping it or of a dead one, and shows where every thread is.
//!
//! ```
//! use librip::rip_snap;
//!
//! // Failing to record is no reason to fail.
//! if let Err(error) = librip::init() {
//!     eprintln!("not recording: {error}");
//! }
//! rip_snap!("started");
//! ```
//!
//! # What it promises
//!
//! * A mark takes no lock, makes no system call, allocates nothing, and touches no memory that another thread
//!   writes. The first mark of a thread is the exception to the second: it claims a slot, in a microsecond
//!   or a few.
//! * Whatever has been marked is in the file after any death of the process: SIGKILL, SIGSEGV, `abort`, out
//!   of memory.
//! * The program is never harmed: a full tmpfs, a full ring, a file that cannot be made, all mean that marks
//!   record nowhere, and cost the same.
//!
//! Marks work in signal handlers, in destructors of thread-locals, in the child of a fork (which records under
//! its own pid), and in libraries loaded by `dlopen`, even if those bring a copy of this crate of their own.
//!
//! # Environment
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `RIP_RING` | where the ring is made: a file, a directory, or `off` | `/dev/shm` |
//! | `RIP_WORDS` | words a slot, 16 to 16384 | 64 |
//! | `RIP_SLOTS` | threads at a time, 1 to 16777216 | 65536 |
//! | `RIP_KEEP` | keep the ring at exit: `always`, `failure`, `never` | `failure` |
//! | `RIP_CLOCK` | lock events with times: `off`, `contended`, `all` | `contended` |
//!
//! # Features
//!
//! `std` (default): the recorder. Without it the crate has no dependencies, is `no_std`, and defines the file
//! format ([`layout`]) and the site notes ([`site`]).
//!
//! `c`: the functions behind `librip.h`, for programs whose parts in C or C++ record in the same ring: module `c`.
//!
//! `lock_api`: locks of `parking_lot` 0.12 that record, and of whatever else implements the traits of `lock_api`
//! 0.4: module `raw`. `lock_api_05`: the same for `parking_lot` 0.13 and `lock_api` 0.5, from Rust 1.95 on.

#![cfg_attr(not(any(feature = "std", test)), no_std)]

#[cfg(not(loom))]
#[doc(hidden)]
pub mod arch;
#[cfg(all(feature = "c", not(loom)))]
pub mod c;
#[cfg(all(feature = "std", not(loom)))]
mod children;
#[cfg(all(feature = "std", not(loom)))]
mod clock;
#[cfg(all(feature = "std", not(loom)))]
mod config;
#[cfg(all(feature = "std", not(loom)))]
mod copies;
#[cfg(all(feature = "std", not(loom)))]
mod create;
#[cfg(all(feature = "std", not(loom)))]
mod error;
#[cfg(all(feature = "std", not(loom)))]
mod exit;
#[cfg(feature = "std")]
mod exits;
#[cfg(all(feature = "std", not(loom)))]
mod guard;
#[cfg(all(feature = "std", not(loom)))]
mod lock;
#[cfg(all(feature = "std", not(loom)))]
mod modules;
#[cfg(all(any(feature = "lock_api", feature = "lock_api_05"), not(loom)))]
pub mod raw;
#[cfg(all(feature = "std", not(loom)))]
mod ring;
pub mod site;
#[cfg(all(feature = "std", not(loom)))]
mod slot;
#[cfg(all(feature = "std", not(loom)))]
pub mod sync;
#[cfg(all(feature = "std", not(loom)))]
mod sys;
#[cfg(all(feature = "std", not(loom)))]
mod thread;

#[cfg(all(feature = "std", not(loom)))]
pub use api::*;

/// What expansions of the macros need.
#[doc(hidden)]
pub mod __private {
    #[cfg(all(feature = "std", not(loom)))]
    pub use crate::lock::marks::{
        acquired as lock_acquired, destroyed as lock_destroyed, name as lock_name, released as lock_released,
        try_failed as lock_try_failed, wait as lock_wait,
    };
    pub use crate::site::{text_bytes, types};
    pub use librip_format as format;
}

/// What `librip_preload.so` needs. No part of the interface.
#[cfg(all(feature = "interpose", not(loom)))]
#[doc(hidden)]
pub mod interpose {
    pub use crate::lock::interpose::*;

    /// From here on, makes no system call that a program with threads does not make anyway: later threads record
    /// nowhere, and a clean exit leaves the ring.
    pub fn avoid_system_calls() {
        crate::thread::avoid_system_calls();
    }

    /// The process ends with this status, in a way that the C library does not announce. Safe in a signal handler, and in
    /// a child of `vfork`.
    pub fn ends(status: core::ffi::c_int) {
        crate::exit::ends(status);
    }
}

#[cfg(all(feature = "std", not(loom)))]
mod api {
    pub use crate::clock::Clock;
    pub use crate::config::{Builder, DEFAULT_SLOTS, Keep, SLOTS_MAX};
    pub use crate::error::InitError;
    pub use crate::lock::marks::LockAddress;

    use std::path::PathBuf;

    /// Starts recording, with the defaults of [`Builder::new`] and whatever `RIP_*` in the environment says.
    ///
    /// Calling it again, or in a library after the program has, is no error: there is one ring a process.
    ///
    /// # Errors
    ///
    /// See [`InitError`]. The program is as it was before, and all marks record nowhere.
    pub fn init() -> Result<(), InitError> {
        match Builder::new().create() {
            Ok(()) | Err(InitError::AlreadyRecording(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Whether this process records.
    pub fn is_recording() -> bool {
        crate::copies::is_recording()
    }

    /// Where the ring is; `None` without one, or when another copy of librip in this process made it.
    pub fn ring_path() -> Option<PathBuf> {
        crate::create::ring_path()
    }

    /// Names the calling thread in the ring: up to 48 bytes, where the kernel's name for it has 15.
    ///
    /// Without this call the name is the one that the thread had at its first mark.
    pub fn set_thread_name(name: &str) {
        crate::thread::set_name(name.as_bytes());
    }

    /// Registers libraries that were loaded after the ring was made and have marks but no copy of librip.
    ///
    /// Libraries with a copy of their own, which every Rust `cdylib` with marks has, register by themselves.
    pub fn refresh_modules() {
        crate::copies::refresh_modules();
    }
}
