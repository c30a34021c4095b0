//! `Once`, `OnceLock` and `LazyLock` of `librip::sync` behave as those of `std::sync`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use librip::sync::{LazyLock, Once, OnceLock};

static STARTED: Once = Once::new();
static NAME: OnceLock<String> = OnceLock::new();
static ROUTES: LazyLock<Vec<u32>> = LazyLock::new(|| vec![1, 2]);

fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str)).unwrap()
}

#[test]
fn one_of_many_threads_initialises_and_all_see_it() {
    let count = AtomicUsize::new(0);
    let runs = || {
        STARTED.call_once(|| {
            count.fetch_add(1, SeqCst);
        });
        assert_eq!(NAME.get_or_init(|| format!("{}", count.load(SeqCst))), "1");
        assert_eq!(ROUTES.len(), 2);
    };
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(runs);
        }
        STARTED.wait();
        STARTED.wait_force();
        assert_eq!(NAME.wait(), "1");
    });
    assert_eq!(count.load(SeqCst), 1);
    assert!(STARTED.is_completed());
    assert_eq!(LazyLock::get(&ROUTES).map(Vec::len), Some(2));
}

#[test]
fn a_once_whose_initialiser_panicked_is_poisoned_until_it_is_forced() {
    let once = Once::new();
    catch_unwind(AssertUnwindSafe(|| once.call_once(|| panic!("on purpose")))).unwrap_err();
    assert!(!once.is_completed());
    let panic = catch_unwind(AssertUnwindSafe(|| once.call_once(|| ()))).unwrap_err();
    assert_eq!(message(&*panic), "Once instance has previously been poisoned");
    once.call_once_force(|state| assert!(state.is_poisoned()));
    assert!(once.is_completed());
    once.call_once(|| panic!("it is done"));
}

#[test]
fn a_once_lock_whose_initialiser_panicked_is_empty() {
    let lock = OnceLock::new();
    catch_unwind(AssertUnwindSafe(|| lock.get_or_init(|| panic!("on purpose")))).unwrap_err();
    assert_eq!(lock.get(), None);
    assert_eq!(*lock.get_or_init(|| 7), 7);
}

#[test]
fn a_once_lock_is_set_once_and_taken() {
    let mut lock = OnceLock::new();
    assert_eq!((lock.set(1), lock.set(2)), (Ok(()), Err(2)));
    *lock.get_mut().unwrap() += 2;
    assert_eq!((lock.clone(), OnceLock::from(3)), (lock.clone(), lock.clone()));
    assert_eq!(format!("{lock:?} {:?}", OnceLock::<i32>::default()), "OnceLock(3) OnceLock(<uninit>)");
    assert_eq!((lock.take(), lock.get()), (Some(3), None));
    assert_eq!(lock.set(4), Ok(()));
    assert_eq!(lock.into_inner(), Some(4));
}

#[test]
fn a_lazy_lock_whose_initialiser_panicked_is_poisoned() {
    let lazy: LazyLock<i32, _> = LazyLock::new(|| panic!("on purpose"));
    let force = || message(&*catch_unwind(AssertUnwindSafe(|| *lazy)).unwrap_err()).to_owned();
    assert_eq!(force(), "on purpose");
    assert_eq!(force(), "LazyLock instance has previously been poisoned");
    let known: std::sync::LazyLock<i32, _> = std::sync::LazyLock::new(|| panic!("on purpose"));
    let force = || message(&*catch_unwind(AssertUnwindSafe(|| *known)).unwrap_err()).to_owned();
    assert_eq!([force(), force()], ["on purpose", "LazyLock instance has previously been poisoned"]);
}

#[test]
fn a_lazy_lock_may_borrow_and_is_written_to() {
    let count = AtomicUsize::new(0);
    let mut lazy = LazyLock::new(|| count.fetch_add(1, SeqCst));
    assert_eq!(format!("{lazy:?}"), "LazyLock(<uninit>)");
    assert_eq!(LazyLock::get_mut(&mut lazy), None);
    assert_eq!((*lazy, *LazyLock::force(&lazy), *LazyLock::force_mut(&mut lazy)), (0, 0, 0));
    *lazy += 5;
    assert_eq!(format!("{lazy:?}"), "LazyLock(5)");
    drop(lazy);
    assert_eq!(count.into_inner(), 1);
    assert_eq!(*LazyLock::<u32>::default(), 0);
}

#[test]
fn once_types_are_send_and_sync_as_those_of_std_are() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Once>();
    is_shared::<OnceLock<String>>();
    // The initialiser may be one that cannot be shared.
    is_shared::<LazyLock<i32, Box<dyn FnOnce() -> i32 + Send>>>();
}
