//! Measures what a mark costs, and compares it with the cheapest possible recording in the same run.
//!
//! ```text
//! cargo build --release -p librip-plugin && cargo bench -p librip --bench marks        or: scripts/bench marks
//! ```
//!
//! # Method
//!
//! [`turns`] describes the method. *ns* is the median time of a candidate. In each round, the candidate's time is
//! divided by that of the candidate named in column *to*. *ratio* is the median of these quotients, *spread* their
//! range from the first to the third quartile. Nothing is asserted: read the ratios.
//!
//! A loop has a counter and four marks, each of them a site of its own. Each mark depends on the one before it, because
//! both change the slot's count in memory. The stores of the baseline depend on one another in the same way. So both
//! rows show latency.
//!
//! # The baseline
//!
//! `bare store` is the shortest sequence of instructions that stores (sequence, PC) into a ring:
//!
//! ```text
//! mov  word, fs:[count]          count and cursor in thread-local storage, local-exec model
//! lea  index, [word + 1]
//! mov  fs:[count], index
//! mov  cursor, fs:[cursor]
//! mov  index, word
//! and  index, 63                 a constant mask
//! shl  word, 49
//! lea  pc, [rip]
//! or   word, pc
//! mov  [cursor + 8*index], word
//! ```
//!
//! It does not check whether there is a slot, it has no note, and it writes to ordinary memory that ends with the
//! thread. The baseline exists on x86-64 only; on other processors the mark itself is the baseline.
//!
//! # The ancestor
//!
//! `the ancestor's mark` is what the C header that preceded librip did, written anew in [`ancestor`]: two thread-local
//! counters of one byte, and a store into a row of 32 words, which a global pointer and the thread's number lead to. It
//! checks nothing, loses marks to signal handlers, and exists on x86-64 only.
//!
//! # The lock pair
//!
//! `lock pair` is the shortest lock there is, in [`pair`]: an atomic exchange acquires it and a store releases it.
//!
//! # What is not measured
//!
//! Marks with cold caches. The effect of a mark's 70 bytes of code on the instruction cache of a large program.

#![allow(unsafe_code, reason = "the baseline is assembly, and a library is loaded with dlopen")]

#[path = "turns/child.rs"]
mod child;
#[path = "turns/companion.rs"]
mod companion;
#[path = "turns/table.rs"]
mod table;
mod turns;

use std::ffi::CString;
use std::hint::black_box;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use child::child;
use companion::Companion;
use librip::{Builder, Clock, Keep, rip_snap};
use table::{measure, print_row, print_title};
use turns::{Candidate, quantile, timed};

/// The number of first marks to time, each in a new thread.
const CLAIMS: usize = 2_000;
/// In a child process, this variable names the group to measure.
const GROUP: &str = "RIP_BENCH_GROUP";

fn main() {
    // The arguments of `cargo bench` are ignored: --bench, and filters.
    match std::env::var(GROUP).as_deref() {
        Ok("without-ring") => without_ring(),
        Ok("refused") => refused(),
        Ok("ticks") => ticks(),
        Ok("loops") => loops(),
        _ => all(),
    }
}

fn all() {
    print_title("librip/benches/marks.rs");
    child(GROUP, "without-ring");
    child(GROUP, "refused");
    child(GROUP, "ticks");
    make_ring(65_536, Clock::Contended);
    one_thread();
    locks();
    lock_pair();
    two_threads();
    claims();
}

fn make_ring(slots: u32, clock: Clock) {
    let made = Builder::new().slots(slots).keep(Keep::Never).clock(clock).create();
    if let Err(error) = made {
        eprintln!("marks: no ring, so there is nothing to measure: {error}");
        std::process::exit(1);
    }
}

/// Makes four marks a round. Not inlined, so that every measurement runs the same instructions.
#[inline(never)]
fn marks(rounds: u64) {
    for _ in 0..rounds {
        rip_snap!();
        rip_snap!();
        rip_snap!();
        rip_snap!();
    }
}

#[cfg(target_arch = "x86_64")]
mod bare {
    use std::cell::UnsafeCell;

    // Thread-local storage of the local-exec model, which only executables can use.
    core::arch::global_asm!(
        ".pushsection .tbss.librip_bench,\"awT\",@nobits",
        ".balign 8",
        ".globl librip_bench_cursor, librip_bench_count",
        ".hidden librip_bench_cursor, librip_bench_count",
        "librip_bench_cursor: .zero 8",
        "librip_bench_count: .zero 8",
        ".popsection",
    );

