//! The crate that stands in for `parking_lot` passes the tests of `parking_lot` 0.12, while it is recorded.
//!
//! The tests are those in the sources that cargo has of the crate: they are taken at test time, and nothing of them is
//! kept here.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Instant;

use librip_test_kit::oracle::{Holding, Ring, Slot};
use librip_test_kit::reader;
use librip_test_kit::tool::{self, Built, repository, tool};
use librip_test_kit::victim::{DEADLINE, Plan, Remains, torture};
use regex::Regex;

use crate::{built_alone, compile_by, directory, fixture, librip, read_rip};

/// Tests that take seconds of processor time, with any implementation: `RIP_TORTURE` runs them too.
const SLOW: [&str; 2] = ["_one_slot", "new_test_without_timeout_5"];

/// What the tests need besides the crate: it starts to record before they run, stands in for the crate `rand`, and has
/// a method that the tests call although it is private.
const SURROUNDINGS: &str = "
pub use parking_lot::*;
#[used]
#[unsafe(link_section = \".init_array\")]
static START: extern \"C\" fn() = { extern \"C\" fn start() { librip::init().unwrap(); } start };
pub trait Internal {
    fn wait_while_until_internal<T, F: FnMut(&mut T) -> bool>(
        &self, guard: &mut MutexGuard<'_, T>, condition: F, timeout: Option<std::time::Instant>,
    ) -> WaitTimeoutResult;
}
impl Internal for Condvar {
    fn wait_while_until_internal<T, F: FnMut(&mut T) -> bool>(
        &self, guard: &mut MutexGuard<'_, T>, condition: F, timeout: Option<std::time::Instant>,
    ) -> WaitTimeoutResult {
        match timeout {
            Some(timeout) => self.wait_while_until(guard, condition, timeout),
            None => self.wait_while_for(guard, condition, std::time::Duration::MAX),
        }
    }
}
mod rand {
    pub struct Random(u64);
    pub fn thread_rng() -> Random { Random(0x9e37_79b9_7f4a_7c15) }
    pub trait Rng { fn gen_bool(&mut self, p: f64) -> bool; }
    impl Rng for Random {
        fn gen_bool(&mut self, p: f64) -> bool {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            ((self.0 >> 11) as f64) < p * (1_u64 << 53) as f64
        }
    }
}
";

/// A call of rustc with that crate.
fn rustc() -> Command {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| tool::stand_in(directory())).rustc(&["librip", "parking_lot"])
}

/// Compiles a fixture with that crate in place of `parking_lot`.
pub(crate) fn compile_with_stand_in(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    compile_by(rustc(), source, name, flags)
}

/// The modules of tests in a source: from their attributes to the brace at the beginning of a line.
fn test_modules(source: &str) -> Vec<&str> {
    let mut modules = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find("\n#[cfg(test)]\n") {
        let module = &rest[at + 1..];
        let end = module.find("\n}\n").expect("a module ends") + "\n}\n".len();
        modules.push(&module[..end]);
        rest = &module[end - 1..];
    }
    modules
}

/// All tests in one file.
fn collected(sources: &Path) -> String {
    let mut text = SURROUNDINGS.to_owned();
    for name in ["condvar", "fair_mutex", "mutex", "once", "remutex", "rwlock"] {
        let source = std::fs::read_to_string(sources.join(format!("src/{name}.rs"))).unwrap();
        let modules = test_modules(&source).concat().replace("use rand::", "use crate::rand::");
        assert!(modules.contains("#[test]"), "{name}: {modules}");
        let modules = modules.replace("rand::thread_rng", "crate::rand::thread_rng");
        let modules = modules.replace("use crate::{Condvar", "use crate::{Internal as _, Condvar");
        writeln!(text, "mod {name} {{\n{modules}}}").unwrap();
    }
    for name in ["issue_203", "issue_392"] {
        let source = std::fs::read_to_string(sources.join(format!("tests/{name}.rs"))).unwrap();
        writeln!(text, "mod {name} {{\n{source}}}").unwrap();
    }
    text
}

#[test]
#[ignore = "compiles for long: scripts/test-builds"]
fn the_crate_that_stands_in_for_parking_lot_passes_its_tests() {
    let library = librip().source("parking_lot");
    let sources = library.ancestors().nth(2).expect("a library is in a directory");
    let file = directory().join("lot_tests.rs");
    std::fs::write(&file, collected(sources)).unwrap();
    let program = file.with_extension("");
    let mut rustc = rustc();
    tool(rustc.args(["--test", "--cap-lints", "allow", "-o"]).arg(&program).arg(&file));
    let skipped = if torture() > 1 { Vec::new() } else { SLOW.map(|name| ["--skip", name]).concat() };
    let remains = Plan::new(&program, &skipped).env("RIP_KEEP", "always").env("RIP_SLOTS", "4096").run();
    let counts = Regex::new(r"test result: ok\. (\d+) passed; 0 failed; 0 ignored;").unwrap();
    let passed: Option<usize> = counts.captures(&remains.stdout).and_then(|counts| counts[1].parse().ok());
    assert!(remains.status.success() && passed > Some(80), "{passed:?}\n{remains:?}");
    let threads = read_rip(&["-t", "-v"], &remains.ring_path());
    assert!(
        threads.contains("lot_tests.rs:"),
        "the locks are recorded at the lines that call them: {threads}"
    );
}

