//! Slots: their words, held-lock tables and sampled times.

use std::ops::Range;

use super::super::{Damage, Held, Holding, Slot, State};
use super::{Bytes, Unwritten};
use crate::checksum;
use crate::format::{HELD_ENTRIES, call, held, held_at, slot_at, slot_state, word};

/// Names of threads have this many bytes.
const THREAD_NAME_LEN: usize = 40;

/// Parses a held-lock table. An entry whose checksum does not fit was being written.
fn held_locks(bytes: &Bytes, at: usize) -> Result<Vec<Held>, Damage> {
    let mut entries = Vec::new();
    for index in 0..HELD_ENTRIES {
        let at = at + index * held_at::LEN;
        let (lock, meta) = (bytes.u64(at + held_at::LOCK)?, bytes.u64(at + held_at::META)?);
        let has = |bit: u32| meta >> bit & 1 == 1;
        if meta == 0 {
            continue;
        }
        let state = match meta >> held::STATE_SHIFT & 7 {
            0 => return Err(Damage::Defect("an entry has no state and is not free".into())),
            held::ACQUIRING => Holding::Acquiring,
            held::WAITING => Holding::Waiting,
            held::HELD => Holding::Held,
            held::RELEASING => Holding::Releasing,
            held::COND_WAIT => Holding::CondWait,
            held::DESTROYED => Holding::Destroyed,
            _ => match meta & (held::FOR_BARRIER | held::FOR_THREAD) {
                held::FOR_UNIT => Holding::SemWait,
                held::FOR_BARRIER => Holding::BarrierWait,
                held::FOR_THREAD => Holding::ThreadWait,
                _ => Holding::MessageWait,
            },
        };
        if meta != checksum::held_meta(lock, meta & !0xff) {
            require!(state == Holding::Acquiring, "an entry is {state:?} and not whole");
            continue;
        }
        let is_call = lock >> word::OPERAND_BIT & 1 == 0;
        require!(!is_call || !has(held::CALLER_BIT), "a call is no return address");
        let since = bytes.u64(at + held_at::SINCE)?;
        let has_since = has(held::SINCE_BIT);
        let is_sound = !has_since || since == checksum::held_since(since << 4 >> 4);
        require!(is_sound, "the time of an entry is not whole");
        let pc = meta >> held::PC_SHIFT & word::PAYLOAD;
        entries.push(Held {
            lock: lock & word::PAYLOAD,
            sequence: lock >> word::SEQUENCE_SHIFT,
            pc,
            is_caller: has(held::CALLER_BIT),
            call: is_call.then(|| call::flags(pc, has(held::SHARED_BIT), has(call::HELD_OWNED_BIT))),
            state,
            shared: has(held::SHARED_BIT),
            since: has_since.then_some(since & word::PAYLOAD),
            recursion: if has_since { since >> held::RECURSION_SHIFT & held::RECURSION_MAX } else { 0 },
        });
    }
    Ok(entries)
}

/// The sampled times at these bytes, and how many were being written.
fn sampled_times(bytes: &Bytes, at: Range<usize>) -> Result<(Vec<(u64, u64)>, u32), Damage> {
    let (mut times, mut torn) = (Vec::new(), 0);
    for entry in at.step_by(16) {
        let (sequence, time) = (bytes.u64(entry)?, bytes.u64(entry + 8)?);
        match time & word::PAYLOAD {
            _ if (sequence, time) == (0, 0) => {}
            ticks if time == checksum::sampled_time(sequence, ticks) => times.push((sequence, ticks)),
            _ => torn += 1,
        }
    }
    times.sort_unstable();
    Ok((times, torn))
}

