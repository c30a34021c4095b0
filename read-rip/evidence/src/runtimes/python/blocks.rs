//! In which `with` blocks a function is, and of which locks, from 3.11 on.
//!
//! A `with` block keeps the method that ends it, `lock.__exit__`, on the stack of its function. The table of exceptions
//! says how many values the stack has where the block is left because of an exception
//! (`Objects/exception_handling_notes.txt` of CPython): the last one of these is the method. So the values there are
//! those of blocks that have begun and not ended.
//!
//! A lock may be released in the block all the same. So a function that names `release` before any `acquire` counts as
//! one that lets go of its locks and of those of its callers, and `Condition.wait` as one that lets go of the lock of
//! its condition.

use super::layout::Blocks;
use super::objects::{Objects, TYPE};
use crate::runtimes::SourceFrame;

/// In a method of a built-in type that is bound to an object: its definition, which begins with its name, and the
/// object.
const DEFINITION: u64 = 16;
const SELF: u64 = 24;
/// In a lock of `_thread`: the semaphore that it is made of. In an `RLock`, its owner and how often that has it follow.
const SEMAPHORE: u64 = 16;
const OWNER: u64 = 24;
const COUNT: u64 = 32;
/// No more values of a stack, names of code, and handlers around an instruction are looked at.
const VALUES_MAX: u32 = 256;
const NAMES_MAX: u64 = 512;
const NESTED_MAX: usize = 40;

/// A frame of a thread.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) address: u64,
    pub(super) code: u64,
    pub(super) instruction: u64,
    pub(super) source: SourceFrame,
}

/// A lock of `_thread`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InnerMutex {
    /// Where threads sleep that wait for it.
    pub(super) word: u64,
    /// The `pthread_t` of its owner, if it stores that: an `RLock` does.
    pub(super) owner: Option<u64>,
}

/// A `with` block on a lock that a thread is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct With {
    pub(super) lock: InnerMutex,
    /// Where it begins.
    pub(super) at: SourceFrame,
}

/// What handles an exception at an instruction. Positions count units of two bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Handler {
    begin: u64,
    end: u64,
    target: u64,
    depth: u64,
    /// The position of the instruction is kept too: so it is for `with`, and where a handler itself fails.
    keeps_position: bool,
}

