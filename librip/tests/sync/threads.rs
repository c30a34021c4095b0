//! `librip::thread` behaves as `std::thread` does.

use std::os::unix::thread::JoinHandleExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc;
use std::time::Duration;

// All stable names of `std::thread`.
#[allow(deprecated, unused_imports, reason = "what matters is that they exist")]
use librip::thread::{
    self, AccessError, Builder, JoinHandle, LocalKey, Result, Scope, ScopedJoinHandle, Thread, ThreadId,
    available_parallelism, current, panicking, park, park_timeout, park_timeout_ms, scope, sleep, sleep_ms,
    spawn, yield_now,
};

#[test]
fn a_join_gives_what_the_thread_returned_or_its_panic() {
    assert_eq!(spawn(|| 7).join().unwrap(), 7);
    let panic = spawn(|| panic!("on purpose")).join().unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"on purpose"));
}

#[test]
fn a_builder_names_its_thread() {
    let name = || current().name().map(str::to_owned);
    let handle = Builder::new().name("saver".to_owned()).stack_size(1 << 20).spawn(name).unwrap();
    assert_eq!(handle.thread().name(), Some("saver"));
    assert_eq!(handle.join().unwrap().as_deref(), Some("saver"));
}

#[test]
fn a_thread_that_cannot_be_started_is_an_error() {
    assert!(Builder::new().stack_size(usize::MAX / 2).spawn(|| ()).is_err());
    let unused = AtomicUsize::new(0);
    scope(|scope| {
        let builder = Builder::new().stack_size(usize::MAX / 2);
        assert!(builder.spawn_scoped(scope, || unused.fetch_add(1, SeqCst)).is_err());
    });
    assert_eq!(unused.into_inner(), 0);
}

#[test]
fn a_handle_knows_whether_its_thread_is_finished() {
    let (say, said) = mpsc::channel::<()>();
    let handle = spawn(move || said.recv());
    assert!(!handle.is_finished());
    drop(say);
    while !handle.is_finished() {
        yield_now();
    }
    assert!(handle.join().unwrap().is_err());
}

#[test]
fn a_join_takes_no_token_of_park() {
    current().unpark();
    assert_eq!(spawn(|| 1).join().unwrap(), 1);
    scope(|scope| {
        scope.spawn(yield_now);
    });
    // The standard library's scope parks too, so it may take the token.
    current().unpark();
    assert_eq!(spawn(|| 1).join().unwrap(), 1);
    park();
}

#[test]
fn a_parked_thread_is_woken() {
    let sleeper = spawn(|| {
        park();
        park_timeout(Duration::from_millis(1));
    });
    sleeper.thread().unpark();
    sleeper.join().unwrap();
}

#[test]
fn a_scope_waits_for_its_threads_and_those_that_they_start() {
    let ended = AtomicUsize::new(0);
    let result = scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                scope.spawn(|| {
                    yield_now();
                    ended.fetch_add(1, SeqCst);
                });
                yield_now();
                ended.fetch_add(1, SeqCst);
            });
        }
        "result"
    });
    assert_eq!((result, ended.load(SeqCst)), ("result", 20));
}

#[test]
fn a_scope_panics_if_a_thread_panicked_that_nobody_joined() {
    let ended = AtomicUsize::new(0);
    let run = || {
        scope(|scope| {
            scope.spawn(|| panic!("on purpose"));
            scope.spawn(|| ended.fetch_add(1, SeqCst));
        });
    };
    let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"a scoped thread panicked"));
    assert_eq!(ended.load(SeqCst), 1);
    let joined = scope(|scope| scope.spawn(|| panic!("on purpose")).join().is_err());
    assert!(joined, "this one was joined");
}

#[test]
fn a_scope_whose_function_panics_waits_for_its_threads() {
    let ended = AtomicUsize::new(0);
    let (say, said) = mpsc::channel::<()>();
    let run = || {
        scope(|scope| {
            // The panic drops it.
            let _say = say;
            let (ended, said) = (&ended, said);
            scope.spawn(move || {
                said.recv().unwrap_err();
                ended.fetch_add(1, SeqCst);
            });
            panic!("on purpose");
        })
    };
    let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"on purpose"));
    assert_eq!(ended.load(SeqCst), 1);
}

/// A result that uses the scope when it is dropped.
struct Late<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    dropped: &'scope AtomicUsize,
}

impl Drop for Late<'_, '_> {
    fn drop(&mut self) {
        let dropped = self.dropped;
        self.scope.spawn(|| dropped.fetch_add(1, SeqCst));
    }
}

#[test]
fn a_result_that_nobody_takes_may_use_the_scope_in_its_destructor() {
    let dropped = AtomicUsize::new(0);
    scope(|scope| {
        scope.spawn(|| Late { scope, dropped: &dropped });
    });
    assert_eq!(dropped.load(SeqCst), 1);
}

#[test]
fn a_handle_gives_the_thread_of_the_c_library_and_the_standard_librarys_handle() {
    let handle = spawn(|| 1);
    assert_ne!(handle.as_pthread_t(), 0);
    assert_eq!(std::thread::JoinHandle::from(handle).join().unwrap(), 1);
    fn is_shared<T: Send + Sync>() {}
    is_shared::<JoinHandle<i32>>();
    is_shared::<Scope<'_, '_>>();
    is_shared::<ScopedJoinHandle<'_, i32>>();
}

#[test]
fn an_unchecked_thread_may_borrow() {
    let value = 7;
    // SAFETY: it is joined while the value lives.
    #[allow(unsafe_code, reason = "it is the function under test")]
    let handle = unsafe { Builder::new().spawn_unchecked(|| value + 1) }.unwrap();
    assert_eq!(handle.join().unwrap(), 8);
}
