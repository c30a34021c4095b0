//! What the slot of a task says besides: which of it can be believed.
//!
//! It knows no history and no locks.
//!
//! # What is of one moment
//!
//! The thread that polls the task writes all of it, but for the wakes. What belongs to a poll it stores between the
//! turns in which the poll begins and ends. So if the turn is the same in two copies, and a word is, then that word
//! belongs to the turn. A word that differs in two copies is not known, and neither is any word of a turn that differs.
//! The poller is stored before the turn in which the poll begins: of a suspended task it may be that of the next poll.
//! The time says itself to which poll it belongs.
//!
//! The number of answered wakes is stored after the turn in which a poll begins. So nobody sees a task whose wake is
//! answered, and which seems to be still suspended.

use std::mem::{offset_of, size_of};

use librip_format::{AwaitEntry, TaskPart};

use super::HELD_LOCKS_MAX;
use super::bytes::Bytes;

/// The record of a task has room for this many futures.
pub const FUTURES_MAX: usize = librip_format::AWAITS_MAX;
/// No more futures without room are counted.
pub const FUTURES_LEFT_OUT_MAX: u64 = librip_format::LEFT_OUT_MAX;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskKind {
    #[default]
    Async,
    /// A call that a pool of threads runs, which may block.
    Blocking,
    /// A coroutine with a stack of its own.
    Coroutine,
    /// A kind that this version does not know.
    Unknown(u8),
}

/// The executor of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Runtime {
    /// What tells it from others of the process.
    pub number: u32,
    /// How many workers it has, each of which may poll the task; 0 if none does, or if that is not known.
    pub workers: u32,
}

/// A task, as its slot describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskState {
    pub kind: TaskKind,
    /// Whether only one thread polls it.
    pub is_local: bool,
    pub counts_wakes: bool,
    /// Whether its name is one of few, which say what kind of task it is, as those of requests do.
    pub is_of_kind: bool,
    /// Its executor, if that is known.
    pub runtime: Option<Runtime>,
    /// Where it was made: the address of a location.
    pub location: Option<u64>,
    /// Twice the number of polls; one less while it is polled.
    pub turn: u64,
    /// When the last poll began, or when it ended: ticks.
    pub since_ticks: Option<u64>,
    /// Whether the clock was read then. Otherwise that time may be too early.
    pub is_since_exact: bool,
    /// The slot of the thread or task that polls it, or polled it last.
    pub poller: Option<u64>,
    /// How often it was woken since the last poll began; 0 if wakes are not counted or not known.
    pub wakes: u64,
    /// Whether what belongs to the turn may belong to another one: the task was polled while it was read.
    pub is_in_flux: bool,
    /// When it was woken for the first time since then, ticks.
    pub woken_ticks: Option<u64>,
    /// How many could wake the task when its last poll ended; `None` if that is not known, or while it is polled.
    pub wakers: Option<u32>,
    /// Whether the thread that polls it has given its place as a worker to another one.
    pub is_off_worker: bool,
    /// Futures of the task that the program has named, and that are not ready, by their index.
    pub futures: Vec<AwaitFuture>,
    /// How many more there are; [`FUTURES_LEFT_OUT_MAX`] if there are as many or more.
    pub left_out: u64,
    /// For each entry of the held-lock table, the future that has it, and when it was polled last.
    pub entries: [EntryTurn; HELD_LOCKS_MAX],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwaitFuture {
    /// Its index in the table of the task.
    pub index: usize,
    pub location: u64,
    /// The index of the future that polled it first.
    pub outer: Option<usize>,
    /// The turn in which it was polled last; `None` if that is not known.
    pub turn: Option<u64>,
}

/// Which future has an entry of the held-lock table, and when it was polled last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryTurn {
    /// The lower 27 bits of the turn; 0 if it is not known.
    pub turn: u32,
    /// Whether the future was polled with the task's own waker, and not with one of a combinator.
    pub is_direct: bool,
    pub future: Option<usize>,
}

impl TaskState {
    pub fn is_polled(&self) -> bool {
        self.turn % 2 == 1
    }

    /// How often it was polled, the present poll included.
    pub fn polls(&self) -> u64 {
        self.turn.div_ceil(2)
    }

