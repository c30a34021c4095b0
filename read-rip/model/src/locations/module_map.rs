//! Which module covers an actual address.
//!
//! It does not open modules. It is a map because a list would be too slow: a ring may claim millions of modules, and
//! every word needs a lookup.

use std::collections::BTreeMap;

use foldhash::HashMap;
use read_rip_files::Module;

/// The modules of all processes that share a ring, by address.
#[derive(Debug, Default)]
pub(super) struct ModuleMap {
    by_process: HashMap<u32, Ranges>,
    all: Ranges,
}

impl ModuleMap {
    pub(super) fn new(modules: &[Module]) -> ModuleMap {
        let mut map = ModuleMap::default();
        for (index, module) in modules.iter().enumerate().filter(|(_, module)| module.begin < module.end) {
            map.all.insert(module, index);
            map.by_process.entry(module.pid).or_default().insert(module, index);
        }
        map
    }

    /// The index of the module that covers an address.
    ///
    /// A forked child may load another module at an address of its parent's, so the process's own modules come
    /// first. If several modules cover the address, the one that was loaded last counts.
    pub(super) fn find(&self, pid: u32, pc: u64) -> Option<usize> {
        self.by_process.get(&pid).and_then(|own| own.find(pc)).or_else(|| self.all.find(pc))
    }
}

/// Ranges that do not overlap: end and module by begin.
#[derive(Debug, Default)]
struct Ranges(BTreeMap<u64, (u64, usize)>);

impl Ranges {
    fn insert(&mut self, module: &Module, index: usize) {
        let begin = module.load_bias.wrapping_add(module.begin);
        let end = module.load_bias.wrapping_add(module.end);
        if begin < end {
            self.replace(begin, end, index);
        } else {
            // The range wraps at the end of the address space. No real module does that.
            self.replace(begin, u64::MAX, index);
            self.replace(0, end, index);
        }
    }

    fn replace(&mut self, begin: u64, end: u64, index: usize) {
        let before = self.0.range(..begin).next_back().map(|(&start, &value)| (start, value));
        if let Some((start, (other_end, other))) = before.filter(|&(_, (other_end, _))| other_end > begin) {
            self.0.insert(start, (begin, other));
            if other_end > end {
                self.0.insert(end, (other_end, other));
            }
        }
        while let Some((&start, &(other_end, other))) = self.0.range(begin..end).next() {
            self.0.remove(&start);
            if other_end > end {
                self.0.insert(end, (other_end, other));
            }
        }
        self.0.insert(begin, (end, index));
    }

    fn find(&self, pc: u64) -> Option<usize> {
        let (_, &(end, index)) = self.0.range(..=pc).next_back()?;
        (pc < end).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(pid: u32, load_bias: u64, end: u64) -> Module {
        Module { pid, load_bias, end, ..Module::default() }
    }

    #[test]
    fn the_modules_of_a_forked_child_come_before_those_of_its_parent() {
        let map = ModuleMap::new(&[
            module(1, 0x10_0000, 0x1000),
            module(2, 0x10_0000, 0x1000),
            module(1, 0x20_0000, 0x1000),
        ]);
        assert_eq!(map.find(1, 0x10_0010), Some(0));
        assert_eq!(map.find(2, 0x10_0010), Some(1));
        assert_eq!(map.find(2, 0x20_0010), Some(2));
        assert_eq!(map.find(2, 0x30_0010), None);
        assert_eq!(map.find(1, 0x10_1000), None);
    }

    #[test]
    fn of_overlapping_modules_the_last_one_counts() {
        // A whole range, one inside it, one across its end, one across two, one that wraps, and an empty one.
        let modules = [
            module(1, 0x1000, 0x9000),
            module(1, 0x3000, 0x1000),
            module(1, 0x9000, 0x3000),
            module(1, 0x2800, 0x1000),
            module(1, u64::MAX - 0xff, 0x200),
            module(1, 0x5000, 0),
        ];
        let map = ModuleMap::new(&modules);
        for pc in (0..0xd000).step_by(0x80).chain(u64::MAX - 0x300..u64::MAX) {
            let expected = (0..modules.len()).rev().find(|&index| modules[index].relative(pc).is_some());
            assert_eq!(map.find(1, pc), expected, "{pc:#x}");
        }
    }
}
