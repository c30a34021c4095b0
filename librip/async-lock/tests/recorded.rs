//! The locks behave as those of `async_lock` do, in a process that records.

mod semantics;

use std::sync::Once;

fn start() {
    static START: Once = Once::new();
    START.call_once(|| {
        librip::Builder::new().slots(256).keep(librip::Keep::Never).create().unwrap();
    });
    assert!(librip::is_recording());
}
