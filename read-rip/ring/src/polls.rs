//! How long polls of tasks took, by the place at which the tasks were made.
//!
//! It does not know what is at a place: addresses stay addresses.

use std::mem::{offset_of, size_of};

use librip_format::{
    Checksum, LONG_POLLS, LongPoll as RawLongPoll, POLL_COUNTS, POLL_LANES, PollLane, PollLengths, PollPlace,
    THREAD_NAME_LEN_BYTES, is_complete, poll_count_from,
};

use super::bytes::Bytes;
use super::table::{CHANGED, entries, has_its_checksum, used_bytes};
use super::{Clock, Defect, Header, RegionKind, Source};

/// The polls of the tasks that were made at a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PollsOfPlace {
    /// The process that made the entry.
    pub pid: u32,
    /// The actual address of the location; `None`: tasks whose places found no room.
    pub location: Option<u64>,
    /// The name of these tasks, if it says of which kind they are; may contain anything.
    pub name: String,
    /// How long the polls took that have ended.
    pub polls: Lengths,
    /// How long after the first wake the poll began that answered it. That a task is made counts as a wake.
    pub delays: Lengths,
    /// The longest polls, in no order. While one is replaced, it is missing.
    pub longest: Vec<LongPoll>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongPoll {
    pub pid: u32,
    /// The task, as [`Slot::tid`](super::Slot::tid) has it.
    pub task: u32,
    /// The thread that polled it; `None` if that is not known.
    pub tid: Option<u32>,
    /// The task's name; may contain anything.
    pub name: String,
    /// When it began, ticks of the ring's clock.
    pub began_ticks: u64,
    /// How long it took, ns.
    pub took_ns: u64,
    /// The PC word that the task recorded last in this poll, if it recorded any.
    pub last_pc: Option<u64>,
}

/// How often a length was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lengths {
    /// How many are between two lengths, ns: above the first one, and at most the second one. In ascending order, each
    /// with one at least.
    pub counts: Vec<Counted>,
    /// The greatest one, ns.
    pub greatest_ns: u64,
}

/// How many lengths are in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// None is longer, ns. The greatest length of all is a limit too.
    pub at_most_ns: u64,
    /// How many there are.
    pub count: u64,
}

impl Lengths {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, counted| sum.saturating_add(counted.count))
    }

    /// The lengths of two together.
    fn add(&mut self, other: &Lengths) {
        self.greatest_ns = self.greatest_ns.max(other.greatest_ns);
        for counted in &other.counts {
            match self.counts.binary_search_by_key(&counted.at_most_ns, |known| known.at_most_ns) {
                Ok(index) => {
                    self.counts[index].count = self.counts[index].count.saturating_add(counted.count)
                }
                Err(index) => self.counts.insert(index, *counted),
            }
        }
    }
}

/// Reads the places. Damaged entries are counted, and unfinished ones left out. It is empty if the program did not
/// count, or if a time has no meaning.
pub(super) fn read(source: &Source, header: &Header, defects: &mut Vec<Defect>) -> Vec<PollsOfPlace> {
    let Some(clock) = header.clock else { return Vec::new() };
    let kind = RegionKind::Polls;
    let table = used_bytes(source, header.polls, kind, defects);
    let mut places: Vec<PollsOfPlace> = Vec::new();
    let mut changed = 0;
    for entry in entries(&table, header.polls) {
        let state = entry.u32(offset_of!(PollPlace, state));
        let covered = entry.0.get(size_of::<u32>()..offset_of!(PollPlace, longest)).unwrap_or_default();
        if !is_complete(state) {
            continue;
        }
        if Checksum::new().with(covered).state() != state {
            changed += 1;
            continue;
        }
        let place = place(&entry, &clock);
        // Threads that made the entry at once made more than one.
        let is_same = |other: &&mut PollsOfPlace| {
            (other.pid, other.location, &other.name) == (place.pid, place.location, &place.name)
        };
        match places.iter_mut().find(is_same) {
            Some(same) => {
                same.polls.add(&place.polls);
                same.delays.add(&place.delays);
                same.longest.extend(place.longest);
            }
            None => places.push(place),
        }
    }
    if changed > 0 {
        defects.push(Defect::Entries { kind, count: changed, what: CHANGED });
    }
    places
}

fn place(entry: &Bytes<'_>, clock: &Clock) -> PollsOfPlace {
    let lane = |of: usize| offset_of!(PollPlace, lanes) + of * size_of::<PollLane>();
    let sum = |part: usize| lengths(entry, clock, (0..POLL_LANES).map(|of| lane(of) + part));
    let (polls, delays) = (sum(offset_of!(PollLane, polls)), sum(offset_of!(PollLane, delays)));
    let longest = (0..LONG_POLLS).filter_map(|of| {
        let at = offset_of!(PollPlace, longest) + of * size_of::<RawLongPoll>();
        long_poll(&Bytes(entry.0.get(at..at + size_of::<RawLongPoll>())?), clock)
    });
    PollsOfPlace {
        pid: entry.u32(offset_of!(PollPlace, pid)),
        location: Some(entry.u64(offset_of!(PollPlace, location))).filter(|&location| location != 0),
        name: entry.text(offset_of!(PollPlace, name), THREAD_NAME_LEN_BYTES),
        polls,
        delays,
        longest: longest.collect(),
    }
}

/// The sum of the lengths at these offsets.
fn lengths(entry: &Bytes<'_>, clock: &Clock, at: impl Iterator<Item = usize> + Clone) -> Lengths {
    let greatest = at.clone().map(|at| entry.u64(at + offset_of!(PollLengths, greatest))).max();
    let counts = (0..POLL_COUNTS).filter_map(|index| {
        let counts = at.clone().map(|at| entry.u64(at + offset_of!(PollLengths, counts) + 8 * index));
        let count = counts.fold(0, u64::saturating_add);
        // The last one has all longer lengths.
        let to = if index + 1 < POLL_COUNTS { poll_count_from(index + 1) - 1 } else { u64::MAX };
        (count > 0).then(|| Counted { at_most_ns: clock.length_ns(to), count })
    });
    Lengths { counts: counts.collect(), greatest_ns: clock.length_ns(greatest.unwrap_or(0)) }
}

/// A poll; `None` if there is none, or if it was replaced while it was copied.
fn long_poll(entry: &Bytes<'_>, clock: &Clock) -> Option<LongPoll> {
    if !is_complete(entry.u32(offset_of!(RawLongPoll, state))) || !has_its_checksum(entry) {
        return None;
    }
    let known = |number: u32| Some(number).filter(|&number| number != 0);
    let last = entry.u64(offset_of!(RawLongPoll, last));
    Some(LongPoll {
        pid: entry.u32(offset_of!(RawLongPoll, pid)),
        task: entry.u32(offset_of!(RawLongPoll, task)),
        tid: known(entry.u32(offset_of!(RawLongPoll, tid))),
        name: entry.text(offset_of!(RawLongPoll, name), THREAD_NAME_LEN_BYTES),
        began_ticks: entry.u64(offset_of!(RawLongPoll, began)),
        took_ns: clock.length_ns(entry.u64(offset_of!(RawLongPoll, took))),
        last_pc: Some(last).filter(|&last| last != 0),
    })
}
