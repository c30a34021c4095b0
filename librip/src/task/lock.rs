//! What a drop-in for an async lock records: who holds it, and which tasks wait for it.
//!
//! `librip-tokio` is made of this. It is for those who wrap the locks of another library.
//!
//! ```
//! use librip::task::lock::{self, Holding, MUTEX};
//!
//! struct Lock(tokio_like::Mutex);
//! struct Guard<'a> {
//!     inner: Option<tokio_like::Guard<'a>>,
//!     hold: Option<Holding<MUTEX>>,
//! }
//!
//! impl Lock {
//!     #[track_caller]
//!     fn lock(&self) -> impl Future<Output = Guard<'_>> {
//!         let acquired = lock::acquire::<MUTEX, _>(lock::address(self), self.0.lock(), |_| true);
//!         async move {
//!             let (inner, hold) = acquired.await;
//!             Guard { inner: Some(inner), hold }
//!         }
//!     }
//! }
//!
//! impl Drop for Guard<'_> {
//!     fn drop(&mut self) {
//!         lock::release(self.hold.take(), || drop(self.inner.take()));
//!     }
//! }
//! # mod tokio_like {
//! #     pub struct Mutex;
//! #     pub struct Guard<'a>(std::marker::PhantomData<&'a Mutex>);
//! #     impl Mutex {
//! #         pub async fn lock(&self) -> Guard<'_> { Guard(std::marker::PhantomData) }
//! #     }
//! # }
//! ```
//!
//! The wait is that of the future, from the first poll that returns without the lock until the future is ready or
//! dropped. The hold is that of the value that comes with the lock.

use core::future::Future;
use core::panic::Location;

use core::sync::atomic::Ordering::Relaxed;

use crate::lock;
use crate::lock::future::{FutureAcquisition, FutureHolding, Target};
use crate::lock::table::Slot;
use crate::process;
use librip_format::{
    LOCK_TYPE_BARRIER, LOCK_TYPE_MESSAGE, LOCK_TYPE_MUTEX, LOCK_TYPE_ONCE, LOCK_TYPE_RWLOCK,
    LOCK_TYPE_SEMAPHORE, LOCK_TYPE_THREAD, SITE_LOCK_TYPE_SHIFT, SITE_OF_FUTURE, SITE_OWNED,
    SITE_OWNED_BY_RULE, SITE_SHARED, TASK_ID, THREAD_ID_MAX,
};

pub use crate::lock::future::{Acquire, AcquireFree, FutureHolding as Holding, Waits, Ways};

/// A way to use a lock: one of the constants of this module.
pub type Use = u16;

const fn of_type(lock_type: u16) -> Use {
    lock_type << SITE_LOCK_TYPE_SHIFT | SITE_OF_FUTURE
}

/// A mutex whose guard stays in its task: it borrows the mutex.
pub const MUTEX: Use = of_type(LOCK_TYPE_MUTEX) | SITE_OWNED_BY_RULE;
/// A mutex whose guard may be sent to another task: it owns a share of the mutex.
pub const MUTEX_OWNED: Use = of_type(LOCK_TYPE_MUTEX);
/// A readers-writer lock, to read. The guard stays in its task.
pub const READ: Use = of_type(LOCK_TYPE_RWLOCK) | SITE_SHARED | SITE_OWNED;
/// A readers-writer lock, to write. The guard stays in its task.
pub const WRITE: Use = of_type(LOCK_TYPE_RWLOCK) | SITE_OWNED_BY_RULE;
/// A readers-writer lock, to read. The guard may be sent to another task.
pub const READ_OWNED: Use = of_type(LOCK_TYPE_RWLOCK) | SITE_SHARED;
/// A readers-writer lock, to write. The guard may be sent to another task.
pub const WRITE_OWNED: Use = of_type(LOCK_TYPE_RWLOCK);
/// An initialisation that is done once. The task that runs the initialiser holds it.
pub const ONCE: Use = of_type(LOCK_TYPE_ONCE) | SITE_OWNED;
/// For [`wait`]: a notification, or what else anyone may bring about and nobody holds, as the end of one of many tasks.
pub const NOTIFICATION: Use = of_type(LOCK_TYPE_SEMAPHORE);
/// For [`wait`]: other tasks, at a barrier.
pub const BARRIER: Use = of_type(LOCK_TYPE_BARRIER);
/// For [`wait`]: a message of a channel, or room for one.
pub const MESSAGE: Use = of_type(LOCK_TYPE_MESSAGE);
/// For [`wait`]: the end of a task, whose number is given in place of an address.
pub const TASK: Use = of_type(LOCK_TYPE_THREAD);