/// Parses a slot, whose sampled times are at these bytes, and checks every word against its index.
pub(super) fn slot(
    bytes: &Bytes,
    at: usize,
    index: usize,
    words: u32,
    times: Range<usize>,
    unwritten: Unwritten,
) -> Result<Slot, Damage> {
    let state = match bytes.u32(at + slot_at::STATE)? {
        slot_state::FREE => State::Free,
        slot_state::LIVE => State::Live,
        slot_state::EXITED => State::Exited,
        slot_state::CLAIMING => State::Claiming,
        other => return Err(Damage::Defect(format!("slot {index} has state {other}"))),
    };
    let name = &bytes.0[at + slot_at::NAME..at + slot_at::NAME + THREAD_NAME_LEN];
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    let (sampled, sampled_torn) = sampled_times(bytes, times)?;
    let slot = Slot {
        index,
        state,
        is_capture: bytes.u32(at + slot_at::KIND)? == 2,
        generation: bytes.u32(at + slot_at::GENERATION)?,
        pid: bytes.u32(at + slot_at::PID)?,
        tid: bytes.u32(at + slot_at::TID)?,
        claimed_ns: bytes.u64(at + slot_at::CLAIMED)?,
        exited_ns: bytes.u64(at + slot_at::EXITED)?,
        first_sequence: bytes.u64(at + slot_at::FIRST_SEQUENCE)?,
        name: String::from_utf8_lossy(name).into_owned(),
        is_named: bytes.u16(at + slot_at::FLAGS)? & 1 != 0,
        count: bytes.u64(at + slot_at::COUNT)?,
        words: (0..words as usize)
            .map(|index| bytes.u64(at + slot_at::LEN + 8 * index))
            .collect::<Result<_, _>>()?,
        held_overflowed: bytes.u32(at + slot_at::HELD_OVERFLOWED)?,
        held: held_locks(bytes, at + slot_at::HELD)?,
        sampled,
        sampled_torn,
    };
    if matches!(state, State::Live | State::Exited) {
        let kind = bytes.u32(at + slot_at::KIND)?;
        require!(
            kind == 1 || kind == 2 && state == State::Exited || kind == 3,
            "slot {index} has kind {kind}"
        );
        require!(slot.first_sequence <= slot.count, "slot {index} begins after its count");
        // A time that lies between two words has the sequence of the second one, which may be missing yet.
        const BETWEEN: u64 = 1 << 63;
        let is_counted = slot.sampled.iter().all(|&(sequence, _)| match sequence & BETWEEN {
            0 => sequence < slot.count,
            _ => sequence & !BETWEEN <= slot.count,
        });
        require!(is_counted, "slot {index} has the time of a word after its count");
        require!(slot.generation > 0 && slot.pid > 0 && slot.tid > 0, "slot {index} has no owner");
    }
    // A copy that is being made says nothing yet.
    let words_count = if slot.is_capture && state == State::Claiming { 0 } else { slot.words.len() };
    for (at, &value) in slot.words.iter().enumerate().take(words_count) {
        if value == 0 {
            let may_be_unwritten = unwritten == Unwritten::Anywhere || is_among_newest(&slot, at);
            require!(
                at as u64 >= slot.count || may_be_unwritten || state == State::Claiming,
                "slot {index} has no word {at}, and count {}",
                slot.count
            );
            continue;
        }
        let sequence = value >> word::SEQUENCE_SHIFT;
        require!(sequence % u64::from(words) == at as u64, "slot {index}: {value:#x} at index {at}");
        // Not newer than the count, and not older than the lap before (the newest may not have been stored).
        let age = slot.count.wrapping_sub(1).wrapping_sub(sequence) & 0x7fff;
        require!(age < 2 * u64::from(words), "slot {index}: {value:#x} is {age} words old");
    }
    Ok(slot)
}

/// Whether a word at this index may have been reserved and not stored yet: a word of the last event, or
/// of one of the last few events if signal handlers interrupt one another between the two steps. An event has at most
/// four words.
fn is_among_newest(slot: &Slot, at: usize) -> bool {
    let words = slot.words.len() as u64;
    (slot.count.saturating_sub(8)..slot.count).any(|sequence| sequence % words == at as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_a_word_at_the_wrong_index() {
        // A slot of 16 words by itself: count 20, so words 4..20 are there.
        let slot_of = |damage: &dyn Fn(&mut [u64])| {
            let mut words: Vec<u64> = (0..16).map(|at| if at < 4 { at + 16 } else { at }).collect();
            words.iter_mut().for_each(|word| *word = *word << 49 | 0x5555_0000_1000);
            damage(&mut words);
            let mut bytes = vec![0u8; slot_at::LEN];
            let header = [
                (slot_at::STATE, slot_state::LIVE),
                (slot_at::KIND, 1),
                (slot_at::GENERATION, 1),
                (slot_at::PID, 7),
                (slot_at::TID, 7),
            ];
            for (at, value) in header {
                bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            }
            bytes[slot_at::COUNT..][..8].copy_from_slice(&20u64.to_le_bytes());
            bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            slot(&Bytes(bytes), 0, 0, 16, 0..0, Unwritten::AtTheEnd)
        };
        let good = slot_of(&|_| ()).unwrap().events();
        assert_eq!((good.events.len(), good.events[0].sequence, good.missing.len()), (16, 4, 0));
        assert!(slot_of(&|words| words.swap(5, 6)).is_err(), "two words are swapped");
        assert!(slot_of(&|words| words[10] = 0).is_err(), "a word vanished");
        let operand = slot_of(&|words| words[10] |= 1 << 48).unwrap().events();
        assert_eq!(operand.events.len(), 15);
        assert_eq!(operand.events[6].operands, [0x5555_0000_1000]);
        assert!(slot_of(&|words| words[9] += 32 << 49).is_err(), "a word from the future");
        let unstored = slot_of(&|words| words[3] = 3 << 49 | 0x1000).unwrap().events();
        assert_eq!(unstored.missing, [19], "the newest may not have been stored when the program died");
    }
}