    /// Whether the future with this entry of the held-lock table was polled in the last poll of the task; `None` if
    /// that is not known.
    pub fn is_entry_polled(&self, entry: usize) -> Option<bool> {
        let of = self.entries.get(entry).filter(|of| of.turn != 0)?;
        Some(of.turn == last_poll(self.turn) as u32 & librip_format::ENTRY_TURN_MASK)
    }

    /// Whether a future was polled in the last poll of the task; `None` if that is not known.
    pub fn is_future_polled(&self, index: usize) -> Option<bool> {
        let future = self.futures.iter().find(|future| future.index == index)?;
        Some(future.turn? == last_poll(self.turn))
    }
}

fn last_poll(turn: u64) -> u64 {
    turn.saturating_sub(1) | 1
}

/// The slots, to find the one from which a task is polled.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotsAt {
    pub(super) entry_len_bytes: u64,
    pub(super) used: u64,
}

/// Reads the part of slot `index` from two copies of it.
pub(super) fn read(first: &Bytes<'_>, second: &Bytes<'_>, index: u64, slots: SlotsAt) -> TaskState {
    let now = |at: usize| second.u64(at);
    let both = |at: usize| Some(now(at)).filter(|&word| word == first.u64(at));
    let is_of_one_turn = both(offset_of!(TaskPart, turn)).is_some();
    let of_turn = |at: usize| both(at).filter(|_| is_of_one_turn);
    let of_turn32 = |at: usize| Some(second.u32(at)).filter(|&word| is_of_one_turn && word == first.u32(at));
    let origin = now(offset_of!(TaskPart, origin));
    let turn = now(offset_of!(TaskPart, turn));
    let since = now(offset_of!(TaskPart, since));
    let has_flag = |flag: u64| origin & flag != 0;
    let ticks = librip_format::payload(since);
    let is_of_turn = ticks != 0 && since == librip_format::task_since(turn, ticks);
    let location = now(offset_of!(TaskPart, location));
    let is_same_location = librip_format::payload(location ^ first.u64(offset_of!(TaskPart, location))) == 0;
    let wakes = now(offset_of!(TaskPart, wakes));
    let polled = of_turn32(offset_of!(TaskPart, wakes_polled));
    // With them, a task that was woken would seem to sleep if its wakes are not known.
    let wakers = of_turn32(offset_of!(TaskPart, wakers)).filter(|_| turn % 2 == 0 && polled.is_some());
    let counts_wakes = has_flag(librip_format::TASK_COUNTS_WAKES);
    let unanswered = polled.map_or(0, |polled| u64::from((wakes as u32).wrapping_sub(polled)));
    let first_wake = (unanswered > 0).then(|| wakes.wrapping_sub(unanswered - 1));
    let woken = first_wake.and_then(|wake| {
        librip_format::sampled_ticks(wake, now(offset_of!(TaskPart, woken))).map(|ticks| ticks & !1)
    });
    let number = (origin >> 32) as u32;
    let workers = (origin >> 16) as u32 & 0xffff;
    TaskState {
        kind: match origin & 0xff {
            librip_format::TASK_ASYNC => TaskKind::Async,
            librip_format::TASK_BLOCKING => TaskKind::Blocking,
            librip_format::TASK_COROUTINE => TaskKind::Coroutine,
            other => TaskKind::Unknown(other as u8),
        },
        is_local: has_flag(librip_format::TASK_LOCAL),
        counts_wakes,
        is_of_kind: has_flag(librip_format::TASK_NAME_IS_KIND),
        runtime: (number != 0).then_some(Runtime { number, workers }),
        location: Some(librip_format::payload(location)).filter(|&it| is_same_location && it != 0),
        turn,
        since_ticks: is_of_turn.then_some(ticks & !1),
        is_since_exact: is_of_turn && ticks & 1 == 1,
        poller: of_turn(offset_of!(TaskPart, poller)).and_then(|distance| poller(distance, index, slots)),
        wakes: if counts_wakes { unanswered } else { 0 },
        is_in_flux: polled.is_none(),
        wakers: wakers
            .map(librip_format::unpack_wakers)
            .filter(|&it| counts_wakes && it != librip_format::WAKERS_UNKNOWN),
        woken_ticks: woken,
        // Of the poll that it is in: each ends with another value.
        is_off_worker: turn % 2 == 1
            && librip_format::unpack_wakers(second.u32(offset_of!(TaskPart, wakers)))
                == librip_format::WAKERS_OFF_WORKER,
        left_out: librip_format::left_out(location),
        futures: futures(first, second, is_of_one_turn),
        entries: std::array::from_fn(|entry| {
            let at = offset_of!(TaskPart, entry_turns) + 4 * entry;
            let Some(word) = of_turn32(at) else { return EntryTurn::default() };
            EntryTurn {
                turn: word & librip_format::ENTRY_TURN_MASK,
                is_direct: word >> librip_format::ENTRY_DIRECT_SHIFT & 1 == 1,
                future: librip_format::entry_future(word).filter(|&it| it < librip_format::AWAITS_MAX),
            }
        }),
    }
}

