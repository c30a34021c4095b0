//! What a future records that acquires a lock, or waits for something that nobody holds.
//!
//! It follows the protocol of `protocol`, a poll at a time. Between two polls other code runs on the thread, the future
//! may move to another thread with its task, and it may be dropped at any time. So an acquisition and a hold are values
//! that remember their entry, and do not search for it.
//!
//! # Whose entry it is
//!
//! An entry is in the table of the slot in which it was made: of a task, or of a thread whose future belongs to no
//! task. A future or a guard may be sent to another task, and may outlive its own. So an entry that is not in the
//! present slot is changed by an exchange, and only if it is still the same: its lock word has the sequence of its
//! event, and its meta word has the place. The owner of the other slot does not change it meanwhile, because it is in
//! use; if the slot gets another owner, the claim clears the entry, and the exchange fails.
//!
//! If no task is polled, the future belongs to no recorded task: another thread may poll it next, and its guard goes
//! with it. So a release by another thread is nothing special then. In a task it hands the lock over.
//!
//! A future that finds no room in the table is not counted while it waits. A hold without an entry is counted in the
//! slot, and the guard remembers that.

#![allow(unsafe_code, reason = "sites are assembly")]

use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::sync::atomic::Ordering::Relaxed;
use core::task::{Context, Poll, Waker, ready};

use crate::lock::blocked::{self, Blocked, Ends};
use crate::lock::protocol::Acquisition;
use crate::lock::record;
use crate::lock::site::{Flags, Origin, Sites, define_sites, wrapper_site};
use crate::lock::table::{Entry, Slot, Unlisted};
use crate::process::instance::{self, Request};
use crate::process::task_waker::is_of_task;
use librip_format::{HELD_HELD, HELD_OF_FUTURE, HELD_RELEASING, HELD_SHARED, HELD_SINCE, TASK_ID};

define_sites!(AsyncSites);

/// Before all who wait at an object are woken. `is_heard`: whether anyone may wait.
pub(crate) fn wakes_all<const USE: Flags>(at: &'static Location<'static>, object: u64, is_heard: bool) {
    record::signals(AsyncSites::<USE>(at), object, is_heard);
}

/// A lock that a future acquires: its address, and where the program acquires it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) lock: u64,
    pub(crate) at: &'static Location<'static>,
    /// A unit of something of which there are several: whoever waits, waits for all that hold one.
    pub(crate) is_unit: bool,
}

/// An entry that a future or a guard has made, wherever that goes.
#[derive(Clone, Copy, Debug)]
struct Kept {
    entry: Entry,
    /// The lock word of the entry: the address, and the sequence of the event.
    word: u64,
}

impl Kept {
    #[inline]
    fn of(entry: Entry) -> Kept {
        Kept { entry, word: entry.word() }
    }

    /// Whether it is in the slot in which the calling thread records now.
    #[inline]
    fn is_here(&self) -> bool {
        self.entry.is_current() && self.entry.is_same(self.word)
    }

    /// Frees the entry in another slot, if it is still there. Returns whether it was.
    fn free_elsewhere(&self) -> bool {
        self.entry.free_elsewhere(self.word)
    }

    /// The future that has the entry was polled with this waker, and goes on to wait.
    fn polled(&self, waker: &Waker) {
        instance::poll_entry(self.entry.held(), is_of_task(waker, self.entry.slot_words()));
    }
}

/// Says of an entry that a future has it.
#[inline]
fn of_future(mut entry: Entry) -> Entry {
    entry.set_since(entry.since(), HELD_OF_FUTURE);
    entry
}

/// A future found no room in the table. While it waits it holds nothing, so that does not count.
#[cold]
fn uncounted() {
    if let Some(slot) = Slot::existing() {
        slot.forget_overflowed();
    }
}

/// Whether the calling thread polls a task, which this slot is then.
#[inline]
fn is_task(slot: Slot) -> bool {
    // ORDERING: relaxed: the owner of a slot has written it before its first mark.
    slot.header().tid.load(Relaxed) & TASK_ID != 0
}

#[derive(Debug)]
pub(crate) struct FutureAcquisition<const USE: Flags> {
    target: Target,
    /// `None` if there was no slot, or no room in it.
    kept: Option<Kept>,
    stage: Stage,
}

/// How far an acquisition has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The lock was not tried, or the acquisition has ended.
    Idle,
    Trying,
    Waiting,
}

impl<const USE: Flags> FutureAcquisition<USE> {
    pub(crate) const fn new(target: Target) -> FutureAcquisition<USE> {
        FutureAcquisition { target, kept: None, stage: Stage::Idle }
    }

