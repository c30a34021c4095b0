//! `exec`: the old program ends.

use crate::{check, plan};

#[test]
fn a_process_that_becomes_another_program_leaves_every_mark_it_made() {
    let remains = plan(&["exec"]).run();
    assert_eq!(remains.status.code(), Some(0));
    assert_eq!(check(&remains, &["about to die"]).exit_status, None);
}
