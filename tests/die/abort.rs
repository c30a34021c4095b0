//! `abort`.

use crate::{check, plan};

#[test]
fn an_aborted_process_leaves_every_mark_it_made() {
    let remains = plan(&["abort"]).run();
    assert_eq!(remains.signal(), Some(libc::SIGABRT));
    assert_eq!(check(&remains, &["about to die"]).exit_status, None);
}
