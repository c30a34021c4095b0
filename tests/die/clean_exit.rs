//! Regular exits: when the ring stays, and what its header says.

use librip_test_kit::victim::Remains;

use crate::{check, plan};

fn run(arguments: &[&str], keep: Option<&str>) -> Remains {
    let mut plan = plan(arguments);
    if let Some(keep) = keep {
        plan = plan.env("RIP_KEEP", keep);
    }
    plan.run()
}

#[test]
fn a_clean_exit_removes_the_ring() {
    for arguments in [&["exit", "0"][..], &["return"]] {
        let remains = run(arguments, None);
        assert_eq!(remains.status.code(), Some(0));
        assert_eq!(remains.files(), ["progress"]);
    }
}

#[test]
fn exit_status_3_leaves_the_ring_with_that_status_in_it() {
    let remains = run(&["exit", "3"], None);
    assert_eq!(remains.status.code(), Some(3));
    assert_eq!(check(&remains, &[]).exit_status, Some(3));
}

#[test]
fn the_operator_decides_whether_the_ring_stays() {
    for (status, keep, stays) in [
        ("0", "always", true),
        ("3", "always", true),
        ("0", "never", false),
        ("3", "never", false),
        ("0", "failure", false),
        ("3", "failure", true),
    ] {
        let remains = run(&["exit", status], Some(keep));
        assert_eq!(remains.status.code(), status.parse().ok());
        assert_eq!(remains.has_ring(), stays, "status {status}, RIP_KEEP={keep}");
        if stays {
            assert_eq!(check(&remains, &[]).exit_status, status.parse().ok());
        }
    }
}

#[test]
fn a_process_that_is_killed_leaves_its_ring_even_if_told_never_to_keep_it() {
    let remains = run(&["abort"], Some("never"));
    assert_eq!(remains.signal(), Some(libc::SIGABRT));
    check(&remains, &["about to die"]);
}
