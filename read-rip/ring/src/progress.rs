//! A quick look at a living ring: how far each thread has come, and its held-lock table.
//!
//! It copies no words and no names, so a ring of 40,000 threads takes some milliseconds. Each slot's header is copied
//! once. An entry counts if its checksum fits; of a table that changes meanwhile, the entries are of slightly different
//! moments. That is enough for numbers on a screen, and proves nothing.

use std::io;
use std::mem::{offset_of, size_of};

use librip_format::SlotHeader;

use super::bytes::Bytes;
use super::copy::CopiedBytes;
use super::{Header, HeldLock, SlotKind, SlotState, Source, held};

/// Slots of at most this length are copied whole, many at once, bytes. Of longer ones the headers are copied alone.
const WHOLE_MAX_BYTES: u64 = 4096;
/// How much is copied at once, bytes.
const PIECE_BYTES: u64 = 256 << 10;

/// A thread, as its slot says at this moment.
#[derive(Clone, Debug)]
pub struct Progress {
    pub index: u64,
    /// The number of owners that the slot has had.
    pub generation: u32,
    /// The thread's process.
    pub pid: u32,
    pub tid: u32,
    /// The number of words that the slot has ever taken.
    pub count: u64,
    /// The locks that the thread holds or waits for.
    pub held: Vec<HeldLock>,
}

/// Looks at all threads that have slots and have not ended. `header` is the ring's present one.
///
/// # Errors
///
/// Those of reading.
pub fn progress(source: &Source, header: &Header) -> io::Result<Vec<Progress>> {
    const HEADER_LEN: u64 = size_of::<SlotHeader>() as u64;
    let (slots, mut copied, mut found) = (&header.slots, CopiedBytes::default(), Vec::new());
    let len = slots.entry_len_bytes;
    let at_once = if len > WHOLE_MAX_BYTES { 1 } else { PIECE_BYTES / len };
    for first in (0..slots.used).step_by(at_once as usize) {
        let last = (first + at_once).min(slots.used);
        // The header of the last slot is enough.
        let wanted = (last - first - 1) * len + HEADER_LEN;
        let bytes = copied.take_all(source, slots.offset + first * len, wanted as usize)?;
        for index in first..last {
            let at = ((index - first) * len) as usize;
            found.extend(glimpse(index, &Bytes(&bytes.0[at..at + HEADER_LEN as usize])));
        }
    }
    Ok(found)
}

fn glimpse(index: u64, bytes: &Bytes<'_>) -> Option<Progress> {
    let state = SlotState::from_raw(bytes.u32(offset_of!(SlotHeader, state)));
    let kind = SlotKind::from(bytes.u32(offset_of!(SlotHeader, kind)));
    (state == Some(SlotState::Live) && kind.is_recorded()).then(|| Progress {
        index,
        generation: bytes.u32(offset_of!(SlotHeader, generation)),
        pid: bytes.u32(offset_of!(SlotHeader, pid)),
        tid: bytes.u32(offset_of!(SlotHeader, tid)),
        count: bytes.u64(offset_of!(SlotHeader, count)),
        held: held::read(bytes, bytes).locks,
    })
}
