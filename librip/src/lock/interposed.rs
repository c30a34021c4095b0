//! What only interposed locks record: the usual case in one register, recursion, semaphores, and the end of a lock.
//!
//! It touches no lock, and knows none of the C library's types. The rest of their protocol is in `protocol`. The sites
//! are here, one for each operation and kind of lock, and the [`Caller`] says where in the program the call was.
//!
//! # What differs from wrapped locks
//!
//! * An operation may fail: an unlock by a thread that is not the owner, a second lock of an error-checking mutex. Then
//!   the table is restored, and there is no event, or a TRY_FAILED.
//! * A mutex may be released by a thread that does not hold it. Its holder's entry may then be left behind, so the next
//!   acquisition drops stale entries: see [`drop_stale_entries`].
//! * Nobody holds a semaphore. WAIT says that a thread is about to block on it, ACQUIRED that the thread has acquired a
//!   unit, RELEASED that it has posted one. In the table, a thread that blocks is in the state SEM_WAIT: it waits for
//!   other threads to do something, and not for an owner.
//! * Nobody holds a thread or a barrier either. WAIT says that a thread is about to block until the other one has
//!   ended, or until enough threads have come; ACQUIRED that it goes on.

#![allow(unsafe_code, reason = "sites are assembly")]

use core::ffi::c_int;

use crate::lock::blocked::{self, Blocked, Ends};
use crate::lock::once::Run;
use crate::lock::protocol::is_held;
pub use crate::lock::protocol::{Acquisition, CondWait, FastRelease, Release};
pub use crate::lock::site::{Caller, Flags};
use crate::lock::site::{Origin, wrapper_site};
pub use crate::lock::stack::StackPointer;
use crate::lock::stack::Waiter;
use crate::lock::table::{Entry, FastEntry, Slot};

use crate::process::instance::{self, Request};
use crate::sys;
use librip_format::{
    HELD_MAX, HELD_PROCESS_SHARED, HELD_SHARED, LOCK_TYPE_BARRIER, LOCK_TYPE_MUTEX, LOCK_TYPE_ONCE,
    LOCK_TYPE_RWLOCK, LOCK_TYPE_SEMAPHORE, LOCK_TYPE_SPIN, LOCK_TYPE_THREAD, SITE_LOCK_TYPE_SHIFT,
    SITE_OWNED, SITE_OWNED_BY_RULE, SITE_READERS_FIRST, SITE_REENTRANT, SITE_SHARED, SITE_TRY,
};
pub use librip_format::{
    INCIDENT_DESTROY, INCIDENT_DESTROYED, INCIDENT_NOT_RECOVERABLE, INCIDENT_OWNER_DIED, INCIDENT_RELOCK,
    INCIDENT_SEMAPHORE_FULL, INCIDENT_TOO_OFTEN, INCIDENT_UNLOCK, INCIDENT_WAIT_WITHOUT_LOCK,
};

/// A mutex that the C library lets any thread release.
pub const MUTEX: Flags = LOCK_TYPE_MUTEX << SITE_LOCK_TYPE_SHIFT | SITE_OWNED_BY_RULE;
/// See [`SITE_TRY`].
pub const MUTEX_TRY: Flags = MUTEX | SITE_TRY;
/// A mutex that the C library lets only its owner release, and that is not recursive.
pub const OWNED: Flags = LOCK_TYPE_MUTEX << SITE_LOCK_TYPE_SHIFT | SITE_OWNED;
/// See [`SITE_TRY`].
pub const OWNED_TRY: Flags = OWNED | SITE_TRY;
/// A recursive mutex. The C library lets only its owner release it.
pub const RECURSIVE: Flags = OWNED | SITE_REENTRANT;
/// See [`SITE_TRY`].
pub const RECURSIVE_TRY: Flags = RECURSIVE | SITE_TRY;
/// A readers-writer lock in exclusive mode.
pub const WRITE: Flags = LOCK_TYPE_RWLOCK << SITE_LOCK_TYPE_SHIFT | SITE_OWNED_BY_RULE;
/// See [`SITE_TRY`].
pub const WRITE_TRY: Flags = WRITE | SITE_TRY;
/// A readers-writer lock in shared mode, whose readers queue after waiting writers.
pub const READ: Flags = WRITE | SITE_SHARED;
/// See [`SITE_TRY`].
pub const READ_TRY: Flags = READ | SITE_TRY;
/// A readers-writer lock in shared mode, whose readers pass waiting writers.
pub const READ_FIRST: Flags = READ | SITE_READERS_FIRST;
/// See [`SITE_TRY`].
pub const READ_FIRST_TRY: Flags = READ_FIRST | SITE_TRY;
/// A spin lock.
pub const SPIN: Flags = LOCK_TYPE_SPIN << SITE_LOCK_TYPE_SHIFT | SITE_OWNED_BY_RULE;
/// See [`SITE_TRY`].
pub const SPIN_TRY: Flags = SPIN | SITE_TRY;
/// A semaphore.
pub const SEMAPHORE: Flags = LOCK_TYPE_SEMAPHORE << SITE_LOCK_TYPE_SHIFT;
/// See [`SITE_TRY`].
pub const SEMAPHORE_TRY: Flags = SEMAPHORE | SITE_TRY;

