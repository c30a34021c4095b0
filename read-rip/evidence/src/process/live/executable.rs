//! The program of a process: its name, the processor that it is for, where it began; and the files of its modules.

use std::path::PathBuf;

use object::LittleEndian;
use object::elf::ProgramHeader32;
use read_rip_files::FileFacts;

use super::folder::Folder;
use crate::target::{Architecture, Mapping};

/// The processor that is assumed if it is not known.
const OWN: Architecture = match Architecture::own() {
    Some(own) => own,
    None => Architecture::X86_64,
};

#[derive(Clone, Debug)]
pub(super) struct Executable {
    /// The name of its file; `None` if this reader may not see it.
    pub(super) name: Option<String>,
    pub(super) architecture: Architecture,
    /// If it is for another processor than this reader: which one.
    pub(super) other_architecture: Option<String>,
}

impl Executable {
    pub(super) fn of(thread: &Folder) -> Executable {
        let path = thread.link("exe").ok();
        let name = path.as_deref().and_then(|path| {
            let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
            let name = path.rsplit(|&byte| byte == b'/').next()?;
            (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
        });
        // The file itself says it too, and may be on a file system that does not answer.
        let is_narrow = thread.read("auxv").is_ok_and(|auxv| is_narrow(&auxv));
        Executable { name, architecture: OWN, other_architecture: is_narrow.then(|| "32-bit".to_owned()) }
    }
}

/// Whether `/proc/PID/auxv` is that of a program of 32 bits: its words have them, and its entries for segments the
/// length of those in ELF32. The kernel runs programs of 64 bits for its own processor only.
fn is_narrow(auxv: &[u8]) -> bool {
    const SEGMENT_BYTES: u32 = size_of::<ProgramHeader32<LittleEndian>>() as u32;
    let (words, _) = auxv.as_chunks::<4>();
    let (pairs, _) = words.as_chunks::<2>();
    pairs
        .iter()
        .map(|pair| pair.map(u32::from_le_bytes))
        .any(|[key, value]| u64::from(key) == libc::AT_PHENT && value == SEGMENT_BYTES)
}

/// The root directory of a process, as `/proc` has it. Once the first thread has ended, another thread has it.
pub fn root_of(pid: u32) -> PathBuf {
    let of_process = PathBuf::from(format!("/proc/{pid}/root"));
    if of_process.read_link().is_ok() {
        return of_process;
    }
    let threads = Folder::open(&format!("/proc/{pid}/task")).and_then(|tasks| tasks.numbers());
    let roots = threads.unwrap_or_default().into_iter().map(|tid| format!("/proc/{pid}/task/{tid}/root"));
    roots.map(PathBuf::from).find(|root| root.read_link().is_ok()).unwrap_or(of_process)
}

/// The address at which the program began, from `/proc/PID/auxv`.
pub(super) fn entry(auxv: &[u8]) -> Option<u64> {
    let (words, _) = auxv.as_chunks::<8>();
    let (pairs, _) = words.as_chunks::<2>();
    let pair = pairs.iter().find(|[key, _]| u64::from_le_bytes(*key) == libc::AT_ENTRY)?;
    Some(u64::from_le_bytes(pair[1]))
}

/// The length and the modification time (ns since 1970) of a file that a process has mapped; `None` if its path leads
/// elsewhere now.
pub(super) fn file_of(pid: u32, mapping: &Mapping) -> Option<(u64, u64)> {
    let (_, inode) = mapping.file?;
    let within = mapping.path.as_ref()?.strip_prefix("/").ok()?;
    let found = FileFacts::of(&root_of(pid).join(within)).ok()?;
    // FOLKLORE: on btrfs and overlayfs, `stat` and `/proc/PID/maps` have different devices for one file.
    (found.inode == inode).then_some((found.len_bytes, found.modified_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_32_bits_is_told_by_the_words_that_the_kernel_gave_it() {
        let wide = std::fs::read("/proc/self/auxv").unwrap();
        assert!(!is_narrow(&wide));
        let narrow =
            [libc::AT_PAGESZ as u32, 4096, libc::AT_PHENT as u32, 32, libc::AT_PHNUM as u32, 9, 0, 0];
        assert!(is_narrow(&narrow.map(u32::to_le_bytes).concat()));
        // The lower half of a pointer may be anything, but a key has an upper half that is 0.
        assert!(!is_narrow(&[]));
    }
}
