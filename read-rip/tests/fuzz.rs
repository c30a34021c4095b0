//! Random damage: whatever the bytes, the reader answers promptly and within its memory limit.
//!
//! The damage is the same in each run. `READ_RIP_FUZZ_ROUNDS` sets the number of rounds and `READ_RIP_FUZZ_SEED` the
//! first one. A round that fails says how to repeat it, and keeps its ring.

mod support;

use std::collections::HashSet;
use std::fs::{self, File};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use librip_test_kit::format::slot_at;
use nix::sys::resource::{Resource, setrlimit};
use read_rip_evidence::process::Liveness;
use read_rip_model::findings::{self, View};
use read_rip_model::locations::{FileNames, Horizon, Limits, Location, Locations, dated_history, latest_ns};
use read_rip_model::locks;
use read_rip_model::locks::LockModel;
use read_rip_model::log;
use read_rip_model::threads;
use read_rip_report as report;
use read_rip_report::{LockNames, Shown};
use read_rip_ring as ring;
use read_rip_ring::Snapshot;
use read_rip_ring::events;
use read_rip_symbols::{Options, Resolver};

use support::synth::{BIAS, Held, Image, Module, Ring, Site, Slot, Task};
use support::{Random, setting};

/// A round takes well below a millisecond; only a loop takes this long.
const ROUND_LIMIT: Duration = Duration::from_secs(5);
/// Limit of this whole process; the reader gets what the tests leave. Above it, allocation fails and aborts.
const MEMORY_LIMIT_BYTES: u64 = 3 << 30;

/// In place of a recursion: the entry is a future's.
const OF_FUTURE: u64 = 4095;

/// A ring with one of everything.
fn ring() -> Ring {
    let mut ring = Ring::new().with_sites(&[
        (0x1000, "src/a.rs", 1),
        (0x2000, "src/b/mod.rs", 2),
        (0x2004, "mod.rs", 2),
    ]);
    ring.slot_words = 16;
    ring.spare_slots = 1;
    ring.modules.push(Module::library("/nowhere/lib.so", 0x7f00_0000_0000));
    ring.sites.push(Site { module: 1, operands: vec![1, 2], ..Site::new(0x1000, "lib.rs", 3).within("lib") });
    ring.sites.push(Site::new(0x3000, "lock.rs", 4).of(6, 0x104, &[4, 3]));
    ring.sites.push(Site::new(0x3004, "lock.rs", 5).of(4, 0x104, &[4, 5, 3]));
    let lock_names = vec![(4321, 0x7000, "cache".into())];
    let ring = Ring { lock_names, has_tasks: true, ..ring.with_clock(3) };
    let waits = |lock| Held { recursion: OF_FUTURE, ..Held::new(2, lock, 0x3000).since(4000) };
    let task = Task::of_executor(BIAS + 0x1000);
    let two_futures = Task {
        turn: 4,
        since: Some((4000, true)),
        poller: Some(-2),
        awaits: vec![(BIAS + 0x1000, None, 1), (BIAS + 0x2000, None, 3), (BIAS + 0x2004, Some(1), 3)],
        left_out: 2,
        entry_turns: vec![(1, true, Some(0)), (3, true, Some(2))],
        ..task.clone()
    };
    let polled = Task { turn: 3, since: Some((5000, false)), poller: Some(-1), wakes: 3, ..task.clone() };
    let woken = Task { turn: 2, wakes: 5, wakes_polled: 4, woken: Some(6000), ..task.clone() };
    ring.with_slots([
        Slot::thread("one", 1).at(70).marks([0x1000, 0x2000]),
        Slot::thread("locks", 9)
            .event(0x3000, &[2000, 0x7000])
            .event(0x3004, &[3000, 2000, 0x7000])
            .event(0x3000, &[4000, 0x7040])
            .has(Held::new(3, 0x7040, 0x3000).since(4000))
            .has(Held { recursion: 3, ..Held::new(2, 0x7080, 0x3000) }),
        Slot::thread("two", 2).marks([0x1000; 30]).reused_by("three", 3).marks([0x2004, 0x2000]),
        Slot::thread("four", 4).operand(1).operand(2).operand(3).actual_marks([0x7f00_0000_1000]).exited(),
        Slot::task("two futures", 7, two_futures).has(waits(0x7000)).has(waits(0x7000)).marks([0x1000]),
        Slot::task("polled", 8, polled).has(Held::new(3, 0x7000, 0x3000).since(4000)).marks([0x2000; 20]),
        Slot::task("", 9, woken),
        Slot::task("ended", 6, Task { turn: 2, kind: 2, ..task }).exited(),
        Slot::thread("five", 5).at(u64::from(u32::MAX)).actual_marks([1, 2, 3]),
    ])
}