/// A thread, whose end is waited for.
pub const JOIN: Flags = LOCK_TYPE_THREAD << SITE_LOCK_TYPE_SHIFT;
/// See [`SITE_TRY`].
pub const JOIN_TRY: Flags = JOIN | SITE_TRY;
/// A barrier.
pub const BARRIER: Flags = LOCK_TYPE_BARRIER << SITE_LOCK_TYPE_SHIFT;
/// An initialisation that is done once. Only the thread that runs the initialiser can end it.
pub const ONCE: Flags = LOCK_TYPE_ONCE << SITE_LOCK_TYPE_SHIFT | SITE_OWNED;

/// A semaphore that had more than one unit: other threads may take one too.
pub const SEMAPHORE_SHARED: Flags = SEMAPHORE | SITE_SHARED;
/// See [`SITE_TRY`].
pub const SEMAPHORE_TRY_SHARED: Flags = SEMAPHORE_SHARED | SITE_TRY;

/// The sites of interposed calls with these flags. Where a kind has two sites, the second is for an event with times.
#[derive(Debug)]
pub enum Sites<const FLAGS: Flags> {}

macro_rules! sites {
    ($($name:ident: $kind:ident [$($operand:ident),*];)*) => {
        impl<const FLAGS: Flags> Sites<FLAGS> {
            $(
                #[doc = concat!("A site of the kind `", stringify!($kind), "`.")]
                #[inline(always)]
                pub fn $name() -> u64 {
                    wrapper_site!($kind, FLAGS, [$($operand),*])
                }
            )*
        }
    };
}

sites! {
    acquire_begin: KIND_LOCK_ACQUIRE_BEGIN [OPERAND_CALLER, OPERAND_LOCK];
    acquire_begin_timed: KIND_LOCK_ACQUIRE_BEGIN [OPERAND_TIME, OPERAND_CALLER, OPERAND_LOCK];
    wait: KIND_LOCK_WAIT
        [OPERAND_TIME, OPERAND_CALLER, OPERAND_STACK, OPERAND_STACK, OPERAND_STACK, OPERAND_STACK, OPERAND_LOCK];
    acquired: KIND_LOCK_ACQUIRED [OPERAND_CALLER, OPERAND_LOCK];
    acquired_timed: KIND_LOCK_ACQUIRED [OPERAND_TIME, OPERAND_CALLER, OPERAND_LOCK];
    try_failed: KIND_LOCK_TRY_FAILED [OPERAND_CALLER, OPERAND_LOCK];
    released: KIND_LOCK_RELEASED [OPERAND_CALLER, OPERAND_LOCK];
    released_timed: KIND_LOCK_RELEASED [OPERAND_TIME, OPERAND_SINCE, OPERAND_CALLER, OPERAND_LOCK];
    condition_wait: KIND_CONDITION_WAIT
        [OPERAND_TIME, OPERAND_CALLER, OPERAND_STACK, OPERAND_STACK, OPERAND_STACK, OPERAND_STACK, OPERAND_LOCK,
            OPERAND_CONDITION];
    condition_woken: KIND_CONDITION_WOKEN [OPERAND_TIME, OPERAND_CALLER, OPERAND_LOCK, OPERAND_CONDITION];
    destroyed: KIND_LOCK_DESTROYED [OPERAND_CALLER, OPERAND_LOCK];
    initialised: KIND_LOCK_INITIALISED [OPERAND_TIME, OPERAND_CALLER, OPERAND_LOCK];
    condition_signalled: KIND_CONDITION_SIGNALLED [OPERAND_CALLER, OPERAND_CONDITION];
    condition_unheard: KIND_CONDITION_UNHEARD [OPERAND_CALLER, OPERAND_CONDITION];
    condition_destroyed: KIND_CONDITION_DESTROYED [OPERAND_TIME, OPERAND_CALLER, OPERAND_CONDITION];
}

