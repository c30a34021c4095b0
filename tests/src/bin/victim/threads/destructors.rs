//! Marks in the destructors of a thread, before and after librip's own.

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;

use librip::rip_snap;

use crate::common::{cycle, rename, run};

struct MarksWhenDropped(&'static str);

impl Drop for MarksWhenDropped {
    fn drop(&mut self) {
        match self.0 {
            "early" => rip_snap!("dropped early"),
            _ => rip_snap!("dropped late"),
        }
    }
}

thread_local! {
    static EARLY: RefCell<Option<MarksWhenDropped>> = const { RefCell::new(None) };
    static LATE: RefCell<Option<MarksWhenDropped>> = const { RefCell::new(None) };
}

/// A thread-specific key, made before librip's or after: glibc runs destructors by number.
static KEY_BEFORE: AtomicI32 = AtomicI32::new(-1);
static KEY_AFTER: AtomicI32 = AtomicI32::new(-1);

pub(crate) fn key(destructor: unsafe extern "C" fn(*mut c_void)) -> i32 {
    let mut key = 0;
    assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, Some(destructor)) }, 0);
    key as i32
}

pub(crate) fn set_key(key: &AtomicI32, round: usize) {
    let value = ptr::without_provenance(round);
    assert_eq!(unsafe { libc::pthread_setspecific(key.load(Relaxed) as u32, value) }, 0);
}

pub(crate) unsafe extern "C" fn before_round(round: *mut c_void) {
    match round.addr() {
        1 => rip_snap!("before, round 1"),
        2 => rip_snap!("before, round 2"),
        3 => rip_snap!("before, round 3"),
        _ => rip_snap!("before, round 4"),
    }
    set_key(&KEY_BEFORE, round.addr() + 1);
}

pub(crate) unsafe extern "C" fn after_round(round: *mut c_void) {
    match round.addr() {
        1 => rip_snap!("after, round 1"),
        2 => rip_snap!("after, round 2"),
        3 => rip_snap!("after, round 3"),
        _ => rip_snap!("after, round 4"),
    }
    set_key(&KEY_AFTER, round.addr() + 1);
}

pub(crate) unsafe extern "C" fn after_first(_value: *mut c_void) {
    rip_snap!("first in a destructor");
}

/// Makes the key whose destructor runs before librip's: to be called before `init`.
pub(crate) fn prepare() {
    KEY_BEFORE.store(key(before_round), Relaxed);
}

pub(crate) fn destructors() {
    KEY_AFTER.store(key(after_round), Relaxed);
    run("thread", || {
        EARLY.set(Some(MarksWhenDropped("early")));
        set_key(&KEY_BEFORE, 1);
        rip_snap!("first");
        LATE.set(Some(MarksWhenDropped("late")));
        set_key(&KEY_AFTER, 1);
    });
}

/// The first mark of a thread is made when it ends: in the drop of a thread-local, in a key's destructor.
pub(crate) fn destructor_first() {
    KEY_AFTER.store(key(after_first), Relaxed);
    run("drop", || EARLY.set(Some(MarksWhenDropped("early"))));
    run("key", || set_key(&KEY_AFTER, 1));
}

/// A thread that ends itself, without returning from its function.
pub(crate) fn pthread_exits() {
    extern "C-unwind" fn start(_argument: *mut c_void) -> *mut c_void {
        rename("leaver");
        (0..5).for_each(cycle);
        unsafe { libc::pthread_exit(ptr::null_mut()) }
    }
    let mut thread = 0;
    // Unwinds through `start`, which its type allows; the C library's declaration knows no such types.
    let start: extern "C" fn(*mut c_void) -> *mut c_void =
        unsafe { std::mem::transmute(start as extern "C-unwind" fn(*mut c_void) -> *mut c_void) };
    unsafe {
        assert_eq!(libc::pthread_create(&raw mut thread, ptr::null(), start, ptr::null_mut()), 0);
        assert_eq!(libc::pthread_join(thread, ptr::null_mut()), 0);
    }
}
