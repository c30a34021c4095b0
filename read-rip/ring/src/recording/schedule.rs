//! What the kernel said of the turns of threads on processors: the values, their blocks in a recording, and all that a
//! file has of a range of time.
//!
//! A block has entries of 32 bytes, in any order. A reader passes over entries of kinds that it does not know.
//!
//! | byte | turn | wake-up | name | gap |
//! |---|---|---|---|---|
//! | 0 | 1 | 2 | 3 | 4 |
//! | 1 | how it ended | 1: by an interrupt | | |
//! | 4 | processor | processor | | processor |
//! | 8 | process | process that wakes | process | lost records |
//! | 12 | thread | thread that wakes | thread | |
//! | 16 | begin, ns since boot | when, ns since boot | 16 bytes of text | begin, ns since boot |
//! | 24 | end, ns since boot | thread that is woken | | end, ns since boot |
//!
//! A turn that goes on for long is written in parts, each in the block of its time. So a range of time has all turns
//! that overlap it. It knows nothing of the kernel's own records: `evidence` reads these.

use std::collections::BTreeMap;
use std::io::{self, Read};

use super::SCHEDULE;
use super::blocks::Found;
use super::reader::{Period, Recording, fill, first_read};
use crate::Defect;
use crate::bytes::Bytes;

/// The length of an entry, bytes.
pub(super) const SCHEDULED_LEN: usize = 32;
/// What an entry takes in memory, in words.
const SCHEDULED_WORDS: u32 = 6;
const NAME_LEN: usize = 16;

/// A turn of a thread on a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    pub cpu: u32,
    pub pid: u32,
    pub tid: u32,
    /// From when on, ns since boot.
    pub begin_ns: u64,
    /// Until when, ns since boot.
    pub end_ns: u64,
    pub end: TurnEnd,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// It goes on: it was only written until then.
    GoesOn,
    /// The thread waits for something.
    Blocked,
    /// The thread could have gone on: another one got the processor.
    Preempted,
    /// The thread has ended.
    Exited,
    /// The kernel's record has a gap: it may have gone on.
    Lost,
}

const ENDS: [(TurnEnd, u8); 5] = [
    (TurnEnd::GoesOn, 0),
    (TurnEnd::Blocked, 1),
    (TurnEnd::Preempted, 2),
    (TurnEnd::Exited, 3),
    (TurnEnd::Lost, 4),
];

/// Somebody woke a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeUp {
    /// The processor of who woke it.
    pub cpu: u32,
    pub waker_pid: u32,
    /// Who woke it, or whom the interrupt interrupted that woke it.
    pub waker_tid: u32,
    pub is_by_interrupt: bool,
    pub woken_tid: u32,
    /// ns since boot.
    pub at_ns: u64,
}

/// The kernel had no room for its records of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    pub cpu: u32,
    pub records: u64,
    /// ns since boot.
    pub begin_ns: u64,
    /// ns since boot.
    pub end_ns: u64,
}

/// One entry of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheduled {
    Turn(Turn),
    WakeUp(WakeUp),
    /// What the kernel calls a thread; may contain anything.
    Name {
        pid: u32,
        tid: u32,
        name: String,
    },
    Gap(Gap),
}

impl Scheduled {
    pub(super) fn encoded(&self) -> [u8; SCHEDULED_LEN] {
        let (kind, detail, cpu, words, times) = match self {
            Scheduled::Turn(turn) => {
                let end = ENDS.iter().find(|(end, _)| *end == turn.end).map_or(0, |(_, number)| *number);
                (1, end, turn.cpu, [turn.pid, turn.tid], [turn.begin_ns, turn.end_ns])
            }
            Scheduled::WakeUp(of) => {
                let by = u8::from(of.is_by_interrupt);
                (2, by, of.cpu, [of.waker_pid, of.waker_tid], [of.at_ns, of.woken_tid.into()])
            }
            Scheduled::Name { pid, tid, name } => {
                let mut text = [0; NAME_LEN];
                text.iter_mut().zip(name.bytes()).for_each(|(to, byte)| *to = byte);
                let [low, high] = [0, 8].map(|at| Bytes(&text).u64(at));
                (3, 0, 0, [*pid, *tid], [low, high])
            }
            Scheduled::Gap(gap) => {
                let records = u32::try_from(gap.records).unwrap_or(u32::MAX);
                (4, 0, gap.cpu, [records, 0], [gap.begin_ns, gap.end_ns])
            }
        };
        let mut entry = [0; SCHEDULED_LEN];
        (entry[0], entry[1]) = (kind, detail);
        entry[4..8].copy_from_slice(&cpu.to_le_bytes());
        entry[8..12].copy_from_slice(&words[0].to_le_bytes());
        entry[12..16].copy_from_slice(&words[1].to_le_bytes());
        entry[16..24].copy_from_slice(&times[0].to_le_bytes());
        entry[24..].copy_from_slice(&times[1].to_le_bytes());
        entry
    }

