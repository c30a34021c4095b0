//! [`Ring`]: the mapping of a ring's file, with its plan and its control block.
//!
//! It makes no ring (`start::create` does) and applies no policy. It checks indices, and turns them into references.
//!
//! # Invariants
//!
//! * A `Ring` that is used is never dropped. The mapping stays until the process ends, because cursors of any thread,
//!   destructors and exit handlers point into it.
//! * An address in the mapping comes from the geometry and an index that was checked against it.

#![allow(unsafe_code, reason = "a shared mapping is raw memory")]

#[cfg(feature = "interpose")]
use core::mem::offset_of;
use core::ptr::{self, NonNull};
#[cfg(feature = "interpose")]
use core::slice;
use core::sync::atomic::Ordering::{Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

#[cfg(feature = "interpose")]
use librip_format::header_checksum;
use librip_format::{
    CallLocation, Channel, Header, HistoryHeader, LockName, Module, OpenSpan, PollPlace, RestPart, Site,
    SlotHeader, StaticText, TaskPart,
};

use super::{Control, Geometry, Table};
use crate::sys::file::File;
#[cfg(feature = "interpose")]
use crate::sys::file::{Errno, FileId};
use crate::sys::{self, Unreserved};

#[derive(Debug)]
pub(crate) struct Ring {
    base: NonNull<u8>,
    pub(crate) geometry: Geometry,
    pub(crate) control: Control,
    /// The SIGBUS handler sets it: part of the mapping is private memory now.
    pub(crate) is_damaged: AtomicBool,
    /// See `module_registry`.
    pub(super) registry_turn: AtomicU32,
    /// See `remote_tables`.
    pub(super) search_rest_until_ns: AtomicU64,
    /// See `remote_tables`.
    pub(super) search_from: AtomicU64,
}

// SAFETY: threads share the memory at `base`. They access it through atomics, or before the ring is published, or in an
// entry that `append` gave to one of them alone.
unsafe impl Send for Ring {}
// SAFETY: as for Send.
unsafe impl Sync for Ring {}

impl Ring {
    /// # Safety
    ///
    /// `base` starts a readable and writable mapping of `geometry.file_len_bytes` bytes that nobody else unmaps, and
    /// `control` was made for this geometry.
    pub(crate) unsafe fn new(base: NonNull<u8>, geometry: Geometry, control: Control) -> Ring {
        Ring {
            base,
            geometry,
            control,
            is_damaged: AtomicBool::new(false),
            registry_turn: AtomicU32::new(0),
            search_rest_until_ns: AtomicU64::new(0),
            search_from: AtomicU64::new(0),
        }
    }

    /// Maps the ring's file elsewhere, if that is possible. Nobody uses the ring yet.
    pub(crate) fn map_again(&mut self, file: &File) {
        let len = self.geometry.file_len_bytes as usize;
        if let Ok(base) = file.map(len) {
            let former = core::mem::replace(&mut self.base, base);
            // SAFETY: as in `discard`.
            unsafe { sys::file::unmap(former, len) };
        }
    }

    /// Moves the ring to another file. `former` is the present one, `file` is new and has its length.
    ///
    /// The calling thread is the only one of the process, and no other process records.
    #[cfg(feature = "interpose")]
    pub(crate) fn move_to(&self, former: &File, file: &File, id: FileId) -> Result<(), Errno> {
        former.copy_data(self.base(), 0..u64::MAX, file)?;
        // SAFETY: the mapping is the ring's, and the file is a copy of what it maps. No other thread writes meanwhile.
        unsafe { file.map_over(self.base, self.geometry.file_len_bytes as usize) }?;
        // SAFETY: an aligned field of the header, which nobody else in this process accesses.
        let write =
            |at: usize, value| unsafe { self.base().wrapping_add(at).cast::<u64>().write_volatile(value) };
        write(offset_of!(Header, file_device), id.device);
        write(offset_of!(Header, file_inode), id.inode);
        // SAFETY: a part of the header, all of whose bytes were written. Nobody writes to it meanwhile.
        let part = |at, len| unsafe { slice::from_raw_parts(self.base().wrapping_add(at).cast_const(), len) };
        write(offset_of!(Header, checksum), header_checksum(part));
        Ok(())
    }

    /// Unmaps a ring that nobody uses.
    pub(crate) fn discard(self) {
        // SAFETY: `new` was promised that the mapping has this length, and all references into it borrow this value.
        unsafe { sys::file::unmap(self.base, self.geometry.file_len_bytes as usize) };
        self.control.discard();
    }

    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    pub(crate) fn header(&self) -> &Header {
        // SAFETY: the mapping starts with a header, aligned to a page. Its plain fields are written only while `start`
        // alone knows the ring, and are never read here; the others are atomics.
        unsafe { self.base.cast::<Header>().as_ref() }
    }

    /// Returns whether the header can be written to: somebody may have truncated the file. If a filter of system calls
    /// (seccomp) does not allow to ask, the file is taken for whole, as every mark does.
    pub(crate) fn has_header(&self) -> bool {
        let reserved = sys::reserve(self.base(), size_of::<Header>(), self.geometry.page_len_bytes);
        reserved != Err(Unreserved::NoMemory)
    }

    fn entry(&self, table: Table, index: u64) -> *mut u8 {
        self.base().wrapping_add(self.geometry.offset(table, index) as usize)
    }

    pub(crate) fn module(&self, index: u64) -> *mut Module {
        self.entry(Table::Modules, index).cast()
    }

    pub(crate) fn site(&self, index: u64) -> *mut Site {
        self.entry(Table::Sites, index).cast()
    }

    pub(crate) fn text(&self, offset: u64) -> *mut u8 {
        self.entry(Table::Texts, offset)
    }

    pub(crate) fn lock_name(&self, index: u64) -> &LockName {
        let name = self.entry(Table::LockNames, index);
        // SAFETY: within the mapping (`Geometry::offset` checks), aligned to 8 bytes, and all fields are atomics.
        unsafe { &*name.cast::<LockName>() }
    }

    pub(crate) fn call(&self, index: u64) -> &CallLocation {
        let call = self.entry(Table::Calls, index);
        // SAFETY: within the mapping (`Geometry::offset` checks), aligned to 8 bytes, and all fields are atomics.
        unsafe { &*call.cast::<CallLocation>() }
    }

    /// A place of polls, whose memory is reserved.
    pub(crate) fn poll_place(&self, index: u64) -> &PollPlace {
        let place = self.entry(Table::Polls, index);
        // SAFETY: within the mapping (`Geometry::offset` checks), aligned to 8 bytes because offset and length of
        // entries are, and all fields are atomics.
        unsafe { &*place.cast::<PollPlace>() }
    }

    pub(crate) fn string(&self, index: u64) -> *mut StaticText {
        self.entry(Table::Strings, index).cast()
    }

    pub(super) fn channel(&self, index: u64) -> *mut Channel {
        self.entry(Table::Channels, index).cast()
    }

    /// Where the table of channels is, and where histories are; `None` if the ring has no channels.
    pub(crate) fn of_channels(&self) -> Option<(*mut u8, *mut u64)> {
        let has_channels = self.geometry.slot.channels > 0;
        has_channels.then(|| (self.entry(Table::Channels, 0), self.entry(Table::Histories, 0).cast()))
    }

    /// The header of a history, by its place in the region.
    pub(super) fn history(&self, at: u64) -> &HistoryHeader {
        let history = self.entry(Table::Histories, at);
        // SAFETY: within the mapping (`Geometry::offset` checks its begin, and `append` its length), aligned to 8
        // bytes, and all fields are atomics.
        unsafe { &*history.cast::<HistoryHeader>() }
    }

    pub(crate) fn slot(&self, index: u64) -> &SlotHeader {
        let slot = self.entry(Table::Slots, index);
        // SAFETY: within the mapping (`Geometry::offset` checks), aligned to 8 bytes because offset and length of slots
        // are, and all fields are atomics.
        unsafe { &*slot.cast::<SlotHeader>() }
    }

    /// The words of a slot: what a cursor points at.
    pub(crate) fn words(&self, index: u64) -> *mut u64 {
        self.entry(Table::Slots, index).wrapping_add(size_of::<SlotHeader>()).cast()
    }

    /// The open spans of a slot, free entries included.
    pub(crate) fn spans(&self, index: u64) -> &[OpenSpan] {
        let spans = self.words(index).wrapping_add(self.geometry.slot.words as usize);
        // SAFETY: the part of the slot after its words, which has this length, within the mapping and aligned to 8
        // bytes. All fields are atomics.
        unsafe { core::slice::from_raw_parts(spans.cast(), self.geometry.slot.spans as usize) }
    }

    /// The entries of a slot for its histories in channels.
    pub(crate) fn channels(&self, index: u64) -> &[AtomicU64] {
        let channels = self.spans(index).as_ptr_range().end;
        // SAFETY: the part of the slot after its open spans, which has this length, within the mapping and aligned to 8
        // bytes.
        unsafe { core::slice::from_raw_parts(channels.cast(), self.geometry.slot.channels as usize) }
    }

    /// What the slot of a task says besides; `None` if the ring has no room for tasks.
    pub(crate) fn task(&self, index: u64) -> Option<&TaskPart> {
        let parts = &self.geometry.slot;
        let task = self.entry(Table::Slots, index).wrapping_add(parts.task_at_bytes() as usize);
        // SAFETY: if it has one, the part of the slot after all others, within the mapping and aligned to 8 bytes. All
        // fields are atomics.
        parts.has_task.then(|| unsafe { &*task.cast::<TaskPart>() })
    }

    /// What the slot of a thread says of the thread's sleeps; `None` if the ring has no room for tasks.
    pub(crate) fn rest(&self, index: u64) -> Option<&RestPart> {
        let part = ptr::from_ref(self.task(index)?).cast::<RestPart>();
        // SAFETY: it is shorter than the part for a task, and at the same place. All fields are atomics.
        Some(unsafe { &*part })
    }

    /// The slot that a cursor points into, if it points into this ring.
    pub(crate) fn slot_of(&self, cursor: *mut u64) -> Option<u64> {
        let slots = self.geometry.extent(Table::Slots);
        let distance = cursor.addr().checked_sub(self.words(0).addr())? as u64;
        let index = distance / slots.entry_len_bytes;
        (index < slots.capacity).then_some(index)
    }

    /// How many entries of a table were handed out.
    pub(crate) fn used(&self, table: Table) -> &AtomicU64 {
        &self.control.counters().used[table.index()]
    }

    /// Hands out `count` entries of a table, and reserves their memory. Returns the index of the first. A full table
    /// counts as no memory.
    pub(crate) fn append(&self, table: Table, count: u64) -> Result<u64, Unreserved> {
        let used = self.used(table);
        loop {
            // ORDERING: relaxed: the exchange decides who gets the entries, other processes included.
            let first = used.load(Relaxed);
            let capacity = self.geometry.capacity(table);
            let end = first.checked_add(count).filter(|&end| end <= capacity).ok_or(Unreserved::NoMemory)?;
            self.reserve(table, first, end)?;
            // ORDERING: release, pairs with the acquires of `lock_names` and `module_registry`: the memory is reserved.
            if used.compare_exchange(first, end, Release, Relaxed).is_ok() {
                self.publish_used(table, end);
                return Ok(first);
            }
        }
    }

    /// Tells the reader that the first `end` entries of a table were handed out.
    pub(super) fn publish_used(&self, table: Table, end: u64) {
        // ORDERING: relaxed: an entry counts once its own state says so. The maximum, because a thread may store its
        // `end` after one that got later entries.
        self.header().regions[table.index()].used.fetch_max(end, Relaxed);
    }

    /// Makes entries `from..to` of a table safe to write to.
    pub(crate) fn reserve(&self, table: Table, from: u64, to: u64) -> Result<(), Unreserved> {
        if from >= to {
            return Ok(());
        }
        let len_bytes = (to - from) * self.geometry.extent(table).entry_len_bytes;
        sys::reserve(self.entry(table, from), len_bytes as usize, self.geometry.page_len_bytes)
    }
}
