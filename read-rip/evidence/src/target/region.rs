//! What kind of memory an address is in.

use std::path::Path;

use super::{Mapping, Target};

/// A kind of memory that has no file behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// The program has asked for it while it ran.
    Heap,
    /// A thread's stack.
    Stack,
}

impl Region {
    pub fn name(self) -> &'static str {
        match self {
            Region::Heap => "heap",
            Region::Stack => "stack",
        }
    }
}

#[derive(Debug)]
pub struct Regions<'a> {
    target: &'a Target,
    /// Where its threads' stacks end now, ascending.
    stack_pointers: Vec<u64>,
}

impl Target {
    /// The kinds of its memory.
    pub fn regions(&self) -> Regions<'_> {
        let mut stack_pointers: Vec<u64> =
            self.tasks.iter().filter_map(|task| Some(task.registers?.sp)).collect();
        stack_pointers.sort_unstable();
        Regions { target: self, stack_pointers }
    }

    pub fn mapping_at(&self, address: u64) -> Option<&Mapping> {
        let next = self.mappings.partition_point(|mapping| mapping.begin <= address);
        self.mappings.get(next.checked_sub(1)?).filter(|mapping| address < mapping.end)
    }

    /// Whether the memory at an address is this process's alone. A core file does not say whether memory that has a
    /// file is shared.
    pub(crate) fn is_own_memory(&self, address: u64) -> bool {
        let is_core = self.start_ticks.is_none();
        let is_own = |mapping: &Mapping| !mapping.is_shared && (!is_core || mapping.file.is_none());
        self.mapping_at(address).is_some_and(is_own)
    }
}

impl Regions<'_> {
    /// The region of an address; `None` if a file is mapped there, or if that is not known.
    pub fn of(&self, address: u64) -> Option<Region> {
        let mapping = self.target.mapping_at(address).filter(|mapping| mapping.is_writable)?;
        let is_own = |name: &Path| name.to_string_lossy().starts_with("[anon");
        match mapping.path.as_deref() {
            Some(path) if path == "[heap]" => Some(Region::Heap),
            Some(path) if path == "[stack]" => Some(Region::Stack),
            Some(path) if !is_own(path) => None,
            _ => {
                let next = self.stack_pointers.partition_point(|&sp| sp < mapping.begin);
                let is_stack = self.stack_pointers.get(next).is_some_and(|&sp| sp < mapping.end);
                Some(if is_stack { Region::Stack } else { Region::Heap })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Registers, RunState, Task};
    use crate::waits::testing;

    fn mapping(begin: u64, path: Option<&str>) -> Mapping {
        Mapping {
            begin,
            end: begin + 0x1000,
            is_writable: true,
            path: path.map(Into::into),
            ..Mapping::default()
        }
    }

    #[test]
    fn what_no_file_is_behind_is_the_heap_unless_a_thread_stands_there() {
        let registers = Some(Registers { sp: 0x4800, ..Registers::default() });
        let task = Task { registers, ..Task::new(1, RunState::Sleeping) };
        let read_only = Mapping { is_writable: false, ..mapping(0x6000, None) };
        let mappings = [
            mapping(0x1000, Some("/bin/program")),
            mapping(0x2000, Some("[heap]")),
            mapping(0x3000, None),
            mapping(0x4000, Some("[anon:stack]")),
            mapping(0x5000, Some("[stack]")),
            read_only,
        ];
        let target =
            Target { tasks: vec![task], mappings: mappings.to_vec(), ..testing::target(&[], [0; 4]) };
        let of = target.regions();
        let regions = (0..=6).map(|page| of.of(page << 12).map(Region::name));
        let expected = [None, None, Some("heap"), Some("heap"), Some("stack"), Some("stack"), None];
        assert_eq!(regions.collect::<Vec<_>>(), expected);
        assert_eq!(of.of(0x7000), None);
    }
}
