//! Channels: rare events among frequent ones, threads that come and go, and events that are switched off.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use librip::{rip_channel, rip_event, rip_snap, rip_span};
use librip_test_kit::progress::Cell;

use crate::common::{self, named, pause, say, sleep_forever};

rip_channel!(RARE, words = 256);
rip_channel!(pub SMALL, words = 16);

pub(crate) fn main(arguments: &[&str]) {
    common::init();
    match arguments {
        ["rare"] => rare(),
        ["switched"] => switched(),
        ["threads"] => threads(),
        ["churn"] => churn(),
        ["handler"] => handler(),
        ["forked"] => forked(),
        ["many"] => many(),
        ["storm", threads] => storm(threads.parse().expect("a number")),
        _ => panic!("which way?"),
    }
    std::process::exit(3);
}

/// Rare events, then ten million frequent ones.
fn rare() {
    let _span = rip_span!(channel RARE, "serving", "port {}", 8080);
    for number in 0..20u32 {
        rip_event!(channel RARE, level warn, "rare {}", number);
        rip_event!(channel SMALL, "small {}", number);
        rip_event!("between {}", number);
    }
    rip_span!(channel RARE, "short", || rip_event!("in the span"));
    for _ in 0..10_000_000 {
        rip_snap!();
    }
    rip_event!("the last");
    say("done");
    pause();
}

/// Each round records one event of each level in each channel. The test switches them between the rounds.
fn switched() {
    for round in 0..5u32 {
        let mut evaluated = 0u32;
        let mut count = || {
            evaluated += 1;
            round
        };
        rip_event!(channel RARE, level debug, "debug {}", count());
        rip_event!(channel RARE, level error, "error {}", count());
        rip_span!(channel RARE, "span", || rip_event!(channel SMALL, "small {}", round));
        say(&format!("round {round} evaluated {evaluated}"));
        pause();
    }
}

/// Threads that record in a channel, one after the other, in one slot; the last one stays.
fn threads() {
    for number in 0..50u32 {
        let one = named(&format!("t{number}")).spawn(move || {
            (0..3).for_each(|step: u32| rip_event!(channel SMALL, "{} of t{}", step, number));
        });
        one.expect("a thread").join().expect("it ends");
    }
    let last = named("last").spawn(|| {
        rip_snap!();
        say("started");
        pause();
        rip_event!(channel SMALL, "from the last");
        say("recorded");
        sleep_forever();
    });
    last.expect("a thread").join().expect("it sleeps");
}

/// Threads that record in a channel and end, for ever: the slots change owners all the time.
fn churn() {
    rip_event!(channel SMALL, "thread that starts others");
    say("ready");
    loop {
        std::thread::scope(|scope| {
            for number in 0..4u32 {
                scope.spawn(move || rip_event!(channel SMALL, "thread {}", number));
            }
        });
    }
}

/// A signal handler that records in the channel in which the thread records.
fn handler() {
    static HANDLED: AtomicU64 = AtomicU64::new(0);
    extern "C" fn handler(_signal: i32) {
        rip_event!(channel RARE, "handled {}", HANDLED.fetch_add(1, Relaxed));
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
        rip_event!(channel RARE, "outside {}", count);
        count += 1;
    }
    sender.join().expect("the sender ends");
    say("done");
    pause();
}

/// Parent and child record in the same channel.
fn forked() {
    rip_event!(channel RARE, "in the parent");
    let child = unsafe { libc::fork() };
    if child == 0 {
        rip_event!(channel RARE, "in the child");
        unsafe { libc::_exit(3) };
    }
    let mut status = 0;
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    rip_event!(channel RARE, "in the parent again");
    say("done");
    pause();
}

/// More channels than a ring has room for.
fn many() {
    macro_rules! record {
        ($($name:ident)+) => {
            $(
                rip_channel!($name, words = 16);
                for _ in 0..100 {
                    rip_event!(channel $name, "in {}", stringify!($name));
                }
            )+
        };
    }
    record!(A B C D E F G H I J);
    say("done");
    pause();
}

/// Threads that record in a channel at full speed: each event can be checked by itself.
fn storm(threads: usize) {
    let cells = common::storm(threads, record);
    // From then on, the ring has the channel.
    while cells[0].marks.load(Relaxed) == 0 {
        std::thread::yield_now();
    }
    say("ready");
    sleep_forever();
}

fn record(thread: u64, cell: &Cell) -> ! {
    for step in 0u64.. {
        rip_event!(channel RARE, "{} of {}: {}", step, thread, step ^ thread << 32);
        cell.advance();
    }
    unreachable!("a thread counts for ever")
}
