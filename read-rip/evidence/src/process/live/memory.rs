//! The memory of a living process, by its file `mem` in `/proc`.
//!
//! The file belongs to the memory that the process had when the file was opened. If the process ends or runs another
//! program, reads fail, even if another process has got its pid. `process_vm_readv` would read from whatever has the
//! pid. It would also wait for the lock of that memory in a way that no signal ends.

use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use read_rip_files::{answers, note_unasked};

use crate::target::{Mapping, Memory, Unreadable};

#[derive(Debug)]
pub struct LiveMemory {
    /// `None` if the kernel refused to open it.
    file: Option<File>,
    /// Ranges that are never read: reading the memory of a device may have effects.
    devices: Vec<Range<u64>>,
    /// Parts of files whose file systems may never answer, with the files' paths.
    remote: Vec<(Range<u64>, PathBuf)>,
    /// Shared memory. Where nobody has touched a page, reading makes one, which counts as memory of the process.
    shared: Vec<Range<u64>>,
    /// Which pages are in memory. It is asked for pages of the remote parts, and for those of shared memory.
    pages: Option<File>,
    /// Whether pages may have been moved to a disk. Of shared memory, the kernel does not say which.
    may_be_on_disk: bool,
}

impl LiveMemory {
    /// `file` is the process's `mem` in `/proc`, and `pages` opens its `pagemap`.
    pub(super) fn new(
        pid: u32,
        file: Option<File>,
        pages: impl FnOnce() -> Option<File>,
        mappings: &[Mapping],
    ) -> LiveMemory {
        let devices = mappings.iter().filter(|mapping| is_device(mapping));
        let devices = devices.map(|mapping| mapping.begin..mapping.end).collect();
        let mut answering: HashMap<u64, bool> = HashMap::new();
        let mut remote = Vec::new();
        for mapping in mappings {
            let Mapping { begin, end, file: Some((device, _)), .. } = *mapping else { continue };
            let link = || PathBuf::from(format!("/proc/{pid}/map_files/{begin:x}-{end:x}"));
            if !*answering.entry(device).or_insert_with(|| answers(pid, device, &link())) {
                // As this process would open it, to say so.
                let path = mapping.path.as_ref().and_then(|path| path.strip_prefix("/").ok());
                let path = path.map(|path| PathBuf::from(format!("/proc/{pid}/root")).join(path));
                remote.push((begin..end, path.unwrap_or_else(link)));
            }
        }
        let shared = mappings.iter().filter(|mapping| mapping.is_shared && !is_device(mapping));
        let shared: Vec<Range<u64>> = shared.map(|mapping| mapping.begin..mapping.end).collect();
        let pages = if remote.is_empty() && shared.is_empty() { None } else { pages() };
        let may_be_on_disk = !shared.is_empty() && has_swap();
        LiveMemory { file, devices, remote, shared, pages, may_be_on_disk }
    }

    fn read_once(&self, address: u64, into: &mut [u8]) -> Result<usize, Unreadable> {
        let file = self.file.as_ref().ok_or(Unreadable::Refused)?;
        let end = address.saturating_add(into.len() as u64);
        if self.devices.iter().any(|device| address < device.end && device.start < end) {
            return Err(Unreadable::Refused);
        }
        // The kernel takes addresses as signed offsets. Programs have none above.
        if i64::try_from(end).is_err() {
            return Err(Unreadable::Absent);
        }
        let len = self.len_that_answers(address, into.len())?;
        let (len, is_hole) = self.len_that_exists(address, len);
        let into = &mut into[..len];
        if is_hole && self.may_be_on_disk {
            return Err(Unreadable::Absent);
        }
        if is_hole {
            into.fill(0);
            return Ok(len);
        }
        loop {
            match file.read_at(into, address) {
                Ok(0) if !into.is_empty() => return Err(Unreadable::Ended),
                Ok(len) => return Ok(len),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(Unreadable::Refused),
                Err(_) => return Err(Unreadable::Absent),
            }
        }
    }

