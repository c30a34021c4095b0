//! Goroutines that wait for mutexes which others of them may have.
//!
//! Readers-writer locks (`sync.RWMutex`) count too: a writer waits for a mutex within, for other writers, or for
//! readers, and a reader waits for writers.
//!
//! A mutex of Go stores no owner. Whoever has one releases it, and mostly has a pointer to it on its stack until then:
//! to the mutex, or to the value that it is part of. So those may have a mutex whose stacks point there, and that do
//! not wait for it themselves. If all of these wait for mutexes too, and so on, then nobody is known who can release
//! one.
//!
//! Stacks also have what was there before. That adds users of a mutex, and takes away a circle rather than making one:
//! a goroutine that may have a mutex and does not wait for a mutex may go on. One that waits for a group of goroutines
//! (`sync.WaitGroup`) is left out: it waits for these, mostly, and made their arguments.

use std::collections::{BTreeMap, BTreeSet};

use crate::target::Memory;

/// What a goroutine does, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    WaitsFor(Kind),
    WaitsForGroup,
    Other,
}

/// For what a goroutine waits, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Mutex,
    /// A readers-writer lock, as a writer.
    Writer,
    Reader,
}

/// A goroutine: its address, the range of its stack that is used, and what it does.
#[derive(Clone, Copy, Debug)]
pub(super) struct User {
    pub(super) address: u64,
    pub(super) stack: (u64, u64),
    pub(super) does: Does,
}

/// The words of a stack that may lead to what its goroutine waits for: those of the innermost functions.
const INNERMOST_WORDS: usize = 96;
/// A pointer so far before a mutex may be to the value that it is part of.
const VALUE_MAX_BYTES: u64 = 256;
/// No more of all stacks is looked at: then nothing is known.
const STACKS_MAX_BYTES: u64 = 64 << 20;
/// The offset of the semaphore in a mutex (`sync.Mutex`): its state comes first. A readers-writer lock begins with a
/// mutex of its writers.
const SEMAPHORE: u64 = 4;
/// In a readers-writer lock: the semaphores of a writer that waits for readers, and of readers that wait for a writer;
/// how many readers there are, less than 0 if a writer has the lock or waits for these; and how many it waits for.
const WRITER_SEMAPHORE: u64 = 8;
const READER_SEMAPHORE: u64 = 12;
const READERS: u64 = 16;
const AWAITED_READERS: u64 = 20;
/// A mutex is locked; the number of those that wait for it is above three bits (`internal/sync/mutex.go`).
const LOCKED: u32 = 1;
const WAITERS_SHIFT: u32 = 3;

/// The goroutines that wait for mutexes which only others of them are known to have, by their positions, with the
/// mutexes. Empty too if these are too many to look at.
pub(super) fn circle(users: &[User], memory: &dyn Memory) -> BTreeMap<usize, u64> {
    let len = |user: &User| user.stack.1.saturating_sub(user.stack.0);
    if users.iter().map(len).fold(0, u64::saturating_add) > STACKS_MAX_BYTES {
        return BTreeMap::new();
    }
    let waits = |(at, user): (usize, &User)| {
        let Does::WaitsFor(kind) = user.does else { return None };
        let innermost = words(*user, memory)?;
        let found =
            innermost.iter().take(INNERMOST_WORDS).find_map(|&word| mutex(word, user.address, kind, memory));
        Some((at, found?))
    };
    let waiting: BTreeMap<usize, u64> = users.iter().enumerate().filter_map(waits).collect();
    let mutexes: BTreeSet<u64> = waiting.values().copied().collect();
    if mutexes.len() < 2 {
        return BTreeMap::new();
    }
    let mut having: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
    for (at, &user) in users.iter().enumerate().filter(|(_, user)| user.does != Does::WaitsForGroup) {
        // What cannot be read may have anything.
        let Some(words) = words(user, memory) else { return BTreeMap::new() };
        for word in words {
            for &mutex in mutexes.range(word..=word.saturating_add(VALUE_MAX_BYTES)) {
                if waiting.get(&at) != Some(&mutex) {
                    having.entry(mutex).or_default().insert(at);
                }
            }
        }
    }
    stuck(waiting, &having)
}

/// Leaves out those that wait for a mutex which somebody may have who is not among them, or nobody has.
fn stuck(mut waiting: BTreeMap<usize, u64>, having: &BTreeMap<u64, BTreeSet<usize>>) -> BTreeMap<usize, u64> {
    loop {
        let is_stuck = |mutex: &u64| {
            let having = having.get(mutex);
            having.is_some_and(|having| having.iter().all(|at| waiting.contains_key(at)))
        };
        let stuck: BTreeMap<usize, u64> =
            waiting.iter().filter(|(_, mutex)| is_stuck(mutex)).map(|(&at, &mutex)| (at, mutex)).collect();
        if stuck.len() == waiting.len() {
            return stuck;
        }
        waiting = stuck;
    }
}

