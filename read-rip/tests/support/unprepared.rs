//! Programs that nothing prepares: no ring, no interposer, no marks. They are compiled here and get stuck.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Instant;

use librip_test_kit::tool::{can, tool};
use librip_test_kit::victim::{DEADLINE, Plan, Victim, shared_directory};
use read_rip_evidence::process::live::{self, LiveTarget};
use read_rip_evidence::target::{Futex, Sleep, Task};

use super::run::{Outcome, read_rip};

/// A directory for what a test binary compiles. It stays until the binary ends.
pub(crate) fn directory() -> &'static Path {
    shared_directory()
}

/// Compiles a source of `tests/programs`. `None` if the compiler cannot link with these flags.
pub(crate) fn compile(source: &str, name: &str, compiler: &str, flags: &[&str]) -> Option<PathBuf> {
    if !can(compiler, flags, directory()) {
        return None;
    }
    let program = directory().join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    tool(Command::new(compiler).args(flags).arg(source).arg("-o").arg(&program));
    Some(program)
}

/// Compiles a source of `tests/programs` in Rust.
pub(crate) fn compile_rust(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let program = directory().join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    tool(Command::new(rustc).args(["--edition", "2024"]).arg(source).arg("-o").arg(&program).args(flags));
    program
}

/// `programs/deadlocks.c`, linked with this machine's C library.
pub(crate) fn deadlocks() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let flags = ["-g", "-O1", "-pthread"];
        compile("deadlocks.c", "deadlocks", "cc", &flags).expect("a C compiler")
    })
}

/// A running program, some of whose threads wait for ever.
pub(crate) struct Stuck(pub(crate) Victim);

impl Stuck {
    /// Returns when so many threads sleep in a futex. They must not sleep in one on their way there.
    pub(crate) fn start(program: &Path, arguments: &[&str], sleepers: usize) -> Stuck {
        Stuck::start_until(program, arguments, sleepers, |_| true)
    }

    /// As [`Stuck::start`]. On their way there, threads may sleep with a time limit.
    pub(crate) fn start_untimed(program: &Path, arguments: &[&str], sleepers: usize) -> Stuck {
        Stuck::start_until(program, arguments, sleepers, |futex| !futex.is_timed)
    }

    fn start_until(
        program: &Path,
        arguments: &[&str],
        sleepers: usize,
        counts: impl Fn(&Futex) -> bool,
    ) -> Stuck {
        Stuck::start_plan_until(Plan::new(program, arguments), sleepers, counts)
    }

    /// As [`Stuck::start`], of a plan.
    pub(crate) fn start_plan(plan: Plan, sleepers: usize) -> Stuck {
        Stuck::start_plan_until(plan, sleepers, |_| true)
    }

    fn start_plan_until(plan: Plan, sleepers: usize, counts: impl Fn(&Futex) -> bool) -> Stuck {
        let stuck = Stuck(plan.start());
        stuck.until(|tasks| tasks.iter().filter_map(futex).filter(&counts).count() == sleepers);
        stuck
    }

    /// Returns when the threads are so.
    pub(crate) fn until(&self, are: impl Fn(&[Task]) -> bool) {
        until(self.0.pid(), are);
    }

    /// `read-rip COMMAND... PID`.
    pub(crate) fn read(&self, command: &[&str]) -> Outcome {
        let pid = self.0.pid().to_string();
        read_rip(command.iter().copied().chain([pid.as_str()]))
    }

    /// Asks `check` until it does not judge the process, because threads have waited for long. It finds nothing before.
    #[track_caller]
    pub(crate) fn not_judged(&self) -> Outcome {
        let began = Instant::now();
        loop {
            let outcome = self.read(&["check"]);
            if outcome.status == 3 {
                return outcome;
            }
            assert!(outcome.status == 0 && began.elapsed() < DEADLINE, "{outcome:#?}");
        }
    }

    /// What `check --json` finds: the objects of type `finding`.
    pub(crate) fn findings(&self) -> Vec<serde_json::Value> {
        self.read(&["check", "--json"]).data("finding")
    }
}

/// Returns when the threads of a process are so.
#[track_caller]
pub(crate) fn until(pid: u32, are: impl Fn(&[Task]) -> bool) {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let tasks = match LiveTarget::open(pid).and_then(|live| live.tasks()) {
            // Its first thread may end alone, at just this moment.
            Err(live::Error::Ended { .. }) => Vec::new(),
            tasks => tasks.unwrap_or_else(|error| panic!("{error}")),
        };
        if are(&tasks) {
            return;
        }
        assert!(Instant::now() < deadline, "{tasks:#?}");
        librip_test_kit::pause();
    }
}

/// What a thread sleeps in, if it is a futex.
pub(crate) fn futex(task: &Task) -> Option<Futex> {
    match task.sleep {
        Some(Sleep::Call(call)) => call.futex(),
        _ => None,
    }
}

/// The text has all of these parts.
#[track_caller]
pub(crate) fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

/// Asserts that a finding is a proven deadlock that says whom it trusts.
#[track_caller]
pub(crate) fn is_proven_deadlock(finding: &serde_json::Value) {
    assert_eq!(
        (&finding["kind"], &finding["confidence"]),
        (&"deadlock".into(), &"proven".into()),
        "{finding:#}"
    );
    let premises = finding["premises"].as_array().unwrap();
    assert!(premises.iter().any(|premise| premise["code"] == "memory-intact"), "{finding:#}");
}
