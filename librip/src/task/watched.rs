//! [`Watched`]: tasks whose executor says when their polls begin and end. Nobody wraps their futures.
//!
//! It knows no executor. `librip-tokio` calls it from the task hooks of tokio.
//!
//! # The calls come late
//!
//! An executor calls its hooks outside of the poll. After a poll it has released the task already: another thread may
//! take the task, and say that the next poll begins, before the first thread has said that the last one has ended. The
//! first thread runs code of the executor meanwhile, for some ten nanoseconds, or for as long as the system runs
//! another thread in its place. Its cursor still leads to the task's slot, and a slot has one writer at a time. So the
//! next poll waits until the slot is free: see [`Patience`]. It never waits for what waits for it: between the release
//! of a task and its hook, the first thread takes no turn and runs no future. If it does not go on in time, the poll is
//! recorded for the thread that makes it, as that of a task without a slot.
//!
//! # Invariants
//!
//! * A thread is in a task from [`Record::claim`] until [`leave`]. One thread at a time is: the one that has set
//!   [`ENTERED`]. Only that thread uses `turn` and `former`, and has a turn of the slot.
//! * The map has a record until its task ends. A thread claims a record while it has the lock of the map, so it claims
//!   none that has ended.
//! * A record is freed once, by whoever clears `ENTERED` after [`ENDED`] was set, or sets `ENDED` while nobody is in
//!   the task. Both are steps of one atomic word, so exactly one of the two sees the other's bit.
//! * [`CURRENT`] of a thread leads to the task that it has entered last and not left, and [`Record::former`] to the
//!   one before. So they exist. No other thread frees what this one has entered.
//!
//! Nothing depends on the order in which an executor calls. A wrong order gives a wrong record and no more than that.

use core::cell::Cell;
use core::hash::{BuildHasherDefault, Hasher};
use core::panic::Location;
use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use core::sync::atomic::{AtomicU32, AtomicU64};
use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use super::Builder;
use super::polling::{begin_turn, end_turn};
use super::traced::declare;
use crate::process::instance;
use crate::process::task_slot::{TaskSlot, Turn};
use librip_format::{TASK_ASYNC, WAKERS_UNKNOWN};

/// The tasks of an executor that tells when it makes, polls and ends them.
///
/// Tasks are known by an id, which no other task of the executor ever has. The wakes of these tasks are not counted.
///
/// # Examples
///
/// ```
/// use std::panic::Location;
///
/// let tasks = librip::task::Watched::new();
/// tasks.spawned(1, Location::caller());
/// tasks.poll_begins(1, || None);
/// librip::rip_snap!("works"); // recorded for the task
/// tasks.poll_ends(1);
/// tasks.ended(1);
/// ```
#[derive(Debug)]
pub struct Watched {
    /// Tells it from others.
    number: u64,
    shards: [Mutex<Shard>; SHARDS],
    /// The executor of the tasks, as far as it is known: 0, [`SEVERAL`], or a value of [`packed`].
    runtime: AtomicU64,
}

/// Threads that poll at the same time rarely ask for the same shard.
const SHARDS: usize = 64;

/// There are several executors.
const SEVERAL: u64 = u64::MAX;

/// Some of the tasks.
#[derive(Debug, Default)]
struct Shard {
    tasks: HashMap<u64, Owned, BuildHasherDefault<Spread>>,
    /// The last ids that have ended and were not in the map. An executor that is shutting down may end a task before it
    /// says that it has spawned it.
    ended: [Option<u64>; 4],
    next_ended: usize,
}

#[derive(Debug)]
struct Owned(NonNull<Record>);

// SAFETY: a record may be used by any thread, as the invariants say.
unsafe impl Send for Owned {}

#[derive(Debug)]
struct Record {
    id: u64,
    /// [`Watched::number`] of those that have it.
    of: u64,
    slot: TaskSlot,
    /// [`ENTERED`], [`ENDED`] and [`POLLED`].
    state: AtomicU32,
    turn: Cell<Turn>,
    former: Cell<*const Record>,
}

/// [`Record::state`]: a thread is in it.
const ENTERED: u32 = 1;
/// [`Record::state`]: the task is no more.
const ENDED: u32 = 2;
/// [`Record::state`]: a thread was in it.
const POLLED: u32 = 4;

thread_local! {
    /// The task that the calling thread has entered last, or null.
    static CURRENT: Cell<*const Record> = const { Cell::new(ptr::null()) };
}

impl Default for Watched {
    // Inlined: see `declare`.
    #[inline]
    fn default() -> Self {
        Watched::new()
    }
}

impl Watched {
    /// No tasks yet.
    #[inline]
    pub fn new() -> Watched {
        declare();
        Watched::empty()
    }

    fn empty() -> Watched {
        static MADE: AtomicU64 = AtomicU64::new(0);
        Watched {
            // ORDERING: relaxed: a number.
            number: MADE.fetch_add(1, Relaxed),
            shards: core::array::from_fn(|_| Mutex::default()),
            runtime: AtomicU64::new(0),
        }
    }

