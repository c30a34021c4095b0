//! What the reader's tests share: rings made by hand, and the program run under supervision.
//!
//! Nothing here uses `librip_format`: a mistake there must not be repeated by the tests.

#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) mod ancestor;
pub(crate) mod fixture;
pub(crate) mod run;
pub(crate) mod synth;

/// Pseudo-random numbers, the same in each run: splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom
/// number generators", OOPSLA 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// Compresses bytes into a file.
pub(crate) fn gzip(bytes: &[u8], path: &std::path::Path) {
    use std::io::Write;
    let file = std::fs::File::create(path).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap();
}

/// Maps a file, shared with whoever reads it.
pub(crate) fn map(path: &std::path::Path) -> memmap2::MmapRaw {
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    memmap2::MmapOptions::new().map_raw(&file).unwrap()
}

/// A number from the environment, or the default: longer runs are asked for there.
pub(crate) fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")),
        Err(_) => default,
    }
}
