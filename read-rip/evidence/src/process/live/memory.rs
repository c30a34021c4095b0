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
    /// Which pages are in memory. It is asked for pages of the remote parts.
    pages: Option<File>,
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
        let pages = if remote.is_empty() { None } else { pages() };
        LiveMemory { file, devices, remote, pages }
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
        let into = &mut into[..len];
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

    /// Whether the page at an address is in memory: see `Documentation/admin-guide/mm/pagemap.rst` of the kernel.
    fn is_present(&self, address: u64) -> bool {
        const PRESENT: u64 = 1 << 63;
        let mut entry = [0; 8];
        let at = address / page_bytes() * entry.len() as u64;
        let read = self.pages.as_ref().map(|pages| pages.read_exact_at(&mut entry, at));
        matches!(read, Some(Ok(()))) && u64::from_ne_bytes(entry) & PRESENT != 0
    }
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