    /// Decodes an entry; `None` if it is of an unknown kind, or makes no sense.
    fn of(entry: &[u8; SCHEDULED_LEN]) -> Option<Scheduled> {
        let [kind, detail, ..] = *entry;
        let entry = Bytes(entry);
        let (cpu, first, second) = (entry.u32(4), entry.u32(8), entry.u32(12));
        let times = [entry.u64(16), entry.u64(24)];
        let scheduled = match kind {
            1 => Scheduled::Turn(Turn {
                cpu,
                pid: first,
                tid: second,
                begin_ns: times[0],
                end_ns: times[1],
                end: ENDS.iter().find(|(_, number)| *number == detail)?.0,
            }),
            2 => Scheduled::WakeUp(WakeUp {
                cpu,
                waker_pid: first,
                waker_tid: second,
                is_by_interrupt: detail == 1,
                woken_tid: u32::try_from(times[1]).ok()?,
                at_ns: times[0],
            }),
            3 => Scheduled::Name { pid: first, tid: second, name: entry.text(16, NAME_LEN) },
            4 => {
                let [begin_ns, end_ns] = times;
                Scheduled::Gap(Gap { cpu, records: first.into(), begin_ns, end_ns })
            }
            _ => return None,
        };
        let is_in_order = match &scheduled {
            Scheduled::Turn(Turn { begin_ns, end_ns, .. }) | Scheduled::Gap(Gap { begin_ns, end_ns, .. }) => {
                begin_ns <= end_ns
            }
            _ => true,
        };
        is_in_order.then_some(scheduled)
    }
}

/// What a recording has of the kernel's scheduler.
#[derive(Debug, Default)]
pub struct Schedule {
    /// By processor and begin. Those of a processor do not overlap.
    pub turns: Vec<Turn>,
    /// By time.
    pub wake_ups: Vec<WakeUp>,
    /// Process and name of each thread that is known, by its id.
    pub names: BTreeMap<u32, (u32, String)>,
    /// By begin.
    pub gaps: Vec<Gap>,
    /// What is not read, because there is too much: a number of entries.
    pub left_out: u64,
    pub defects: Vec<Defect>,
}

impl Schedule {
    pub(crate) fn of(recording: &Recording, period: Option<Period>) -> io::Result<Schedule> {
        let Found { mut blocks, mut damaged } = recording.blocks(SCHEDULE, period)?;
        let counts: Vec<u32> =
            blocks.iter().map(|block| block.words.saturating_mul(SCHEDULED_WORDS)).collect();
        let newest = blocks.split_off(first_read(&counts, recording.words_max()));
        let mut schedule = Schedule {
            left_out: blocks.iter().map(|block| u64::from(block.words)).sum(),
            ..Schedule::default()
        };
        let mut room = recording.words_max() / u64::from(SCHEDULED_WORDS);
        for block in newest {
            if schedule.entries(recording.body(&block), &mut room).is_err() {
                damaged += 1;
            }
        }
        if damaged > 0 {
            schedule.defects.push(Defect::Recording { blocks: damaged });
        }
        schedule.put_in_order();
        Ok(schedule)
    }

