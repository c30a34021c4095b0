//! Words of a thread's stack: a part of it is read at once, and more when it is asked for.
//!
//! # Invariants
//!
//! All that is read for one thread together is no larger than [`READ_MAX_BYTES`].

use crate::target::Memory;

/// The limit for one thread. The default size of a stack.
const READ_MAX_BYTES: usize = 8 << 20;
/// What is read together. Most stacks of sleeping threads are smaller.
const PART_BYTES: u64 = 4096;
/// At least this much is read first.
const FIRST_MIN_BYTES: u64 = 1536;
/// What is further above than this is read for itself.
const GAP_MAX_BYTES: u64 = 1 << 20;

/// The words of one thread's stack.
pub(super) struct Window<'m> {
    memory: &'m dyn Memory,
    begin: u64,
    bytes: Vec<u8>,
    /// Nothing can be read after these bytes.
    is_at_end: bool,
    /// Parts elsewhere, such as an alternate stack: address and bytes.
    others: Vec<(u64, Vec<u8>)>,
    left_bytes: usize,
}

impl<'m> Window<'m> {
    pub(super) fn new(memory: &'m dyn Memory) -> Window<'m> {
        Window { memory, begin: 0, bytes: Vec::new(), is_at_end: true, others: Vec::new(), left_bytes: 0 }
    }

    /// Begins with another thread, whose stack pointer this is.
    pub(super) fn start(&mut self, sp: u64) {
        (self.begin, self.is_at_end, self.left_bytes) = (sp, false, READ_MAX_BYTES);
        self.bytes.clear();
        self.others.clear();
        // To the end of a page: the kernel looks up each page.
        let end = sp.saturating_add(FIRST_MIN_BYTES) | (PART_BYTES - 1);
        self.extend(end.saturating_add(1));
    }

    /// The word at an address; `None` if it cannot be read, or if too much was read.
    pub(super) fn word(&mut self, address: u64) -> Option<u64> {
        let end = address.checked_add(8)?;
        let known_end = self.begin.saturating_add(self.bytes.len() as u64);
        if address >= self.begin && end <= known_end.saturating_add(GAP_MAX_BYTES) {
            if end > known_end {
                // Twice as much each time, so that long stacks take few reads.
                let more = end.max(known_end.saturating_add(self.bytes.len() as u64)) | (PART_BYTES - 1);
                self.extend(more.saturating_add(1));
            }
            return word_in(&self.bytes, address - self.begin);
        }
        self.word_elsewhere(address)
    }

    fn word_elsewhere(&mut self, address: u64) -> Option<u64> {
        let covers = |part: &&(u64, Vec<u8>)| {
            let at = address.checked_sub(part.0);
            at.is_some_and(|at| at.checked_add(8).is_some_and(|end| end <= part.1.len() as u64))
        };
        if let Some((begin, bytes)) = self.others.iter().rev().find(covers) {
            return word_in(bytes, address - begin);
        }
        // A function's words are asked for in any order, so the whole page is read, unless the word is in two pages.
        let is_in_one_page = address % PART_BYTES <= PART_BYTES - 8;
        let begin = if is_in_one_page { address - address % PART_BYTES } else { address };
        let mut bytes = vec![0; PART_BYTES as usize];
        self.left_bytes = self.left_bytes.checked_sub(bytes.len())?;
        let read = self.memory.read_some(begin, &mut bytes);
        bytes.truncate(read);
        let word = word_in(&bytes, address - begin);
        self.others.push((begin, bytes));
        word
    }

    /// Reads on, up to an address.
    fn extend(&mut self, end: u64) {
        let known_end = self.begin.saturating_add(self.bytes.len() as u64);
        let wanted = (end.saturating_sub(known_end) as usize).min(self.left_bytes);
        if self.is_at_end || wanted == 0 {
            return;
        }
        let before = self.bytes.len();
        self.bytes.resize(before + wanted, 0);
        let read = self.memory.read_some(known_end, &mut self.bytes[before..]);
        self.bytes.truncate(before + read);
        self.is_at_end = read < wanted;
        self.left_bytes -= read;
    }
}

fn word_in(bytes: &[u8], at: u64) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let word = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(word.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::target::Unreadable;

    /// Memory where each word is its own address, with a number of reads. Nothing is below 64 KiB.
    #[derive(Default)]
    struct Addresses(Cell<usize>);

    impl Memory for Addresses {
        fn read(&self, _: u64, _: &mut [u8]) -> Result<(), Unreadable> {
            unreachable!("a window reads as much as there is")
        }

        fn read_some(&self, address: u64, into: &mut [u8]) -> usize {
            self.0.set(self.0.get() + 1);
            if address < 1 << 16 {
                return 0;
            }
            for (byte, at) in into.iter_mut().zip(address..) {
                *byte = (at & !7).to_le_bytes()[(at & 7) as usize];
            }
            into.len()
        }
    }

    #[test]
    fn a_page_elsewhere_is_read_once_in_whatever_order_its_words_are_asked_for() {
        let memory = Addresses::default();
        let mut window = Window::new(&memory);
        window.start(0x7000_0000);
        let before = memory.0.get();
        for address in (0x6000_1000..0x6000_2000).rev().step_by(8).map(|last| last - 7) {
            assert_eq!(window.word(address), Some(address));
        }
        assert_eq!(memory.0.get(), before + 1);
    }

    #[test]
    fn a_word_in_two_pages_is_read_whole_and_one_that_is_not_there_is_none() {
        let memory = Addresses::default();
        let mut window = Window::new(&memory);
        window.start(0x7000_0000);
        let bytes = [&0x6000_1ff8_u64.to_le_bytes()[4..], &0x6000_2000_u64.to_le_bytes()[..4]].concat();
        assert_eq!(window.word(0x6000_1ffc), Some(u64::from_le_bytes(bytes.try_into().unwrap())));
        assert_eq!([window.word(0x1000), window.word(u64::MAX - 3)], [None; 2]);
    }
}
