//! Rings in the legacy format, that of the C header that librip replaces, made by hand: 320 bytes a slot, no header.
//!
//! A slot is a name of 64 bytes and 32 words. A word is an 8-bit counter above a 56-bit PC. A word of all ones is the
//! exit mark, which has no counter.

/// One thread's slot. Each mark advances the index and the counter, as in a real thread.
#[derive(Clone, Debug)]
pub struct Slot {
    name: [u8; 64],
    words: [u64; 32],
    index: usize,
    counter: u8,
}

impl Slot {
    /// A thread of this name without marks.
    pub fn new(name: &str) -> Slot {
        let mut bytes = [0; 64];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Slot { name: bytes, words: [0; 32], index: 0, counter: 0 }
    }

    /// Sets the counter, as a program may do at any time.
    pub fn counting_from(mut self, counter: u8) -> Slot {
        self.counter = counter;
        self
    }

    /// Adds marks at these addresses.
    pub fn marks(mut self, pcs: impl IntoIterator<Item = u64>) -> Slot {
        for pc in pcs {
            self.words[self.index % 32] = u64::from(self.counter) << 56 | pc;
            self.index += 1;
            self.counter = self.counter.wrapping_add(1);
        }
        self
    }

    /// Adds the thread's exit mark.
    pub fn exit(mut self) -> Slot {
        self.words[self.index % 32] = u64::MAX;
        self.index += 1;
        self
    }

    fn bytes(&self) -> Vec<u8> {
        self.name.iter().copied().chain(self.words.iter().flat_map(|word| word.to_le_bytes())).collect()
    }
}

/// Builds the file: each slot is at the index of its thread id, and zeros fill the gaps.
pub fn build(threads: &[(usize, Slot)]) -> Vec<u8> {
    let last = threads.iter().map(|(tid, _)| *tid).max().unwrap_or(0);
    let mut bytes = vec![0; (last + 1) * 320];
    for (tid, slot) in threads {
        bytes[tid * 320..][..320].copy_from_slice(&slot.bytes());
    }
    bytes
}
