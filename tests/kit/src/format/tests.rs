//! Compares the table with the types of `librip_format`.

use std::mem::{offset_of, size_of};

use super::*;

/// Compares a structure of the table with a type of `librip_format`, field by field. Fails to compile if the table
/// lacks a field.
macro_rules! compare {
    ($name:ident, $type:ident: $($ours:ident $theirs:ident,)+) => {{
        use librip_format::$type;
        fn len_of<F>(_: fn(&$type) -> &F) -> usize {
            size_of::<F>()
        }
        let theirs = [$((stringify!($ours), offset_of!($type, $theirs), len_of(|it| &it.$theirs)),)+];
        let ours: Vec<_> = $name::FIELDS.iter().map(|field| (field.name, field.at, field.len)).collect();
        assert_eq!(ours, theirs, "{}", stringify!($name));
        assert_eq!($name::LEN, size_of::<$type>(), "{}", stringify!($name));
        // Does not compile unless all fields are named.
        let _ = |it: &$type| {
            let $type { $($theirs: _,)+ } = it;
        };
    }};
}

#[test]
fn the_header_and_its_regions_are_as_in_the_format_crate() {
    compare! { header_at, Header:
        MAGIC magic, BYTE_ORDER byte_order, VERSION_MAJOR version_major, VERSION_MINOR version_minor,
        HEADER_LEN header_len_bytes, MACHINE machine, PAGE_LEN page_len_bytes, UID uid, BOOT_ID boot_id, PID pid,
        TICKS_PER_SECOND ticks_per_second, START_TIME start_time_ticks, PID_NAMESPACE pid_namespace,
        CREATED_REALTIME created_realtime_ns, CREATED_BOOTTIME created_boottime_ns, FILE_SYSTEM file_system,
        HOST host, SETTINGS_IGNORED settings_ignored, SLOT_WORDS slot_words, SLOT_LEN slot_len_bytes,
        FILE_LEN file_len_bytes, CHECKSUM checksum, REGIONS regions, CLOCK_LEVEL clock_level,
        CLOCK_SOURCE clock_source, CLOCK_SHIFT clock_shift, SPAN_ENTRIES span_entries,
        CLOCK_BASE_TICKS clock_base_ticks, CLOCK_BASE_BOOTTIME clock_base_boottime_ns,
        CLOCK_TICKS_PER_KILOSECOND clock_ticks_per_kilosecond, REFUSED_FULL threads_refused_full,
        REFUSED_MEMORY threads_refused_memory, WITHOUT_EXIT threads_without_exit, SLOTS_REUSED slots_reused,
        METADATA_REFUSED metadata_refused, HELD_OVERFLOWS held_overflows, RELEASES_UNMATCHED releases_unmatched,
        EXIT_STATE exit_state, EXIT_STATUS exit_status, EXITED_BOOTTIME exited_boottime_ns, FORKS forks,
        RECENT_CHILDREN recent_children, LOCK_NAMES_REFUSED lock_names_refused, TIME_NAMESPACE time_namespace,
        BOOTTIME_OFFSET boottime_offset_ns, FILE_DEVICE file_device, FILE_INODE file_inode,
        INCIDENTS incidents,
        HANDED_OVER_PLACES handed_over_places,
        HANDED_OVER_LOCKS handed_over_locks,
        REFUSED_FILTER threads_refused_filter,
        SPAN_OVERFLOWS span_overflows,
        CAPTURES_REFUSED captures_refused,
        CHANNEL_ENTRIES channel_entries, SAMPLED_TIMES sampled_times, TASK_LEN task_len_bytes,
        USAGE_LEVEL usage_level, CHANNELS_REFUSED channels_refused, TASKS_REFUSED tasks_refused,
        FAULT_NS fault_ns,
    }
    compare! { incident_at, Incident:
        KIND kind, COUNT count, PID pid, TID tid, LOCK lock, CALLER caller, BOOTTIME boottime_ns,
    }
    compare! { region_at, Region:
        KIND kind, ENTRY_LEN entry_len_bytes, OFFSET offset, CAPACITY capacity, USED used,
    }
    assert_eq!(REGIONS, librip_format::REGIONS_MAX);
    assert_eq!(MAGIC, librip_format::MAGIC);
    assert_eq!(BYTE_ORDER, librip_format::BYTE_ORDER);
    assert_eq!(REGION_ALIGN as u64, librip_format::REGION_ALIGN_BYTES);
}

