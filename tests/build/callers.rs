//! The line that called a recorded lock, in every kind of build: it needs no debug information, and for a thread that
//! waits, no program.

use std::path::{Path, PathBuf};
use std::time::Instant;

use librip_test_kit::oracle::Holding;
use librip_test_kit::victim::{DEADLINE, Plan};

use crate::stand_in::compile_with_stand_in;
use crate::{compile, directory, fixture, read_rip};

/// The line of a fixture that ends in `// LINE what`.
fn line(source: &str, what: &str) -> String {
    let text = std::fs::read_to_string(fixture(source)).unwrap();
    let wanted = format!("// LINE {what}");
    format!("{source}:{}", text.lines().position(|line| line.ends_with(&wanted)).expect(what) + 1)
}

/// Runs the fixture until its threads wait, and kills it. Returns a copy of the ring.
fn stuck(program: &Path, copy: &str) -> PathBuf {
    let victim = Plan::new(program, &[]).start();
    let waiting = |victim: &librip_test_kit::victim::Victim| {
        let Ok(ring) = victim.ring_now(&victim.ring_path()) else { return 0 };
        let held = ring.slots.iter().flat_map(|slot| slot.held.iter());
        held.filter(|held| matches!(held.state, Holding::Waiting | Holding::CondWait)).count()
    };
    let patience = Instant::now() + DEADLINE;
    while waiting(&victim) < 5 {
        assert!(Instant::now() < patience, "{copy}: all threads wait in the end");
        librip_test_kit::pause();
    }
    let remains = victim.killed();
    let ring = directory().join(copy);
    std::fs::copy(remains.ring_path(), &ring).unwrap();
    ring
}

/// Checks that the views have the lines of all callers in this source.
#[track_caller]
fn check(source: &str, name: &str, ring: &Path) {
    let threads = read_rip(&["-t"], ring);
    let locks = read_rip(&["locks"], ring);
    let findings = read_rip(&["check"], ring);
    let shown = format!("{name}\n{threads}\n{locks}\n{findings}");
    let has = |text: &str, at: &str| text.split([' ', ',', '\n']).any(|part| part.contains(at));
    for (what, word) in [
        ("left holds", "takes"),
        ("left waits", "waits"),
        ("right holds", "takes"),
        ("fails", "failed"),
        ("right waits", "waits"),
        ("idles", "idle"),
        ("reads", "takes"),
        ("reader waits", "waits"),
        ("main waits", "waits"),
    ] {
        let at = line(source, what);
        let is_of_word = |mark: &str| mark.contains(&at) && mark.ends_with(&format!("({word})"));
        let is_shown = threads.split([',', '\n']).any(|mark| is_of_word(mark.trim()));
        assert!(is_shown, "{what}: {at} in {shown}");
        if !matches!(what, "fails" | "idles") {
            assert!(has(&locks, &at), "{what}: {at} in {shown}");
        }
        if !matches!(what, "fails" | "idles" | "reads" | "reader waits" | "main waits") {
            assert!(has(&findings, &at), "{what}: {at} in {shown}");
        }
    }
    for what in ["alone", "tries", "writes"] {
        let at = line(source, what);
        assert!(threads.contains(&at), "{what}: {at} in {shown}");
    }
    if source == OF_LOCK_API {
        for what in ["passes", "in time"] {
            let at = line(source, what);
            assert!(threads.contains(&at), "{what}: {at} in {shown}");
        }
        for what in ["upgrades", "downgrades"] {
            let at = line(source, what);
            assert!(has(&locks, &at), "{what}: {at} in {shown}");
        }
    }
    // A guard of `lock_api` need not be dropped by the thread that has the lock. That is a rule only.
    let assumes = findings.contains("assumed: no other thread releases what these threads acquired");
    assert_eq!(assumes, source == OF_LOCK_API, "{shown}");
    assert!(findings.contains(" deadlock: 2 threads"), "{shown}");
    for wrapper in ["mutex.rs", "rwlock.rs", "condvar.rs", "traits.rs", "record.rs", "unknown"] {
        assert!(!shown.contains(wrapper), "{wrapper} in {shown}");
    }
}

/// The fixture with locks of the standard library.
const OF_STD: &str = "callers.rs";
/// The fixture with locks of `parking_lot`, by way of `lock_api`.
const OF_LOCK_API: &str = "callers_lot.rs";

/// Builds a fixture with these flags, and checks its views with the program and without.
fn check_build(source: &str, name: &str, flags: &[&str]) {
    let name = format!("{}-{name}", source.trim_end_matches(".rs"));
    check_program(source, &name, compile(source, &name, flags));
}

fn check_program(source: &str, name: &str, program: PathBuf) {
    let ring = stuck(&program, &format!("{name}.ring"));
    check(source, name, &ring);
    std::fs::remove_file(program).unwrap();
    check(source, &format!("{name}, without the program"), &ring);
    std::fs::remove_file(ring).unwrap();
}

#[test]
#[ignore = "compiles for long: scripts/test-builds"]
fn a_recorded_lock_shows_the_line_of_its_caller_in_every_kind_of_build() {
    let builds: [(&str, &[&str]); 7] = [
        ("release", &["-C", "opt-level=3"]),
        ("stripped", &["-C", "opt-level=3", "-C", "strip=symbols"]),
        ("lto", &["-C", "opt-level=s", "-C", "lto=fat"]),
        ("lines", &["-C", "opt-level=3", "-C", "debuginfo=line-tables-only"]),
        ("unoptimised", &["-C", "debuginfo=2"]),
        ("static", &["-O", "-C", "target-feature=+crt-static", "-C", "relocation-model=static"]),
        ("relr", &["-O", "-C", "strip=symbols", "-C", "link-arg=-Wl,-z,pack-relative-relocs"]),
    ];
    for (name, flags) in builds {
        check_build(OF_STD, name, flags);
    }
}

#[test]
fn a_recorded_lock_of_parking_lot_shows_the_line_of_its_caller_too() {
    let builds: [(&str, &[&str]); 3] = [
        ("release", &["-C", "opt-level=3"]),
        ("stripped", &["-C", "opt-level=3", "-C", "strip=symbols"]),
        ("unoptimised", &["-C", "debuginfo=2"]),
    ];
    for (name, flags) in builds {
        check_build(OF_LOCK_API, name, flags);
    }
}

#[test]
fn a_lock_of_the_crate_that_stands_in_for_parking_lot_shows_it_too() {
    let builds: [(&str, &[&str]); 2] =
        [("release", &["-C", "opt-level=3", "-C", "strip=symbols"]), ("unoptimised", &["-C", "debuginfo=2"])];
    for (name, flags) in builds {
        let name = format!("callers-stand-in-{name}");
        let flags = [&["--cfg", "stand_in"], flags].concat();
        check_program(OF_LOCK_API, &name, compile_with_stand_in(OF_LOCK_API, &name, &flags));
    }
}
