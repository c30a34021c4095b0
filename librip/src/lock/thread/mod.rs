//! `std::thread` with waits that are recorded: replace `use std::thread` by `use librip::thread`.
//!
//! [`spawn`], [`scope`] and [`Builder`] start the threads of the standard library, and everything behaves alike. The
//! ring then says which thread waits for the end of which other thread, and since when: so a lock that is held over a
//! [`join`](JoinHandle::join), while that thread wants the lock, is a proven deadlock, live and after a kill. It also
//! says who started a thread, and which threads wait in [`park`]. All that is not recorded is re-exported unchanged.
//!
//! ```
//! use librip::thread;
//!
//! let adder = thread::spawn(|| 1 + 2);
//! assert_eq!(adder.join().unwrap(), 3);
//!
//! let mut total = 0;
//! thread::scope(|scope| {
//!     scope.spawn(|| total += 1);
//! });
//! assert_eq!(total, 1);
//! ```
//!
//! # What it costs
//!
//! A thread's start allocates some bytes more and asks the kernel for the thread's id. A join, the end of a scope with
//! a thread that still runs, and a `park` record two events. A join that comes before the thread has begun sleeps
//! twice: until it has begun, and until it has ended. A start and a join at once took 117 microseconds in place of 93,
//! in the median on a busy machine.
//!
//! # What differs from `std::thread`
//!
//! * The types [`JoinHandle`], [`ScopedJoinHandle`], [`Scope`] and [`Builder`] are other types than the standard
//!   library's. A function that takes one of those wants the inner one: `std::thread::JoinHandle::from`.
//! * A handle that was made of a standard library's handle does not exist: its thread's id is not known.
//!
//! # What it does not see
//!
//! Threads that are started by `std::thread`, and waits for them. Who wakes a thread that waits in [`park`] is not
//! known either: the ring says only that the thread waits. A thread that is joined and never began, because the system
//! does not let it run, is not named until it begins.

mod builder;
mod handle;
mod life;
mod park;
mod scope;

use std::sync::Arc;

pub use builder::Builder;
pub use handle::{JoinHandle, ScopedJoinHandle};
#[allow(deprecated, reason = "programs that use it replace one import")]
pub use park::park_timeout_ms;
pub use park::{park, park_timeout};
pub use scope::{Scope, scope};

#[allow(deprecated, reason = "programs that use it replace one import")]
pub use std::thread::sleep_ms;
pub use std::thread::{
    AccessError, LocalKey, Result, Thread, ThreadId, available_parallelism, current, panicking, sleep,
    yield_now,
};

use life::Life;

/// See [`std::thread::spawn`]. The thread's end can be waited for by a recorded [`join`](JoinHandle::join).
///
/// # Panics
///
/// If the system cannot start a thread. [`Builder::spawn`] returns an error instead.
///
/// # Examples
///
/// ```
/// let handle = librip::thread::spawn(|| "done");
/// assert_eq!(handle.join().unwrap(), "done");
/// ```
#[track_caller]
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Builder::new().spawn(f).expect("failed to spawn thread")
}

/// What the new thread runs: `f`, and around it what `life` says of the thread.
fn living<F: FnOnce() -> T, T>(life: &Arc<Life>, f: F) -> impl FnOnce() -> T + use<F, T> {
    let starting = Life::starts(life);
    move || {
        // Dropped after all that `f` has, also if it panics.
        let _running = starting.begin();
        f()
    }
}
