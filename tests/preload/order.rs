//! What `read-rip check` finds in programs with certain cycles and misuse, and in healthy ones that look like them.

use crate::{compile, plan, preload, read_rip};

/// Runs a story until it is told, and kills it. Returns what `check` says of the living and of the dead process.
fn told(story: &str) -> [String; 2] {
    let mut victim = plan(&compile("order", &[]), &[story], &[preload()]).start();
    assert_eq!(victim.line(), "ready");
    let alive = read_rip(&["check", "--threshold", "1h"], &victim.ring_path());
    victim.kill();
    [alive, read_rip(&["check", "--threshold", "1h"], &victim.wait().ring_path())]
}

#[test]
fn a_thread_that_waits_on_a_condition_cannot_return_without_the_mutex() {
    for found in told("cycle through a condition") {
        assert!(found.contains("proven deadlock: 2 threads wait for one another"), "{found}");
        assert!(found.contains("waits on a condition at waits order.c:"), "{found}");
        assert!(found.contains(" and needs inner (0x"), "{found}");
    }
}

#[test]
fn a_thread_with_more_locks_than_its_table_has_entries_still_waits() {
    for found in told("cycle with forty") {
        assert!(found.contains("proven deadlock: 2 threads wait for one another"), "{found}");
        assert!(found.contains("waits for outer (0x"), "{found}");
    }
}
