//! Threads of a program with a ring, stuck in something that no ring records: only the kernel and the memory know it.

#![allow(unsafe_code, reason = "a mutex of the C library and a nice value have no safe functions")]

use std::cell::UnsafeCell;
use std::thread;

use librip::sync::Mutex;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::stage::{Meeting, Scenario, actor, leaked, until_waits};

pub(crate) const ALL: &[Scenario] = &[
    ("cycle-through-an-unrecorded-mutex", cycle_through_a_mutex),
    ("join-under-a-lock", join_under_a_lock),
    ("holder-without-a-processor", without_a_processor),
];

static ACCOUNTS: Mutex<i64> = Mutex::new(0);

/// A mutex of the C library, which no ring records.
struct Unrecorded(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: the C library's functions for mutexes may be called by all threads at the same time.
unsafe impl Sync for Unrecorded {}

static JOURNAL: Unrecorded = Unrecorded(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));

impl Unrecorded {
    fn lock(&self) {
        // SAFETY: the mutex is initialised, and nobody destroys it.
        assert_eq!(unsafe { libc::pthread_mutex_lock(self.0.get()) }, 0);
    }
}

/// One thread has the recorded lock and wants the mutex, the other has the mutex and wants the recorded lock.
fn cycle_through_a_mutex() {
    let meeting: &'static Meeting = leaked(Meeting::new(2));
    let teller = actor("teller", move || {
        let _accounts = ACCOUNTS.lock().unwrap();
        meeting.wait();
        JOURNAL.lock();
    });
    let auditor = actor("auditor", move || {
        JOURNAL.lock();
        meeting.wait();
        drop(ACCOUNTS.lock().unwrap());
    });
    drop(teller.until_blocked());
    drop(auditor.until_blocked());
}

/// A thread joins another one, which wants a lock that the first one has.
fn join_under_a_lock() {
    let joiner = actor("joiner", || {
        let accounts = ACCOUNTS.lock().unwrap();
        let closer = thread::Builder::new().name("closer".to_owned());
        closer.spawn(|| drop(ACCOUNTS.lock().unwrap())).unwrap().join().unwrap();
        drop(accounts);
    });
    // The closer sleeps in a futex too, at once or after the join began: it wants the lock that the joiner has.
    drop(joiner.until_blocked());
    until_waits("closer");
}

/// The holder is ready to run, and other threads have its processor.
fn without_a_processor() {
    let meeting: &'static Meeting = leaked(Meeting::new(4));
    drop(actor("flusher", move || {
        let accounts = ACCOUNTS.lock().unwrap();
        run_on_the_first_processor();
        // SAFETY: the call touches no memory.
        assert_eq!(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) }, 0);
        meeting.wait();
        spin();
        drop(accounts);
    }));
    for _ in 0..2 {
        drop(actor("busy", move || {
            run_on_the_first_processor();
            meeting.wait();
            spin();
        }));
    }
    meeting.wait();
    drop(actor("client", || drop(ACCOUNTS.lock().unwrap())).until_blocked());
}

fn spin() {
    loop {
        std::hint::spin_loop();
    }
}

/// Keeps the calling thread on the first processor that it may use.
fn run_on_the_first_processor() {
    let own = Pid::from_raw(0);
    let allowed = sched_getaffinity(own).unwrap();
    let first = (0..CpuSet::count()).find(|&at| allowed.is_set(at).unwrap());
    let mut one = CpuSet::new();
    one.set(first.unwrap()).unwrap();
    sched_setaffinity(own, &one).unwrap();
}
