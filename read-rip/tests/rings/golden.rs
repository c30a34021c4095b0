//! The reader still reads the rings that the recorders of released versions left.
//!
//! The program `golden/vMAJOR.MINOR-NAME.rs` left `golden/vMAJOR.MINOR-NAME.ring.gz`. The reader does not need the
//! program to read that ring. The expectations are here, and do not change once the version is released.
//!
//! `scripts/bless` makes the rings of the present version again: it builds the programs with the present recorder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use read_rip_ring::{
    self as ring, ClockLevel, ClockSource, Ending, FileSystem, HeldState, Machine, OperandType, OperandWords,
    SiteFlags, SiteKind, SlotKind, SlotState, Snapshot, TaskKind,
};

use crate::support::run::{read_rip, show};

/// Limit for a golden ring, because it is in the repository.
const LEN_MAX_BYTES: u64 = 20_000;

fn golden(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{version}.ring.gz"))
}

/// The first line of the program that contains this text.
fn line(version: &str, text: &str) -> u32 {
    let source = fs::read_to_string(golden(version).with_file_name(format!("{version}.rs"))).unwrap();
    1 + source.lines().position(|line| line.contains(text)).unwrap() as u32
}

/// The golden ring of this version, in which nothing is damaged.
fn sound_golden(version: &str) -> Snapshot {
    let path = golden(version);
    assert!(fs::metadata(&path).unwrap().len() < LEN_MAX_BYTES);
    let snapshot = ring::read(&path).unwrap();
    assert_eq!(snapshot.defects, []);
    snapshot
}

#[test]
fn the_header_and_the_program_of_the_golden_ring_are_read_as_recorded() {
    let snapshot = sound_golden("v1.0-marks");
    let header = snapshot.header.as_ref().unwrap();
    assert_eq!(header.version, (1, 0));
    assert_eq!(header.machine, Machine::X86_64);
    assert_eq!((header.slot_words, header.slot_len_bytes), (16, 640));
    assert_eq!((header.slots.capacity, header.slots.used), (16, 4));
    assert_eq!(header.file_len_bytes % 4096, 0);
    assert_eq!((header.settings_ignored.bits(), header.slots_reused, header.metadata_refused), (0, 0, 0));
    assert_eq!(
        (header.threads_refused_full, header.threads_refused_memory, header.threads_without_exit),
        (0, 0, 0)
    );
    assert_eq!(header.ending, Ending::Unrecorded);
    assert_eq!(header.ticks_per_second, 100);
    assert_eq!(header.file_system, FileSystem::Tmpfs);
    assert!(
        header.pid > 1
            && header.boot_id != [0; 16]
            && header.start_time_ticks > 0
            && header.pid_namespace > 0
    );
    assert!(header.created_realtime_ns > 1_700_000_000_000_000_000);
    assert!(!header.host.is_empty());

    let module = snapshot.modules.iter().find(|module| module.is_executable).unwrap();
    assert_eq!(module.path, Path::new("/tmp/librip-golden/target/debug/golden"));
    assert_eq!(module.pid, header.pid);
    assert!(module.build_id.len() == 20 && module.file_len_bytes > 100_000 && module.modified_ns > 0);
    assert!(module.begin < module.end && module.load_bias.is_multiple_of(4096));
}

#[test]
fn the_sites_of_the_golden_ring_are_read_as_recorded() {
    let snapshot = sound_golden("v1.0-marks");
    let program = snapshot.modules.iter().position(|module| module.is_executable).unwrap();
    let module = &snapshot.modules[program];
    let mut sites: Vec<_> = snapshot
        .sites
        .iter()
        // Skip the recorder's own sites, which record the ends of locks.
        .filter(|site| *site.file == *"src/main.rs")
        .map(|site| {
            assert_eq!(
                (site.home.module(), site.kind, site.operand_words),
                (Some(program), SiteKind::Snap, Some(OperandWords::Fixed(0)))
            );
            assert!((module.begin..module.end).contains(&site.pc) && site.column > 0);
            (site.line, &*site.module_path, &*site.label)
        })
        .collect();
    sites.sort_unstable();
    let line = |text| line("v1.0-marks", text);
    let expected = [
        (line("\"waits\""), "golden::store", "waits"),
        (line("\"holds\""), "golden::store", "holds"),
        (line("rip_snap!();"), "golden", ""),
        (line("\"once\""), "golden", "once"),
        (line("\"about to die\""), "golden", "about to die"),
    ];
    assert_eq!(sites, expected);
}

