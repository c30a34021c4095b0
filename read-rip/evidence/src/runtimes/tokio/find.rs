//! Where the lists of tokio's tasks are.
//!
//! A thread that polls tasks has the address of its scheduler on its stack, or in its thread-local memory, which the C
//! library puts above the stack. So has the thread that made the runtime, most often the first one. The scheduler is
//! behind a counter of references, as each `Arc` is.

use std::ops::Range;
use std::time::Duration;

use foldhash::HashSet;

use super::super::pages::Pages;
use super::budget::Budget;
use super::cell::Program;
use super::list::List;
use crate::target::{Mapping, Memory, Target};

/// The stacks of no more threads are searched.
const THREADS_MAX: usize = 128;
/// So much of a stack is searched from its innermost function on, and so much from its outermost one on.
const INNER_BYTES: u64 = 64 << 10;
const OUTER_BYTES: u64 = 32 << 10;
/// So many words of what is counted by references are looked at, for the address of a scheduler.
const INNER_WORDS: usize = 8;
/// Nobody has more references than this.
const REFERENCES_MAX: u64 = 1 << 40;
const PATIENCE: Duration = Duration::from_millis(300);

/// The lists of all schedulers that these threads have on their stacks.
pub(super) fn lists(target: &Target, threads: &[usize], memory: &dyn Memory) -> Vec<List> {
    let pages = Pages::new(memory);
    let program = Program::new(target, &pages);
    let mut search = Search {
        target,
        program: &program,
        budget: Budget::of(PATIENCE),
        seen: HashSet::default(),
        lists: Vec::new(),
    };
    // The first thread is the one that most programs make their runtimes on.
    let first =
        target.tasks.iter().position(|task| task.tid == target.pid).filter(|at| !threads.contains(at));
    let stacks = threads.iter().chain(&first).take(THREADS_MAX).map(|&thread| stack(target, thread));
    let stacks: Vec<Option<[Range<u64>; 2]>> = stacks.collect();
    let is_one_unknown = stacks.iter().any(Option::is_none);
    stacks.into_iter().flatten().flatten().for_each(|range| search.words(range));
    if is_one_unknown {
        likely_stacks(target).take(THREADS_MAX).for_each(|range| search.words(range));
    }
    search.lists
}

/// The parts of a thread's stack that are searched; `None` if it runs, so that its stack pointer is not known.
fn stack(target: &Target, thread: usize) -> Option<[Range<u64>; 2]> {
    let sp = target.tasks[thread].registers?.sp & !7;
    let mapping = target.mapping_at(sp)?;
    let inner = sp..mapping.end.min(sp.saturating_add(INNER_BYTES));
    let outer = inner.end.max(mapping.end.saturating_sub(OUTER_BYTES))..mapping.end;
    Some([inner, outer])
}

/// The outermost parts of all that may be stacks: the one of the first thread, and what has a guard below it.
fn likely_stacks(target: &Target) -> impl Iterator<Item = Range<u64>> {
    let is_stack = |mapping: &Mapping| mapping.path.as_deref().is_some_and(|path| path == "[stack]");
    let has_guard = |below: &Mapping, mapping: &Mapping| {
        let is_guard = !below.is_writable && !below.is_executable && below.file.is_none();
        is_guard && below.end == mapping.begin && mapping.is_writable && mapping.file.is_none()
    };
    let first = target.mappings.iter().filter(move |mapping| is_stack(mapping));
    let others = target.mappings.windows(2).filter(move |pair| has_guard(&pair[0], &pair[1]));
    first.chain(others.map(|pair| &pair[1])).map(|mapping| {
        let begin = mapping.begin.max(mapping.end.saturating_sub(INNER_BYTES));
        begin.next_multiple_of(8)..mapping.end
    })
}

struct Search<'a> {
    target: &'a Target,
    program: &'a Program<'a>,
    budget: Budget,
    seen: HashSet<u64>,
    lists: Vec<List>,
}

impl Search<'_> {
    fn words(&mut self, range: Range<u64>) {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let len = self.program.memory.read_some(range.start, &mut bytes);
        let (words, _) = bytes[..len].as_chunks::<8>();
        for &word in words {
            self.address(u64::from_le_bytes(word), true);
        }
    }

    /// Looks at what is at an address, and, if wanted, at the addresses that it has.
    fn address(&mut self, address: u64, looks_inside: bool) {
        let is_object = |mapping: &Mapping| mapping.is_writable && !mapping.is_executable;
        if address == 0
            || !address.is_multiple_of(8)
            || self.budget.is_over()
            || !self.seen.insert(address)
            || !self.target.mapping_at(address).is_some_and(is_object)
        {
            return;
        }
        // A task that is polled.
        if let Some(cell) = self.program.cell(address)
            && let Some(scheduler) = self.program.scheduler(&cell)
        {
            self.address(scheduler, false);
        }
        let Some([strong, weak]) = self.program.words::<2>(address) else { return };
        let is_count = |count: u64| (1..REFERENCES_MAX).contains(&count);
        if !is_count(strong) || !is_count(weak) {
            return;
        }
        if let Some(list) = List::of_scheduler(address, self.program) {
            self.lists.push(list);
            return;
        }
        if looks_inside && let Some(words) = self.program.words::<INNER_WORDS>(address.wrapping_add(16)) {
            words.into_iter().for_each(|word| self.address(word, false));
        }
    }
}
