//! Finds a module's file and, if that has no DWARF, its separate debug file. Files of another build are refused.
//!
//! It compares identities and reads no debug information.
//!
//! | wanted | candidates, in this order |
//! |---|---|
//! | the program | `-e` alone; or the recorded path, that path without " (deleted)", the live process's `exe` |
//! | a library | the recorded path |
//! | DWARF by file | that file itself |
//! | DWARF by build id | `.build-id/ab/cdef.debug`, then `<path>.debug`, in the debug directories |
//! | DWARF by debug link | the link's name beside the file, in `.debug/`, in the debug directories |
//!
//! The algorithm is that of gdb ("Debugging Information in Separate Files" in its manual).

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use read_rip_files::Module;

use super::elf::Image;
use super::path::{find, with_suffix};
use super::problem::Problem;

/// How files are found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// The file to use for the program itself, instead of the recorded path. It may be relative.
    pub executable: Option<PathBuf>,
    /// Directories with separate debug files, in the layout of `/usr/lib/debug`.
    pub debug_dirs: Vec<PathBuf>,
    /// The path of the recorded process's root directory: `/proc/PID/root`.
    pub root: Option<PathBuf>,
    /// The program of a living process as the kernel has it, `/proc/PID/exe`. It is used if the recorded path was
    /// removed or replaced.
    pub live_executable: Option<PathBuf>,
}

impl Default for Options {
    /// Recorded paths, and debug files where distributions install them.
    fn default() -> Self {
        Self {
            executable: None,
            debug_dirs: vec![PathBuf::from("/usr/lib/debug")],
            root: None,
            live_executable: None,
        }
    }
}

pub(super) struct Files {
    /// The program or library itself.
    pub(super) own: Option<Image>,
    /// Its separate debug file, if one is needed and found.
    pub(super) debug: Option<Image>,
    /// The files that were refused, and why.
    pub(super) problems: Vec<(PathBuf, Problem)>,
}

/// A search for the files of one module.
pub(super) struct Search<'a> {
    pub(super) module: &'a Module,
    pub(super) options: &'a Options,
}

/// The recorder keeps this much of a build id.
const RECORDED_BUILD_ID_MAX_BYTES: usize = 32;