#[test]
fn the_slots_of_the_golden_ring_are_read_as_recorded() {
    let snapshot = sound_golden("v1.0-marks");
    let header = snapshot.header.as_ref().unwrap();
    let slots: Vec<_> = snapshot
        .slots
        .iter()
        .map(|slot| {
            assert_eq!((slot.pid, slot.kind), (header.pid, SlotKind::Thread));
            assert_eq!((slot.generation, slot.first_sequence), (1, 0));
            assert_eq!((slot.unwritten, slot.torn, slot.damaged), (0, 0, 0));
            assert!(slot.claimed_boottime_ns >= header.created_boottime_ns && slot.tid >= slot.pid);
            (slot.index, slot.name.as_str(), slot.state, slot.count, slot.words_from)
        })
        .collect();
    let busy = 2 * ((1 << 15) + 1);
    assert_eq!(
        slots,
        [
            (0, "golden", SlotState::Live, 2, 0),
            (1, "brief", SlotState::Exited, 1, 0),
            (2, "busy", SlotState::Exited, busy, busy - 16),
            (3, "a name longer than the kernel has them", SlotState::Exited, 2, 0),
        ]
    );
}

#[test]
fn the_views_of_the_golden_ring_need_no_program() {
    let path = golden("v1.0-marks");
    let line = |text| line("v1.0-marks", text);
    let (waits, holds) = (line("\"waits\""), line("\"holds\""));
    let (begin, once, die) = (line("rip_snap!();"), line("\"once\""), line("\"about to die\""));
    let tids: Vec<u32> = ring::read(&path).unwrap().slots.iter().map(|slot| slot.tid).collect();

    let outcome = show(&[], &path).sound();
    assert_eq!(outcome.result(), format!("golden::? : 1 thread, 1 location: main.rs:{die} (1)\n"));
    let pid = tids[0];
    let heading = format!("golden[{pid}], dead (killed, crashed or _exit): 4 threads, 3 of them exited");
    assert!(outcome.heading().starts_with(&heading), "{outcome:#?}");

    let outcome = show(&["-t"], &path).sound();
    assert_eq!(outcome.stdout, format!("golden[{}]: {{0}}main.rs:{begin}, {{1}}main.rs:{die}\n", tids[0]));

    // Leave out the addresses and times, which differ from build to build.
    let varying = regex::Regex::new(r"<0x[0-9a-f]+>| (after|before|between [0-9.]+ and) [0-9.]+ s").unwrap();
    let without_addresses = |line: &str| varying.replace_all(line, "").into_owned();
    let outcome = show(&["-tv"], &path).sound();
    let lines: Vec<String> = outcome.stdout.lines().map(without_addresses).collect();
    let busy: Vec<String> = (65_522..65_538)
        .map(|sequence| match sequence % 2 {
            0 => format!("{{{sequence}}}main.rs:{waits} \"waits\""),
            _ => format!("{{{sequence}}}main.rs:{holds} \"holds\""),
        })
        .collect();
    assert_eq!(
        lines,
        [
            format!("golden[{}]: {{0}}main.rs:{begin}, {{1}}main.rs:{die} \"about to die\"", tids[0]),
            format!("brief[{}]: {{0}}main.rs:{once} \"once\", EXIT", tids[1]),
            format!("busy[{}]: {}, EXIT", tids[2], busy.join(", ")),
            format!(
                "a name longer than the kernel has them[{}]: {{0}}main.rs:{waits} \"waits\", \
                 {{1}}main.rs:{holds} \"holds\", EXIT",
                tids[3]
            ),
        ]
    );
    let info = read_rip(["info".as_ref(), path.as_os_str()]).sound().stdout;
    assert!(info.contains("\ngeometry    16 slots of 640 bytes, 16 words each; 4 used\n"), "{info}");
}

#[test]
fn the_clock_and_the_names_of_the_golden_ring_with_locks_are_read_as_recorded() {
    let snapshot = sound_golden("v1.0-locks");
    let header = snapshot.header.as_ref().unwrap();
    assert_eq!(header.version, (1, 0));
    assert_eq!((header.slot_words, header.slot_len_bytes, header.slots.used), (16, 640, 7));
    assert_eq!((header.held_overflows, header.releases_unmatched), (0, 0));
    let clock = header.clock.unwrap();
    assert_eq!((clock.level, clock.source), (ClockLevel::Contended, ClockSource::Counter));
    assert!(clock.ticks_per_kilosecond / 1000 <= 125_000_000 && clock.base_boottime_ns > 0);
    assert_eq!(snapshot.lock_names.values().collect::<Vec<_>>(), ["by hand"]);
}

