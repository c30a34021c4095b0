//! The locks behave as those of `async_lock` do, in a process that does not record.

mod semantics;

fn start() {
    assert!(!librip::is_recording());
}