    thread_local! {
        static WORDS: UnsafeCell<[u64; 64]> = const { UnsafeCell::new([0; 64]) };
    }

    /// Use it within `with_words` only.
    macro_rules! store {
        () => {
            // SAFETY: stores one of the 64 words that the cursor points at, which are this thread's: see `with_words`.
            unsafe {
                core::arch::asm!(
                    "mov {word}, qword ptr fs:[librip_bench_count@TPOFF]",
                    "lea {index}, [{word} + 1]",
                    "mov qword ptr fs:[librip_bench_count@TPOFF], {index}",
                    "mov {cursor}, qword ptr fs:[librip_bench_cursor@TPOFF]",
                    "mov {index:e}, {word:e}",
                    "and {index:e}, 63",
                    "shl {word}, 49",
                    "lea {pc}, [rip]",
                    "or {word}, {pc}",
                    "mov qword ptr [{cursor} + 8*{index}], {word}",
                    cursor = out(reg) _,
                    word = out(reg) _,
                    index = out(reg) _,
                    pc = out(reg) _,
                    options(nostack),
                )
            }
        };
    }
    pub(crate) use store;

    /// Runs `body` with this thread's cursor set.
    #[inline(always)]
    pub(crate) fn with_words(body: impl FnOnce()) {
        WORDS.with(|words| {
            // SAFETY: sets a variable of this module to this thread's words, which outlive `body`.
            unsafe {
                core::arch::asm!(
                    "mov qword ptr fs:[librip_bench_cursor@TPOFF], {words}",
                    words = in(reg) words.get(),
                    options(nostack, preserves_flags),
                );
            }
            body();
        });
    }

    /// Makes four stores a round.
    #[inline(never)]
    pub(crate) fn stores(rounds: u64) {
        with_words(|| {
            for _ in 0..rounds {
                store!();
                store!();
                store!();
                store!();
            }
        });
    }
}

#[cfg(target_arch = "x86_64")]
mod ancestor {
    use core::sync::atomic::AtomicU64;

    /// The length of a row: a name, and 32 words.
    const ROW_LEN_BYTES: usize = 320;
    /// The row that the measured thread writes to.
    const ROW: usize = 7;

    core::arch::global_asm!(
        ".pushsection .tbss.librip_bench,\"awT\",@nobits",
        ".balign 8",
        ".globl librip_bench_row, librip_bench_lap, librip_bench_index",
        ".hidden librip_bench_row, librip_bench_lap, librip_bench_index",
        "librip_bench_row: .zero 8",
        "librip_bench_lap: .zero 1",
        "librip_bench_index: .zero 1",
        ".popsection",
        ".pushsection .bss.librip_bench,\"aw\",@nobits",
        ".balign 8",
        ".globl librip_bench_rows",
        ".hidden librip_bench_rows",
        "librip_bench_rows: .zero 8",
        ".popsection",
    );

    unsafe extern "C" {
        safe static librip_bench_rows: AtomicU64;
    }

    /// Use it after `begin` only.
    macro_rules! mark {
        () => {
            // SAFETY: stores one of the 32 words of this thread's row: see `begin`.
            unsafe {
                core::arch::asm!(
                    "movzx {lap:e}, byte ptr fs:[librip_bench_lap@TPOFF]",
                    "lea {index:e}, [{lap} + 1]",
                    "mov byte ptr fs:[librip_bench_lap@TPOFF], {index:l}",
                    "shl {lap}, 56",
                    "lea {pc}, [rip]",
                    "or {lap}, {pc}",
                    "movzx {index:e}, byte ptr fs:[librip_bench_index@TPOFF]",
                    "lea {pc:e}, [{index} + 1]",
                    "and {pc:e}, 31",
                    "mov byte ptr fs:[librip_bench_index@TPOFF], {pc:l}",
                    "imul {row}, qword ptr fs:[librip_bench_row@TPOFF], 320",
                    "add {row}, qword ptr [rip + librip_bench_rows]",
                    "mov qword ptr [{row} + 8*{index} + 64], {lap}",
                    lap = out(reg) _,
                    index = out(reg) _,
                    pc = out(reg) _,
                    row = out(reg) _,
                    options(nostack),
                )
            }
        };
    }
    pub(crate) use mark;

