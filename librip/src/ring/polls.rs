//! Counts how long polls took, by the place at which tasks were made, and keeps the longest ones.
//!
//! It reads no clock and knows no turns: `process::polls` does. Everything is safe in a signal handler.
//!
//! # Invariants
//!
//! * The control block decides where a place is, and which of its longest polls is replaced. The file has copies for
//!   the reader, and counters, which are added to and not looked at.
//! * The memory of an entry is reserved before its index is handed out.
//! * One thread at a time writes a [`LongPoll`]: the one that has set [`IS_WRITTEN`] in its length in the control
//!   block.
//!
//! # Why the longest polls are kept, however many threads end polls at once
//!
//! A thread replaces the shortest poll that nobody is writing, by an exchange from the length that it has seen. Each
//! success makes that length greater. So no length comes back, and whoever was overtaken fails and looks again: at most
//! until all lengths are greater than its own. Nobody waits: a poll that another thread writes at that moment is passed
//! over. A poll gives way to longer ones only. So the longest of all is kept, unless [`LONG_POLLS`] others are written
//! at that moment. Then [`PollLengths::greatest`] still has its length. Another poll may give way to a longer
//! one while a shorter one is written.
//!
//! A process that is killed while it writes leaves an entry without its checksum, and, if it was a forked child, one
//! that nobody writes again.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU64, fence};

use librip_format::{
    Checksum, LONG_POLLS, LongPoll, POLL_LANES, PollLane, PollLengths, PollPlace, THREAD_NAME_LEN_BYTES,
    poll_count_of,
};

use super::control::PollKey;
use super::{Ring, Table};

/// [`PollKey::key`]: a thread is making the entry. In these bits, which the rest of the key leaves free.
const MAKING: u64 = 1;
/// [`PollKey::key`]: the entry is complete.
const READY: u64 = 2;
/// [`PollKey::key`]: there was no memory for it.
const REFUSED: u64 = 3;
const STATES: u64 = 3;

/// A length in [`PollKey::longest`]: a thread is writing this poll. The length is above this bit.
const IS_WRITTEN: u64 = 1;

/// A name, padded with zeros.
pub(crate) type Name = [u8; THREAD_NAME_LEN_BYTES];

/// Finds the place of tasks that are made at `location`, and have this name if it says of which kind they are. Makes
/// its entry if it is new. Returns one more than its index; 0 if there is none.
///
/// While another thread makes the entry, this one makes another entry for the same place: nobody waits, and no poll
/// goes uncounted. The reader adds them up.
pub(crate) fn place(ring: &Ring, pid: u32, location: u64, name: &[u8]) -> u32 {
    let keys = ring.control.poll_keys();
    let Some((others, places)) = keys.split_first() else { return 0 };
    let name = super::names::padded(name);
    let wanted = key(location, &name);
    for (index, place) in (1..).zip(places) {
        match find(ring, index, place, wanted, (pid, location, &name)) {
            Found::Is(state) => return if state == READY { index as u32 + 1 } else { 0 },
            Found::Other => {}
        }
    }
    let no_name = [0; THREAD_NAME_LEN_BYTES];
    match find(ring, 0, others, key(0, &no_name), (pid, 0, &no_name)) {
        Found::Is(READY) => 1,
        _ => 0,
    }
}

enum Found {
    /// It is this one, in this state.
    Is(u64),
    Other,
}

fn find(ring: &Ring, index: u64, place: &PollKey, wanted: u64, of: (u32, u64, &Name)) -> Found {
    // ORDERING: acquire, pairs with the release below: the memory of a ready entry is reserved.
    let mut seen = place.key.load(Acquire);
    if seen == 0 {
        // ORDERING: relaxed: the exchange says who makes the entry. Acquire if it fails, as above.
        match place.key.compare_exchange(0, wanted | MAKING, Relaxed, Acquire) {
            Ok(_) => {
                let state = if make(ring, index, of) { READY } else { REFUSED };
                place.key.store(wanted | state, Release);
                return Found::Is(state);
            }
            Err(now) => seen = now,
        }
    }
    let state = seen & STATES;
    if seen & !STATES == wanted && state != MAKING { Found::Is(state) } else { Found::Other }
}

