//! Processes by the pids that they have in their containers.

use super::folder::Folder;
use super::status::status_of;

/// The processes that have this pid in a PID namespace below this reader's, by their pids here.
pub fn processes_with_pid_in_container(pid: u32) -> Vec<u32> {
    let Ok(processes) = Folder::open("/proc") else { return Vec::new() };
    let mut found = processes.numbers().unwrap_or_default();
    found.retain(|number| {
        let status = processes.folder(&number.to_string()).and_then(|process| status_of(&process));
        status.is_ok_and(|status| status.ids.get(1..).is_some_and(|ids| ids.contains(&pid)))
    });
    found
}
