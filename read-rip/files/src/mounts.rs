//! Which file systems a process has mounted, and which of them may never answer.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{Dev, makedev};

use super::place::Place;

/// What was read of a mount namespace counts for this long.
const VALID: Duration = Duration::from_secs(10);

/// File systems that ask a server or another program, by the names that the kernel has for them. `fuse` has many, as
/// `fuse.sshfs`.
const REMOTE: [&str; 21] = [
    "9p", "afs", "autofs", "beegfs", "ceph", "cifs", "coda", "fuseblk", "gfs2", "gpfs", "lustre", "ncpfs",
    "nfs", "nfs4", "ocfs2", "orangefs", "pvfs2", "smb3", "smbfs", "vboxsf", "virtiofs",
];

/// The same by their magic numbers. Source: `include/uapi/linux/magic.h` and the file systems' sources. virtiofs has
/// that of FUSE.
const REMOTE_MAGIC: [u64; 17] = [
    0x0000_0187, // autofs
    0x0000_517b, // smbfs
    0x0000_6969, // nfs
    0x00c3_6400, // ceph
    0x0102_1997, // 9p
    0x0116_1970, // gfs2
    0x0bd0_0bd0, // lustre
    0x2003_0528, // orangefs
    0x1983_0326, // beegfs
    0x4750_4653, // gpfs
    0x5346_414f, // afs of OpenAFS
    0x6573_5546, // fuse
    0x6b41_4653, // afs
    0x7375_7245, // coda
    0x7461_636f, // ocfs2
    0xfe53_4d42, // smb2
    0xff53_4d42, // cifs
];

/// Whether a file system with this magic number may never answer.
pub(crate) fn is_remote_magic(magic: u64) -> bool {
    REMOTE_MAGIC.contains(&magic)
}

fn is_remote(name: &[u8]) -> bool {
    name == b"fuse" || name.starts_with(b"fuse.") || REMOTE.iter().any(|remote| remote.as_bytes() == name)
}

#[derive(Debug, Default)]
pub(crate) struct Mounts {
    /// The devices of file systems that answer.
    local: HashSet<Dev>,
    /// Where those are mounted that may not, in the root directory of the process, and their devices. Later mounts
    /// hide earlier ones.
    remote: Vec<(PathBuf, Dev)>,
}

impl Mounts {
    /// Those of a process or a thread, by its directory in `/proc`. Nothing if they cannot be read.
    pub(crate) fn of(process: &Path) -> Arc<Mounts> {
        type Known = HashMap<u64, (Instant, Arc<Mounts>)>;
        static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        let namespace = fs::metadata(process.join("ns/mnt")).ok().map(|found| found.ino());
        if let Some((read, mounts)) = namespace.and_then(|namespace| known.get(&namespace))
            && read.elapsed() < VALID
        {
            return Arc::clone(mounts);
        }
        let text = fs::read(process.join("mountinfo")).unwrap_or_default();
        let mounts = Arc::new(Mounts::parse(&text));
        if let Some(namespace) = namespace {
            known.insert(namespace, (Instant::now(), Arc::clone(&mounts)));
        }
        mounts
    }

    /// Parses `/proc/PID/mountinfo` (proc_pid_mountinfo(5)). Lines that do not parse are left out.
    fn parse(text: &[u8]) -> Mounts {
        let mut mounts = Mounts::default();
        for line in text.split(|&byte| byte == b'\n') {
            let mut fields = line.split(|&byte| byte == b' ');
            let (Some(device), Some(point)) = (fields.nth(2).and_then(device), fields.nth(1)) else {
                continue;
            };
            let Some(name) = fields.skip_while(|field| *field != b"-").nth(1) else { continue };
            if is_remote(name) {
                mounts.remote.push((unescaped(point), device));
            } else {
                mounts.local.insert(device);
            }
        }
        mounts
    }

    /// Whether all of them answer.
    pub(crate) fn all_answer(&self) -> bool {
        self.remote.is_empty()
    }

    /// The device of the file system that may not answer and that a path leads to, as far as its text says that.
    pub(crate) fn remote_of(&self, path: &Path) -> Option<Dev> {
        let under = self.remote.iter().filter(|(point, _)| path.starts_with(point));
        under.max_by_key(|(point, _)| point.as_os_str().len()).map(|&(_, device)| device)
    }

    /// Whether a device has a file system that answers; `None` if it is not among those that are mounted.
    pub(crate) fn answers(&self, device: Dev) -> Option<bool> {
        let is_remote = self.remote.iter().any(|&(_, remote)| remote == device);
        (is_remote || self.local.contains(&device)).then_some(!is_remote)
    }
}

fn device(field: &[u8]) -> Option<Dev> {
    let (major, minor) = std::str::from_utf8(field).ok()?.split_once(':')?;
    Some(makedev(major.parse().ok()?, minor.parse().ok()?))
}

/// The kernel writes spaces, tabs, newlines and backslashes as three octal digits.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, after @ ..] = rest {
        rest = after;
        match after.first_chunk::<3>() {
            Some(digits) if *first == b'\\' && digits.iter().all(|digit| (b'0'..b'8').contains(digit)) => {
                path.push(
                    digits
                        .iter()
                        .fold(0, |value: u8, digit| value.wrapping_mul(8).wrapping_add(digit - b'0')),
                );
                rest = &after[3..];
            }
            _ => path.push(*first),
        }
    }
    PathBuf::from(OsString::from_vec(path))
}

/// Whether a path may lead to a file system that does not answer, and to which device, as far as the path says that.
pub(crate) fn suspect(path: &Path) -> Option<Option<Dev>> {
    let (mounts, within) = match Place::of(path) {
        Place::Below { root, path } => (Mounts::of(root.parent()?), Path::new("/").join(path)),
        Place::Here(path) => (Mounts::of(Path::new("/proc/self")), path.to_owned()),
        // The file may have no path any more.
        Place::Mapped(_) => return Some(None),
    };
    (!mounts.all_answer()).then(|| mounts.remote_of(&within))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw\n\
        30 21 0:23 / /dev/shm rw - tmpfs none rw\n\
        31 21 0:50 / /mnt/with\\040space rw shared:7 master:2 - fuse.sshfs host: rw\n\
        32 21 0:51 / /home rw - nfs4 server:/home rw\n\
        33 21 0:24 / /sys/fs/fuse/connections rw - fusectl none rw\n\
        nonsense\n34 21 0:52";

    #[test]
    fn file_systems_that_ask_others_are_told_from_those_that_answer() {
        let mounts = Mounts::parse(TEXT);
        assert!(!mounts.all_answer());
        let of = |path: &str| mounts.remote_of(Path::new(path));
        assert_eq!(of("/mnt/with space/a"), Some(makedev(0, 50)));
        assert_eq!(of("/home"), Some(makedev(0, 51)));
        assert_eq!(of("/homework/x"), None);
        assert_eq!(of("/usr/lib/libc.so.6"), None);
        assert_eq!(mounts.answers(makedev(254, 0)), Some(true));
        assert_eq!(mounts.answers(makedev(0, 24)), Some(true));
        assert_eq!(mounts.answers(makedev(0, 51)), Some(false));
        assert_eq!(mounts.answers(makedev(0, 99)), None);
    }
}
