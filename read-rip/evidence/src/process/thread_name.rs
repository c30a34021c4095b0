//! What the kernel calls a thread at present.

use std::fs;

/// The name of a thread; `None` if there is no such thread, or this reader may not know its name.
pub fn thread_name(pid: u32, tid: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
    let name = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
}
