//! What the kernel calls a wake-up: the number of its tracepoint, and where the thread is in what that says.
//!
//! It reads two files of tracefs, and changes nothing there.

use std::fs;
use std::io;

use super::Refusal;
use crate::process::is_in_first_pid_namespace;

/// Where tracefs is mounted, or the debug file system with it.
const FOLDERS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const EVENT: &str = "events/sched/sched_waking";

/// The tracepoint that says who is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waking {
    pub(super) id: u64,
    /// Where the thread is that is woken, bytes.
    pub(super) thread_at: usize,
}

impl Waking {
    pub(super) fn find() -> Result<Waking, Refusal> {
        if !is_in_first_pid_namespace() {
            return Err(Refusal::PidNamespace);
        }
        let mut refusal = None;
        for folder in FOLDERS {
            match fs::read_to_string(format!("{folder}/{EVENT}/format")) {
                Ok(text) => {
                    return Waking::of(&text)
                        .ok_or_else(|| Refusal::Tracepoints(io::ErrorKind::InvalidData.into()));
                }
                Err(error) => drop(refusal.get_or_insert(error)),
            }
        }
        Err(Refusal::Tracepoints(refusal.unwrap_or_else(|| io::ErrorKind::NotFound.into())))
    }

    /// Parses the description of the event.
    fn of(text: &str) -> Option<Waking> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        let thread = text.lines().find(|line| line.trim_start().starts_with("field:pid_t pid;"))?;
        let offset = thread.split(';').find_map(|part| part.trim().strip_prefix("offset:"))?;
        Some(Waking { id, thread_at: offset.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.18 has it.
    const FORMAT: &str = "name: sched_waking\nID: 375\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n";

    #[test]
    fn the_description_says_the_number_and_where_the_thread_is() {
        assert_eq!(Waking::of(FORMAT), Some(Waking { id: 375, thread_at: 24 }));
        for missing in ["ID: 375", "pid_t pid;", "offset:24"] {
            assert_eq!(Waking::of(&FORMAT.replace(missing, "")), None, "{missing}");
        }
    }
}