/// What stands for a place in the control block.
fn key(location: u64, name: &Name) -> u64 {
    Checksum::new().with(name).with(&location.to_le_bytes()).sum() & !STATES
}

/// Writes the entry of a place. Returns whether there is memory for it.
fn make(ring: &Ring, index: u64, (pid, location, name): (u32, u64, &Name)) -> bool {
    if ring.reserve(Table::Polls, index, index + 1).is_err() {
        // ORDERING: relaxed, a statistic.
        ring.header().metadata_refused.fetch_add(1, Relaxed);
        return false;
    }
    let place = ring.poll_place(index);
    // ORDERING: relaxed: the state's release publishes all of them.
    place.pid.store(pid, Relaxed);
    place.location.store(location, Relaxed);
    super::names::store(&place.name, name);
    let mut covered = [0; 60];
    covered[..4].copy_from_slice(&pid.to_le_bytes());
    covered[4..12].copy_from_slice(&location.to_le_bytes());
    covered[12..52].copy_from_slice(name);
    // ORDERING: release: a reader that sees the state sees the entry.
    place.state.store(Checksum::new().with(&covered).state(), Release);
    ring.publish_used(Table::Polls, index + 1);
    true
}

/// The lane of a place for threads with this number.
pub(crate) fn lane(place: &PollPlace, number: u64) -> &PollLane {
    &place.lanes[number as usize % POLL_LANES]
}

#[inline]
pub(crate) fn count(lengths: &PollLengths, ticks: u64) {
    // ORDERING: relaxed, here and below: statistics, each of which is true by itself.
    lengths.counts[poll_count_of(ticks)].fetch_add(1, Relaxed);
    // The value from the file says at most that nothing is stored.
    if ticks > lengths.greatest.load(Relaxed) {
        lengths.greatest.fetch_max(ticks, Relaxed);
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) pid: u32,
    pub(crate) task: u32,
    pub(crate) tid: u32,
    pub(crate) began: u64,
    pub(crate) took: u64,
    pub(crate) last: u64,
    pub(crate) name: Name,
}

/// Whether a poll of this length is longer than one of those that are kept.
#[inline]
pub(crate) fn is_long(key: &PollKey, took: u64) -> bool {
    // ORDERING: relaxed: a number that only grows. A thread that sees an older one compares lengths for nothing.
    took > key.floor.load(Relaxed)
}

/// Keeps a poll if it is one of the longest of its place.
#[cold]
#[inline(never)]
pub(crate) fn keep(ring: &Ring, index: u64, key: &PollKey, poll: &Ended) {
    let Some(chosen) = choose(&key.longest, poll.took) else { return };
    write(&ring.poll_place(index).longest[chosen], poll);
    // ORDERING: release, pairs with the acquire in `choose`: the next one writes after this thread.
    key.longest[chosen].store(poll.took << 1, Release);
    let least = key.longest.iter().map(|length| length.load(Relaxed) >> 1).min();
    key.floor.fetch_max(least.unwrap_or(0), Relaxed);
}

/// Takes one of the longest polls to write a longer one there: see the [module](self).
fn choose(longest: &[AtomicU64; LONG_POLLS], took: u64) -> Option<usize> {
    loop {
        let lengths = longest.iter().map(|length| length.load(Relaxed)).enumerate();
        let free = lengths.filter(|(_, length)| length & IS_WRITTEN == 0);
        let (index, shortest) = free.min_by_key(|&(_, length)| length)?;
        if shortest >> 1 >= took {
            return None;
        }
        // ORDERING: acquire, pairs with the release in `keep`: this thread writes after the one that wrote last.
        let taken = longest[index].compare_exchange(shortest, took << 1 | IS_WRITTEN, Acquire, Relaxed);
        if taken.is_ok() {
            return Some(index);
        }
    }
}

