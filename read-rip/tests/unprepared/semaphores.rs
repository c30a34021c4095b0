//! Semaphores that are used as locks: threads that took two in opposite orders were called sound if another thread of
//! the process waited for input.
//!
//! `programs/semaphores.c` has the threads.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Instant;

use librip_test_kit::victim::{DEADLINE, tempdir};

use super::cores::gcore;
use crate::support::run::{Outcome, read_rip, show};
use crate::support::unprepared::{Stuck, compile, contains};

/// Without optimisation, and with it.
const LEVELS: [&str; 2] = ["-O0", "-O2"];

fn start(level: usize, case: &str) -> Stuck {
    static PROGRAMS: [OnceLock<PathBuf>; 2] = [const { OnceLock::new() }; 2];
    let program = PROGRAMS[level].get_or_init(|| {
        let name = format!("semaphores{}", LEVELS[level]);
        compile("semaphores.c", &name, "cc", &["-g", LEVELS[level], "-pthread"]).expect("a C compiler")
    });
    Stuck::start_untimed(program, &[case], 2)
}

/// Asks until there is a finding: the threads have waited for a second then.
fn found(stuck: &Stuck) -> Outcome {
    let began = Instant::now();
    loop {
        let outcome = stuck.read(&["check"]);
        if outcome.status == 1 {
            return outcome;
        }
        assert!(outcome.status == 0 && began.elapsed() < DEADLINE, "{outcome:#?}");
    }
}

#[test]
fn threads_that_take_semaphores_in_opposite_orders_beside_input_are_suspected() {
    if !cfg!(target_arch = "x86_64") {
        eprintln!("SKIPPED semaphores as locks: the reader does not decode this code");
        return;
    }
    let healthy = ["held", "limited", "pairs", "turns"].map(|case| start(1, case));
    let cases = [
        (1, "names", "paper"),
        (1, "arguments", "accounts"),
        (1, "made", "made+0x"),
        (0, "arguments", "accounts"),
    ];
    let stuck = cases.map(|(level, case, object)| (start(level, case), object));
    for (one, object) in &stuck {
        let check = found(one);
        let what = "suspected deadlock: 2 threads wait for one another";
        contains(&check.stdout, &[what, "doubt: a semaphore stores no owner: this thread has taken a unit"]);
        contains(&check.stdout, &[&format!("] is presumed to hold {object}")]);
    }
    // A thread that was stopped has run since, and the last look was one: that took these findings away.
    for command in [&["check", "--stop"][..], &["check"]] {
        let check = stuck[0].0.read(command);
        assert_eq!(check.status, 1, "{check:#?}");
    }
    // They have waited for longer than those that are stuck.
    for one in &healthy {
        one.read(&["check"]).sound();
    }
    let outcome = read_rip(["check", "--all"]);
    let of_one = format!("[{}]", stuck[0].0.0.pid());
    let is_found = |line: &str| line.contains(&of_one) && line.contains("suspected deadlock");
    assert!(outcome.stdout.lines().any(is_found), "{outcome:#?}");
}

#[test]
fn the_core_of_threads_that_took_semaphores_in_opposite_orders_says_the_same() {
    let test = "the_core_of_threads_that_took_semaphores_in_opposite_orders_says_the_same";
    for (case, status) in [("arguments", 1), ("limited", 0)] {
        let directory = tempdir();
        let stuck = start(1, case);
        let Some(core) = gcore(&stuck, directory.path(), test) else { return };
        let answer = show(&["check"], &core);
        assert_eq!(answer.status, if cfg!(target_arch = "x86_64") { status } else { 0 }, "{answer:#?}");
    }
}
