//! Flipped bits: what the reader still shows as a fact. Each test flips one bit after the other.
//!
//! Not tested here: larger damage, which `damage.rs` and `fuzz.rs` do.

use std::collections::HashSet;
use std::path::Path;

use librip_test_kit::format::region::CALLS;
use librip_test_kit::format::{
    await_at, call_at, header_at, held_at, lock_name_at, module_at, site_at, slot_at, task_at,
};
use read_rip_model::findings::{self, Confidence, View};
use read_rip_model::locations::Locations;
use read_rip_model::locks;
use read_rip_ring::{self as ring, Snapshot};
use read_rip_symbols::{Options, Resolver};

use crate::support::fixture::Scratch;
use crate::support::locks::*;
use crate::support::run::read_rip;
use crate::support::synth::{Call, Held, Image, MODULES, NAMES, Ring, SITES, SLOTS, Slot, TEXTS};

/// Two threads of a dead process in a deadlock, with names, a clock and their events.
fn deadlock() -> Ring {
    let transfer = |name, tid, holds, waits_for| {
        Slot::thread(name, tid)
            .event(TAKES, &[at(3.0), holds])
            .event(TAKES, &[at(3.5), waits_for])
            .event(WAIT, &[at(3.5), waits_for])
            .has(Held { sequence: 2, ..Held::new(HELD, holds, TAKES) })
            .has(Held { sequence: 8, ..Held::new(WAITING, waits_for, WAIT).since(at(3.5)) })
    };
    const OWNED: u16 = 64;
    let mut sites = ring();
    sites.sites.iter_mut().for_each(|site| site.flags |= OWNED);
    let ring = sites.with_slots([transfer("saver", 10, A, B), transfer("spender", 11, B, A)]);
    let call = Call { pid: 4321, address: 0x40_2000, file: "src/bank.rs".into(), line: 40 };
    let lock_names = vec![(4321, A, "SAVINGS".into()), (4321, B, "CURRENT".into())];
    Ring { lock_names, calls: vec![call], ..ring }
}

/// What a reader is log of the parts that are written once.
fn facts(snapshot: &Snapshot) -> String {
    let header = snapshot.header.as_ref().unwrap();
    let mut names: Vec<_> = snapshot.lock_names.iter().collect();
    names.sort();
    let identity =
        (header.pid, header.boot_id, header.start_time_ticks, header.uid, header.created_realtime_ns);
    let clock = header.clock.map(|clock| (clock.level, clock.source, clock.shift, clock.base_ticks));
    let Snapshot { modules, sites, calls, .. } = snapshot;
    format!("{identity:?} {clock:?} {} {modules:?} {sites:?} {names:?} {calls:?}", header.host)
}

/// How many of these flips are shown as facts without a defect, and how many flips there are.
fn undetected(image: &Image, bits: impl Iterator<Item = usize>) -> (usize, usize) {
    let scratch = Scratch::new();
    let expected = facts(&ring::read(&scratch.file("ring", &image.bytes)).unwrap());
    let (mut undetected, mut all) = (0, 0);
    for bit in bits {
        let mut changed = image.bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        all += 1;
        // A ring that is refused is not shown.
        if let Ok(snapshot) = ring::read(&scratch.file("ring", &changed)) {
            undetected += usize::from(snapshot.defects.is_empty() && facts(&snapshot) != expected);
        }
    }
    (undetected, all)
}

#[test]
fn a_flipped_bit_in_what_is_written_once_is_noticed() {
    let image = deadlock().build();
    let texts =
        deadlock().sites.iter().map(|site| site.file.len() + site.module_path.len() + 4).sum::<usize>();
    for (what, begin, len) in [
        ("header", 0, header_at::CHECKSUM),
        ("clock", header_at::CLOCK_LEVEL, header_at::CLOCK_TICKS_PER_KILOSECOND - header_at::CLOCK_LEVEL),
        ("modules", image.begin(MODULES), module_at::LEN),
        ("sites", image.begin(SITES), 3 * site_at::LEN),
        ("texts", image.begin(TEXTS), texts),
        ("names", image.begin(NAMES), 2 * lock_name_at::LEN),
        ("calls", image.begin(CALLS), call_at::LEN),
    ] {
        // Every seventh bit: all positions in a byte.
        let bits = (8 * begin..8 * (begin + len)).step_by(7);
        let (undetected, all) = undetected(&image, bits);
        println!("{what}: {undetected} of {all} flips are shown as facts");
        assert!(20 * undetected <= all, "{what}: {undetected} of {all}");
    }
}

/// All entries of held-lock tables, and what is known to be missing in them.
fn entries(snapshot: &Snapshot) -> String {
    let entries = snapshot.slots.iter().map(|slot| (slot.index, &slot.held, slot.held_in_flux));
    format!("{:?}", entries.collect::<Vec<_>>())
}

/// Flips each bit of the first entries of two slots. Returns how many flips are shown as facts, and how many there are.
fn undetected_in_entries(image: &Image) -> (usize, usize) {
    let scratch = Scratch::new();
    let read = |bytes: &[u8]| ring::read(&scratch.file("ring", bytes)).unwrap();
    let expected = entries(&read(&image.bytes));
    let (mut undetected, mut all) = (0, 0);
    for slot in 0..2 {
        let begin = image.entry(SLOTS, slot) + slot_at::HELD;
        for bit in 8 * begin..8 * (begin + 2 * held_at::LEN) {
            let mut changed = image.bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let snapshot = read(&changed);
            let in_flux = snapshot.slots.iter().any(|slot| slot.held_in_flux > 0);
            undetected +=
                usize::from(snapshot.defects.is_empty() && !in_flux && entries(&snapshot) != expected);
            all += 1;
        }
    }
    (undetected, all)
}

