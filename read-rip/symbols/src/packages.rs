//! The packages that a program of Rust is made of, by the paths that panics would print: `dashmap`, of
//! `.../registry/src/index.crates.io-1949cf8c6b5b557f/dashmap-6.1.0/src/lib.rs`.
//!
//! A program without debug information has them among its constants, because a panic says where it happened. So a
//! function's crate is known to be one of a registry. A package that cannot panic is not known.

use super::elf::Image;
use super::whose::without_version;

/// What stands before the index of a registry.
const REGISTRY: &[u8] = b"/registry/src/";
/// Where constants are.
const CONSTANTS: &str = ".rodata";
/// Longer parts of paths are none.
const PART_MAX_BYTES: usize = 128;

/// The crates of the packages, sorted.
pub(super) fn of(image: &Image) -> Vec<String> {
    image.content_named(CONSTANTS).ok().flatten().map(|bytes| among(&bytes)).unwrap_or_default()
}

fn among(bytes: &[u8]) -> Vec<String> {
    let found = memchr::memmem::find_iter(bytes, REGISTRY);
    let mut crates: Vec<String> = found.filter_map(|at| crate_at(&bytes[at + REGISTRY.len()..])).collect();
    crates.sort_unstable();
    crates.dedup();
    crates
}

/// The crate of the package in a path, after what stands before the index.
fn crate_at(path: &[u8]) -> Option<String> {
    let (_index, path) = part(path)?;
    let (package, _) = part(path)?;
    let name = without_version(package);
    (name != package).then(|| name.replace('-', "_"))
}

/// The first part of a path, and what follows.
fn part(path: &[u8]) -> Option<(&str, &[u8])> {
    let end = path.iter().take(PART_MAX_BYTES).position(|&byte| byte == b'/')?;
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'+');
    let part = &path[..end];
    let text = std::str::from_utf8(part).ok().filter(|_| part.iter().all(is_name))?;
    Some((text, &path[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paths_of_panics_name_the_packages() {
        let bytes = b"main.rs/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/dashmap-6.1.0/src/lib.rsindex \
                      out of bounds/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/crossbeam-epoch-0.9.18/\
                      src/a.rs/registry/src/x/no-version/src/registry/src/\0\xff/registry/src/index/flume-0.11.1";
        assert_eq!(among(bytes), ["crossbeam_epoch", "dashmap"]);
    }
}
