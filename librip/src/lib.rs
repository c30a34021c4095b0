//! Marks for about a nanosecond each, in a file that outlives the process.
//!
//! A program calls [`init`] once and puts [`rip_snap!`] around its locks and wherever else it may get stuck. Each mark
//! stores its own address in the calling thread's part of a shared file. `read-rip` reads that file, of a living
//! process without stopping it or of a dead one, and shows where every thread is.
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
//! * A mark takes no lock, makes no system call, allocates nothing, and touches no memory that another thread writes.
//!   The first mark of a thread claims a slot, which takes some system calls and a microsecond or two.
//! * Every mark is in the file after any death of the process: SIGKILL, SIGSEGV, `abort`, out of memory.
//! * The program is never harmed. If the tmpfs is full, the ring is full, the file cannot be created, or somebody
//!   truncates it or scribbles over it, marks record nothing or nonsense, and cost the same.
//!
//! Marks work in signal handlers, in destructors of thread-locals, in the child of a fork (which records under its own
//! pid), and in libraries loaded by `dlopen`, even if those bring an instance of this crate of their own.
//!
//! # Environment
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `RIP_RING` | where the ring is made: a file, a directory, or `off` | `/dev/shm` |
//! | `RIP_WORDS` | words of a slot, 16 to 16384 | 64 |
//! | `RIP_SLOTS` | threads at a time, 1 to 16777216 | 65536 |
//! | `RIP_KEEP` | keep the ring at exit: `always`, `failure`, `never` | `failure` |
//! | `RIP_CLOCK` | events with times: `off`, `contended`, `ticks`, `all`: see [`Clock`] | `contended` |
//! | `RIP_USAGE` | what the recorder asks the kernel about cycles and spans: `off`, `counts`, `delays`: see [`Usage`] | `off` |
//!
//! # Features
//!
//! `lock_api`: recorded locks of `parking_lot` 0.12, and of other crates that implement the traits of `lock_api` 0.4:
//! module `raw`. `lock_api_05`: the same for `parking_lot` 0.13 and `lock_api` 0.5, from Rust 1.95 on.
//!
//! `macros`: `#[derive(Value)]`, for types that events record, `#[spanned]`, for functions that are spans, and
//! `#[traced]`, for async functions that have a place in the tree of awaits.
//!
//! `capi` and `interpose` add functions for the packages `librip-capi` and `librip-preload`. They are not part of the
//! public interface.

#[doc(hidden)]
pub mod arch;
#[cfg(feature = "capi")]
mod binding;
pub mod bridge;
#[cfg(feature = "capi")]
#[doc(hidden)]
pub mod capi;
mod event;
#[cfg(feature = "interpose")]
#[doc(hidden)]
pub mod interpose;
mod lock;
mod marks;
mod process;
#[cfg(any(feature = "lock_api", feature = "lock_api_05"))]
pub use lock::raw;
mod ring;
mod runtime;
mod start;
pub use lock::{sync, thread};
mod sys;
pub mod task;

use std::path::PathBuf;

pub use crate::event::capture::Cycle;
pub use crate::event::channel::Channel;
pub use crate::event::primitive::Primitive;
pub use crate::event::span::Span;
pub use crate::event::text::Text;
pub use crate::event::used::MeasuredSpan;
pub use crate::event::value::Value;
pub use crate::lock::by_hand::LockAddress;
pub use crate::process::clock::Clock;
pub use crate::process::exit::Keep;
pub use crate::process::polls::Polls;
pub use crate::process::usage::Usage;
pub use crate::start::config::{
    Builder, DEFAULT_SLOTS, DEFAULT_SLOTS_WITH_TASKS, SLOTS_MAX, ignored_settings,
};
pub use crate::start::error::InitError;
#[cfg(feature = "macros")]
pub use librip_macros::{Value, spanned, traced};

/// What the expansions of the macros use.
#[doc(hidden)]
pub mod __private {
    pub use crate::event::capture::{capture, cycle};
    pub use crate::event::channel::event_in;
    pub use crate::event::format::check as check_format;
    pub use crate::event::record::event;
    pub use crate::event::span::{begin as span, begin_in as span_in};
    pub use crate::event::text::Name;
    pub use crate::event::used::{Before, measured};
    pub use crate::lock::by_hand::{
        acquired as lock_acquired, condition_wait, condition_woken, destroyed as lock_destroyed,
        name as lock_name, released as lock_released, try_failed as lock_try_failed, wait as lock_wait,
    };
    pub use crate::marks::{check_label, text_bytes, types};
    pub use librip_format as format;
}

