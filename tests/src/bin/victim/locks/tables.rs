//! The held-lock table and the table of names: over time, beyond their capacity, across threads, after a lock ends.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::mpsc;

use librip::raw::{Recorded, SetName};
use librip::sync::{Condvar, Mutex, RwLock};
use librip::{
    rip_lock_acquired, rip_lock_destroyed, rip_lock_name, rip_lock_released, rip_lock_wait, rip_snap,
};

use super::{LotMutex, say_address};
use crate::common::{named, pause, run};
use crate::spin::Spin;

/// A lock whose guards may be sent to another thread.
type SpinMutex = lock_api::Mutex<Recorded<Spin<lock_api::GuardSend>>, u64>;

/// Holds a lock while the thread records a million words.
pub(crate) fn wrapped() {
    static HELD: Mutex<u64> = Mutex::new(0);
    static OTHER: RwLock<u64> = RwLock::new(0);
    say_address(&HELD);
    let guard = HELD.lock().unwrap();
    for _ in 0..250_000 {
        rip_snap!("cycle 0");
        drop(OTHER.read().unwrap());
    }
    pause();
    drop(guard);
    pause();
}

pub(crate) fn overflow() {
    let locks: Vec<Mutex<u64>> = (0..20).map(Mutex::new).collect();
    locks.iter().for_each(say_address);
    let mut guards: Vec<_> = locks.iter().map(|lock| lock.lock().unwrap()).collect();
    pause();
    // First the locks without an entry, then one with an entry.
    guards.truncate(15);
    drop(guards.remove(3));
    pause();
    // The table has free entries again.
    let again = locks[18].lock().unwrap();
    pause();
    drop(again);
    guards.clear();
    pause();
}

/// A thread holds 20 locks. It waits for one more, then on a condition with the last of the 20, then for a lock that is
/// marked by hand. The main thread lets it go on each time.
pub(crate) fn full_table() {
    static WAITED_FOR: Mutex<u64> = Mutex::new(0);
    static CONDITION: Mutex<bool> = Mutex::new(false);
    static CHANGED: Condvar = Condvar::new();
    static BY_HAND: u64 = 0;
    let locks: &'static [Mutex<u64>] = (0..20).map(Mutex::new).collect::<Vec<_>>().leak();
    locks.iter().for_each(say_address);
    say_address(&WAITED_FOR);
    say_address(&BY_HAND);
    say_address(&CONDITION);
    let waited_for = WAITED_FOR.lock().unwrap();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let thread = named("full").spawn(move || {
        let guards: Vec<_> = locks.iter().map(|lock| lock.lock().unwrap()).collect();
        drop(WAITED_FOR.lock().unwrap());
        drop(CHANGED.wait_while(CONDITION.lock().unwrap(), |is_over| !*is_over).unwrap());
        rip_lock_wait!(&BY_HAND);
        goes_on.recv().unwrap();
        rip_lock_acquired!(&BY_HAND);
        rip_lock_released!(&BY_HAND);
        drop(guards);
    });
    pause();
    drop(waited_for);
    pause();
    *CONDITION.lock().unwrap() = true;
    CHANGED.notify_one();
    pause();
    go_on.send(()).unwrap();
    thread.unwrap().join().unwrap();
    pause();
}

pub(crate) fn handed_over() {
    static SENT: SpinMutex = SpinMutex::new(0);
    static BY_HAND: u64 = 0;
    say_address(unsafe { SENT.raw() });
    say_address(&BY_HAND);
    let guard = SENT.lock();
    rip_lock_acquired!(&BY_HAND);
    pause();
    // Its first event is the release of a lock that it never acquired.
    run("other", move || drop(guard));
    pause();
    run("another", || rip_lock_released!(&BY_HAND));
    pause();
}

/// Memory in which one lock follows another.
struct Place(UnsafeCell<MaybeUninit<Mutex<u64>>>);
unsafe impl Sync for Place {}

pub(crate) fn names() {
    static PLACE: Place = Place(UnsafeCell::new(MaybeUninit::uninit()));
    static BY_HAND: u64 = 0;
    static RAW: LotMutex = LotMutex::new(0);
    let make = || unsafe { (*PLACE.0.get()).write(Mutex::new(0)) };
    let mutex = make();
    say_address(&*mutex);
    say_address(&BY_HAND);
    say_address(unsafe { RAW.raw() });
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

/// Four threads name 100,000 locks, and then end every other one.
pub(crate) fn many_names() {
    let locks: Vec<u64> = vec![0; 100_000];
    say_address(&locks[0]);
    let each = |what: &(dyn Fn(usize, &u64) + Sync)| {
        std::thread::scope(|scope| {
            for part in 0..4 {
                let own = locks.iter().enumerate().skip(part).step_by(4);
                scope.spawn(move || own.for_each(|(at, lock)| what(at, lock)));
            }
        });
    };
    each(&|at, lock| rip_lock_name!(lock, format!("lock {at}")));
    pause();
    each(&|at, lock| {
        if at % 2 == 1 {
            rip_lock_destroyed!(lock);
        }
    });
    pause();
}

pub(crate) fn destroyed() {
    let mutex = Box::new(Mutex::new(0));
    let lot = Box::new(LotMutex::new(0));
    let unused = Box::new(Mutex::new(0));
    say_address(&*mutex);
    say_address(unsafe { lot.raw() });
    say_address(&*unused);
    std::mem::forget(mutex.lock().unwrap());
    std::mem::forget(lot.lock());
    pause();
    drop((mutex, lot, unused));
    pause();
}