    /// A task was made at this place. It may have been polled, and may have ended, only if it cannot be polled any
    /// more.
    pub fn spawned(&self, id: u64, at: &'static Location<'static>) {
        // ORDERING: relaxed: it is read again under the lock.
        let known = self.runtime.load(Relaxed);
        let slot = of_runtime(known).claim(TASK_ASYNC, at);
        if !slot.exists() {
            return;
        }
        let record = Record {
            id,
            of: self.number,
            slot,
            state: AtomicU32::new(0),
            turn: Cell::new(Turn::NONE),
            former: Cell::new(ptr::null()),
        };
        let mut shard = self.shard(id);
        if shard.ended.contains(&Some(id)) {
            drop(shard);
            instance::end_task(&slot);
            return;
        }
        // ORDERING: relaxed: whoever has made it known after this thread has read it has not had the lock yet, and will
        // find the task, or has released the lock, which this thread has acquired.
        let now_known = self.runtime.load(Relaxed);
        if now_known != known {
            instance::set_task_origin(&slot, of_runtime(now_known).origin(TASK_ASYNC));
        }
        let record = NonNull::from(Box::leak(Box::new(record)));
        if let Some(former) = shard.tasks.insert(id, Owned(record)) {
            drop(shard);
            former.end();
        }
    }

    /// The calling thread begins to poll a task. At the first poll of it, `runtime` says of the executor what
    /// [`Builder::runtime`] gets.
    pub fn poll_begins(&self, id: u64, runtime: impl FnOnce() -> Option<(u32, usize)>) {
        self.poll_begins_after(id, None, runtime);
    }

    /// The same, for an executor that says how long ago it has put the task into its queue.
    pub fn poll_begins_after(
        &self,
        id: u64,
        ready_for: Option<Duration>,
        runtime: impl FnOnce() -> Option<(u32, usize)>,
    ) {
        if !instance::is_recording() {
            return;
        }
        let Some((record, is_first)) = self.enter(id) else { return };
        // SAFETY: this thread has entered it, so it exists.
        let record = unsafe { record.as_ref() };
        if is_first && let Some((number, workers)) = runtime() {
            self.learn(packed(number, workers));
            let origin = Builder::new().without_wakes().runtime(number, workers).origin(TASK_ASYNC);
            instance::set_task_origin(&record.slot, origin);
        }
        if let Some(ready_for) = ready_for {
            instance::woken_ago(&record.slot, ready_for);
        }
        // SAFETY: it has a slot.
        record.turn.set(unsafe { begin_turn(&record.slot) });
        record.former.set(CURRENT.replace(record));
    }

    /// The poll has ended that the calling thread has begun. Nothing happens if it has begun none, or if the task has
    /// ended in it.
    pub fn poll_ends(&self, id: u64) {
        if let Some(record) = self.current(id) {
            leave(record);
        }
    }

    /// The task is no more. The thread that polls it may say so within the poll, and any other one at any time.
    pub fn ended(&self, id: u64) {
        if !instance::is_recording() {
            return;
        }
        let mut shard = self.shard(id);
        if let Some(record) = shard.tasks.remove(&id) {
            drop(shard);
            let current = self.current(id);
            record.end();
            // In its poll: what comes until the end of the poll is the executor's. If this thread is not in the task,
            // the record may be gone, and nothing is to be done.
            if let Some(current) = current {
                leave(current);
            }
        } else {
            let next = shard.next_ended;
            shard.ended[next] = Some(id);
            shard.next_ended = (next + 1) % shard.ended.len();
        }
    }

    fn shard(&self, id: u64) -> MutexGuard<'_, Shard> {
        lock(&self.shards[id as usize % SHARDS])
    }

    /// The task with this id, if the calling thread is in it, and has entered no other one since.
    fn current(&self, id: u64) -> Option<NonNull<Record>> {
        let record = NonNull::new(CURRENT.get().cast_mut())?;
        // SAFETY: by the invariant, it exists.
        let Record { id: its_id, of, .. } = unsafe { record.as_ref() };
        (*its_id == id && *of == self.number).then_some(record)
    }

    /// Enters a task, as soon as no thread is in it. Returns whether no thread ever was. `None`: it has no slot, or
    /// another thread has not left it in time.
    fn enter(&self, id: u64) -> Option<(NonNull<Record>, bool)> {
        let mut patience = Patience::default();
        loop {
            let shard = self.shard(id);
            let Owned(record) = *shard.tasks.get(&id)?;
            // SAFETY: the map has it, and this thread has the lock.
            if let Some(is_first) = unsafe { record.as_ref() }.claim() {
                return Some((record, is_first));
            }
            drop(shard);
            // Whoever is in it already would wait for itself.
            if self.current(id).is_some() || !patience.wait() {
                return None;
            }
        }
    }

    /// A thread polls a task in this executor. If it is the first one, the tasks that nobody has polled yet get to know
    /// it: they may be those that starve.
    fn learn(&self, runtime: u64) {
        // ORDERING: relaxed: see `spawned`.
        match self.runtime.compare_exchange(0, runtime, Relaxed, Relaxed) {
            Ok(_) => self.tell_unpolled(of_runtime(runtime).origin(TASK_ASYNC)),
            Err(known) if known != runtime => self.runtime.store(SEVERAL, Relaxed),
            Err(_) => {}
        }
    }

    #[cold]
    fn tell_unpolled(&self, origin: u64) {
        for shard in &self.shards {
            for Owned(record) in lock(shard).tasks.values() {
                // SAFETY: the map has it, and this thread has the lock.
                let record = unsafe { record.as_ref() };
                // ORDERING: relaxed: it is changed under the lock from not polled to polled.
                if record.state.load(Relaxed) & POLLED == 0 {
                    instance::set_task_origin(&record.slot, origin);
                }
            }
        }
    }
}

