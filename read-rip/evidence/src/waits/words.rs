//! The words of the stacks of threads.

use std::ops::Range;

use crate::target::{Memory, Target};

/// No more of the stack of a thread that sleeps is read.
pub(super) const STACK_MAX_BYTES: u64 = 256 << 10;

/// The words of the stack of a thread that sleeps, from its stack pointer on, and whether they are all of them. The
/// kernel may have merged the stack with other memory, and with other stacks: it ends before the next stack pointer.
pub(super) fn stack_words(target: &Target, memory: &dyn Memory, task: usize) -> (Vec<u64>, bool) {
    let Some(sp) = target.tasks[task].registers.map(|registers| registers.sp) else {
        return (Vec::new(), false);
    };
    let Some(mapping) = target.mapping_at(sp) else { return (Vec::new(), false) };
    let others = target.tasks.iter().filter_map(|task| Some(task.registers?.sp));
    let next = others.filter(|&other| other > sp).min();
    words(memory, sp..next.map_or(mapping.end, |next| next.min(mapping.end)), STACK_MAX_BYTES)
}

/// The words of a range of memory, at most so many bytes, and whether they are all of them.
pub(super) fn words(memory: &dyn Memory, range: Range<u64>, at_most: u64) -> (Vec<u64>, bool) {
    let len = range.end.saturating_sub(range.start);
    let mut bytes = vec![0; usize::try_from(len.min(at_most)).unwrap_or(0)];
    let read = memory.read_some(range.start, &mut bytes);
    let words = bytes[..read].as_chunks::<8>().0.iter().map(|&word| u64::from_le_bytes(word)).collect();
    (words, read as u64 == len)
}
