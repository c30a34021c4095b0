//! Measures how long `read-rip` takes on large rings, and how that grows with the number of threads.
//!
//! ```text
//! scripts/bench reader
//! ```
//!
//! # Method
//!
//! First, a process fills a ring with N killed threads. It forks a child, which starts 1000 threads and then kills
//! itself, and it repeats that until there are N. So no limit on the number of threads is reached. Each thread of a
//! child passes a few marks and acquires four of 250 locks, one after the other. In the end, each lock is held by one
//! thread, and three threads wait for it.
//!
//! Then three commands run on the ring: `read-rip` (the condensed view, with symbols), `read-rip locks` and `read-rip
//! check`. Each runs 12 times, and the first run does not count. After each run, `cat` reads the same ring, holes
//! included.
//!
//! *ms* is the median wall time from the program's start to its end. *memory* is the largest resident set that the
//! kernel reports. *ratio* is the median of the quotients of `read-rip`'s time and the time of the `cat` after it.
//! Nothing is asserted.

#![allow(unsafe_code, reason = "it forks, and asks the kernel how much memory a child took")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Barrier};
use std::time::Instant;

use librip::{Builder, rip_lock_acquired, rip_lock_released, rip_lock_wait, rip_snap};

/// Threads of one process.
const BATCH: usize = 1000;
/// In the end, one of these threads holds the lock, and the others wait for it.
const THREADS_A_LOCK: usize = 4;
/// The marked locks. Only their addresses matter.
static LOCKS: [u64; BATCH / THREADS_A_LOCK] = [0; BATCH / THREADS_A_LOCK];
const RUNS: usize = 11;
/// In a child process, this variable says how many killed threads to leave in the ring.
const FILL: &str = "RIP_BENCH_FILL";
/// With [`FILL`], how many marks each thread makes before its locks. `scripts/prove` sets it.
const MARKS: &str = "RIP_BENCH_MARKS";

fn main() {
    if let Ok(threads) = std::env::var(FILL) {
        fill(threads.parse().expect("a number of threads"));
        return;
    }
    let Some(read_rip) = std::env::var_os("READ_RIP").map(PathBuf::from) else {
        eprintln!("set READ_RIP to the program read-rip, or run scripts/bench reader");
        std::process::exit(2);
    };
    let directory = PathBuf::from(format!("/dev/shm/librip-bench-{}", std::process::id()));
    std::fs::create_dir(&directory).expect("a directory in /dev/shm");
    println!(
        "{:>8} {:>7} {:>9} {:<10} {:>9} {:>11} {:>8}",
        "threads", "locks", "ring", "", "ms", "memory", "ratio to cat"
    );
    for threads in [1000, 10_000, 40_000, 100_000] {
        let ring = directory.join(threads.to_string());
        let filled = Command::new(std::env::current_exe().expect("our own path"))
            .env(FILL, threads.to_string())
            .env("RIP_RING", &ring)
            .env("RIP_SLOTS", threads.to_string())
            .env("RIP_KEEP", "always")
            .status()
            .expect("our own program");
        assert!(filled.success(), "filling a ring failed");
        for (name, arguments) in [("read-rip", &[][..]), ("locks", &["locks"]), ("check", &["check"])] {
            measure(&read_rip, name, arguments, &ring, threads);
        }
        std::fs::remove_file(&ring).expect("the ring that we made");
    }
    std::fs::remove_dir(&directory).expect("the directory that we made");
}

fn measure(read_rip: &Path, name: &str, arguments: &[&str], ring: &Path, threads: usize) {
    let mut readings = Vec::new();
    let mut ratios = Vec::new();
    let mut memory_kib = 0;
    for run in 0..=RUNS {
        let (read_ms, kib) = timed(Command::new(read_rip).args(arguments).arg(ring));
        let (cat_ms, _) = timed(Command::new("cat").arg(ring));
        if run > 0 {
            readings.push(read_ms);
            ratios.push(read_ms / cat_ms);
            memory_kib = memory_kib.max(kib);
        }
    }
    let slots_kib = threads; // a slot of 64 words takes 1 KiB
    println!(
        "{threads:>8} {:>7} {:>5} MiB {name:<10} {:>9.1} {:>7} MiB {:>8.2}",
        threads / THREADS_A_LOCK,
        slots_kib / 1024,
        median(readings),
        memory_kib / 1024,
        median(ratios)
    );
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs a program. Returns its wall time in ms, and its largest resident set in KiB.
#[expect(clippy::zombie_processes, reason = "wait4 waits, and says how much memory the child took")]
fn timed(command: &mut Command) -> (f64, i64) {
    let begun = Instant::now();
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a program to time");
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: waits for our own child; `usage` is writable.
    unsafe { libc::wait4(child.id() as libc::pid_t, std::ptr::null_mut(), 0, usage.as_mut_ptr()) };
    let ms = begun.elapsed().as_secs_f64() * 1000.0;
    // SAFETY: zeroed, which is valid, or filled.
    (ms, unsafe { usage.assume_init() }.ru_maxrss)
}

fn fill(threads: usize) {
    Builder::new().create().expect("a ring");
    let marks = std::env::var(MARKS).map_or(0, |marks| marks.parse().expect("a number of marks"));
    for _ in 0..threads / BATCH {
        // SAFETY: this process has no other thread, so the child may call any function.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            die_with_threads(marks);
        }
        // SAFETY: waits for our own child.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
    }
}

fn die_with_threads(marks: usize) -> ! {
    let barrier = Arc::new(Barrier::new(BATCH + 1));
    for number in 0..BATCH {
        let barrier = barrier.clone();
        let thread = move || {
            (0..marks).for_each(step);
            for round in 0..4 {
                rip_snap!();
                step(number);
                let lock = &LOCKS[(number + round) % LOCKS.len()];
                rip_lock_wait!(lock);
                rip_lock_acquired!(lock);
                rip_lock_released!(lock);
            }
            let lock = &LOCKS[number % LOCKS.len()];
            rip_lock_wait!(lock);
            if number < LOCKS.len() {
                rip_lock_acquired!(lock);
                step(number);
            }
            barrier.wait();
            barrier.wait();
        };
        std::thread::Builder::new().stack_size(64 << 10).spawn(thread).expect("a thread");
    }
    barrier.wait();
    // SAFETY: ends this process.
    unsafe { libc::raise(libc::SIGKILL) };
    unreachable!("nobody survives SIGKILL")
}

/// Marks one of four sites.
#[inline(never)]
fn step(number: usize) {
    match number % 4 {
        0 => rip_snap!("waits"),
        1 => rip_snap!("holds"),
        2 => rip_snap!("works"),
        _ => rip_snap!("idles"),
    }
}
