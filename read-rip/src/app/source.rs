//! The source files of findings: found, and shown only if they are the files that were compiled.
//!
//! A ring names paths, and anybody can make a ring. So a file is opened only if it is a regular file of bounded size
//! with the ending of a source file. The paths in a ring of another user are not opened at all: then the user says with
//! `--source-dir` where sources are. A file counts as the compiled one if it has the MD5 that debug information gives
//! (clang), or was not changed after the module was built. It formats nothing.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use md5::{Digest, Md5};

use crate::cli::SourceArgs;
use crate::findings::Finding;
use crate::locations::{Locations, SourceProof};
use crate::report::Sources;

/// Larger files are not shown, bytes.
const LEN_MAX_BYTES: u64 = 4 << 20;
/// The endings of source files of languages that librip records.
const ENDINGS: [&str; 12] = ["rs", "c", "h", "cc", "cpp", "cxx", "c++", "hh", "hpp", "hxx", "inc", "ipp"];
/// No more files are looked for: findings name few.
const FILES_MAX: usize = 1000;

/// Reads the source files of the locations that findings mention.
pub(super) fn sources(
    found: &[Finding],
    locations: &Locations<'_>,
    ring: &Path,
    args: &SourceArgs,
) -> Sources {
    let mut sources = Sources::default();
    let search = Search { dirs: &args.source_dir, trusts_paths: is_own(ring) };
    let mut read: HashMap<(String, SourceProof), Option<Arc<str>>> = HashMap::new();
    for &id in found.iter().flat_map(|finding| &finding.mentions.locations) {
        let location = locations.get(id);
        let Some((file, _)) = &location.source else { continue };
        let Some(proof) = locations.source_proof(location) else { continue };
        if read.len() >= FILES_MAX {
            break;
        }
        let key = (file.to_string(), proof);
        let text = read.entry(key).or_insert_with(|| search.read(Path::new(&**file), proof));
        if let Some(text) = text {
            sources.insert(id, text.clone());
        }
    }
    sources
}

/// Whether the user who runs this program made a ring.
fn is_own(ring: &Path) -> bool {
    fs::metadata(ring).is_ok_and(|file| file.uid() == nix::unistd::geteuid().as_raw())
}

struct Search<'a> {
    dirs: &'a [PathBuf],
    /// Whether the paths of the ring may be opened as they are.
    trusts_paths: bool,
}

impl Search<'_> {
    fn read(&self, file: &Path, proof: SourceProof) -> Option<Arc<str>> {
        let ending = file.extension()?.to_str()?;
        if !ENDINGS.contains(&ending) {
            return None;
        }
        self.candidates(file).iter().find_map(|path| read(path, proof))
    }

    /// Below each named directory, the path and its ends, the longest first. A build elsewhere had other directories.
    fn candidates(&self, file: &Path) -> Vec<PathBuf> {
        let parts: Vec<_> =
            file.components().filter(|part| matches!(part, std::path::Component::Normal(_))).collect();
        let ends = (0..parts.len()).map(|from| parts[from..].iter().collect::<PathBuf>());
        let ends: Vec<PathBuf> = ends.collect();
        let mut candidates: Vec<PathBuf> =
            self.dirs.iter().flat_map(|dir| ends.iter().map(move |end| dir.join(end))).collect();
        if self.trusts_paths {
            // A relative path is relative to the root of the project: the directory in which people work.
            candidates.push(file.to_owned());
        }
        candidates
    }
}

/// The text of a file, if it is the one that was compiled.
fn read(path: &Path, proof: SourceProof) -> Option<Arc<str>> {
    // Without O_NONBLOCK, opening a FIFO would wait for a writer.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > LEN_MAX_BYTES {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(LEN_MAX_BYTES).read_to_end(&mut bytes).ok()?;
    let is_compiled = match proof {
        SourceProof::Md5(md5) => Md5::digest(&bytes).as_slice() == md5,
        SourceProof::NotNewerThan(built_ns) => {
            let changed_ns = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
            changed_ns <= i128::from(built_ns)
        }
    };
    if !is_compiled {
        return None;
    }
    String::from_utf8(bytes).ok().map(Arc::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: SourceProof = SourceProof::NotNewerThan(u64::MAX);

    #[test]
    fn a_file_that_is_not_the_compiled_one_is_not_shown() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.c");
        fs::write(&path, "int a;\n").unwrap();
        assert_eq!(read(&path, ANY).as_deref(), Some("int a;\n"));
        assert_eq!(read(&path, SourceProof::NotNewerThan(1)), None, "it was changed later");
        let md5: [u8; 16] = Md5::digest(b"int a;\n").into();
        assert_eq!(read(&path, SourceProof::Md5(md5)).as_deref(), Some("int a;\n"));
        assert_eq!(read(&path, SourceProof::Md5([0; 16])), None);
        assert_eq!(read(directory.path(), ANY), None, "a directory");
    }

    #[test]
    fn sources_are_found_below_a_named_directory_and_nowhere_else() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("src")).unwrap();
        fs::write(directory.path().join("src/a.rs"), "fn a() {}\n").unwrap();
        fs::write(directory.path().join("src/secret"), "secret\n").unwrap();
        let dirs = [directory.path().to_owned()];
        let named = Search { dirs: &dirs, trusts_paths: false };
        assert!(named.read(Path::new("/build/1234/src/a.rs"), ANY).is_some());
        assert!(named.read(Path::new("/build/../../src/a.rs"), ANY).is_some());
        assert!(named.read(Path::new("src/secret"), ANY).is_none(), "no source file");
        let absolute = directory.path().join("src/a.rs");
        let unnamed = |trusts_paths| Search { dirs: &[], trusts_paths };
        assert!(unnamed(true).read(&absolute, ANY).is_some());
        assert!(unnamed(false).read(&absolute, ANY).is_none(), "another user's ring names it");
    }
}