    /// Before the lock is tried. Nothing happens if it was tried before, or if the process does not record.
    #[inline]
    pub(crate) fn begin(&mut self) {
        if self.stage == Stage::Idle && instance::may_record() {
            self.stage = Stage::Trying;
            self.kept = self.enter();
        }
    }

    #[inline]
    fn enter(&self) -> Option<Kept> {
        let sites = AsyncSites::<USE>(self.target.at);
        let flags = <AsyncSites<USE> as Sites>::Origin::entry_flags(USE);
        let begin = || sites.acquire_begin_timed();
        let entry = match Slot::current() {
            Some(slot) if !is_task(slot) => self.enter_beside(slot, flags, begin()),
            _ => Acquisition::begin(sites.origin(), self.target.lock, flags, 0, begin).entry(),
        };
        if entry.is_none() {
            uncounted();
        }
        entry.map(Kept::of)
    }

    /// The thread polls no recorded task. The event says that it is a future's, which a call could not say.
    fn enter_beside(&self, slot: Slot, flags: u64, pc_timed: u64) -> Option<Entry> {
        let (origin, lock) = (AsyncSites::<USE>(self.target.at).origin(), self.target.lock);
        let time = if slot.times_all() { slot.time() } else { 0 };
        let sequence = origin.event(slot, [time], [lock], pc_timed);
        let mut entry = slot.enter_lock(lock, sequence, origin.entry_pc(pc_timed), flags)?;
        if time != 0 {
            entry.set_since(time, 0);
        }
        Some(entry)
    }

    /// The poll with this waker has returned without the lock.
    pub(crate) fn pending(&mut self, waker: &Waker) {
        let sites = AsyncSites::<USE>(self.target.at);
        let flags = <AsyncSites<USE> as Sites>::Origin::entry_flags(USE);
        let is_elsewhere = self.kept.as_ref().is_some_and(|kept| !kept.is_here());
        if is_elsewhere {
            // Another task has got the future.
            self.begin_here();
        }
        if is_elsewhere || self.stage != Stage::Waiting {
            self.stage = Stage::Waiting;
            let begun = Acquisition::of_entry(self.kept.map(|kept| kept.entry));
            let waiting = begun.begin_wait_of_future(sites.origin(), self.target.lock, flags, sites.wait());
            self.kept = waiting.entry().map(Kept::of);
        }
        if let Some(kept) = self.kept {
            kept.polled(waker);
        }
    }

    /// Gives up the entry in another slot, and begins anew in this one.
    fn begin_here(&mut self) {
        if let Some(kept) = self.kept.take() {
            kept.free_elsewhere();
        }
        self.kept = self.enter();
    }

    /// The lock was acquired. `None` if the process does not record.
    #[inline]
    pub(crate) fn acquired(&mut self) -> Option<FutureHold<USE>> {
        if self.stage == Stage::Idle {
            return None;
        }
        let is_here = self.kept.is_none_or(|kept| kept.is_here());
        if !is_here {
            self.begin_here();
        }
        let begun = Acquisition::of_entry(self.kept.map(|kept| kept.entry));
        if self.stage == Stage::Waiting && is_here {
            begun.acquired_after_wait();
        } else {
            begun.acquired();
        }
        self.stage = Stage::Idle;
        // The last entry of a table has no room for a hold.
        let entry = self.kept.take().map(|kept| kept.entry.reread());
        let mut entry = entry.filter(|entry| entry.is_current() && entry.state() == HELD_HELD);
        if let Some(entry) = &mut entry {
            *entry = of_future(*entry);
            if self.target.is_unit {
                entry.set_flag(HELD_SHARED, true);
            }
            instance::poll_entry(entry.held(), false);
        }
        let (kept, unlisted) = match (entry, Slot::existing()) {
            (Some(entry), Some(slot)) => (Some((Kept::of(entry), is_task(slot))), None),
            (_, slot) => (None, slot.map(Slot::count_unlisted)),
        };
        Some(FutureHold { lock: self.target.lock, kept, unlisted })
    }

    /// The lock was acquired, or the future has failed.
    #[inline]
    fn ended(&mut self, has_it: bool) -> Option<FutureHolding<USE>> {
        if has_it {
            return self.acquired().map(FutureHolding);
        }
        self.failed();
        None
    }

