//! Locks that are held when the process dies, in every way to hold one. One file for each topic.
//!
//! The storm writes what its threads truly hold into the progress file, in cells of its own: see [`storm`].

mod modes;
mod storm;
mod tables;
mod waits;

use librip::raw::Recorded;

use crate::common::{init, say};

type LotMutex = lock_api::Mutex<Recorded<parking_lot::RawMutex>, u64>;

pub(crate) fn main(arguments: &[&str]) {
    init();
    match arguments[0] {
        "storm" => storm::storm(arguments[1].parse().unwrap()),
        "wrapped" => tables::wrapped(),
        "overflow" => tables::overflow(),
        "full table" => tables::full_table(),
        "handed_over" => tables::handed_over(),
        "names" => tables::names(),
        "many_names" => tables::many_names(),
        "destroyed" => tables::destroyed(),
        "modes" => modes::modes(),
        "waits" => waits::waits(),
        "timed" => waits::timed(),
        "pairs" => waits::pairs(),
        "condition" => waits::condition(),
        other => panic!("no way {other}"),
    }
    std::process::exit(3);
}

/// Prints the address of a lock, which must not move afterwards.
fn say_address<T: ?Sized>(lock: &T) {
    say(&format!("{:x}", std::ptr::from_ref(lock).addr()));
}
