//! Three threads that acquire and release locks of every kind at random, at full speed.
//!
//! Each thread writes what it truly holds into the progress file: see [`Truth`].

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};
use std::time::Duration;

use librip::raw::Recorded;
use librip::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use librip::{rip_lock_acquired, rip_lock_released, rip_lock_wait, rip_snap};
use librip_test_kit::progress::Cell;

use crate::common::{cells, named, say, sleep_forever};

type WitnessedMutex = lock_api::Mutex<Recorded<Witnessed>, u64>;

/// A raw lock that notes its owner while it is locked. librip must not record a holder without such a note.
struct Witnessed {
    inner: parking_lot::RawMutex,
    /// The cell for the owner, once it is known.
    owner: AtomicPtr<AtomicU64>,
}

thread_local! {
    /// The value that a thread notes as owner: its number in the storm, plus one.
    static SELF: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

impl Witnessed {
    fn note_owner(&self, acquired: bool) -> bool {
        if let Some(owner) = unsafe { self.owner.load(Relaxed).as_ref() }.filter(|_| acquired) {
            owner.store(SELF.get(), Release);
        }
        acquired
    }
}

unsafe impl lock_api::RawMutex for Witnessed {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait has it so")]
    const INIT: Witnessed = Witnessed {
        inner: <parking_lot::RawMutex as lock_api::RawMutex>::INIT,
        owner: AtomicPtr::new(std::ptr::null_mut()),
    };
    type GuardMarker = lock_api::GuardNoSend;

    fn lock(&self) {
        lock_api::RawMutex::lock(&self.inner);
        self.note_owner(true);
    }
    fn try_lock(&self) -> bool {
        self.note_owner(lock_api::RawMutex::try_lock(&self.inner))
    }
    unsafe fn unlock(&self) {
        if let Some(owner) = unsafe { self.owner.load(Relaxed).as_ref() } {
            owner.store(0, Release);
        }
        unsafe { lock_api::RawMutex::unlock(&self.inner) };
    }
}

unsafe impl lock_api::RawMutexTimed for Witnessed {
    type Duration = Duration;
    type Instant = std::time::Instant;

    fn try_lock_for(&self, timeout: Duration) -> bool {
        self.note_owner(lock_api::RawMutexTimed::try_lock_for(&self.inner, timeout))
    }
    fn try_lock_until(&self, timeout: std::time::Instant) -> bool {
        self.note_owner(lock_api::RawMutexTimed::try_lock_until(&self.inner, timeout))
    }
}

/// Locks of each kind of the storm: together they fill a table, but for its last entry, which is for waits.
const MUTEXES: usize = 5;
const RWLOCKS: usize = 4;
const LOTS: usize = 4;
const BY_HAND: usize = 2;
const LOCKS: usize = MUTEXES + RWLOCKS + LOTS + BY_HAND;

static MUTEX: [Mutex<u64>; MUTEXES] = [const { Mutex::new(0) }; MUTEXES];
static RWLOCK: [RwLock<u64>; RWLOCKS] = [const { RwLock::new(0) }; RWLOCKS];
static LOT: [WitnessedMutex; LOTS] = [const { WitnessedMutex::new(0) }; LOTS];
static REENTRANT: [Reentrant; BY_HAND] = [const { Reentrant::new() }; BY_HAND];

/// A reentrant lock with marks by hand.
struct Reentrant {
    owner: AtomicUsize,
    depth: AtomicU64,
}

impl Reentrant {
    const fn new() -> Reentrant {
        Reentrant { owner: AtomicUsize::new(0), depth: AtomicU64::new(0) }
    }

    fn lock(&self, thread: usize, truth: &AtomicU64) {
        if self.owner.load(Relaxed) != thread + 1 {
            rip_lock_wait!(self, reentrant);
            while self.owner.compare_exchange(0, thread + 1, Acquire, Relaxed).is_err() {
                std::hint::spin_loop();
            }
        }
        rip_lock_acquired!(self, reentrant);
        let depth = self.depth.load(Relaxed) + 1;
        self.depth.store(depth, Relaxed);
        // Written after the mark.
        truth.store(depth << 8 | Truth::EXCLUSIVE, Release);
    }

    fn unlock(&self, truth: &AtomicU64) {
        let depth = self.depth.load(Relaxed) - 1;
        self.depth.store(depth, Relaxed);
        truth.store(if depth > 0 { depth << 8 | Truth::EXCLUSIVE } else { 0 }, Release);
        if depth == 0 {
            self.owner.store(0, Release);
        }
        rip_lock_released!(self, reentrant);
    }
}

/// What a thread truly holds. The thread writes it after it has acquired the lock, and before it releases the lock.
struct Truth(&'static [Cell]);

impl Truth {
    const EXCLUSIVE: u64 = 1;
    const SHARED: u64 = 2;

    /// For one thread and one lock. From bit 8 on: how often the thread has acquired it.
    fn of(&self, thread: usize, lock: usize) -> &'static AtomicU64 {
        &self.0[thread * 32 + lock].state
    }

    fn address(&self, lock: usize) -> &'static AtomicU64 {
        &self.0[lock].tid
    }

    /// The thread that holds it, plus one, as the lock itself notes it.
    fn owner(&self, lock: usize) -> &'static AtomicU64 {
        &self.0[lock].marks
    }
}