/// The address of a lock, by which it is known. It must be a multiple of 4.
pub fn address<T: ?Sized>(lock: &T) -> u64 {
    core::ptr::from_ref(lock).addr() as u64
}

/// What a drop-in has besides the lock. Its address identifies the lock.
///
/// When it is dropped, it records that, because another lock may be made at the same address: it is not the same lock
/// and does not have its name. The end of a lock that was never used is not recorded.
#[derive(Debug, Default)]
#[repr(align(4))]
pub struct Identity(lock::Identity);

impl Identity {
    /// That of a new lock.
    pub const fn new() -> Identity {
        Identity(lock::Identity::new())
    }

    /// The lock's address, by which it is known.
    pub fn address(&self) -> u64 {
        self.0.address()
    }

    /// The address of a lock that is about to be acquired.
    #[inline]
    pub fn address_in_use(&self) -> u64 {
        self.0.address_in_use()
    }

    /// Names the lock in the ring, up to 48 bytes. The name belongs to the present address.
    pub fn set_name(&self, name: &str) {
        self.0.set_name(name);
    }
}

/// Records what a future does that acquires a lock. `has_it` says of the future's output whether it has.
#[track_caller]
pub fn acquire<const USE: Use, F: Future>(
    lock: u64,
    future: F,
    has_it: fn(&F::Output) -> bool,
) -> Acquire<USE, F> {
    acquire_at(Location::caller(), lock, future, has_it)
}

/// Like [`acquire`], for an async function, which cannot be `#[track_caller]`: it takes its caller's location before.
pub fn acquire_at<const USE: Use, F: Future>(
    at: &'static Location<'static>,
    lock: u64,
    future: F,
    has_it: fn(&F::Output) -> bool,
) -> Acquire<USE, F> {
    Acquire::new(future, Target { lock, at, is_unit: false }, has_it)
}

/// Records what a future does that acquires permits of a semaphore, like [`acquire`]. Several tasks may hold some. A
/// task that waits may wait for each of them.
#[track_caller]
pub fn acquire_permits<F: Future>(
    semaphore: u64,
    future: F,
    has_them: fn(&F::Output) -> bool,
) -> Acquire<MUTEX_OWNED, F> {
    acquire_permits_at(Location::caller(), semaphore, future, has_them)
}

/// Like [`acquire_permits`], at a location: see [`acquire_at`].
pub fn acquire_permits_at<F: Future>(
    at: &'static Location<'static>,
    semaphore: u64,
    future: F,
    has_them: fn(&F::Output) -> bool,
) -> Acquire<MUTEX_OWNED, F> {
    Acquire::new(future, Target { lock: semaphore, at, is_unit: true }, has_them)
}

/// Records what a future does that acquires a lock which is mostly free: it tries first, and waits if that fails.
///
/// That is cheaper than [`acquire_at`] if the future that waits is large: it is not made if the lock is free. `is_unit`
/// says that the lock is a semaphore, as in [`acquire_permits`].
///
/// # Panics
///
/// The future panics if it is polled after it was ready.
#[inline(always)]
pub fn acquire_free<const USE: Use, P, A, W, F, H, M, O>(
    at: &'static Location<'static>,
    lock: u64,
    is_unit: bool,
    ways: Ways<P, A, W, H, M>,
) -> AcquireFree<USE, P, A, W, F, H, M>
where
    A: FnMut(P) -> Option<F::Output>,
    W: FnMut() -> F,
    F: Future,
    H: FnMut(&F::Output) -> bool,
    M: FnMut((F::Output, Option<Holding<USE>>)) -> O,
{
    AcquireFree::new(Target { lock, at, is_unit }, ways)
}

/// Records an attempt that does not wait. Returns what `attempt` returns, and the hold if it has succeeded.
#[inline]
#[track_caller]
pub fn attempt<const USE: Use, T>(
    lock: u64,
    attempt: impl FnOnce() -> Option<T>,
) -> Option<(T, Option<Holding<USE>>)> {
    let target = Target { lock, at: Location::caller(), is_unit: false };
    attempted(target, attempt)
}

/// The same for permits of a semaphore.
#[track_caller]
pub fn attempt_permits<T>(
    semaphore: u64,
    attempt: impl FnOnce() -> Option<T>,
) -> Option<(T, Option<Holding<MUTEX_OWNED>>)> {
    attempt_permits_at(Location::caller(), semaphore, attempt)
}

