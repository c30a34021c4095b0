//! Split DWARF: loads the `.dwo` files to which a program's debug information refers, or a `.dwp` package of them.
//!
//! It compares ids of compilation units and interprets nothing else. It notes the first missing file. For what a
//! missing file describes, the debug information in the program itself is used.

use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use addr2line::SplitDwarfLoad;
use gimli::Reader;
use object::Endianness;

use super::debug_sections::{Bytes, empty, section};
use super::elf::Image;
use super::line_budget::LineBudget;
use super::locate::Files;
use super::nesting::check_all;
use super::path::{find, with_suffix};
use super::problem::Problem;

/// The limit for the `.dwo` files of one program.
const FILES_MAX: usize = 1 << 16;

/// The split debug information of one module.
pub(super) struct Split {
    root: Option<PathBuf>,
    /// The paths of the module's file and of its debug file.
    files: Vec<PathBuf>,
    endian: Endianness,
    /// What the line tables of all modules may still cost.
    pub(super) budget: Rc<LineBudget>,
    package: OnceCell<Option<gimli::DwarfPackage<Bytes>>>,
    loaded: Cell<usize>,
    missing: RefCell<Option<PathBuf>>,
}

impl Split {
    pub(super) fn new(
        files: &Files,
        root: Option<&Path>,
        endian: Endianness,
        budget: Rc<LineBudget>,
    ) -> Self {
        let images = files.own.iter().chain(&files.debug);
        Self {
            root: root.map(Path::to_owned),
            files: images.map(|image| image.path.clone()).collect(),
            endian,
            budget,
            package: OnceCell::new(),
            loaded: 0.into(),
            missing: None.into(),
        }
    }

    /// The first requested file that was not found.
    pub(super) fn missing(&self) -> Option<PathBuf> {
        self.missing.borrow().clone()
    }

    /// The debug information of one compilation unit; `None` if it is not found.
    pub(super) fn load(&self, wanted: &SplitDwarfLoad<Bytes>) -> Option<Arc<gimli::Dwarf<Bytes>>> {
        let found = self.packed(wanted).or_else(|| self.unpacked(wanted));
        if found.is_none() {
            let path = text(wanted.path.as_ref()).unwrap_or_default();
            self.missing.borrow_mut().get_or_insert(path);
        }
        found.map(Arc::new)
    }

    fn packed(&self, wanted: &SplitDwarfLoad<Bytes>) -> Option<gimli::Dwarf<Bytes>> {
        let package = self.package.get_or_init(|| self.open_package()).as_ref()?;
        let found = package.find_cu(wanted.dwo_id, &wanted.parent).ok()??;
        self.check(&found).ok()?;
        Some(found)
    }

    /// Opens `prog.dwp` beside `prog`, or beside the debug file.
    fn open_package(&self) -> Option<gimli::DwarfPackage<Bytes>> {
        let open = |path: PathBuf| {
            let image = Image::open(&path).ok().filter(|image| self.has_same_byte_order(image))?;
            let load = |id: gimli::SectionId| match id.dwo_name() {
                Some(name) => section(&image, name),
                None => Ok(empty(&image)),
            };
            let package = gimli::DwarfPackage::load(load, empty(&image)).map_err(|_: Problem| ()).ok()?;
            self.budget.grant(image.len_bytes);
            Some(package)
        };
        self.files.iter().find_map(|path| open(with_suffix(path, ".dwp")))
    }

    fn unpacked(&self, wanted: &SplitDwarfLoad<Bytes>) -> Option<gimli::Dwarf<Bytes>> {
        if self.loaded.get() >= FILES_MAX {
            return None;
        }
        self.loaded.set(self.loaded.get() + 1);
        self.paths(wanted)?.iter().find_map(|path| self.open_file(path, wanted))
    }

    /// The path to which the compiler wrote the file, then a path beside the program, in case the build was moved.
    fn paths(&self, wanted: &SplitDwarfLoad<Bytes>) -> Option<Vec<PathBuf>> {
        let name = text(wanted.path.as_ref())?;
        let directory = text(wanted.comp_dir.as_ref()).unwrap_or_default();
        let mut paths: Vec<PathBuf> =
            find(self.root.as_deref(), &directory.join(&name)).into_iter().collect();
        for file in &self.files {
            let Some(directory) = file.parent() else { continue };
            if let Some(last) = name.file_name() {
                paths.push(directory.join(last));
            }
        }
        Some(paths)
    }

    fn open_file(&self, path: &Path, wanted: &SplitDwarfLoad<Bytes>) -> Option<gimli::Dwarf<Bytes>> {
        let image = Image::open(path).ok().filter(|image| self.has_same_byte_order(image))?;
        let load = |id: gimli::SectionId| match id.dwo_name() {
            Some(name) => section(&image, name),
            None => Ok(empty(&image)),
        };
        let mut dwarf = gimli::Dwarf::load(load).map_err(|_: Problem| ()).ok()?;
        self.budget.grant(image.len_bytes);
        self.check(&dwarf).ok()?;
        let unit = dwarf.unit(dwarf.units().next().ok()??).ok()?;
        if unit.dwo_id != Some(wanted.dwo_id) {
            return None;
        }
        dwarf.make_dwo(&wanted.parent);
        Some(dwarf)
    }

    /// Refuses what would take too much stack, memory or time. All units of these files are read.
    fn check(&self, dwarf: &gimli::Dwarf<Bytes>) -> Result<(), Problem> {
        check_all(dwarf)?;
        self.budget.spend(dwarf)
    }

    fn has_same_byte_order(&self, image: &Image) -> bool {
        image.endian == self.endian
    }
}

fn text(bytes: Option<&Bytes>) -> Option<PathBuf> {
    let bytes = bytes?.to_slice().ok()?;
    Some(PathBuf::from(OsStr::from_bytes(&bytes)))
}
