//! Targets made by hand, for the tests of this layer.

use std::collections::BTreeMap;

use crate::target::*;

/// Memory that has these pieces.
#[derive(Debug, Default)]
pub(crate) struct Pieces(pub BTreeMap<u64, Vec<u8>>);

impl Pieces {
    /// Puts words at an address.
    pub(crate) fn put(&mut self, address: u64, words: &[u32]) {
        self.0.insert(address, words.iter().flat_map(|word| word.to_le_bytes()).collect());
    }
}

impl Memory for Pieces {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let (&begin, bytes) = self.0.range(..=address).next_back().ok_or(Unreadable::Absent)?;
        let at = usize::try_from(address - begin).map_err(|_| Unreadable::Absent)?;
        let found =
            at.checked_add(into.len()).and_then(|end| bytes.get(at..end)).ok_or(Unreadable::Absent)?;
        into.copy_from_slice(found);
        Ok(())
    }

    fn read_some(&self, address: u64, into: &mut [u8]) -> usize {
        let piece = self.0.range(..=address).next_back();
        let rest = piece.and_then(|(begin, bytes)| bytes.get(usize::try_from(address - begin).ok()?..));
        let len = rest.map_or(0, <[u8]>::len).min(into.len());
        into[..len].copy_from_slice(&rest.unwrap_or_default()[..len]);
        len
    }
}

/// Memory in which each word is what this function makes of its address.
pub(crate) struct Hostile(pub fn(u64) -> u64);

impl Memory for Hostile {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        for (index, byte) in into.iter_mut().enumerate() {
            let at = address.wrapping_add(index as u64);
            *byte = (self.0)(at & !7).to_le_bytes()[(at & 7) as usize];
        }
        Ok(())
    }

    fn read_some(&self, address: u64, into: &mut [u8]) -> usize {
        self.read(address, into).map_or(0, |()| into.len())
    }
}

/// A mapping of a file.
pub(super) fn mapping(path: &str) -> Mapping {
    Mapping {
        begin: 0x1000,
        end: 0x2000,
        is_executable: true,
        file: Some((1, 1)),
        path: Some(path.into()),
        ..Mapping::default()
    }
}

/// A target with threads of these ids. Each sleeps in the futex call of these arguments.
pub(crate) fn target(tids: &[u32], arguments: [u64; 4]) -> Target {
    let [address, operation, value, timeout] = arguments;
    let arguments = [address, operation, value, timeout, 0, 0];
    let task = |&own_tid| Task {
        own_tid,
        start_ticks: 1,
        sleep: Some(Sleep::Call(Call::new(Architecture::X86_64, 202, arguments))),
        ..Task::new(own_tid + 100_000, RunState::Sleeping)
    };
    Target {
        pid: 100_001,
        own_pid: 1,
        name: "target".to_owned(),
        architecture: Architecture::X86_64,
        start_ticks: None,
        taken_ns: None,
        tasks: tids.iter().map(task).collect(),
        mappings: Vec::new(),
        modules: Vec::new(),
        hidden: None,
        freezer: None,
        is_fork: None,
    }
}
