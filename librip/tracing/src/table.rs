//! [`Table`]: what is known of callsites, found without a lock.
//!
//! Nothing leaves it, and it is never moved. It knows no callsites: the caller says which entry is the right one.

#![allow(unsafe_code, reason = "a list that several threads extend without a lock")]

use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicUsize};

/// Lists in a table. Programs have some hundred callsites.
const LISTS: usize = 1024;
/// A table has at most this many entries: about as many as a ring has room for.
const ENTRIES_MAX: usize = 32_768;

pub(crate) struct Table<T: 'static> {
    lists: [AtomicPtr<Node<T>>; LISTS],
    len: AtomicUsize,
}

struct Node<T: 'static> {
    value: T,
    next: Option<&'static Node<T>>,
}

impl<T: Sync> Table<T> {
    pub(crate) const fn new() -> Self {
        Table { lists: [const { AtomicPtr::new(ptr::null_mut()) }; LISTS], len: AtomicUsize::new(0) }
    }

    /// The entry that `is_it` accepts, among those with this hash and others.
    #[inline]
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<&'static T> {
        find(self.first(hash), is_it)
    }

    /// Adds an entry, unless `is_it` accepts one that is there: another thread may have added it meanwhile. Returns the
    /// one that is there then; `None` if the table is full.
    pub(crate) fn insert(&self, hash: u64, value: T, is_it: impl Fn(&T) -> bool) -> Option<&'static T> {
        // ORDERING: relaxed, a limit.
        if self.len.load(Relaxed) >= ENTRIES_MAX {
            return None;
        }
        let mut node = Box::new(Node { value, next: None });
        loop {
            let first = self.first(hash);
            if let Some(there) = find(first, &is_it) {
                return Some(there);
            }
            node.next = first;
            let before = first.map_or(ptr::null_mut(), |first| ptr::from_ref(first).cast_mut());
            let added = Box::into_raw(node);
            // ORDERING: release, pairs with the acquire in `first`: who sees the node sees what is in it.
            match self.list(hash).compare_exchange(before, added, Release, Relaxed) {
                Ok(_) => {
                    self.len.fetch_add(1, Relaxed);
                    return self.find(hash, is_it);
                }
                // SAFETY: `added` comes from `Box::into_raw`, and nobody else has seen it.
                Err(_) => node = unsafe { Box::from_raw(added) },
            }
        }
    }

    fn list(&self, hash: u64) -> &AtomicPtr<Node<T>> {
        // Multiplicative hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4).
        &self.lists[(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - LISTS.ilog2())) as usize]
    }

    fn first(&self, hash: u64) -> Option<&'static Node<T>> {
        // ORDERING: acquire, pairs with the release in `insert`.
        let first = self.list(hash).load(Acquire);
        // SAFETY: null, or a node that `insert` published. It is never freed, and never changed.
        unsafe { first.as_ref() }
    }
}

fn find<T>(first: Option<&'static Node<T>>, is_it: impl Fn(&T) -> bool) -> Option<&'static T> {
    let mut next = first;
    while let Some(node) = next {
        if is_it(&node.value) {
            return Some(&node.value);
        }
        next = node.next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_add_the_same_entry_get_one() {
        static TABLE: Table<(u64, u64)> = Table::new();
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                std::thread::spawn(move || {
                    let add = |key| TABLE.insert(key, (key, thread), |&(of, _)| of == key).unwrap();
                    (0..2000).map(|key| ptr::from_ref(add(key)).addr()).collect::<Vec<_>>()
                })
            })
            .collect();
        let got: Vec<Vec<usize>> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(got.iter().all(|entries| *entries == got[0]));
        assert!((0..2000).all(|key| TABLE.find(key, |&(of, _)| of == key).unwrap().0 == key));
        assert_eq!(TABLE.find(2000, |&(of, _)| of == 2000), None);
        assert_eq!(TABLE.len.load(Relaxed), 2000);
    }

    #[test]
    fn a_full_table_refuses() {
        static TABLE: Table<u64> = Table::new();
        for key in 0..ENTRIES_MAX as u64 {
            assert!(TABLE.insert(key, key, |&of| of == key).is_some());
        }
        assert_eq!(TABLE.insert(u64::MAX, 0, |_| false), None);
    }
}
