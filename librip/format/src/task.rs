//! Tasks: what the slot of a task says beside its words and its locks.
//!
//! A task is something that runs on threads, a part at a time: an async task, a call on a pool of blocking threads, a
//! coroutine. It has a slot of its own, of the kind [`SLOT_KIND_TASK`](crate::SLOT_KIND_TASK), which follows it from
//! thread to thread. A slot of a ring whose header has [`Header::task_len_bytes`](crate::Header::task_len_bytes) has
//! [`TaskPart`] at its end.
//!
//! ```text
//!              begins to be polled                 the poll returns
//!   suspended ----------------------> polled by a thread ------------> suspended
//!     turn even                          turn odd                        turn even
//! ```
//!
//! A *turn* is one of these steps. [`TaskPart::turn`] counts them, so it also says in which of the two states the task
//! is. Only the thread that polls a task writes to its slot. Wakers are different: any thread may wake a task. They
//! write [`TaskPart::wakes`] and [`TaskPart::woken`], and nothing else.
//!
//! # Futures within a task
//!
//! One task may have several futures that run beside one another, as in `select!` and `join!`. So a task may wait in
//! two places, or hold a lock in a future that is not polled any more. [`TaskPart::entry_turns`] says for each entry of
//! the held-lock table when the future that has it was polled last. [`TaskPart::awaits`] is the tree of those futures
//! that the program has named.
//!
//! # Threads that poll tasks
//!
//! The slot of a thread has [`RestPart`] in the same place. An executor may say when its threads sleep.

use core::mem::{offset_of, size_of};
use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::{HELD_MAX, PAYLOAD_MASK};

/// A task has room for this many futures that the program has named.
pub const AWAITS_MAX: usize = 8;

/// The part of a slot that is there for tasks, after everything else.
#[repr(C)]
#[derive(Debug)]
pub struct TaskPart {
    /// Twice the number of polls; one less while the task is polled. Written at each turn.
    pub turn: AtomicU64,
    /// When the last poll began, or, if the clock was read at its end, when it ended: [`task_since`].
    pub since: AtomicU64,
    /// From where the task is polled, or was polled last: the place of that slot's words, in bytes after this slot's
    /// words, as a signed number. It is the slot of a thread, or of the task whose poll polls this one. If there is no
    /// slot at that place, it is not known: the thread has none.
    pub poller: AtomicU64,
    /// How often the task was woken. Written by any thread, only with [`TASK_COUNTS_WAKES`].
    pub wakes: AtomicU64,
    /// The lower 32 bits of [`TaskPart::wakes`] when the last poll began. Written after the turn.
    pub wakes_polled: AtomicU32,
    /// How many clones of the task's waker there were when the last poll ended, or [`WAKERS_UNKNOWN`]. Whoever drops a
    /// clone later lowers the number, to 1 at least. While the task is polled, it says nothing, or
    /// [`WAKERS_OFF_WORKER`]. Packed by [`pack_wakers`].
    pub wakers: AtomicU32,
    /// When the task was woken for the first time since then: [`sampled_time`](crate::sampled_time) of the number of
    /// the wake, with its ticks.
    pub woken: AtomicU64,
    /// The address of the location at which the task was made: see [`call`](crate::call); 0 if it is not known. Above
    /// it the number of futures that have no room in [`TaskPart::awaits`]: see [`with_left_out`].
    pub location: AtomicU64,
    /// What kind of task it is, and where it runs: see [`task_origin`].
    pub origin: AtomicU64,
    /// Futures of the task that the program has named, as many as there is room for. All zero where there is none.
    pub awaits: [AwaitEntry; AWAITS_MAX],
    /// For each entry of the held-lock table: [`entry_turn`].
    pub entry_turns: [AtomicU32; HELD_MAX],
}

/// The same part in the slot of a thread: when the thread sleeps, if an executor reports that. Only the thread writes
/// it.
#[repr(C)]
#[derive(Debug)]
pub struct RestPart {
    /// Twice the number of sleeps; one less while the thread sleeps. 0: nobody has said when it sleeps.
    pub turn: AtomicU64,
    /// When the last sleep began, or when it ended: [`task_since`].
    pub since: AtomicU64,
    /// For how long the thread was awake before its last sleep, since it has a slot, ticks, and for how long it slept.
    /// Both are halved as often as [`rest_shift`] says, so they are about the last seconds.
    pub awake: AtomicU64,
    /// See [`RestPart::awake`].
    pub asleep: AtomicU64,
}

/// A future within a task, from its first poll until it is dropped or ready.
#[repr(C)]
#[derive(Debug)]
pub struct AwaitEntry {
    /// The address of its location, and the number of the entry in which it was polled first: see [`await_place`].
    /// 0: the entry is free.
    pub place: AtomicU64,
    /// The turn in which it was polled last: an odd number. [`sampled_time`](crate::sampled_time) of `place`, with it.
    pub turn: AtomicU64,
}

/// Bytes of the part of a slot that is there for tasks.
pub const TASK_LEN_BYTES: u64 = size_of::<TaskPart>() as u64;

/// The largest id of a thread that Linux gives.
pub const THREAD_ID_MAX: u32 = 1 << 22;

