//! The processes of the machine, as this reader's `/proc` lists them.

use super::folder::Folder;

/// The pids of all processes, in ascending order, without this one; none if `/proc` cannot be read.
pub fn processes() -> Vec<u32> {
    let mut pids = Folder::open("/proc").and_then(|processes| processes.numbers()).unwrap_or_default();
    pids.retain(|&pid| pid != std::process::id());
    pids
}
