//! What it costs to record a lock: recorded and bare locks, compared in one run.
//!
//! ```text
//! cargo bench -p librip --features lock_api --bench locks          or: scripts/bench locks
//! ```
//!
//! # Method
//!
//! [`turns`] says how candidates are compared. *ns* is the median of a candidate's rounds. *more* is the median of the
//! differences to its bare lock in the same round, and the *spread* is the range from the first to the third quartile
//! of those differences. An operation is a lock, an increment and an unlock, without contention unless the row says so.
//! Each setting of `RIP_CLOCK` has its own process. Nothing is asserted: read the differences.
//!
//! *Two threads on one lock* is the wall-clock time of one pair, by either thread: the throughput. *How long it was
//! held* is measured by a raw lock of this benchmark. It reads the processor's counter as the last thing in its
//! `lock` and the first thing in its `unlock`. What is recorded in between delays a waiting thread, and is included.
//! The readings themselves take some nanoseconds and are in both rows.
//!
//! *There and back* is two threads that wake each other by condition variables. Nearly all of the wall-clock time is
//! the kernel's.
//!
//! # What is not measured
//!
//! Cold caches; more than two threads; a release of a lock that no thread holds.

#![allow(unsafe_code, reason = "the processor's counter, and a thread's time")]

mod turns;

use std::hint::black_box;
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Instant;

use librip::raw::Recorded;
use librip::{Builder, Keep, rip_lock_acquired, rip_lock_released, rip_snap};
use turns::{Candidate, ROUNDS, SLICE_NS, in_turns, quantile};

/// Set in a child process, which measures with the `RIP_CLOCK` of its environment.
const MEASURE: &str = "RIP_BENCH_LOCKS";
/// Pairs that each of two threads makes in a round.
const PAIRS: u64 = 20_000;
/// Exchanges of two threads in a round.
const EXCHANGES: u64 = 400;

type LotMutex<T> = lock_api::Mutex<Recorded<parking_lot::RawMutex>, T>;
type LotRwLock<T> = lock_api::RwLock<Recorded<parking_lot::RawRwLock>, T>;

fn main() {
    if std::env::var_os(MEASURE).is_some() {
        all();
        return;
    }
    println!(
        "{ROUNDS} rounds of {} ms a candidate; see librip/benches/locks.rs for the method",
        SLICE_NS / 1_000_000
    );
    for clock in ["contended", "off", "all"] {
        println!("\nRIP_CLOCK={clock}");
        println!("{:<44}{:>10}{:>9}  {:<18}than", "", "ns", "more", "(spread)");
        let run = std::env::current_exe()
            .and_then(|program| Command::new(program).env(MEASURE, "1").env("RIP_CLOCK", clock).status());
        match run {
            Ok(status) if status.success() => {}
            Ok(status) => eprintln!("locks: the measurement ended with {status}"),
            Err(error) => eprintln!("locks: the measurement could not be started: {error}"),
        }
    }
}

fn all() {
    let made = Builder::new().slots(64).keep(Keep::Never).create();
    if let Err(error) = made {
        eprintln!("locks: no ring, so there is nothing to measure: {error}");
        std::process::exit(1);
    }
    uncontended_mutexes();
    uncontended_rwlocks();
    nested();
    contended();
    exchanges();
}

fn print_differences(name: &str, times: &[f64], beside: &[f64], beside_name: &str) {
    let more: Vec<f64> = times.iter().zip(beside).map(|(time, other)| time - other).collect();
    let spread = format!("({:+.2} to {:+.2})", quantile(&more, 0.25), quantile(&more, 0.75));
    println!(
        "{name:<44}{:>10.2}{:>+9.2}  {spread:<18}{beside_name}",
        quantile(times, 0.5),
        quantile(&more, 0.5)
    );
}