#[allow(dead_code, reason = "guards are there to be dropped")]
enum Guard {
    Mutex(MutexGuard<'static, u64>),
    Read(RwLockReadGuard<'static, u64>),
    Write(RwLockWriteGuard<'static, u64>),
    Lot(lock_api::MutexGuard<'static, Recorded<Witnessed>, u64>),
    ByHand(usize),
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

pub(crate) fn storm(seed: u64) -> ! {
    let truth = Truth(cells());
    for lock in 0..LOCKS {
        truth.address(lock).store(address(lock), Relaxed);
    }
    for (index, lot) in LOT.iter().enumerate() {
        let owner = truth.owner(MUTEXES + RWLOCKS + index);
        unsafe { lot.raw() }.inner().owner.store(std::ptr::from_ref(owner).cast_mut(), Release);
    }
    for thread in 0..3 {
        let body = move || {
            let truth = Truth(cells());
            SELF.set(thread as u64 + 1);
            let mut random = Random(seed * 3 + thread as u64 + 1);
            rip_snap!("cycle 0");
            if thread == 0 {
                say("ready");
            }
            loop {
                round(thread, &truth, &mut random);
            }
        };
        named(&format!("w{thread}")).spawn(body).unwrap();
    }
    sleep_forever();
}

fn address(lock: usize) -> u64 {
    let at = |lock: usize, first: usize| lock - first;
    if lock < MUTEXES {
        return (&raw const MUTEX[lock]).addr() as u64;
    }
    if lock < MUTEXES + RWLOCKS {
        return (&raw const RWLOCK[at(lock, MUTEXES)]).addr() as u64;
    }
    if lock < MUTEXES + RWLOCKS + LOTS {
        return std::ptr::from_ref(unsafe { LOT[at(lock, MUTEXES + RWLOCKS)].raw() }).addr() as u64;
    }
    (&raw const REENTRANT[at(lock, MUTEXES + RWLOCKS + LOTS)]).addr() as u64
}

/// Acquires some locks, in an order that cannot deadlock, and releases them in any order.
fn round(thread: usize, truth: &Truth, random: &mut Random) {
    let mut guards: Vec<(usize, Guard)> = Vec::with_capacity(LOCKS + 8);
    // One in four rounds acquires all of them.
    let chance = [16, 4, 2, 8][random.below(4) as usize];
    for lock in 0..LOCKS {
        if chance < 16 && random.below(16) >= chance {
            continue;
        }
        let tries = random.below(3) == 0;
        let Some(guard) = take(thread, lock, tries, truth, random) else { continue };
        let mode = if matches!(guard, Guard::Read(_)) { Truth::SHARED } else { Truth::EXCLUSIVE };
        if !matches!(guard, Guard::ByHand(_)) {
            truth.of(thread, lock).store(1 << 8 | mode, Release);
        } else if random.below(2) == 0 {
            take(thread, lock, false, truth, random);
            guards.push((lock, Guard::ByHand(lock)));
        }
        guards.push((lock, guard));
    }
    while !guards.is_empty() {
        let (lock, guard) = guards.swap_remove(random.below(guards.len() as u64) as usize);
        match guard {
            Guard::ByHand(lock) => REENTRANT[lock - (LOCKS - BY_HAND)].unlock(truth.of(thread, lock)),
            guard => {
                truth.of(thread, lock).store(0, Release);
                drop(guard);
            }
        }
    }
}

fn take(thread: usize, lock: usize, tries: bool, truth: &Truth, random: &mut Random) -> Option<Guard> {
    if lock < MUTEXES {
        let mutex = &MUTEX[lock];
        return if tries { mutex.try_lock().ok() } else { mutex.lock().ok() }.map(Guard::Mutex);
    }
    if lock < MUTEXES + RWLOCKS {
        let rwlock = &RWLOCK[lock - MUTEXES];
        return match (random.below(3) > 0, tries) {
            (true, false) => rwlock.read().ok().map(Guard::Read),
            (true, true) => rwlock.try_read().ok().map(Guard::Read),
            (false, false) => rwlock.write().ok().map(Guard::Write),
            (false, true) => rwlock.try_write().ok().map(Guard::Write),
        };
    }
    if lock < MUTEXES + RWLOCKS + LOTS {
        let lot = &LOT[lock - MUTEXES - RWLOCKS];
        return match (tries, random.below(2)) {
            (false, 0) => Some(lot.lock()),
            (false, _) => lot.try_lock_for(Duration::from_micros(50)),
            (true, _) => lot.try_lock(),
        }
        .map(Guard::Lot);
    }
    REENTRANT[lock - (LOCKS - BY_HAND)].lock(thread, truth.of(thread, lock));
    Some(Guard::ByHand(lock))
}
