//! Instances of librip in one process: what each shows to the others, and which of them owns the ring.
//!
//! Statically linked Rust code is not shared between modules, so the executable and each `cdylib` with marks has an
//! instance of librip, with statics and thread-local blocks of its own. Each has an [`Anchor`]. The instance in which
//! the ring was made owns it. The others join: their marks go into the same slots, one slot a thread.
//!
//! This file defines the type of the anchor, and the calls to the owner. `runtime` has this instance's anchor, and the
//! functions in it.

#![allow(unsafe_code, reason = "the owner's anchor is a static of another module")]

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};

use super::channels::Channels;
use super::current;
use super::loader;
use super::task_slot::{FuturePlace, TaskSlot, Turn};
use super::usage::Measured;
use crate::arch::{self, Settings, ThreadBlock};
use crate::ring::Ring;
use crate::ring::calls::CallPlace;
use crate::ring::process_sites::NewSite;
use crate::sys;
use librip_format::{AwaitEntry, Header, HeldLock};

/// Changes when [`Anchor`] or [`ThreadBlock`] changes.
pub(crate) const ANCHOR_ABI: u64 = 0x7269_7061_6e63_0011;

/// What an instance shows to the others.
///
/// None of its functions unwinds. Marks and locks call them with signals blocked, so that no cancellation interrupts
/// them. `join` and `refresh` run in ordinary code.
#[repr(C)]
pub(crate) struct Anchor {
    /// [`ANCHOR_ABI`].
    pub(crate) abi: u64,
    /// The instance that owns the ring, or null.
    pub(crate) owner: AtomicPtr<Anchor>,
    /// In the owner: [`Settings::mask`].
    pub(crate) mask: AtomicU64,
    /// In the owner: [`Settings::clock`].
    pub(crate) clock: AtomicU32,
    /// Not 0 while this instance makes a ring: another one does not begin to make one.
    pub(crate) is_starting: AtomicU32,
    /// In the owner: not 0 if a thread may have ended without releasing its locks.
    pub(crate) has_left_locks: AtomicU32,
    /// In the owner: not 0 if a lock was named.
    pub(crate) has_lock_names: AtomicU32,
    /// In the owner: gives a block of the calling thread a cursor.
    pub(crate) attach: extern "C" fn(&ThreadBlock),
    /// Makes this instance use another's ring.
    pub(crate) join: extern "C" fn(&'static Anchor),
    /// In the owner: registers the modules that were loaded since the last time.
    pub(crate) refresh: extern "C" fn(),
    /// In the owner: does what a [`Request`] says. `lock` is an address, or 0 if the request does not concern a lock.
    pub(crate) request: extern "C" fn(request: Request, lock: u64),
    /// In the owner: notes an incident with a lock: see [`note_incident`].
    pub(crate) note_incident: extern "C" fn(kind: u32, lock: u64, caller: u64),
    /// In the owner: names a lock. The name is this many bytes.
    pub(crate) name_lock: extern "C" fn(lock: u64, name: *const u8, len_bytes: usize),
    /// In the owner: enters the location of a call.
    pub(crate) enter_call: extern "C" fn(place: &CallPlace<'_>),
    /// In the owner: enters a text to which events refer. It is this many bytes.
    pub(crate) enter_text: extern "C" fn(text: *const u8, len_bytes: usize),
    /// In the owner: where the ring's channels are.
    pub(crate) channels: Channels,
    /// In the owner: enters a channel with this name and this number of words for each thread. Returns its index;
    /// `u64::MAX` if there is no room.
    pub(crate) enter_channel: extern "C" fn(name: *const u8, len_bytes: usize, words: u32) -> u64,
    /// In the owner: gives the calling thread a history in a channel.
    pub(crate) begin_history: extern "C" fn(channel: u64, words: u32),
    /// In the owner: enters a site of this process. Returns whether there was room.
    pub(crate) enter_site: extern "C" fn(site: &NewSite<'_>) -> bool,
    /// In the owner: see [`task`](super::task).
    pub(crate) tasks: TaskCalls,
    /// In the owner: the calling thread releases its slot, or (true) may have one again.
    pub(crate) set_participation: extern "C" fn(takes_part: bool),
    /// In the owner: see [`measure`].
    pub(crate) measure: extern "C" fn(into: &mut Measured, age_max_ns: u64),
}

/// What an instance asks of the owner of the ring about tasks. Signals need not be blocked: a handler that makes tasks
/// too gets other slots.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct TaskCalls {
    /// See [`task::claim`](super::task::claim). The name is this many bytes.
    pub(crate) claim:
        extern "C" fn(location: u64, origin: u64, name: *const u8, len_bytes: usize) -> TaskSlot,
    pub(crate) end: extern "C" fn(slot: &TaskSlot),
    pub(crate) set_origin: extern "C" fn(slot: &TaskSlot, origin: u64),
    /// The slot exists, here and in `end_turn`.
    pub(crate) begin_turn: unsafe extern "C" fn(slot: &TaskSlot) -> Turn,
    pub(crate) end_turn: unsafe extern "C" fn(slot: &TaskSlot, turn: Turn, wakers: u32),
    pub(crate) woken: extern "C" fn(slot: &TaskSlot),
    pub(crate) lower_wakers: extern "C" fn(slot: &TaskSlot, wakers: u32),
    /// See [`polls`](super::polls).
    pub(crate) woken_ago: extern "C" fn(slot: &TaskSlot, ago_ns: u64),
    pub(crate) are_polls_timed: extern "C" fn() -> bool,
    /// See [`task::rests`](super::task::rests).
    pub(crate) rests: extern "C" fn(begins: bool),
    pub(crate) left_worker: extern "C" fn(),
    /// See [`futures`](super::futures).
    pub(crate) poll_entry: extern "C" fn(held: &HeldLock, is_direct: bool),
    pub(crate) begin_future: extern "C" fn(location: u64) -> FuturePlace,
    pub(crate) poll_future: extern "C" fn(place: &FuturePlace) -> *const AwaitEntry,
    pub(crate) leave_future: extern "C" fn(former: *const AwaitEntry),
    pub(crate) end_future: extern "C" fn(place: &FuturePlace),
}

const _: () = assert!(core::mem::offset_of!(Anchor, abi) == 0, "all versions of anchors start with it");

/// What an instance asks of the one that owns the ring.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request(u32);

impl Request {
    /// The calling thread has released a lock that it did not hold.
    pub(crate) const LOCK_RELEASED: Request = Request(1);
    /// A lock was destroyed that a thread may hold.
    pub(crate) const LOCK_DESTROYED: Request = Request(2);
    /// A lock found no room in its thread's table.
    pub(crate) const TABLE_OVERFLOWED: Request = Request(3);
    /// It is time to measure the clock's rate again.
    pub(crate) const RECALIBRATE_CLOCK: Request = Request(4);
    /// The calling thread has got a lock whose owner has died.
    pub(crate) const LOCK_ABANDONED: Request = Request(5);
    /// The calling thread has initialised a lock.
    pub(crate) const LOCK_INITIALISED: Request = Request(6);
    /// The calling thread is about to use a lock that any thread may release.
    pub(crate) const LOCK_WITHOUT_GUARD: Request = Request(7);
    /// A lock was destroyed that a thread holds.
    pub(crate) const HELD_LOCK_DESTROYED: Request = Request(8);
    /// A span found no room in its thread's table.
    pub(crate) const SPANS_OVERFLOWED: Request = Request(9);
    /// The calling thread's history is to be kept, from a sequence on.
    pub(crate) const CAPTURE: Request = Request(10);
    /// The program is about to restrict its system calls.
    pub(crate) const AVOID_SYSTEM_CALLS: Request = Request(11);
    /// As [`Request::CAPTURE`], of a cycle that was not slow.
    pub(crate) const CAPTURE_USUAL: Request = Request(12);

    /// Counts what is asked for, if that is all that is asked for.
    pub(crate) fn count_in(self, header: &Header) {
        // ORDERING: relaxed, statistics.
        match self {
            Request::TABLE_OVERFLOWED => drop(header.held_overflows.fetch_add(1, Relaxed)),
            Request::SPANS_OVERFLOWED => drop(header.span_overflows.fetch_add(1, Relaxed)),
            _ => {}
        }
    }
}

/// The owner, as this instance knows it.
static OWNER: AtomicPtr<Anchor> = AtomicPtr::new(ptr::null_mut());

/// The instance that owns the ring; `None` before there is a ring.
pub(crate) fn owner() -> Option<&'static Anchor> {
    // ORDERING: acquire, pairs with the release in `set_owner`: the owner's ring is ready.
    let owner = OWNER.load(Acquire);
    // SAFETY: null, or an anchor of a module that is never unloaded: it is pinned, or is the executable.
    unsafe { owner.as_ref() }
}

/// Makes `owner` the instance in whose ring this module's marks record, from now on and for good.
pub(crate) fn set_owner(owner: &'static Anchor) {
    arch::prepare_entry();
    // ORDERING: relaxed: the owner stored them before it published itself, which the caller has acquired or done.
    let settings = Settings { mask: owner.mask.load(Relaxed), clock: owner.clock.load(Relaxed) };
    arch::module().open(settings, || {
        // ORDERING: release, pairs with the acquire in `owner`.
        OWNER.store(ptr::from_ref(owner).cast_mut(), Release);
    });
}

/// Whether this instance owns the ring.
static IS_OWNER: AtomicBool = AtomicBool::new(false);

/// This instance owns the ring.
pub(crate) fn set_is_owner() {
    // ORDERING: relaxed: whoever does not see it asks the owner by its anchor, with the same result.
    IS_OWNER.store(true, Relaxed);
}

/// Whether this instance owns the ring. If so, its functions can be called without the anchor.
#[inline(always)]
pub(crate) fn is_owner() -> bool {
    // ORDERING: relaxed, as above.
    IS_OWNER.load(Relaxed)
}

/// The ring, if this is the instance that owns it. The caller then needs no request, which blocks signals.
pub(crate) fn own_ring() -> Option<&'static Ring> {
    current::ring().filter(|_| is_owner())
}

