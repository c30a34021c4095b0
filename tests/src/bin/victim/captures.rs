//! Captures: slow cycles among many, captures by hand, and captures at full speed until it dies.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use librip::{rip_capture, rip_event, rip_slow_cycle, rip_snap};
use librip_test_kit::progress::Cell;

use crate::common::{self, pause, say, sleep_forever};

pub(crate) fn main(arguments: &[&str]) {
    common::init();
    match arguments {
        ["cycles"] => cycles(),
        ["by-hand"] => by_hand(),
        ["handler"] => handler(),
        ["forked"] => forked(),
        ["storm", threads] => storm(threads.parse().expect("a number")),
        _ => panic!("which way?"),
    }
    std::process::exit(3);
}

const LIMIT: Duration = Duration::from_millis(20);

/// Hundreds of cycles, of which a few are slow. It says which, and which may be because the machine was busy.
fn cycles() {
    for cycle in 0..400u32 {
        let begun = Instant::now();
        let is_slow = cycle % 100 == 7;
        // Either form.
        if cycle % 2 == 0 {
            let _cycle = rip_slow_cycle!("work", LIMIT);
            work(cycle, is_slow);
        } else {
            rip_slow_cycle!("work", LIMIT, || work(cycle, is_slow));
        }
        if is_slow {
            say(&format!("slow {cycle}"));
        } else if begun.elapsed() > LIMIT {
            say(&format!("perhaps {cycle}"));
        }
    }
    forget();
    say("done");
    pause();
}

fn work(cycle: u32, is_slow: bool) {
    rip_event!("cycle {}", cycle);
    rip_snap!();
    let begun = Instant::now();
    while is_slow && begun.elapsed() <= LIMIT {}
}

/// Replaces the thread's whole history.
fn forget() {
    (0..20_000).for_each(|_| rip_snap!());
}

fn by_hand() {
    rip_event!("before {}", 1u32);
    rip_capture!("kept {}", "a text");
    forget();
    rip_capture!(level error, "kept again");
    say("kept");
    pause();
}

/// A signal handler that captures, while the thread captures too.
fn handler() {
    static HANDLED: AtomicU64 = AtomicU64::new(0);
    extern "C" fn handler(_signal: i32) {
        rip_capture!("handled {}", HANDLED.fetch_add(1, Relaxed));
    }
    common::handle(libc::SIGUSR1, handler, libc::SA_RESTART);
    let thread = unsafe { libc::pthread_self() };
    let sender = std::thread::spawn(move || {
        while HANDLED.load(Relaxed) < 1000 {
            unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
            std::thread::yield_now();
        }
    });
    let mut count = 0u64;
    while HANDLED.load(Relaxed) < 1000 {
        rip_capture!("outside {}", count);
        count += 1;
    }
    sender.join().expect("the sender ends");
    say("done");
    pause();
}

/// The child captures into the ring of its parent.
fn forked() {
    rip_event!("in the parent");
    let child = unsafe { libc::fork() };
    if child == 0 {
        rip_event!("in the child");
        rip_capture!("kept by the child");
        unsafe { libc::_exit(3) };
    }
    let mut status = 0;
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    rip_capture!("kept by the parent");
    say("kept");
    pause();
}

/// Threads that capture at full speed: each event can be checked by itself.
fn storm(threads: usize) {
    common::storm(threads, capture);
    say("ready");
    sleep_forever();
}

fn capture(thread: u64, cell: &Cell) -> ! {
    for step in 0u64.. {
        rip_event!("{} of {}", step, thread);
        if step % 3 == 2 {
            rip_capture!("{} of {} kept", step, thread);
        }
        cell.advance();
    }
    unreachable!("a thread counts for ever")
}
