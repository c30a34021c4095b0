//! Captures: slow cycles among many, cycles that are slow for known reasons, captures by hand, and captures at full
//! speed until it dies.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use librip::sync::Mutex;
use librip::{rip_capture, rip_channel, rip_event, rip_slow_cycle, rip_snap, rip_span};
use librip_test_kit::progress::Cell;

use crate::common::{self, pause, say, sleep_forever};

pub(crate) fn main(arguments: &[&str]) {
    common::init();
    match arguments {
        ["cycles"] => cycles(),
        ["causes"] => causes(),
        ["avoids"] => avoids(),
        ["measured"] => measured(),
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

/// What makes a cycle slow takes at least this long.
const LONG: Duration = Duration::from_millis(50);

/// Cycles that are slow, each for another reason.
fn causes() {
    static TABLE: Mutex<()> = Mutex::new(());
    let begun = Instant::now();
    // Long enough for cycles that are kept for comparison.
    while begun.elapsed() < LONG {
        slow_cycle("nothing", || {});
    }
    slow_cycle("computes", || until_on_cpu(LONG));
    slow_cycle("faults", || until_faulted(LONG));
    slow_cycle("sleeps", || std::thread::sleep(LONG));
    let (has, wants) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        let keeper = std::thread::Builder::new().name("keeper".into());
        let keep = || {
            let table = TABLE.lock().expect("nobody panics");
            has.wait();
            wants.wait();
            std::thread::sleep(LONG);
            drop(table);
        };
        keeper.spawn_scoped(scope, keep).expect("a thread");
        has.wait();
        slow_cycle("locks", || {
            wants.wait();
            drop(TABLE.lock().expect("nobody panics"));
        });
    });
    without_processor(|| {
        slow_cycle("preempted", || {
            let (begun, had) = (Instant::now(), on_cpu());
            // Others had the processor for so long, while this thread wanted it.
            while begun.elapsed().saturating_sub(on_cpu() - had) < LONG {}
        });
    });
    forget();
    say("done");
    pause();
}

/// Spans that ask what they use: each uses something else. The last one is open.
fn measured() {
    rip_channel!(MEASURED, words = 128);
    rip_span!(usage, "nothing", || {});
    rip_span!(usage, "computes", || until_on_cpu(LONG));
    rip_span!(usage, "faults", || until_faulted(LONG));
    {
        let _span = rip_span!(channel MEASURED, usage, "sleeps", "{} ms", 50u32);
        std::thread::sleep(LONG);
    }
    {
        let _cycle = rip_slow_cycle!("same", Duration::ZERO);
        rip_span!(usage, "same", || std::thread::sleep(LONG / 10));
        until_on_cpu(LONG);
    }
    let forked = rip_span!(usage, "forked");
    match unsafe { libc::fork() } {
        0 => {
            drop(forked);
            unsafe { libc::_exit(0) };
        }
        child => assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child),
    }
    drop(forked);
    rip_span!("not asked", || {});
    let _open = rip_span!(usage, "open", "{}", 7u32);
    say("done");
    pause();
}

fn slow_cycle(why: &'static str, body: impl FnOnce()) {
    let _cycle = rip_slow_cycle!("work", LIMIT);
    rip_event!("{}", why);
    let _span = rip_span!("step");
    body();
}

/// How long this thread has run.
fn on_cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).expect("below a second"))
}

fn until_on_cpu(wanted: Duration) {
    let had = on_cpu();
    while on_cpu() - had < wanted {}
}

/// Touches new pages until that has taken so much processor time.
fn until_faulted(wanted: Duration) {
    const LEN: usize = 1 << 20;
    let had = on_cpu();
    while on_cpu() - had < wanted {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let pages = unsafe { libc::mmap(std::ptr::null_mut(), LEN, protection, flags, -1, 0) };
        assert_ne!(pages, libc::MAP_FAILED);
        unsafe { libc::madvise(pages, LEN, libc::MADV_NOHUGEPAGE) };
        for page in (0..LEN).step_by(4096) {
            unsafe { pages.cast::<u8>().add(page).write_volatile(1) };
        }
        unsafe { libc::munmap(pages, LEN) };
    }
}

/// Runs `body` on a processor that another thread wants all the time.
fn without_processor(body: impl FnOnce()) {
    let mut one: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    unsafe { libc::CPU_SET(usize::try_from(libc::sched_getcpu()).expect("a processor"), &mut one) };
    assert_eq!(unsafe { libc::sched_setaffinity(0, size_of_val(&one), &raw const one) }, 0);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                std::hint::spin_loop();
            }
        });
        let _over = Over(&is_over);
        body();
    });
}

/// Says that something is over, also if it ends by a panic.
struct Over<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// A slow cycle of a program that has restricted its system calls.
fn avoids() {
    librip::avoid_system_calls();
    slow_cycle("computes", || until_on_cpu(LONG));
    say("done");
    pause();
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
