//! SIGKILL, from outside and from inside.

use crate::{check, plan};

#[test]
fn a_process_that_is_killed_leaves_every_mark_it_made() {
    let mut victim = plan(&["sigkill"]).start();
    victim.until("paused");
    victim.kill();
    let remains = victim.wait();
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