fn write(entry: &LongPoll, poll: &Ended) {
    // ORDERING: relaxed for the fields. The fence orders the 0 before them, and the release orders them before the
    // state. A reader that copies parts of two polls finds that the state does not fit.
    entry.state.store(0, Relaxed);
    fence(Release);
    entry.pid.store(poll.pid, Relaxed);
    entry.task.store(poll.task, Relaxed);
    entry.tid.store(poll.tid, Relaxed);
    entry.began.store(poll.began, Relaxed);
    entry.took.store(poll.took, Relaxed);
    entry.last.store(poll.last, Relaxed);
    super::names::store(&entry.name, &poll.name);
    let mut covered = [0; size_of::<LongPoll>() - size_of::<u32>()];
    covered[..4].copy_from_slice(&poll.pid.to_le_bytes());
    covered[4..8].copy_from_slice(&poll.task.to_le_bytes());
    covered[8..12].copy_from_slice(&poll.tid.to_le_bytes());
    covered[12..20].copy_from_slice(&poll.began.to_le_bytes());
    covered[20..28].copy_from_slice(&poll.took.to_le_bytes());
    covered[28..36].copy_from_slice(&poll.last.to_le_bytes());
    covered[36..].copy_from_slice(&poll.name);
    entry.state.store(Checksum::new().with(&covered).state(), Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lengths that are kept, when threads end polls of these lengths at once.
    fn kept(threads: &[Vec<u64>]) -> Vec<u64> {
        let (longest, entries) = <([AtomicU64; LONG_POLLS], [AtomicU64; LONG_POLLS])>::default();
        std::thread::scope(|scope| {
            for lengths in threads {
                let (longest, entries) = (&longest, &entries);
                scope.spawn(move || {
                    for &took in lengths {
                        let Some(chosen) = choose(longest, took) else { continue };
                        // Nobody else writes here: the last writer's length is there, and stays until this one's.
                        let before = entries[chosen].swap(u64::MAX, Relaxed);
                        assert!(before < took, "{before} is there, and {took} replaces it");
                        std::hint::spin_loop();
                        assert_eq!(entries[chosen].swap(took, Relaxed), u64::MAX);
                        longest[chosen].store(took << 1, Release);
                    }
                });
            }
        });
        let mut kept: Vec<u64> = longest.iter().map(|length| length.load(Relaxed) >> 1).collect();
        assert_eq!(kept, entries.each_ref().map(|entry| entry.load(Relaxed)));
        kept.sort_unstable();
        kept
    }

    #[test]
    fn the_longest_poll_of_threads_that_end_them_at_once_is_kept() {
        const POLLS: u64 = 10_000;
        for _ in 0..3 {
            // Ever longer: so each of them replaces one. Fewer threads than places: so there is always one that nobody
            // is writing.
            let threads: Vec<Vec<u64>> =
                (0..4).map(|thread| (0..POLLS).map(|poll| 1 + poll * 4 + thread).collect()).collect();
            let mut all = threads.concat();
            all.sort_unstable();
            let kept = kept(&threads);
            assert_eq!(kept.last(), all.last());
            assert!(kept.windows(2).all(|two| two[0] < two[1]), "each is another poll: {kept:?}");
        }
    }

    #[test]
    fn a_poll_that_is_being_written_for_ever_is_passed_over() {
        let longest: [AtomicU64; LONG_POLLS] = Default::default();
        longest[0].store(9 << 1 | IS_WRITTEN, Relaxed);
        for took in 1..100 {
            let chosen = choose(&longest, took).unwrap();
            assert_ne!(chosen, 0);
            longest[chosen].store(took << 1, Relaxed);
        }
        assert_eq!(choose(&longest, 50), None, "longer ones are kept");
    }
}