/// Everything that `read-rip` does with a file, except asking the system about processes.
fn read_and_report(path: &Path) -> usize {
    let snapshot = match ring::read(path) {
        Ok(snapshot) => snapshot,
        Err(error) => return error.to_string().len() + error.hint().len(),
    };
    let mut out = Vec::new();
    for defect in &snapshot.defects {
        out.extend(defect.to_string().into_bytes());
    }
    let losses = threads::losses(&snapshot);
    report::info(&mut out, path, "fuzzed", &snapshot, Some(&Liveness::Dead), &losses, 1 << 60).unwrap();
    report::Json(&mut out).ring(path, "fuzzed", &snapshot, Some(&Liveness::Dead), &losses).unwrap();
    let mut locations = Locations::new(&snapshot, Resolver::new(&snapshot.modules, Options::default()));
    report_threads(&mut out, &snapshot, &mut locations);
    report_locks(&mut out, &snapshot, &mut locations);
    out.len()
}

/// The events of each thread, and the condensed view.
fn report_threads(out: &mut Vec<u8>, snapshot: &Snapshot, locations: &mut Locations) {
    let threads = threads::threads(snapshot, &HashSet::from([1, 2]), &HashSet::from([3]));
    let mut last = Vec::new();
    let mut histories = Vec::new();
    for thread in &threads {
        let slot = thread.slot;
        let (events, leftover) = events::events(slot, |pc| locations.operand_words(slot.pid, pc));
        black_box(leftover);
        let newest = events::last_event(slot, |pc| locations.operand_words(slot.pid, pc));
        assert_eq!(newest.as_ref(), events.last(), "both ways to the last event agree");
        let (dated, _) = dated_history(slot, locations, Horizon::default());
        assert_eq!(dated.len(), events.len());
        last.extend(dated.last().map(|dated| (slot.tid, dated.location)));
        histories.push(dated);
    }
    black_box(latest_ns(snapshot, locations));
    let captures = log::captures(snapshot, locations, None);
    if let Some(cycles) = log::SlowCycles::of(&captures, snapshot) {
        out.extend(report::KeptCycles::of(&cycles, locations).line("fuzzed").into_bytes());
    }
    let files = FileNames::choose(locations.iter());
    let texts = report::location_texts(locations, files, true);
    let groups = threads::condense(&last, locations);
    report::condensed(out, &groups, locations, &texts, true).unwrap();
    let model = LockModel::default();
    let names = LockNames { model: &model, locations, texts: &texts, seen: None };
    for (thread, events) in threads.iter().zip(&histories) {
        let shown = Shown { thread, events, has_exit: true };
        report::thread(out, &shown, &names, snapshot.sequence_mask, Horizon::default()).unwrap();
        report::Json(&mut *out).thread(thread, events, &names, snapshot, None).unwrap();
    }
    for group in &groups {
        report::Json(&mut *out)
            .group(snapshot.header.as_ref().map_or(0, |header| header.pid), group, locations, snapshot)
            .unwrap();
    }
}

