//! What the slot of a thread says besides: when the thread sleeps, if an executor reports that.
//!
//! Only the thread writes it. So if the turn is the same in two copies, and a word is, then that word belongs to the
//! turn.

use std::mem::offset_of;

use librip_format::RestPart;

use super::bytes::Bytes;

/// A thread of an executor, as its slot describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestState {
    pub is_asleep: bool,
    /// When its last sleep began, or when it ended: ticks.
    pub since_ticks: Option<u64>,
    /// For how long it was awake in the seconds before that, and for how long it slept, ticks. Both are 0 if that is
    /// not known.
    pub awake_ticks: u64,
    pub asleep_ticks: u64,
}

/// Reads the part of a slot from two copies of it; `None` if nobody has said when the thread sleeps, or while it begins
/// or ends a sleep.
pub(super) fn read(first: &Bytes<'_>, second: &Bytes<'_>) -> Option<RestState> {
    let both = |at: usize| Some(second.u64(at)).filter(|&word| word == first.u64(at));
    let turn = both(offset_of!(RestPart, turn)).filter(|&turn| turn != 0)?;
    let since = both(offset_of!(RestPart, since))?;
    let ticks = librip_format::payload(since);
    let is_of_turn = ticks != 0 && since == librip_format::task_since(turn, ticks);
    let sum = |at: usize| librip_format::payload(both(at).unwrap_or(0));
    Some(RestState {
        is_asleep: turn % 2 == 1,
        since_ticks: is_of_turn.then_some(ticks & !1),
        awake_ticks: sum(offset_of!(RestPart, awake)),
        asleep_ticks: sum(offset_of!(RestPart, asleep)),
    })
}

#[cfg(test)]
mod tests {
    use librip_format::{TASK_LEN_BYTES, task_since, task_ticks};

    use super::*;

    fn part(words: [u64; 4]) -> Vec<u8> {
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        bytes.resize(TASK_LEN_BYTES as usize, 0);
        bytes
    }

    fn read_both(first: [u64; 4], second: [u64; 4]) -> Option<RestState> {
        read(&Bytes(&part(first)), &Bytes(&part(second)))
    }

    #[test]
    fn a_thread_says_since_when_it_sleeps_or_is_awake() {
        let at = |turn: u64| [turn, task_since(turn, task_ticks(1000, true)), 30, 500];
        let asleep =
            RestState { is_asleep: true, since_ticks: Some(1000), awake_ticks: 30, asleep_ticks: 500 };
        assert_eq!(read_both(at(5), at(5)), Some(asleep));
        assert_eq!(read_both(at(6), at(6)), Some(RestState { is_asleep: false, ..asleep }));
        assert_eq!(read_both([0; 4], [0; 4]), None);
        assert_eq!(read_both(at(5), at(6)), None, "it wakes just now");
        let of_other = [5, task_since(8, task_ticks(1000, true)), 30, 500];
        assert_eq!(read_both(of_other, of_other), Some(RestState { since_ticks: None, ..asleep }));
    }
}
