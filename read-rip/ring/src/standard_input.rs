//! Standard input as a file: a ring is read at any offset, and more than once.
//!
//! It does not look at what it copies.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Mutex, PoisonError};

use nix::sys::memfd::{MFdFlags, memfd_create};

/// No more than this is copied, bytes.
const MAX_BYTES: u64 = 4 << 30;

/// A page that is all zeros stays a hole.
const PAGE_BYTES: usize = 4096;

/// Returns standard input, or what it contained when this was first called, at its beginning.
///
/// # Errors
///
/// Those of reading, and of a system without memory.
pub(super) fn open() -> io::Result<File> {
    static COPY: Mutex<Option<File>> = Mutex::new(None);
    let mut kept = COPY.lock().unwrap_or_else(PoisonError::into_inner);
    let copy = match kept.take() {
        Some(copy) => copy,
        None => copy(io::stdin().lock(), MAX_BYTES)?,
    };
    // Both have one position, and the next call begins at the start again.
    let mut file = copy.try_clone()?;
    *kept = Some(copy);
    file.rewind()?;
    Ok(file)
}

/// Copies a stream into memory that is read as a file.
fn copy(mut stream: impl Read, limit_bytes: u64) -> io::Result<File> {
    let mut file = File::from(memfd_create(c"standard input", MFdFlags::MFD_CLOEXEC)?);
    let mut page = Vec::with_capacity(PAGE_BYTES);
    let mut len_bytes = 0;
    loop {
        page.clear();
        let got = stream.by_ref().take(PAGE_BYTES as u64).read_to_end(&mut page)?;
        if got == 0 || len_bytes >= limit_bytes {
            break;
        }
        len_bytes += got as u64;
        if page.iter().all(|&byte| byte == 0) {
            file.seek(SeekFrom::Start(len_bytes))?;
        } else {
            file.write_all(&page)?;
        }
    }
    file.set_len(len_bytes)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_copied_stream_is_equal_and_its_zeros_are_holes() {
        let mut bytes = vec![0; 100 * PAGE_BYTES + 7];
        bytes[50 * PAGE_BYTES] = 1;
        let mut file = copy(&bytes[..], MAX_BYTES).unwrap();
        assert!(file.metadata().unwrap().blocks() * 512 < 10 * PAGE_BYTES as u64);
        file.rewind().unwrap();
        let mut found = Vec::new();
        file.read_to_end(&mut found).unwrap();
        assert!(found == bytes);
    }

    #[test]
    fn an_endless_stream_is_cut() {
        let file = copy(io::repeat(7), 2 * PAGE_BYTES as u64).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 2 * PAGE_BYTES as u64);
    }
}
