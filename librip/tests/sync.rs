//! `librip::sync` behaves as `std::sync` does, with and without a ring: a program can simply change its imports.
//!
//! These tests do not check what is recorded. The end-to-end tests do so, on programs that really die.

#![cfg(not(loom))]

#[path = "sync/channels.rs"]
mod channels;
#[path = "sync/once.rs"]
mod once;
#[path = "sync/threads.rs"]
mod threads;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use librip::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

static COUNTER: Mutex<u64> = Mutex::new(0);
static TABLE: RwLock<[u8; 4]> = RwLock::new([1, 2, 3, 4]);
static CHANGED: Condvar = Condvar::new();

/// Runs `test` in a process with a ring, if a ring can be made.
fn with_ring(test: impl FnOnce()) {
    let _ = librip::Builder::new().slots(1024).keep(librip::Keep::Never).create();
    test();
}

/// Evaluates at compile time whether a type implements a trait: the inherent constant exists only if it does.
macro_rules! implements {
    ($type:ty: $bound:path) => {{
        struct Check<T: ?Sized>(std::marker::PhantomData<T>);
        #[allow(dead_code, reason = "unused if the type does not implement the trait")]
        impl<T: ?Sized + $bound> Check<T> {
            const IS: bool = true;
        }
        #[allow(dead_code, reason = "unused if the type implements the trait")]
        trait Not {
            const IS: bool = false;
        }
        impl<T: ?Sized> Not for Check<T> {}
        Check::<$type>::IS
    }};
}