/// Gives the calling thread its slot now, rather than at its first operation.
pub fn enter() {
    Slot::current();
}

/// The calling thread's id.
pub fn tid() -> u32 {
    sys::tid()
}

/// Whether the calling thread records.
pub fn is_recorded() -> bool {
    Slot::current().is_some()
}

/// Whether the calling thread does not hold a lock, by its table, which has room for all that the thread holds.
pub fn has_no_entry(lock: u64) -> bool {
    Slot::current().is_some_and(|slot| !slot.has_overflowed() && slot.find(lock, is_held).is_none())
}

/// Whether the calling thread holds a lock in exclusive mode.
pub fn holds_alone(lock: u64) -> bool {
    let entry = Slot::existing().and_then(|slot| slot.find(lock, is_held));
    entry.is_some_and(|entry| !entry.has_flag(HELD_SHARED))
}

/// After an exclusive acquisition, drops stale HELD entries: other threads released the lock and did not find them.
/// To be called before the acquisition is recorded.
///
/// There may be several, because [`FastAcquisition`] does not look for them.
#[inline(always)]
pub fn drop_stale_entries<const FLAGS: Flags>(lock: u64) {
    if FLAGS & (SITE_SHARED | SITE_REENTRANT) != 0 {
        return;
    }
    let Some(slot) = Slot::existing() else { return };
    // Limited, because somebody may scribble on the table meanwhile.
    for _ in 0..HELD_MAX {
        let Some(entry) = slot.find(lock, is_held) else { return };
        entry.clear();
    }
}

/// The flags of an entry. `is_process_shared`: see [`HELD_PROCESS_SHARED`].
#[inline(always)]
fn entry_flags<const FLAGS: Flags>(is_process_shared: bool) -> u64 {
    Caller::entry_flags(FLAGS) | if is_process_shared { HELD_PROCESS_SHARED } else { 0 }
}

/// The lock was not free, and the thread is about to wait for it. `stack` is that of a function that the program has
/// called. Continue with what is returned.
#[cold]
#[inline(never)]
pub fn begin_wait<const FLAGS: Flags>(
    acquisition: Acquisition,
    lock: u64,
    caller: Caller,
    is_process_shared: bool,
    stack: StackPointer,
) -> Acquisition {
    acquisition.begin_wait(
        Waiter::new(caller, stack),
        lock,
        entry_flags::<FLAGS>(is_process_shared),
        Sites::<FLAGS>::wait(),
    )
}

/// The same for a lock of `rip.hpp`: `caller` is a place in the program, and no return address on the stack.
#[cold]
#[inline(never)]
pub fn begin_wait_at<const FLAGS: Flags>(
    acquisition: Acquisition,
    lock: u64,
    caller: Caller,
    stack: StackPointer,
) -> Acquisition {
    let waiter = Waiter::of_place(caller, stack);
    acquisition.begin_wait(waiter, lock, entry_flags::<FLAGS>(false), Sites::<FLAGS>::wait())
}

/// Begins an acquisition, before the lock is touched. `is_process_shared`: see [`HELD_PROCESS_SHARED`].
#[inline(always)]
pub fn begin_acquire<const FLAGS: Flags>(lock: u64, caller: Caller, is_process_shared: bool) -> Acquisition {
    let flags = entry_flags::<FLAGS>(is_process_shared);
    let pc = Sites::<FLAGS>::acquire_begin();
    Acquisition::begin(caller, lock, flags, pc, Sites::<FLAGS>::acquire_begin_timed)
}

