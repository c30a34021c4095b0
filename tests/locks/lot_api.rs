// What the interfaces of `parking_lot` 0.12 and 0.13 have in common, each item used once. A file for the version has
// the rest. Both are included twice: for the real crate and for the one that stands in for it. The text that is
// returned says what each call did.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::lock_api::{
    self, GetThreadId, RawMutex as _, RawMutexFair as _, RawMutexTimed, RawRwLock as _, RawRwLockDowngrade,
    RawRwLockFair, RawRwLockTimed, RawRwLockUpgrade, RawRwLockUpgradeDowngrade, RawRwLockUpgradeFair,
    RawRwLockUpgradeTimed,
};
use parking_lot::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard, Condvar, FairMutex, FairMutexGuard, MappedFairMutexGuard, MappedMutexGuard,
    MappedReentrantMutexGuard, MappedRwLockReadGuard, MappedRwLockWriteGuard, Mutex, MutexGuard, Once,
    OnceState, RawFairMutex, RawMutex, RawRwLock, RawThreadId, ReentrantMutex, ReentrantMutexGuard, RwLock,
    RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard, WaitTimeoutResult,
};

/// A time limit that ends nothing here.
const LONG: Duration = Duration::from_secs(600);
/// A time limit that is over.
const OVER: Duration = Duration::ZERO;

static MUTEX: Mutex<(u32, u32)> = Mutex::new((1, 2));
static FAIR: FairMutex<(u32, u32)> = FairMutex::new((1, 2));
static REENTRANT: ReentrantMutex<(u32, u32)> = ReentrantMutex::new((1, 2));
static ROUTES: RwLock<(u32, u32)> = RwLock::new((1, 2));
static PLAIN: (Mutex<u8>, FairMutex<u8>, ReentrantMutex<u8>, RwLock<u8>) =
    (Mutex::new(0), FairMutex::new(0), ReentrantMutex::new(0), RwLock::new(0));
static CHANGED: Condvar = Condvar::new();
static START: Once = Once::new();

fn raw_mutex<R>()
where
    R: lock_api::RawMutexFair + RawMutexTimed<Duration = Duration, Instant = Instant> + Send + Sync + 'static,
{
}

fn raw_rwlock<R>()
where
    R: RawRwLockFair
        + RawRwLockDowngrade
        + RawRwLockTimed<Duration = Duration, Instant = Instant>
        + RawRwLockUpgrade
        + RawRwLockUpgradeDowngrade
        + RawRwLockUpgradeFair
        + RawRwLockUpgradeTimed
        + Send
        + Sync
        + 'static,
{
}

fn has_traits<T: Send + Sync + std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}

/// Uses everything. Returns what the calls returned.
pub(super) fn everything() -> String {
    let mut said = String::new();
    let out = &mut said;
    raw_mutex::<RawMutex>();
    raw_mutex::<RawFairMutex>();
    raw_rwlock::<RawRwLock>();
    has_traits::<RawMutex>();
    has_traits::<RawFairMutex>();
    has_traits::<RawRwLock>();
    has_traits::<Condvar>();
    has_traits::<Once>();
    mutexes(out);
    fair_mutexes(out);
    reentrant_mutexes(out);
    rwlocks(out);
    upgrades(out);
    arcs(out);
    conditions(out);
    onces(out);
    of_this_version(out);
    said
}

fn mutexes(out: &mut String) {
    let mut guard: MutexGuard<'_, _> = MUTEX.lock();
    guard.0 += 1;
    writeln!(out, "{MUTEX:?} {guard:?} {} {}", MUTEX.is_locked(), MUTEX.try_lock().is_none()).unwrap();
    writeln!(out, "{:?}", MUTEX.try_lock_for(OVER).is_none()).unwrap();
    writeln!(out, "{:?}", MUTEX.try_lock_until(Instant::now()).is_none()).unwrap();
    MutexGuard::bump(&mut guard);
    writeln!(out, "{}", MutexGuard::unlocked(&mut guard, || MUTEX.try_lock().is_some())).unwrap();
    writeln!(out, "{}", MutexGuard::unlocked_fair(&mut guard, || MUTEX.is_locked())).unwrap();
    let mapped: MappedMutexGuard<'_, u32> = MutexGuard::map(guard, |pair| &mut pair.1);
    writeln!(out, "{mapped:?}").unwrap();
    MappedMutexGuard::unlock_fair(mapped);
    let guard = MUTEX.try_lock_for(LONG).expect("free");
    MutexGuard::unlock_fair(guard);
    let guard = MUTEX.try_lock_until(Instant::now() + LONG).expect("free");
    writeln!(out, "{:?}", MutexGuard::try_map(guard, |_| None::<&mut u32>).is_err()).unwrap();
    writeln!(out, "{:?} {}", PLAIN.0, Mutex::<u8>::default().into_inner()).unwrap();
}

