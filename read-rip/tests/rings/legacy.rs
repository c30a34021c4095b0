//! Rings in the legacy format, that of the C header that librip replaces: written by a real C program, and by hand.
//!
//! The C program follows the description of the format (`read_rip_ring`, `legacy.rs`). It includes none of that
//! header's code.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::legacy::{Slot, build};
use crate::support::run::{Outcome, read_rip, show, show_within};
use tempfile::TempDir;

/// Three threads: one that only acquires and releases a lock, one that wraps around and exits, one with a single mark.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <stdlib.h>

struct slot { char name[64]; uint64_t words[32]; };
static struct slot *ring;
static __thread struct slot *mine;
static __thread uint8_t counter, next_word;

#define SNAP() do { \
    uint64_t pc; \
    __asm__ volatile("leaq 0(%%rip), %0" : "=r"(pc)); \
    mine->words[next_word++ % 32] = (uint64_t)counter++ << 56 | pc; \
} while (0)

static void enter(const char *name, int tid) {
    mine = &ring[tid];
    strcpy(mine->name, name);
}

__attribute__((noipa)) static void locking(void) {
    SNAP(); /* MARK waits */
    SNAP(); /* MARK holds */
}

__attribute__((noipa)) static void work(int n) {
    for (int i = 0; i < n; i++)
        SNAP(); /* MARK works */
}

static void *first(void *unused) {
    enter("locker", 5);
    locking();
    return unused;
}

static void *second(void *unused) {
    enter("worker", 7);
    work(299);
    locking();
    mine->words[next_word++ % 32] = UINT64_MAX;
    return unused;
}

static void *third(void *unused) {
    enter("single", 6);
    work(1);
    return unused;
}

int main(int argc, char **argv) {
    void *(*bodies[])(void *) = {first, second, third};
    int file = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 4096 * sizeof *ring))
        return 1;
    ring = mmap(0, 4096 * sizeof *ring, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        pthread_create(&thread, 0, bodies[i], 0);
        pthread_join(thread, 0);
    }
    abort();
}
"#;

/// The compiled program, and the ring of a run of it that died.
struct Fixture {
    directory: TempDir,
    exe: PathBuf,
    ring: PathBuf,
}

impl Fixture {
    fn new() -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let exe = directory.path().join("program");
        let source = directory.path().join("program.c");
        let ring = directory.path().join("ring");
        fs::write(&source, PROGRAM).unwrap();
        let gcc = Command::new("gcc")
            .args(["-g", "-O1", "-no-pie", "-fno-pie", "-pthread", "-o"])
            .arg(&exe)
            .arg(&source)
            .output();
        let gcc = gcc.unwrap();
        assert!(gcc.status.success(), "{}", String::from_utf8_lossy(&gcc.stderr));
        let status = Command::new(&exe).arg(&ring).current_dir(&directory).status().unwrap();
        assert_eq!(status.code(), None, "it aborts");
        Fixture { directory, exe, ring }
    }

    /// `read-rip -e EXE ARGS RING`.
    fn show(&self, options: &[&str], ring: &Path) -> Outcome {
        let mut args: Vec<_> = vec!["-e".as_ref(), self.exe.as_os_str()];
        args.extend(options.iter().map(std::ffi::OsStr::new));
        args.push(ring.as_os_str());
        read_rip(args)
    }
}

/// The line of the program that has this mark.
fn line(mark: &str) -> usize {
    1 + PROGRAM.lines().position(|line| line.ends_with(&format!("/* MARK {mark} */"))).unwrap()
}

#[test]
fn a_legacy_ring_is_read_if_its_program_is_given() {
    let fixture = Fixture::new();
    let (waits, holds, works) = (line("waits"), line("holds"), line("works"));
    let outcome = fixture.show(&["-t"], &fixture.ring).sound();
    assert_eq!(
        outcome.stdout,
        format!(
            "locker[5]: {{0}}program.c:{waits}, {{1}}program.c:{holds}\n\
             single[6]: {{0}}program.c:{works}\n"
        )
    );
    assert!(outcome.stderr.starts_with("3 threads, 1 of them exited"), "{outcome:#?}");

    let outcome = fixture.show(&["-tv"], &fixture.ring).sound();
    let worker = outcome.stdout.lines().last().unwrap();
    let marks: Vec<&str> = worker.strip_prefix("worker[7]: ").unwrap().split(", ").collect();
    // 31 marks are left of 301, and the counter has 8 bits.
    assert_eq!(marks.len(), 32);
    let mark = |index: usize| marks[index].split('<').next().unwrap().to_owned();
    assert_eq!(mark(0), format!("{{{}}}program.c:{works}", 270 % 256));
    assert_eq!(mark(28), format!("{{{}}}program.c:{works}", 298 % 256));
    assert_eq!(mark(29), format!("{{{}}}program.c:{waits}", 299 % 256));
    assert_eq!(mark(30), format!("{{{}}}program.c:{holds}", 300 % 256));
    assert_eq!(marks[31], "EXIT");

    let outcome = fixture.show(&[], &fixture.ring).sound();
    assert_eq!(
        outcome.result(),
        format!(
            "locking : 1 thread, 1 location: program.c:{holds} (1)\n\
             work : 1 thread, 1 location: program.c:{works} (1)\n"
        )
    );
}

#[test]
fn compressed_copies_of_a_legacy_ring_are_read() {
    use std::io::Write;
    let fixture = Fixture::new();
    let plain = fixture.show(&["-tv"], &fixture.ring).sound().stdout;
    let bytes = fs::read(&fixture.ring).unwrap();
    let gzip = fixture.directory.path().join("ring.gz");
    crate::support::gzip(&bytes, &gzip);
    let zlib = fixture.directory.path().join("ring.zlib");
    let mut encoder =
        flate2::write::ZlibEncoder::new(fs::File::create(&zlib).unwrap(), flate2::Compression::default());
    encoder.write_all(&bytes).unwrap();
    encoder.finish().unwrap();
    for copy in [gzip, zlib] {
        assert_eq!(fixture.show(&["-tv"], &copy).sound().stdout, plain, "{}", copy.display());
    }
}

