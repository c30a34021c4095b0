//! A panic in `main`: an exit with status 101.

use crate::{check, plan};

#[test]
fn a_panic_in_main_leaves_the_ring_with_its_exit_status() {
    let remains = plan(&["panic"]).run();
    assert_eq!(remains.status.code(), Some(101));
    assert!(remains.stderr.contains("as the test wishes"), "{remains:?}");
    assert_eq!(check(&remains, &["about to die"]).exit_status, Some(101));
}