/// The words of a goroutine's stack; `None` if they cannot be read.
fn words(user: User, memory: &dyn Memory) -> Option<Vec<u64>> {
    let (low, high) = user.stack;
    let mut bytes = vec![0; usize::try_from(high.checked_sub(low)?).ok()?];
    memory.read(low, &mut bytes).ok()?;
    Some(bytes.as_chunks::<8>().0.iter().map(|&word| u64::from_le_bytes(word)).collect())
}

/// The mutex for which a goroutine waits, if a word of its stack points to its entry in the queue of a semaphore
/// (`runtime.sudog`): the goroutine, two links, and the semaphore.
fn mutex(entry: u64, goroutine: u64, kind: Kind, memory: &dyn Memory) -> Option<u64> {
    if entry == 0 || !entry.is_multiple_of(8) || memory.u64(entry).ok()? != goroutine {
        return None;
    }
    let semaphore = memory.u64(entry.checked_add(24)?).ok().filter(|at| at.is_multiple_of(4))?;
    if memory.u32(semaphore).ok()? != 0 {
        return None;
    }
    let is_locked =
        |mutex: &u64| memory.u32(*mutex).is_ok_and(|state| state & LOCKED != 0 && state >> WAITERS_SHIFT > 0);
    let of_mutex = || semaphore.checked_sub(SEMAPHORE).filter(is_locked);
    let number = |at: u64| memory.u32(at).ok().map(u32::cast_signed);
    // Each of these locks has a writer, which may wait for readers itself.
    let of_lock = |lock: &u64, field: u64| number(lock.checked_add(field)?);
    let has_writer = |lock: &u64| of_lock(lock, READERS).is_some_and(|readers| readers < 0);
    let awaits_readers =
        |lock: &u64| has_writer(lock) && of_lock(lock, AWAITED_READERS).is_some_and(|readers| readers > 0);
    match kind {
        Kind::Mutex => of_mutex(),
        Kind::Writer => of_mutex().or_else(|| semaphore.checked_sub(WRITER_SEMAPHORE).filter(awaits_readers)),
        Kind::Reader => semaphore.checked_sub(READER_SEMAPHORE).filter(has_writer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stuck_of(waiting: &[(usize, u64)], having: &[(u64, &[usize])]) -> Vec<usize> {
        let having = having.iter().map(|&(mutex, of)| (mutex, of.iter().copied().collect())).collect();
        stuck(waiting.iter().copied().collect(), &having).into_keys().collect()
    }

    #[test]
    fn the_semaphore_tells_the_lock_and_its_numbers_that_it_is_awaited() {
        const ENTRY: u64 = 0x1000;
        const LOCK: u64 = 0x2000;
        // The lock has the state and the semaphore of its mutex, two semaphores, and two numbers of readers.
        let of = |kind, semaphore: u64, lock: [u32; 6]| {
            let mut memory = crate::waits::testing::Pieces::default();
            memory.put(ENTRY, &[77, 0, 0, 0, 0, 0, semaphore as u32, 0]);
            memory.put(LOCK, &lock);
            mutex(ENTRY, 77, kind, &memory)
        };
        let (held, writer) = (LOCKED | 1 << WAITERS_SHIFT, (-1_i32 << 30).cast_unsigned());
        assert_eq!(of(Kind::Mutex, LOCK + 4, [held, 0, 0, 0, 0, 0]), Some(LOCK));
        assert_eq!(of(Kind::Mutex, LOCK + 4, [LOCKED, 0, 0, 0, 0, 0]), None, "nobody waits");
        assert_eq!(of(Kind::Mutex, LOCK + 4, [held, 1, 0, 0, 0, 0]), None, "it is handed over");
        assert_eq!(of(Kind::Writer, LOCK + 4, [held, 0, 0, 0, writer, 0]), Some(LOCK), "for a writer");
        assert_eq!(of(Kind::Writer, LOCK + 8, [LOCKED, 0, 0, 0, writer + 1, 1]), Some(LOCK), "for a reader");
        assert_eq!(of(Kind::Writer, LOCK + 8, [LOCKED, 0, 0, 0, writer, 0]), None);
        assert_eq!(of(Kind::Reader, LOCK + 12, [LOCKED, 0, 0, 0, writer + 1, 0]), Some(LOCK));
        assert_eq!(of(Kind::Reader, LOCK + 12, [0, 0, 0, 0, 1, 0]), None, "no writer");
    }

    #[test]
    fn who_waits_for_a_mutex_of_one_who_may_go_on_is_not_stuck() {
        let circle = [(0, 10), (1, 20)];
        assert_eq!(stuck_of(&circle, &[(10, &[1]), (20, &[0])]), [0, 1]);
        assert_eq!(stuck_of(&circle, &[(10, &[1, 2]), (20, &[0])]), [0_usize; 0], "2 may have one of them");
        assert_eq!(stuck_of(&circle, &[(10, &[1])]), [0_usize; 0], "nobody is known to have the other one");
        // Behind a circle.
        assert_eq!(stuck_of(&[(0, 10), (1, 20), (2, 10)], &[(10, &[1]), (20, &[0])]), [0, 1, 2]);
        assert_eq!(stuck_of(&[(2, 10)], &[(10, &[1])]), [0_usize; 0]);
    }
}
