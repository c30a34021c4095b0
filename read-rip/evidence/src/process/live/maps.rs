//! `/proc/PID/maps`, to values.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::text::{decimal, hexadecimal};
use crate::target::Mapping;

/// Parses `/proc/PID/maps`. Lines that do not parse are left out.
pub(super) fn mappings(text: &[u8]) -> Vec<Mapping> {
    text.split(|&byte| byte == b'\n').filter_map(mapping).collect()
}

fn mapping(line: &[u8]) -> Option<Mapping> {
    // Range, rights, offset, device and inode, each followed by one space; then spaces and the path.
    let mut fields = line.splitn(6, |&byte| byte == b' ');
    let mut range = fields.next()?.splitn(2, |&byte| byte == b'-');
    let (begin, end) = (hexadecimal(range.next()?)?, hexadecimal(range.next()?)?);
    let &[_, write, execute, share] = fields.next()? else { return None };
    let offset = hexadecimal(fields.next()?)?;
    let mut device = fields.next()?.splitn(2, |&byte| byte == b':');
    let device = nix::sys::stat::makedev(hexadecimal(device.next()?)?, hexadecimal(device.next()?)?);
    let inode = decimal(fields.next()?)?;
    let path = fields.next().unwrap_or_default().trim_ascii_start();
    let is_file = inode != 0;
    let (path, is_deleted) = match path.strip_suffix(b" (deleted)") {
        Some(path) if is_file => (path, true),
        _ => (path, false),
    };
    Some(Mapping {
        begin,
        end,
        is_writable: write == b'w',
        is_executable: execute == b'x',
        is_shared: share == b's',
        offset,
        file: is_file.then_some((device, inode)),
        path: (!path.is_empty()).then(|| PathBuf::from(OsString::from_vec(unescaped(path)))),
        is_deleted,
    })
}

/// The kernel writes a newline in a path as `\012`, and nothing else in another way.
fn unescaped(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&first, after)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(b"\\012") {
            out.push(b'\n');
            rest = after;
        } else {
            out.push(first);
            rest = after;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_special_ranges_are_told_apart() {
        let text = b"55d0c0a00000-55d0c0a02000 r--p 00000000 fe:01 1234                       /usr/bin/a b\n\
            55d0c0a02000-55d0c0a06000 r-xp 00002000 fe:01 1234                       /usr/bin/a b\n\
            7f0000000000-7f0000001000 rw-s 00000000 00:01 99                         /dev/zero (deleted)\n\
            7f0000001000-7f0000002000 rw-p 00000000 00:00 0 \n\
            7ffd3c5e2000-7ffd3c5e4000 r-xp 00000000 00:00 0                          [vdso]\n\
            7f0000003000-7f0000004000 r--p 00000000 08:02 5                          /tmp/new\\012line\n\
            nonsense\n\
            7f0000005000-7f0000006000 r--p";
        let found = mappings(text);
        assert_eq!(found.len(), 6);
        let program = &found[1];
        assert_eq!(
            (program.begin, program.end, program.offset),
            (0x55d0_c0a0_2000, 0x55d0_c0a0_6000, 0x2000)
        );
        assert_eq!(program.path.as_deref(), Some("/usr/bin/a b".as_ref()));
        assert_eq!(program.file, Some((nix::sys::stat::makedev(0xfe, 1), 1234)));
        assert!(program.is_executable && !program.is_writable && !program.is_shared && !program.is_deleted);
        assert!(found[2].is_deleted && found[2].is_shared && found[2].is_writable);
        assert_eq!(found[2].path.as_deref(), Some("/dev/zero".as_ref()));
        assert_eq!((&found[3].path, found[3].file), (&None, None));
        assert_eq!((found[4].path.as_deref(), found[4].file), (Some("[vdso]".as_ref()), None));
        assert_eq!(found[5].path.as_deref(), Some("/tmp/new\nline".as_ref()));
    }
}
