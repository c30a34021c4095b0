//! The bytes of a ring, and ways to damage them.
//!
//! Nothing here checks what a test writes.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use crate::checksum;
use crate::format::{REGIONS, header_at, module_at, region, region_at, site_at};

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

    fn get32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().unwrap())
    }

    fn get64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().unwrap())
    }

    /// Returns where the header describes the region of this kind: see [`region_at`].
    pub fn region(&self, kind: u32) -> usize {
        self.find_region(kind).expect("such a region")
    }

    fn find_region(&self, kind: u32) -> Option<usize> {
        let entry = |index: usize| header_at::REGIONS + region_at::LEN * index;
        (0..REGIONS).map(entry).find(|&at| self.bytes[at..at + 4] == kind.to_le_bytes())
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

    /// Gives the header, the modules, the sites, the names of locks and the locations of calls their checksums. A test
    /// calls it after it has changed what they cover, if a reader should not notice that. It leaves out incomplete
    /// entries, and what does not exist: any bytes can be sealed.
    pub fn seal(&mut self) -> &mut Image {
        if self.bytes.len() < header_at::LEN {
            return self;
        }
        let checksum = checksum::of_header(&self.bytes);
        self.set64(header_at::CHECKSUM, checksum);
        let texts =
            self.find_region(region::TEXTS).map_or(0, |at| self.get64(at + region_at::OFFSET) as usize);
        let mut known: HashMap<(u32, u32), u64> = HashMap::new();
        for (kind, text_at) in [
            (region::MODULES, Some(module_at::PATH)),
            (region::SITES, Some(site_at::TEXT)),
            (region::LOCK_NAMES, None),
            (region::CALLS, None),
        ] {
            let Some(header) = self.find_region(kind) else { continue };
            let begin = self.get64(header + region_at::OFFSET) as usize;
            let (len, used) =
                (self.get32(header + region_at::ENTRY_LEN) as usize, self.get64(header + region_at::USED));
            for index in 0..used as usize {
                let at = begin.saturating_add(index.saturating_mul(len));
                let Some(entry) = at.checked_add(len).and_then(|end| self.bytes.get(at..end)) else { break };
                if len < 8 || text_at.is_some_and(|text_at| text_at + 8 > len) {
                    break;
                }
                if entry[0] & 1 == 0 {
                    continue;
                }
                let state = match text_at {
                    None => Some(checksum::state(entry)),
                    Some(text_at) => {
                        let (offset, len) = (self.get32(at + text_at), self.get32(at + text_at + 4));
                        let text = self.bytes.get(texts.saturating_add(offset as usize)..);
                        let text = text.and_then(|rest| rest.get(..len as usize));
                        text.map(|text| {
                            let sum = known.entry((offset, len)).or_insert_with(|| checksum::of_text(text));
                            checksum::state_with_sum(entry, *sum)
                        })
                    }
                };
                if let Some(state) = state {
                    self.set32(at, state);
                }
            }
        }
        self
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
            // The checksum stays wrong if a test has made it wrong.
            let mut bytes = self.bytes[..header_at::LEN].to_vec();
            if checksum::of_header(&bytes) == self.get64(header_at::CHECKSUM) {
                bytes[header_at::FILE_DEVICE..][..identity.len()].copy_from_slice(&identity);
                let checksum = checksum::of_header(&bytes).to_le_bytes();
                file.write_all_at(&checksum, header_at::CHECKSUM as u64).unwrap();
            }
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