#[test]
fn locks_and_guards_are_send_and_sync_exactly_as_those_of_std_are() {
    type NotSync = std::cell::Cell<u8>;
    type Neither = std::rc::Rc<u8>;
    macro_rules! same {
        ($($name:ident [$($argument:tt)*])*) => {
            $(
                const {
                    assert!(
                        implements!($name<$($argument)*>: Send)
                            == implements!(std::sync::$name<$($argument)*>: Send)
                    );
                    assert!(
                        implements!($name<$($argument)*>: Sync)
                            == implements!(std::sync::$name<$($argument)*>: Sync)
                    );
                    assert!(
                        implements!($name<$($argument)*>: std::panic::UnwindSafe)
                            == implements!(std::sync::$name<$($argument)*>: std::panic::UnwindSafe)
                    );
                    assert!(
                        implements!($name<$($argument)*>: std::panic::RefUnwindSafe)
                            == implements!(std::sync::$name<$($argument)*>: std::panic::RefUnwindSafe)
                    );
                }
            )*
        };
    }
    same! {
        Mutex[u8] Mutex[NotSync] Mutex[Neither]
        RwLock[u8] RwLock[NotSync] RwLock[Neither]
        MutexGuard['static, u8] MutexGuard['static, NotSync] MutexGuard['static, Neither]
        RwLockReadGuard['static, u8] RwLockReadGuard['static, NotSync] RwLockReadGuard['static, Neither]
        RwLockWriteGuard['static, u8] RwLockWriteGuard['static, NotSync] RwLockWriteGuard['static, Neither]
    }
    const { assert!(implements!(Condvar: Send) && implements!(Condvar: Sync)) };
    const { assert!(!implements!(MutexGuard<'static, u8>: Send)) };
}

#[test]
fn a_value_may_hold_references_that_die_with_the_lock() {
    // It compiles only if the drop checker knows that dropping the lock does not access the value (`may_dangle`).
    let mutex = Mutex::new(None);
    let value = 5;
    *mutex.lock().unwrap() = Some(&value);
    let rwlock = RwLock::new(None);
    let other = 6;
    *rwlock.write().unwrap() = Some(&other);
    assert_eq!((*mutex.lock().unwrap(), *rwlock.read().unwrap()), (Some(&5), Some(&6)));
}

#[test]
fn statics_and_unsized_values_are_locked() {
    with_ring(|| {
        *COUNTER.lock().unwrap() += 1;
        assert_eq!(TABLE.read().unwrap()[2], 3);
        let slice: Box<Mutex<[u8]>> = Box::new(Mutex::new([1, 2, 3]));
        slice.lock().unwrap()[1] = 9;
        assert_eq!(*slice.try_lock().unwrap(), [1, 9, 3]);
        let display: &RwLock<dyn std::fmt::Display> = &RwLock::new(7);
        assert_eq!(display.read().unwrap().to_string(), "7");
        assert_eq!(format!("{}", display.write().unwrap()), "7");
    });
}

#[test]
fn a_panic_poisons_as_in_std() {
    with_ring(|| {
        let mutex = Mutex::new(1);
        let rwlock = RwLock::new(1);
        let panics = |body: &dyn Fn()| assert!(catch_unwind(AssertUnwindSafe(body)).is_err());
        panics(&|| {
            let _guard = rwlock.read().unwrap();
            panic!("on purpose");
        });
        assert!(!rwlock.is_poisoned(), "a reader does not poison");
        panics(&|| {
            let mut guard = (mutex.lock().unwrap(), rwlock.write().unwrap());
            (*guard.0, *guard.1) = (2, 2);
            panic!("on purpose");
        });
        assert!(mutex.is_poisoned() && rwlock.is_poisoned());
        assert_eq!(*mutex.lock().unwrap_err().into_inner(), 2);
        assert!(matches!(mutex.try_lock(), Err(TryLockError::Poisoned(guard)) if **guard.get_ref() == 2));
        assert!(rwlock.read().is_err() && rwlock.write().is_err() && rwlock.try_write().is_err());
        mutex.clear_poison();
        rwlock.clear_poison();
        assert!(mutex.lock().is_ok() && rwlock.try_read().is_ok());
        panics(&|| {
            let _guard = mutex.lock().unwrap();
            panic!("on purpose");
        });
        assert_eq!(mutex.into_inner().unwrap_err().into_inner(), 2);
    });
}

#[test]
fn a_condition_wait_returns_the_guard_of_a_poisoned_mutex() {
    with_ring(|| {
        let (mutex, changed) = (Mutex::new(false), Condvar::new());
        thread::scope(|scope| {
            let (waits, is_waiting) = mpsc::channel();
            let (mutex, changed) = (&mutex, &changed);
            let waiter = scope.spawn(move || {
                let mut guard = mutex.lock().unwrap();
                waits.send(()).unwrap();
                loop {
                    guard = match changed.wait(guard) {
                        Ok(guard) => guard,
                        Err(poisoned) => break *poisoned.into_inner(),
                    };
                }
            });
            is_waiting.recv().unwrap();
            let panicking = scope.spawn(move || {
                let mut guard = mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                *guard = true;
                // The waiter is woken now, and waits for the mutex until the panic has released it.
                changed.notify_one();
                panic!("on purpose");
            });
            assert!(panicking.join().is_err());
            assert!(waiter.join().unwrap());
        });
    });
}

#[test]
fn tries_fail_while_the_lock_is_held() {
    with_ring(|| {
        let mutex = Mutex::new(());
        let held = mutex.lock().unwrap();
        assert!(matches!(mutex.try_lock(), Err(TryLockError::WouldBlock)));
        drop(held);
        assert!(mutex.try_lock().is_ok());
        let rwlock = RwLock::new(());
        let read = rwlock.read().unwrap();
        assert!(rwlock.try_read().is_ok() && rwlock.try_write().is_err());
        drop(read);
        let write = rwlock.write().unwrap();
        assert!(rwlock.try_read().is_err());
        let read = RwLockWriteGuard::downgrade(write);
        assert!(rwlock.try_read().is_ok() && rwlock.try_write().is_err());
        drop(read);
        assert!(rwlock.try_write().is_ok());
    });
}

#[test]
fn get_mut_and_into_inner_return_the_value() {
    let mut mutex = Mutex::from(1);
    *mutex.get_mut().unwrap() += 1;
    assert_eq!(mutex.into_inner().unwrap(), 2);
    let mut rwlock = RwLock::from(1);
    *rwlock.get_mut().unwrap() += 1;
    assert_eq!(rwlock.into_inner().unwrap(), 2);
    assert_eq!(*Mutex::<u8>::default().lock().unwrap(), *RwLock::<u8>::default().read().unwrap());
}

#[test]
fn debug_output_is_that_of_std() {
    let pairs = [
        (format!("{:?}", Mutex::new("value")), format!("{:?}", std::sync::Mutex::new("value"))),
        (format!("{:#?}", RwLock::new([1, 2])), format!("{:#?}", std::sync::RwLock::new([1, 2]))),
        (format!("{:?}", Condvar::new()), format!("{:?}", std::sync::Condvar::new())),
    ];
    for (ours, theirs) in pairs {
        assert_eq!(ours, theirs);
    }
    let (ours, theirs) = (Mutex::new(1), std::sync::Mutex::new(1));
    let guards = (ours.lock().unwrap(), theirs.lock().unwrap());
    assert_eq!(
        format!("{:?} {:?} {}", ours, guards.0, guards.0),
        format!("{:?} {:?} {}", theirs, guards.1, guards.1)
    );
    let (ours, theirs) = (RwLock::new(1), std::sync::RwLock::new(1));
    let guards = (ours.write().unwrap(), theirs.write().unwrap());
    assert_eq!(format!("{:?} {:?}", ours, guards.0), format!("{:?} {:?}", theirs, guards.1));
}

#[test]
fn condition_variables_wake_waiters_and_waits_time_out() {
    with_ring(|| {
        let ready = Mutex::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                *ready.lock().unwrap() = true;
                CHANGED.notify_all();
            });
            let guard = CHANGED.wait_while(ready.lock().unwrap(), |ready| !*ready).unwrap();
            assert!(*guard);
        });
        let never = Condvar::new();
        let brief = Duration::from_millis(1);
        let begin = Instant::now();
        let (guard, result) = never.wait_timeout_while(ready.lock().unwrap(), brief, |_| true).unwrap();
        assert!(result.timed_out() && begin.elapsed() >= brief && *guard);
        drop(guard);
        let hour = Duration::from_secs(3600);
        let (guard, result) = never.wait_timeout_while(ready.lock().unwrap(), hour, |ready| !*ready).unwrap();
        assert!(!result.timed_out() && *guard, "the condition was true at once");
        let (guard, _) = never.wait_timeout(guard, brief).unwrap();
        assert!(*guard);
    });
}

#[test]
fn writers_exclude_each_other_and_readers_do_not() {
    with_ring(|| {
        let (total, inside) = (RwLock::new(0u64), AtomicUsize::new(0));
        let count = Mutex::new(0u64);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for step in 0..2000 {
                        if step % 4 > 0 {
                            let value = *total.read().unwrap();
                            assert!(value <= 2000);
                        } else {
                            let mut total = total.write().unwrap();
                            assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                            *total += 1;
                            inside.fetch_sub(1, Ordering::Relaxed);
                        }
                        *count.lock().unwrap() += 1;
                    }
                });
            }
        });
        assert_eq!((total.into_inner().unwrap(), count.into_inner().unwrap()), (2000, 8000));
    });
}

