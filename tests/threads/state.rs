//! What a first mark must not change, and how a thread names itself.

use crate::{ended, plan, run};

#[test]
fn a_thread_can_name_itself_before_its_first_mark_and_after() {
    let ring = run(&["name"]).ring();
    let long = ring.slot_named("a name of more than 40 bytes, which is w");
    assert_eq!(ring.labels(long), ["named first"]);
    let renamed = ring.slot_named("new name");
    assert_eq!(ring.labels(renamed), ["marked first", "named"]);
    assert!(long.is_named && renamed.is_named);
}

#[test]
fn a_first_mark_keeps_errno_with_and_without_a_slot() {
    let remains = ended(plan(&["errno"]).env("RIP_SLOTS", "2").run());
    assert_eq!(remains.stdout, "errno was kept\n");
    let ring = remains.ring();
    assert_eq!(ring.refused_full, 2, "four sleepers, two slots");
    assert_eq!(ring.slots_reused, 3, "three threads and two sleepers, two slots");
}

#[test]
fn no_register_is_changed_by_a_first_mark() {
    let remains = run(&["registers"]);
    assert_eq!(remains.stdout, "registers were kept\n");
    let ring = remains.ring();
    let thread = ring.slot_named("thread");
    assert_eq!(ring.labels(thread), ["after all that"]);
    assert!(!thread.is_named, "it has the kernel's name");
}