/// Releases a lock by `unlock`, which returns 0 or an error number, and records that. `by_anyone`: whether a thread may
/// release it that has not acquired it. If the C library refuses, the lock is held as before, and `refused` is called.
#[inline(always)]
pub fn release<const FLAGS: Flags>(
    lock: u64,
    caller: Caller,
    by_anyone: impl FnOnce() -> bool,
    unlock: impl Fn() -> c_int,
    refused: impl FnOnce(c_int),
) -> c_int {
    let Some(fast) = FastRelease::begin(lock) else {
        return release_otherwise::<FLAGS>(lock, caller, by_anyone, unlock, refused);
    };
    let result = unlock();
    if result == 0 {
        fast.done(caller, lock, Sites::<FLAGS>::released(), Sites::<FLAGS>::released_timed);
    } else {
        fast.restore();
        refused(result);
    }
    result
}

#[inline(never)]
fn release_otherwise<const FLAGS: Flags>(
    lock: u64,
    caller: Caller,
    by_anyone: impl FnOnce() -> bool,
    unlock: impl Fn() -> c_int,
    refused: impl FnOnce(c_int),
) -> c_int {
    let by_anyone = by_anyone();
    let release = Release::begin(lock, by_anyone);
    let result = unlock();
    if result == 0 {
        if !by_anyone {
            release.forget_overflowed();
        }
        release.done(caller, lock, Sites::<FLAGS>::released(), Sites::<FLAGS>::released_timed());
    } else {
        release.restore();
        refused(result);
    }
    result
}

/// An acquisition in the usual case: the thread has a slot, and reads no clock.
///
/// While the lock's own code runs, only this is kept, in one register.
#[derive(Clone, Copy, Debug)]
pub struct FastAcquisition(FastEntry);

impl FastAcquisition {
    /// Before the lock is touched. `None`: it is another case, and nothing was recorded.
    #[inline(always)]
    pub fn begin<const FLAGS: Flags>(lock: u64, caller: Caller) -> Option<FastAcquisition> {
        FastAcquisition::begin_in::<FLAGS>(lock, caller, Slot::fast_free)
    }

    /// Like [`begin`](FastAcquisition::begin); also `None` if this thread already holds the lock.
    #[inline(always)]
    pub fn begin_if_new<const FLAGS: Flags>(lock: u64, caller: Caller) -> Option<FastAcquisition> {
        FastAcquisition::begin_in::<FLAGS>(lock, caller, Slot::fast_free_if_new)
    }

    #[inline(always)]
    fn begin_in<const FLAGS: Flags>(
        lock: u64,
        caller: Caller,
        free: impl FnOnce(Slot, u64) -> Option<FastEntry>,
    ) -> Option<FastAcquisition> {
        let slot = Slot::existing()?;
        if slot.reads_clock() {
            return None;
        }
        let entry = free(slot, lock)?;
        let pc = Sites::<FLAGS>::acquire_begin();
        let sequence = caller.plain_event(slot, [lock], pc);
        // The entry is still free: a signal handler that used it meanwhile has freed it.
        entry.enter(lock, sequence, caller.entry_pc(pc), Caller::entry_flags(FLAGS));
        Some(FastAcquisition(entry))
    }

    /// Acquired without waiting.
    #[inline(always)]
    pub fn acquired(self) {
        self.0.entry().acquired();
    }

    /// The lock was not free. Returns the acquisition to continue with, and its caller.
    #[inline]
    pub fn slow(self) -> (Acquisition, Caller) {
        let entry = self.0.entry();
        (Acquisition::of(entry), Caller(entry.pc()))
    }
}

/// The owner of a robust mutex has died, and the calling thread has acquired the mutex. To be called before the
/// acquisition is recorded.
#[cold]
#[inline(never)]
pub fn owner_died(lock: u64) {
    instance::request(Request::LOCK_ABANDONED, lock);
}

/// A thread that holds a recursive lock acquires it again.
#[derive(Clone, Copy, Debug)]
pub struct Recursion(Entry);

