//! Measures what `read-rip record` costs the program that it follows: the throughput of marks with a recorder and
//! without one. And which rates of marks it keeps up with.
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
//! For the rates, each thread marks its part of the marks of a millisecond, and sleeps for a millisecond. The rate is
//! doubled as long as the recorder sees all words, and up to one that the threads cannot reach any more. *marks/s* is
//! what the recorder has seen, *unseen* are the words that were replaced before it saw them, and *recorder* is its
//! processor time as above, from its start to its end. A thread has 16,384 words, and the interval is the default one.
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
use std::process::{Child, ChildStderr, Command, Stdio};
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
/// For how long a recorder follows threads of one rate.
const RATE_TURN: Duration = Duration::from_secs(2);
/// In a child process, this variable says how many threads mark, and how many words each of them has.
const GROUP: &str = "RIP_BENCH_GROUP";

fn main() {
    match std::env::var(GROUP) {
        Ok(group) => {
            let measured = match group.strip_prefix("rates ") {
                Some(threads) => rates(threads),
                None => compare(&group),
            };
            if let Err(error) = measured {
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
            println!("\n{:<24}{:>14}{:>12}{:>12}{:>14}", "", "marks/s", "unseen", "recorder", "bytes a word");
            ["rates 1", "rates 8", "rates 64"].iter().for_each(|group| child(GROUP, group));
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

/// Measures which rates a recorder keeps up with.
fn rates(threads: &str) -> Result<(), Box<dyn std::error::Error>> {
    let read_rip =
        std::env::var_os("READ_RIP").ok_or("READ_RIP does not name read-rip; use scripts/bench")?;
    let threads: u64 = threads.parse()?;
    Builder::new().words(16_384).slots(128).keep(Keep::Never).create()?;
    let ring = librip::ring_path().ok_or("the ring has no path")?;
    let wanted = Arc::new(AtomicU64::new(0));
    (0..threads).for_each(|_| start_pacing(&wanted));
    let mut reached = 0.0;
    for doubling in 0.. {
        let rate = 500_000_u64 << doubling;
        // ORDERING: relaxed: only the number is read.
        wanted.store(rate / 1000 / threads, Relaxed);
        let recorder = Recorder::start(Path::new(&read_rip), &ring)?;
        let begun = Instant::now();
        thread::sleep(RATE_TURN);
        let share = recorder.processor_ns() / begun.elapsed().as_nanos() as f64;
        let took_s = begun.elapsed().as_secs_f64();
        let said = recorder.end()?;
        let [words, unseen, kib] = numbers(&said).ok_or_else(|| format!("what does this say? {said}"))?;
        let marks_per_s = words / took_s;
        let name = format!("{threads} paced");
        let lost = 100.0 * unseen / (words + unseen);
        let bytes = kib * 1024.0 / words;
        println!("{name:<24}{marks_per_s:>14.0}{lost:>10.2} %{:>10.1} %{bytes:>14.1}", share * 100.0);
        if unseen > 0.0 || marks_per_s < 1.2 * reached {
            return Ok(());
        }
        reached = marks_per_s;
    }
    Ok(())
}

/// The words that a recorder says it has seen, those that it has not, and the length of its file, KiB.
fn numbers(said: &str) -> Option<[f64; 3]> {
    let before = |what: &str| {
        let (before, _) = said.split_once(what)?;
        before.rsplit(' ').next()?.parse::<f64>().ok()
    };
    let words = before(" words in ").or_else(|| before(" word in "))?;
    let unseen = [" words were overwritten", " word was overwritten"].iter().find_map(|what| before(what));
    Some([words, unseen.unwrap_or(0.0), before(" KiB.")?])
}

/// Starts a thread that makes so many marks, and then sleeps for a millisecond, until the process ends.
fn start_pacing(wanted: &Arc<AtomicU64>) {
    let wanted = Arc::clone(wanted);
    thread::spawn(move || {
        loop {
            // ORDERING: relaxed: only the number is read.
            (0..wanted.load(Relaxed)).for_each(|_| rip_snap!());
            thread::sleep(Duration::from_millis(1));
        }
    });
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
    says: BufReader<ChildStderr>,
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
        let says = process.stderr.take().ok_or(std::io::ErrorKind::BrokenPipe)?;
        let mut recorder = Recorder { process, says: BufReader::new(says), file };
        let line = recorder.line()?;
        if line.starts_with("Recording ") { Ok(recorder) } else { Err(std::io::Error::other(line)) }
    }

    /// The processor time that it has taken so far.
    fn processor_ns(&self) -> f64 {
        let path = format!("/proc/{}/schedstat", self.process.id());
        let said = std::fs::read_to_string(path).unwrap_or_default();
        said.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0.0)
    }

    fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        self.says.read_line(&mut line)?;
        Ok(line)
    }

    /// Ends it. Returns what it says then.
    fn end(mut self) -> std::io::Result<String> {
        // SAFETY: takes plain numbers: a child that has not been waited for.
        unsafe { libc::kill(self.process.id() as libc::pid_t, libc::SIGINT) };
        let said = self.line()?;
        self.process.wait()?;
        std::fs::remove_file(&self.file)?;
        Ok(said)
    }
}
