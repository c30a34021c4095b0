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
use support::synth::{Held, Ring, SLOTS, Site, Slot};

#[test]
fn forty_thousand_threads_are_read_and_checked_in_memory_of_few_rings() {
    // Large pages make each piece of memory up to 2 MiB larger, if the kernel has some to give. Children inherit this.
    rustix::thread::disable_transparent_huge_pages(true).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ring");
    // What a process needs for any ring: code, tables, buffers.
    write_locks(&path, 40);
    for command in [&["-t"][..], &["-t", "--json"], &["-v"], &["check"]] {
        lines_of(command, &path, directory.path());
    }
    let base_bytes = peak_bytes();
    // Few threads with long histories: all are shown, and the reader never holds all events at once. This part comes
    // first, because the kernel reports the largest child so far.
    let ring_bytes = write_ring(&path, 8_192, 40);
    for options in [&["-t"][..], &["-t", "--json"]] {
        let lines = lines_of(options, &path, directory.path());
        assert!((40..50).contains(&lines), "{lines}");
    }
    assert_peak(base_bytes, ring_bytes, 5, 2);

    // Many threads, with slots of the default size.
    let ring_bytes = write_ring(&path, 64, 40_000);
    assert_eq!(lines_of(&["-v"], &path, directory.path()), 3, "a heading, a function and a verdict");
    let threads = std::fs::read_to_string(directory.path().join("output")).unwrap();
    assert!(threads.contains(" : 40000 threads, 50 locations: "), "{}", &threads[..200]);
    assert!(threads.contains("[40000, ") || threads.contains(", 40000]"));
    assert_peak(base_bytes, ring_bytes, 3, 2);

    // The same number of threads, which wait for 10,000 locks.
    let ring_bytes = write_locks(&path, 40_000);
    lines_of(&["check"], &path, directory.path());
    let checked = std::fs::read_to_string(directory.path().join("output")).unwrap();
    assert!(checked.contains("30000 wait for locks"), "{checked}");
    assert_peak(base_bytes, ring_bytes, 8, 5);
}

/// Writes a ring of full slots. Returns its length.
fn write_ring(path: &Path, slot_words: u32, threads: u32) -> u64 {
    let sites: Vec<(u64, &str, u32)> = (0..50).map(|n| (0x1000 + n, "src/busy.rs", 1 + n as u32)).collect();
    let ring = Ring { spare_slots: threads as usize, slot_words, ..Ring::new() }.with_sites(&sites);
    let marks: Vec<u64> = (0..100 + u64::from(slot_words)).map(|n| 0x1000 + n % 50).collect();
    write_slots(path, &ring, threads, |tid| {
        Slot::thread("worker", tid).marks(marks[tid as usize % 100..][..slot_words as usize].iter().copied())
    })
}

/// Writes a ring of threads that have each acquired four locks. One in four holds one, for which three wait. Returns
/// its length.
fn write_locks(path: &Path, threads: u32) -> u64 {
    const WAIT: u64 = 0x1000;
    const ACQUIRED: u64 = 0x1004;
    const RELEASED: u64 = 0x1008;
    let locks = threads / 4;
    let by_hand = |(pc, line, kind)| Site::new(pc, "src/busy.rs", line).of(kind, 1 << 8, &[3]);
    let sites = [(WAIT, 1, 2), (ACQUIRED, 2, 3), (RELEASED, 3, 4)].map(by_hand).to_vec();
    let ring = Ring { spare_slots: threads as usize, slot_words: 64, ..Ring::new().with_sites(&[]) };
    let ring = Ring { sites, ..ring };
    let address = |number: u32| 0x7f00_0000_0000 + 64 * u64::from(number % locks);
    write_slots(path, &ring, threads, |tid| {
        let mut slot = Slot::thread("worker", tid);
        for lock in (1..=4).map(|round| address(tid + round)) {
            slot = slot.event(WAIT, &[lock]).event(ACQUIRED, &[lock]).event(RELEASED, &[lock]);
        }
        let own = address(tid);
        slot = slot.event(WAIT, &[own]);
        match tid <= locks {
            true => slot.event(ACQUIRED, &[own]).has(Held { sequence: 27, ..Held::new(3, own, ACQUIRED) }),
            false => slot.has(Held { sequence: 25, ..Held::new(2, own, WAIT) }),
        }
    })
}

/// Writes a ring with the slots of these threads. Returns its length.
fn write_slots(path: &Path, ring: &Ring, threads: u32, slot: impl Fn(u32) -> Slot) -> u64 {
    let mut head = ring.head();
    let used = head.region(SLOTS) + region_at::USED;
    head.set64(used, u64::from(threads));
    // Piece by piece: a child's peak memory includes the memory of this process at the fork.
    let mut file = BufWriter::new(File::create(path).unwrap());
    file.write_all(&head.bytes).unwrap();
    (1..=threads).for_each(|tid| file.write_all(&ring.slot_bytes(&slot(tid))).unwrap());
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

/// The most memory that a child has used so far.
fn peak_bytes() -> u64 {
    getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss() as u64 * 1024
}

/// Asserts that no child so far has used more memory than a number of rings of this length, as a fraction, besides what
/// any ring needs.
fn assert_peak(base_bytes: u64, ring_bytes: u64, rings: u64, of: u64) {
    let peak = peak_bytes();
    eprintln!(
        "{} MiB, {} MiB of ring, {} MiB at most so far",
        base_bytes >> 20,
        ring_bytes >> 20,
        peak >> 20
    );
    assert!(peak > ring_bytes / 2, "the measure works: {peak} of {ring_bytes}");
    assert!(peak < base_bytes + ring_bytes * rings / of, "{peak} bytes, {base_bytes} and {ring_bytes}");
}
