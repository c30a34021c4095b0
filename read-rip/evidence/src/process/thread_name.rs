//! What the kernel calls a thread at present.

use std::fs;

use procfs::process::Process;

/// The name of a thread; `None` if there is no such thread, or this reader may not know its name.
pub fn thread_name(pid: u32, tid: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
    let name = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
}

/// The id of a thread in the innermost PID namespace that it is in; `None` if there is no such thread.
pub(crate) fn innermost_id(pid: u32, tid: u32) -> Option<u32> {
    let process = Process::new(i32::try_from(pid).ok()?).ok()?;
    let status = process.task_from_tid(i32::try_from(tid).ok()?).ok()?.status().ok()?;
    u32::try_from(*status.nspid?.last()?).ok()
}
