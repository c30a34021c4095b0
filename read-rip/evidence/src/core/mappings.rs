//! The ranges of the memory of a core: its segments, and the files that were mapped there.

use std::path::PathBuf;

use super::files::File;
use super::header::Segment;
use crate::target::Mapping;

/// The device of files, whose real device a core does not tell.
const DEVICE: u64 = 0;

/// The ranges by address. `begins_elf` says whether an ELF file begins at an address.
pub(super) fn mappings(
    segments: &[Segment],
    files: &[File],
    vdso: Option<u64>,
    begins_elf: impl Fn(u64) -> bool,
) -> Vec<Mapping> {
    let mut mappings: Vec<Mapping> = segments
        .iter()
        .map(|segment| {
            let mut mapping = plain(segment);
            let after = files.partition_point(|file| file.begin <= segment.begin);
            let file = after.checked_sub(1).map(|last| &files[last]).filter(|file| segment.begin < file.end);
            if let Some(file) = file {
                mapping.offset = file.offset.wrapping_add(segment.begin - file.begin);
                mapping.file = Some((DEVICE, file.number));
                mapping.path = Some(file.path.clone());
                mapping.is_deleted = file.is_deleted;
            } else if Some(segment.begin) == vdso {
                mapping.path = Some(PathBuf::from("[vdso]"));
            }
            mapping
        })
        .collect();
    if files.is_empty() {
        guess_files(&mut mappings, begins_elf);
    }
    mappings
}

/// Where the files are not known: an ELF header begins one, and it goes on as long as there is no gap.
fn guess_files(mappings: &mut [Mapping], begins_elf: impl Fn(u64) -> bool) {
    let (mut number, mut end) = (0, None);
    let mut begin = 0;
    for mapping in mappings.iter_mut().filter(|mapping| mapping.path.is_none()) {
        if begins_elf(mapping.begin) {
            number += 1;
            begin = mapping.begin;
        } else if end != Some(mapping.begin) {
            end = None;
            continue;
        }
        end = Some(mapping.end);
        mapping.offset = mapping.begin - begin;
        mapping.file = Some((DEVICE, number));
        mapping.path = Some(PathBuf::from(format!("unknown file at {begin:#x}")));
    }
}

fn plain(segment: &Segment) -> Mapping {
    Mapping {
        begin: segment.begin,
        end: segment.end,
        is_writable: segment.is_writable,
        is_executable: segment.is_executable,
        // A core does not say it.
        is_shared: false,
        ..Mapping::default()
    }
}
