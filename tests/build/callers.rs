//! The line that called a recorded lock, in every kind of build: it needs no debug information, and for a thread that
//! waits, no program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use librip_test_kit::oracle::Holding;
use librip_test_kit::run::{clean, finish};
use librip_test_kit::victim::Plan;

use crate::{compile, directory, fixture};

/// The line of the fixture that ends in `// LINE what`.
fn line(what: &str) -> String {
    let source = std::fs::read_to_string(fixture("callers.rs")).unwrap();
    let wanted = format!("// LINE {what}");
    format!("callers.rs:{}", source.lines().position(|line| line.ends_with(&wanted)).expect(what) + 1)
}

/// Runs the fixture until its threads wait, and kills it. Returns a copy of the ring.
fn stuck(program: &Path, copy: &str) -> PathBuf {
    let mut victim = Plan::new(program, &[]).start();
    let waiting = |victim: &librip_test_kit::victim::Victim| {
        let Ok(ring) = victim.ring_now(&victim.ring_path()) else { return 0 };
        let held = ring.slots.iter().flat_map(|slot| slot.held.iter());
        held.filter(|held| matches!(held.state, Holding::Waiting | Holding::CondWait)).count()
    };
    let patience = Instant::now() + Duration::from_secs(60);
    while waiting(&victim) < 5 {
        assert!(Instant::now() < patience, "{copy}: all threads wait in the end");
        std::thread::yield_now();
    }
    victim.kill();
    let remains = victim.wait();
    let ring = directory().join(copy);
    std::fs::copy(remains.ring_path(), &ring).unwrap();
    ring
}

fn read_rip(arguments: &[&str], ring: &Path) -> String {
    let mut reader = clean(Command::new(env!("CARGO_BIN_EXE_reader")));
    reader.args(arguments).arg(ring);
    finish(reader).stdout
}

/// Checks that the views have the lines of all callers.
#[track_caller]
fn check(name: &str, ring: &Path) {
    let threads = read_rip(&["-t"], ring);
    let locks = read_rip(&["locks"], ring);
    let findings = read_rip(&["check"], ring);
    let shown = format!("{name}\n{threads}\n{locks}\n{findings}");
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
        let at = line(what);
        let has = |text: &str| text.split([' ', ',', '\n']).any(|part| part.contains(&at));
        let is_of_word = |mark: &str| mark.contains(&at) && mark.ends_with(&format!("({word})"));
        let is_shown = threads.split([',', '\n']).any(|mark| is_of_word(mark.trim()));
        assert!(is_shown, "{what}: {at} in {shown}");
        if !matches!(what, "fails" | "idles") {
            assert!(has(&locks), "{what}: {at} in {shown}");
        }
        if !matches!(what, "fails" | "idles" | "reads" | "reader waits" | "main waits") {
            assert!(has(&findings), "{what}: {at} in {shown}");
        }
    }
    for what in ["alone", "tries", "writes"] {
        let at = line(what);
        assert!(threads.contains(&at), "{what}: {at} in {shown}");
    }
    assert!(findings.contains(" deadlock: 2 threads"), "{shown}");
    for wrapper in ["mutex.rs", "rwlock.rs", "condvar.rs", "unknown"] {
        assert!(!shown.contains(wrapper), "{wrapper} in {shown}");
    }
}

#[test]
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
        let program = compile("callers.rs", &format!("callers-{name}"), flags);
        let ring = stuck(&program, &format!("callers-{name}.ring"));
        check(name, &ring);
        std::fs::remove_file(program).unwrap();
        check(&format!("{name}, without the program"), &ring);
        std::fs::remove_file(ring).unwrap();
    }
}
