//! The target's memory, as something that can be read.
//!
//! The memory of a living process moves while it is read, and a hostile process can have anything there. So a reader
//! checks every value, and bounds every loop.

/// Memory that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// Nothing is mapped there, or the core file does not have it.
    Absent,
    /// The kernel refuses it to this reader.
    Refused,
    Ended,
}

pub trait Memory {
    /// Fills a buffer with the bytes at an address, all of them or none.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable>;

    /// Reads as many bytes as can be read at an address, at most as many as the buffer has. Returns their number.
    fn read_some(&self, address: u64, into: &mut [u8]) -> usize;
}

impl dyn Memory + '_ {
    /// Reads some bytes.
    pub fn bytes<const LEN: usize>(&self, address: u64) -> Result<[u8; LEN], Unreadable> {
        let mut bytes = [0; LEN];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads 32 bits in the byte order of x86-64 and aarch64.
    pub fn u32(&self, address: u64) -> Result<u32, Unreadable> {
        self.bytes(address).map(u32::from_le_bytes)
    }

    /// Reads 64 bits in the byte order of x86-64 and aarch64.
    pub fn u64(&self, address: u64) -> Result<u64, Unreadable> {
        self.bytes(address).map(u64::from_le_bytes)
    }
}