    /// How much can be read from an address on without a question to a file system that may never answer. Pages of its
    /// files are read one by one, if they are in memory.
    ///
    /// The kernel would hold the lock of the process's memory while it waits for the answer, and nothing ends that: the
    /// process itself could not map memory any more.
    fn len_that_answers(&self, address: u64, len: usize) -> Result<usize, Unreadable> {
        let end = address.saturating_add(len as u64);
        let Some((range, path)) =
            self.remote.iter().find(|(range, _)| address < range.end && range.start < end)
        else {
            return Ok(len);
        };
        let until = if address < range.start {
            range.start
        } else if self.is_present(address) {
            range.end.min((address / page_bytes() + 1) * page_bytes())
        } else {
            note_unasked(path);
            return Err(Unreadable::Absent);
        };
        Ok(len.min(usize::try_from(until - address).unwrap_or(usize::MAX)))
    }

    /// How much can be read from an address on without making a page of shared memory, and whether that is none because
    /// the pages from there on have not been touched: then their bytes are zeros.
    fn len_that_exists(&self, address: u64, len: usize) -> (usize, bool) {
        let end = address.saturating_add(len as u64);
        let shared = self.shared.iter().find(|range| address < range.end && range.start < end);
        let Some((range, pages)) = shared.zip(self.pages.as_ref()) else { return (len, false) };
        let (until, is_hole) = if address < range.start {
            (range.start, false)
        } else {
            let (first, last) = (address / page_bytes(), (end.min(range.end) - 1) / page_bytes());
            let present = present(pages, first, last - first + 1);
            // If that is not known, the process may have ended, and the read says so.
            let is_hole = present.first() == Some(&false);
            let alike = present.iter().take_while(|&&is_present| is_present != is_hole).count();
            (range.end.min((first + alike.max(1) as u64) * page_bytes()), is_hole)
        };
        (len.min(usize::try_from(until - address).unwrap_or(usize::MAX)), is_hole)
    }

    /// Whether the page at an address is in memory.
    fn is_present(&self, address: u64) -> bool {
        let pages = self.pages.as_ref();
        pages.is_some_and(|pages| present(pages, address / page_bytes(), 1) == [true])
    }
}

/// Which of at most so many pages, from this one on, are in memory: see `Documentation/admin-guide/mm/pagemap.rst` of
/// the kernel. Empty if that is not known.
fn present(pages: &File, first: u64, count: u64) -> Vec<bool> {
    const PRESENT: u64 = 1 << 63;
    const COUNT_MAX: u64 = 512;
    let mut entries = vec![0; 8 * count.min(COUNT_MAX) as usize];
    let len = pages.read_at(&mut entries, 8 * first).unwrap_or(0);
    let (entries, _) = entries[..len].as_chunks();
    entries.iter().map(|&entry| u64::from_ne_bytes(entry) & PRESENT != 0).collect()
}

/// Whether this machine moves memory to disks; `true` if that is not known.
fn has_swap() -> bool {
    // The first line has the names of the columns.
    std::fs::read_to_string("/proc/swaps").map_or(true, |swaps| swaps.lines().count() > 1)
}

fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

impl Memory for LiveMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let mut done = 0;
        // The kernel may stop early: at the end of what is mapped, or because a signal arrived.
        while done < into.len() {
            done += self.read_once(address.saturating_add(done as u64), &mut into[done..])?;
        }
        Ok(())
    }

    fn read_some(&self, address: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            match self.read_once(address.saturating_add(done as u64), &mut into[done..]) {
                Ok(len) => done += len,
                Err(_) => break,
            }
        }
        done
    }
}

/// Whether a mapping is of a device. Shared memory and zeros are under `/dev` too, but are memory.
fn is_device(mapping: &Mapping) -> bool {
    let Some(path) = &mapping.path else { return false };
    path.starts_with("/dev") && !path.starts_with("/dev/shm") && !path.starts_with("/dev/zero")
}
