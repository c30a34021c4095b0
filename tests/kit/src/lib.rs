//! What the tests of librip and read-rip share.
//!
//! * [`mod@format`] is one table of literal offsets and kinds. `oracle` and `builder` use it.
//! * [`oracle`] reads rings, strictly; [`builder`] writes them, and [`legacy`] writes rings in the legacy format.
//! * [`checksum`] computes the checksums of the format.
//! * [`mod@core`] writes core files of stuck processes.
//! * [`victim`] runs a program that may die, and [`progress`] is what such a program knows of its own marks.
//! * [`scribble`] is the hostile process that writes into a ring in use.
//! * [`run`] runs a program under a time limit and keeps what it wrote; [`tool`] runs compilers; [`tmux`] is a
//!   terminal; [`reader`] finds `read-rip`.
//!
//! The kit depends neither on librip nor on read-rip. `librip_format` is only compared with the table.

#![allow(missing_docs, reason = "a name that says it all has no comment")]

pub mod builder;
pub mod checksum;
pub mod core;
pub mod format;
pub mod legacy;
pub mod oracle;
pub mod progress;
pub mod reader;
pub mod run;
pub mod scribble;
pub mod tmux;
pub mod tool;
pub mod victim;

use std::path::Path;

/// Pseudo-random numbers, the same in each run: splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom
/// number generators", OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    #[expect(clippy::should_implement_trait, reason = "it never ends, so it is not an iterator")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// Waits a moment before a test asks again what another process does, and leaves the processor to that process.
pub fn pause() {
    std::thread::sleep(std::time::Duration::from_millis(1));
}

/// Compresses bytes into a file.
pub fn gzip(bytes: &[u8], path: &Path) {
    use std::io::Write;
    let file = std::fs::File::create(path).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap();
}

/// Maps a file for reading and writing, shared with every other process that maps it.
pub fn map(path: &Path) -> memmap2::MmapRaw {
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    memmap2::MmapOptions::new().map_raw(&file).unwrap()
}

/// A number from the environment, or the default. Longer runs set such a variable.
pub fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")),
        Err(_) => default,
    }
}
