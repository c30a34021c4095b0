//! Events with values, and spans: each value once, at full speed until it dies, and in signal handlers.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use librip::{Text, Value, rip_capture, rip_event, rip_progress, rip_snap, rip_span};
use librip_test_kit::progress::Cell;

use crate::common::{self, pause, say, sleep_forever};

pub(crate) fn main(arguments: &[&str]) {
    common::init();
    match arguments {
        ["values"] => values(),
        ["spans"] => spans(),
        ["dated"] => dated(),
        ["sampled"] => sampled(),
        ["crowded"] => crowded(),
        ["forked"] => forked(),
        ["handlers"] => handlers(),
        ["overtaken"] => overtaken(),
        ["storm", threads] => storm(threads.parse().expect("a number")),
        ["paced", threads] => paced(threads.parse().expect("a number")),
        _ => panic!("which way?"),
    }
    std::process::exit(3);
}

/// What stands for itself by its number.
struct Id(u32);

impl Value for Id {
    type Recorded<'a> = u32;

    fn recorded(&self) -> u32 {
        self.0
    }
}

#[derive(Value)]
enum State {
    Idle,
    Busy { _since: u64 },
    Stopped(#[expect(dead_code, reason = "only the name is recorded")] u8),
}

#[derive(Value)]
struct Disk<'a> {
    name: &'a str,
}

#[derive(Value)]
struct Wrapped<T>(T);

/// A span with the name of the function, and one with a name and values.
#[librip::spanned]
fn a_function(depth: u32) -> u32 {
    if depth == 0 { 0 } else { 1 + named_by_hand(depth - 1) }
}

#[librip::spanned("by hand", "{} deep", depth)]
fn named_by_hand(depth: u32) -> u32 {
    a_function(depth)
}

const LONG: &str = "a text that is longer than the forty-eight bytes which an event keeps by value";

fn values() {
    rip_event!("nothing");
    rip_event!("{} {} {}", 255u8, u16::MAX, u32::MAX);
    rip_event!("{} {} {} {}", i8::MIN, i16::MIN, i32::MIN, i64::MIN);
    rip_event!("{:x} {:#b} {:>4} {:<4}|{:^5}|{:04}", -1i8, 5u8, 7, 8, 9, -3i32);
    rip_event!("{} {} {}", u64::MAX, usize::MAX, isize::MIN);
    rip_event!("{} {} {:?} {:.2}", 0.1f32, 0.1f64, f64::NAN, -1.005f64);
    rip_event!("{} {:?} {} {:?}", true, false, 'ß', '\n');
    rip_event!("{:p}", std::ptr::without_provenance::<u8>(0x10));
    rip_event!("{} {:?}", "text", String::from("quoted \"text\""));
    rip_event!("{}", LONG);
    // By value, with less of each than alone.
    rip_event!("{} {} {} {} {} {} {} {}", LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG);
    rip_event!("{} {:?}", Text(LONG), Text("short"));
    rip_event!("{0} {0:?} {1}", Id(7), &&Id(8));
    rip_event!("{} {:?} {:>8}|", State::Idle, State::Busy { _since: 3 }, State::Stopped(1));
    rip_event!("{} {:?} {}", Disk { name: "sda" }, Wrapped(Disk { name: "sdb" }), Wrapped(7i64));
    rip_event!("{{}} {} 100 %", "braces");
    rip_event!("{} {} {} {} {} {} {} {} {} {}", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
    rip_event!("ünïcode {}", "größe");
    rip_event!(level trace, "finest");
    rip_event!(level error, "failed: {}", 13);
    rip_event!("\x1b[31m{}", "\x1b]0;title\x07");
    let count = AtomicU64::new(0);
    rip_event!("evaluated {} time", count.fetch_add(1, Relaxed) + 1);
    assert_eq!(count.load(Relaxed), 1, "values are evaluated once");
}

fn spans() {
    let lines = rip_span!("closure", || 7);
    assert_eq!(lines, 7);
    assert_eq!(a_function(2), 2);
    let outer = rip_span!("outer", "{} of {}", 1, "two");
    let inner = rip_span!("inner");
    // In another order than they began.
    drop(outer);
    drop(inner);
    let caught = std::panic::catch_unwind(|| {
        let _span = rip_span!("unwound");
        std::panic::resume_unwind(Box::new(()));
    });
    assert!(caught.is_err());
    let _first = rip_span!("request", "{}", 4711u64);
    let _second = rip_span!("query", "{}", "SELECT 1");
    let _third = rip_span!("name", "{}", Text(LONG));
    say("open");
    pause();
}

/// Marks around two events, and a capture after each event. It waits after each part.
fn dated() {
    rip_snap!("0");
    rip_capture!("first");
    rip_snap!("1");
    say("first");
    pause();
    rip_snap!("2");
    rip_capture!("second");
    rip_snap!("3");
    say("second");
    pause();
    let _span = rip_span!("late");
    say("third");
    pause();
}

/// Marks of progress: one, many at full speed with plain marks between them, one after a pause, and one after a wait. It
/// says between which moments they were.
fn sampled() {
    let marked = |what: &str, mark: &dyn Fn()| {
        let begin = boottime_ns();
        mark();
        say(&format!("{what} {begin} {}", boottime_ns()));
        pause();
    };
    marked("first", &|| {
        rip_progress!("first");
    });
    marked("busy", &|| {
        for _ in 0..1_000_000 {
            rip_progress!("busy");
            rip_snap!("plain");
        }
    });
    marked("last", &|| {
        rip_progress!("last");
    });
    let lock = librip::sync::Mutex::new(());
    let call = format!("/proc/self/task/{}/syscall", unsafe { libc::gettid() });
    let is_blocked = || std::fs::read_to_string(&call).unwrap().starts_with(&format!("{} ", libc::SYS_futex));
    let is_held = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let _guard = lock.lock();
            is_held.store(true, Relaxed);
            while !is_blocked() {}
        });
        while !is_held.load(Relaxed) {
            std::hint::spin_loop();
        }
        drop(lock.lock());
    });
    // The release has a time, because the lock was waited for. So the next mark has one too.
    marked("waited", &|| {
        rip_progress!("waited");
    });
}

