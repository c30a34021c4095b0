//! Verdicts on async tasks, of a living process and of one that was killed. The modules are those of the scenarios.

mod channels;
mod crowds;
mod locks;
mod published;
mod unrecorded;
mod unspawned;
mod workers;

use librip_test_kit::victim::{Plan, Victim};

use super::ask::{Answer, check};

fn plan(scenario: &str) -> Plan {
    Plan::new(env!("CARGO_BIN_EXE_tasks"), &[scenario])
}

fn started(plan: Plan) -> Victim {
    let mut victim = plan.start();
    victim.until("ready");
    victim
}

/// Asserts what `check` finds first, while the process lives and after it was killed.
#[track_caller]
fn finds(scenario: &str, found: &[&str], judge: impl Fn(&Answer)) {
    let victim = started(plan(scenario));
    let mut answer = check(&victim.ring_path(), &[]);
    if answer.findings.is_empty() {
        // A task says that it waits in its last poll. On a busy machine, that poll ended during the first check.
        answer = check(&victim.ring_path(), &[]);
    }
    assert!(answer.findings.iter().take(1).eq(found), "{scenario}: {answer:#?}");
    judge(&answer);
    let remains = victim.killed();
    let answer = check(&remains.ring_path(), &[]);
    assert!(answer.findings.iter().take(1).eq(found), "{scenario}: {answer:#?}");
    judge(&answer);
}