/// Starts recording, with the defaults of [`Builder::new`] and the `RIP_*` variables of the environment.
///
/// A process has one ring. It is not an error to call this again, or in a library after the program has called it. If
/// another thread is making the ring, the call waits for it, at most one second.
///
/// # Errors
///
/// See [`InitError`]. The program is unchanged, and all marks record nowhere.
pub fn init() -> Result<(), InitError> {
    match Builder::new().create() {
        Ok(()) | Err(InitError::AlreadyRecording(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

impl Builder {
    /// Makes the ring and starts recording.
    ///
    /// # Errors
    ///
    /// See [`InitError`]. The program is unchanged, and all marks record nowhere.
    pub fn create(self) -> Result<(), InitError> {
        runtime::start(self, runtime::When::Now)
    }
}

/// Returns whether this process records.
pub fn is_recording() -> bool {
    process::instance::is_recording()
}

/// Returns the path of the ring; `None` if there is none, or if another instance of librip in this process made it.
pub fn ring_path() -> Option<PathBuf> {
    runtime::ring_path()
}

/// Copies the ring to a file, while threads record on: a snapshot, which stays when histories go on.
///
/// `read-rip` reads it like a copy of a ring that was made at this moment. The copy takes as much room as the ring, and
/// only its owner may read it. It is written to a new file, whose name is `path`, a dot, and 16 random digits, and gets
/// its own name when it is complete. A file of that name is replaced.
///
/// # Errors
///
/// `NotFound` if this process does not record, if another instance of librip in it made the ring, or if the ring's file
/// was removed. `FileTooLarge` if the copy would be longer than the process's limit on files (`RLIMIT_FSIZE`).
/// Otherwise those of writing the file.
///
/// # Examples
///
/// ```no_run
/// # fn is_strange() -> bool { true }
/// if is_strange() {
///     librip::dump("/var/tmp/strange.ring")?;
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn dump(path: impl AsRef<std::path::Path>) -> std::io::Result<()> {
    process::dump::dump(path.as_ref())
}

/// From now on, the first panic of the process makes a [`dump`], after the hook that is installed now has run.
///
/// A program that goes on after a panic keeps so what its threads did before. Another call names another file, and
/// waits for the next panic. What fails at the panic is not reported.
///
/// # Errors
///
/// If the path is none.
pub fn dump_at_panic(path: impl AsRef<std::path::Path>) -> std::io::Result<()> {
    process::dump::at_panic(path.as_ref())
}

/// From now on, this signal makes a [`dump`], each time it comes. The signal does nothing else any more.
///
/// So `kill -USR2 PID` takes a snapshot of a program that runs on. What fails then is not reported.
///
/// # Errors
///
/// If there is no such signal, or none that can be handled; or if the path is none.
///
/// # Examples
///
/// ```
/// const SIGUSR2: i32 = 12;
/// librip::dump_at_signal(SIGUSR2, "/var/tmp/server.ring")?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn dump_at_signal(signal: i32, path: impl AsRef<std::path::Path>) -> std::io::Result<()> {
    process::dump::at_signal(signal, path.as_ref())
}

/// Names the calling thread in the ring: up to 40 bytes, where the kernel's name for it has 15.
///
/// Without this call the thread has the name that the kernel has for it: as long as the process lives the present one,
/// later the one that it had at its first mark.
pub fn set_thread_name(name: &str) {
    process::thread::set_name(name.as_bytes());
}

/// Registers libraries that were loaded after the ring was made and have marks but no instance of librip.
///
/// Libraries with an instance of their own, which every Rust `cdylib` with marks has, register by themselves.
pub fn refresh_modules() {
    process::instance::refresh_modules();
}

/// From now on, the recorder makes no system call that the program does not make itself. Call it before the program
/// installs a filter of its system calls (seccomp) that kills for the calls that it does not list.
///
/// The calling thread and those that have recorded before go on to record. Later threads record nowhere and are
/// counted, because the name of a thread is asked for by a system call. The ring stays at a clean exit. A program under
/// `librip_preload.so` need not call it, unless it makes the system call that installs the filter by an instruction of
/// its own.
///
/// # Examples
///
/// ```no_run
/// librip::init()?;
/// librip::avoid_system_calls();
/// // Here the program installs its filter.
/// # Ok::<(), librip::InitError>(())
/// ```
pub fn avoid_system_calls() {
    process::instance::avoid_system_calls();
}
