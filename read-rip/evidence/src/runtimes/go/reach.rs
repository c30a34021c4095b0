//! Goroutines that wait for one another, at channels, mutexes, groups and conditions.
//!
//! Whoever wakes a goroutine has a way to what it waits for: a pointer on the stack, or in an object to which such
//! pointers lead. Go's garbage collector finds objects in the same way. What the variables of the program lead to, or a
//! goroutine that may go on, can be used. The rest is used by goroutines that wait, and by no others.
//!
//! Among those that are left, each must wait for what another one leads to. A pool that its program has forgotten is
//! not such a circle, nor is a `main` that waits for ever on purpose. One of the circle must wait for what is no place
//! to rest: it sends, locks, waits for a group, or it is `main`.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use foldhash::HashSet;

use super::heap::{Heap, Reach};
use crate::target::Memory;

/// What a goroutine does, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Does {
    /// It may go on.
    Other,
    /// It never goes on, and may be there for that: it receives from a nil channel, or selects from none.
    Rests,
    /// It never goes on.
    SendsToNil,
    /// It waits until somebody uses one of these objects.
    WaitsFor { objects: Vec<u64>, rests: bool },
}

#[derive(Clone, Debug)]
pub(super) struct User {
    /// The stack that is used, and the goroutine itself.
    pub(super) memory: [Range<u64>; 2],
    pub(super) does: Does,
}

/// No more goroutines are compared with one another.
const USERS_MAX: usize = 1000;
/// The words of a stack that may lead to what its goroutine waits for: those of the innermost functions.
const INNERMOST_WORDS: u64 = 96;
/// An entry of a queue (`runtime.sudog`) has so many words. The first is the goroutine; two links and a pointer follow.
const ENTRY_WORDS: usize = 12;
const NEXT: u64 = 8;
const PREVIOUS: u64 = 16;
const SEMAPHORE: u64 = 24;
/// Where an entry may have its channel, and a channel the first entries of its queues, in words.
const CHANNEL: Range<usize> = 8..ENTRY_WORDS;
const CHANNEL_WORDS: usize = 15;
const QUEUES: Range<usize> = 5..CHANNEL_WORDS;
/// Where a list of those that wait for a condition (`sync.notifyList`) has its first entry.
const FIRST: u64 = 16;
/// No longer queue is followed: each of thousands that wait would follow it.
const QUEUE_MAX: usize = 256;

/// What goroutines wait for.
pub(super) struct Waits<'a> {
    pub(super) heap: &'a Heap,
    pub(super) memory: &'a dyn Memory,
    /// Channels that were found before.
    pub(super) known: RefCell<BTreeSet<u64>>,
}

impl Waits<'_> {
    /// The channels that a goroutine waits for, all of them. Its own words lead to its entries in their queues.
    pub(super) fn channels(&self, goroutine: u64, words: &[u64]) -> Option<Vec<u64>> {
        let mut entries: Vec<u64> = Vec::new();
        let mut next: Vec<u64> = words.to_vec();
        while let Some(entry) = next.pop() {
            if entries.contains(&entry) || !self.is_entry(entry, goroutine) {
                continue;
            }
            entries.push(entry);
            next.extend(self.words::<ENTRY_WORDS>(entry)?);
        }
        let channels: Option<Vec<u64>> = entries.iter().map(|&entry| self.channel(entry)).collect();
        channels.filter(|channels| !channels.is_empty())
    }

    /// The semaphore that a goroutine waits for: of a mutex or a group.
    pub(super) fn semaphore(&self, goroutine: u64, stack: &Range<u64>) -> Option<u64> {
        let entry = self.innermost(stack).find(|&word| self.is_entry(word, goroutine))?;
        let semaphore = self.memory.u64(entry + SEMAPHORE).ok()?;
        // Otherwise it is handed over.
        (self.memory.u32(semaphore).ok()? == 0).then_some(semaphore)
    }

    /// The condition that a goroutine waits for.
    pub(super) fn condition(&self, goroutine: u64, stack: &Range<u64>) -> Option<u64> {
        let entry = self.innermost(stack).find(|&word| self.is_entry(word, goroutine))?;
        self.innermost(stack).find(|&list| {
            let first = self.heap.begin(list).and_then(|_| self.memory.u64(list.checked_add(FIRST)?).ok());
            let next = |&entry: &u64| self.memory.u64(entry.checked_add(NEXT)?).ok();
            std::iter::successors(first, next).take(QUEUE_MAX).take_while(|&at| at != 0).any(|at| at == entry)
        })
    }

    fn words<const LEN: usize>(&self, address: u64) -> Option<[u64; LEN]> {
        let mut words = [0; LEN];
        for (index, word) in words.iter_mut().enumerate() {
            *word = self.memory.u64(address.checked_add(8 * index as u64)?).ok()?;
        }
        Some(words)
    }

    fn innermost(&self, stack: &Range<u64>) -> impl Iterator<Item = u64> {
        let len = (stack.end.saturating_sub(stack.start) / 8).min(INNERMOST_WORDS);
        (0..len).map_while(|index| self.memory.u64(stack.start + 8 * index).ok())
    }

    fn is_entry(&self, address: u64, goroutine: u64) -> bool {
        self.heap.begin(address) == Some(address) && self.memory.u64(address) == Ok(goroutine)
    }

    /// The channel in one of whose queues an entry is: it has the first entry of that queue.
    fn channel(&self, entry: u64) -> Option<u64> {
        let words: [u64; ENTRY_WORDS] = self.words(entry)?;
        let candidates = || words[CHANNEL].iter().copied();
        if let Some(known) = candidates().find(|channel| self.known.borrow().contains(channel)) {
            return Some(known);
        }
        let before = |&entry: &u64| {
            self.memory.u64(entry.checked_add(PREVIOUS)?).ok().filter(|&previous| previous != 0)
        };
        let first = std::iter::successors(Some(entry), before).take(QUEUE_MAX).last()?;
        let has_queue = |&channel: &u64| {
            let words = self.heap.begin(channel).and_then(|_| self.words::<CHANNEL_WORDS>(channel));
            words.is_some_and(|words| words[QUEUES].contains(&first))
        };
        candidates().find(has_queue).inspect(|&channel| _ = self.known.borrow_mut().insert(channel))
    }
}

