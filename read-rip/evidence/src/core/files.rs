//! `NT_FILE`: which files were mapped, and where.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A part of a file that was mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct File {
    pub(super) begin: u64,
    pub(super) end: u64,
    /// The offset of `begin` in the file, bytes.
    pub(super) offset: u64,
    pub(super) path: PathBuf,
    pub(super) is_deleted: bool,
    /// The same number for the same path.
    pub(super) number: u64,
}

/// The bytes of a range: begin, end, and offset in pages.
const RANGE_LEN: usize = 24;

/// Reads the note: a count, the length of a page, the ranges, and a path for each. By address.
pub(super) fn files(note: &[u8]) -> Vec<File> {
    let word = |at: usize| -> Option<u64> {
        Some(u64::from_le_bytes(note.get(at..at.checked_add(8)?)?.try_into().ok()?))
    };
    let (Some(count), Some(page)) = (word(0), word(8)) else { return Vec::new() };
    let names_at =
        usize::try_from(count).ok().and_then(|count| count.checked_mul(RANGE_LEN)?.checked_add(16));
    let Some(names) = names_at.and_then(|at| note.get(at..)) else { return Vec::new() };
    let mut numbers = std::collections::HashMap::new();
    let of_name = |(index, name): (usize, &[u8])| {
        let at = 16 + index * RANGE_LEN;
        let (path, is_deleted) = match name.strip_suffix(b" (deleted)") {
            Some(path) => (path, true),
            None => (name, false),
        };
        let next = numbers.len() as u64 + 1;
        let number = *numbers.entry(name.to_vec()).or_insert(next);
        let (begin, end) = (word(at)?, word(at + 8)?);
        let offset = word(at + 16)?.checked_mul(page)?;
        let path = PathBuf::from(OsStr::from_bytes(path));
        (begin < end && !name.is_empty()).then_some(File { begin, end, offset, path, is_deleted, number })
    };
    let names = names.split(|&byte| byte == 0).take(count as usize);
    let mut files: Vec<File> = names.enumerate().filter_map(of_name).collect();
    files.sort_by_key(|file| file.begin);
    files
}
