//! A slot's open spans: which entries of the table can be believed.
//!
//! It knows no history and no sites.
//!
//! # Why a believed entry was in the table
//!
//! The owner writes `value` and `since` before `begin`, and frees an entry by storing zero in `begin` alone. A checksum
//! covers all three words. An entry that is not the same in two copies was changing. If the checksum does not fit an
//! entry of a process that has ended, it is damaged, or belongs to two spans whose owner died between two stores.

use std::mem::{offset_of, size_of};

use librip_format::OpenSpan as Raw;

use super::bytes::Bytes;
use super::value::Value;
use super::{SequenceBits, Word};

#[derive(Clone, Debug, PartialEq)]
pub struct OpenSpan {
    /// Actual address of the mark at which it began.
    pub pc: u64,
    /// The sequence of the event that began it.
    pub sequence: SequenceBits,
    /// When it began, ticks; `None` if that was not recorded.
    pub since_ticks: Option<u64>,
    /// Its first value. For a text: the first 8 bytes, or where it is.
    pub value: Option<Value>,
}

/// An entry is these three words.
const _: () = assert!(
    offset_of!(Raw, begin) == 0
        && offset_of!(Raw, since) == 8
        && offset_of!(Raw, value) == 16
        && size_of::<Raw>() == 24
);

/// A slot's table of open spans.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) open: Vec<OpenSpan>,
    /// Entries that changed while they were read.
    pub(super) in_flux: u32,
    /// Entries that contradict themselves.
    pub(super) damaged: u32,
}

/// Reads a table from two copies of it.
pub(super) fn read(first: &Bytes<'_>, second: &Bytes<'_>) -> Table {
    let mut table = Table::default();
    for at in (0..first.0.len() / size_of::<Raw>()).map(|index| index * size_of::<Raw>()) {
        match first.same_words(second, at) {
            Some(entry) => table.add(entry),
            None => table.in_flux += 1,
        }
    }
    table
}

impl Table {
    fn add(&mut self, [begin, since, value]: [u64; 3]) {
        if begin == 0 {
            return;
        }
        let word = Word::from_raw(begin);
        let is_sound = librip_format::is_span_sound(begin, since, value);
        if !is_sound || word.is_operand() || word.payload() == 0 {
            self.damaged += 1;
            return;
        }
        let ticks = librip_format::payload(since);
        self.open.push(OpenSpan {
            pc: word.payload(),
            sequence: word.sequence(),
            since_ticks: (ticks != 0).then_some(ticks),
            value: Value::summary(librip_format::span_value_type(since), value),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use librip_format::{VALUE_I8, pack, span_since};

    fn table(entry: [u64; 3]) -> Table {
        let mut table = Table::default();
        table.add(entry);
        table
    }

    #[test]
    fn an_entry_is_believed_if_its_checksum_fits() {
        let begin = pack(5000, 0x1234, false);
        let entry = [begin, span_since(begin, 77, VALUE_I8, 0xff), 0xff];
        let read = table(entry);
        assert_eq!((read.open.len(), read.damaged), (1, 0));
        let open = &read.open[0];
        assert_eq!((open.pc, open.since_ticks, &open.value), (0x1234, Some(77), &Some(Value::Signed(-1, 8))));
        assert_eq!(table([entry[0], entry[1], 0xfe]).damaged, 1);
        assert!(table([0, entry[1], entry[2]]).open.is_empty());
    }

    #[test]
    fn an_entry_that_changes_while_it_is_read_is_in_flux() {
        let begin = pack(5000, 0x1234, false);
        let entry = [begin, span_since(begin, 77, 0, 0), 0];
        let bytes: Vec<u8> = entry.iter().flat_map(|word| word.to_le_bytes()).collect();
        let free = [0; 24];
        let read = read(&Bytes(&bytes), &Bytes(&free));
        assert_eq!((read.open.len(), read.in_flux, read.damaged), (0, 1, 0));
    }
}
