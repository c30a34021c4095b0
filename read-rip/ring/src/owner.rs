//! The header of a slot: who owns it, without the words.

use std::mem::offset_of;

use librip_format::SlotHeader;

use super::bytes::Bytes;
use super::{Position, Slot, SlotKind, SlotState};

/// The slot's header; `None` for a slot that was never used.
pub(super) fn owner(index: u64, bytes: &Bytes<'_>) -> Option<Slot> {
    let raw_state = bytes.u32(offset_of!(SlotHeader, state));
    let count = bytes.u64(offset_of!(SlotHeader, count));
    if raw_state == librip_format::SLOT_FREE && count == 0 {
        return None;
    }
    // A state that is unknown is damage.
    let state = SlotState::from_raw(raw_state).unwrap_or(SlotState::Live);
    let first_sequence = match state {
        // Some ids may be the next owner's already, and the next owner has written nothing.
        SlotState::Claiming => count,
        SlotState::Live | SlotState::Exited => bytes.u64(offset_of!(SlotHeader, first_sequence)),
    };
    Some(Slot {
        index,
        state,
        kind: SlotKind::from(bytes.u32(offset_of!(SlotHeader, kind))),
        generation: bytes.u32(offset_of!(SlotHeader, generation)),
        pid: bytes.u32(offset_of!(SlotHeader, pid)),
        tid: bytes.u32(offset_of!(SlotHeader, tid)),
        pid_namespace: u64::from(bytes.u32(offset_of!(SlotHeader, pid_namespace))),
        claimed_boottime_ns: bytes.u64(offset_of!(SlotHeader, claimed_boottime_ns)),
        exited_boottime_ns: bytes.u64(offset_of!(SlotHeader, exited_boottime_ns)),
        first_slot_count: if bytes.u32(offset_of!(SlotHeader, creator_slot)) == 0 {
            bytes.u64(offset_of!(SlotHeader, creator_count))
        } else {
            0
        },
        creator: position(bytes, offset_of!(SlotHeader, creator_slot), offset_of!(SlotHeader, creator_count)),
        joiner: (state == SlotState::Exited)
            .then(|| {
                position(bytes, offset_of!(SlotHeader, joiner_slot), offset_of!(SlotHeader, joiner_count))
            })
            .flatten(),
        name: bytes.text(offset_of!(SlotHeader, name), librip_format::THREAD_NAME_LEN_BYTES),
        is_named: bytes.u16(offset_of!(SlotHeader, flags)) & librip_format::SLOT_FLAG_NAMED != 0,
        first_sequence,
        count,
        ..Slot::default()
    })
}

/// A position in another slot, from these fields; `None` when unknown.
fn position(bytes: &Bytes<'_>, slot: usize, count: usize) -> Option<Position> {
    let index = u64::from(bytes.u32(slot)).checked_sub(1)?;
    Some(Position { index, count: bytes.u64(count) })
}

/// Whether two copies of a slot's header have the same owner. Other fields, such as the name, may change while a
/// thread owns the slot.
pub(super) fn is_same_owner(one: &Bytes<'_>, other: &Bytes<'_>) -> bool {
    let same_u32 = |at| one.u32(at) == other.u32(at);
    let same_u64 = |at| one.u64(at) == other.u64(at);
    same_u32(offset_of!(SlotHeader, state))
        && same_u32(offset_of!(SlotHeader, generation))
        && same_u32(offset_of!(SlotHeader, pid))
        && same_u32(offset_of!(SlotHeader, tid))
        && same_u64(offset_of!(SlotHeader, claimed_boottime_ns))
        && same_u64(offset_of!(SlotHeader, first_sequence))
}
