//! The memory of a living process, by its file `mem` in `/proc`.
//!
//! The file belongs to the memory that the process had when the file was opened. If the process ends or runs another
//! program, reads fail, even if another process has got its pid. `process_vm_readv` would read from whatever has the
//! pid. It would also wait for the lock of that memory in a way that no signal ends.

use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::PathBuf;

use read_rip_files::{ProcessMemory, answers};

use crate::target::{Mapping, Memory, Unreadable};

/// The memory of a living process.
#[derive(Debug)]
pub struct LiveMemory {
    /// `None` if the kernel refused to open it.
    file: Option<ProcessMemory>,
    /// Ranges that are never read: reading the memory of a device may have effects.
    devices: Vec<Range<u64>>,
    /// Parts of files whose file systems may never answer: a read waits for a limited time.
    remote: Vec<(Range<u64>, PathBuf)>,
}

impl LiveMemory {
    pub(super) fn new(pid: u32, file: Option<File>, mappings: &[Mapping]) -> LiveMemory {
        let devices = mappings.iter().filter(|mapping| is_device(mapping));
        let devices = devices.map(|mapping| mapping.begin..mapping.end).collect();
        let mut file = file.map(|file| ProcessMemory::new(file, pid));
        let mut answering: HashMap<u64, bool> = HashMap::new();
        let mut remote = Vec::new();
        for mapping in mappings {
            let Mapping { begin, end, file: Some((device, _)), .. } = *mapping else { continue };
            let link = || PathBuf::from(format!("/proc/{pid}/map_files/{begin:x}-{end:x}"));
            if *answering.entry(device).or_insert_with(|| answers(pid, device, &link())) {
                continue;
            }
            if let Some(file) = &mut file {
                file.share(Some(device));
            }
            // As this process would open it, to say so.
            let path = mapping.path.as_ref().and_then(|path| path.strip_prefix("/").ok());
            let path = path.map(|path| PathBuf::from(format!("/proc/{pid}/root")).join(path));
            remote.push((begin..end, path.unwrap_or_else(link)));
        }
        LiveMemory { file, devices, remote }
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
        // A read never goes from memory that answers into one that may not.
        let remote = self.remote.iter().find(|(range, _)| address < range.end && range.start < end);
        let len = remote.map_or(into.len(), |(range, _)| {
            let until = if range.contains(&address) { range.end } else { range.start };
            into.len().min(usize::try_from(until - address).unwrap_or(usize::MAX))
        });
        let into = &mut into[..len];
        loop {
            let read = match remote.filter(|(range, _)| range.contains(&address)) {
                Some((_, path)) => file.read_remote_at(into, address, path),
                None => file.read_at(into, address),
            };
            match read {
                Ok(0) if !into.is_empty() => return Err(Unreadable::Ended),
                Ok(len) => return Ok(len),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(Unreadable::Refused),
                Err(_) => return Err(Unreadable::Absent),
            }
        }
    }
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
