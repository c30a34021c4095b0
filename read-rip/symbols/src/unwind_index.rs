//! `.eh_frame_hdr`: where the entry of a function is in `.eh_frame`.
//!
//! Linkers write one form of it, which is read here; any number in it may be wrong. A section of another form is not
//! used: then `.eh_frame` is read from its beginning.

/// Version 1; the address relative to its place, a count, and a table relative to the section: all of four bytes.
const FORM: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
/// Form, address and count.
const HEADER_LEN: usize = 12;
/// Where a function begins, and where its entry is.
const ROW_LEN: usize = 8;

/// Bytes at a module-relative address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// Where they begin.
    pub address: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// The index of a module's functions.
pub struct UnwindIndex<'a> {
    section: &'a Placed,
}

impl<'a> UnwindIndex<'a> {
    /// Reads the header; `None` if the section has another form.
    pub fn new(section: &'a Placed) -> Option<UnwindIndex<'a>> {
        let is_known = section.bytes.starts_with(&FORM) && section.bytes.len() >= HEADER_LEN;
        is_known.then_some(UnwindIndex { section })
    }

    /// The address of `.eh_frame`.
    pub fn eh_frame(&self) -> Option<u64> {
        Some(self.section.address.wrapping_add(4).wrapping_add_signed(self.number(4)?))
    }

    /// The address of the entry of the last function that begins at or before an address. The function may end before
    /// it.
    pub fn entry(&self, address: u64) -> Option<u64> {
        let rows = self.section.bytes.get(HEADER_LEN..)?.len() / ROW_LEN;
        let claimed = self.number(8)? as u32 as usize;
        let distance = address.wrapping_sub(self.section.address) as i64;
        let (mut low, mut high) = (0, rows.min(claimed));
        while low < high {
            let middle = low.midpoint(high);
            if self.number(HEADER_LEN + middle * ROW_LEN)? <= distance {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let entry = self.number(HEADER_LEN + low.checked_sub(1)? * ROW_LEN + 4)?;
        Some(self.section.address.wrapping_add_signed(entry))
    }

    /// Four bytes with a sign.
    fn number(&self, at: usize) -> Option<i64> {
        let bytes = self.section.bytes.get(at..at.checked_add(4)?)?;
        Some(i32::from_le_bytes(bytes.try_into().ok()?).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(rows: &[(i32, i32)]) -> Placed {
        let mut bytes = FORM.to_vec();
        bytes.extend((0x100_i32 - 4).to_le_bytes());
        bytes.extend((rows.len() as u32).to_le_bytes());
        for (begin, entry) in rows {
            bytes.extend(begin.to_le_bytes());
            bytes.extend(entry.to_le_bytes());
        }
        Placed { address: 0x5000, bytes }
    }

    #[test]
    fn the_entry_of_the_last_function_before_an_address_is_found() {
        let section = index(&[(-0x3000, 0x110), (-0x2000, 0x120), (0x1000, 0x130)]);
        let index = UnwindIndex::new(&section).unwrap();
        assert_eq!(index.eh_frame(), Some(0x5100));
        let entries =
            [0x1fff, 0x2000, 0x2fff, 0x3000, 0x5fff, 0x6000, u64::MAX >> 1].map(|at| index.entry(at));
        let expected =
            [None, Some(0x5110), Some(0x5110), Some(0x5120), Some(0x5120), Some(0x5130), Some(0x5130)];
        assert_eq!(entries, expected);
    }

    #[test]
    fn an_index_that_claims_more_rows_than_it_has_or_has_another_form_is_no_harm() {
        let mut section = index(&[(-0x3000, 0x110)]);
        section.bytes[8..12].fill(0xff);
        assert_eq!(UnwindIndex::new(&section).unwrap().entry(0x9000), Some(0x5110));
        section.bytes.truncate(15);
        assert_eq!(UnwindIndex::new(&section).unwrap().entry(0x9000), None);
        section.bytes[3] = 0x3a;
        assert!(UnwindIndex::new(&section).is_none());
    }
}
