// The part of `parking_lot`'s interface that 0.13 has alone: see `lot_api.rs`.

use parking_lot::lock_api::{RawCondvar as _, RawCondvarTimed};
use parking_lot::{
    MappedRecursiveRwLockReadGuard, MappedRecursiveRwLockWriteGuard, RawCondvar, RawRwLockRecursive,
    RecursiveRwLock, RecursiveRwLockReadGuard, RecursiveRwLockUpgradableReadGuard, RecursiveRwLockWriteGuard,
};

static RECURSIVE: RecursiveRwLock<(u32, u32)> = RecursiveRwLock::new((1, 2));

type Guard = lock_api::GuardNoSend;

fn raw_condvar<R>()
where
    R: RawCondvarTimed<RawMutex = RawMutex> + Send + Sync + 'static,
{
}

fn stateless_mutex<R: lock_api::RawMutex<Guard = Guard>>() {}

fn stateless_rwlock<R>()
where
    R: RawRwLockUpgrade<SharedGuard = Guard, ExclusiveGuard = Guard, UpgradableGuard = Guard>,
{
}

fn of_this_version(out: &mut String) {
    raw_condvar::<RawCondvar>();
    raw_rwlock::<RawRwLockRecursive>();
    raw_rwlock::<RawRwLock<true>>();
    raw_rwlock::<RawRwLock<false>>();
    has_traits::<RawCondvar>();
    has_traits::<RawRwLockRecursive>();
    stateless_mutex::<RawMutex>();
    stateless_mutex::<RawFairMutex>();
    stateless_rwlock::<RawRwLock>();
    stateless_rwlock::<RawRwLockRecursive>();
    recursive(out);
    completed(out);
    waits(out);
    raw(out);
}

fn recursive(out: &mut String) {
    let reader: RecursiveRwLockReadGuard<'_, _> = RECURSIVE.read();
    let writer = std::thread::spawn(|| drop(RECURSIVE.write()));
    // The writer comes first, or later: this passes it either way.
    while RECURSIVE.try_upgradable_read().is_some() {
        std::thread::yield_now();
    }
    let mut others = (RECURSIVE.read(), RECURSIVE.try_read().is_some());
    RecursiveRwLockReadGuard::bump(&mut others.0);
    writeln!(out, "{reader:?} {others:?} {}", RECURSIVE.try_read_for(OVER).is_some()).unwrap();
    drop((reader, others));
    writer.join().unwrap();
    let mapped: MappedRecursiveRwLockReadGuard<'_, u32> =
        RecursiveRwLockReadGuard::map(RECURSIVE.read(), |pair| &pair.1);
    writeln!(out, "{mapped:?}").unwrap();
    drop(mapped);
    let writer: RecursiveRwLockWriteGuard<'_, _> = RECURSIVE.write();
    writeln!(out, "{writer:?} {}", RECURSIVE.try_read_until(Instant::now()).is_none()).unwrap();
    let mapped: MappedRecursiveRwLockWriteGuard<'_, u32> =
        RecursiveRwLockWriteGuard::map(writer, |pair| &mut pair.1);
    writeln!(out, "{mapped:?}").unwrap();
    drop(mapped);
    let read: RecursiveRwLockUpgradableReadGuard<'_, _> = RECURSIVE.upgradable_read();
    writeln!(out, "{:?}", RecursiveRwLockUpgradableReadGuard::upgrade(read)).unwrap();
}

fn completed(out: &mut String) {
    static COMPLETED: Once = Once::new_completed();
    const IS_COMPLETED: (bool, bool) = (OnceState::Done.is_completed(), OnceState::Poisoned.is_poisoned());
    COMPLETED.call_once(|| unreachable!());
    COMPLETED.wait();
    writeln!(out, "{COMPLETED:?} {} {IS_COMPLETED:?}", COMPLETED.is_completed()).unwrap();
}

fn waits(out: &mut String) {
    static ONCE: Once = Once::new();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| ONCE.wait());
        let waits_on = scope.spawn(|| ONCE.wait_force());
        let failed = scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(10));
            let run = || ONCE.call_once(|| std::panic::resume_unwind(Box::new(())));
            let failed = std::panic::catch_unwind(run);
            (failed.is_err(), ONCE.state(), ONCE.is_completed())
        });
        writeln!(out, "{:?}", failed.join().unwrap()).unwrap();
        // A thread that comes this late panics too.
        writeln!(out, "{}", waits.join().is_err()).unwrap();
        writeln!(out, "{}", waits_on.is_finished()).unwrap();
        ONCE.call_once_force(|state| writeln!(out, "{}", state.is_poisoned()).unwrap());
        waits_on.join().unwrap();
        ONCE.wait();
    });
}

fn raw(out: &mut String) {
    std::mem::forget(PLAIN.0.lock());
    // SAFETY: this thread has just locked it, and nobody has a guard.
    unsafe { PLAIN.0.force_unlock(Guard::new()) };
    writeln!(out, "{}", PLAIN.0.is_locked()).unwrap();
    let free = RawMutex::INIT;
    let mutex = Mutex::from_raw(free, 8);
    // SAFETY: the lock is left as it was.
    let raw = unsafe { mutex.raw() };
    let held = raw.lock();
    writeln!(out, "{} {}", raw.try_lock().is_some(), mutex.is_locked()).unwrap();
    // SAFETY: this thread has locked it.
    unsafe { raw.unlock_fair(held) };
    let mut held = raw.try_lock_for(LONG).expect("free");
    // SAFETY: as above.
    let is_timed_out = unsafe { CHANGED.raw().wait_for(raw, &mut held, &OVER) };
    writeln!(out, "{is_timed_out} {} {}", RawCondvar::INIT.notify_one(), CHANGED.raw().notify_all()).unwrap();
    writeln!(out, "{}", RawCondvar::checked_duration_to_instant(&Duration::MAX).is_none()).unwrap();
    // SAFETY: as above.
    unsafe { raw.unlock(held) };
    let (_raw, value) = mutex.into_inner_with_raw();
    writeln!(out, "{value}").unwrap();
    let routes: RwLock<u8> = RwLock::from_raw(RawRwLock::INIT, 9);
    // SAFETY: the lock is left as it was.
    let raw = unsafe { routes.raw() };
    let held = raw.lock_shared();
    writeln!(out, "{} {}", raw.try_lock_exclusive().is_some(), raw.is_locked()).unwrap();
    // SAFETY: this thread has locked it.
    unsafe { raw.unlock_shared(held) };
    let fair = RawFairMutex::INIT;
    let held = fair.lock();
    writeln!(out, "{}", fair.is_locked()).unwrap();
    // SAFETY: as above.
    unsafe { fair.unlock(held) };
}
