//! The lists of tasks that a scheduler of tokio has.
//!
//! ```text
//! one list    first, last                                             before 1.37, and a `LocalSet` in all versions
//! shards      pointer, number, (added,) count, number - 1             from 1.37 on; each shard: lock, first, last
//! ```
//!
//! A scheduler has other words that look so. So each task of the list must name this very scheduler, all must belong to
//! one list, and they must be linked both ways.

use foldhash::HashSet;

use super::budget::Budget;
use super::cell::{Member, Program, TRAILER_WORDS, Task};

/// So many words of a scheduler are searched.
const SCHEDULER_WORDS: usize = 512;
/// tokio makes four shards for each worker, and no more than this.
const SHARDS_MIN: u64 = 4;
const SHARDS_MAX: u64 = 1 << 16;
/// A shard is a lock and two pointers.
const SHARD_WORDS: usize = 3;
/// The tasks of so many shards are looked at before a list is believed.
const SAMPLE: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct List {
    pub(super) scheduler: u64,
    shape: Shape,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Shape {
    /// The words with the first and the last task are there.
    One { ends: u64 },
    /// So many shards are there, and the number of all tasks.
    Shards { first: u64, number: u64, count: u64 },
}

/// Whether words are a list of shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Belief {
    Believed,
    /// They look like one, and it has no tasks.
    BelievedEmpty,
    /// They look like one, and no task of it is this scheduler's now.
    MayBe,
    NoList,
}

#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) members: Vec<Member>,
    /// How many more tasks it has.
    pub(super) unread: usize,
    /// Whether all of it fitted together.
    pub(super) is_whole: bool,
}

/// The ends of a list, or of a shard.
#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u64,
    last: u64,
    /// Each task of the shard has this in the lowest bits of its id.
    residue: Option<(u64, u64)>,
}