impl Search<'_> {
    pub(super) fn files(&self) -> Files {
        let mut problems = Vec::new();
        let own = self.own().map_err(|refused| problems.push(refused)).ok();
        if own.as_ref().is_some_and(Image::has_debug_info) {
            return Files { own, debug: None, problems };
        }
        let (debug, refused) = self.debug(own.as_ref());
        match &debug {
            // With a debug file, problems with the module's own file do not matter, unless the user named that file.
            Some(_) if self.given().is_none() => problems.clear(),
            Some(_) => {}
            None => problems.extend(refused),
        }
        Files { own, debug, problems }
    }

    /// The file that the user named for this module.
    fn given(&self) -> Option<&Path> {
        self.options.executable.as_deref().filter(|_| self.module.is_executable)
    }

    /// The program or library itself.
    pub(super) fn own(&self) -> Result<Image, (PathBuf, Problem)> {
        if let Some(given) = self.given() {
            return self.open_recorded(given, true).map_err(|problem| (given.to_owned(), problem));
        }
        let root = self.options.root.as_deref();
        let recorded = &self.module.path;
        let mut candidates = vec![find(root, recorded)];
        // FOLKLORE: the kernel adds this suffix to the target of /proc/self/exe once the file was replaced. Package
        // managers and linkers replace files while a program runs. The recorder keeps the path that the kernel
        // gives. If the file without the suffix has the recorded build id, it is the right one.
        if let Some(path) = recorded.as_os_str().as_bytes().strip_suffix(b" (deleted)") {
            candidates.push(find(root, Path::new(OsStr::from_bytes(path))));
        }
        if let Some(live) = self.options.live_executable.as_ref().filter(|_| self.module.is_executable) {
            candidates.push(Ok(live.clone()));
        }
        let mut first = None;
        for candidate in candidates {
            let image = candidate.and_then(|path| self.open_recorded(&path, false));
            match image {
                Ok(image) => return Ok(image),
                Err(problem) => first = first.or(Some(problem)),
            }
        }
        Err((recorded.clone(), first.unwrap_or(Problem::Missing)))
    }

    /// Opens a file if it is the recorded one.
    fn open_recorded(&self, path: &Path, is_given: bool) -> Result<Image, Problem> {
        let image = Image::open(path)?;
        let Module { build_id, file_len_bytes, modified_ns, .. } = self.module;
        if !build_id.is_empty() {
            same_build_id(build_id, &image.build_id)?;
        } else if is_given {
            // The user says that it is the recorded file, and a copy may have another modification time.
        } else if *file_len_bytes == 0 && *modified_ns == 0 {
            return Err(Problem::Unverifiable);
        } else if *file_len_bytes != image.len_bytes || *modified_ns != image.modified_ns {
            return Err(Problem::FileChanged {
                expected_len_bytes: *file_len_bytes,
                found_len_bytes: image.len_bytes,
            });
        }
        Ok(image)
    }

    /// The separate debug file, or the file that was refused last.
    fn debug(&self, own: Option<&Image>) -> (Option<Image>, Option<(PathBuf, Problem)>) {
        let build_id =
            own.map(|own| &own.build_id).filter(|id| !id.is_empty()).unwrap_or(&self.module.build_id);
        let link = own.and_then(Image::debug_link);
        let by_build_id = self.debug_paths_by_build_id(build_id).into_iter().map(|path| (path, None));
        let by_link = link.iter().flat_map(|(name, checksum)| {
            self.debug_paths_by_link(own, name).into_iter().map(|path| (path, Some(*checksum)))
        });
        let mut refused = None;
        for (path, checksum) in by_build_id.chain(by_link) {
            match open_debug(&path, build_id, checksum) {
                Ok(image) => return (Some(image), None),
                Err(Problem::Missing) => {}
                Err(problem) => refused = Some((path, problem)),
            }
        }
        (None, refused)
    }

    fn debug_paths_by_build_id(&self, build_id: &[u8]) -> Vec<PathBuf> {
        if build_id.is_empty() {
            return Vec::new();
        }
        let mut paths = self.in_debug_dirs(&build_id_path(build_id));
        if let Ok(path) = self.module.path.strip_prefix("/") {
            paths.extend(self.in_debug_dirs(&with_suffix(path, ".debug")));
        }
        paths
    }

    fn debug_paths_by_link(&self, own: Option<&Image>, name: &[u8]) -> Vec<PathBuf> {
        let name = Path::new(OsStr::from_bytes(name));
        // A debug link is a file name without a directory.
        if name.file_name() != Some(name.as_os_str()) {
            return Vec::new();
        }
        let mut paths = Vec::new();
        if let Some(directory) = own.and_then(|own| own.path.parent()) {
            paths.extend([directory.join(name), directory.join(".debug").join(name)]);
            if let Ok(below) = std::path::absolute(directory).unwrap_or_default().strip_prefix("/") {
                paths.extend(self.in_debug_dirs(&below.join(name)));
            }
        }
        let recorded = self.module.path.parent().and_then(|directory| directory.strip_prefix("/").ok());
        if let Some(below) = recorded {
            paths.extend(self.in_debug_dirs(&below.join(name)));
        }
        paths
    }

    /// A path below each debug directory, both in the root and outside of it.
    fn in_debug_dirs(&self, below: &Path) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for directory in &self.options.debug_dirs {
            let path = directory.join(below);
            if let Some(root) = &self.options.root {
                paths.extend(find(Some(root), &path));
            }
            paths.push(path);
        }
        paths
    }

    /// The supplementary file, written by `dwz`, to which a file refers.
    pub(super) fn supplementary(&self, image: &Image) -> Option<Image> {
        let (path, build_id) = image.supplementary_link()?;
        let path = PathBuf::from(std::ffi::OsString::from_vec(path));
        let directory = image.path.parent()?;
        let named = if path.is_absolute() { find(self.options.root.as_deref(), &path).ok() } else { None };
        let named = named.unwrap_or_else(|| directory.join(path));
        let candidates = [named].into_iter().chain(self.in_debug_dirs(&build_id_path(&build_id)));
        let open = |path: PathBuf| Image::open(&path).ok().filter(|image| image.build_id == build_id);
        candidates.into_iter().find_map(open)
    }
}

/// Opens a separate debug file. If no checksum is given, the file must have the build id. Otherwise it may have none.
fn open_debug(path: &Path, build_id: &[u8], checksum: Option<u32>) -> Result<Image, Problem> {
    let image = Image::open(path)?;
    if checksum.is_none() || !(build_id.is_empty() || image.build_id.is_empty()) {
        same_build_id(build_id, &image.build_id)?;
    }
    if let Some(expected) = checksum {
        let found = image.checksum()?;
        if found != expected {
            return Err(Problem::WrongChecksum { expected, found });
        }
    }
    if image.has_debug_info() {
        Ok(image)
    } else {
        Err(Problem::NoDebugInfo { functions_from_symbols: false })
    }
}

fn same_build_id(expected: &[u8], found: &[u8]) -> Result<(), Problem> {
    let is_cut = expected.len() == RECORDED_BUILD_ID_MAX_BYTES;
    if expected == found || is_cut && found.starts_with(expected) {
        return Ok(());
    }
    Err(Problem::WrongBuildId { expected: expected.to_vec(), found: found.to_vec() })
}

/// `.build-id/ab/cdef.debug`.
fn build_id_path(build_id: &[u8]) -> PathBuf {
    let hex: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (first, rest) = hex.split_at(hex.len().min(2));
    Path::new(".build-id").join(first).join(format!("{rest}.debug"))
}