#[test]
fn the_entries_of_the_tables_are_as_in_the_format_crate() {
    compare! { module_at, Module:
        STATE state, PID pid, LOAD_BIAS load_bias, BEGIN begin, END end, PATH path,
        BUILD_ID_LEN build_id_len_bytes, IS_EXECUTABLE is_executable, BUILD_ID build_id,
        FILE_LEN file_len_bytes, MODIFIED modified_ns, CODE_BEGIN code_begin, CODE_END code_end,
        RESERVED reserved,
    }
    compare! { site_at, Site:
        STATE state, MODULE module, PC pc, TEXT text, LINE line, COLUMN column, KIND kind,
        OPERAND_COUNT operand_count, FLAGS flags, OPERAND_TYPES operand_types,
    }
    compare! { static_text_at, StaticText:
        STATE state, PID pid, ADDRESS address, TEXT text, LEN_BYTES len_bytes,
    }
    compare! { channel_at, Channel: STATE state, WORDS words, NAME name, }
    compare! { channel_entry_at, ChannelEntry: CHANNEL channel, LEVEL level, RESERVED reserved, }
    compare! { history_at, HistoryHeader:
        SLOT slot, CHANNEL channel, WORDS words, GENERATION generation, FIRST_SEQUENCE first_sequence,
        RESERVED reserved, COUNT count,
    }
    compare! { lock_name_at, LockName: STATE state, PID pid, LOCK lock, NAME name, }
    compare! { call_at, CallLocation:
        STATE state, PID pid, ADDRESS address, LINE line, COLUMN column, FILE_LEN file_len_bytes,
        RESERVED reserved, FILE file,
    }
    compare! { poll_place_at, PollPlace:
        STATE state, PID pid, LOCATION location, NAME name, RESERVED reserved, LONGEST longest, LANES lanes,
    }
    compare! { long_poll_at, LongPoll:
        STATE state, PID pid, TASK task, TID tid, BEGAN began, TOOK took, LAST last, NAME name,
    }
    compare! { poll_lane_at, PollLane: POLLS polls, DELAYS delays, }
    compare! { poll_lengths_at, PollLengths: COUNTS counts, GREATEST greatest, }
    assert_eq!(
        [POLL_LANES, POLL_COUNTS, poll_place_at::LANES - poll_place_at::LONGEST],
        [
            librip_format::POLL_LANES,
            librip_format::POLL_COUNTS,
            librip_format::LONG_POLLS * long_poll_at::LEN
        ]
    );
}

#[test]
fn the_slot_and_its_held_lock_table_are_as_in_the_format_crate() {
    compare! { slot_at, SlotHeader:
        STATE state, KIND kind, GENERATION generation, PID pid, TID tid,
        CREATOR_SLOT creator_slot, CLAIMED claimed_boottime_ns, EXITED exited_boottime_ns,
        FIRST_SEQUENCE first_sequence, PID_NAMESPACE pid_namespace,
        JOINER_SLOT joiner_slot, HELD_OVERFLOWED held_overflowed, FLAGS flags, HELD_END held_end,
        NAME name, JOINER_COUNT joiner_count, HELD held, CREATOR_COUNT creator_count, COUNT count,
    }
    compare! { task_at, TaskPart:
        TURN turn, SINCE since, POLLER poller, WAKES wakes, WAKES_POLLED wakes_polled, WAKERS wakers, WOKEN woken,
        LOCATION location, ORIGIN origin, AWAITS awaits, ENTRY_TURNS entry_turns,
    }
    compare! { await_at, AwaitEntry: PLACE place, TURN turn, }
    compare! { held_at, HeldLock: LOCK lock, META meta, SINCE since, }
    compare! { span_at, OpenSpan: BEGIN begin, SINCE since, VALUE value, }
    assert_eq!(HELD_ENTRIES, librip_format::HELD_MAX);
}

