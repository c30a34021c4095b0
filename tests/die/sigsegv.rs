//! SIGSEGV. `build` repeats this on optimised code, where the compiler has a reason to move the load.

use crate::{check, plan};

#[test]
fn a_mark_directly_before_a_fault_is_in_the_ring_and_the_one_after_it_is_not() {
    let remains = plan(&["sigsegv"]).run();
    assert_eq!(remains.signal(), Some(libc::SIGSEGV));
    let ring = check(&remains, &["about to die"]);
    assert!(ring.sites.iter().any(|site| site.label == "survived"), "the other mark exists");
}
