//! [`park`]: the ring says that a thread waits to be woken.

#![allow(unsafe_code, reason = "sites are assembly")]

use core::panic::Location;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;
use std::thread;

use crate::lock::record;
use crate::lock::site::{Flags, define_sites};
use crate::lock::table::Slot;
use librip_format::{LOCK_TYPE_WAKE, SITE_LOCK_TYPE_SHIFT, SITE_TRY};

define_sites!(Sites);

const WAKE: Flags = LOCK_TYPE_WAKE << SITE_LOCK_TYPE_SHIFT;
const WAKE_IN_TIME: Flags = WAKE | SITE_TRY;

/// The calling thread's id; 0 if the thread does not record.
fn own_id() -> u64 {
    // ORDERING: relaxed: the thread wrote it with its claim.
    Slot::current().map_or(0, |slot| slot.header().tid.load(Relaxed).into())
}

/// See [`std::thread::park`]. The ring says that the thread waits to be woken.
///
/// # Examples
///
/// ```
/// use librip::thread;
///
/// let sleeper = thread::spawn(thread::park);
/// sleeper.thread().unpark();
/// sleeper.join().unwrap();
/// ```
#[inline(always)]
#[track_caller]
pub fn park() {
    record::block(Sites::<WAKE>(Location::caller()), own_id(), thread::park, |()| true);
}

/// See [`std::thread::park_timeout`].
#[inline(always)]
#[track_caller]
pub fn park_timeout(dur: Duration) {
    // The standard library does not say which of the two has ended it.
    let wait = || thread::park_timeout(dur);
    record::block(Sites::<WAKE_IN_TIME>(Location::caller()), own_id(), wait, |()| true);
}

/// See [`std::thread::park_timeout_ms`].
#[deprecated(note = "replaced by `park_timeout`, as in the standard library")]
#[inline(always)]
#[track_caller]
pub fn park_timeout_ms(ms: u32) {
    park_timeout(Duration::from_millis(u64::from(ms)));
}