    /// It was not acquired: the future was dropped, or has failed.
    #[cold]
    fn failed(&mut self) {
        if self.stage == Stage::Idle {
            return;
        }
        self.stage = Stage::Idle;
        let sites = AsyncSites::<USE>(self.target.at);
        match self.kept.take() {
            Some(kept) if !kept.is_here() => drop(kept.free_elsewhere()),
            kept => {
                if let Some(kept) = kept {
                    kept.entry.clear();
                }
                if let Some(slot) = Slot::existing() {
                    sites.origin().event(slot, [], [self.target.lock], sites.try_failed());
                }
            }
        }
    }
}

impl<const USE: Flags> Drop for FutureAcquisition<USE> {
    #[inline]
    fn drop(&mut self) {
        if self.stage != Stage::Idle {
            self.failed();
        }
    }
}

/// A lock that was acquired by a future, until it is released. It may be sent to another task.
#[derive(Debug)]
pub(crate) struct FutureHold<const USE: Flags> {
    lock: u64,
    /// The entry, and whether it is in the slot of a task. `None` if there was no slot, or no room in it, or the
    /// release has begun.
    kept: Option<(Kept, bool)>,
    /// There was no room: where that is counted.
    unlisted: Option<Unlisted>,
}

impl<const USE: Flags> FutureHold<USE> {
    /// Before the lock is released. [`FutureRelease::done`] comes after it.
    #[inline]
    pub(crate) fn begin_release(&mut self) -> FutureRelease<USE> {
        let lock = self.lock;
        if let Some(unlisted) = self.unlisted.take() {
            unlisted.forget();
        }
        let Some((mut kept, is_of_task)) = self.kept.take() else {
            return FutureRelease { lock, kept: None };
        };
        let is_here = kept.is_here();
        if is_here {
            kept.entry.set_state(HELD_RELEASING);
        } else if kept.free_elsewhere() && is_of_task {
            // Whoever has the guard may release the lock: from now on nobody is taken for its holder for certain.
            instance::request(Request::LOCK_WITHOUT_GUARD, lock);
        }
        FutureRelease { lock, kept: is_here.then_some(kept) }
    }

    /// It is held in shared mode from now on. It was not released.
    pub(crate) fn downgraded(&mut self) {
        if let Some((kept, _)) = self.kept.as_mut().filter(|(kept, _)| kept.is_here()) {
            kept.entry.set_flag(HELD_SHARED, true);
        }
    }

    /// The same hold, of another use of the lock.
    fn used_as<const TO: Flags>(mut self) -> FutureHold<TO> {
        FutureHold { lock: self.lock, kept: self.kept.take(), unlisted: self.unlisted.take() }
    }

    /// Nobody will release it: its permits are given away.
    pub(crate) fn forget(mut self) {
        self.begin_release().forget();
    }
}

impl<const USE: Flags> Drop for FutureHold<USE> {
    fn drop(&mut self) {
        if self.kept.is_some() || self.unlisted.is_some() {
            self.begin_release().done();
        }
    }
}

#[derive(Debug)]
pub(crate) struct FutureRelease<const USE: Flags> {
    lock: u64,
    kept: Option<Kept>,
}

impl<const USE: Flags> FutureRelease<USE> {
    #[inline]
    pub(crate) fn done(self) {
        let Some(slot) = Slot::existing() else { return };
        let mut since = 0;
        if let Some(kept) = self.kept.filter(|kept| kept.entry.is_of(slot)) {
            since = if kept.entry.has_flag(HELD_SINCE) { kept.entry.since() } else { 0 };
            kept.entry.clear();
        }
        let lock = self.lock;
        if since != 0 || slot.times_all() {
            slot.event(([slot.time(), since], [], [lock]), released_timed::<USE>());
        } else {
            slot.event(([], [], [lock]), released::<USE>());
        }
    }

    /// It is not held any more, and was not released.
    fn forget(self) {
        if let (Some(kept), Some(slot)) = (self.kept, Slot::existing()) {
            kept.entry.clear_within(slot);
        }
    }
}

fn released<const USE: Flags>() -> u64 {
    wrapper_site!(KIND_LOCK_RELEASED, USE, [OPERAND_LOCK])
}

fn released_timed<const USE: Flags>() -> u64 {
    wrapper_site!(KIND_LOCK_RELEASED, USE, [OPERAND_TIME, OPERAND_SINCE, OPERAND_LOCK])
}

/// A wait of a future for something that nobody holds.
#[derive(Debug)]
pub(crate) struct FutureBlocked<const USE: Flags> {
    target: Target,
    kept: Option<Kept>,
    /// Whether a poll has returned without it.
    has_blocked: bool,
    /// How many a round takes, at a barrier; 0 otherwise.
    round: u64,
}

