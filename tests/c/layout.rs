//! The numbers in `librip.h` equal those of the format.

use std::collections::BTreeMap;
use std::mem::{offset_of, size_of};

use librip_format::{HeldLock, SlotHeader};

use crate::{GCC, build_with, tool};

#[test]
fn the_headers_offsets_and_constants_are_those_of_the_format() {
    let program = build_with(GCC, &["layout.c"], "layout", &[], &[]);
    let said = tool(&mut std::process::Command::new(program));
    let said: BTreeMap<&str, u64> = said
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, n)| (name, n.parse().unwrap()))
        .collect();
    let second = offset_of!(SlotHeader, held) + size_of::<HeldLock>();
    let expected: BTreeMap<&str, u64> = [
        ("state", offset_of!(SlotHeader, state) as u64),
        ("pid", offset_of!(SlotHeader, pid) as u64),
        ("tid", offset_of!(SlotHeader, tid) as u64),
        ("claimed_boottime_ns", offset_of!(SlotHeader, claimed_boottime_ns) as u64),
        ("first_sequence", offset_of!(SlotHeader, first_sequence) as u64),
        ("pid_namespace", offset_of!(SlotHeader, pid_namespace) as u64),
        ("held_overflowed", offset_of!(SlotHeader, held_overflowed) as u64),
        ("name", offset_of!(SlotHeader, name) as u64),
        ("held", offset_of!(SlotHeader, held) as u64),
        ("held[1].lock", (second + offset_of!(HeldLock, lock)) as u64),
        ("held[1].meta", (second + offset_of!(HeldLock, meta)) as u64),
        ("held[1].since", (second + offset_of!(HeldLock, since)) as u64),
        ("count", offset_of!(SlotHeader, count) as u64),
        ("sizeof(struct librip_slot_1)", librip_format::SLOT_HEADER_LEN_BYTES),
        // `arch::ThreadBlock` is private, and asserts the same.
        ("sizeof(struct librip_block_1)", 56),
        ("sizeof(struct librip_module_state_1)", 16),
        // The recorder's `packed`, `by_hand` and `channel_by_hand` assert the same.
        ("sizeof(struct librip_value_1)", 16),
        ("sizeof(struct librip_cycle_1)", 120),
        ("sizeof(struct rip_span)", 40),
        ("sizeof(struct rip_channel)", 24),
        ("offsetof(struct rip_channel, level)", 8),
        ("offsetof(struct rip_channel, words)", 16),
        ("offsetof(struct rip_channel, index)", 20),
        ("LIBRIP_KIND_SNAP", librip_format::KIND_SNAP.into()),
        ("LIBRIP_KIND_PROGRESS", librip_format::KIND_PROGRESS.into()),
        ("LIBRIP_KIND_LOCK_WAIT", librip_format::KIND_LOCK_WAIT.into()),
        ("LIBRIP_KIND_LOCK_ACQUIRED", librip_format::KIND_LOCK_ACQUIRED.into()),
        ("LIBRIP_KIND_LOCK_RELEASED", librip_format::KIND_LOCK_RELEASED.into()),
        ("LIBRIP_KIND_LOCK_TRY_FAILED", librip_format::KIND_LOCK_TRY_FAILED.into()),
        ("LIBRIP_KIND_CONDITION_WAIT", librip_format::KIND_CONDITION_WAIT.into()),
        ("LIBRIP_KIND_CONDITION_WOKEN", librip_format::KIND_CONDITION_WOKEN.into()),
        ("LIBRIP_KIND_LOCK_DESTROYED", librip_format::KIND_LOCK_DESTROYED.into()),
        ("LIBRIP_KIND_EVENT", librip_format::KIND_EVENT.into()),
        ("LIBRIP_KIND_SPAN_BEGIN", librip_format::KIND_SPAN_BEGIN.into()),
        ("LIBRIP_KIND_SPAN_END", librip_format::KIND_SPAN_END.into()),
        ("LIBRIP_KIND_TASK", librip_format::KIND_TASK.into()),
        ("LIBRIP_SITE_PRINTF_", librip_format::SITE_PRINTF.into()),
        ("LIBRIP_SITE_CHANNEL_", librip_format::SITE_CHANNEL.into()),
        ("LIBRIP_OPERAND_LOCK_", librip_format::OPERAND_LOCK.into()),
        ("LIBRIP_OPERAND_TIME_", librip_format::OPERAND_TIME.into()),
        ("LIBRIP_OPERAND_SINCE_", librip_format::OPERAND_SINCE.into()),
        ("LIBRIP_OPERAND_CONDITION_", librip_format::OPERAND_CONDITION.into()),
        ("LIBRIP_OPERAND_SHAPE_", librip_format::OPERAND_SHAPE.into()),
        ("LIBRIP_VALUE_UNSIGNED_", librip_format::VALUE_UNSIGNED),
        ("LIBRIP_VALUE_I32_", librip_format::VALUE_I32),
        ("LIBRIP_VALUE_U64_", librip_format::VALUE_U64),
        ("LIBRIP_VALUE_I64_", librip_format::VALUE_I64),
        ("LIBRIP_VALUE_F64_", librip_format::VALUE_F64),
        ("LIBRIP_VALUE_BOOL_", librip_format::VALUE_BOOL),
        ("LIBRIP_VALUE_POINTER_", librip_format::VALUE_POINTER),
        ("LIBRIP_VALUE_BYTES_", librip_format::VALUE_BYTES),
        ("LIBRIP_VALUE_TEXT_", librip_format::VALUE_TEXT),
        ("LIBRIP_SEQUENCE_SHIFT_", librip_format::SEQUENCE_SHIFT.into()),
        ("LIBRIP_OPERAND_FLAG_", librip_format::OPERAND_FLAG),
        ("LIBRIP_PAYLOAD_MASK_", librip_format::PAYLOAD_MASK),
        ("LIBRIP_HELD_MAX_", librip_format::HELD_MAX as u64),
        ("LIBRIP_HELD_STATE_SHIFT_", librip_format::HELD_STATE_SHIFT.into()),
        ("LIBRIP_HELD_NONE_", librip_format::HELD_NONE),
        ("LIBRIP_HELD_ACQUIRING_", librip_format::HELD_ACQUIRING),
        ("LIBRIP_HELD_HELD_", librip_format::HELD_HELD),
        ("LIBRIP_HELD_SHARED_", librip_format::HELD_SHARED),
        ("LIBRIP_HELD_BITS_SHIFT_", librip_format::HELD_BITS_SHIFT.into()),
        ("LIBRIP_HELD_PC_SHIFT_", librip_format::HELD_PC_SHIFT.into()),
        ("LIBRIP_CHECKSUM_FACTOR_", librip_format::FACTOR),
        ("LIBRIP_CLOCK_LEVEL_TICKS_", librip_format::CLOCK_LEVEL_TICKS.into()),
        ("RIP_EXCLUSIVE", 0),
        ("RIP_SHARED", librip_format::SITE_SHARED.into()),
        ("RIP_TRY", librip_format::SITE_TRY.into()),
        ("RIP_REENTRANT", librip_format::SITE_REENTRANT.into()),
        ("RIP_READERS_FIRST", librip_format::SITE_READERS_FIRST.into()),
        ("RIP_TRACE", librip_format::LEVEL_TRACE.into()),
        ("RIP_DEBUG", librip_format::LEVEL_DEBUG.into()),
        ("RIP_INFO", librip_format::LEVEL_INFO.into()),
        ("RIP_WARN", librip_format::LEVEL_WARN.into()),
        ("RIP_ERROR", librip_format::LEVEL_ERROR.into()),
    ]
    .into();
    assert_eq!(said, expected);
}