#[test]
fn without_the_program_there_are_addresses_and_a_hint() {
    let fixture = Fixture::new();
    let outcome = show(&["-t"], &fixture.ring).sound();
    let first = outcome.stdout.lines().next().unwrap();
    assert!(first.starts_with("locker[5]: {0}0x40"), "{first}");
    assert!(
        outcome.stderr.ends_with(
            "\nWarning: a ring in the legacy format does not name its program, so only addresses are known\n\
             Hint: give the program with -e\n"
        ),
        "{outcome:#?}"
    );
    let json = show(&["-t", "--json"], &fixture.ring).sound().json();
    assert_eq!(json.last().unwrap()["data"]["hint"], "give the program with -e");
    // With the program there is no hint.
    assert!(!fixture.show(&["-t"], &fixture.ring).stderr.contains("Hint: "));
    let info = read_rip(["info".as_ref(), fixture.ring.as_os_str()]).sound().stdout;
    assert!(info.contains("format      legacy: no header, 320 bytes per slot\nthreads     3\n"), "{info}");
}

/// The per-thread lines of a ring made by hand.
fn lines(threads: &[(usize, Slot)]) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ring");
    fs::write(&path, build(threads)).unwrap();
    show(&["-tv"], &path).sound().stdout.lines().map(str::to_owned).collect()
}

/// `{0}0x401000, {1}0x401001, ...`.
fn marks(counters: impl IntoIterator<Item = u64>, pcs: impl IntoIterator<Item = u64>) -> String {
    let marks = counters.into_iter().zip(pcs).map(|(counter, pc)| format!("{{{}}}{pc:#x}", counter % 256));
    marks.collect::<Vec<_>>().join(", ")
}

#[test]
fn an_exit_is_seen_wherever_the_slot_wraps() {
    let counts: Vec<u64> = (1..70).chain(250..330).collect();
    let threads: Vec<(usize, Slot)> = counts
        .iter()
        .enumerate()
        .map(|(tid, &count)| (tid, Slot::new("t").marks((0..count).map(|n| 0x40_1000 + n)).exit()))
        .collect();
    for ((tid, line), count) in lines(&threads).iter().enumerate().zip(counts) {
        let first = count.saturating_sub(31);
        let expected = marks(first..count, (first..count).map(|n| 0x40_1000 + n));
        assert_eq!(*line, format!("t[{tid}]: {expected}, EXIT"));
    }
}

#[test]
fn a_thread_with_one_mark_or_only_an_exit_is_shown() {
    let lines = lines(&[
        (1, Slot::new("single").counting_from(200).marks([0x40_1000])),
        (2, Slot::new("none").exit()),
        (3, Slot::new("silent")),
    ]);
    assert_eq!(lines, ["single[1]: {200}0x401000", "none[2]: EXIT"]);
}

#[test]
fn no_mark_is_lost_when_the_counter_jumps_several_times() {
    let slot = Slot::new("jumps")
        .counting_from(10)
        .marks([1, 2])
        .counting_from(250)
        .marks([3, 4])
        .counting_from(3)
        .marks([5]);
    assert_eq!(lines(&[(1, slot)]), ["jumps[1]: {10}0x1, {11}0x2, {250}0x3, {251}0x4, {3}0x5"]);
    // The first thread exits. Another thread gets its id, and its counter starts at zero.
    let slot = Slot::new("again").marks([1, 2, 3]).exit().counting_from(0).marks([4, 5]).exit().marks([6]);
    assert_eq!(lines(&[(1, slot)]), ["again[1]: {0}0x1, {1}0x2, {2}0x3, {0}0x4, {1}0x5, {2}0x6"]);
}

#[test]
fn counters_that_jump_everywhere_cost_no_memory_and_the_newest_marks_are_shown() {
    // Each of 20,000 slots could claim 8,000 marks that do not exist: gigabytes, from a file of six megabytes.
    let mut slot = Slot::new("hostile");
    for counter in (0..31u8).rev() {
        slot = slot.counting_from(counter).marks([0x1000 + u64::from(counter)]);
    }
    let threads: Vec<(usize, Slot)> = (1..20_000).map(|tid| (tid, slot.clone())).collect();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ring");
    fs::write(&path, build(&threads)).unwrap();
    let outcome = show_within(512 << 20, &path);
    let outcome = outcome
        .fails_with("19999 damaged slots, the first is number 1: counters that jump too often to be ordered");
    assert!(outcome.stdout.lines().all(|line| line.ends_with("{0}0x1000")));
    assert_eq!(outcome.stdout.lines().count(), 19_999);
}

#[test]
fn a_large_sparse_ring_takes_only_the_time_of_its_content() {
    use std::os::unix::fs::FileExt;
    // One slot for every thread id that Linux can assign.
    const IDS: u64 = 1 << 22;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ring");
    let one = build(&[(0, Slot::new("far").marks([0x40_1000]))]);
    let file = fs::File::create(&path).unwrap();
    file.set_len(IDS * 320).unwrap();
    for tid in [0, 4_000_000, IDS - 1] {
        file.write_all_at(&one, tid * 320).unwrap();
    }
    let outcome = show(&["-t"], &path).sound();
    let names: Vec<&str> = outcome.stdout.lines().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(names, ["far[0]", "far[4000000]", "far[4194303]"]);
    assert!(outcome.took.as_secs() < 5, "{:?}", outcome.took);
}
