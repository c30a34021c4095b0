//! The source files of findings: found, and shown only if they are the files that were compiled.
//!
//! A ring names paths, and anybody can make a ring. So a file is opened only if it is a regular file of bounded size
//! with the ending of a source file, and so is the file that links lead to. The paths in a ring of another user are not
//! opened at all, nor those in a copy of it: then the user says with `--source-dir` where sources are. A path in
//! the user's own ring is opened if the file is the user's own, or if everybody may read it. A file counts as the
//! compiled one if it has the MD5 that debug information gives (clang), or was not changed after the module was built.
//! It formats nothing.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use md5::{Digest, Md5};
use read_rip_case::Reading;
use read_rip_model::findings::Finding;
use read_rip_model::locations::{Locations, SourceProof};
use read_rip_report::Sources;

use crate::cli::SourceArgs;

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
    reading: &Reading,
    args: &SourceArgs,
) -> Sources {
    let mut sources = Sources::default();
    let search = Search { dirs: &args.source_dir, trusts_paths: is_own(reading) };
    let mut read: HashMap<(String, SourceProof), Option<Arc<str>>> = HashMap::new();
    for &id in found.iter().flat_map(|finding| &finding.mentions.locations) {
        let location = locations.get(id);
        let Some((file, _)) = location.users_source() else { continue };
        let Some(proof) = locations.source_proof(location) else { continue };
        if read.len() >= FILES_MAX {
            break;
        }
        let key = (file.to_owned(), proof);
        let text = read.entry(key).or_insert_with(|| search.read(Path::new(file), proof));
        if let Some(text) = text {
            sources.insert(id, text.clone());
        }
    }
    sources
}

/// Whether the user who runs this program made a ring, or runs a process.
fn is_own(reading: &Reading) -> bool {
    let own = nix::unistd::geteuid().as_raw();
    // Another user's copy may say anything. A copy of the user's own may be of another user's ring.
    fs::metadata(&reading.path).is_ok_and(|file| file.uid() == own)
        && reading.snapshot.header.as_ref().is_none_or(|header| header.owner() == own)
}

struct Search<'a> {
    dirs: &'a [PathBuf],
    /// Whether the paths of the ring may be opened as they are.
    trusts_paths: bool,
}

impl Search<'_> {
    fn read(&self, file: &Path, proof: SourceProof) -> Option<Arc<str>> {
        if !has_ending(file) {
            return None;
        }
        let named = self.below_dirs(file).into_iter().find_map(|path| read(&path, proof, |_| true));
        named.or_else(|| self.trusts_paths.then(|| read(file, proof, may_be_shown)).flatten())
    }

    /// Below each named directory, the path and its ends, the longest first. A build elsewhere had other directories.
    fn below_dirs(&self, file: &Path) -> Vec<PathBuf> {
        let parts: Vec<_> =
            file.components().filter(|part| matches!(part, std::path::Component::Normal(_))).collect();
        let ends = (0..parts.len()).map(|from| parts[from..].iter().collect::<PathBuf>());
        let ends: Vec<PathBuf> = ends.collect();
        self.dirs.iter().flat_map(|dir| ends.iter().map(move |end| dir.join(end))).collect()
    }
}

/// Whether a file has the ending of a source file.
fn has_ending(file: &Path) -> bool {
    file.extension().and_then(|ending| ending.to_str()).is_some_and(|ending| ENDINGS.contains(&ending))
}

/// Whether a file that a ring names, and not the user, may be shown.
fn may_be_shown(file: &Metadata) -> bool {
    file.uid() == nix::unistd::geteuid().as_raw() || file.mode() & libc::S_IROTH != 0
}

/// The text of a file, if it is the one that was compiled, and may be shown. A relative path is relative to the root of
/// the project: the directory in which people work.
fn read(path: &Path, proof: SourceProof, may_be_shown: impl Fn(&Metadata) -> bool) -> Option<Arc<str>> {
    let is_source = |file: &Metadata| file.is_file() && file.len() <= LEN_MAX_BYTES && may_be_shown(file);
    // What links lead to is looked at before it is opened: to open a device can have effects.
    let path = path.canonicalize().ok().filter(|path| has_ending(path))?;
    path.symlink_metadata().ok().filter(is_source)?;
    // Without O_NONBLOCK, opening a FIFO would wait for a writer.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW;
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let metadata = file.metadata().ok().filter(is_source)?;
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
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    const ANY: SourceProof = SourceProof::NotNewerThan(u64::MAX);

    #[test]
    fn a_file_that_is_not_the_compiled_one_is_not_shown() {
        let directory = tempfile::tempdir().unwrap();
        let read = |path: &Path, proof| read(path, proof, |_| true);
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
    fn a_file_that_a_ring_names_is_looked_at_before_it_is_shown() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name);
        let trusting = Search { dirs: &[], trusts_paths: true };
        let shown = |name: &str| trusting.read(&file(name), ANY).is_some();
        fs::write(file("a.rs"), "fn a() {}\n").unwrap();
        fs::write(file("secret"), "secret\n").unwrap();
        symlink(file("a.rs"), file("link.rs")).unwrap();
        symlink(file("secret"), file("planted.rs")).unwrap();
        symlink("/dev/zero", file("endless.rs")).unwrap();
        assert!(shown("a.rs") && shown("link.rs"));
        assert!(!shown("planted.rs"), "no source file");
        assert!(!shown("endless.rs"), "a device");
        fs::set_permissions(file("a.rs"), Permissions::from_mode(0o600)).unwrap();
        assert!(shown("a.rs"), "it is the user's own");
        if nix::unistd::geteuid().is_root() {
            const NOBODY: u32 = 65534;
            chown(file("a.rs"), Some(NOBODY), None).unwrap();
            assert!(!shown("a.rs"), "another user hides it");
            fs::set_permissions(file("a.rs"), Permissions::from_mode(0o644)).unwrap();
            assert!(shown("a.rs"));
        }
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