#[test]
fn a_flipped_bit_in_a_held_entry_is_noticed() {
    for (what, ring) in scenes() {
        let (undetected, all) = undetected_in_entries(&ring.of_a_dead_process().build());
        println!("{what}: {undetected} of {all} flips are shown as facts");
        assert_eq!(undetected, 0, "{what}: of {all}");
    }
}

/// Rings whose held entries lead to findings of several kinds.
fn scenes() -> Vec<(&'static str, Ring)> {
    let owned = |slots: [Slot; 2]| {
        const OWNED: u16 = 64;
        let mut sites = ring();
        sites.sites.iter_mut().for_each(|site| site.flags |= OWNED);
        sites.with_slots(slots)
    };
    let holds = |name, tid| {
        Slot::thread(name, tid)
            .event(TAKES, &[at(3.0), A])
            .has(Held { sequence: 2, ..Held::new(HELD, A, TAKES) })
    };
    let waits = |slot: Slot, sequence| {
        slot.event(TAKES, &[at(3.5), B])
            .event(WAIT, &[at(3.5), B])
            .has(Held { sequence, ..Held::new(WAITING, B, WAIT).since(at(3.5)) })
    };
    let taking = |slot: Slot| slot.has(Held { sequence: 9, ..Held::new(TAKING, A, TAKES) });
    vec![
        ("deadlock", deadlock()),
        ("a thread exited with a lock", owned([holds("gone", 10).exited(), waits(holds("other", 11), 5)])),
        ("a thread locks twice", owned([waits(waits(Slot::thread("twice", 10), 2), 8), holds("other", 11)])),
        ("a lock is acquired again", {
            let again = Held { sequence: 2, recursion: 3, ..Held::new(HELD, B, TAKES) };
            owned([holds("again", 10).has(again.since(at(3.1))), waits(Slot::thread("other", 11), 2)])
        }),
        (
            "locks are being acquired",
            owned([taking(holds("one", 10)), taking(waits(Slot::thread("two", 11), 2))]),
        ),
    ]
}

/// The proven findings of a ring, by kind and the number of threads that they hurt, as `read-rip check` shows them.
fn shown_as_proven(path: &Path) -> Vec<String> {
    let findings = read_rip(["check", "--json", path.to_str().unwrap()]).data("finding");
    let proven = findings.iter().filter(|finding| finding["confidence"] == "proven");
    proven
        .map(|finding| format!("{} {}", finding["kind"].as_str().unwrap(), finding["threads_hurt"]))
        .collect()
}

/// The same, in this process: a process for each of thousands of flips takes ten times as long.
fn proven(path: &Path) -> Vec<String> {
    let snapshot = ring::read(path).unwrap();
    let mut locations = Locations::new(&snapshot, Resolver::new(&snapshot.modules, Options::default()));
    let input = locks::Input {
        snapshot: &snapshot,
        earlier: None,
        window_ns: None,
        is_final: true,
        now_ns: None,
        latest_end_ns: None,
        alive_ns: None,
        living: &HashSet::new(),
        ended: &HashSet::new(),
        wants_steps: true,
        limits: Default::default(),
    };
    let model = locks::build(&input, &mut locations);
    let by_id: Vec<_> = locations.iter().collect();
    let memo = findings::Memo::default();
    let view = View { now: &model, before: None, locations: &by_id, threshold_ns: 10_000_000_000, memo };
    let (found, _) = findings::run_bounded(&view);
    let proven = found.iter().filter(|finding| finding.confidence == Confidence::Proven);
    proven.map(|finding| format!("{} {}", finding.kind.name(), finding.threads_hurt)).collect()
}

#[test]
fn no_flipped_bit_of_a_held_entry_makes_a_proven_finding() {
    let scratch = Scratch::new();
    let path = scratch.path("ring");
    for (what, ring) in scenes() {
        let image = ring.of_a_dead_process().build();
        image.write(&path);
        let expected = proven(&path);
        assert_eq!(expected, shown_as_proven(&path), "{what}");
        println!("{what}: {expected:?}");
        for slot in 0..2 {
            let begin = image.entry(SLOTS, slot) + slot_at::HELD;
            for bit in 8 * begin..8 * (begin + 2 * held_at::LEN) {
                let mut bytes = image.bytes.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                Image { bytes, ..image.clone() }.write(&path);
                let new: Vec<_> =
                    proven(&path).into_iter().filter(|finding| !expected.contains(finding)).collect();
                assert!(new.is_empty(), "{what}: bit {} of slot {slot}: {new:?}", bit - 8 * begin);
            }
        }
    }
}

#[test]
fn no_flipped_bit_of_the_part_of_a_task_makes_a_proven_finding() {
    let scratch = Scratch::new();
    let path = scratch.path("ring");
    // What would be a proven futurelock if nobody else could wake the task.
    let mut ring = crate::tasks::futurelock();
    ring.slots[1].task.as_mut().unwrap().wakers = Some(3);
    let image = ring.of_a_dead_process().build();
    // What is not zero: the words, two futures, and two entries.
    let (futures, entries) = (task_at::AWAITS + 2 * await_at::LEN, task_at::ENTRY_TURNS);
    let used = [0..futures, entries..entries + 8];
    let part = image.entry(SLOTS, 2) - task_at::LEN;
    for bit in used.into_iter().flatten().flat_map(|byte| (0..8).map(move |bit| 8 * (part + byte) + bit)) {
        let mut bytes = image.bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        Image { bytes, ..image.clone() }.write(&path);
        assert_eq!(proven(&path), [""; 0], "byte {}, bit {}", bit / 8 - part, bit % 8);
    }
}