impl Objects<'_> {
    /// The locks in whose `with` blocks a thread is, as far as it is not known to have let go of them. Frames: the
    /// innermost first.
    pub(super) fn withs(&mut self, frames: &[Frame]) -> Vec<With> {
        let Some(at) = self.layout.blocks else { return Vec::new() };
        let (mut all, mut let_go): (Vec<With>, Vec<u64>) = (Vec::new(), Vec::new());
        for frame in frames {
            match self.lets_go(frame, at) {
                LetsGo::OfNone => {}
                LetsGo::Of(word) => let_go.push(word),
                LetsGo::OfAll => break,
            }
            let found = self.withs_of(frame, at);
            all.extend(found.into_iter().filter(|with| !let_go.contains(&with.lock.word)));
        }
        all
    }

    /// The lock at this word, if a function has it among its variables or values.
    pub(super) fn lock_of(&self, frame: &Frame, word: u64) -> Option<InnerMutex> {
        let at = self.layout.blocks?;
        let len = |offset: u64| self.memory.u32(frame.code.checked_add(offset)?).ok();
        let len = len(at.locals_len)?.checked_add(len(at.stack_len)?)?.min(VALUES_MAX);
        let values =
            (0..u64::from(len)).filter_map(|index| self.pointer(frame.address, at.locals + 8 * index));
        let mut locks = values.filter_map(|value| {
            let of_method = || self.mutex(self.pointer(value, SELF)?);
            self.mutex(value).or_else(of_method)
        });
        locks.find(|lock| lock.word == word)
    }

    /// The first variable of a function: `self` in a method.
    pub(super) fn first_variable(&self, frame: &Frame) -> Option<u64> {
        self.pointer(frame.address, self.layout.blocks?.locals)
    }

    fn withs_of(&mut self, frame: &Frame, at: Blocks) -> Vec<With> {
        let Some(begin) = frame.code.checked_add(self.layout.code.instructions) else { return Vec::new() };
        let table = self.pointer(frame.code, at.exceptions).and_then(|table| self.bytes(table));
        let Some(table) = table.filter(|table| !table.is_empty()) else { return Vec::new() };
        let handlers = handlers(&table);
        let locals = self.memory.u32(frame.code.wrapping_add(at.locals_len)).unwrap_or(u32::MAX);
        let mut found = Vec::new();
        // Further out, handlers fail: the values after those of the first one would be the exception's.
        let (mut position, mut live) = (frame.instruction.saturating_sub(begin) / 2, u64::from(VALUES_MAX));
        for _ in 0..NESTED_MAX {
            let Some(handler) = handlers.iter().find(|of| (of.begin..of.end).contains(&position)) else {
                break;
            };
            position = handler.target;
            let is_block = handler.keeps_position && handler.depth <= live;
            live = live.min(handler.depth);
            let slot = handler.depth.checked_sub(1).filter(|_| is_block && locals <= VALUES_MAX);
            let value = slot.and_then(|slot| {
                let index = slot.checked_add(u64::from(locals))?;
                self.pointer(frame.address, index.checked_mul(8)?.checked_add(at.locals)?)
            });
            let Some(lock) = value.and_then(|value| self.ends_with(value)) else { continue };
            let first = handlers.iter().filter(|of| of.target == handler.target).map(|of| of.begin).min();
            let line = first.and_then(|first| {
                self.source(frame.code, begin.checked_add(first.checked_mul(2)?)?)
                    .and_then(|source| source.line)
            });
            live = live.saturating_sub(1);
            found.push(With { lock, at: SourceFrame { line, ..frame.source.clone() } });
        }
        found
    }

    /// The lock whose `with` block this value ends.
    fn ends_with(&self, value: u64) -> Option<InnerMutex> {
        let of_type = self.pointer(value, TYPE)?;
        let of = self.pointer(value, SELF)?;
        if of_type == self.types.built_in_method {
            let name = self.pointer(self.pointer(value, DEFINITION)?, 0)?;
            let is_exit = self.memory.bytes(name) == Ok(*b"__exit__\0");
            return self.mutex(of).filter(|_| is_exit);
        }
        // A condition of `threading` passes it on to its lock.
        let is_condition = of_type == self.types.method && self.is_condition(of);
        self.mutex(self.attribute(of, "_lock").filter(|_| is_condition)?)
    }

    fn is_condition(&self, object: u64) -> bool {
        self.type_name(object).is_some_and(|name| name == "Condition")
    }

    fn mutex(&self, object: u64) -> Option<InnerMutex> {
        // Most values are none: their addresses say so, or they cannot be read.
        let name = self.type_name(object).filter(|_| object.is_multiple_of(8))?;
        let owner = match &*name {
            "_thread.lock" => None,
            "_thread.RLock" => {
                let has_owner = self.memory.u64(object.checked_add(COUNT)?).ok()? > 0;
                Some(self.memory.u64(object.checked_add(OWNER)?).ok().filter(|_| has_owner)?)
            }
            _ => return None,
        };
        Some(InnerMutex { word: self.pointer(object, SEMAPHORE)?, owner })
    }

    fn lets_go(&self, frame: &Frame, at: Blocks) -> LetsGo {
        let Some(names) = self.names(frame.code, at) else { return LetsGo::OfAll };
        let position = |name: &str| names.iter().position(|known| known == name);
        if position("_release_save").is_some() {
            let condition = self.first_variable(frame).filter(|&of| self.is_condition(of));
            let lock = condition.and_then(|of| self.mutex(self.attribute(of, "_lock")?));
            return lock.map_or(LetsGo::OfAll, |lock| LetsGo::Of(lock.word));
        }
        // The names are in the order in which the code uses them first.
        let releases_first = match (position("release"), position("acquire")) {
            (Some(release), Some(acquire)) => release < acquire,
            (release, None) => release.is_some(),
            (None, Some(_)) => false,
        };
        if releases_first { LetsGo::OfAll } else { LetsGo::OfNone }
    }

    /// The names of attributes and global variables that code uses; `None` if not all of them are known.
    fn names(&self, code: u64, at: Blocks) -> Option<Vec<String>> {
        let tuple = self.pointer(code, at.names)?;
        let len = self.memory.u64(tuple.checked_add(16)?).ok().filter(|&len| len <= NAMES_MAX)?;
        (0..len).map(|index| self.text(self.pointer(tuple, 24 + 8 * index)?)).collect()
    }
}

/// Which locks a function may have released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LetsGo {
    OfNone,
    /// That at this word.
    Of(u64),
    OfAll,
}

/// The entries of a table of exceptions: numbers of 6 bits a byte, the highest ones first.
fn handlers(table: &[u8]) -> Vec<Handler> {
    let mut rest = table.iter().copied();
    let mut number = || {
        let mut byte = rest.next()?;
        let mut value = u64::from(byte & 0x3f);
        while byte & 0x40 != 0 {
            byte = rest.next()?;
            value = value.checked_mul(64)? | u64::from(byte & 0x3f);
        }
        Some(value)
    };
    let mut all = Vec::new();
    while let (Some(begin), Some(len), Some(target), Some(depth)) = (number(), number(), number(), number()) {
        let (end, keeps_position) = (begin.saturating_add(len), depth & 1 == 1);
        all.push(Handler { begin, end, target, depth: depth >> 1, keeps_position });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_exceptions_gives_what_python_gives() {
        // `code.co_exceptiontable` of `def f(l):\n  with l:\n    g()` from Python 3.11, and what `dis` makes of it.
        let table = [131, 15, 31, 3, 159, 4, 35, 7, 166, 1, 35, 7];
        let handler = |begin, end, target, depth| Handler { begin, end, target, depth, keeps_position: true };
        assert_eq!(handlers(&table), [handler(3, 18, 31, 1), handler(31, 35, 35, 3), handler(38, 39, 35, 3)]);
        for byte in 0..=255 {
            let _ = handlers(&[byte; 41]);
        }
    }
}