/// The owner's id in the slot of a task has this bit. No thread has such an id.
pub const TASK_ID: u32 = 1 << 31;

/// [`task_origin`]: an async task.
pub const TASK_ASYNC: u64 = 1;
/// [`task_origin`]: a call that a pool of threads runs, which may block. It is polled once.
pub const TASK_BLOCKING: u64 = 2;
/// [`task_origin`]: a coroutine with a stack of its own. A turn is a switch to it or from it.
pub const TASK_COROUTINE: u64 = 3;

/// [`task_origin`]: only one thread polls the task.
pub const TASK_LOCAL: u64 = 1 << 8;
/// [`task_origin`]: wakes are counted.
pub const TASK_COUNTS_WAKES: u64 = 1 << 9;
/// [`task_origin`]: the task's name says of which kind it is, and many tasks have it.
pub const TASK_NAME_IS_KIND: u64 = 1 << 10;

/// The most workers that [`task_origin`] can tell.
pub const TASK_WORKERS_MAX: u64 = (1 << 16) - 1;

/// Packs [`TaskPart::origin`]. `kind` is a `TASK_*` with flags. `workers` is how many workers its runtime has, each of
/// which may poll it; 0 if none does, or if that is not known. `runtime` tells runtimes of a process apart, 0 if it is
/// not known.
pub const fn task_origin(kind: u64, workers: u64, runtime: u32) -> u64 {
    let workers = if workers > TASK_WORKERS_MAX { TASK_WORKERS_MAX } else { workers };
    kind & 0xffff | workers << 16 | (runtime as u64) << 32
}

/// How often the two sums of a [`RestPart`] are halved when they are together so many ticks. A tick is 8 to 16 ns, so
/// the sums are of 2 to 8 seconds.
pub const fn rest_shift(ticks: u64) -> u32 {
    (u64::BITS - ticks.leading_zeros()).saturating_sub(REST_BITS)
}

/// The sums of a [`RestPart`] are below this power of two, together.
const REST_BITS: u32 = 29;

/// The time of a poll, as a part of [`task_since`]. The lowest bit says that the clock was read at that moment. Without
/// it, the clock was read before the poll, by the thread that polls, and the time is not later than the poll's begin.
pub const fn task_ticks(ticks: u64, is_exact: bool) -> u64 {
    ticks & PAYLOAD_MASK & !1 | is_exact as u64
}

/// Packs [`TaskPart::since`]: a time from [`task_ticks`], and the lower 16 bits of the turn in which the task was
/// polled last, because the turn and the time may be of two polls.
#[inline(always)]
pub const fn task_since(turn: u64, ticks: u64) -> u64 {
    ticks | (turn.wrapping_sub(1) | 1) << SINCE_TURN_SHIFT
}

/// [`TaskPart::since`]: the first of the 16 bits of the turn.
pub const SINCE_TURN_SHIFT: u32 = 48;

/// Packs [`AwaitEntry::place`]. `outer` is the index of the entry of the future that polled this one first.
pub const fn await_place(location: u64, outer: Option<usize>) -> u64 {
    let outer = match outer {
        Some(outer) => outer as u64 + 1,
        None => 0,
    };
    location & PAYLOAD_MASK | outer << 48
}

/// Returns the index of the outer entry, by [`AwaitEntry::place`].
pub const fn await_outer(place: u64) -> Option<usize> {
    ((place >> 48) as usize & 0xff).checked_sub(1)
}

/// Packs [`TaskPart::location`]: with one more (`true`) or one less of the futures that have no room. `None` if there
/// is none, or if there are [`LEFT_OUT_MAX`].
pub const fn with_left_out(location: u64, is_more: bool) -> Option<u64> {
    match (left_out(location), is_more) {
        (LEFT_OUT_MAX, true) | (0, false) => None,
        (_, true) => Some(location + (1 << LEFT_OUT_SHIFT)),
        (_, false) => Some(location - (1 << LEFT_OUT_SHIFT)),
    }
}

/// Returns how many futures have no room, by [`TaskPart::location`].
pub const fn left_out(location: u64) -> u64 {
    location >> LEFT_OUT_SHIFT
}

/// No more futures without room are counted.
pub const LEFT_OUT_MAX: u64 = (1 << 16) - 1;

const LEFT_OUT_SHIFT: u32 = 48;

/// Packs an entry of [`TaskPart::entry_turns`]: the lower 27 bits of the turn in which the future that has the entry
/// was polled last; whether it was polled with the task's own waker; and the index of the future in
/// [`TaskPart::awaits`], if it has one.
pub const fn entry_turn(turn: u64, is_direct: bool, future: Option<usize>) -> u32 {
    let future = match future {
        Some(future) => future as u32 + 1,
        None => 0,
    };
    turn as u32 & ENTRY_TURN_MASK | (is_direct as u32) << ENTRY_DIRECT_SHIFT | future << 28
}

/// The bits of a turn in [`entry_turn`].
pub const ENTRY_TURN_MASK: u32 = (1 << ENTRY_DIRECT_SHIFT) - 1;

