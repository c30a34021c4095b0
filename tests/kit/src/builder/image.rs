//! The bytes of a ring, and ways to damage them.
//!
//! Nothing here checks what a test writes.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use crate::format::{REGIONS, header_at, region_at};

/// The bytes of a ring, for a test to damage.
#[derive(Clone, Debug)]
pub struct Image {
    pub bytes: Vec<u8>,
    /// The length of the whole file.
    pub file_len: usize,
}

impl Image {
    pub fn set32(&mut self, at: usize, value: u32) {
        put32(&mut self.bytes, at, value);
    }

    pub fn set64(&mut self, at: usize, value: u64) {
        put64(&mut self.bytes, at, value);
    }

    fn get64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().unwrap())
    }

    /// Returns where the header describes the region of this kind: see [`region_at`].
    pub fn region(&self, kind: u32) -> usize {
        let entry = |index: usize| header_at::REGIONS + region_at::LEN * index;
        (0..REGIONS)
            .map(entry)
            .find(|&at| self.bytes[at..at + 4] == kind.to_le_bytes())
            .expect("such a region")
    }

    /// The offset of that region.
    pub fn begin(&self, kind: u32) -> usize {
        self.get64(self.region(kind) + region_at::OFFSET) as usize
    }

    /// The offset of an entry of that region.
    pub fn entry(&self, kind: u32, index: usize) -> usize {
        let len = u32::from_le_bytes(
            self.bytes[self.region(kind) + region_at::ENTRY_LEN..][..4].try_into().unwrap(),
        );
        self.begin(kind) + index * len as usize
    }

    /// Writes the bytes to a file, with a hole for the zeros at the end. Unless the header says otherwise already, it
    /// says that this very file is the ring, and not a copy.
    pub fn write(&self, path: &Path) {
        let mut file = File::create(path).unwrap();
        file.write_all(&self.bytes).unwrap();
        if self.bytes.len() < self.file_len {
            file.set_len(self.file_len as u64).unwrap();
        }
        let identity = header_at::FILE_DEVICE..header_at::FILE_INODE + 8;
        if self.bytes.get(identity).is_some_and(|identity| identity.iter().all(|&byte| byte == 0)) {
            let metadata = file.metadata().unwrap();
            let identity = [metadata.dev().to_le_bytes(), metadata.ino().to_le_bytes()].concat();
            file.write_all_at(&identity, header_at::FILE_DEVICE as u64).unwrap();
        }
    }
}

pub(super) fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
}

pub(super) fn put32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

pub(super) fn put64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}
