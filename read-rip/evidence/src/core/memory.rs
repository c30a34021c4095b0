//! The memory of a core: what the file has, and for pages that are as in a program's file, that file.

use std::cell::RefCell;

use foldhash::HashMap;
use read_rip_files::Module;
use read_rip_ring::Source;
use read_rip_symbols::{Options, UnwindSections};

use super::header::Segment;
use crate::target::{Memory, Unreadable};

pub struct CoreMemory<'a> {
    source: &'a Source,
    segments: &'a [Segment],
    modules: Vec<Module>,
    options: Options,
    /// The files of modules, once they were needed; `None` if there is none that was mapped.
    files: RefCell<HashMap<usize, Option<UnwindSections>>>,
}

impl std::fmt::Debug for CoreMemory<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("CoreMemory").field("segments", &self.segments.len()).finish_non_exhaustive()
    }
}

impl<'a> CoreMemory<'a> {
    pub(super) fn new(
        source: &'a Source,
        segments: &'a [Segment],
        modules: &[Module],
        options: Options,
    ) -> CoreMemory<'a> {
        // Otherwise nothing shows that a file is the one that was mapped.
        let is_identified = |module: &&Module| {
            let is_named = module.is_executable && options.executable.is_some();
            is_named || !module.build_id.is_empty() || module.modified_ns != 0
        };
        let modules = modules.iter().filter(is_identified).cloned().collect();
        CoreMemory { source, segments, modules, options, files: RefCell::default() }
    }

    /// What a module's file has at an address that the core leaves out.
    fn read_left_out(&self, address: u64, into: &mut [u8]) -> bool {
        let Some(segment) = segment_at(self.segments, address) else { return false };
        // The kernel leaves out pages that were never written to. What is missing because the file was cut may have
        // been changed: then the module's file says nothing about it.
        let is_left_out = address - segment.begin >= segment.dumped_bytes && !segment.is_writable;
        let Some(end) = address.checked_add(into.len() as u64).filter(|&end| end <= segment.end) else {
            return false;
        };
        if !is_left_out || end <= address {
            return false;
        }
        let at = self.modules.iter().position(|module| module.relative(address).is_some());
        let Some((position, relative)) = at.and_then(|at| Some((at, self.modules[at].relative(address)?)))
        else {
            return false;
        };
        let mut files = self.files.borrow_mut();
        let file = files
            .entry(position)
            .or_insert_with(|| UnwindSections::of_file(&self.modules[position], &self.options).ok());
        match file.as_ref().and_then(|file| file.loaded(relative, into.len() as u64)) {
            Some(bytes) if bytes.len() == into.len() => {
                into.copy_from_slice(&bytes);
                true
            }
            _ => false,
        }
    }
}

impl Memory for CoreMemory<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        if self.read_some(address, into) == into.len() { Ok(()) } else { Err(Unreadable::Absent) }
    }

    fn read_some(&self, address: u64, into: &mut [u8]) -> usize {
        let done = read_dumped(self.source, self.segments, address, into);
        let rest = &mut into[done..];
        let is_read = !rest.is_empty()
            && address.checked_add(done as u64).is_some_and(|address| self.read_left_out(address, rest));
        if is_read { into.len() } else { done }
    }
}

fn segment_at(segments: &[Segment], address: u64) -> Option<&Segment> {
    let after = segments.partition_point(|segment| segment.begin <= address);
    segments[..after].last().filter(|segment| address < segment.end)
}

/// Reads what the core file itself has. Returns how many bytes that are.
pub(super) fn read_dumped(source: &Source, segments: &[Segment], address: u64, into: &mut [u8]) -> usize {
    let mut done = 0;
    while done < into.len() {
        let Some(address) = address.checked_add(done as u64) else { break };
        let Some(segment) = segment_at(segments, address) else { break };
        let within = address - segment.begin;
        let left = segment.dumped_bytes.saturating_sub(within).min((into.len() - done) as u64) as usize;
        let Some(offset) = segment.offset.checked_add(within).filter(|_| left > 0) else { break };
        let got = source.read_at(&mut into[done..done + left], offset).unwrap_or(0);
        done += got;
        if got < left {
            break;
        }
    }
    done
}