impl<const USE: Flags> FutureBlocked<USE> {
    pub(crate) fn new(target: Target, round: u64) -> FutureBlocked<USE> {
        FutureBlocked { target, kept: None, has_blocked: false, round }
    }

    /// The poll with this waker has returned, and the wait goes on.
    pub(crate) fn pending(&mut self, waker: &Waker) {
        let is_elsewhere = self.kept.is_some_and(|kept| !kept.is_here());
        if is_elsewhere {
            // Another task has got the future.
            self.clear();
        }
        if !self.has_blocked || is_elsewhere {
            self.has_blocked = true;
            let sites = AsyncSites::<USE>(self.target.at);
            let blocked = Blocked::begin_of_future(sites.origin(), self.target.lock, USE, sites.wait());
            let blocked = if self.round > 0 { blocked.in_round(self.round) } else { blocked };
            self.kept = blocked.entry().map(Kept::of);
        }
        if let Some(kept) = self.kept {
            kept.polled(waker);
        }
    }

    /// The wait has ended. `has_it`: whether with what the future waited for. A wait that did not block is recorded
    /// only if `is_noted`.
    pub(crate) fn ended(mut self, has_it: bool, is_noted: bool) {
        self.clear();
        if self.has_blocked || is_noted {
            self.tried(has_it);
        }
        self.has_blocked = false;
    }

    fn clear(&mut self) {
        match self.kept.take() {
            Some(kept) if !kept.is_here() => drop(kept.free_elsewhere()),
            Some(kept) => kept.entry.clear(),
            None => {}
        }
    }

    fn tried(&self, has_it: bool) {
        let sites = AsyncSites::<USE>(self.target.at);
        let ends = Ends {
            has_it: sites.acquired(),
            has_it_timed: sites.acquired_timed(),
            failed: sites.try_failed(),
        };
        blocked::tried(sites.origin(), self.target.lock, has_it, ends);
    }
}

impl<const USE: Flags> Drop for FutureBlocked<USE> {
    fn drop(&mut self) {
        self.clear();
        if self.has_blocked {
            self.tried(false);
        }
    }
}

/// A future that acquires a lock: see [`crate::task::lock::acquire`].
pub struct Acquire<const USE: Flags, F: Future> {
    future: F,
    has_it: fn(&F::Output) -> bool,
    acquisition: FutureAcquisition<USE>,
}

impl<const USE: Flags, F: Future> Acquire<USE, F> {
    pub(crate) fn new(future: F, target: Target, has_it: fn(&F::Output) -> bool) -> Acquire<USE, F> {
        Acquire { future, has_it, acquisition: FutureAcquisition::new(target) }
    }
}

impl<const USE: Flags, F: Future> Future for Acquire<USE, F> {
    type Output = (F::Output, Option<FutureHolding<USE>>);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: the future is not moved, and nothing else is pinned.
        let this = unsafe { self.get_unchecked_mut() };
        this.acquisition.begin();
        // SAFETY: it is pinned, because the whole is, and is dropped where it is.
        let future = unsafe { Pin::new_unchecked(&mut this.future) };
        let Poll::Ready(output) = future.poll(cx) else {
            this.acquisition.pending(cx.waker());
            return Poll::Pending;
        };
        let hold = this.acquisition.ended((this.has_it)(&output));
        Poll::Ready((output, hold))
    }
}

/// A future that acquires a lock which is mostly free: see [`crate::task::lock::acquire_free`].
///
/// It is made and moved at each acquisition, so it is one future and not several around one another. What waits is made
/// only if the lock is not free, in its place.
pub struct AcquireFree<const USE: Flags, P, A, W, F, H, M> {
    ways: Ways<P, A, W, H, M>,
    /// What waits, if the lock was not free.
    waiting: Option<F>,
    acquisition: FutureAcquisition<USE>,
    is_ready: bool,
}