fn fair_mutexes(out: &mut String) {
    let guard: FairMutexGuard<'_, _> = FAIR.lock();
    writeln!(out, "{FAIR:?} {guard:?} {} {}", FAIR.is_locked(), FAIR.try_lock().is_none()).unwrap();
    let mapped: MappedFairMutexGuard<'_, u32> = FairMutexGuard::map(guard, |pair| &mut pair.1);
    writeln!(out, "{mapped:?}").unwrap();
    drop(mapped);
    drop(FAIR.try_lock_for(LONG).expect("free"));
    writeln!(out, "{:?}", PLAIN.1).unwrap();
}

fn reentrant_mutexes(out: &mut String) {
    let guard: ReentrantMutexGuard<'_, _> = REENTRANT.lock();
    let again = REENTRANT.try_lock().expect("this thread has it");
    writeln!(out, "{REENTRANT:?} {guard:?} {}", REENTRANT.is_locked()).unwrap();
    writeln!(out, "{}", REENTRANT.is_owned_by_current_thread()).unwrap();
    let is_free = std::thread::spawn(|| REENTRANT.try_lock_for(OVER).is_some()).join().unwrap();
    writeln!(out, "{is_free} {:?}", PLAIN.2).unwrap();
    drop(again);
    let mapped: MappedReentrantMutexGuard<'_, u32> = ReentrantMutexGuard::map(guard, |pair| &pair.1);
    writeln!(out, "{mapped:?}").unwrap();
    MappedReentrantMutexGuard::unlock_fair(mapped);
    writeln!(out, "{}", RawThreadId.nonzero_thread_id() == RawThreadId::INIT.nonzero_thread_id()).unwrap();
}

fn rwlocks(out: &mut String) {
    let reader: RwLockReadGuard<'_, _> = ROUTES.read();
    let others = (ROUTES.try_read().is_some(), ROUTES.read());
    writeln!(out, "{ROUTES:?} {reader:?} {others:?} {}", ROUTES.try_write().is_none()).unwrap();
    writeln!(out, "{} {}", ROUTES.is_locked(), ROUTES.is_locked_exclusive()).unwrap();
    writeln!(out, "{}", ROUTES.try_write_for(OVER).is_none()).unwrap();
    writeln!(out, "{}", ROUTES.try_write_until(Instant::now()).is_none()).unwrap();
    drop(others);
    let mapped: MappedRwLockReadGuard<'_, u32> = RwLockReadGuard::map(reader, |pair| &pair.1);
    writeln!(out, "{mapped:?}").unwrap();
    MappedRwLockReadGuard::unlock_fair(mapped);
    let mut writer: RwLockWriteGuard<'_, _> = ROUTES.write();
    writer.0 += 1;
    RwLockWriteGuard::bump(&mut writer);
    writeln!(out, "{writer:?} {}", ROUTES.is_locked_exclusive()).unwrap();
    writeln!(out, "{} {}", ROUTES.try_read().is_none(), ROUTES.try_read_for(OVER).is_none()).unwrap();
    writeln!(out, "{}", ROUTES.try_read_until(Instant::now()).is_none()).unwrap();
    let reader = RwLockWriteGuard::downgrade(writer);
    writeln!(out, "{}", ROUTES.try_read().is_some()).unwrap();
    RwLockReadGuard::unlock_fair(reader);
    let writer = ROUTES.try_write_for(LONG).expect("free");
    let mapped: MappedRwLockWriteGuard<'_, u32> = RwLockWriteGuard::map(writer, |pair| &mut pair.1);
    writeln!(out, "{mapped:?}").unwrap();
    MappedRwLockWriteGuard::unlock_fair(mapped);
    drop(ROUTES.try_write_until(Instant::now() + LONG).expect("free"));
    writeln!(out, "{:?}", PLAIN.3).unwrap();
}