    /// Gives the calling thread its row.
    pub(crate) fn begin() {
        let rows: &'static mut [u64] = vec![0u64; (ROW + 1) * ROW_LEN_BYTES / 8].leak();
        librip_bench_rows
            .store(rows.as_mut_ptr().expose_provenance() as u64, core::sync::atomic::Ordering::Relaxed);
        // SAFETY: sets a variable of this module.
        unsafe {
            core::arch::asm!(
                "mov qword ptr fs:[librip_bench_row@TPOFF], {row}",
                row = in(reg) ROW,
                options(nostack, preserves_flags),
            );
        }
    }

    /// Makes four marks a round.
    #[inline(never)]
    pub(crate) fn marks(rounds: u64) {
        for _ in 0..rounds {
            mark!();
            mark!();
            mark!();
            mark!();
        }
    }
}

mod pair {
    use core::sync::atomic::AtomicU32;
    use core::sync::atomic::Ordering::{Acquire, Release};

    /// A lock that is always free.
    pub(crate) static LOCK: AtomicU32 = AtomicU32::new(0);

    #[inline(always)]
    pub(crate) fn lock() {
        while LOCK.swap(1, Acquire) != 0 {
            core::hint::spin_loop();
        }
    }

    #[inline(always)]
    pub(crate) fn unlock() {
        LOCK.store(0, Release);
    }
}

const BASELINE: &str = "bare store";

/// Returns the baseline if there is one, else the mark. It is to be the candidate with index 0.
fn baseline<'a>() -> Candidate<'a> {
    #[cfg(target_arch = "x86_64")]
    return Candidate::new(BASELINE, 0, 4, bare::stores);
    #[cfg(not(target_arch = "x86_64"))]
    Candidate::new("rip_snap!()", 0, 4, marks)
}

/// Runs in a child process, which has no ring.
fn without_ring() {
    let mut candidates = [baseline(), Candidate::new("rip_snap!(), no ring yet", 0, 4, marks)];
    measure(&mut candidates, None);
}

/// Runs in a child process, whose ring has one slot. The main thread has it.
fn refused() {
    make_ring(1, Clock::Contended);
    rip_snap!();
    let measured = thread::spawn(|| {
        let mut candidates = [baseline(), Candidate::new("rip_snap!(), thread refused", 0, 4, marks)];
        measure(&mut candidates, None);
    });
    if measured.join().is_err() {
        std::process::exit(1);
    }
}

/// Runs in a child process. Its threads note the time about once a millisecond.
fn ticks() {
    make_ring(65_536, Clock::Ticks);
    let mut candidates = [baseline(), Candidate::new("rip_snap!() with RIP_CLOCK=ticks", 0, 4, marks)];
    measure(&mut candidates, None);
}

fn one_thread() {
    let plugin = Plugin::load();
    let mut candidates = vec![baseline(), Candidate::new("rip_snap!()", 0, 4, marks)];
    #[cfg(target_arch = "x86_64")]
    {
        ancestor::begin();
        candidates.push(Candidate::new("the ancestor's mark", 0, 4, ancestor::marks));
    }
    match &plugin {
        Ok(plugin) => {
            candidates.push(Candidate::new("rip_snap!() in a library (dlopen)", 1, 4, |rounds| {
                plugin.marks(rounds)
            }));
        }
        Err(why) => eprintln!("marks: not measured in a library: {why}"),
    }
    measure(&mut candidates, None);
}

/// A function of a library with marks. The library is never unloaded.
struct Plugin(extern "C" fn(u64));

impl Plugin {
    fn load() -> Result<Plugin, String> {
        let path = Plugin::path().ok_or("no liblibrip_plugin.so; cargo build --release -p librip-plugin")?;
        let path = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
        // SAFETY: the path is terminated. The library's initialiser is librip's own.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        if library.is_null() {
            return Err(format!("{} cannot be loaded", path.to_string_lossy()));
        }
        // SAFETY: the handle is valid and the name terminated.
        let marks = unsafe { libc::dlsym(library, c"librip_plugin_marks".as_ptr()) };
        if marks.is_null() {
            return Err("it has no function librip_plugin_marks".into());
        }
        // SAFETY: `examples/plugin` defines the function with this type, and the library is never unloaded.
        Ok(Plugin(unsafe { std::mem::transmute::<*mut libc::c_void, extern "C" fn(u64)>(marks) }))
    }

    /// Returns the path in `RIP_PLUGIN`, or looks in the directory of this program (`release/deps`) and in its parent.
    fn path() -> Option<PathBuf> {
        if let Some(path) = std::env::var_os("RIP_PLUGIN") {
            return Some(path.into());
        }
        let program = std::env::current_exe().ok()?;
        program
            .ancestors()
            .skip(1)
            .take(2)
            .map(|directory| directory.join("liblibrip_plugin.so"))
            .find(|path| path.exists())
    }

    fn marks(&self, rounds: u64) {
        (self.0)(rounds);
    }
}

