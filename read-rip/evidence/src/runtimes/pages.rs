//! The memory of a target, read by pages: for lists of many small objects, several of which are in one page.

use std::cell::RefCell;

use foldhash::HashMap;

use crate::target::{Memory, Unreadable};

const PAGE: usize = 4096;
/// More pages are forgotten.
const PAGES_MAX: usize = 4096;

type Page = Result<Box<[u8; PAGE]>, Unreadable>;

/// See the [module](self). For one reading: it does not see what changes later.
pub(super) struct Pages<'a> {
    memory: &'a dyn Memory,
    known: RefCell<HashMap<u64, Page>>,
}

impl<'a> Pages<'a> {
    pub(super) fn new(memory: &'a dyn Memory) -> Pages<'a> {
        Pages { memory, known: RefCell::default() }
    }
}

impl Memory for Pages<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        // A long range is read at once.
        if into.len() > PAGE {
            return self.memory.read(address, into);
        }
        let mut known = self.known.borrow_mut();
        if known.len() > PAGES_MAX {
            known.clear();
        }
        let mut done = 0;
        while done < into.len() {
            let at = address.checked_add(done as u64).ok_or(Unreadable::Absent)?;
            let (begin, offset) = (at / PAGE as u64 * PAGE as u64, (at % PAGE as u64) as usize);
            let page = known.entry(begin).or_insert_with(|| {
                let mut bytes = Box::new([0; PAGE]);
                self.memory.read(begin, &mut *bytes).map(|()| bytes)
            });
            let page = page.as_ref().map_err(|&why| why)?;
            let len = (into.len() - done).min(PAGE - offset);
            into[done..done + len].copy_from_slice(&page[offset..offset + len]);
            done += len;
        }
        Ok(())
    }

    fn read_some(&self, address: u64, into: &mut [u8]) -> usize {
        self.memory.read_some(address, into)
    }
}