impl Drop for Watched {
    /// The executor is gone, and has forgotten these tasks.
    fn drop(&mut self) {
        for shard in &mut self.shards {
            let shard = shard.get_mut().unwrap_or_else(PoisonError::into_inner);
            shard.tasks.drain().for_each(|(_, record)| record.end());
        }
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Owned {
    /// The task is no more, and the map has it no more.
    fn end(self) {
        // SAFETY: the map had it, and nobody else ends it.
        let record = unsafe { self.0.as_ref() };
        // ORDERING: acquire and release, pairs with that in `leave`, here and there.
        if record.state.fetch_or(ENDED, AcqRel) & ENTERED == 0 {
            // SAFETY: nobody is in it, and nobody can enter it.
            unsafe { free(self.0) };
        }
    }
}

impl Record {
    /// Enters the task, if no thread is in it. Returns whether no thread ever was. The caller has the lock of the map.
    fn claim(&self) -> Option<bool> {
        // ORDERING: acquire, pairs with the release in `leave`: what the last thread has stored in the slot comes
        // before what this thread stores. The bit is set under the lock alone, and cleared anywhere.
        let former = self.state.fetch_or(ENTERED | POLLED, Acquire);
        (former & ENTERED == 0).then_some(former & POLLED == 0)
    }
}

/// The calling thread leaves the task that it has entered last.
fn leave(record: NonNull<Record>) {
    // SAFETY: by the invariant, it exists.
    let of = unsafe { record.as_ref() };
    CURRENT.set(of.former.get());
    // SAFETY: it has a slot.
    unsafe { end_turn(&of.slot, of.turn.get(), WAKERS_UNKNOWN) };
    // ORDERING: release, pairs with the acquire in `claim`; and acquire, pairs with the release in `end`.
    if of.state.fetch_and(!ENTERED, AcqRel) & ENDED != 0 {
        // SAFETY: it has ended, and this was the last thread in it.
        unsafe { free(record) };
    }
}

/// # Safety
///
/// The record is in no map, no thread is in it, and nobody else frees it.
unsafe fn free(record: NonNull<Record>) {
    // SAFETY: `spawned` has made it of a box. The caller's promise.
    let record = unsafe { Box::from_raw(record.as_ptr()) };
    instance::end_task(&record.slot);
}

/// [`Watched::runtime`]. `number` is not 0.
fn packed(number: u32, workers: usize) -> u64 {
    u64::from(number) << 32 | workers.min(u32::MAX as usize - 1) as u64
}

/// A task of which so much is known.
fn of_runtime(known: u64) -> Builder<'static> {
    let task = Builder::new().without_wakes();
    match known {
        0 | SEVERAL => task,
        _ => task.runtime((known >> 32) as u32, known as u32 as usize),
    }
}

/// Waits until another thread has left a task, which takes it some nanoseconds, unless the system does not run it.
#[derive(Debug, Default)]
struct Patience {
    spins: u32,
    since: Option<Instant>,
}

/// The other thread runs and is about to leave: this takes longer.
const SPINS: u32 = 64;
/// The other thread does not run, and others use this processor meanwhile.
const YIELDS: Duration = Duration::from_millis(1);
/// Then this thread sleeps, so that one of a lower priority runs.
const NAP: Duration = Duration::from_micros(200);
/// Nobody knows when the other thread goes on: a debugger may have stopped it.
const PATIENCE: Duration = Duration::from_secs(1);

impl Patience {
    /// Waits a little. Returns whether it is worth while to look again.
    fn wait(&mut self) -> bool {
        if self.spins < SPINS {
            self.spins += 1;
            core::hint::spin_loop();
            return true;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() < YIELDS {
            thread::yield_now();
        } else {
            thread::sleep(NAP);
        }
        since.elapsed() < PATIENCE
    }
}

/// Executors count their tasks. The lowest bits say in which shard a task is, so the others spread it.
#[derive(Debug, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(self.0.rotate_left(8) ^ u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}