fn boottime_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now) }, 0);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// More open spans than a table has room for, and values that a slot of 16 words has no room for.
fn crowded() {
    let spans: Vec<_> = (0..20u32).map(|index| rip_span!("nested", "{}", index)).collect();
    say("open");
    pause();
    drop(spans);
    rip_event!("{} {} {} {} {} {} {} {}", 0u64, 1u64, 2u64, 3u64, 4u64, 5u64, 6u64, 7u64);
}

/// A span that is open in the parent ends in the child too.
fn forked() {
    let span = rip_span!("across a fork");
    let child = unsafe { libc::fork() };
    rip_event!("in the {}", if child == 0 { "child" } else { "parent" });
    if child == 0 {
        drop(span);
        std::process::exit(3);
    }
    let mut status = 0;
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    drop(span);
}

/// Threads at full speed: each event can be checked by itself, and counts in its thread's cell.
fn storm(threads: usize) {
    common::storm(threads, record);
    say("ready");
    sleep_forever();
}

/// Threads that record events one after the other, with rests in between.
fn paced(threads: usize) {
    fn record(thread: u64, cell: &Cell) -> ! {
        for step in 0u64.. {
            rip_event!("{} of {}: {}", step, thread, step ^ thread << 32);
            cell.advance();
            if step % 16 == 15 {
                std::thread::sleep(std::time::Duration::from_millis(4));
            }
        }
        unreachable!("a thread counts for ever")
    }
    common::storm(threads, record);
    say("ready");
    sleep_forever();
}

/// A signal handler that records events and spans at any instruction of a thread that records both.
fn handlers() {
    static HANDLED: AtomicU64 = AtomicU64::new(0);
    extern "C" fn handler(_signal: i32) {
        HANDLED.fetch_add(1, Relaxed);
        let _span = rip_span!("handler", "{}", 7u64);
        rip_event!("{} in the handler {}", 11u64, "by value");
    }
    common::handle(libc::SIGUSR1, handler, libc::SA_RESTART);
    let thread = unsafe { libc::pthread_self() };
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    static STEP: AtomicU64 = AtomicU64::new(0);
    // One signal a step at most: an event that is interrupted for more words than a history has writes its own too
    // late.
    let sender = std::thread::spawn(move || {
        while !IS_OVER.load(Relaxed) {
            let now = STEP.load(Relaxed);
            unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
            while STEP.load(Relaxed) == now && !IS_OVER.load(Relaxed) {
                std::thread::yield_now();
            }
        }
    });
    let mut handled = 0;
    // Until a handler has run among the last steps.
    for step in 0u64.. {
        if step == 20_000 {
            handled = HANDLED.load(Relaxed);
        } else if step > 20_000 && HANDLED.load(Relaxed) > handled + 10 {
            break;
        }
        let _outer = rip_span!("outer", "{}", step);
        rip_event!("{} outside {}", step, "also by value");
        STEP.store(step + 1, Relaxed);
    }
    IS_OVER.store(true, Relaxed);
    sender.join().expect("the sender ends");
}

/// A thread whose events are interrupted, again and again, by a handler that records more than its history has words.
fn overtaken() -> ! {
    static HANDLED: AtomicU64 = AtomicU64::new(0);
    extern "C" fn handler(_signal: i32) {
        (0..2100).for_each(|_| rip_snap!());
        HANDLED.fetch_add(1, Relaxed);
    }
    common::handle(libc::SIGUSR1, handler, libc::SA_RESTART);
    let thread = unsafe { libc::pthread_self() };
    // It lets the thread go on for about as long as the handler takes: an event that was interrupted writes its words.
    let send = move || {
        for handled in 1u64.. {
            unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
            while HANDLED.load(Relaxed) < handled {
                std::hint::spin_loop();
            }
            (0..handled * 7919 % 4001).for_each(|_| std::hint::spin_loop());
        }
    };
    common::named("sender").spawn(send).expect("a thread");
    say("ready");
    for step in 0u64.. {
        // To write a text takes longest.
        rip_event!("{} {} {}", step, step.wrapping_mul(0x9e37_79b9_7f4a_7c15), LONG);
    }
    unreachable!("it counts for ever")
}

pub(crate) fn record(thread: u64, cell: &Cell) -> ! {
    let mut text = String::new();
    for step in 0u64.. {
        let number = step.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ thread;
        text.clear();
        text.extend(std::iter::repeat_n(char::from(b'a' + (step % 26) as u8), step as usize % 60));
        let _outer = rip_span!("outer", "{}", step);
        rip_event!("{} {} {}", step, number, text.as_str());
        cell.advance();
        let _inner = rip_span!("inner", "{}", number);
    }
    unreachable!("a thread counts for ever")
}
