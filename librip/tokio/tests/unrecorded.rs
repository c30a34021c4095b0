//! The crate behaves as tokio does, in a process that does not record.

mod semantics;

fn start() {
    assert!(!librip::is_recording());
}