#[test]
fn the_lock_sites_of_the_golden_ring_are_read_as_recorded() {
    let snapshot = sound_golden("v1.0-locks");
    // Kind, flags and operand types of the sites in the golden program.
    let sites = |text: &str| {
        let line = line("v1.0-locks", text);
        let here =
            snapshot.sites.iter().filter(move |site| *site.file == *"src/main.rs" && site.line == line);
        let mut sites: Vec<_> =
            here.map(|site| (site.kind, site.flags, site.operand_types.as_slice())).collect();
        sites.sort_unstable();
        sites
    };
    use OperandType::{Lock, Since, Time};
    use SiteFlags as Flags;
    assert_eq!(
        sites("rip_lock_wait!(&BY_HAND, reentrant)"),
        [(SiteKind::LockWait, Flags::REENTRANT, &[Time, Lock][..])]
    );
    assert_eq!(
        sites("rip_lock_acquired!(&BY_HAND, reentrant)"),
        [
            (SiteKind::LockAcquired, Flags::REENTRANT, &[Lock][..]),
            (SiteKind::LockAcquired, Flags::REENTRANT, &[Time, Lock]),
        ]
    );
    assert_eq!(
        sites("rip_lock_released!(&HANDED)"),
        [
            (SiteKind::LockReleased, Flags::NONE, &[Lock][..]),
            (SiteKind::LockReleased, Flags::NONE, &[Time, Since, Lock]),
        ]
    );
    assert_eq!(sites("rip_lock_try_failed!(&BY_HAND)"), [(SiteKind::LockTryFailed, Flags::TRY, &[Lock][..])]);
    assert_eq!(
        sites("rip_lock_wait!(&ROUTES, try_for)"),
        [(SiteKind::LockWait, Flags::TRY, &[Time, Lock][..])]
    );
    assert_eq!(sites("librip::rip_progress!"), [(SiteKind::Progress, Flags::NONE, &[][..])]);
}

#[test]
fn the_held_locks_of_the_golden_ring_are_read_as_recorded() {
    let snapshot = sound_golden("v1.0-locks");
    let slots: Vec<_> = snapshot
        .slots
        .iter()
        .map(|slot| {
            assert_eq!((slot.held_overflowed, slot.held_in_flux, slot.torn, slot.damaged), (0, 0, 0, 0));
            let held: Vec<_> = slot
                .held
                .iter()
                .map(|held| (held.state, held.is_shared, held.recursion, held.since_ticks.is_some()))
                .collect();
            (slot.name.as_str(), slot.state, held)
        })
        .collect();
    let held_by_hand = |recursion| (HeldState::Held, false, recursion, false);
    let waits = (HeldState::Waiting, false, 0, true);
    assert_eq!(
        slots,
        [
            // The entry of the lock that main released is gone.
            ("keeper", SlotState::Live, vec![held_by_hand(0), held_by_hand(1)]),
            ("waiter", SlotState::Live, vec![waits]),
            ("reader", SlotState::Live, vec![(HeldState::Held, true, 0, false)]),
            ("sleeper", SlotState::Live, vec![(HeldState::ConditionWait, false, 0, true)]),
            ("tries", SlotState::Live, vec![waits]),
            ("gone", SlotState::Exited, vec![held_by_hand(0)]),
            ("golden", SlotState::Live, vec![]),
        ]
    );
}

#[test]
fn the_locks_of_the_golden_ring_need_no_program() {
    let path = golden("v1.0-locks");
    let line = |text| line("v1.0-locks", text);
    let tids: Vec<u32> = ring::read(&path).unwrap().slots.iter().map(|slot| slot.tid).collect();
    let locks = read_rip(["locks".as_ref(), path.as_os_str()]).sound().stdout;
    for expected in [
        format!("  held by keeper[{}] at golden::? main.rs:{}\n", tids[0], line("acquired!(&BY_HAND")),
        "by hand  lock at 0x".to_owned(),
        format!("  held by gone[{}], which has exited, at golden::? main.rs:{}\n", tids[5], line("(&LOST")),
        format!(
            "  tries[{}] waits with a time limit at golden::? main.rs:{}",
            tids[4],
            line("(&ROUTES, try")
        ),
        format!("  sleeper[{}] waits on a condition variable at main.rs:{}", tids[3], line("WORK.wait(")),
        format!("  held by keeper[{}] at main.rs:{}\n", tids[0], line("_cache = CACHE.lock()")),
        format!("  waiter[{}] waits at main.rs:{}", tids[1], line("drop(CACHE.lock())")),
        format!("  held shared by reader[{}] at main.rs:{}\n", tids[2], line("ROUTES.read()")),
    ] {
        assert!(locks.contains(&expected), "{expected}\n{locks}");
    }
    let outcome = read_rip(["check".as_ref(), path.as_os_str()]);
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    // The threads that wait were left waiting for good.
    for (kind, count) in [("unreleased: lock of golden::? main.rs:", 1), ("long-wait: 1 thread waits", 2)] {
        let beginning = format!("suspected {kind}");
        let findings = outcome.result().lines().filter(|line| line.starts_with(&beginning));
        assert_eq!(findings.count(), count, "{kind}: {outcome:#?}");
    }
    assert_eq!(outcome.result().lines().filter(|line| line.starts_with("suspected")).count(), 3);
}

