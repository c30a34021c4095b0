//! The marks that a victim has certainly stored: one cell per thread in a second shared file.
//!
//! The victim stores its mark and then, with a plain store, its new count. A test that kills it and reads both
//! files knows: the first `marks` marks are in the ring, one more may be, and nothing else is.
//! Nothing here depends on librip.

#![allow(unsafe_code, reason = "a shared mapping is raw memory")]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Number of threads in a file.
pub const CELLS: usize = 16_384;

/// The thread has not started.
pub const UNUSED: u64 = 0;
/// The thread marks, or is about to.
pub const RUNNING: u64 = 1;
/// The thread makes no more marks.
pub const FINISHED: u64 = 2;

/// One thread's progress. A thread is named `w` and its cell's index.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Cell {
    /// [`UNUSED`], [`RUNNING`] or [`FINISHED`].
    pub state: AtomicU64,
    /// Its thread id.
    pub tid: AtomicU64,
    /// How many marks it has certainly made.
    pub marks: AtomicU64,
    /// For the test's own use.
    pub extra: AtomicU64,
}

/// Opens the progress file, creates it if necessary, and maps it permanently.
///
/// # Panics
///
/// When the file cannot be made or mapped.
pub fn map(path: &Path) -> &'static [Cell] {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap();
    let len = CELLS * size_of::<Cell>();
    file.set_len(len as u64).unwrap();
    // SAFETY: a new mapping of a file of this length.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    assert_ne!(start, libc::MAP_FAILED);
    // SAFETY: the mapping has this length, stays, begins at a page, and holds atomics for which all bits do.
    unsafe { std::slice::from_raw_parts(start.cast::<Cell>(), CELLS) }
}

/// A copy of the cells of a file whose process is dead: state, tid, marks, extra.
///
/// # Panics
///
/// When the file cannot be read.
pub fn read(path: &Path) -> Vec<[u64; 4]> {
    let mut cells = read_all(path);
    while cells.last().is_some_and(|cell| cell[0] == UNUSED) {
        cells.pop();
    }
    cells
}

/// As [`read`], unused cells included.
///
/// # Panics
///
/// When the file cannot be read.
pub fn read_all(path: &Path) -> Vec<[u64; 4]> {
    let bytes = std::fs::read(path).unwrap();
    let mut cells = Vec::new();
    for chunk in bytes.chunks_exact(32) {
        let field = |at: usize| u64::from_le_bytes(chunk[at..at + 8].try_into().unwrap());
        cells.push([field(0), field(8), field(16), field(24)]);
    }
    cells
}

/// As [`read`]. Empty if there is no file yet.
pub fn read_if_there(path: &Path) -> Vec<[u64; 4]> {
    if path.exists() { read(path) } else { Vec::new() }
}

impl Cell {
    /// Counts one more mark.
    pub fn advance(&self) {
        // Only this thread writes the cell, so a load and a store suffice. The mark before it is a compiler
        // barrier, and stores reach the file in program order.
        self.marks.store(self.marks.load(Relaxed) + 1, Relaxed);
    }
}