fn upgrades(out: &mut String) {
    let mut read: RwLockUpgradableReadGuard<'_, _> = ROUTES.upgradable_read();
    writeln!(out, "{} {}", ROUTES.try_upgradable_read().is_none(), ROUTES.try_read().is_some()).unwrap();
    writeln!(out, "{}", ROUTES.try_upgradable_read_for(OVER).is_none()).unwrap();
    writeln!(out, "{}", ROUTES.try_upgradable_read_until(Instant::now()).is_none()).unwrap();
    writeln!(
        out,
        "{}",
        read.with_upgraded(|pair| {
            pair.0 += 1;
            pair.0
        })
    )
    .unwrap();
    writeln!(out, "{:?}", read.try_with_upgraded(|pair| pair.0)).unwrap();
    let reader = ROUTES.read();
    let read = RwLockUpgradableReadGuard::try_upgrade(read).unwrap_err();
    let read = RwLockUpgradableReadGuard::try_upgrade_for(read, OVER).unwrap_err();
    let read = RwLockUpgradableReadGuard::try_upgrade_until(read, Instant::now()).unwrap_err();
    drop(reader);
    let writer = RwLockUpgradableReadGuard::upgrade(read);
    let read = RwLockWriteGuard::downgrade_to_upgradable(writer);
    let writer = RwLockUpgradableReadGuard::try_upgrade_for(read, LONG).expect("alone");
    let read = RwLockWriteGuard::downgrade_to_upgradable(writer);
    let reader = RwLockUpgradableReadGuard::downgrade(read);
    writeln!(out, "{reader:?} {}", ROUTES.try_upgradable_read().is_some()).unwrap();
    drop(reader);
    RwLockUpgradableReadGuard::unlock_fair(ROUTES.upgradable_read());
    writeln!(out, "{}", ROUTES.is_locked()).unwrap();
}

fn arcs(out: &mut String) {
    let mutex = Arc::new(Mutex::new(3));
    let guard: ArcMutexGuard<RawMutex, i32> = mutex.lock_arc();
    writeln!(out, "{} {:?}", *guard, mutex.try_lock_arc().is_none()).unwrap();
    ArcMutexGuard::unlock_fair(guard);
    let reentrant = Arc::new(ReentrantMutex::new(4));
    let guard: ArcReentrantMutexGuard<RawMutex, RawThreadId, i32> = reentrant.lock_arc();
    writeln!(out, "{}", *guard).unwrap();
    drop(guard);
    let routes = Arc::new(RwLock::new(5));
    let reader: ArcRwLockReadGuard<RawRwLock, i32> = routes.read_arc();
    writeln!(out, "{}", *reader).unwrap();
    drop(reader);
    let read: ArcRwLockUpgradableReadGuard<RawRwLock, i32> = routes.upgradable_read_arc();
    let writer: ArcRwLockWriteGuard<RawRwLock, i32> = ArcRwLockUpgradableReadGuard::upgrade(read);
    writeln!(out, "{} {}", *writer, routes.is_locked_exclusive()).unwrap();
}

fn conditions(out: &mut String) {
    let mut guard = MUTEX.lock();
    let result: WaitTimeoutResult = CHANGED.wait_for(&mut guard, OVER);
    writeln!(out, "{result:?} {}", result.timed_out()).unwrap();
    writeln!(out, "{:?}", CHANGED.wait_until(&mut guard, Instant::now())).unwrap();
    writeln!(out, "{:?}", CHANGED.wait_while_for(&mut guard, |pair| pair.0 == 99, LONG)).unwrap();
    writeln!(out, "{:?}", CHANGED.wait_while_until(&mut guard, |_| true, Instant::now())).unwrap();
    CHANGED.wait_while(&mut guard, |pair| pair.0 == 99);
    writeln!(out, "{CHANGED:?} {} {}", CHANGED.notify_one(), CHANGED.notify_all()).unwrap();
    let other = std::thread::spawn(|| {
        MUTEX.lock().0 = 7;
        CHANGED.notify_one()
    });
    while guard.0 != 7 {
        CHANGED.wait(&mut guard);
    }
    writeln!(out, "{:?} {:?}", other.join().unwrap(), Condvar::default()).unwrap();
}

fn onces(out: &mut String) {
    writeln!(out, "{START:?}").unwrap();
    let failed = std::panic::catch_unwind(|| START.call_once(|| std::panic::resume_unwind(Box::new(()))));
    let again = START.state();
    writeln!(out, "{} {again:?} {} {}", failed.is_err(), again.poisoned(), again.done()).unwrap();
    START.call_once_force(|before| {
        writeln!(out, "{before:?} {:?}", START.state() == OnceState::InProgress).unwrap();
    });
    START.call_once(|| unreachable!());
    writeln!(out, "{:?} {:?}", START.state(), Once::default().state()).unwrap();
}