    fn entries(&mut self, mut body: impl Read, room: &mut u64) -> io::Result<()> {
        let mut entry = [0; SCHEDULED_LEN];
        while fill(&mut body, &mut entry)? {
            let Some(scheduled) = Scheduled::of(&entry) else { continue };
            let Some(left) = room.checked_sub(1) else {
                self.left_out += 1;
                continue;
            };
            *room = left;
            match scheduled {
                Scheduled::Turn(turn) => self.turns.push(turn),
                Scheduled::WakeUp(wake_up) => self.wake_ups.push(wake_up),
                Scheduled::Name { pid, tid, name } => drop(self.names.insert(tid, (pid, name))),
                Scheduled::Gap(gap) => self.gaps.push(gap),
            }
        }
        Ok(())
    }

    /// Orders everything, and joins the parts of turns. What overlaps is of a hostile file, and is left out.
    fn put_in_order(&mut self) {
        self.turns.sort_by_key(|turn| (turn.cpu, turn.begin_ns, turn.end_ns));
        let mut joined: Vec<Turn> = Vec::with_capacity(self.turns.len());
        for turn in self.turns.drain(..) {
            match joined.last_mut().filter(|last| last.cpu == turn.cpu) {
                Some(last) if turn.begin_ns < last.end_ns => {}
                Some(last)
                    if last.end == TurnEnd::GoesOn
                        && (last.end_ns, last.pid, last.tid) == (turn.begin_ns, turn.pid, turn.tid) =>
                {
                    (last.end_ns, last.end) = (turn.end_ns, turn.end);
                }
                _ => joined.push(turn),
            }
        }
        self.turns = joined;
        self.wake_ups.sort_by_key(|of| (of.at_ns, of.cpu));
        self.gaps.sort_by_key(|gap| (gap.begin_ns, gap.cpu));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(cpu: u32, tid: u32, times_ns: (u64, u64), end: TurnEnd) -> Turn {
        Turn { cpu, pid: 9, tid, begin_ns: times_ns.0, end_ns: times_ns.1, end }
    }

    #[test]
    fn every_entry_is_read_as_it_was_written() {
        let name = |name: &str| Scheduled::Name { pid: 1, tid: 2, name: name.to_owned() };
        let turns = ENDS.map(|(end, _)| Scheduled::Turn(turn(3, 7, (5, 1 << 40), end)));
        let wake_up = |is_by_interrupt| {
            let (waker_pid, waker_tid, woken_tid) = (8, 9, u32::MAX);
            WakeUp { cpu: 7, waker_pid, waker_tid, is_by_interrupt, woken_tid, at_ns: u64::MAX }
        };
        let gap = Gap { cpu: 2, records: 77, begin_ns: 3, end_ns: 4 };
        let others =
            [Scheduled::WakeUp(wake_up(true)), Scheduled::WakeUp(wake_up(false)), Scheduled::Gap(gap)];
        let names = ["", "kworker/0:1", "sixteen bytes ok"].map(name);
        for scheduled in turns.into_iter().chain(others).chain(names) {
            assert_eq!(Scheduled::of(&scheduled.encoded()), Some(scheduled));
        }
        let mut unknown = Scheduled::Gap(gap).encoded();
        unknown[0] = 9;
        assert_eq!(Scheduled::of(&unknown), None);
        let backwards = Scheduled::Turn(turn(0, 1, (5, 4), TurnEnd::Blocked));
        assert_eq!(Scheduled::of(&backwards.encoded()), None);
    }

    #[test]
    fn parts_of_a_turn_are_joined_and_what_overlaps_is_left_out() {
        let (on, blocked) = (TurnEnd::GoesOn, TurnEnd::Blocked);
        let parts = [
            turn(1, 4, (10, 20), on),
            turn(0, 4, (30, 40), blocked),
            turn(0, 4, (10, 20), on),
            turn(0, 4, (20, 30), on),
            // Another thread, a turn of its own, and one within it.
            turn(0, 5, (40, 60), blocked),
            turn(0, 6, (50, 55), blocked),
            turn(0, 5, (60, 70), blocked),
        ];
        let mut schedule = Schedule { turns: parts.to_vec(), ..Schedule::default() };
        schedule.put_in_order();
        let expected = [
            turn(0, 4, (10, 40), blocked),
            turn(0, 5, (40, 60), blocked),
            turn(0, 5, (60, 70), blocked),
            turn(1, 4, (10, 20), on),
        ];
        assert_eq!(schedule.turns, expected);
    }
}
