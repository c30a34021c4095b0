//! `_exit`: status 0, and no exit handler runs.

use crate::{check, plan};

#[test]
fn a_process_that_calls_underscore_exit_leaves_the_ring_without_an_exit_status() {
    let remains = plan(&["_exit"]).run();
    assert_eq!(remains.status.code(), Some(0));
    assert_eq!(check(&remains, &["about to die"]).exit_status, None);
}