/// Compiles only if the types are the standard library's.
#[test]
fn results_and_constants_are_those_of_the_standard_library() {
    let (mutex, condition) = (Mutex::new(0), Condvar::new());
    let waited = condition.wait_timeout(mutex.lock().unwrap(), Duration::from_millis(1)).unwrap();
    let result: std::sync::WaitTimeoutResult = waited.1;
    assert!(result.timed_out());
    let (guard, result) =
        condition.wait_timeout_while(waited.0, Duration::from_millis(1), |value| *value == 0).unwrap();
    assert!(result.timed_out());
    let (guard, result) = condition.wait_timeout_while(guard, Duration::ZERO, |value| *value == 0).unwrap();
    assert!(result.timed_out());
    let (guard, result) = condition.wait_timeout_while(guard, Duration::MAX, |value| *value == 1).unwrap();
    assert!(!result.timed_out());
    #[allow(deprecated, reason = "it exists")]
    let (guard, was_notified) = condition.wait_timeout_ms(guard, 1).unwrap();
    assert!(!was_notified);
    drop(guard);
    #[allow(deprecated, reason = "it exists")]
    static ONCE: librip::sync::Once = librip::sync::ONCE_INIT;
    ONCE.call_once(|| ());
    assert!(ONCE.is_completed());
}