/// Whether the calling thread may record: it has a slot, or may get one.
#[inline]
pub(crate) fn may_record() -> bool {
    arch::module().is_open()
}

/// Whether this instance records, in its own ring or in another's.
pub(crate) fn is_recording() -> bool {
    owner().is_some()
}

/// Sends a request to the owner. Safe in a signal handler.
pub(crate) fn request(request: Request, lock: u64) {
    if let Some(owner) = owner() {
        sys::with_signals_blocked(|| (owner.request)(request, lock));
    }
}

/// Counts something in the header, by a request if this is not the owner.
pub(crate) fn count(what: Request) {
    match own_ring() {
        Some(ring) => what.count_in(ring.header()),
        None => request(what, 0),
    }
}

/// Notes an incident of this kind, `INCIDENT_*`, in the ring. Safe in a signal handler.
#[cfg(feature = "interpose")]
pub(crate) fn note_incident(kind: u32, lock: u64, caller: u64) {
    if let Some(owner) = owner() {
        sys::with_signals_blocked(|| (owner.note_incident)(kind, lock, caller));
    }
}

/// A thread has ended, or may end unnoticed, without having released all of its locks.
pub(crate) fn note_left_locks() {
    if let Some(owner) = owner() {
        // ORDERING: relaxed: a thread that initialises such a lock was synchronised with the end of its holder, or the
        // lock is used by both at once, which is an error.
        owner.has_left_locks.store(1, Relaxed);
    }
}