impl Recursion {
    /// Before the lock is touched. `None`: the thread does not hold the lock, by its table.
    pub fn begin<const FLAGS: Flags>(lock: u64, caller: Caller) -> Option<Recursion> {
        let slot = Slot::existing()?;
        let entry = slot.find(lock, is_held)?;
        if slot.times_all() {
            caller.event(slot, [slot.time()], [lock], Sites::<FLAGS>::acquire_begin_timed());
        } else {
            caller.event(slot, [], [lock], Sites::<FLAGS>::acquire_begin());
        }
        Some(Recursion(entry))
    }

    /// Acquired once more.
    pub fn acquired(self) {
        if let Some(mut entry) = Slot::current().and_then(|slot| self.0.held_within(slot)) {
            entry.set_since(entry.since(), entry.recursion() + 1);
        }
    }

    /// Not acquired: the thread holds it as many times as before.
    #[cold]
    pub fn failed<const FLAGS: Flags>(self, lock: u64, caller: Caller) {
        if let Some(slot) = Slot::existing() {
            caller.event(slot, [], [lock], Sites::<FLAGS>::try_failed());
        }
    }
}

/// A thread that blocks on something that nobody holds: a semaphore, the end of a thread, or a barrier.
#[derive(Clone, Copy, Debug)]
pub struct Blocking {
    blocked: Blocked,
    object: u64,
    caller: Caller,
}

impl Blocking {
    /// Before the thread blocks. `object` is the address of what it waits for, or with [`JOIN`] the id of a thread.
    /// `stack` is as in [`begin_wait`].
    #[inline(never)]
    pub fn begin<const FLAGS: Flags>(object: u64, caller: Caller, stack: StackPointer) -> Blocking {
        let blocked = Blocked::begin(Waiter::new(caller, stack), object, FLAGS, Sites::<FLAGS>::wait());
        Blocking { blocked, object, caller }
    }

    /// The thread waits at a barrier, a round of which takes so many threads.
    #[inline(never)]
    pub fn in_round(self, threads: u32) -> Blocking {
        Blocking { blocked: self.blocked.in_round(threads.into()), ..self }
    }

    /// The thread no longer blocks. `has_it`: whether it has what it waited for.
    #[inline(never)]
    pub fn end<const FLAGS: Flags>(self, has_it: bool) {
        self.blocked.end();
        tried::<FLAGS>(self.object, self.caller, has_it);
    }
}

/// A call that runs an initialiser, or waits for the thread that runs it: see `once`.
#[derive(Clone, Copy, Debug)]
pub struct Initialisation {
    run: Run,
    lock: u64,
    caller: Caller,
}

impl Initialisation {
    /// Before the call. `lock` is the address of what controls the initialisation. `is_running`: whether a thread
    /// seems to run the initialiser. `stack` is as in [`begin_wait`].
    #[inline(never)]
    pub fn begin(lock: u64, caller: Caller, is_running: bool, stack: StackPointer) -> Initialisation {
        let mut acquisition = begin_acquire::<ONCE>(lock, caller, false);
        if is_running {
            acquisition = begin_wait::<ONCE>(acquisition, lock, caller, false, stack);
        }
        Initialisation { run: Run::begin(acquisition, is_running), lock, caller }
    }

    /// The calling thread is about to run the initialiser.
    pub fn runs(&mut self) {
        self.run.runs();
    }

    /// The initialiser has returned, or an exception or the end of the thread has left it. The C library does not know
    /// that yet.
    pub fn has_run(&mut self) {
        self.run.has_run(self.lock);
    }

    /// The call is over, or has been left.
    pub fn end(self) {
        self.run.end(self.caller, self.lock, Sites::<ONCE>::released(), Sites::<ONCE>::released_timed());
    }
}

/// Begins a wait on a condition variable, before the lock is released. `pc` is a site of the kind CONDITION_WAIT, and
/// `stack` is as in [`begin_wait`].
pub fn begin_condition_wait(
    caller: Caller,
    lock: u64,
    condition: u64,
    pc: u64,
    stack: StackPointer,
) -> CondWait<Caller> {
    CondWait::begin(Waiter::new(caller, stack), lock, condition, pc).with_origin(caller)
}

/// The same for a lock of `rip.hpp`, as in [`begin_wait_at`].
pub fn begin_condition_wait_at(caller: Caller, lock: u64, condition: u64, pc: u64, stack: StackPointer) {
    CondWait::begin(Waiter::of_place(caller, stack), lock, condition, pc);
}

