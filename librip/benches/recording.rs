//! Measures what `read-rip record` costs the program that it follows: the throughput of marks with a recorder and
//! without one.
//!
//! ```text
//! READ_RIP=target/release/read-rip cargo bench -p librip --bench recording        or: scripts/bench recording
//! ```
//!
//! # Method
//!
//! Threads mark at full speed. Turns with a recorder at its default interval and turns without one alternate, so other
//! work of the machine affects both alike. *throughput* is the median, over all pairs of turns, of the ratio of their
//! marks a second, by the clock on the wall, with the smallest and the largest ratio. On a machine with as many
//! processors as threads, the recorder takes its time from the threads. *a mark* is the same ratio of the threads'
//! processor time for each mark: how much slower the recorder makes the marks themselves. Other work of the machine
//! disturbs it less. *recorder* is the processor time of the recorder as a part of one processor.
//!
//! # What is not measured
//!
//! The start and the end of a recorder, which write images of the whole ring.

#![allow(
    unsafe_code,
    reason = "the recorder is interrupted by a signal, and processor time read by a system call"
)]

#[path = "turns/child.rs"]
mod child;
#[path = "turns/quantile.rs"]
mod quantile;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use child::child;
use librip::{Builder, Keep, rip_snap};
use quantile::quantile;

/// The length of a turn.
const TURN: Duration = Duration::from_millis(500);
/// Pairs of turns.
const PAIRS: usize = 11;
/// In a child process, this variable says how many threads mark, and how many words each of them has.
const GROUP: &str = "RIP_BENCH_GROUP";

fn main() {
    match std::env::var(GROUP) {
        Ok(group) => {
            if let Err(error) = compare(&group) {
                eprintln!("recording: nothing can be measured: {error}");
                std::process::exit(1);
            }
        }
        Err(_) => {
            println!("{PAIRS} pairs of turns of {TURN:?}; see librip/benches/recording.rs for the method");
            println!(
                "{:<24}{:>14}{:>12}  {:<18}{:>8}{:>10}",
                "", "marks/s", "throughput", "(range)", "a mark", "recorder"
            );
            ["1 64", "1 4096", "2 64", "2 4096"].iter().for_each(|group| child(GROUP, group));
        }
    }
}

fn compare(group: &str) -> Result<(), Box<dyn std::error::Error>> {
    let (threads, words) = group.split_once(' ').ok_or("a group is a number of threads and one of words")?;
    let read_rip =
        std::env::var_os("READ_RIP").ok_or("READ_RIP does not name read-rip; use scripts/bench")?;
    Builder::new().words(words.parse()?).slots(64).keep(Keep::Never).create()?;
    let ring = librip::ring_path().ok_or("the ring has no path")?;
    let counts: Vec<Arc<AtomicU64>> = (0..threads.parse()?).map(|_| start_marking()).collect();
    let (mut bare, mut ratios, mut longer, mut shares) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let without = turn(&counts);
        let recorder = Recorder::start(Path::new(&read_rip), &ring)?;
        let begun_ns = recorder.processor_ns();
        let with = turn(&counts);
        shares.push((recorder.processor_ns() - begun_ns) / TURN.as_nanos() as f64);
        recorder.end()?;
        bare.push(without.marks_per_s);
        ratios.push(with.marks_per_s / without.marks_per_s);
        longer.push(with.mark_ns / without.mark_ns);
    }
    let name = format!("{threads} with {words} words");
    let range = format!("({:.3} to {:.3})", quantile(&ratios, 0.0), quantile(&ratios, 1.0));
    let [bare, ratio, longer, share] = [bare, ratios, longer, shares].map(|values| quantile(&values, 0.5));
    println!("{name:<24}{bare:>14.0}{ratio:>12.3}  {range:<18}{longer:>8.3}{:>8.1} %", share * 100.0);
    Ok(())
}

/// Starts a thread that marks until the process ends, and counts its marks.
fn start_marking() -> Arc<AtomicU64> {
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    thread::spawn(move || {
        loop {
            for _ in 0..250 {
                rip_snap!();
                rip_snap!();
                rip_snap!();
                rip_snap!();
            }
            // ORDERING: relaxed: only the number is read.
            counted.fetch_add(1000, Relaxed);
        }
    });
    count
}

/// What the marks of all threads cost in a turn.
struct Turn {
    marks_per_s: f64,
    /// Processor time.
    mark_ns: f64,
}

/// Measures the next turn.
fn turn(counts: &[Arc<AtomicU64>]) -> Turn {
    // ORDERING: relaxed: a number.
    let sum = || counts.iter().map(|count| count.load(Relaxed)).sum::<u64>();
    let (begun, begun_ns, before) = (Instant::now(), processor_ns(), sum());
    thread::sleep(TURN);
    let marks = (sum() - before) as f64;
    Turn {
        marks_per_s: marks / begun.elapsed().as_secs_f64(),
        mark_ns: (processor_ns() - begun_ns) as f64 / marks,
    }
}

/// The processor time of all threads of this process.
fn processor_ns() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a writable timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// A recorder that records. Its file is in the temporary directory.
struct Recorder {
    process: Child,
    file: PathBuf,
}

impl Recorder {
    fn start(read_rip: &Path, ring: &Path) -> std::io::Result<Recorder> {
        let file = std::env::temp_dir().join(format!("librip-bench.{}", std::process::id()));
        let mut process = Command::new(read_rip)
            .args(["record", "-o"])
            .args([&file, ring])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(said) = process.stderr.take() {
            let mut line = String::new();
            BufReader::new(said).read_line(&mut line)?;
            if !line.starts_with("Recording ") {
                return Err(std::io::Error::other(line));
            }
        }
        Ok(Recorder { process, file })
    }

    /// The processor time that it has taken so far.
    fn processor_ns(&self) -> f64 {
        let path = format!("/proc/{}/schedstat", self.process.id());
        let said = std::fs::read_to_string(path).unwrap_or_default();
        said.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0.0)
    }

    fn end(mut self) -> std::io::Result<()> {
        // SAFETY: takes plain numbers: a child that has not been waited for.
        unsafe { libc::kill(self.process.id() as libc::pid_t, libc::SIGINT) };
        self.process.wait()?;
        std::fs::remove_file(&self.file)
    }
}
