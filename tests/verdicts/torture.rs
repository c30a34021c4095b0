//! A healthy program at full speed, checked again and again: no deadlock is ever reported.

use super::ask::{check, start};
use librip_test_kit::victim::torture;

/// `RIP_TORTURE` multiplies the rounds.
#[test]
fn no_cycle_is_reported_in_a_healthy_program() {
    let victim = start("ordered");
    for _ in 0..8 * torture() {
        let answer = check(&victim.ring_path(), &["--window", "1ms"]);
        let wrong: Vec<_> =
            answer.findings.iter().filter(|finding| !finding.starts_with("suspected")).collect();
        assert!(wrong.is_empty(), "{answer:#?}");
        assert!(answer.status < 2, "{answer:#?}");
    }
}