/// A thread has tried to acquire a unit of a semaphore, or has waited for what else nobody holds. `has_it`: whether it
/// has it.
#[inline(never)]
pub fn tried<const FLAGS: Flags>(object: u64, caller: Caller, has_it: bool) {
    let ends = Ends {
        has_it: Sites::<FLAGS>::acquired(),
        has_it_timed: Sites::<FLAGS>::acquired_timed(),
        failed: Sites::<FLAGS>::try_failed(),
    };
    blocked::tried(caller, object, has_it, ends);
}

/// A thread has posted a unit of a semaphore. Safe in a signal handler.
#[inline(never)]
pub fn sem_posted(semaphore: u64, caller: Caller) {
    type Own = Sites<SEMAPHORE>;
    Release::of(None).done(caller, semaphore, Own::released(), Own::released_timed());
}

/// The flags of events that are about a condition variable alone.
const CONDITION: Flags = 0;

/// A thread is about to destroy a condition variable on which a thread waits, or has just waited.
#[cold]
#[inline(never)]
pub fn destroys_in_use(condition: u64, caller: Caller) {
    if let Some(slot) = Slot::current() {
        caller.event(slot, [slot.time()], [condition], Sites::<CONDITION>::condition_destroyed());
    }
}

/// A thread is about to signal a condition variable. `is_heard`: whether a thread may wait on it.
#[inline(always)]
pub fn signals(condition: u64, caller: Caller, is_heard: bool) {
    let Some(slot) = Slot::current() else { return };
    if is_heard {
        caller.event(slot, [], [condition], Sites::<CONDITION>::condition_signalled());
    } else {
        caller.event(slot, [], [condition], Sites::<CONDITION>::condition_unheard());
    }
}

/// A call on a lock has failed, or is forbidden: `INCIDENT_*`.
pub fn incident(kind: u32, lock: u64, caller: Caller) {
    // The first mark of a process makes the ring.
    Slot::current();
    instance::note_incident(kind, lock, caller.0);
}

/// What is known of the holder of a lock whose life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastHolder {
    /// Nobody held it.
    None,
    /// A thread may have held it.
    Possible,
    /// The lock itself says that a thread held it.
    Certain,
}

/// A lock was destroyed.
#[inline(never)]
pub fn destroyed<const FLAGS: Flags>(lock: u64, caller: Caller, holder: LastHolder) {
    let Some(slot) = Slot::current() else { return };
    instance::unname_lock(lock);
    match holder {
        LastHolder::None => {}
        LastHolder::Possible => instance::request(Request::LOCK_DESTROYED, lock),
        LastHolder::Certain => instance::request(Request::HELD_LOCK_DESTROYED, lock),
    }
    caller.event(slot, [], [lock], Sites::<FLAGS>::destroyed());
}

/// Whether this number from unknown memory is the id of a living thread of this process.
fn may_live(tid: u32) -> bool {
    /// Linux gives threads no larger id.
    const TID_MAX: u32 = 1 << 22;
    // Most numbers are no id, and the kernel need not be asked.
    tid <= TID_MAX && !sys::avoids_calls() && !sys::thread_is_gone(sys::pid_by_call(), tid)
}

/// A lock was initialised. Nobody holds it, whatever the tables say of an earlier lock at its address.
///
/// `owner`: the thread that owned the earlier lock, if the memory was one. If that thread lives, this is the end of the
/// earlier lock, while it was held. The memory of another kind of object, or of a parent before a fork, names no thread
/// of this process.
#[inline(never)]
pub fn initialised<const FLAGS: Flags>(lock: u64, caller: Caller, owner: Option<u32>) {
    let Some(slot) = Slot::current() else { return };
    if owner.is_some_and(may_live) {
        destroyed::<FLAGS>(lock, caller, LastHolder::Certain);
    }
    // Limited, as in `drop_stale_entries`.
    for _ in 0..HELD_MAX {
        let Some(entry) = slot.find(lock, is_held) else { break };
        entry.clear();
    }
    instance::lock_initialised(lock);
    caller.event(slot, [slot.time()], [lock], Sites::<FLAGS>::initialised());
}