/// The locks, from one reading and from two.
fn report_locks(out: &mut Vec<u8>, snapshot: &Snapshot, locations: &mut Locations) {
    let living = HashSet::from([1, 2]);
    for (earlier, is_final) in [(None, true), (Some(snapshot), false)] {
        let input = locks::Input {
            snapshot,
            earlier,
            window_ns: earlier.map(|_| 1000),
            is_final,
            now_ns: (!is_final).then_some(1 << 50),
            latest_end_ns: None,
            alive_ns: None,
            living: &living,
            ended: &HashSet::from([3]),
            wants_steps: true,
            limits: Limits { since_ns: earlier.map(|_| 1 << 20), until_ns: earlier.map(|_| 1 << 49) },
        };
        let mut model = locks::build(&input, locations);
        locks::keep_within(&mut model, &input.limits, input.now_ns);
        let names = FileNames::choose(locations.iter());
        let texts = report::location_texts(locations, names, is_final);
        let lock_names = report::LockNames { model: &model, locations, texts: &texts, seen: None };
        let overview = locks::overview(&model, is_final, is_final);
        report::locks(out, overview.locks.iter(), model.pid, &lock_names, is_final).unwrap();
        report::Json(&mut *out).locks(&overview, &lock_names, snapshot).unwrap();
        report::task_groups(out, &locks::task_groups(&model, |_| true), &lock_names, true).unwrap();
        for id in 0..model.threads.len() {
            report::task(out, id, &lock_names).unwrap();
            report::Json(&mut *out).task(id, &lock_names, snapshot).unwrap();
        }
        report_findings(out, &model, &lock_names, snapshot);
    }
}

/// All analyses, and what they find, as text and JSON.
fn report_findings(out: &mut Vec<u8>, model: &LockModel, names: &report::LockNames<'_>, snapshot: &Snapshot) {
    let by_id: Vec<&Location> = names.locations.iter().collect();
    let before = (!model.is_final).then_some(model);
    let memo = findings::Memo::default();
    let view = View { now: model, before, locations: &by_id, threshold_ns: 1000, memo };
    let (found, limits) = findings::run_bounded(&view);
    let checked = report::Checked {
        threads: model.threads.len() - model.tasks,
        tasks: model.tasks,
        locks: model.locks.len(),
        findings: found.len(),
        balance: findings::Balance::of(&view, &found),
        suppressed: 0,
        not_matching: 0,
        window_ns: model.window_ns,
        one_reading: None,
        is_up_to_last_time: model.is_final,
        held_overflowed: report::remarks::overflowed(model),
        releases_unmatched: model.releases_unmatched,
        longer_slot_words: None,
        is_order_search_cut: !limits.is_empty(),
        slow_cycles: None,
        ring: String::new(),
    };
    report::findings(out, &found, &checked, names, &report::Sources::default()).unwrap();
    report::Json(out).findings(&found, &checked, names, snapshot).unwrap();
}

/// Makes one to four changes to the bytes.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    const INTERESTING: [u64; 12] =
        [0, 1, 16, 64, 4096, 1 << 31, u32::MAX as u64, 1 << 32, 1 << 48, 1 << 63, u64::MAX - 1, u64::MAX];
    for _ in 0..1 + random.below(4) {
        // Half of all damage goes to the header: a tenth of the bytes, but the ones that matter most.
        let len = if random.below(2) == 0 { bytes.len().min(920) } else { bytes.len() };
        if len < 16 {
            return;
        }
        let at = random.below(len - 8);
        match random.below(7) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => bytes[at & !3..][..4].copy_from_slice(&(INTERESTING[random.below(12)] as u32).to_le_bytes()),
            3 => bytes[at & !7..][..8].copy_from_slice(&INTERESTING[random.below(12)].to_le_bytes()),
            4 => {
                let from = random.below(bytes.len() - 8);
                let count = random.below(128).min(bytes.len() - at.max(from));
                bytes.copy_within(from..from + count, at);
            }
            5 => {
                let field = at & !7;
                let near = u64::from_le_bytes(bytes[field..field + 8].try_into().unwrap());
                let near = near.wrapping_add(random.next() % 9).wrapping_sub(4);
                bytes[field..field + 8].copy_from_slice(&near.to_le_bytes());
            }
            _ if random.below(8) == 0 => bytes.truncate(at + 8),
            _ => {}
        }
    }
}

