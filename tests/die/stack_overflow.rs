//! A stack that overflows.

use crate::{check_until_death, plan};

#[test]
fn every_level_of_a_recursion_that_overflowed_the_stack_is_in_the_ring() {
    let remains = plan(&["stack_overflow"]).run();
    assert_eq!(remains.signal(), Some(libc::SIGABRT));
    assert!(remains.stderr.contains("overflowed its stack"), "{remains:?}");
    check_until_death(&remains, "deeper");
}
