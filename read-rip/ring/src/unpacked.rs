//! Unpacked bytes in memory, without their pages of zeros.
//!
//! Rings are sparse files, so most of an unpacked copy is zeros. So is most of what a file made to exhaust memory
//! unpacks to. This file knows no compression: it reads a stream.

use std::io::{self, ErrorKind, Read};

const PAGE_BYTES: usize = 4096;

type Page = [u8; PAGE_BYTES];

/// How much memory unpacked data may take.
///
/// By default that is 64 times the length of the file, at least 256 MiB and at most 4 GiB, and the data may be 4 GiB
/// long with its zeros. Rings and cores unpack to 5 to 30 times their length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnpackLimit(
    /// The user's limit, bytes.
    pub Option<u64>,
);

const TIMES_PACKED: u64 = 64;
const ALWAYS_BYTES: u64 = 256 << 20;
const MAX_BYTES: u64 = 4 << 30;

impl UnpackLimit {
    /// What a file of this length may take.
    pub(super) fn of(self, packed_bytes: u64) -> Limits {
        let by_length = packed_bytes.saturating_mul(TIMES_PACKED).clamp(ALWAYS_BYTES, MAX_BYTES);
        Limits {
            memory_bytes: self.0.unwrap_or(by_length),
            len_bytes: self.0.unwrap_or_default().max(MAX_BYTES),
        }
    }
}

/// What the data of one file may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Without pages of zeros, bytes.
    pub(super) memory_bytes: u64,
    /// With them, bytes.
    pub(super) len_bytes: u64,
}

/// A limit was reached, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong(pub(super) u64);

/// Bytes that are read at any offset, as those of a file.
#[derive(Debug, Default)]
pub(super) struct Unpacked {
    /// `None` is a page of zeros.
    pages: Vec<Option<Box<Page>>>,
    len_bytes: u64,
    /// What the other pages take, bytes.
    memory_bytes: u64,
}

impl Unpacked {
    /// Appends the bytes of a stream. Returns whether there is more than the limits allow.
    ///
    /// # Errors
    ///
    /// Those of the stream. The bytes before the error are kept.
    pub(super) fn append(
        &mut self,
        mut stream: impl Read,
        limits: Limits,
    ) -> io::Result<Result<(), TooLong>> {
        let mut page = [0; PAGE_BYTES];
        loop {
            let (got, result) = fill(&mut stream, &mut page);
            page[got..].fill(0);
            let has_data = page != [0; PAGE_BYTES];
            if got > 0 {
                if self.len_bytes >= limits.len_bytes {
                    return Ok(Err(TooLong(limits.len_bytes)));
                }
                if has_data && self.memory_bytes >= limits.memory_bytes {
                    return Ok(Err(TooLong(limits.memory_bytes)));
                }
                self.memory_bytes += if has_data { PAGE_BYTES as u64 } else { 0 };
                self.pages.push(has_data.then(|| Box::new(page)));
                self.len_bytes += got as u64;
            }
            result?;
            if got < PAGE_BYTES {
                return Ok(Ok(()));
            }
        }
    }

    /// This many bytes, all zero.
    pub(super) fn zeros(len_bytes: u64) -> Unpacked {
        let mut pages = Vec::new();
        pages.resize_with(len_bytes.div_ceil(PAGE_BYTES as u64) as usize, || None);
        Unpacked { pages, len_bytes, memory_bytes: 0 }
    }

    /// Sets bytes. What would be after the end is left out.
    pub(super) fn set(&mut self, offset: u64, bytes: &[u8], limits: Limits) -> Result<(), TooLong> {
        let mut done = 0;
        while done < bytes.len() {
            let Some(at) = offset.checked_add(done as u64).filter(|&at| at < self.len_bytes) else { break };
            let within = (at % PAGE_BYTES as u64) as usize;
            let count = (PAGE_BYTES - within).min(bytes.len() - done);
            let page = &mut self.pages[(at / PAGE_BYTES as u64) as usize];
            if page.is_none() {
                if self.memory_bytes >= limits.memory_bytes {
                    return Err(TooLong(limits.memory_bytes));
                }
                self.memory_bytes += PAGE_BYTES as u64;
            }
            let page = page.get_or_insert_with(|| Box::new([0; PAGE_BYTES]));
            page[within..within + count].copy_from_slice(&bytes[done..done + count]);
            done += count;
        }
        Ok(())
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
        assert_eq!(unpacked.append(&bytes[..], limits(1 << 20, 1 << 20)).unwrap(), Ok(()));
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
        let room = limits(3 * PAGE_BYTES as u64, 1 << 20);
        unpacked.set(4000, &[7; 200], room).unwrap();
        unpacked.set(3 * PAGE_BYTES as u64, &[8; 100], room).unwrap();
        unpacked.set(u64::MAX - 3, &[9; 100], room).unwrap();
        assert_eq!(unpacked.set(2 * PAGE_BYTES as u64, &[1], room), Err(TooLong(3 * PAGE_BYTES as u64)));
        assert_eq!(unpacked.next_data(0), Some((0, 2 * PAGE_BYTES as u64)));
        let mut all = vec![1; 4 * PAGE_BYTES];
        assert_eq!(unpacked.read_at(&mut all, 0), 3 * PAGE_BYTES + 5);
        assert_eq!((all[3999], all[4000], all[4199], all[4200]), (0, 7, 7, 0));
        assert_eq!(all[3 * PAGE_BYTES..3 * PAGE_BYTES + 5], [8; 5]);
    }

    fn limits(memory_bytes: u64, len_bytes: u64) -> Limits {
        Limits { memory_bytes, len_bytes }
    }

    #[test]
    fn no_bytes_are_kept_after_a_limit() {
        let page = PAGE_BYTES as u64;
        for (byte, limits) in [(7, limits(2 * page, 1 << 20)), (0, limits(0, 2 * page))] {
            let mut unpacked = Unpacked::default();
            assert_eq!(unpacked.append(io::repeat(byte), limits).unwrap(), Err(TooLong(2 * page)));
            assert_eq!(unpacked.len_bytes(), 2 * page);
            let mut exactly = Unpacked::default();
            assert_eq!(exactly.append(io::repeat(byte).take(2 * page), limits).unwrap(), Ok(()));
        }
    }

    #[test]
    fn the_limit_grows_with_the_file_and_is_what_the_user_says() {
        let memory = |limit: Option<u64>, packed| UnpackLimit(limit).of(packed).memory_bytes;
        assert_eq!([0, 4 << 20, 1 << 40].map(|packed| memory(None, packed)), [256 << 20, 256 << 20, 4 << 30]);
        assert_eq!(memory(None, 10_000_000), 640_000_000);
        assert_eq!(memory(Some(5), 10_000_000), 5);
        assert_eq!(UnpackLimit(Some(9 << 30)).of(1).len_bytes, 9 << 30);
    }
}