#[test]
fn the_regions_and_states_are_as_in_the_format_crate() {
    use librip_format as theirs;
    assert_eq!(
        [
            region::MODULES,
            region::SITES,
            region::TEXTS,
            region::SLOTS,
            region::LOCK_NAMES,
            region::CALLS,
            region::STRINGS,
            region::CHANNELS,
            region::HISTORIES,
            region::POLLS,
        ],
        [
            theirs::REGION_MODULES,
            theirs::REGION_SITES,
            theirs::REGION_TEXTS,
            theirs::REGION_SLOTS,
            theirs::REGION_LOCK_NAMES,
            theirs::REGION_CALLS,
            theirs::REGION_STRINGS,
            theirs::REGION_CHANNELS,
            theirs::REGION_HISTORIES,
            theirs::REGION_POLLS,
        ]
    );
    assert_eq!(
        [slot_state::FREE, slot_state::LIVE, slot_state::EXITED, slot_state::CLAIMING],
        [theirs::SLOT_FREE, theirs::SLOT_LIVE, theirs::SLOT_EXITED, theirs::SLOT_CLAIMING]
    );
    assert_eq!([name_state::FREE, name_state::CLAIMED], [theirs::NAME_FREE, theirs::NAME_CLAIMED]);
}

#[test]
fn the_kinds_and_operands_are_as_in_the_format_crate() {
    use librip_format as theirs;
    assert_eq!(
        [kind::SNAP, kind::PROGRESS, kind::LOCK_WAIT, kind::LOCK_ACQUIRED, kind::LOCK_RELEASED],
        [
            theirs::KIND_SNAP,
            theirs::KIND_PROGRESS,
            theirs::KIND_LOCK_WAIT,
            theirs::KIND_LOCK_ACQUIRED,
            theirs::KIND_LOCK_RELEASED,
        ]
    );
    assert_eq!(
        [
            kind::LOCK_TRY_FAILED,
            kind::LOCK_ACQUIRE_BEGIN,
            kind::CONDITION_WAIT,
            kind::CONDITION_WOKEN,
            kind::LOCK_DESTROYED,
            kind::LOCK_INITIALISED,
        ],
        [
            theirs::KIND_LOCK_TRY_FAILED,
            theirs::KIND_LOCK_ACQUIRE_BEGIN,
            theirs::KIND_CONDITION_WAIT,
            theirs::KIND_CONDITION_WOKEN,
            theirs::KIND_LOCK_DESTROYED,
            theirs::KIND_LOCK_INITIALISED,
        ]
    );
    assert_eq!(
        [kind::CONDITION_SIGNALLED, kind::CONDITION_UNHEARD, kind::CONDITION_DESTROYED],
        [theirs::KIND_CONDITION_SIGNALLED, theirs::KIND_CONDITION_UNHEARD, theirs::KIND_CONDITION_DESTROYED,]
    );
    assert_eq!(
        [kind::EVENT, kind::SPAN_BEGIN, kind::SPAN_END],
        [theirs::KIND_EVENT, theirs::KIND_SPAN_BEGIN, theirs::KIND_SPAN_END]
    );
    assert_eq!([kind::CHANNEL_PEER, operand::PEER], [theirs::KIND_CHANNEL_PEER, theirs::OPERAND_PEER]);
    assert_eq!(
        [operand::WORD, operand::DOUBLE, operand::LOCK, operand::TIME, operand::SINCE],
        [
            theirs::OPERAND_WORD,
            theirs::OPERAND_DOUBLE,
            theirs::OPERAND_LOCK,
            theirs::OPERAND_TIME,
            theirs::OPERAND_SINCE,
        ]
    );
    assert_eq!(
        [operand::CONDITION, operand::CALLER, operand::LOCATION, operand::STACK, operand::SHAPE],
        [
            theirs::OPERAND_CONDITION,
            theirs::OPERAND_CALLER,
            theirs::OPERAND_LOCATION,
            theirs::OPERAND_STACK,
            theirs::OPERAND_SHAPE,
        ]
    );
}

