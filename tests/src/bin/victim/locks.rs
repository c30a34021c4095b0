//! Locks: held when the end comes, in every way that there is to hold one.
//!
//! What is true is told in the progress file, in cells of its own: see [`Truth`].

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};
use std::sync::mpsc;
use std::time::Duration;

use librip::raw::{Recorded, SetName};
use librip::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use librip::{
    rip_lock_acquired, rip_lock_destroyed, rip_lock_name, rip_lock_released, rip_lock_wait, rip_snap,
};
use librip_test_kit::progress::Cell;

use crate::common::{cells, init, named, pause, run, say, sleep_forever};

type LotMutex = lock_api::Mutex<Recorded<parking_lot::RawMutex>, u64>;
type LotRwLock = lock_api::RwLock<Recorded<parking_lot::RawRwLock>, u64>;
type ToldMutex = lock_api::Mutex<Recorded<Told>, u64>;
/// Its guards may be sent.
type SpinMutex = lock_api::Mutex<Recorded<Spin>, u64>;

pub(crate) fn main(arguments: &[&str]) {
    init();
    match arguments[0] {
        "storm" => storm(arguments[1].parse().unwrap()),
        "wrapped" => wrapped(),
        "overflow" => overflow(),
        "handed_over" => handed_over(),
        "names" => names(),
        "destroyed" => destroyed(),
        "modes" => modes(),
        "waits" => waits(),
        "timed" => timed(),
        "pairs" => pairs(),
        "condition" => condition(),
        other => panic!("no way {other}"),
    }
    std::process::exit(3);
}

/// A lock that spins, and does not care who unlocks it.
struct Spin(AtomicBool);

unsafe impl lock_api::RawMutex for Spin {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait has it so")]
    const INIT: Spin = Spin(AtomicBool::new(false));
    type GuardMarker = lock_api::GuardSend;

    fn lock(&self) {
        while !self.try_lock() {
            std::thread::yield_now();
        }
    }
    fn try_lock(&self) -> bool {
        !self.0.swap(true, Acquire)
    }
    unsafe fn unlock(&self) {
        self.0.store(false, Release);
    }
}

/// A raw lock that tells who has it, while it is locked: nothing that is recorded may go beyond that.
struct Told {
    inner: parking_lot::RawMutex,
    /// Where to tell it, once that is known.
    owner: AtomicPtr<AtomicU64>,
}

thread_local! {
    /// What a thread tells: its number in the storm, plus one.
    static SELF: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

impl Told {
    fn tell(&self, has: bool) -> bool {
        if let Some(owner) = unsafe { self.owner.load(Relaxed).as_ref() }.filter(|_| has) {
            owner.store(SELF.get(), Release);
        }
        has
    }
}

unsafe impl lock_api::RawMutex for Told {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait has it so")]
    const INIT: Told = Told {
        inner: <parking_lot::RawMutex as lock_api::RawMutex>::INIT,
        owner: AtomicPtr::new(std::ptr::null_mut()),
    };
    type GuardMarker = lock_api::GuardNoSend;

    fn lock(&self) {
        lock_api::RawMutex::lock(&self.inner);
        self.tell(true);
    }
    fn try_lock(&self) -> bool {
        self.tell(lock_api::RawMutex::try_lock(&self.inner))
    }
    unsafe fn unlock(&self) {
        if let Some(owner) = unsafe { self.owner.load(Relaxed).as_ref() } {
            owner.store(0, Release);
        }
        unsafe { lock_api::RawMutex::unlock(&self.inner) };
    }
}

unsafe impl lock_api::RawMutexTimed for Told {
    type Duration = Duration;
    type Instant = std::time::Instant;

    fn try_lock_for(&self, timeout: Duration) -> bool {
        self.tell(lock_api::RawMutexTimed::try_lock_for(&self.inner, timeout))
    }
    fn try_lock_until(&self, timeout: std::time::Instant) -> bool {
        self.tell(lock_api::RawMutexTimed::try_lock_until(&self.inner, timeout))
    }
}

/// Locks of each kind of the storm: together they fill a table.
const MUTEXES: usize = 6;
const RWLOCKS: usize = 4;
const LOTS: usize = 4;
const BY_HAND: usize = 2;
const LOCKS: usize = MUTEXES + RWLOCKS + LOTS + BY_HAND;

static MUTEX: [Mutex<u64>; MUTEXES] = [const { Mutex::new(0) }; MUTEXES];
static RWLOCK: [RwLock<u64>; RWLOCKS] = [const { RwLock::new(0) }; RWLOCKS];
static LOT: [ToldMutex; LOTS] = [const { ToldMutex::new(0) }; LOTS];
static REENTRANT: [Reentrant; BY_HAND] = [const { Reentrant::new() }; BY_HAND];

/// A lock that is marked by hand, and that its owner may take again.
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
        // Written behind the mark.
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

/// What a thread truly has: written after it got the lock and before it gives it up.
struct Truth(&'static [Cell]);

impl Truth {
    const EXCLUSIVE: u64 = 1;
    const SHARED: u64 = 2;

    /// For one thread and one lock. Above bit 8 is how often it has been taken.
    fn of(&self, thread: usize, lock: usize) -> &'static AtomicU64 {
        &self.0[thread * 32 + lock].state
    }

    fn address(&self, lock: usize) -> &'static AtomicU64 {
        &self.0[lock].tid
    }

    /// The thread that has it, plus one, as the lock itself tells.
    fn owner(&self, lock: usize) -> &'static AtomicU64 {
        &self.0[lock].marks
    }
}