/// The slot at this distance from slot `index`, bytes.
fn poller(distance: u64, index: u64, slots: SlotsAt) -> Option<u64> {
    let distance = distance as i64;
    let len = i64::try_from(slots.entry_len_bytes).ok().filter(|&len| len > 0)?;
    let by = (distance % len == 0).then_some(distance / len)?;
    index.checked_add_signed(by).filter(|&poller| poller < slots.used && by != 0)
}

fn futures(first: &Bytes<'_>, second: &Bytes<'_>, is_of_one_turn: bool) -> Vec<AwaitFuture> {
    let places = (0..librip_format::AWAITS_MAX)
        .map(|index| (index, offset_of!(TaskPart, awaits) + index * size_of::<AwaitEntry>()));
    let known = places.filter_map(|(index, at)| {
        let [place] = first.same_words(second, at + offset_of!(AwaitEntry, place))?;
        let turn = offset_of!(AwaitEntry, turn) + at;
        let turn = second.u64(turn) * u64::from(second.u64(turn) == first.u64(turn));
        let location = librip_format::payload(place);
        // The turn was stored before the place: if it does not fit, one of them is being written.
        let turn = librip_format::sampled_ticks(place, turn).filter(|_| is_of_one_turn);
        (place != 0 && location != 0).then(|| AwaitFuture {
            index,
            location,
            outer: librip_format::await_outer(place).filter(|&outer| outer < librip_format::AWAITS_MAX),
            turn,
        })
    });
    known.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use librip_format::{
        TASK_ASYNC, TASK_COUNTS_WAKES, TASK_LEN_BYTES, TASK_LOCAL, await_place, entry_turn, sampled_time,
        task_origin, task_since, task_ticks,
    };

    const SLOTS: SlotsAt = SlotsAt { entry_len_bytes: 1280, used: 10 };

    fn part(words: &[(usize, u64)]) -> Vec<u8> {
        let mut bytes = vec![0; TASK_LEN_BYTES as usize];
        for &(at, word) in words {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The word that has the number of wakers after that of answered wakes.
    fn wakers(wakers: u32) -> u64 {
        u64::from(librip_format::pack_wakers(wakers)) << 32
    }

    fn read_one(bytes: &[u8]) -> TaskState {
        read(&Bytes(bytes), &Bytes(bytes), 5, SLOTS)
    }

    #[test]
    fn a_suspended_task_says_when_it_was_polled_by_whom_and_how_often_it_was_woken_since() {
        let origin = task_origin(TASK_ASYNC | TASK_COUNTS_WAKES | TASK_LOCAL, 4, 77);
        let task = read_one(&part(&[
            (offset_of!(TaskPart, turn), 6),
            (offset_of!(TaskPart, since), task_since(6, task_ticks(1000, true))),
            (offset_of!(TaskPart, poller), (-2i64 * 1280) as u64),
            (offset_of!(TaskPart, wakes), 9),
            // With the wakers after it.
            (offset_of!(TaskPart, wakes_polled), 7 | wakers(3)),
            (offset_of!(TaskPart, woken), sampled_time(8, task_ticks(2000, true))),
            (offset_of!(TaskPart, location), 0x5555_0000_1000),
            (offset_of!(TaskPart, origin), origin),
        ]));
        assert_eq!((task.kind, task.is_local, task.counts_wakes), (TaskKind::Async, true, true));
        assert_eq!(task.runtime, Some(Runtime { number: 77, workers: 4 }));
        assert_eq!((task.is_polled(), task.polls()), (false, 3));
        assert_eq!((task.since_ticks, task.is_since_exact), (Some(1000), true));
        assert_eq!((task.poller, task.wakes, task.woken_ticks), (Some(3), 2, Some(2000)));
        assert_eq!(task.wakers, Some(3));
        assert_eq!(task.location, Some(0x5555_0000_1000));
    }

    #[test]
    fn a_time_of_another_poll_and_a_place_without_a_slot_are_not_known() {
        let task = read_one(&part(&[
            (offset_of!(TaskPart, turn), 7),
            (offset_of!(TaskPart, since), task_since(6, 1000)),
            (offset_of!(TaskPart, poller), 1281),
            (offset_of!(TaskPart, wakes), 9),
            (offset_of!(TaskPart, wakes_polled), 7),
            (offset_of!(TaskPart, woken), sampled_time(7, 2000)),
        ]));
        assert_eq!((task.since_ticks, task.poller, task.woken_ticks), (None, None, None));
        assert_eq!((task.is_polled(), task.polls()), (true, 4));
        // What it says of the wakers is from the poll before.
        let polled = read_one(&part(&[
            (offset_of!(TaskPart, turn), 7),
            (offset_of!(TaskPart, wakes_polled), wakers(3)),
            (offset_of!(TaskPart, origin), task_origin(TASK_ASYNC | TASK_COUNTS_WAKES, 4, 77)),
        ]));
        assert_eq!(polled.wakers, None);
        for distance in [0, 1280 * 5, (-1280 * 6i64) as u64, u64::MAX, 1 << 63] {
            assert_eq!(poller(distance, 5, SLOTS), None, "{distance:#x}");
        }
    }

    #[test]
    fn an_entry_and_a_future_say_whether_they_were_polled_last() {
        let entries = offset_of!(TaskPart, entry_turns);
        let awaits = offset_of!(TaskPart, awaits);
        let place = await_place(0x1000, None);
        let inner = await_place(0x2000, Some(0));
        let mut bytes = part(&[
            (offset_of!(TaskPart, turn), 6),
            (awaits, place),
            (awaits + 8, sampled_time(place, 5)),
            (awaits + 16, inner),
            (awaits + 24, sampled_time(inner, 3)),
        ]);
        bytes[entries..entries + 4].copy_from_slice(&entry_turn(5, true, Some(1)).to_le_bytes());
        bytes[entries + 4..entries + 8].copy_from_slice(&entry_turn(3, false, None).to_le_bytes());
        let task = read_one(&bytes);
        assert_eq!([0, 1, 2].map(|it| task.is_entry_polled(it)), [Some(true), Some(false), None]);
        assert_eq!((task.entries[0].future, task.entries[0].is_direct), (Some(1), true));
        assert_eq!([0, 1, 2].map(|it| task.is_future_polled(it)), [Some(true), Some(false), None]);
        assert_eq!(task.futures[1].outer, Some(0));
        // While it is polled, the present poll counts.
        bytes[..8].copy_from_slice(&5u64.to_le_bytes());
        assert_eq!(read_one(&bytes).is_entry_polled(0), Some(true));
        bytes[..8].copy_from_slice(&7u64.to_le_bytes());
        assert_eq!(read_one(&bytes).is_entry_polled(0), Some(false));
    }

    #[test]
    fn a_poll_that_has_left_its_worker_says_so_until_it_ends() {
        let word = offset_of!(TaskPart, wakes_polled);
        let is_off = |turn, word_of| {
            read_one(&part(&[(offset_of!(TaskPart, turn), turn), (word, word_of)])).is_off_worker
        };
        let off = wakers(librip_format::WAKERS_OFF_WORKER);
        assert_eq!([is_off(5, off), is_off(5, wakers(2)), is_off(6, off)], [true, false, false]);
    }

    #[test]
    fn the_location_is_known_while_the_number_of_futures_without_room_changes() {
        let [one, other] = [2, 3].map(|more| part(&[(offset_of!(TaskPart, location), 0x1000 | more << 48)]));
        let task = read(&Bytes(&one), &Bytes(&other), 5, SLOTS);
        assert_eq!((task.location, task.left_out), (Some(0x1000), 3));
    }

    #[test]
    fn what_changes_between_two_copies_is_not_known() {
        let place = await_place(0x1000, None);
        let one = part(&[(offset_of!(TaskPart, awaits), place), (offset_of!(TaskPart, location), 8)]);
        let other = part(&[(offset_of!(TaskPart, location), 16)]);
        let task = read(&Bytes(&one), &Bytes(&other), 5, SLOTS);
        assert_eq!((task.futures.len(), task.location), (0, None));
    }

    /// A task that sleeps after turn 6, and can be woken by one waker.
    fn asleep() -> Vec<u8> {
        let place = await_place(0x1000, None);
        let mut bytes = part(&[
            (offset_of!(TaskPart, turn), 6),
            (offset_of!(TaskPart, poller), 1280),
            (offset_of!(TaskPart, wakes), 8),
            (offset_of!(TaskPart, wakes_polled), 8 | wakers(1)),
            (offset_of!(TaskPart, origin), task_origin(TASK_ASYNC | TASK_COUNTS_WAKES, 4, 77)),
            (offset_of!(TaskPart, awaits), place),
            (offset_of!(TaskPart, awaits) + 8, sampled_time(place, 5)),
        ]);
        let entries = offset_of!(TaskPart, entry_turns);
        bytes[entries..entries + 4].copy_from_slice(&entry_turn(5, true, None).to_le_bytes());
        bytes
    }

    #[test]
    fn a_task_whose_wake_is_being_answered_is_not_seen_asleep() {
        let before = asleep();
        assert_eq!(read_one(&before).wakers, Some(1));
        let mut woken = before.clone();
        woken[offset_of!(TaskPart, wakes)] = 9;
        let mut polled = woken.clone();
        polled[offset_of!(TaskPart, turn)] = 7;
        let mut answered = polled.clone();
        answered[offset_of!(TaskPart, wakes_polled)] = 9;
        // The second copy takes the turn from before the poll, and the wakes from after its begin.
        let mut mixed = answered.clone();
        mixed[offset_of!(TaskPart, turn)] = 6;
        for second in [&woken, &polled, &answered, &mixed] {
            for first in [&before, &woken] {
                let task = read(&Bytes(first), &Bytes(second), 5, SLOTS);
                let may_wake = task.wakes > 0 || task.is_polled() || task.wakers.is_none() && task.is_in_flux;
                assert!(may_wake, "{task:?}");
            }
        }
        // Killed between any two of these stores, it was not asleep either.
        for end in [&woken, &polled, &answered] {
            let task = read_one(end);
            assert!(task.wakes > 0 || task.is_polled(), "{task:?}");
        }
    }

    #[test]
    fn what_belongs_to_a_turn_is_not_known_if_the_turn_changes() {
        let before = asleep();
        let task = read_one(&before);
        assert_eq!(
            (task.poller, task.is_entry_polled(0), task.is_future_polled(0)),
            (Some(6), Some(true), Some(true))
        );
        // A whole poll comes between the copies, and the second one has only its last turn.
        let mut later = before.clone();
        later[offset_of!(TaskPart, turn)] = 8;
        let task = read(&Bytes(&before), &Bytes(&later), 5, SLOTS);
        assert_eq!((task.turn, task.wakers, task.poller, task.is_in_flux), (8, None, None, true));
        assert_eq!((task.is_entry_polled(0), task.is_future_polled(0)), (None, None));
    }

    #[test]
    fn a_future_whose_turn_changes_alone_is_not_known() {
        let before = asleep();
        let mut later = before.clone();
        let at = offset_of!(TaskPart, awaits) + offset_of!(AwaitEntry, turn);
        later[at..at + 8].copy_from_slice(&sampled_time(await_place(0x1000, None), 7).to_le_bytes());
        assert_eq!(read(&Bytes(&before), &Bytes(&later), 5, SLOTS).is_future_polled(0), None);
    }
}