#[test]
fn the_types_of_locks_are_as_in_the_format_crate() {
    use librip_format as theirs;
    assert_eq!(
        [lock_type::UNKNOWN, lock_type::MUTEX, lock_type::RWLOCK, lock_type::SPIN, lock_type::SEMAPHORE],
        [
            theirs::LOCK_TYPE_UNKNOWN,
            theirs::LOCK_TYPE_MUTEX,
            theirs::LOCK_TYPE_RWLOCK,
            theirs::LOCK_TYPE_SPIN,
            theirs::LOCK_TYPE_SEMAPHORE,
        ]
    );
    assert_eq!(
        [lock_type::THREAD, lock_type::BARRIER, lock_type::MESSAGE, lock_type::ONCE, lock_type::WAKE],
        [
            theirs::LOCK_TYPE_THREAD,
            theirs::LOCK_TYPE_BARRIER,
            theirs::LOCK_TYPE_MESSAGE,
            theirs::LOCK_TYPE_ONCE,
            theirs::LOCK_TYPE_WAKE,
        ]
    );
    assert_eq!(lock_type::SHIFT, theirs::SITE_LOCK_TYPE_SHIFT);
    assert_eq!((lock_type::BITS, lock_type::OF_FUTURE), (theirs::SITE_LOCK_TYPE, theirs::SITE_OF_FUTURE));
}

#[test]
fn the_bits_of_calls_are_as_in_the_format_crate() {
    use librip_format as theirs;
    assert_eq!(
        [call::BITS, call::LOCK_BITS, call::LOCK_SHARED, call::LOCK_OWNED, 1 << call::HELD_OWNED_BIT],
        [
            theirs::CALL_BITS,
            theirs::CALL_LOCK_BITS,
            theirs::CALL_LOCK_SHARED,
            theirs::CALL_LOCK_OWNED,
            theirs::HELD_OWNED,
        ]
    );
    for bits in 0..32 {
        let (is_shared, is_owned) = (bits & 8 != 0, bits & 16 != 0);
        let expected = theirs::call_flags(bits, is_shared, is_owned);
        assert_eq!(call::flags(bits, is_shared, is_owned), expected, "{bits}");
    }
}

#[test]
fn the_bits_of_words_and_of_held_locks_are_as_in_the_format_crate() {
    use librip_format as theirs;
    assert_eq!(
        [
            held::ACQUIRING,
            held::WAITING,
            held::HELD,
            held::RELEASING,
            held::COND_WAIT,
            held::DESTROYED,
            held::SEM_WAIT,
        ],
        [
            theirs::HELD_ACQUIRING,
            theirs::HELD_WAITING,
            theirs::HELD_HELD,
            theirs::HELD_RELEASING,
            theirs::HELD_COND_WAIT,
            theirs::HELD_DESTROYED,
            theirs::HELD_SEM_WAIT,
        ]
    );
    assert_eq!(
        [held::FOR_UNIT, held::FOR_BARRIER, held::FOR_THREAD, held::FOR_MESSAGE],
        [theirs::HELD_FOR_UNIT, theirs::HELD_FOR_BARRIER, theirs::HELD_FOR_THREAD, theirs::HELD_FOR_MESSAGE,]
    );
    assert_eq!(held::FOR_MESSAGE, theirs::HELD_FOR, "all of its bits");
    assert_eq!(
        [held::STATE_SHIFT, held::PC_SHIFT, held::RECURSION_SHIFT],
        [theirs::HELD_STATE_SHIFT, theirs::HELD_PC_SHIFT, theirs::HELD_RECURSION_SHIFT]
    );
    for (bit, mask) in [
        (held::SHARED_BIT, theirs::HELD_SHARED),
        (held::SINCE_BIT, theirs::HELD_SINCE),
        (held::CALLER_BIT, theirs::HELD_CALLER),
        (held::TRY_BIT, theirs::HELD_TRY),
        (held::PROCESS_SHARED_BIT, theirs::HELD_PROCESS_SHARED),
        (word::OPERAND_BIT, theirs::OPERAND_FLAG),
    ] {
        assert_eq!(1 << bit, mask, "bit {bit}");
    }
    assert_eq!((word::SEQUENCE_SHIFT, word::PAYLOAD), (theirs::SEQUENCE_SHIFT, theirs::PAYLOAD_MASK));
    for (sequence, payload, is_operand) in [(0, 0, false), (1_000_003, !0, true), (!0, 0x1234, false)] {
        assert_eq!(
            pack(sequence, is_operand, payload),
            theirs::pack(sequence, payload, is_operand),
            "{sequence} {payload:#x} {is_operand}"
        );
    }
}