/// A lock was initialised: if a thread that has ended may hold it, the holder's entry is freed.
#[cfg(feature = "interpose")]
pub(crate) fn lock_initialised(lock: u64) {
    // ORDERING: relaxed, as above.
    if owner().is_some_and(|owner| owner.has_left_locks.load(Relaxed) != 0) {
        request(Request::LOCK_INITIALISED, lock);
    }
}

/// Names a lock in the ring. An empty name removes the present one.
pub(crate) fn name_lock(lock: u64, name: &[u8]) {
    if let Some(owner) = owner() {
        if !name.is_empty() {
            // ORDERING: relaxed: whoever destroys a lock that another thread has named was synchronised with it.
            owner.has_lock_names.store(1, Relaxed);
        }
        sys::with_signals_blocked(|| (owner.name_lock)(lock, name.as_ptr(), name.len()));
    }
}

/// Removes the name of a lock that is destroyed. Few programs name any lock, and then it takes a nanosecond.
pub(crate) fn unname_lock(lock: u64) {
    // ORDERING: relaxed, as above.
    if owner().is_some_and(|owner| owner.has_lock_names.load(Relaxed) != 0) {
        name_lock(lock, b"");
    }
}

/// Enters the location of a call in the ring. Safe in a signal handler.
pub(crate) fn enter_call(place: &CallPlace<'_>) {
    if let Some(owner) = owner() {
        sys::with_signals_blocked(|| (owner.enter_call)(place));
    }
}

