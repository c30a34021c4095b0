//! Little-endian integers and texts at offsets of a record.
//!
//! It knows no record of the format: offsets come from the structures of `librip_format`.

/// The bytes of a record. Callers have checked that all of them are there.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl Bytes<'_> {
    pub(super) fn array<const LEN: usize>(&self, at: usize) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes.copy_from_slice(&self.0[at..at + LEN]);
        bytes
    }

    pub(super) fn u8(&self, at: usize) -> u8 {
        self.0[at]
    }

    pub(super) fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    pub(super) fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    pub(super) fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }

    /// The words at an offset, if another copy has the same there.
    pub(super) fn same_words<const COUNT: usize>(
        &self,
        other: &Bytes<'_>,
        at: usize,
    ) -> Option<[u64; COUNT]> {
        let words = |bytes: &Bytes<'_>| std::array::from_fn(|index| bytes.u64(at + 8 * index));
        let found = words(self);
        (found == words(other)).then_some(found)
    }

    /// A string padded with zeros.
    pub(super) fn text(&self, at: usize, len_bytes: usize) -> String {
        let bytes = &self.0[at..at + len_bytes];
        let len = bytes.iter().position(|&byte| byte == 0).unwrap_or(len_bytes);
        String::from_utf8_lossy(&bytes[..len]).into_owned()
    }
}
