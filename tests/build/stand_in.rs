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
use librip_test_kit::tool::{self, Built, repository, tool};
use librip_test_kit::victim::{DEADLINE, Plan, torture};
use regex::Regex;

use crate::{compile_by, directory, fixture, librip, read_rip};

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
    assert!(findings.contains("START (0x"), "a once has the name of its static: {findings}");
}

/// Builds the example, whose workspace has the patch. `None` if cargo cannot download what it needs.
///
/// It goes to the main target directory, where most is built already.
fn patched_example() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target/tmp");
    let manifest = repository().join("examples/patched/Cargo.toml");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--locked", "--manifest-path"]).arg(&manifest);
    cargo.arg("--target-dir").arg(target).env_remove("CARGO_ENCODED_RUSTFLAGS");
    let built = cargo.output().unwrap();
    let said = String::from_utf8_lossy(&built.stderr);
    if said.contains("failed to download") {
        eprintln!("SKIPPED the patched example: {said}");
        return None;
    }
    let next =
        "if the lock file is old: cargo update --workspace --manifest-path examples/patched/Cargo.toml";
    assert!(built.status.success(), "{said}\n{next}");
    Some(target.join("debug/librip-example-patched"))
}

#[test]
fn a_deadlock_with_a_lock_of_an_unchanged_dependency_is_proven_with_the_lines_in_both() {
    let Some(program) = patched_example() else { return };
    let findings = findings_of_the_stuck(&program);
    assert!(findings.contains("proven deadlock: 2 threads wait for one another"), "{findings}");
    for expected in [
        r"waits for lock of registry\.rs:\d+ \(0x\w+\) at registry\.rs:\d+, held shared by .* at registry\.rs:\d+\n",
        r"waits for librip_example_patched::SESSIONS \(0x\w+\) at main\.rs:\d+, held by .* at main\.rs:\d+\n",
    ] {
        assert!(Regex::new(expected).unwrap().is_match(&findings), "{expected}: {findings}");
    }
}

/// What `check` says of a program that was killed when two of its threads waited for locks.
fn findings_of_the_stuck(program: &Path) -> String {
    let mut victim = Plan::new(program, &[]).start();
    let patience = Instant::now() + DEADLINE;
    let is_stuck = |ring: &Ring| {
        let waits = |slot: &Slot| slot.held.iter().any(|held| held.state == Holding::Waiting);
        ring.slots.iter().filter(|slot| waits(slot)).count() == 2
    };
    while !victim.ring_now(&victim.ring_path()).is_ok_and(|ring| is_stuck(&ring)) {
        assert!(Instant::now() < patience, "both threads wait in the end");
        std::thread::yield_now();
    }
    victim.kill();
    read_rip(&["check"], &victim.wait().ring_path())
}
