//! Measures what recording a lock costs, and compares it with the same lock unrecorded, in the same run.
//!
//! ```text
//! cargo bench -p librip --features lock_api --bench locks          or: scripts/bench locks
//! ```
//!
//! # Method
//!
//! [`turns`] describes the method. *ns* is the median time of a candidate. In each round, the time of the unrecorded
//! lock is subtracted from the candidate's. *more* is the median of these differences, *spread* their range from the
//! first to the third quartile. An operation is a lock, an increment and an unlock, by one thread unless the row says
//! otherwise. Each setting of `RIP_CLOCK` runs in a process of its own. Nothing is asserted: read the differences.
//!
//! *Two threads on one lock* shows throughput: the wall time divided by the number of pairs that both threads made. It
//! is measured only while both are on their way. A recorded lock has a longer gap between an unlock and the next lock,
//! and a longer gap changes how often the threads meet. So the bare lock is also measured with a gap of the time that
//! recording adds to a pair of one thread.
//!
//! *Hold time* shows how long the lock was held meanwhile. A raw lock of this benchmark measures that: it reads the
//! processor's counter last in its `lock` and first in its `unlock`. The recorder's work is between these two moments,
//! where it delays every waiting thread. Reading the counter takes some nanoseconds, in both rows.
//!
//! *There and back* is two threads that wake each other by condition variables. Nearly all of this wall time is the
//! kernel's.
//!
//! # What is not measured
//!
//! Cold caches. More than two threads. A release by another thread than the holder.

#![allow(unsafe_code, reason = "reads the processor's counter, and implements a raw lock")]

mod turns;

use std::hint::black_box;
use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::{Duration, Instant};

use librip::raw::Recorded;
use librip::{Builder, Keep, rip_lock_acquired, rip_lock_name, rip_lock_released, rip_snap};
use turns::{Candidate, ROUNDS, SLICE_NS, in_turns, quantile};

/// Set in a child process, which measures with the `RIP_CLOCK` of its environment.
const MEASURE: &str = "RIP_BENCH_LOCKS";
/// Two threads make this many exchanges in a round.
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
    names();
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

/// A candidate that acquires `$lock` by `$acquire`, an expression whose value is a guard.
macro_rules! pairs {
    ($name:expr, $beside:expr, $lock:ident, $acquire:expr) => {
        Candidate::new($name, $beside, 1, |rounds| {
            for _ in 0..rounds {
                let $lock = black_box(&$lock);
                let mut guard = $acquire;
                *guard += 1;
                drop(guard);
            }
        })
    };
}