fn locks() {
    let counter = Mutex::new(0u64);
    let mut candidates = vec![
        Candidate::new("std Mutex, lock and unlock", 0, 1, |rounds| {
            for _ in 0..rounds {
                let mut guard = black_box(&counter).lock().unwrap();
                *guard += 1;
                drop(guard);
            }
        }),
        Candidate::new("the same with three marks", 0, 1, |rounds| {
            for _ in 0..rounds {
                rip_snap!();
                let mut guard = black_box(&counter).lock().unwrap();
                rip_snap!();
                *guard += 1;
                drop(guard);
                rip_snap!();
            }
        }),
    ];
    // The least that three marks could cost among the same atomic operations.
    #[cfg(target_arch = "x86_64")]
    candidates.push(Candidate::new("the same with three bare stores", 0, 1, |rounds| {
        bare::with_words(|| {
            for _ in 0..rounds {
                bare::store!();
                let mut guard = black_box(&counter).lock().unwrap();
                bare::store!();
                *guard += 1;
                drop(guard);
                bare::store!();
            }
        });
    }));
    measure(&mut candidates, None);
}

/// Three marks around the shortest lock: what the ancestor's marks cost there, and ours.
fn lock_pair() {
    let mut candidates = vec![
        Candidate::new("lock pair", 0, 1, |rounds| {
            for _ in 0..rounds {
                pair::lock();
                pair::unlock();
            }
        }),
        Candidate::new("the same with three marks", 0, 1, |rounds| {
            for _ in 0..rounds {
                rip_snap!();
                pair::lock();
                rip_snap!();
                pair::unlock();
                rip_snap!();
            }
        }),
    ];
    #[cfg(target_arch = "x86_64")]
    candidates.extend([
        Candidate::new("the same with three of the ancestor's", 0, 1, |rounds| {
            for _ in 0..rounds {
                ancestor::mark!();
                pair::lock();
                ancestor::mark!();
                pair::unlock();
                ancestor::mark!();
            }
        }),
        Candidate::new("the same with three bare stores", 0, 1, |rounds| {
            bare::with_words(|| {
                for _ in 0..rounds {
                    bare::store!();
                    pair::lock();
                    bare::store!();
                    pair::unlock();
                    bare::store!();
                }
            });
        }),
    ]);
    measure(&mut candidates, None);
}

/// Compares one thread alone with one thread while another does the same. The baseline's rows show how much of the
/// difference is the machine's.
fn two_threads() {
    #[cfg(target_arch = "x86_64")]
    beside_another(BASELINE, bare::stores);
    beside_another("rip_snap!()", marks);
}

fn beside_another(name: &str, run: fn(u64)) {
    let companion = Companion::start();
    let alone = format!("{name}, one thread");
    let both = format!("{name}, two threads at once");
    let mut candidates = [
        Candidate::new(&alone, 0, 4, run),
        Candidate {
            name: &both,
            beside: 0,
            operations: 4,
            run: Box::new(|rounds| companion.beside(Arc::new(run), || timed(|| run(rounds)))),
        },
    ];
    measure(&mut candidates, None);
}

/// Times the first mark of a thread, which claims a slot. The second mark shows what reading the clock costs.
fn claims() {
    let mut first = Vec::with_capacity(CLAIMS);
    let mut second = Vec::with_capacity(CLAIMS);
    for _ in 0..CLAIMS {
        let times = thread::spawn(|| {
            let begin = Instant::now();
            rip_snap!();
            let between = Instant::now();
            rip_snap!();
            let end = Instant::now();
            ((between - begin).as_nanos() as f64, (end - between).as_nanos() as f64)
        });
        if let Ok((one, two)) = times.join() {
            first.push(one);
            second.push(two);
        }
    }
    print_row("second mark of a thread, and the clock", &second, &second, "itself");
    print_row("first mark of a thread, and the clock", &first, &second, "second mark");
    println!("{:<44}{:>10.2}  (99 of 100 are faster)", "", quantile(&first, 0.99));
}

/// Runs loops of known length, for `scripts/bench instructions`, which counts instructions with callgrind.
fn loops() {
    let rounds =
        std::env::var("RIP_BENCH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(100_000);
    make_ring(64, Clock::Contended);
    rip_snap!();
    #[cfg(target_arch = "x86_64")]
    bare::stores(rounds);
    marks(rounds);
}
