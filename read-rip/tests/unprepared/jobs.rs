//! Pools of threads: if all jobs of one waited for jobs of the same pool, the process was called sound, because another
//! of its threads moved.
//!
//! `programs/jobs.c` and `jobs.rs` have the threads.

use std::path::{Path, PathBuf};
use std::time::Instant;

use librip_test_kit::victim::DEADLINE;

use crate::support::run::read_rip;
use crate::support::unprepared::{Stuck, compile, compile_rust, contains};

fn c(flags: &str) -> PathBuf {
    compile("jobs.c", &format!("jobs-c{flags}"), "cc", &["-g", flags, "-pthread"]).expect("a C compiler")
}

fn rust(flags: &[&str]) -> PathBuf {
    compile_rust("jobs.rs", &format!("jobs-rust{}", flags.concat()), flags)
}

fn start(program: &Path, case: &str) -> Stuck {
    Stuck::start_untimed(program, &[case], 2)
}

#[test]
fn a_pool_whose_jobs_all_wait_is_not_called_sound() {
    let programs = [c("-O2"), rust(&["-g", "-O"])];
    let stuck: Vec<Stuck> = programs.iter().map(|program| start(program, "stuck")).collect();
    let healthy = programs.iter().flat_map(|program| ["idle", "one"].map(|case| start(program, case)));
    let getters = ["source", "two"].map(|case| start(&programs[0], case));
    let healthy: Vec<Stuck> = healthy.chain(getters).collect();
    for one in &stuck {
        let check = one.not_judged().stdout;
        contains(
            &check,
            &[
                "not judged: both threads that run jobs at ",
                "works jobs.",
                " wait within their jobs, for at least ",
                "needs_another jobs.",
                ": if it needs a job that has not begun, no thread is left to run that",
            ],
        );
    }
    // On a busy machine, the thread that ticks may run in a reading.
    let began = Instant::now();
    let is_told = |all: &str, one: &Stuck| {
        let of_one = format!("[{}]", one.0.pid());
        let line = all.lines().find(|line| line.contains(&of_one));
        line.is_some_and(|line| line.contains("not judged: both threads that run jobs"))
    };
    loop {
        let all = read_rip(["check", "--all", "--json"]).stdout;
        if stuck.iter().all(|one| is_told(&all, one)) {
            break;
        }
        assert!(began.elapsed() < DEADLINE, "{all}");
    }
    for one in &healthy {
        let check = one.read(&["check"]);
        assert_eq!(check.status, 0, "a thread of the pool is free: {check:#?}");
    }
}

/// Nothing names the function of such workers. Those that waited for their turn were suspected after a while.
#[test]
fn idle_workers_whose_code_is_in_a_function_of_the_language_are_no_finding() {
    let stuck = start(&rust(&["-O"]), "turns");
    let began = Instant::now();
    loop {
        let check = stuck.read(&["check", "--threshold", "500ms", "--json"]);
        assert_eq!(check.status, 0, "{check:#?}");
        let lines = check.json();
        let waited = lines.iter().find_map(|line| line["data"]["balance"]["longest_wait_ns"].as_u64());
        if waited.is_some_and(|ns| ns >= 1_000_000_000) {
            return;
        }
        assert!(began.elapsed() < DEADLINE, "{lines:#?}");
    }
}