fn measure(candidates: &mut [Candidate<'_>]) {
    let times = in_turns(candidates);
    for (index, candidate) in candidates.iter().enumerate() {
        let beside = candidate.beside;
        print_differences(candidate.name, &times[index], &times[beside], candidates[beside].name);
    }
}

/// A candidate that locks `$lock` by `$take`, an expression whose value is a guard.
macro_rules! pairs {
    ($name:expr, $beside:expr, $lock:ident, $take:expr) => {
        Candidate::new($name, $beside, 1, |rounds| {
            for _ in 0..rounds {
                let $lock = black_box(&$lock);
                let mut guard = $take;
                *guard += 1;
                drop(guard);
            }
        })
    };
}

/// Like `pairs`, for shared mode.
macro_rules! reads {
    ($name:expr, $beside:expr, $lock:ident, $take:expr) => {
        Candidate::new($name, $beside, 1, |rounds| {
            for _ in 0..rounds {
                let $lock = black_box(&$lock);
                let guard = $take;
                black_box(*guard);
                drop(guard);
            }
        })
    };
}

fn uncontended_mutexes() {
    let bare = std::sync::Mutex::new(0u64);
    let recorded = librip::sync::Mutex::new(0u64);
    let lot = parking_lot::Mutex::new(0u64);
    let lot_recorded = LotMutex::new(0u64);
    let mut candidates = [
        pairs!("std Mutex", 0, bare, bare.lock().unwrap()),
        pairs!("librip::sync::Mutex", 0, recorded, recorded.lock().unwrap()),
        Candidate::new("std Mutex with three rip_snap!()", 0, 1, |rounds| {
            for _ in 0..rounds {
                let bare = black_box(&bare);
                rip_snap!();
                let mut guard = bare.lock().unwrap();
                rip_snap!();
                *guard += 1;
                drop(guard);
                rip_snap!();
            }
        }),
        Candidate::new("std Mutex with rip_lock_acquired, _released", 0, 1, |rounds| {
            for _ in 0..rounds {
                let bare = black_box(&bare);
                let mut guard = bare.lock().unwrap();
                rip_lock_acquired!(bare);
                *guard += 1;
                drop(guard);
                rip_lock_released!(bare);
            }
        }),
        pairs!("parking_lot::Mutex", 4, lot, lot.lock()),
        pairs!("parking_lot's, Recorded", 4, lot_recorded, lot_recorded.lock()),
    ];
    measure(&mut candidates);
}

fn uncontended_rwlocks() {
    let bare = std::sync::RwLock::new(0u64);
    let recorded = librip::sync::RwLock::new(0u64);
    let lot = parking_lot::RwLock::new(0u64);
    let lot_recorded = LotRwLock::new(0u64);
    let mut candidates = [
        reads!("std RwLock, read", 0, bare, bare.read().unwrap()),
        reads!("librip::sync::RwLock, read", 0, recorded, recorded.read().unwrap()),
        pairs!("std RwLock, write", 2, bare, bare.write().unwrap()),
        pairs!("librip::sync::RwLock, write", 2, recorded, recorded.write().unwrap()),
        reads!("parking_lot::RwLock, read", 4, lot, lot.read()),
        reads!("parking_lot's, Recorded, read", 4, lot_recorded, lot_recorded.read()),
        pairs!("parking_lot::RwLock, write", 6, lot, lot.write()),
        pairs!("parking_lot's, Recorded, write", 6, lot_recorded, lot_recorded.write()),
    ];
    measure(&mut candidates);
}

/// Locks all locks, and unlocks them in the opposite order.
macro_rules! nest {
    ($locks:ident, $depth:expr) => {
        |rounds| {
            for _ in 0..rounds {
                let locks = black_box(&$locks[..$depth]);
                let mut guards: [Option<_>; $depth] = [const { None }; $depth];
                for (guard, lock) in guards.iter_mut().zip(locks) {
                    *guard = Some(lock.lock().unwrap());
                }
                for guard in guards.iter_mut().rev() {
                    drop(guard.take());
                }
            }
        }
    };
}

fn nested() {
    let bare: [std::sync::Mutex<u64>; 16] = Default::default();
    let recorded: [librip::sync::Mutex<u64>; 16] = Default::default();
    let mut candidates = [
        Candidate::new("std Mutexes, 1 deep, a pair", 0, 1, nest!(bare, 1)),
        Candidate::new("librip::sync::Mutexes, 1 deep, a pair", 0, 1, nest!(recorded, 1)),
        Candidate::new("std Mutexes, 4 deep, a pair", 2, 4, nest!(bare, 4)),
        Candidate::new("librip::sync::Mutexes, 4 deep, a pair", 2, 4, nest!(recorded, 4)),
        Candidate::new("std Mutexes, 16 deep, a pair", 4, 16, nest!(bare, 16)),
        Candidate::new("librip::sync::Mutexes, 16 deep, a pair", 4, 16, nest!(recorded, 16)),
    ];
    measure(&mut candidates);
}

#[cfg(target_arch = "x86_64")]
fn counter() -> u64 {
    // SAFETY: every x86-64 has the instruction.
    unsafe { core::arch::x86_64::_rdtsc() }
}
#[cfg(not(target_arch = "x86_64"))]
fn counter() -> u64 {
    0
}

/// The counter's ticks per nanosecond.
fn ticks_a_ns() -> f64 {
    let (begin, begin_ticks) = (Instant::now(), counter());
    while begin.elapsed().as_millis() < 20 {}
    ((counter() - begin_ticks) as f64 / begin.elapsed().as_nanos() as f64).max(f64::MIN_POSITIVE)
}

/// Two threads run `pair` [`PAIRS`] times each. Returns the wall-clock time, ns a pair.
fn two_threads(pair: &(dyn Fn() + Sync)) -> f64 {
    let barrier = Barrier::new(3);
    let mut begin = None;
    thread::scope(|scope| {
        let run = || {
            barrier.wait();
            (0..PAIRS).for_each(|_| pair());
        };
        scope.spawn(run);
        scope.spawn(run);
        barrier.wait();
        begin = Some(Instant::now());
    });
    begin.map_or(0, |begin| begin.elapsed().as_nanos()) as f64 / (2 * PAIRS) as f64
}

/// A raw lock that measures how long it is held, in ticks: from the end of `lock` to the beginning of `unlock`.
struct Stopwatch {
    inner: parking_lot::RawMutex,
    since: AtomicU64,
    ticks: AtomicU64,
}

// SAFETY: every method does what the inner lock's method does.
unsafe impl lock_api::RawMutex for Stopwatch {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait has it so")]
    const INIT: Stopwatch = Stopwatch {
        inner: <parking_lot::RawMutex as lock_api::RawMutex>::INIT,
        since: AtomicU64::new(0),
        ticks: AtomicU64::new(0),
    };
    type GuardMarker = lock_api::GuardNoSend;

    #[inline(always)]
    fn lock(&self) {
        lock_api::RawMutex::lock(&self.inner);
        // ORDERING: relaxed, here and below: only the holder of the lock gets here.
        self.since.store(counter(), Relaxed);
    }

    #[inline(always)]
    fn try_lock(&self) -> bool {
        let is_held = lock_api::RawMutex::try_lock(&self.inner);
        if is_held {
            self.since.store(counter(), Relaxed);
        }
        is_held
    }

    #[inline(always)]
    unsafe fn unlock(&self) {
        let held = counter().wrapping_sub(self.since.load(Relaxed));
        self.ticks.store(self.ticks.load(Relaxed).wrapping_add(held), Relaxed);
        // SAFETY: the caller holds the lock.
        unsafe { lock_api::RawMutex::unlock(&self.inner) };
    }
}

/// One round: ns a pair.
type Run<'a> = Box<dyn Fn() -> f64 + 'a>;

fn contended() {
    let bare = std::sync::Mutex::new(0u64);
    let recorded = librip::sync::Mutex::new(0u64);
    let lot = parking_lot::Mutex::new(0u64);
    let lot_recorded = LotMutex::new(0u64);
    let watch = lock_api::Mutex::<Stopwatch, u64>::new(0);
    let watch_recorded = lock_api::Mutex::<Recorded<Stopwatch>, u64>::new(0);
    let scale = ticks_a_ns();
    /// A pair with a little work inside.
    macro_rules! pair {
        ($take:expr) => {
            &|| {
                let mut guard = $take;
                for step in 0..8 {
                    *guard = black_box(*guard + step);
                }
            }
        };
    }
    let held_ns = |ticks: &AtomicU64| ticks.swap(0, Relaxed) as f64 / scale / (2 * PAIRS) as f64;
    let runs: [(&str, usize, Run<'_>); 6] = [
        ("std Mutex, two threads on one lock", 0, Box::new(|| two_threads(pair!(bare.lock().unwrap())))),
        ("librip::sync::Mutex, two threads", 0, Box::new(|| two_threads(pair!(recorded.lock().unwrap())))),
        ("parking_lot::Mutex, two threads", 2, Box::new(|| two_threads(pair!(lot.lock())))),
        ("parking_lot's, Recorded, two threads", 2, Box::new(|| two_threads(pair!(lot_recorded.lock())))),
        (
            "parking_lot's, how long it was held",
            4,
            Box::new(|| {
                two_threads(pair!(watch.lock()));
                // SAFETY: it is not unlocked.
                held_ns(&unsafe { watch.raw() }.ticks)
            }),
        ),
        (
            "parking_lot's, Recorded, was held",
            4,
            Box::new(|| {
                two_threads(pair!(watch_recorded.lock()));
                // SAFETY: it is not unlocked.
                held_ns(&unsafe { watch_recorded.raw() }.inner().ticks)
            }),
        ),
    ];
    let mut times = vec![Vec::new(); runs.len()];
    for round in 0..ROUNDS {
        for turn in 0..runs.len() {
            let index = (round + turn) % runs.len();
            times[index].push((runs[index].2)());
        }
    }
    for (index, &(name, beside, _)) in runs.iter().enumerate() {
        print_differences(name, &times[index], &times[beside], runs[beside].0);
    }
}

/// Two threads that take turns by a condition variable.
macro_rules! exchange {
    ($turn:ident, $changed:ident) => {
        || {
            let begin = Instant::now();
            let play = |own: u64| {
                for _ in 0..EXCHANGES {
                    let mut turn = $turn.lock().unwrap();
                    while *turn % 2 != own {
                        turn = $changed.wait(turn).unwrap();
                    }
                    *turn += 1;
                    drop(turn);
                    $changed.notify_one();
                }
            };
            thread::scope(|scope| {
                scope.spawn(|| play(1));
                play(0);
            });
            begin.elapsed().as_nanos() as f64 / EXCHANGES as f64
        }
    };
}

fn exchanges() {
    let (bare, bare_changed) = (std::sync::Mutex::new(0u64), std::sync::Condvar::new());
    let (recorded, recorded_changed) = (librip::sync::Mutex::new(0u64), librip::sync::Condvar::new());
    let run_bare = exchange!(bare, bare_changed);
    let run_recorded = exchange!(recorded, recorded_changed);
    let (mut bare_times, mut recorded_times) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        if round % 2 == 0 {
            bare_times.push(run_bare());
            recorded_times.push(run_recorded());
        } else {
            recorded_times.push(run_recorded());
            bare_times.push(run_bare());
        }
    }
    let name = "std Condvar, there and back";
    print_differences(name, &bare_times, &bare_times, name);
    print_differences("librip::sync::Condvar, there and back", &recorded_times, &bare_times, name);
}
