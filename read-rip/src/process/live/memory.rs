//! The memory of a living process, by its file `mem` in `/proc`.
//!
//! The file belongs to the memory that the process had when the file was opened. If the process ends or runs another
//! program, reads fail, even if another process has got its pid. `process_vm_readv` would read from whatever has the
//! pid. It would also wait for the lock of that memory in a way that no signal ends.

use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::target::{Mapping, Memory, Unreadable};

/// The memory of a living process.
#[derive(Debug)]
pub struct LiveMemory {
    /// `None` if the kernel refused to open it.
    file: Option<File>,
    /// Ranges that are never read: reading the memory of a device may have effects.
    devices: Vec<Range<u64>>,
}

impl LiveMemory {
    pub(super) fn new(file: Option<File>, mappings: &[Mapping]) -> LiveMemory {
        let devices = mappings.iter().filter(|mapping| is_device(mapping));
        LiveMemory { file, devices: devices.map(|mapping| mapping.begin..mapping.end).collect() }
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
