//! What the fuzz targets share: one run of each command of `read-rip` over one ring, and the seeds.
//!
//! The commands run in this process, so that the engine sees which code they reach. They ask the system about processes
//! too; the rings are of another boot, so that no answer depends on what runs. The targets do not look at results: a
//! panic, an abort, too much time or too much memory is a finding.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::Parser;
use librip_test_kit::builder::{BIAS, Held, Module, Ring, Site, Slot, Task};
use librip_test_kit::format::{held, kind, operand};
use read_rip::cli::Cli;

/// The commands that read a ring, each with options that make it say all that it can.
const COMMANDS: [&[&str]; 12] = [
    &[],
    &["-t", "-v"],
    &["info"],
    &["locks", "--all", "-v"],
    &["check", "--threshold", "1us"],
    &["log"],
    &["spans"],
    &["tasks", "--all", "-v"],
    &["tasks", "--all", "-t"],
    &["--json", "tasks", "--all"],
    &["--json", "-t"],
    &["--json", "check", "--threshold", "1us"],
];

/// A file with this content, in the directory that `scripts/fuzz` makes and removes.
pub fn file(name: &str, content: &[u8]) -> PathBuf {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    let directory = DIRECTORY.get_or_init(|| {
        let directory =
            std::env::var_os("RIP_FUZZ_FILES").expect("RIP_FUZZ_FILES names a directory: see scripts/fuzz");
        PathBuf::from(directory)
    });
    let path = directory.join(name);
    fs::write(&path, content).expect("room in /dev/shm");
    path
}

/// Runs `read-rip ARGUMENTS RING`.
pub fn read_rip(arguments: &[&str], ring: &Path) {
    let program = [OsStr::new("read-rip")];
    let all = program.into_iter().chain(arguments.iter().map(OsStr::new)).chain([ring.as_os_str()]);
    let cli = Cli::try_parse_from(all.map(OsString::from)).expect("a command line that is right");
    read_rip::app::run_command(cli);
}

/// Runs all commands over a ring: parsers, analyses and reports.
pub fn read_everything(ring: &Path) {
    COMMANDS.iter().for_each(|arguments| read_rip(arguments, ring));
}

/// To be called before the first input. Sends what the commands print to nowhere; if the environment variable
/// `RIP_SEEDS` names a directory, writes these seeds there and exits.
pub fn begin(seeds: impl FnOnce() -> Vec<Vec<u8>>) {
    if let Some(directory) = std::env::var_os("RIP_SEEDS") {
        fs::create_dir_all(&directory).expect("a directory for the seeds");
        for (number, seed) in seeds().iter().enumerate() {
            fs::write(Path::new(&directory).join(format!("seed-{number}")), seed).expect("a seed");
        }
        std::process::exit(0);
    }
    // SAFETY: a descriptor that stays open, and one that the engine does not use: it writes to standard error.
    unsafe { libc::dup2(libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY), libc::STDOUT_FILENO) };
}

const TAKES: u64 = 0x3000;
const RELEASES: u64 = 0x3004;
const WAITS: u64 = 0x3008;
const FAILS: u64 = 0x300c;
const MUTEX: u16 = 0x104;

/// One of everything: plain marks, locks in a circle, a reused slot, an exited thread, names, times.
pub fn ring() -> Ring {
    let mut ring = Ring::new().with_sites(&[
        (0x1000, "src/a.rs", 1),
        (0x2000, "src/b/mod.rs", 2),
        (0x2004, "mod.rs", 2),
    ]);
    ring.slot_words = 16;
    ring.spare_slots = 1;
    ring.modules.push(Module::library("/nowhere/lib.so", 0x7f00_0000_0000));
    let operands = vec![operand::WORD, operand::DOUBLE];
    ring.sites.push(Site { module: 1, operands, ..Site::new(0x1000, "lib.rs", 3).within("lib") });
    let timed = [operand::TIME, operand::LOCK];
    let since = [operand::TIME, operand::SINCE, operand::LOCK];
    ring.sites.push(Site::new(TAKES, "lock.rs", 4).of(kind::LOCK_ACQUIRE_BEGIN, MUTEX, &timed));
    ring.sites.push(Site::new(RELEASES, "lock.rs", 5).of(kind::LOCK_RELEASED, MUTEX, &since));
    ring.sites.push(Site::new(WAITS, "lock.rs", 6).of(kind::LOCK_WAIT, MUTEX, &timed));
    ring.sites.push(Site::new(FAILS, "lock.rs", 7).of(kind::LOCK_TRY_FAILED, MUTEX, &[operand::LOCK]));
    ring.lock_names = vec![(4321, 0x7000, "cache".into()), (4321, 0x7040, "log".into())];
    let acquired = |lock, since| Held::new(held::HELD, lock, TAKES).since(since);
    let waits = |lock, since| Held::new(held::WAITING, lock, WAITS).since(since);
    ring.has_tasks = true;
    let task = Task::of_executor(BIAS + 0x1000);
    let two_futures = Task {
        turn: 4,
        since: Some((4000, true)),
        poller: Some(-1),
        awaits: vec![(BIAS + 0x1000, None, 1), (BIAS + 0x2000, Some(0), 3)],
        left_out: 2,
        entry_turns: vec![(1, true, Some(0)), (3, true, Some(1))],
        ..task.clone()
    };
    let polled = Task { turn: 3, since: Some((5000, false)), poller: Some(-1), wakes: 3, ..task.clone() };
    let of_future = |lock| Held { recursion: 4095, ..waits(lock, 4300) };
    ring.with_clock(3).with_slots([
        Slot::thread("one", 1).at(70).marks([0x1000, 0x2000]),
        Slot::thread("left", 9)
            .event(TAKES, &[2000, 0x7000])
            .event(RELEASES, &[3000, 2000, 0x7000])
            .event(TAKES, &[4000, 0x7040])
            .event(WAITS, &[4100, 0x7000])
            .has(acquired(0x7040, 4000))
            .has(waits(0x7000, 4100)),
        Slot::thread("right", 10)
            .event(TAKES, &[4000, 0x7000])
            .event(WAITS, &[4200, 0x7040])
            .has(acquired(0x7000, 4000))
            .has(waits(0x7040, 4200)),
        Slot::task("two futures", 7, two_futures).has(of_future(0x7000)).has(of_future(0x7040)),
        Slot::task("polled", 8, polled).marks([0x2000]),
        Slot::task("", 9, Task { turn: 2, wakes: 5, wakes_polled: 4, woken: Some(6000), ..task.clone() }),
        Slot::task("ended", 6, Task { turn: 2, kind: 2, ..task }).exited(),
        Slot::thread("two", 2).marks([0x1000; 30]).reused_by("three", 3).marks([0x2004, 0x2000]),
        Slot::thread("four", 4).operand(1).operand(2).operand(3).actual_marks([0x7f00_0000_1000]).exited(),
        Slot::thread("five", 5).at(u64::from(u32::MAX)).actual_marks([1, 2, 3]),
    ])
}