/// The goroutines that wait for one another, by their positions, each with one object that it waits for. `None` if not
/// all can be read that may lead to these.
pub(super) fn circle(
    users: &[User],
    variables: &[Range<u64>],
    ends: &HashSet<u64>,
    heap: &Heap,
    memory: &dyn Memory,
) -> Option<BTreeMap<usize, u64>> {
    let mut used = Reach::new(heap, memory, ends);
    for variables in variables {
        used.add(variables.clone(), |_| false)?;
    }
    let mut left: BTreeSet<usize> = (0..users.len()).collect();
    loop {
        let is_used = |&object: &u64| heap.begin(object).is_none_or(|object| used.has(object));
        let may_go_on = |at: &&usize| match &users[**at].does {
            Does::Other => true,
            Does::Rests | Does::SendsToNil => false,
            Does::WaitsFor { objects, .. } => objects.iter().any(is_used),
        };
        let going: Vec<usize> = left.iter().filter(may_go_on).copied().collect();
        if going.is_empty() {
            break;
        }
        for at in going {
            left.remove(&at);
            users[at].memory.iter().try_for_each(|range| used.add(range.clone(), |_| false))?;
        }
    }
    let mut waiting: BTreeMap<usize, &[u64]> = BTreeMap::new();
    for &at in &left {
        match &users[at].does {
            Does::WaitsFor { objects, .. } => _ = waiting.insert(at, objects),
            Does::SendsToNil => _ = waiting.insert(at, &[]),
            Does::Other | Does::Rests => {}
        }
    }
    if left.len() > USERS_MAX {
        return None;
    }
    let mut having: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
    let awaited: BTreeSet<u64> = waiting.values().copied().flatten().copied().collect();
    let mut own = Reach::new(heap, memory, ends);
    for &at in &left {
        own.clear();
        users[at].memory.iter().try_for_each(|range| own.add(range.clone(), |object| used.has(object)))?;
        let waits_for = waiting.get(&at).copied().unwrap_or_default();
        for &object in awaited.iter().filter(|object| !waits_for.contains(object)) {
            if heap.begin(object).is_some_and(|begin| own.has(begin)) {
                having.entry(object).or_default().insert(at);
            }
        }
    }
    let stuck = stuck(waiting, &having);
    let rests = |at: &usize| matches!(users[*at].does, Does::WaitsFor { rests: true, .. });
    let is_pressing = !stuck.keys().all(rests);
    let first = |(at, objects): (usize, &[u64])| (at, objects.first().copied().unwrap_or_default());
    Some(stuck.into_iter().map(first).filter(|_| is_pressing).collect())
}

/// Leaves out those that wait for what somebody has who is not among them, or nobody has. Who waits for nothing stays.
fn stuck<'a>(
    mut waiting: BTreeMap<usize, &'a [u64]>,
    having: &BTreeMap<u64, BTreeSet<usize>>,
) -> BTreeMap<usize, &'a [u64]> {
    loop {
        let is_stuck = |objects: &[u64]| {
            let mut users = objects.iter().filter_map(|object| having.get(object)).flatten().peekable();
            objects.is_empty() || users.peek().is_some() && users.all(|at| waiting.contains_key(at))
        };
        let stuck: BTreeMap<usize, &[u64]> =
            waiting.iter().filter(|(_, objects)| is_stuck(objects)).map(|(&at, &of)| (at, of)).collect();
        if stuck.len() == waiting.len() {
            return stuck;
        }
        waiting = stuck;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stuck_of(waiting: &[(usize, &'static [u64])], having: &[(u64, &[usize])]) -> Vec<usize> {
        let having = having.iter().map(|&(object, of)| (object, of.iter().copied().collect())).collect();
        stuck(waiting.iter().copied().collect(), &having).into_keys().collect()
    }

    #[test]
    fn who_waits_for_what_one_has_who_rests_or_nobody_has_is_not_stuck() {
        // A group for which `main` waits, and a channel from which it would receive.
        assert_eq!(stuck_of(&[(0, &[10]), (1, &[20])], &[(10, &[1]), (20, &[0])]), [0, 1]);
        assert_eq!(stuck_of(&[(0, &[10]), (1, &[20])], &[(10, &[1, 2]), (20, &[0])]), [0_usize; 0]);
        assert_eq!(stuck_of(&[(0, &[10]), (1, &[20])], &[(10, &[1])]), [0_usize; 0], "a forgotten pool");
        // One of two channels is enough, if nobody else has the other one.
        assert_eq!(stuck_of(&[(0, &[10, 30]), (1, &[20])], &[(10, &[1]), (20, &[0])]), [0, 1]);
        assert_eq!(stuck_of(&[(0, &[])], &[]), [0], "it sends to a nil channel");
    }
}