/// Like [`attempt_permits`], at a location: a closure has no caller.
pub fn attempt_permits_at<T>(
    at: &'static Location<'static>,
    semaphore: u64,
    attempt: impl FnOnce() -> Option<T>,
) -> Option<(T, Option<Holding<MUTEX_OWNED>>)> {
    attempted(Target { lock: semaphore, at, is_unit: true }, attempt)
}

#[inline]
fn attempted<const USE: Use, T>(
    target: Target,
    attempt: impl FnOnce() -> Option<T>,
) -> Option<(T, Option<Holding<USE>>)> {
    let mut acquisition = FutureAcquisition::<USE>::new(target);
    acquisition.begin();
    let acquired = attempt()?;
    Some((acquired, acquisition.acquired().map(FutureHolding::of)))
}

/// Records the release of a lock: `release` releases it.
#[inline]
pub fn release<const USE: Use, T>(hold: Option<Holding<USE>>, release: impl FnOnce() -> T) -> T {
    match hold {
        Some(hold) => hold.release(release),
        None => release(),
    }
}

/// Records the wait of a future for something that nobody holds. `has_it` says of the future's output whether the
/// future has what it waited for. `is_noted`: whether an end without a wait is recorded too.
#[track_caller]
pub fn wait<const USE: Use, F: Future>(
    object: u64,
    future: F,
    is_noted: bool,
    has_it: fn(&F::Output) -> bool,
) -> Waits<USE, F> {
    wait_at(Location::caller(), object, future, is_noted, has_it)
}

/// Like [`wait`], at a location: see [`acquire_at`].
pub fn wait_at<const USE: Use, F: Future>(
    at: &'static Location<'static>,
    object: u64,
    future: F,
    is_noted: bool,
    has_it: fn(&F::Output) -> bool,
) -> Waits<USE, F> {
    let target = Target { lock: object, at, is_unit: false };
    Waits::new(future, target, 0, is_noted, has_it)
}

/// What is known of the other side of a channel: of its receivers for who sends, and of its senders for who receives.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Which thread or task alone has used the only end of that side: see [`user`]. 0 if there are several ends or
    /// users, or none is known.
    pub user: u32,
    /// How many ends that side has.
    pub ends: u32,
    /// Whether that side receives.
    pub receives: bool,
    /// Whether nobody has used that side, and the user is who is presumed to have it.
    pub is_presumed: bool,
}

/// Records who uses the other side of a channel. It belongs before the wait at the channel: a future that
/// [`wait`] polls calls it when it returns `Pending` for the first time.
pub fn note_peer(at: &'static Location<'static>, channel: u64, peer: Peer) {
    let Peer { user, ends, receives, is_presumed } = peer;
    let packed = librip_format::pack_peer(user, u64::from(ends), receives, is_presumed);
    lock::blocked::note_peer::<MESSAGE>(at, channel, packed);
}

/// Records that all who wait at an object are being woken. It belongs before that. `is_heard`: whether anyone may wait.
/// A wake that nobody hears has no effect: `read-rip check` looks for one where a task waits and nobody is left to wake
/// it.
pub fn note_wake_of_all(at: &'static Location<'static>, object: u64, is_heard: bool) {
    lock::future::wakes_all::<NOTIFICATION>(at, object, is_heard);
}

/// The number by which the ring knows the task that the calling thread polls, or the thread itself; 0 if neither has
/// recorded anything.
pub fn user() -> u32 {
    // ORDERING: relaxed: the owner of a slot has written it before its first mark.
    Slot::existing().map_or(0, |slot| slot.header().tid.load(Relaxed))
}

/// The number of the poll that the calling thread is in, of the task that it polls; 0 if it polls none, or if this
/// instance of librip does not own the ring of the process. Unless it is 0 and [`user`] a task, both together say
/// whether two moments are of one poll, or of one thread outside of all polls.
pub fn poll() -> u64 {
    process::task::current_poll()
}

/// Whether [`user`] can return this number, and not as one that stands for nobody.
pub const fn is_user(number: u32) -> bool {
    // No process has lived long enough for more tasks.
    const TASK_MAX: u32 = TASK_ID | 1 << 30;
    matches!(number, 1..=THREAD_ID_MAX | TASK_ID..=TASK_MAX)
}

/// Whether a number that [`user`] has returned is that of a task.
pub const fn is_task(user: u32) -> bool {
    user & TASK_ID != 0
}

/// Records the wait of a future at a barrier, a round of which takes so many.
#[track_caller]
pub fn wait_in_round<F: Future>(barrier: u64, future: F, round: usize) -> Waits<BARRIER, F> {
    let target = Target { lock: barrier, at: Location::caller(), is_unit: false };
    Waits::new(future, target, round as u64, true, |_| true)
}