/// Enters a text to which events refer in the ring. Safe in a signal handler.
pub(crate) fn enter_text(text: &'static [u8]) {
    if let Some(owner) = owner() {
        sys::with_signals_blocked(|| (owner.enter_text)(text.as_ptr(), text.len()));
    }
}

/// Enters a channel in the ring. Returns its index; `None` if there is no room. Safe in a signal handler.
pub(crate) fn enter_channel(name: &[u8], words: u32) -> Option<u64> {
    let enter = |owner: &Anchor| (owner.enter_channel)(name.as_ptr(), name.len(), words);
    let index = owner().map(|owner| sys::with_signals_blocked(|| enter(owner)));
    index.filter(|&index| index != u64::MAX)
}

/// Gives the calling thread a history in a channel, if there is room. Safe in a signal handler.
pub(crate) fn begin_history(channel: u64, words: u32) {
    if let Some(owner) = owner() {
        sys::with_signals_blocked(|| (owner.begin_history)(channel, words));
    }
}

/// Enters a site of this process in the ring. Returns whether it is there now. Safe in a signal handler.
pub(crate) fn enter_site(site: &NewSite<'_>) -> bool {
    owner().is_some_and(|owner| sys::with_signals_blocked(|| (owner.enter_site)(site)))
}

/// Registers modules that were loaded since, unless there is no memory for that.
pub(crate) fn refresh_modules() {
    if let Some(owner) = owner() {
        sys::with_errno_kept(|| {
            if loader::has_changed() && sys::has_memory() {
                (owner.refresh)();
            }
        });
    }
}

pub(crate) fn avoid_system_calls() {
    if arch::module().is_open() {
        // This thread goes on to record.
        arch::enter();
    }
    // This instance makes calls of its own, also if another one has made the ring.
    sys::avoid_calls();
    request(Request::AVOID_SYSTEM_CALLS, 0);
}

/// Gives a task a slot: see [`task::claim`](super::task::claim).
pub(crate) fn claim_task(location: u64, origin: u64, name: &[u8]) -> TaskSlot {
    let claim = |owner: &Anchor| (owner.tasks.claim)(location, origin, name.as_ptr(), name.len());
    owner().map_or(TaskSlot::NONE, claim)
}

/// The future that has this entry of the held-lock table is polled: see `futures`.
pub(crate) fn poll_entry(held: &HeldLock, is_direct: bool) {
    if let Some(owner) = owner() {
        (owner.tasks.poll_entry)(held, is_direct);
    }
}

/// The task is no more.
pub(crate) fn end_task(slot: &TaskSlot) {
    if let Some(owner) = owner() {
        (owner.tasks.end)(slot);
    }
}

/// What kind of task it is, and where it runs: see [`task::set_origin`](super::task::set_origin).
pub(crate) fn set_task_origin(slot: &TaskSlot, origin: u64) {
    if let Some(owner) = owner() {
        (owner.tasks.set_origin)(slot, origin);
    }
}

/// A poll of the task is about to begin, which was woken so long ago: see [`polls`](super::polls).
pub(crate) fn woken_ago(slot: &TaskSlot, ago: core::time::Duration) {
    if let Some(owner) = owner() {
        (owner.tasks.woken_ago)(slot, u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX));
    }
}

/// What the calling thread has used, as the kernel answered at most so long ago: see
/// [`usage::measure`](super::usage::measure). It blocks no signals.
pub(crate) fn measure(age_max_ns: u64) -> Measured {
    let mut measured = Measured::default();
    if let Some(owner) = owner() {
        (owner.measure)(&mut measured, age_max_ns);
    }
    measured
}

/// Releases the calling thread's slot, or (true) lets its next mark claim one.
#[cfg(feature = "capi")]
pub(crate) fn set_participation(takes_part: bool) {
    if let Some(owner) = owner() {
        sys::with_signals_blocked(|| (owner.set_participation)(takes_part));
    }
}
