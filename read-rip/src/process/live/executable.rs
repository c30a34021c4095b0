//! The program of a process: its name, the processor that it is for, where it began; and the files of its modules.

use std::os::unix::ffi::OsStrExt;

use object::LittleEndian;
use object::elf::{ELFCLASS64, ELFMAG, EM_386, EM_AARCH64, EM_ARM, EM_RISCV, EM_X86_64, FileHeader32};
use object::pod::from_bytes;
use rustix::fs::{AtFlags, statat};

use super::folder::Folder;
use crate::target::{Architecture, Mapping};

/// The processor that is assumed if it is not known.
const OWN: Architecture = match Architecture::own() {
    Some(own) => own,
    None => Architecture::X86_64,
};

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Executable {
    /// The name of its file; `None` if this reader may not see it.
    pub(super) name: Option<String>,
    /// The processor.
    pub(super) architecture: Architecture,
    /// If it is for another processor than this reader: which one.
    pub(super) other_architecture: Option<String>,
}

impl Executable {
    /// The program of a thread.
    pub(super) fn of(thread: &Folder) -> Executable {
        let path = thread.link("exe").ok();
        let name = path.as_deref().and_then(|path| {
            let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
            let name = path.rsplit(|&byte| byte == b'/').next()?;
            (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
        });
        let mut header = [0; 64];
        // The file is the process's own, and regular: the kernel runs nothing else.
        let found = thread.read_into("exe", &mut header).ok().map(architecture);
        let own = Architecture::own();
        let (architecture, other_architecture) = match found {
            Some(Ok(found)) if Some(found) == own => (found, None),
            Some(Ok(found)) => (found, Some(format!("{found:?}"))),
            Some(Err(other)) => (OWN, Some(other)),
            None => (OWN, None),
        };
        Executable { name, architecture, other_architecture }
    }
}

/// The processor that an ELF file is for; its name, if this program does not understand it.
fn architecture(header: &[u8]) -> Result<Architecture, String> {
    // The fields that are read here are in one place in files of 32 and of 64 bits.
    let Ok((header, _)) = from_bytes::<FileHeader32<LittleEndian>>(header) else {
        return Err("unknown".to_owned());
    };
    let is_wide = header.e_ident.class == ELFCLASS64;
    match header.e_machine.get(LittleEndian) {
        _ if header.e_ident.magic != ELFMAG => Err("unknown".to_owned()),
        EM_X86_64 if is_wide => Ok(Architecture::X86_64),
        EM_AARCH64 if is_wide => Ok(Architecture::Aarch64),
        EM_X86_64 => Err("x32".to_owned()),
        EM_386 => Err("32-bit x86".to_owned()),
        EM_ARM => Err("32-bit ARM".to_owned()),
        EM_RISCV => Err("RISC-V".to_owned()),
        other => Err(format!("machine {other}")),
    }
}

/// The address at which the program began, from `/proc/PID/auxv`.
pub(super) fn entry(auxv: &[u8]) -> Option<u64> {
    let (words, _) = auxv.as_chunks::<8>();
    let (pairs, _) = words.as_chunks::<2>();
    let pair = pairs.iter().find(|[key, _]| u64::from_le_bytes(*key) == libc::AT_ENTRY)?;
    Some(u64::from_le_bytes(pair[1]))
}

/// The length and the modification time (ns since 1970) of a mapped file; `None` if its path leads elsewhere now.
pub(super) fn file_of(thread: &Folder, mapping: &Mapping) -> Option<(u64, u64)> {
    let (_, inode) = mapping.file?;
    let path = mapping.path.as_ref()?.as_os_str().as_bytes();
    let path = [b"root", path].concat();
    let found = statat(thread, path.as_slice(), AtFlags::NO_AUTOMOUNT).ok()?;
    // FOLKLORE: on btrfs and overlayfs, `stat` and `/proc/PID/maps` have different devices for one file.
    let modified_ns =
        (found.st_mtime as u64).wrapping_mul(1_000_000_000).wrapping_add(found.st_mtime_nsec as u64);
    (found.st_ino == inode).then_some((found.st_size as u64, modified_ns))
}
