//! What the reader needs is bounded by what the ring occupies, whatever the ring says.
//!
//! Each test limits the memory of `read-rip`, and looks at what it wrote.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use librip_test_kit::format::{module_at, region_at, site_at};

use crate::support::fixture::{QUICK, Scratch};
use crate::support::locks::*;
use crate::support::run::{Outcome, clean, finish};
use crate::support::synth::{
    Held, Image, MODULES, Module, Ring, SITES, SLOT_HEADER, SLOTS, Site, Slot, TEXTS,
};

const MIB: u64 = 1 << 20;

/// `read-rip ARGS PATH` with this much memory for data.
fn within(memory_bytes: u64, args: &[&str], path: &Path) -> Outcome {
    let mut command = Command::new("/bin/sh");
    let script = format!("ulimit -d {} && exec \"$@\"", memory_bytes / 1024);
    command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_read-rip")]).args(args).arg(path);
    finish(clean(command))
}

/// A ring with a thread that acquired locks one inside the other, and released them. Each thread has its own order.
fn nested(orders: &[Vec<u64>]) -> Ring {
    let threads = orders.iter().zip(10..).map(|(locks, tid)| {
        let taken = locks
            .iter()
            .fold(Slot::thread("locks all", tid), |slot, &lock| slot.event(TAKES, &[at(1.0), lock]));
        locks.iter().rev().fold(taken, |slot, &lock| slot.event(RELEASED, &[0, at(1.0), lock]))
    });
    Ring { slot_words: 16_384, ..ring().with_slots(threads) }
}

#[test]
fn a_thousand_locks_held_at_once_are_checked_in_little_memory() {
    let scratch = Scratch::new();
    let locks: Vec<u64> = (0..1000).map(|at| A + 64 * at).collect();
    let one_order = scratch.file("one", &nested(std::slice::from_ref(&locks)).build().bytes);
    let outcome = within(100 * MIB, &["check"], &one_order).sound();
    assert!(outcome.stdout.contains("no findings in 1 thread and 1000 locks\n"), "{outcome:#?}");
    let reversed = locks.iter().rev().copied().collect();
    let two_orders = scratch.file("two", &nested(&[locks, reversed]).build().bytes);
    let outcome = within(100 * MIB, &["check"], &two_orders);
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    assert!(outcome.stdout.contains("\npotential lock-order: "), "{outcome:#?}");
    assert!(outcome.stderr.contains("\nOnly a part of the orders "), "{outcome:#?}");
}

const LONGEST: u32 = 64 << 10;

/// A ring of a few MiB whose 100,000 sites and 20,000 modules refer to texts of 64 KiB. `offset` says where each text
/// begins in a region of two such texts.
fn vast_texts(offset: impl Fn(u32) -> u32) -> Image {
    const SITES_COUNT: u32 = 100_000;
    const MODULES_COUNT: u32 = 20_000;
    let mut ring = Ring { slot_words: 16_384, ..Ring::new().with_sites(&[]) };
    ring.modules.extend((1..MODULES_COUNT).map(|_| Module { path: Vec::new(), ..Module::library("", 0) }));
    ring.sites = (0..SITES_COUNT).map(|n| Site::new(0x1000 + u64::from(n), "", n)).collect();
    // A region with room for the texts.
    ring.sites[0].label = "x".repeat(2 * LONGEST as usize);
    let slot = Slot::thread("worker", 1).marks((0..16_000).map(|n| 0x1000 + n));
    let mut image = ring.with_slots([slot]).build();
    let (texts, len) = (image.begin(TEXTS), 2 * LONGEST as usize);
    image.bytes[texts..][..len].fill(b'x');
    // File and module path have 4000 bytes at most, and the label the rest.
    image.bytes[texts..][..len].iter_mut().step_by(4000).for_each(|byte| *byte = 0);
    for n in 1..SITES_COUNT {
        let text = image.entry(SITES, n as usize) + site_at::TEXT;
        image.set32(text, offset(n));
        image.set32(text + 4, LONGEST);
    }
    for n in 1..MODULES_COUNT {
        let path = image.entry(MODULES, n as usize) + module_at::PATH;
        image.set32(path, offset(n));
        image.set32(path + 4, LONGEST);
    }
    image
}

#[test]
fn texts_that_many_entries_claim_take_the_memory_of_the_texts() {
    let shared: fn(u32) -> u32 = |_| 1;
    let overlapping: fn(u32) -> u32 = |n| n % LONGEST;
    for (what, offset, damaged) in [("shared", shared, "module"), ("overlapping", overlapping, "site")] {
        let scratch = Scratch::new();
        let mut image = vast_texts(offset);
        if what == "shared" {
            image.seal();
        }
        let path = scratch.file("ring", &image.bytes);
        for args in [&["info"][..], &["-t"], &[], &["locks"], &["check"]] {
            let outcome = within(150 * MIB, args, &path);
            assert_eq!(outcome.status, 2, "{what} {args:?}: {outcome:#?}");
            assert!(
                outcome.stderr.contains(&format!(" in the {damaged} table: ")),
                "{what}: {}",
                outcome.stderr
            );
        }
        scratch.file("sound", &ring().with_slots([Slot::thread("one", 1)]).build().bytes);
        for args in [&["list", "--dir"][..], &["gc", "--dry-run", "--dir"]] {
            let outcome = within(50 * MIB, args, scratch.0.path()).sound();
            assert!(args[0] == "gc" || outcome.stdout.contains("/sound\n"), "{what}: {outcome:#?}");
        }
    }
}

#[test]
fn a_slot_takes_the_memory_of_what_the_file_has_of_it() {
    // 512 slots that claim 128 KiB of words each, 64 MiB together. The file has the first page of each.
    const SLOTS_COUNT: u64 = 512;
    const SLOT_WORDS: u32 = 16_384;
    let ring = Ring { slot_words: SLOT_WORDS, spare_slots: SLOTS_COUNT as usize, ..ring() };
    let mut image = ring.head();
    let used = image.region(SLOTS) + region_at::USED;
    image.set64(used, SLOTS_COUNT);
    let scratch = Scratch::new();
    let path = scratch.path("ring");
    image.write(&path);
    let file = File::options().write(true).open(&path).unwrap();
    let slot_len = (SLOT_HEADER + 8 * SLOT_WORDS as usize) as u64;
    for n in 0..SLOTS_COUNT {
        let slot = Slot::thread("w", n as u32).at(5 * u64::from(SLOT_WORDS)).marks([SNAP; 3]);
        let bytes = ring.slot_bytes(&slot);
        file.write_all_at(&bytes[..2048], image.begin(SLOTS) as u64 + n * slot_len).unwrap();
    }
    for args in [&["-t"][..], &[], &["locks"], &["check"]] {
        let outcome = within(40 * MIB, args, &path);
        assert_ne!(outcome.status, 2, "{args:?}: {outcome:#?}");
    }
}

#[test]
fn thousands_of_holders_of_one_lock_are_handled_in_time() {
    let holder = |tid| Slot::thread("w", tid).has(Held::new(HELD, A, TAKES));
    let scratch = Scratch::new();
    let path = scratch.file("ring", &ring().with_slots((0..20_000).map(holder)).build().bytes);
    for command in ["locks", "check"] {
        let outcome = within(500 * MIB, &[command], &path);
        assert!(outcome.status < 2 && outcome.took < QUICK, "{command}: {:?}", outcome.took);
    }
}
