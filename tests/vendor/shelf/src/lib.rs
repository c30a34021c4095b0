//! A library with a lock of its own, as a program has it that keeps its dependencies in a directory `vendor`.
//!
//! It knows nothing of who calls it: its lock is two calls below what it exports.

use librip::sync::{Mutex, MutexGuard};

/// Boxes, which threads put there and look at.
pub(crate) struct Shelf {
    boxes: Mutex<Vec<u32>>,
}

impl Shelf {
    pub(crate) const fn new() -> Shelf {
        Shelf { boxes: Mutex::new(Vec::new()) }
    }

    /// Puts a box there.
    #[inline(never)]
    pub(crate) fn put(&self, number: u32) {
        self.boxes().push(number);
    }

    /// Looks at all boxes.
    #[inline(never)]
    pub(crate) fn look(&self, at: fn(&[u32])) {
        at(&self.boxes());
    }

    #[inline(never)]
    fn boxes(&self) -> MutexGuard<'_, Vec<u32>> {
        self.boxes.lock().unwrap()
    }
}
