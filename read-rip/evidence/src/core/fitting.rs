//! Which files were mapped, of modules without a build id: those that have the bytes which the core has.
//!
//! A core has at least the first page of each program and library, with the lengths of its segments, and often the code
//! too. All of that is compared. A file that was changed after the core was made is none of them.

use std::io::Read;

use read_rip_files::{Content, FileFacts, Module};
use read_rip_ring::Source;

use super::header::Segment;
use super::memory::read_dumped;
use crate::target::Mapping;

/// The part of a file that a core has of each: the kernel keeps so much.
const HEADER_BYTES: u64 = 4096;
/// No more of a mapping is compared.
const COMPARED_MAX_BYTES: u64 = 64 << 20;
/// So much at once.
const BLOCK_BYTES: u64 = 1 << 16;

/// Says of modules without a build id which files they are: those at their paths, if these fit.
pub(super) fn identify(modules: &mut [Module], mappings: &[Mapping], source: &Source, segments: &[Segment]) {
    let Ok(made) = FileFacts::of(source.path()) else { return };
    let dumped = |address: u64, into: &mut [u8]| read_dumped(source, segments, address, into);
    for module in modules.iter_mut().filter(|module| module.build_id.is_empty()) {
        let is_own = |mapping: &&Mapping| {
            mapping.path.as_deref() == Some(&*module.path) && module.relative(mapping.begin).is_some()
        };
        let own: Vec<&Mapping> = mappings.iter().filter(is_own).collect();
        let Ok(file) = Content::open(&module.path) else { continue };
        if file.modified_ns() <= made.modified_ns && fits(&own, &file, dumped) {
            (module.file_len_bytes, module.modified_ns) = (file.len_bytes(), file.modified_ns());
        }
    }
}

/// Whether a file has what was mapped of it, as far as that was dumped.
fn fits(mappings: &[&Mapping], file: &Content, dumped: impl Fn(u64, &mut [u8]) -> usize) -> bool {
    let mut compared = 0;
    // The loader and the program write to the others.
    let is_as_in_file =
        |mapping: &&&Mapping| !mapping.is_writable && (mapping.is_executable || mapping.offset == 0);
    for mapping in mappings.iter().filter(is_as_in_file) {
        let len = if mapping.is_executable { COMPARED_MAX_BYTES } else { HEADER_BYTES };
        let len = len.min(mapping.end - mapping.begin);
        let mut at = 0;
        while at < len {
            let mut block = vec![0; BLOCK_BYTES.min(len - at) as usize];
            let got = dumped(mapping.begin + at, &mut block);
            let mut in_file = Vec::with_capacity(got);
            let offset = mapping.offset.saturating_add(at);
            // What is after the end of the file is 0 in memory.
            if file.from(offset).take(got as u64).read_to_end(&mut in_file).is_err() {
                return false;
            }
            in_file.resize(got, 0);
            if in_file != block[..got] {
                return false;
            }
            compared += got as u64;
            if got < block.len() {
                break;
            }
            at += got as u64;
        }
    }
    compared >= HEADER_BYTES
}