#[test]
fn the_tasks_of_the_golden_ring_are_read_as_recorded() {
    let snapshot = sound_golden("v1.0-tasks");
    let header = snapshot.header.as_ref().unwrap();
    assert_eq!((header.slot_words, header.slot_len_bytes, header.slots.used), (16, 896, 6));
    let tasks: Vec<_> = snapshot
        .slots
        .iter()
        .filter_map(|slot| {
            let task = slot.task.as_ref()?;
            let held: Vec<_> = slot.held.iter().map(|held| (held.state, held.is_of_future)).collect();
            let runtime = task.runtime.map(|runtime| (runtime.number, runtime.workers));
            let turns = (task.turn, task.is_local, task.wakers, task.wakes, task.left_out);
            let is_main = |poller: u64| snapshot.slots[poller as usize].name == "golden";
            assert!(task.location.is_some() && task.poller.is_none_or(is_main));
            Some((slot.name.as_str(), slot.state, task.kind, runtime, turns, held))
        })
        .collect();
    let (live, with_lock) = (SlotState::Live, vec![(HeldState::Held, true), (HeldState::MessageWait, true)]);
    assert_eq!(
        tasks,
        [
            ("suspended", live, TaskKind::Async, Some((7, 2)), (2, false, Some(0), 0, 0), with_lock),
            ("woken", live, TaskKind::Async, None, (4, true, Some(0), 1, 0), vec![]),
            ("call", live, TaskKind::Blocking, None, (0, false, None, 0, 0), vec![]),
            ("", SlotState::Exited, TaskKind::Async, None, (2, false, Some(0), 0, 0), vec![]),
            ("polled", live, TaskKind::Async, None, (1, false, None, 0, 0), vec![]),
        ]
    );
    let futures =
        snapshot.slots.iter().find_map(|slot| slot.task.as_ref()).map(|task| &task.futures).unwrap();
    assert_eq!(futures.iter().map(|it| (it.outer, it.turn)).collect::<Vec<_>>(), [(None, Some(1)); 2]);
}

#[test]
fn the_tasks_of_the_golden_ring_need_no_program() {
    let path = golden("v1.0-tasks");
    let line = |text| line("v1.0-tasks", text);
    let text = read_rip(["tasks".as_ref(), "-t".as_ref(), path.as_os_str()]).sound().stdout;
    let begin = text.lines().next().unwrap();
    assert!(begin.starts_with("suspended[task 1]: suspended for an unknown time, "), "{text}");
    for expected in [
        format!(", made at main.rs:{}, 1 poll", line("// made")),
        format!("\n    main.rs:{}\n", line("// the first future")),
        format!("\n    main.rs:{0}\n        waits for ", line("// the second one")),
        "\nwoken[task 2]: ready and not polled ".to_owned(),
        "\ncall[task 3]: waits for a thread of the pool ".to_owned(),
        "\npolled[task 5]: polled by golden[".to_owned(),
    ] {
        assert!(text.contains(&expected), "{expected}\n{text}");
    }
}

#[test]
#[ignore = "overwrites the golden rings of the present version"]
fn bless() {
    for name in ["marks", "locks", "tasks"] {
        bless_one(&format!("v{}.{}-{name}", librip_format::VERSION_MAJOR, librip_format::VERSION_MINOR));
    }
}

fn bless_one(name: &str) {
    let source = golden(name).with_file_name(format!("{name}.rs"));
    let librip = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("librip");
    // A fixed path, because the ring contains it.
    let package = Path::new("/tmp/librip-golden");
    let _ = fs::remove_dir_all(package);
    fs::create_dir_all(package.join("src")).unwrap();
    fs::create_dir_all(package.join("ring")).unwrap();
    fs::copy(source, package.join("src/main.rs")).unwrap();
    let manifest = format!(
        "[package]\nname = \"golden\"\nedition = \"2024\"\n[dependencies]\nlibrip = {{ path = {librip:?} }}\n\
             [workspace]\n"
    );
    fs::write(package.join("Cargo.toml"), manifest).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--offline", "--target-dir", "target"]).current_dir(package);
    assert!(cargo.status().unwrap().success());
    // On tmpfs, where rings normally are.
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut program = Command::new(package.join("target/debug/golden"));
    program.env("RIP_RING", directory.path()).env("RIP_WORDS", "16").env("RIP_SLOTS", "16");
    assert_eq!(program.status().unwrap().code(), None, "it aborts");
    let left: Vec<PathBuf> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    crate::support::gzip(&fs::read(&left[0]).unwrap(), &golden(name));
    fs::remove_dir_all(package).unwrap();
}
