//! The ring as this process has it mapped: typed access to the parts that `layout` defines.
//!
//! It makes no ring (`create` does) and applies no policy; it turns offsets into references, once checked.
//!
//! # Invariants
//!
//! * A `Ring` is leaked: the mapping stays until the process ends, because cursors of any thread, destructors
//!   and exit handlers point into it.
//! * Geometry is a copy in private memory: a truncated or scribbled file cannot send us outside the mapping.

#![allow(unsafe_code, reason = "a shared mapping is raw memory")]

use core::ptr::NonNull;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU64};

use crate::exits::ExitQueue;
use crate::sys::{self, NoMemory};
use librip_format::{Header, LockName, Module, Region, Site, SlotHeader};

/// Where a region lies, in private memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Index in [`Header::regions`].
    pub(crate) index: usize,
    /// Bytes from the start of the file.
    pub(crate) offset: u64,
    /// Entries there is room for.
    pub(crate) capacity: u64,
}

/// The sizes of a ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    pub(crate) page_len_bytes: usize,
    pub(crate) file_len_bytes: u64,
    pub(crate) slot_words: u32,
    pub(crate) slot_len_bytes: u64,
    pub(crate) modules: Extent,
    pub(crate) sites: Extent,
    pub(crate) texts: Extent,
    pub(crate) lock_names: Extent,
    pub(crate) exits: Extent,
    pub(crate) slots: Extent,
}

/// A mapped ring.
#[derive(Debug)]
pub(crate) struct Ring {
    base: NonNull<u8>,
    pub(crate) geometry: Geometry,
    /// What slots are told of the clock.
    pub(crate) slot_clock: u32,
    /// Set by the SIGBUS guard: part of the mapping is private memory now.
    pub(crate) is_damaged: AtomicBool,
}

// SAFETY: the memory behind `base` is shared by design; all access goes through atomics, or happens before
// the ring is published.
unsafe impl Send for Ring {}
// SAFETY: as for Send.
unsafe impl Sync for Ring {}

impl Ring {
    /// # Safety
    ///
    /// `base` begins a readable and writable mapping of `geometry.file_len_bytes` bytes that is never
    /// unmapped, and every extent of `geometry` lies within it, 8-byte aligned.
    pub(crate) unsafe fn new(base: NonNull<u8>, geometry: Geometry, slot_clock: u32) -> Ring {
        Ring { base, geometry, slot_clock, is_damaged: AtomicBool::new(false) }
    }

    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    pub(crate) fn header(&self) -> &Header {
        // SAFETY: the mapping begins with a header, aligned to a page. Its plain fields are written only
        // while `create` alone knows the ring; the others are atomics.
        unsafe { self.base.cast::<Header>().as_ref() }
    }

    /// Whether the header can be written to: somebody may have truncated the file.
    pub(crate) fn has_header(&self) -> bool {
        sys::reserve(self.base(), size_of::<Header>(), self.geometry.page_len_bytes).is_ok()
    }

    pub(crate) fn region(&self, extent: Extent) -> &Region {
        &self.header().regions[extent.index]
    }

    /// A pointer to entry `index` of a region; entries are `len_bytes` long.
    fn entry(&self, extent: Extent, index: u64, len_bytes: u64) -> *mut u8 {
        assert!(index < extent.capacity, "callers check the capacity that the file cannot change");
        self.base().wrapping_add((extent.offset + index * len_bytes) as usize)
    }

    pub(crate) fn module(&self, index: u64) -> *mut Module {
        self.entry(self.geometry.modules, index, size_of::<Module>() as u64).cast()
    }

    pub(crate) fn site(&self, index: u64) -> *mut Site {
        self.entry(self.geometry.sites, index, size_of::<Site>() as u64).cast()
    }

    pub(crate) fn text(&self, offset: u64) -> *mut u8 {
        self.entry(self.geometry.texts, offset, 1)
    }

    pub(crate) fn slot(&self, index: u64) -> &SlotHeader {
        let slot = self.entry(self.geometry.slots, index, self.geometry.slot_len_bytes);
        // SAFETY: within the mapping (`entry` checks), aligned to 8 bytes because offset and length of slots
        // are, and all fields are atomics.
        unsafe { &*slot.cast::<SlotHeader>() }
    }

    /// The words of a slot: what a cursor points at.
    pub(crate) fn words(&self, index: u64) -> *mut u64 {
        self.entry(self.geometry.slots, index, self.geometry.slot_len_bytes)
            .wrapping_add(size_of::<SlotHeader>())
            .cast()
    }

    /// The slot that a cursor points into, if it points into this ring.
    pub(crate) fn slot_of(&self, cursor: *mut u64) -> Option<u64> {
        let first = self.words(0).addr();
        let distance = cursor.addr().checked_sub(first)? as u64;
        let index = distance / self.geometry.slot_len_bytes;
        (index < self.geometry.slots.capacity).then_some(index)
    }

    /// The names of locks that may be in use.
    pub(crate) fn lock_names(&self) -> impl Iterator<Item = &LockName> {
        let names = self.geometry.lock_names;
        // ORDERING: acquire, pairs with the release in `fresh_lock_name`: the memory is there.
        let used = self.region(names).used.load(Acquire).min(names.capacity);
        (0..used).map(|index| self.lock_name(index))
    }

    /// A name that nobody had before, with memory; `None` when they have run out.
    pub(crate) fn fresh_lock_name(&self) -> Option<&LockName> {
        let names = self.geometry.lock_names;
        let used = &self.region(names).used;
        loop {
            // ORDERING: relaxed: the exchange decides, and the entry's own state who writes it.
            let next = used.load(Relaxed);
            if next >= names.capacity {
                return None;
            }
            self.reserve(names, size_of::<LockName>() as u64, next, next + 1).ok()?;
            // ORDERING: release, pairs with the acquire in `lock_names`.
            if used.compare_exchange(next, next + 1, Release, Relaxed).is_ok() {
                return Some(self.lock_name(next));
            }
        }
    }

    fn lock_name(&self, index: u64) -> &LockName {
        let name = self.entry(self.geometry.lock_names, index, size_of::<LockName>() as u64);
        // SAFETY: within the mapping, aligned to 8 bytes, and all fields are atomics.
        unsafe { &*name.cast::<LockName>() }
    }

    pub(crate) fn exit_queue(&self) -> ExitQueue<'_> {
        let cells = self.entry(self.geometry.exits, 0, 8).cast::<AtomicU64>();
        ExitQueue {
            head: &self.header().exit_head,
            tail: &self.header().exit_tail,
            // SAFETY: the region has one aligned u64 a slot, used as atomics only.
            cells: unsafe { core::slice::from_raw_parts(cells, self.geometry.slots.capacity as usize) },
        }
    }

    /// Makes entries `from..to` of a region safe to write to.
    pub(crate) fn reserve(&self, extent: Extent, len_bytes: u64, from: u64, to: u64) -> Result<(), NoMemory> {
        if from >= to {
            return Ok(());
        }
        let start = self.entry(extent, from, len_bytes);
        sys::reserve(start, ((to - from) * len_bytes) as usize, self.geometry.page_len_bytes)
    }
}