/// [`entry_turn`]: the bit that says that the future was polled with the task's own waker.
pub const ENTRY_DIRECT_SHIFT: u32 = 27;

/// Returns the index of the future, by [`entry_turn`].
pub const fn entry_future(entry: u32) -> Option<usize> {
    (entry as usize >> 28).checked_sub(1)
}

/// Packs [`TaskPart::wakers`]: a number up to 16 bits, and 16 bits that follow from it. A proof may rest on this
/// number, and a flipped bit must not make one.
#[inline(always)]
pub const fn pack_wakers(wakers: u32) -> u32 {
    let wakers = if wakers > WAKERS_UNKNOWN { WAKERS_UNKNOWN } else { wakers };
    wakers.wrapping_mul(WAKERS_FACTOR)
}

/// Unpacks [`TaskPart::wakers`]; [`WAKERS_UNKNOWN`] if its halves do not fit.
pub const fn unpack_wakers(packed: u32) -> u32 {
    let wakers = packed & 0xffff;
    if wakers.wrapping_mul(WAKERS_FACTOR) == packed { wakers } else { WAKERS_UNKNOWN }
}

/// The number, less the number shifted by 16 bits.
const WAKERS_FACTOR: u32 = 0xffff_0001;

/// [`TaskPart::wakers`]: the number is not known, or as high as this.
pub const WAKERS_UNKNOWN: u32 = 0xffff;

/// [`TaskPart::wakers`] of a task that is polled: the thread that polls it has given its place among the threads of the
/// executor to another one, for the rest of the poll.
pub const WAKERS_OFF_WORKER: u32 = WAKERS_UNKNOWN - 1;

const _: () = {
    assert!(size_of::<TaskPart>() == 256);
    assert!(offset_of!(TaskPart, awaits) == 64);
    assert!(offset_of!(TaskPart, entry_turns) == 192);
    assert!(size_of::<AwaitEntry>() == 16);
    assert!(size_of::<RestPart>() == 32);
    assert!(AWAITS_MAX < 15, "an index fits in four bits");
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_can_be_unpacked() {
        assert_eq!(await_outer(await_place(0x7fff_1234_5678, Some(7))), Some(7));
        assert_eq!(await_outer(await_place(0x7fff_1234_5678, None)), None);
        assert_eq!(await_place(u64::MAX, None), PAYLOAD_MASK);
        assert_eq!(entry_future(entry_turn(u64::MAX, true, Some(7))), Some(7));
        assert_eq!(entry_future(entry_turn(u64::MAX, true, None)), None);
        assert_eq!(entry_turn(u64::MAX, false, None), ENTRY_TURN_MASK);
        assert_eq!(entry_turn(0, true, None), ENTRY_TURN_MASK + 1);
    }

    #[test]
    fn a_flipped_bit_in_the_number_of_wakers_makes_no_other_number() {
        for wakers in [0, 1, 2, 3, 255, WAKERS_OFF_WORKER, WAKERS_UNKNOWN] {
            let packed = pack_wakers(wakers);
            assert_eq!(unpack_wakers(packed), wakers);
            for bit in 0..32 {
                assert_eq!(unpack_wakers(packed ^ 1 << bit), WAKERS_UNKNOWN, "{wakers}, bit {bit}");
            }
        }
        assert_eq!((pack_wakers(0), unpack_wakers(pack_wakers(u32::MAX))), (0, WAKERS_UNKNOWN));
    }

    #[test]
    fn futures_without_room_are_counted_up_to_a_limit_and_leave_the_location_as_it_is() {
        let location = 0x7fff_1234_5678;
        assert_eq!(with_left_out(location, false), None);
        let one = with_left_out(location, true).unwrap();
        assert_eq!((left_out(one), one & PAYLOAD_MASK), (1, location));
        assert_eq!(with_left_out(one, false), Some(location));
        let most = location | LEFT_OUT_MAX << LEFT_OUT_SHIFT;
        assert_eq!((left_out(most), with_left_out(most, true)), (LEFT_OUT_MAX, None));
    }

    #[test]
    fn the_sums_of_a_threads_rests_are_of_the_last_seconds() {
        assert_eq!([0, 1, (1 << REST_BITS) - 1].map(rest_shift), [0; 3]);
        assert_eq!([1 << REST_BITS, (1 << (REST_BITS + 1)) - 1].map(rest_shift), [1; 2]);
        for ticks in [1 << 40, PAYLOAD_MASK, u64::MAX] {
            assert!(ticks >> rest_shift(ticks) < 1 << REST_BITS);
        }
    }

    #[test]
    fn a_time_says_whether_it_is_exact_and_is_never_later() {
        assert_eq!(task_ticks(1001, true), 1001);
        assert_eq!(task_ticks(1001, false), 1000);
        assert_eq!(task_ticks(1000, true), 1001);
    }

    #[test]
    fn very_many_workers_are_as_many_as_can_be_told() {
        let origin = task_origin(TASK_ASYNC | TASK_LOCAL, 1 << 20, 77);
        assert_eq!((origin & 0xff, origin >> 16 & 0xffff, origin >> 32), (1, 65_535, 77));
    }
}