/// As `pairs`, for reading.
macro_rules! reads {
    ($name:expr, $beside:expr, $lock:ident, $acquire:expr) => {
        Candidate::new($name, $beside, 1, |rounds| {
            for _ in 0..rounds {
                let $lock = black_box(&$lock);
                let guard = $acquire;
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

/// Acquires `$depth` locks, and releases them in the opposite order.
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
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { core::arch::x86_64::_rdtsc() }
}
#[cfg(not(target_arch = "x86_64"))]
fn counter() -> u64 {
    0
}

/// Returns how many ticks of the counter a nanosecond has.
fn ticks_a_ns() -> f64 {
    let (begin, begin_ticks) = (Instant::now(), counter());
    while begin.elapsed().as_millis() < 20 {}
    ((counter() - begin_ticks) as f64 / begin.elapsed().as_nanos() as f64).max(f64::MIN_POSITIVE)
}

/// What two threads did while both were on their way.
struct Together {
    /// The wall time, ns.
    ns: f64,
    /// The pairs that both made.
    pairs: f64,
}

impl Together {
    fn ns_a_pair(&self) -> f64 {
        self.ns / self.pairs
    }
}

/// Two threads make pairs. They are measured from when both have made some, for about [`SLICE_NS`].
fn two_threads(pair: &(dyn Fn() + Sync)) -> Together {
    const FIRST: u64 = 1_000;
    /// Threads count in lines of their own.
    #[repr(align(128))]
    struct Count(AtomicU64);
    let made = [Count(AtomicU64::new(0)), Count(AtomicU64::new(0))];
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for Count(made) in &made {
            let is_over = &is_over;
            scope.spawn(move || {
                // ORDERING: relaxed, here and below: numbers.
                while !is_over.load(Relaxed) {
                    (0..16).for_each(|_| pair());
                    made.store(made.load(Relaxed) + 16, Relaxed);
                }
            });
        }
        while made.iter().any(|Count(made)| made.load(Relaxed) < FIRST) {
            thread::yield_now();
        }
        let counted = || (Instant::now(), made.each_ref().map(|Count(made)| made.load(Relaxed)));
        let (begin, before) = counted();
        // This thread must not be in their way.
        thread::sleep(Duration::from_nanos(SLICE_NS));
        let (end, after) = counted();
        is_over.store(true, Relaxed);
        let pairs = after.iter().sum::<u64>() - before.iter().sum::<u64>();
        Together { ns: (end - begin).as_nanos() as f64, pairs: pairs as f64 }
    })
}

/// Takes the time of so many multiplications, each of which needs the result of the one before.
#[inline(always)]
fn pause(multiplications: u32) {
    let mut number = black_box(3u64);
    for _ in 0..multiplications {
        // Not constant for the compiler, and no access to memory.
        // SAFETY: it multiplies registers.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            core::arch::asm!("imul {0}, {0}", inout(reg) number, options(pure, nomem, nostack));
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            number = black_box(number.wrapping_mul(number));
        }
    }
    black_box(number);
}

/// How many multiplications take as long as recording adds to a pair of one thread.
fn gap() -> u32 {
    let bare = std::sync::Mutex::new(0u64);
    let recorded = librip::sync::Mutex::new(0u64);
    let mut candidates = [
        pairs!("bare", 0, bare, bare.lock().unwrap()),
        pairs!("recorded", 0, recorded, recorded.lock().unwrap()),
        Candidate::new("a hundred multiplications", 0, 100, |rounds| (0..rounds).for_each(|_| pause(100))),
    ];
    let times: Vec<f64> = in_turns(&mut candidates).iter().map(|times| quantile(times, 0.5)).collect();
    ((times[1] - times[0]) / times[2]).round().max(0.0) as u32
}

/// A raw lock that adds up how long it was held, in ticks: from the end of `lock` to the start of `unlock`.
struct Stopwatch {
    inner: parking_lot::RawMutex,
    since: AtomicU64,
    ticks: AtomicU64,
    /// How many times it was held.
    holds: AtomicU64,
}

// SAFETY: all functions delegate to a lock that fulfils the trait.
unsafe impl lock_api::RawMutex for Stopwatch {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait requires it")]
    const INIT: Stopwatch = Stopwatch {
        inner: <parking_lot::RawMutex as lock_api::RawMutex>::INIT,
        since: AtomicU64::new(0),
        ticks: AtomicU64::new(0),
        holds: AtomicU64::new(0),
    };
    type GuardMarker = lock_api::GuardNoSend;

    #[inline(always)]
    fn lock(&self) {
        lock_api::RawMutex::lock(&self.inner);
        // ORDERING: relaxed throughout: only the thread that holds the lock accesses these.
        self.since.store(counter(), Relaxed);
    }

    #[inline(always)]
    fn try_lock(&self) -> bool {
        let is_acquired = lock_api::RawMutex::try_lock(&self.inner);
        if is_acquired {
            self.since.store(counter(), Relaxed);
        }
        is_acquired
    }

    #[inline(always)]
    unsafe fn unlock(&self) {
        let held = counter().wrapping_sub(self.since.load(Relaxed));
        self.ticks.store(self.ticks.load(Relaxed).wrapping_add(held), Relaxed);
        self.holds.store(self.holds.load(Relaxed) + 1, Relaxed);
        // SAFETY: the caller holds the lock.
        unsafe { lock_api::RawMutex::unlock(&self.inner) };
    }
}

/// Runs one round, and returns ns a pair.
type Run<'a> = Box<dyn Fn() -> f64 + 'a>;

fn contended() {
    let bare = std::sync::Mutex::new(0u64);
    let recorded = librip::sync::Mutex::new(0u64);
    let lot = parking_lot::Mutex::new(0u64);
    let lot_recorded = LotMutex::new(0u64);
    let watch = lock_api::Mutex::<Stopwatch, u64>::new(0);
    let watch_recorded = lock_api::Mutex::<Recorded<Stopwatch>, u64>::new(0);
    let scale = ticks_a_ns();
    /// A pair with some work under the lock.
    macro_rules! pair {
        ($acquire:expr) => {
            &|| {
                let mut guard = $acquire;
                for step in 0..8 {
                    *guard = black_box(*guard + step);
                }
            }
        };
    }
    let gap = gap();
    /// The same, and then the gap.
    macro_rules! pair_and_gap {
        ($acquire:expr) => {
            &|| {
                (pair!($acquire))();
                pause(gap);
            }
        };
    }
    let hold_time = |watch: &Stopwatch| {
        let [ticks, holds] = [&watch.ticks, &watch.holds].map(|sum| sum.swap(0, Relaxed) as f64);
        ticks / scale / holds
    };
    let runs: [(&str, usize, Run<'_>); 8] = [
        (
            "std Mutex, two threads on one lock",
            0,
            Box::new(|| two_threads(pair!(bare.lock().unwrap())).ns_a_pair()),
        ),
        (
            "std Mutex and a gap, two threads",
            0,
            Box::new(|| two_threads(pair_and_gap!(bare.lock().unwrap())).ns_a_pair()),
        ),
        (
            "librip::sync::Mutex, two threads",
            1,
            Box::new(|| two_threads(pair!(recorded.lock().unwrap())).ns_a_pair()),
        ),
        ("parking_lot::Mutex, two threads", 3, Box::new(|| two_threads(pair!(lot.lock())).ns_a_pair())),
        (
            "parking_lot::Mutex and a gap, two threads",
            3,
            Box::new(|| two_threads(pair_and_gap!(lot.lock())).ns_a_pair()),
        ),
        (
            "parking_lot's, Recorded, two threads",
            4,
            Box::new(|| two_threads(pair!(lot_recorded.lock())).ns_a_pair()),
        ),
        (
            "parking_lot's, hold time",
            6,
            Box::new(|| {
                two_threads(pair!(watch.lock()));
                // SAFETY: this does not unlock it.
                hold_time(unsafe { watch.raw() })
            }),
        ),
        (
            "parking_lot's, Recorded, hold time",
            6,
            Box::new(|| {
                two_threads(pair!(watch_recorded.lock()));
                // SAFETY: this does not unlock it.
                hold_time(unsafe { watch_recorded.raw() }.inner())
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

/// Naming a lock and removing its name, with few and with many other names in the ring.
fn names() {
    const MANY: usize = 100_000;
    const PAIRS: u32 = 1000;
    let locks = vec![0u64; MANY + PAIRS as usize];
    let (others, own) = locks.split_at(MANY);
    let pairs = || {
        let begin = Instant::now();
        for lock in own {
            rip_lock_name!(lock, "session");
            rip_lock_name!(lock, "");
        }
        begin.elapsed().as_nanos() as f64 / f64::from(PAIRS)
    };
    let name_others = |name: &str| others.iter().for_each(|lock| rip_lock_name!(lock, name));
    let (mut few, mut many) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS.min(10) {
        few.push(pairs());
        name_others("other");
        many.push(pairs());
        name_others("");
    }
    let name = "a lock is named and unnamed, few other names";
    print_differences(name, &few, &few, name);
    print_differences("the same with 100,000 other names", &many, &few, name);
}

/// Two threads that take turns through a condition variable.
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