#[test]
fn no_random_damage_stops_the_reader() {
    setrlimit(Resource::RLIMIT_AS, MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES).unwrap();
    let rounds = setting("READ_RIP_FUZZ_ROUNDS", 600);
    let first_seed = setting("READ_RIP_FUZZ_SEED", 0);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ring");
    let sound = ring().build().bytes;
    let legacy = legacy_ring();
    let mut readable = 0;
    for round in first_seed..first_seed + rounds {
        let mut random = Random(round);
        let mut bytes = if round % 8 == 0 { legacy.clone() } else { sound.clone() };
        mutate(&mut bytes, &mut random);
        // With the right checksums, the reader believes tables that are damaged.
        if round % 2 == 1 {
            let file_len = bytes.len();
            bytes = std::mem::take(&mut Image { bytes, file_len }.seal().bytes);
        }
        // A compressed copy of a damaged ring, or a damaged copy of a compressed ring.
        if round % 16 == 1 {
            support::gzip(&bytes, &path);
            bytes = fs::read(&path).unwrap();
            if round % 32 == 1 {
                mutate(&mut bytes, &mut random);
            }
        }
        fs::write(&path, &bytes).unwrap();
        let start = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| {
            black_box(read_and_report(&path));
            ring::read(&path).is_ok_and(|snapshot| !snapshot.slots.is_empty())
        }));
        let took = start.elapsed();
        if result.is_err() || took > ROUND_LIMIT {
            let kept = std::env::temp_dir().join(format!("read-rip-fuzz-{round}"));
            fs::copy(&path, &kept).unwrap();
            panic!(
                "round {round} ({took:?}); repeat: READ_RIP_FUZZ_SEED={round} READ_RIP_FUZZ_ROUNDS=1; {}",
                kept.display()
            );
        }
        readable += u64::from(result.is_ok_and(|is_readable| is_readable));
    }
    eprintln!("{rounds} rounds, {readable} of them left something to read");
    assert!(rounds < 100 || readable > rounds / 4, "too much damage: hardly anything was readable");
}

fn legacy_ring() -> Vec<u8> {
    use support::legacy::{Slot, build};
    build(&[
        (3, Slot::new("a").marks([0x40_1000; 5])),
        (5, Slot::new("b").counting_from(250).marks([0x40_1004; 50]).exit()),
        (6, Slot::new("c").marks([0x40_1000; 9]).exit().counting_from(3).marks([0x40_1008; 9])),
    ])
}

/// A ring that changes is read at least so often.
const READS_MIN: u32 = 100;

#[test]
fn the_reader_survives_a_ring_that_changes_wildly_while_it_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ring");
    let image = ring().build();
    image.write(&path);
    let slots = image.begin(support::synth::SLOTS);
    let file = File::options().write(true).open(&path).unwrap();
    let is_over = AtomicBool::new(false);
    let len = image.bytes.len();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random(3);
            while !is_over.load(Ordering::Relaxed) {
                // Counts, words and headers of slots get any value, often one near the limits of u64.
                let at = slots + random.below((len - slots) / 8) * 8;
                let value =
                    [random.next(), u64::MAX - random.next() % 9000, random.next() % 99][random.below(3)];
                file.write_all_at(&value.to_le_bytes(), at as u64).unwrap();
                let count_of_one = image.entry(support::synth::SLOTS, random.below(4)) + slot_at::COUNT;
                file.write_all_at(&value.to_le_bytes(), count_of_one as u64).unwrap();
                if random.below(50) == 0 {
                    // Truncate the file and extend it again.
                    file.set_len((slots + random.below(len - slots)) as u64).unwrap();
                    file.set_len(len as u64).unwrap();
                    file.write_all_at(&image.bytes[slots..], slots as u64).unwrap();
                }
            }
        });
        let deadline = Instant::now() + Duration::from_secs(3);
        let result = catch_unwind(AssertUnwindSafe(|| {
            let mut reads = 0;
            while reads < READS_MIN || Instant::now() < deadline {
                black_box(read_and_report(&path));
                reads += 1;
            }
        }));
        is_over.store(true, Ordering::Relaxed);
        result.unwrap();
    });
}
