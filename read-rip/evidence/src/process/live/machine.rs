//! The processes of the machine, as `/proc` lists them: by their pids here, and by those in their containers.

use super::folder::Folder;

/// The pids of all processes, in ascending order, without this one; none if `/proc` cannot be read.
pub fn processes() -> Vec<u32> {
    let mut pids = Folder::open("/proc").and_then(|processes| processes.numbers()).unwrap_or_default();
    pids.retain(|&pid| pid != std::process::id());
    pids
}

/// The processes that have this pid in a PID namespace below this reader's, by their pids here.
pub fn processes_with_pid_in_container(pid: u32) -> Vec<u32> {
    let Ok(processes) = Folder::open("/proc") else { return Vec::new() };
    let mut found = processes.numbers().unwrap_or_default();
    found.retain(|number| {
        let status = processes.folder(&number.to_string()).and_then(|process| process.status());
        status.is_ok_and(|status| status.ids.get(1..).is_some_and(|ids| ids.contains(&pid)))
    });
    found
}
