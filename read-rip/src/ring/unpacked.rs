//! Unpacked bytes in memory, without their pages of zeros.
//!
//! Rings are sparse files, so most of an unpacked copy is zeros. So is most of what a file made to exhaust memory
//! unpacks to. This file knows no compression: it reads a stream.

use std::io::{self, ErrorKind, Read};

const PAGE_BYTES: usize = 4096;

type Page = [u8; PAGE_BYTES];

/// Bytes that are read at any offset, as those of a file.
#[derive(Debug, Default)]
pub(super) struct Unpacked {
    /// `None` is a page of zeros.
    pages: Vec<Option<Box<Page>>>,
    len_bytes: u64,
}

impl Unpacked {
    /// Appends the bytes of a stream, up to a total of `limit_bytes`. Returns whether that was the whole stream.
    ///
    /// # Errors
    ///
    /// Those of the stream. The bytes before the error are kept.
    pub(super) fn append(&mut self, mut stream: impl Read, limit_bytes: u64) -> io::Result<bool> {
        let mut page = [0; PAGE_BYTES];
        while self.len_bytes < limit_bytes {
            let (got, result) = fill(&mut stream, &mut page);
            page[got..].fill(0);
            if got > 0 {
                self.pages.push((page != [0; PAGE_BYTES]).then(|| Box::new(page)));
                self.len_bytes += got as u64;
            }
            result?;
            if got < PAGE_BYTES {
                return Ok(true);
            }
        }
        Ok(stream.read(&mut page)? == 0)
    }

    /// This many bytes, all zero.
    pub(super) fn zeros(len_bytes: u64) -> Unpacked {
        let mut pages = Vec::new();
        pages.resize_with(len_bytes.div_ceil(PAGE_BYTES as u64) as usize, || None);
        Unpacked { pages, len_bytes }
    }

    /// Sets bytes. What would be after the end is left out.
    pub(super) fn set(&mut self, offset: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let Some(at) = offset.checked_add(done as u64).filter(|&at| at < self.len_bytes) else { return };
            let within = (at % PAGE_BYTES as u64) as usize;
            let count = (PAGE_BYTES - within).min(bytes.len() - done);
            let page = &mut self.pages[(at / PAGE_BYTES as u64) as usize];
            let page = page.get_or_insert_with(|| Box::new([0; PAGE_BYTES]));
            page[within..within + count].copy_from_slice(&bytes[done..done + count]);
            done += count;
        }
    }

    pub(super) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Copies bytes from `offset`. Returns the number of bytes copied.
    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> usize {
        let len = (buffer.len() as u64).min(self.len_bytes.saturating_sub(offset)) as usize;
        let mut done = 0;
        while done < len {
            let at = offset as usize + done;
            let (page, within) = (at / PAGE_BYTES, at % PAGE_BYTES);
            let count = (PAGE_BYTES - within).min(len - done);
            let target = &mut buffer[done..done + count];
            match &self.pages[page] {
                Some(bytes) => target.copy_from_slice(&bytes[within..within + count]),
                None => target.fill(0),
            }
            done += count;
        }
        len
    }

    /// The next part at or after `offset` that is not all zeros, as start and end.
    pub(super) fn next_data(&self, offset: u64) -> Option<(u64, u64)> {
        let page = |offset: u64| (offset / PAGE_BYTES as u64) as usize;
        let from = page(offset.min(self.len_bytes));
        let begin = from + self.pages.get(from..)?.iter().position(Option::is_some)?;
        let end = begin + self.pages[begin..].iter().take_while(|page| page.is_some()).count();
        let begin = (begin * PAGE_BYTES) as u64;
        let end = (end * PAGE_BYTES) as u64;
        Some((begin.max(offset), end.min(self.len_bytes))).filter(|(begin, end)| begin < end)
    }
}

/// Reads until the page is full, the stream ends, or an error occurs. Returns the number of bytes read.
fn fill(stream: &mut impl Read, page: &mut Page) -> (usize, io::Result<()>) {
    let mut got = 0;
    while got < page.len() {
        match stream.read(&mut page[got..]) {
            Ok(0) => break,
            Ok(count) => got += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (got, Err(error)),
        }
    }
    (got, Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appended_bytes_are_read_back_and_zeros_are_holes() {
        let mut bytes = vec![0; 5 * PAGE_BYTES + 7];
        bytes[10] = 1;
        bytes[3 * PAGE_BYTES] = 2;
        bytes[5 * PAGE_BYTES + 6] = 3;
        let mut unpacked = Unpacked::default();
        assert!(unpacked.append(&bytes[..], 1 << 20).unwrap());
        assert_eq!(unpacked.len_bytes(), bytes.len() as u64);
        let page = PAGE_BYTES as u64;
        assert_eq!(unpacked.next_data(0), Some((0, page)));
        assert_eq!(unpacked.next_data(9), Some((9, page)));
        assert_eq!(unpacked.next_data(page), Some((3 * page, 4 * page)));
        assert_eq!(unpacked.next_data(4 * page + 1), Some((5 * page, 5 * page + 7)));
        assert_eq!(unpacked.next_data(5 * page + 7), None);
        assert_eq!(unpacked.next_data(u64::MAX), None);
        for offset in [0, 1, 4095, 4096, 9000, 5 * PAGE_BYTES, bytes.len(), bytes.len() + 1] {
            let mut buffer = vec![9; 2 * PAGE_BYTES];
            let got = unpacked.read_at(&mut buffer, offset as u64);
            assert_eq!(buffer[..got], bytes[offset.min(bytes.len())..][..got]);
            assert_eq!(got, (bytes.len().saturating_sub(offset)).min(2 * PAGE_BYTES));
        }
    }

    #[test]
    fn bytes_that_were_set_are_read_back() {
        let mut unpacked = Unpacked::zeros(3 * PAGE_BYTES as u64 + 5);
        unpacked.set(4000, &[7; 200]);
        unpacked.set(3 * PAGE_BYTES as u64, &[8; 100]);
        unpacked.set(u64::MAX - 3, &[9; 100]);
        assert_eq!(unpacked.next_data(0), Some((0, 2 * PAGE_BYTES as u64)));
        let mut all = vec![1; 4 * PAGE_BYTES];
        assert_eq!(unpacked.read_at(&mut all, 0), 3 * PAGE_BYTES + 5);
        assert_eq!((all[3999], all[4000], all[4199], all[4200]), (0, 7, 7, 0));
        assert_eq!(all[3 * PAGE_BYTES..3 * PAGE_BYTES + 5], [8; 5]);
    }

    #[test]
    fn no_bytes_are_kept_after_the_limit() {
        let mut unpacked = Unpacked::default();
        assert!(!unpacked.append(io::repeat(7), 2 * PAGE_BYTES as u64).unwrap());
        assert_eq!(unpacked.len_bytes(), 2 * PAGE_BYTES as u64);
        let mut exactly = Unpacked::default();
        assert!(exactly.append(io::repeat(7).take(8192), 8192).unwrap());
    }
}
