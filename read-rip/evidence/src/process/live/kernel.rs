//! What a thread that sleeps is in in the kernel: its functions there, the file of its call, and who answers for that
//! file's system.
//!
//! No file of the process is opened or looked at: that could wait for a server that does not answer. Paths come from
//! the process's memory and from its table of mounts.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::folder::Folder;
use super::peers::{OtherEnd, peers};
use super::text::decimal;
use crate::target::{
    Call, CallKind, Descriptor, DescriptorKind, KernelWait, Memory, Peer, RemoteMount, Sleep, Task,
};

/// So many functions of the kernel say enough.
const FUNCTIONS_MAX: usize = 8;
/// The length of a path in the kernel: `PATH_MAX`.
const PATH_MAX: usize = 4096;
/// Functions that every call begins with, and those that sleep.
const EVERYWHERE: [&str; 6] =
    ["do_syscall_64", "entry_SYSCALL_64", "el0_svc", "invoke_syscall", "schedule", "io_schedule"];

/// What the thread is in; `None` if the kernel shows nothing of it.
pub(super) fn wait(
    thread: &Folder,
    tasks: &Folder,
    task: &Task,
    descriptor: Option<&Descriptor>,
    memory: &dyn Memory,
) -> Option<KernelWait> {
    let functions = functions(tasks, task.tid);
    if functions.is_empty() {
        return None;
    }
    let path = match (descriptor.map(|descriptor| &descriptor.kind), task.sleep) {
        (Some(DescriptorKind::File(path)), _) => Some(path.clone()),
        (_, Some(Sleep::Call(call))) => path(thread, call, memory),
        _ => None,
    };
    let mut wait = KernelWait { functions, path, mount: None };
    if wait.awaits_server() {
        let mounts = thread.read("mountinfo").unwrap_or_default();
        wait.mount = wait.path.as_deref().and_then(|path| mount_of(&mounts, path));
    }
    if let Some(mount) = &mut wait.mount {
        mount.servers = servers(mount.connection);
    }
    Some(wait)
}

/// The functions of the kernel, the innermost first.
fn functions(tasks: &Folder, tid: u32) -> Vec<String> {
    let stack = tasks.read(&format!("{tid}/stack")).unwrap_or_default();
    let stack = String::from_utf8_lossy(&stack);
    // `[<0>] request_wait_answer+0x15e/0x230`.
    let names = stack.lines().filter_map(|line| line.rsplit_once("] ")?.1.split('+').next());
    let names = names.filter(|name| !EVERYWHERE.iter().any(|other| name.starts_with(other)));
    let names: Vec<String> = names.take(FUNCTIONS_MAX).map(str::to_owned).collect();
    if !names.is_empty() {
        return names;
    }
    let innermost = tasks.read(&format!("{tid}/wchan")).unwrap_or_default();
    let innermost = String::from_utf8_lossy(&innermost).trim().to_owned();
    if matches!(&*innermost, "" | "0") { Vec::new() } else { vec![innermost] }
}

/// The path that a call is about, as the process names it, below its root directory.
pub(super) fn path(thread: &Folder, call: Call, memory: &dyn Memory) -> Option<PathBuf> {
    if call.kind != CallKind::File && call.kind != CallKind::Exec {
        return None;
    }
    let [first, second, ..] = call.arguments;
    let (at, address) = match call.name? {
        "openat" | "openat2" | "newfstatat" | "statx" | "faccessat" | "faccessat2" | "readlinkat"
        | "unlinkat" | "renameat" | "renameat2" | "execveat" => (Some(first as i32), second),
        "open" | "creat" | "stat" | "lstat" | "access" | "statfs" | "truncate" | "readlink" | "unlink"
        | "rename" | "mkdir" | "rmdir" | "execve" => (None, first),
        _ => return None,
    };
    let mut text = vec![0; PATH_MAX];
    let len = memory.read_some(address, &mut text);
    let end = text[..len].iter().position(|&byte| byte == 0)?;
    let path = PathBuf::from(OsString::from_vec(text[..end].to_vec()));
    if path.is_absolute() {
        return Some(path);
    }
    let folder = match at {
        Some(descriptor @ 0..) => format!("fd/{descriptor}"),
        _ => "cwd".to_owned(),
    };
    let folder = thread.link(&folder).ok()?;
    Some(PathBuf::from(OsString::from_vec(folder)).join(path))
}

/// The mount that has a path, by the process's own table.
pub(super) fn mount_of(mounts: &[u8], path: &Path) -> Option<RemoteMount> {
    let mounts = String::from_utf8_lossy(mounts);
    let under = mounts.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let (mut before, mut after) = (before.split(' '), after.split(' '));
        let (device, point) = (before.nth(2)?, PathBuf::from(unescaped(before.nth(1)?)));
        let (kind, source) = (after.next()?.to_owned(), unescaped(after.next()?));
        // The minor number of a FUSE file system is the number of its connection.
        let connection = kind.starts_with("fuse").then(|| device.split_once(':')?.1.parse().ok()).flatten();
        path.starts_with(&point).then_some(RemoteMount {
            point,
            kind,
            source,
            connection,
            servers: Vec::new(),
        })
    });
    // Later mounts hide earlier ones.
    under.max_by_key(|mount| mount.point.as_os_str().len())
}

/// The kernel writes a space as `\040`.
fn unescaped(text: &str) -> String {
    text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

/// The processes that answer for a FUSE file system. An older kernel does not say for which: then the only one that
/// answers for any.
fn servers(connection: Option<u32>) -> Vec<Peer> {
    let Some(connection) = connection else { return Vec::new() };
    let end = OtherEnd { link: b"/dev/fuse".to_vec(), unlike: None };
    let all = peers(&[end]).pop().unwrap_or_default();
    let number = |peer: &Peer| {
        let folder = Folder::open(&format!("/proc/{}", peer.pid)).ok()?;
        let information = folder.read(&format!("fdinfo/{}", peer.descriptor)).ok()?;
        let mut lines = information.split(|&byte| byte == b'\n');
        decimal(lines.find_map(|line| line.strip_prefix(b"fuse_connection:"))?.trim_ascii())
    };
    let (of_it, unknown): (Vec<Peer>, Vec<Peer>) = all
        .into_iter()
        .filter(|peer| number(peer).is_none_or(|number| number == u64::from(connection)))
        .partition(|peer| number(peer).is_some());
    match (of_it.is_empty(), unknown.len()) {
        (false, _) => of_it,
        (true, 1) => unknown,
        (true, _) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_of_the_innermost_mount() {
        let mounts = b"20 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            30 20 0:57 / /mnt/my\\040files rw shared:9 - fuse.sshfs host:/home rw\n\
            31 20 0:58 / /mnt rw - nfs4 server:/export rw\n";
        let found = mount_of(mounts, Path::new("/mnt/my files/a")).expect("a mount");
        assert_eq!((&*found.kind, &*found.source, found.connection), ("fuse.sshfs", "host:/home", Some(57)));
        let found = mount_of(mounts, Path::new("/mnt/b")).expect("a mount");
        assert_eq!((&*found.kind, &*found.source, found.connection), ("nfs4", "server:/export", None));
        assert_eq!(mount_of(b"", Path::new("/mnt/b")), None);
    }
}