#[test]
fn a_once_whose_closure_waits_for_a_thread_that_waits_for_it_is_a_proven_deadlock() {
    let findings = findings_of_the_stuck(&compile_with_stand_in("once.rs", "once", &["-O"]));
    assert!(findings.contains("proven deadlock: 2 threads wait for one another"), "{findings}");
    let source = std::fs::read_to_string(fixture("once.rs")).unwrap();
    for what in ["begins", "wants settings", "has settings", "wants the once"] {
        let at = source.lines().position(|line| line.ends_with(&format!("// LINE {what}"))).expect(what) + 1;
        assert!(findings.contains(&format!("once.rs:{at}")), "{what}: {findings}");
    }
    assert!(findings.contains("START at"), "a once has the name of its static: {findings}");
}

#[test]
fn a_deadlock_with_a_lock_of_an_unchanged_dependency_is_proven_with_the_lines_in_both() {
    let Some(programs) = built_alone("examples/patched", None) else { return };
    let findings = findings_of_the_stuck(&programs.join("librip-example-patched"));
    assert!(findings.contains("proven deadlock: 2 threads wait for one another"), "{findings}");
    for expected in [
        r"\] holds lock of prometheus registry\.rs:\d+ \(shared\).* at prometheus registry\.rs:\d+\n",
        r"waits for lock of prometheus registry\.rs:\d+ at prometheus registry\.rs:\d+\n",
        r"\] holds librip_example_patched::SESSIONS.* at main\.rs:\d+\n",
        r"waits for librip_example_patched::SESSIONS at main\.rs:\d+\n",
    ] {
        assert!(Regex::new(expected).unwrap().is_match(&findings), "{expected}: {findings}");
    }
}

/// The line of the program with two versions of `parking_lot` that ends in `// LINE what`.
fn line_of_patched(what: &str) -> String {
    let text = std::fs::read_to_string(repository().join("tests/build/patched/main.rs")).unwrap();
    let wanted = format!("// LINE {what}");
    format!("main.rs:{}", text.lines().position(|line| line.ends_with(&wanted)).expect(what) + 1)
}

#[test]
fn locks_of_two_versions_of_parking_lot_are_recorded_if_both_are_patched() {
    let Some(programs) = built_alone("tests/build/patched/both", None) else { return };
    let remains = stuck(&programs.join("patched-both"), 4);
    let ring = remains.ring_path();
    let checked = reader::ask(&["check"], &ring);
    let findings = checked.stdout;
    assert!(!checked.stderr.contains("parking_lot"), "{}", checked.stderr);
    assert!(findings.contains("proven deadlock: 2 threads wait for one another"), "{findings}");
    for (what, lock) in [("left waits", "NEW"), ("right waits", "OLD")] {
        let wait = format!(r"waits for patched_both::{lock} at {}\n", line_of_patched(what));
        assert!(Regex::new(&wait).unwrap().is_match(&findings), "{wait}: {findings}");
    }
    let locks = read_rip(&["locks"], &ring);
    for (lock, what) in [
        ("OLD  mutex", format!("held by left[%] at {}", line_of_patched("left holds"))),
        ("NEW  mutex", format!("held by right[%] at {}", line_of_patched("right holds"))),
        ("ROUTES  rwlock", format!("held shared by reader[%] at {}", line_of_patched("reads"))),
        ("ROUTES  rwlock", format!("waits at {}", line_of_patched("main waits"))),
        ("QUEUE  mutex", format!("idle[%] waits on a condition variable at {}", line_of_patched("idles"))),
    ] {
        let what = regex::escape(&what).replace('%', r"\d+");
        let shown =
            Regex::new(&format!("(?s)patched_both::{lock} at 0x\\w+\n(  [^\n]*\n)*?  [^\n]*{what}")).unwrap();
        assert!(shown.is_match(&locks), "{shown}: {locks}");
    }
}

#[test]
fn a_version_of_parking_lot_that_is_not_patched_is_pointed_out() {
    let Some(programs) = built_alone("tests/build/patched/one", None) else { return };
    let checked = reader::ask(&["check"], stuck(&programs.join("patched-one"), 1).ring_path());
    let remark =
        "The program also has a parking_lot whose locks are not recorded: run \"cargo tree --duplicates\"";
    assert!(checked.stderr.contains(remark), "{}", checked.stderr);
}

#[test]
fn the_crate_that_stands_in_for_parking_lot_0_13_has_all_of_its_interface() {
    let Some(programs) = built_alone("tests/build/patched/one", None) else { return };
    tool(&mut Command::new(programs.join("lot-api-0-13")));
}

/// What `check` says of a program that was killed when two of its threads waited for locks.
fn findings_of_the_stuck(program: &Path) -> String {
    read_rip(&["check"], &stuck(program, 2).ring_path())
}

/// What is left of a program that was killed when so many of its threads waited for locks or conditions.
fn stuck(program: &Path, threads: usize) -> Remains {
    let victim = Plan::new(program, &[]).start();
    let patience = Instant::now() + DEADLINE;
    let is_stuck = |ring: &Ring| {
        let is_wait = |state| matches!(state, Holding::Waiting | Holding::CondWait);
        let waits = |slot: &Slot| slot.held.iter().any(|held| is_wait(held.state));
        ring.slots.iter().filter(|slot| waits(slot)).count() == threads
    };
    while !victim.ring_now(&victim.ring_path()).is_ok_and(|ring| is_stuck(&ring)) {
        assert!(Instant::now() < patience, "all threads wait in the end");
        librip_test_kit::pause();
    }
    victim.killed()
}
