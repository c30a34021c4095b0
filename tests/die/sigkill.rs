//! SIGKILL, from outside and from inside.

use std::path::{Path, PathBuf};

use librip_test_kit::oracle::Ring;
use librip_test_kit::victim::tempdir;

use crate::{check, plan};

#[test]
fn a_process_that_is_killed_leaves_every_mark_it_made() {
    let mut victim = plan(&["sigkill"]).start();
    victim.until("paused");
    let remains = victim.killed();
    assert_eq!(remains.signal(), Some(libc::SIGKILL));
    let ring = check(&remains, &["about to die"]);
    assert_eq!(ring.exit_status, None);
}

#[test]
fn a_process_that_kills_itself_directly_after_a_mark_leaves_that_mark() {
    let remains = plan(&["sigkill_self"]).run();
    assert_eq!(remains.signal(), Some(libc::SIGKILL));
    check(&remains, &["about to die"]);
}

/// The rings in a directory, the earlier ones first.
fn rings(directory: &Path) -> Vec<(u64, PathBuf)> {
    let mut rings: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (Ring::read(&path).unwrap().slots.iter().map(|slot| slot.claimed_ns).min().unwrap(), path)
        })
        .collect();
    rings.sort();
    rings
}

#[test]
fn a_crash_loop_keeps_the_first_rings_and_the_last_and_those_of_the_living() {
    for (wish, keep) in [("rings/", "failure"), ("rings/fixed", "failure"), ("rings/", "always")] {
        let shared = tempdir();
        std::fs::create_dir(shared.path().join("rings")).unwrap();
        let directory = shared.path().join("rings");
        let mut made = Vec::new();
        let mut living = None;
        for run in 0..24 {
            let plan = plan(&[if run == 6 { "sigkill" } else { "sigkill_self" }]);
            let plan = plan.env("RIP_RING", shared.path().join(wish)).env("RIP_KEEP", keep);
            if run == 6 {
                let mut victim = plan.start();
                victim.until("paused");
                living = Some(victim);
            } else {
                assert_eq!(plan.run().signal(), Some(libc::SIGKILL));
            }
            let now = rings(&directory);
            made.push(now.last().unwrap().0);
            assert!(now.len() <= 17 || keep == "always", "{wish}: {} rings", now.len());
        }
        let left: Vec<u64> = rings(&directory).iter().map(|ring| ring.0).collect();
        let mut expected = made.clone();
        if keep != "always" {
            expected.retain(|ring| made[..4].contains(ring) || *ring == made[6] || made[12..].contains(ring));
        }
        assert_eq!(left, expected, "{wish}, {keep}");
        living.unwrap().kill();
    }
}
