//! The memory of a target, where each object is read once for all threads that wait for it.
//!
//! Thousands of threads may wait for one lock. So they agree on it, too: they see it at one moment.

use std::cell::RefCell;
use std::fmt;

use foldhash::HashMap;

use crate::target::{Memory, Unreadable};

/// See the [module](self). For one reading: it does not see what changes later.
pub(super) struct ReadOnce<'a> {
    memory: &'a dyn Memory,
    /// What was read, by address and length. Each is as long as an object.
    known: RefCell<HashMap<(u64, usize), Read>>,
}

/// What a read gave.
type Read = Result<Box<[u8]>, Unreadable>;

impl<'a> ReadOnce<'a> {
    pub(super) fn new(memory: &'a dyn Memory) -> ReadOnce<'a> {
        ReadOnce { memory, known: RefCell::default() }
    }
}

impl fmt::Debug for ReadOnce<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ReadOnce").field("known", &self.known).finish_non_exhaustive()
    }
}

impl Memory for ReadOnce<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let mut known = self.known.borrow_mut();
        let read = known.entry((address, into.len())).or_insert_with(|| {
            let mut bytes = vec![0; into.len()];
            self.memory.read(address, &mut bytes).map(|()| bytes.into())
        });
        read.as_ref().map(|bytes| into.copy_from_slice(bytes)).map_err(|&why| why)
    }

    fn read_some(&self, address: u64, into: &mut [u8]) -> usize {
        self.memory.read_some(address, into)
    }
}