#[allow(dead_code, reason = "guards are there to be dropped")]
enum Guard {
    Mutex(MutexGuard<'static, u64>),
    Read(RwLockReadGuard<'static, u64>),
    Write(RwLockWriteGuard<'static, u64>),
    Lot(lock_api::MutexGuard<'static, Recorded<Told>, u64>),
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

fn storm(seed: u64) -> ! {
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

/// Takes some locks, in an order that cannot deadlock, and gives them up in any order.
fn round(thread: usize, truth: &Truth, random: &mut Random) {
    let mut guards: Vec<(usize, Guard)> = Vec::with_capacity(LOCKS + 8);
    // One in four rounds wants all of them.
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

/// Prints the address of a lock that lies where it will be locked.
fn tell<T: ?Sized>(lock: &T) {
    say(&format!("{:x}", std::ptr::from_ref(lock).addr()));
}

/// Holds a lock while a million words go by.
fn wrapped() {
    static HELD: Mutex<u64> = Mutex::new(0);
    static OTHER: RwLock<u64> = RwLock::new(0);
    tell(&HELD);
    let guard = HELD.lock().unwrap();
    for _ in 0..250_000 {
        rip_snap!("cycle 0");
        drop(OTHER.read().unwrap());
    }
    pause();
    drop(guard);
    pause();
}

fn overflow() {
    let locks: Vec<Mutex<u64>> = (0..20).map(Mutex::new).collect();
    locks.iter().for_each(tell);
    let mut guards: Vec<_> = locks.iter().map(|lock| lock.lock().unwrap()).collect();
    pause();
    // Those that found no room, and then one that did.
    guards.truncate(16);
    drop(guards.remove(3));
    pause();
    // There is room again.
    let again = locks[18].lock().unwrap();
    pause();
    drop(again);
    guards.clear();
    pause();
}

fn handed_over() {
    static SENT: SpinMutex = SpinMutex::new(0);
    static BY_HAND: u64 = 0;
    tell(unsafe { SENT.raw() });
    tell(&BY_HAND);
    let guard = SENT.lock();
    rip_lock_acquired!(&BY_HAND);
    pause();
    // Its first event is the release of what it never took.
    run("other", move || drop(guard));
    pause();
    run("another", || rip_lock_released!(&BY_HAND));
    pause();
}

/// Memory in which one lock follows another.
struct Place(UnsafeCell<MaybeUninit<Mutex<u64>>>);
unsafe impl Sync for Place {}

fn names() {
    static PLACE: Place = Place(UnsafeCell::new(MaybeUninit::uninit()));
    static BY_HAND: u64 = 0;
    static RAW: LotMutex = LotMutex::new(0);
    let make = || unsafe { (*PLACE.0.get()).write(Mutex::new(0)) };
    let mutex = make();
    tell(&*mutex);
    tell(&BY_HAND);
    tell(unsafe { RAW.raw() });
    mutex.set_name("first");
    rip_lock_name!(&BY_HAND, "by hand");
    RAW.set_name("raw");
    pause();
    mutex.set_name("renamed");
    pause();
    unsafe { (*PLACE.0.get()).assume_init_drop() };
    rip_lock_destroyed!(&BY_HAND);
    pause();
    let mutex = make();
    let guard = mutex.lock().unwrap();
    pause();
    drop(guard);
}

fn destroyed() {
    let mutex = Box::new(Mutex::new(0));
    let lot = Box::new(LotMutex::new(0));
    let unused = Box::new(Mutex::new(0));
    tell(&*mutex);
    tell(unsafe { lot.raw() });
    tell(&*unused);
    std::mem::forget(mutex.lock().unwrap());
    std::mem::forget(lot.lock());
    pause();
    drop((mutex, lot, unused));
    pause();
}

/// Every mode of a raw readers-writer lock, one after the other.
fn modes() {
    static LOCK: LotRwLock = LotRwLock::new(0);
    static REENTRANT: lock_api::ReentrantMutex<
        Recorded<parking_lot::RawMutex>,
        parking_lot::RawThreadId,
        u64,
    > = lock_api::ReentrantMutex::new(0);
    static STD: RwLock<u64> = RwLock::new(0);
    tell(unsafe { LOCK.raw() });
    tell(&STD);
    let read = LOCK.read();
    pause();
    drop(read);
    let recursive = LOCK.read_recursive();
    pause();
    drop(recursive);
    let write = LOCK.write();
    pause();
    let upgradable = lock_api::RwLockWriteGuard::downgrade_to_upgradable(write);
    pause();
    let write = lock_api::RwLockUpgradableReadGuard::upgrade(upgradable);
    pause();
    let read = lock_api::RwLockWriteGuard::downgrade(write);
    pause();
    let failed = LOCK.try_write_for(Duration::from_micros(10)).is_none() && LOCK.try_write().is_none();
    say(if failed { "failed" } else { "wrote beside a reader" });
    drop(read);
    let upgradable = LOCK.upgradable_read();
    pause();
    let (reads, is_reading) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let reader = named("reader").spawn(move || {
        let read = LOCK.read();
        reads.send(()).unwrap();
        goes_on.recv().unwrap();
        drop(read);
    });
    is_reading.recv().unwrap();
    let upgrade = lock_api::RwLockUpgradableReadGuard::try_upgrade_for(upgradable, Duration::from_micros(10));
    let Err(upgradable) = upgrade else { panic!("upgraded beside a reader") };
    pause();
    go_on.send(()).unwrap();
    reader.unwrap().join().unwrap();
    drop(upgradable);
    let write = STD.write().unwrap();
    let read = RwLockWriteGuard::downgrade(write);
    pause();
    drop(read);
    // Only the outermost pair locks.
    let outer = REENTRANT.lock();
    let inner = REENTRANT.lock();
    drop(inner);
    pause();
    drop(outer);
    pause();
}

/// A thread that waits for what the main thread has, in each way to wait.
fn waits() {
    static MUTEX: Mutex<u64> = Mutex::new(0);
    static LOT: LotMutex = LotMutex::new(0);
    static RWLOCK: RwLock<u64> = RwLock::new(0);
    tell(&MUTEX);
    tell(unsafe { LOT.raw() });
    tell(&RWLOCK);
    let held = (MUTEX.lock().unwrap(), LOT.lock(), RWLOCK.write().unwrap());
    let waiters = [
        named("mutex").spawn(|| drop(MUTEX.lock().unwrap())),
        named("lot").spawn(|| drop(LOT.try_lock_for(Duration::from_secs(3600)))),
        named("reader").spawn(|| drop(RWLOCK.read().unwrap())),
    ];
    pause();
    drop(held);
    for waiter in waiters {
        waiter.unwrap().join().unwrap();
    }
    pause();
}

/// Locks that are given up again: for their events.
fn timed() {
    static MUTEX: Mutex<u64> = Mutex::new(0);
    static BY_HAND: u64 = 0;
    static LOT: LotMutex = LotMutex::new(0);
    tell(&MUTEX);
    tell(&BY_HAND);
    tell(unsafe { LOT.raw() });
    drop(MUTEX.lock().unwrap());
    rip_lock_acquired!(&BY_HAND);
    rip_lock_released!(&BY_HAND);
    drop(LOT.lock());
    let held = MUTEX.lock().unwrap();
    pause();
    assert!(MUTEX.try_lock().is_err());
    drop(held);
}

/// The same lock taken at two places.
fn pairs() {
    static MUTEX: Mutex<u64> = Mutex::new(0);
    static LOT: LotMutex = LotMutex::new(0);
    tell(&MUTEX);
    tell(unsafe { LOT.raw() });
    let first = (MUTEX.lock().unwrap(), LOT.lock());
    pause();
    drop(first);
    let second = (MUTEX.lock().unwrap(), LOT.lock());
    pause();
    drop(second);
}

fn condition() {
    static MUTEX: Mutex<bool> = Mutex::new(false);
    static CHANGED: Condvar = Condvar::new();
    static LOT: lock_api::Mutex<Recorded<parking_lot::RawMutex>, bool> = lock_api::Mutex::new(false);
    static LOT_CHANGED: librip::raw::Condvar = librip::raw::Condvar::new();
    tell(&MUTEX);
    tell(&CHANGED);
    tell(unsafe { LOT.raw() });
    tell(&LOT_CHANGED);
    let (woken, wakes) = mpsc::channel();
    let lot_woken = woken.clone();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let (lot_go_on, lot_goes_on) = mpsc::channel::<()>();
    let waiters = [
        named("sleeper").spawn(move || {
            let guard = CHANGED.wait_while(MUTEX.lock().unwrap(), |is_over| !*is_over).unwrap();
            woken.send(()).unwrap();
            goes_on.recv().unwrap();
            drop(guard);
        }),
        named("lot sleeper").spawn(move || {
            let mut guard = LOT.lock();
            LOT_CHANGED.wait_while(&mut guard, |is_over| !*is_over);
            lot_woken.send(()).unwrap();
            lot_goes_on.recv().unwrap();
            drop(guard);
        }),
    ];
    pause();
    *MUTEX.lock().unwrap() = true;
    CHANGED.notify_one();
    *LOT.lock() = true;
    LOT_CHANGED.notify_all();
    wakes.recv().unwrap();
    wakes.recv().unwrap();
    pause();
    go_on.send(()).unwrap();
    lot_go_on.send(()).unwrap();
    for waiter in waiters {
        waiter.unwrap().join().unwrap();
    }
    pause();
}
