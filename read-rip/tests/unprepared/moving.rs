//! A program that runs at full speed, or lies, is read again and again: nothing is called proven that is not.
//!
//! `READ_RIP_READINGS` sets how often the healthy program is read; `scripts/torture` reads it ten thousand times.

use std::collections::HashSet;

use librip_test_kit::victim::{Plan, Victim};
use read_rip_evidence::process::live::LiveTarget;
use read_rip_evidence::stacks::Unwinder;
use read_rip_evidence::standing::Standings;
use read_rip_evidence::target::Target;
use read_rip_model::findings::{self, Confidence, Finding, Kind, Memo, Premise, View};
use read_rip_model::locations::{Location, Locations};
use read_rip_model::locks::{self, Input};
use read_rip_ring::Snapshot;
use read_rip_symbols::{FunctionNames, Options, Resolver};

use crate::support::setting;
use crate::support::unprepared::{Stuck, deadlocks};

/// A case of `programs/deadlocks.c` that is under way.
fn running(case: &str) -> Victim {
    let mut victim = Plan::new(deadlocks(), &[case]).start();
    assert_eq!(victim.line(), "runs");
    victim
}

/// Reads a process twice, without a pause, as `read-rip check` does, and so often. Calls `judge` with what is found.
fn read_again_and_again(pid: u32, times: u64, mut judge: impl FnMut(&[Finding])) {
    let live = LiveTarget::open(pid).unwrap();
    let first = live.target().unwrap();
    let memory = live.memory(&first.mappings);
    let options = || Options { debug_dirs: Vec::new(), ..Options::default() };
    let mut unwinder = Unwinder::new(&first, &memory, options());
    let mut names = FunctionNames::new(&first.modules, options());
    let snapshot = Snapshot::of_modules(first.modules.clone());
    let mut locations = Locations::new(&snapshot, Resolver::new(&first.modules, options()));
    let nobody = HashSet::new();
    for _ in 0..times {
        let target = Target { tasks: live.tasks_at_first().unwrap(), ..first.clone() };
        let mut seen = Standings::new(target, &memory, &mut unwinder, &mut names);
        seen.compare(live.tasks_again(&seen.target.tasks), &memory, 1);
        let input = Input {
            snapshot: &snapshot,
            earlier: None,
            window_ns: None,
            is_final: false,
            now_ns: None,
            latest_end_ns: None,
            alive_ns: None,
            living: &nobody,
            ended: &nobody,
            wants_steps: true,
            limits: Default::default(),
        };
        let mut model = locks::build(&input, &mut locations);
        locks::observe_all(&mut model, [&seen], &mut locations);
        let by_id: Vec<&Location> = locations.iter().collect();
        let view = View {
            now: &model,
            before: None,
            locations: &by_id,
            threshold_ns: u64::MAX,
            memo: Memo::default(),
        };
        judge(&findings::run(&view));
    }
}

#[test]
fn a_healthy_program_at_full_speed_is_in_no_deadlock() {
    let victim = running("healthy");
    let readings = setting("READ_RIP_READINGS", 300);
    read_again_and_again(victim.pid(), readings, |found| {
        let is_false =
            |finding: &Finding| finding.kind == Kind::Deadlock || finding.confidence == Confidence::Proven;
        assert!(!found.iter().any(is_false), "{found:#?}");
    });
}

#[test]
fn the_same_readings_find_a_deadlock() {
    let stuck = Stuck::start(deadlocks(), &["normal"], 2);
    read_again_and_again(stuck.0.pid(), 3, |found| {
        let proven =
            |finding: &Finding| (finding.kind, finding.confidence) == (Kind::Deadlock, Confidence::Proven);
        assert!(found.iter().any(proven), "{found:#?}");
    });
}

#[test]
fn a_cycle_that_time_limits_make_anew_is_never_proven() {
    let victim = running("patience");
    read_again_and_again(victim.pid(), setting("READ_RIP_READINGS", 300), |found| {
        assert!(found.iter().all(|finding| finding.confidence != Confidence::Proven), "{found:#?}");
    });
}

#[test]
fn what_forged_mutexes_seem_to_prove_names_its_premise() {
    let says_whom_it_trusts = |found: &[Finding]| {
        let proven = found.iter().filter(|finding| finding.confidence == Confidence::Proven);
        proven.inspect(|it| assert!(it.premises.contains(&Premise::MemoryIntact), "{it:#?}")).count()
    };
    let stuck = Stuck::start(deadlocks(), &["lies"], 2);
    // Here the lie cannot be log from the truth.
    read_again_and_again(stuck.0.pid(), 3, |found| assert_eq!(says_whom_it_trusts(found), 1, "{found:#?}"));
    let victim = running("restless-lies");
    read_again_and_again(victim.pid(), setting("READ_RIP_READINGS", 300), |found| {
        says_whom_it_trusts(found);
    });
}
