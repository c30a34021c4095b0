//! Forty thousand threads: the reader reads all of them, in memory proportional to the ring.
//!
//! It does not measure time. It is alone in its file, because it measures the memory of all children of its process.

mod support;

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::Stdio;

use librip_test_kit::format::region_at;
use nix::sys::resource::{UsageWho, getrusage};
use support::run::{command, wait};
use support::synth::{Ring, SLOTS, Slot};

/// Memory of a process without any ring: code, tables, buffers.
const BASE_BYTES: u64 = 16 << 20;

#[test]
fn forty_thousand_threads_are_read_in_memory_of_two_and_a_half_rings() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ring");
    // Few threads with long histories: all are shown, and the reader never holds all events at once. This part comes
    // first, because the kernel reports the largest child so far.
    let ring_bytes = write_ring(&path, 16_384, 40);
    for options in [&["-t"][..], &["-t", "--json"]] {
        let lines = lines_of(options, &path, directory.path());
        assert!((40..50).contains(&lines), "{lines}");
    }
    assert_peak(ring_bytes);

    // Many threads, with slots of the default size.
    let ring_bytes = write_ring(&path, 64, 40_000);
    assert_eq!(lines_of(&["-v"], &path, directory.path()), 3, "a heading, a function and a verdict");
    let threads = std::fs::read_to_string(directory.path().join("output")).unwrap();
    assert!(threads.contains(" : 40000 threads, 50 locations: "), "{}", &threads[..200]);
    assert!(threads.contains("[40000, ") || threads.contains(", 40000]"));
    assert_peak(ring_bytes);
}

/// Writes a ring of full slots. Returns its length.
fn write_ring(path: &Path, slot_words: u32, threads: u32) -> u64 {
    let sites: Vec<(u64, &str, u32)> = (0..50).map(|n| (0x1000 + n, "src/busy.rs", 1 + n as u32)).collect();
    let ring = Ring { spare_slots: threads as usize, slot_words, ..Ring::new() }.with_sites(&sites);
    let mut head = ring.head();
    let used = head.region(SLOTS) + region_at::USED;
    head.set64(used, u64::from(threads));
    // Piece by piece: a child's peak memory includes the memory of this process at the fork.
    let mut file = BufWriter::new(File::create(path).unwrap());
    file.write_all(&head.bytes).unwrap();
    let marks: Vec<u64> = (0..100 + u64::from(slot_words)).map(|n| 0x1000 + n % 50).collect();
    for tid in 1..=threads {
        let slot = Slot::thread("worker", tid)
            .marks(marks[tid as usize % 100..][..slot_words as usize].iter().copied());
        file.write_all(&ring.slot_bytes(&slot)).unwrap();
    }
    file.into_inner().unwrap().set_len(head.file_len as u64).unwrap();
    head.file_len as u64
}

/// Runs `read-rip` with its output into a file. Returns the number of lines.
fn lines_of(options: &[&str], ring: &Path, directory: &Path) -> usize {
    let output = directory.join("output");
    let mut command = command();
    command.args(options).arg(ring).stdout(File::create(&output).unwrap()).stderr(Stdio::null());
    assert_eq!(wait(&mut command.spawn().unwrap()).code(), Some(0));
    let mut reader = BufReader::new(File::open(&output).unwrap());
    let (mut lines, mut line) = (0, Vec::new());
    while reader.read_until(b'\n', &mut line).unwrap() > 0 {
        lines += 1;
        line.clear();
    }
    lines
}

/// Asserts that no child so far has used more memory than a ring of this length justifies.
fn assert_peak(ring_bytes: u64) {
    let peak = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss() as u64 * 1024;
    eprintln!("{} MiB of ring, {} MiB at most so far", ring_bytes >> 20, peak >> 20);
    assert!(peak > ring_bytes / 2, "the measure works: {peak} of {ring_bytes}");
    assert!(peak < BASE_BYTES + ring_bytes * 5 / 2, "{peak} bytes for {ring_bytes}");
}