/// How a lock that is mostly free is acquired.
#[derive(Debug)]
pub struct Ways<P, A, W, H, M> {
    /// Whether the task may go on now.
    pub proceed: fn(&mut Context<'_>) -> Poll<P>,
    /// Tries to acquire the lock, with what `proceed` has returned. Returns what waiting would, or `None`.
    pub attempt: A,
    /// Makes the future that waits for the lock.
    pub wait: W,
    /// Whether the output of an attempt, or of a wait, says that the lock was acquired.
    pub has_it: H,
    /// Makes the output of the whole, of that output and of the hold.
    pub map: M,
}

impl<const USE: Flags, P, A, W, F, H, M> AcquireFree<USE, P, A, W, F, H, M> {
    #[inline(always)]
    pub(crate) fn new(target: Target, ways: Ways<P, A, W, H, M>) -> AcquireFree<USE, P, A, W, F, H, M> {
        AcquireFree { ways, waiting: None, acquisition: FutureAcquisition::new(target), is_ready: false }
    }
}

impl<const USE: Flags, P, A, W, F, H, M, O> Future for AcquireFree<USE, P, A, W, F, H, M>
where
    A: FnMut(P) -> Option<F::Output>,
    W: FnMut() -> F,
    F: Future,
    H: FnMut(&F::Output) -> bool,
    M: FnMut((F::Output, Option<FutureHolding<USE>>)) -> O,
{
    type Output = O;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<O> {
        // SAFETY: what waits is not moved, and nothing else is pinned.
        let this = unsafe { self.get_unchecked_mut() };
        assert!(!this.is_ready, "the future of a lock was polled after it was ready");
        let mut output = None;
        if this.waiting.is_none() {
            let proceeds = ready!((this.ways.proceed)(cx));
            this.acquisition.begin();
            output = (this.ways.attempt)(proceeds);
        }
        let output = match output {
            Some(output) => output,
            None => {
                let waiting = this.waiting.get_or_insert_with(&mut this.ways.wait);
                // SAFETY: it is pinned, because the whole is, and is dropped where it is.
                let Poll::Ready(output) = unsafe { Pin::new_unchecked(waiting) }.poll(cx) else {
                    this.acquisition.pending(cx.waker());
                    return Poll::Pending;
                };
                output
            }
        };
        this.is_ready = true;
        let hold = this.acquisition.ended((this.ways.has_it)(&output));
        Poll::Ready((this.ways.map)((output, hold)))
    }
}

/// A lock that was acquired, until it is dropped: see [`crate::task::lock`].
#[derive(Debug)]
pub struct FutureHolding<const USE: Flags>(FutureHold<USE>);

impl<const USE: Flags> FutureHolding<USE> {
    pub(crate) fn of(hold: FutureHold<USE>) -> FutureHolding<USE> {
        FutureHolding(hold)
    }

    /// Releases: `release` releases the lock itself.
    #[inline]
    pub fn release<T>(mut self, release: impl FnOnce() -> T) -> T {
        let begun = self.0.begin_release();
        let result = release();
        begun.done();
        result
    }

    /// The lock is held in shared mode from now on. It was not released.
    pub fn downgraded(&mut self) {
        self.0.downgraded();
    }

    /// Like [`downgraded`](FutureHolding::downgraded), for a guard of another type: `TO` is its use of the lock.
    pub fn downgrade<const TO: Flags>(mut self) -> FutureHolding<TO> {
        self.0.downgraded();
        FutureHolding(self.0.used_as())
    }

    /// Nobody will release it.
    pub fn forget(self) {
        self.0.forget();
    }
}

/// A future that waits for something that nobody holds: see [`crate::task::lock::wait`].
pub struct Waits<const USE: Flags, F: Future> {
    future: F,
    blocked: Option<FutureBlocked<USE>>,
    has_it: fn(&F::Output) -> bool,
    is_noted: bool,
}

impl<const USE: Flags, F: Future> Waits<USE, F> {
    pub(crate) fn new(
        future: F,
        target: Target,
        round: u64,
        is_noted: bool,
        has_it: fn(&F::Output) -> bool,
    ) -> Waits<USE, F> {
        let blocked = Some(FutureBlocked::new(target, round));
        Waits { future, blocked, has_it, is_noted }
    }
}

impl<const USE: Flags, F: Future> Waits<USE, F> {
    /// The future that waits.
    pub fn get_ref(&self) -> &F {
        &self.future
    }

    /// The future that waits. If it is polled here, that is not recorded.
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut F> {
        // SAFETY: it is pinned, because the whole is, and is dropped where it is.
        unsafe { self.map_unchecked_mut(|this| &mut this.future) }
    }

    /// The future. It does not wait any more.
    pub fn into_inner(self) -> F {
        self.future
    }
}

impl<const USE: Flags, F: Future> Future for Waits<USE, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the future is not moved, and nothing else is pinned.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: it is pinned, because the whole is, and is dropped where it is.
        let future = unsafe { Pin::new_unchecked(&mut this.future) };
        let poll = future.poll(cx);
        match &poll {
            Poll::Pending => {
                if let Some(blocked) = &mut this.blocked {
                    blocked.pending(cx.waker());
                }
            }
            Poll::Ready(output) => {
                if let Some(blocked) = this.blocked.take() {
                    blocked.ended((this.has_it)(output), this.is_noted);
                }
            }
        }
        poll
    }
}