impl List {
    /// The list of the scheduler at an address, if there is one.
    pub(super) fn of_scheduler(scheduler: u64, program: &Program<'_>) -> Option<List> {
        let mut bytes = vec![0; 8 * SCHEDULER_WORDS];
        let len = program.memory.read_some(scheduler, &mut bytes);
        let (words, _) = bytes[..len].as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|&word| u64::from_le_bytes(word)).collect();
        let at = |index: usize| scheduler + 8 * index as u64;
        // Those of a runtime without tasks may follow a `LocalSet` in memory.
        let mut empty = None;
        for index in 2..words.len().saturating_sub(4) {
            let (first, number) = (words[index], words[index + 1]);
            let is_number = number.is_power_of_two() && (SHARDS_MIN..=SHARDS_MAX).contains(&number);
            if first == 0 || !first.is_multiple_of(8) || !is_number {
                continue;
            }
            let mask = (index + 3..index + 5).find(|&mask| words[mask] == number - 1);
            let Some(mask) = mask else { continue };
            let shape = Shape::Shards { first, number, count: at(mask - 1) };
            let list = List { scheduler, shape };
            match list.belief(program, words[mask - 1]) {
                Belief::Believed => return Some(list),
                Belief::BelievedEmpty => empty = empty.or(Some(list)),
                // It may be changing now. Then it has no list of another shape.
                Belief::MayBe => return empty,
                Belief::NoList => {}
            }
        }
        // The queue of a runtime has such a pair too. The list has all tasks, and the queue some.
        let pairs = (2..words.len().saturating_sub(1)).filter_map(|index| {
            program.cell(words[index])?;
            let list = List { scheduler, shape: Shape::One { ends: at(index) } };
            let read = list.members(program, super::TASKS_MAX, &Budget::of(super::PATIENCE));
            (read.is_whole && !read.members.is_empty()).then_some((read.members.len(), list))
        });
        pairs.max_by_key(|&(len, _)| len).map(|(_, list)| list).or(empty)
    }

    /// Whether the first task of a shard is this scheduler's, or there is none and it says so.
    fn belief(&self, program: &Program<'_>, count: u64) -> Belief {
        let Some(ends) = self.ends(program) else { return Belief::NoList };
        let some: Vec<&Ends> = ends.iter().filter(|ends| ends.first != 0).take(SAMPLE).collect();
        let is_own = |ends: &&Ends| self.own(program, ends.first, ends, &mut None).is_some();
        // Another scheduler may follow this one in memory.
        let is_others =
            |ends: &&Ends| program.task(ends.first).is_some_and(|task| task.scheduler != self.scheduler);
        match () {
            () if some.is_empty() && count == 0 => Belief::BelievedEmpty,
            () if some.iter().any(is_own) => Belief::Believed,
            () if some.iter().any(is_others) => Belief::NoList,
            () => Belief::MayBe,
        }
    }

    /// The ends of all shards; `None` if they are no shards.
    fn ends(&self, program: &Program<'_>) -> Option<Vec<Ends>> {
        match self.shape {
            Shape::One { ends } => {
                let [first, last] = program.words::<2>(ends)?;
                Some(vec![Ends { first, last, residue: None }])
            }
            Shape::Shards { first, number, .. } => {
                let mut bytes = vec![0; 8 * SHARD_WORDS * usize::try_from(number).ok()?];
                program.memory.read(first, &mut bytes).ok()?;
                let (words, _) = bytes.as_chunks::<8>();
                let words: Vec<u64> = words.iter().map(|&word| u64::from_le_bytes(word)).collect();
                let shards = words.chunks_exact(SHARD_WORDS).enumerate();
                let ends = shards.map(|(at, shard)| {
                    // The state of the lock of the standard library, or of parking_lot.
                    let is_lock = shard[0] as u8 <= 3;
                    let is_pair = (shard[1] == 0) == (shard[2] == 0);
                    let residue = Some((number - 1, at as u64));
                    (is_lock && is_pair).then_some(Ends { first: shard[1], last: shard[2], residue })
                });
                ends.collect()
            }
        }
    }

    /// The task at an address, if it is one of this list.
    fn own(&self, program: &Program<'_>, address: u64, ends: &Ends, owner: &mut Option<u64>) -> Option<Task> {
        let task = program.task(address)?;
        let id = task.member.id;
        let is_own = task.scheduler == self.scheduler
            && *owner.get_or_insert(task.owner) == task.owner
            && id != 0
            && ends.residue.is_none_or(|(mask, residue)| id & mask == residue);
        is_own.then_some(task)
    }

    /// Its tasks, but no more than `at_most`, as far as the budget allows.
    pub(super) fn members(&self, program: &Program<'_>, at_most: usize, budget: &Budget) -> Read {
        let Some(all) = self.ends(program) else { return Read::default() };
        let mut read = Read { is_whole: true, ..Read::default() };
        let (mut owner, mut seen) = (None, HashSet::default());
        let links = all.iter().filter(|ends| ends.first != ends.last);
        let links = links.take(SAMPLE).find_map(|ends| links_of(program, ends.first));
        for ends in all.iter().filter(|ends| ends.first != 0) {
            let (mut at, mut before) = (ends.first, 0);
            loop {
                if read.members.len() >= at_most || budget.is_over() || !seen.insert(at) {
                    read.is_whole = false;
                    break;
                }
                let Some(Task { member, trailer, .. }) = self.own(program, at, ends, &mut owner) else {
                    read.is_whole = false;
                    break;
                };
                read.members.push(member);
                let Some(links) = links else {
                    // All shards have one task at most.
                    read.is_whole &= ends.first == ends.last;
                    break;
                };
                let (previous, next) = (trailer[links], trailer[links + 1]);
                read.is_whole &= previous == before && (next == 0) == (at == ends.last);
                if next == 0 || previous != before {
                    break;
                }
                (before, at) = (at, next);
            }
        }
        let count = match self.shape {
            Shape::One { .. } => None,
            Shape::Shards { count, .. } => program.memory.u64(count).ok(),
        };
        // What a process says of itself may be anything.
        let count = count.and_then(|count| usize::try_from(count).ok()).filter(|&count| count < 1 << 32);
        read.unread = count.unwrap_or(0).saturating_sub(read.members.len());
        read
    }
}

/// Where the links are in the trailers of a list, whose first task is this, and which has others: the second one leads
/// back to it.
fn links_of(program: &Program<'_>, first: u64) -> Option<usize> {
    let trailer = program.trailer(&program.cell(first)?)?;
    (0..TRAILER_WORDS).step_by(2).find(|&at| {
        let leads_back = || {
            let next = program.cell(trailer[at + 1])?;
            (program.trailer(&next)?[at] == first).then_some(())
        };
        trailer[at] == 0 && leads_back().is_some()
    })
}
