//! Files of modules that stay open from one resolver to the next: thousands of rings may name one program.
//!
//! Within one resolver, several modules may have one file too: processes that share a ring load the same libraries at
//! different addresses.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

use read_rip_files::Module;

use super::line_budget::LineBudget;
use super::loaded::Loaded;
use super::locate::Options;

/// More files are forgotten when the next resolver begins.
const FILES_MAX: usize = 64;
/// Longer files are forgotten, too: what is kept of a file takes about as much memory as the file has bytes.
const BYTES_MAX: u64 = 512 << 20;

/// Files that resolvers have opened.
#[derive(Clone, Default)]
pub struct OpenedFiles(Rc<RefCell<HashMap<FileIdentity, Rc<RefCell<Loaded>>>>>);

/// What decides which files a module has, and what they say.
#[derive(PartialEq, Eq, Hash)]
struct FileIdentity {
    path: PathBuf,
    build_id: Vec<u8>,
    is_executable: bool,
    file_len_bytes: u64,
    modified_ns: u64,
    options: Options,
}

impl FileIdentity {
    fn of(module: &Module, options: &Options) -> FileIdentity {
        let Module { path, build_id, is_executable, file_len_bytes, modified_ns, .. } = module.clone();
        FileIdentity { path, build_id, is_executable, file_len_bytes, modified_ns, options: options.clone() }
    }
}

impl OpenedFiles {
    /// The same files, for another resolver; none of them if they are too many. That is not looked at while a resolver
    /// works: it needs all of its files.
    pub(super) fn for_another(&self) -> OpenedFiles {
        let mut files = self.0.borrow_mut();
        let len_bytes: u64 = files.values().map(|loaded| loaded.borrow().len_bytes()).sum();
        if files.len() > FILES_MAX || len_bytes > BYTES_MAX {
            files.clear();
        }
        drop(files);
        self.clone()
    }

    /// The files of a module. `budget` is what its line tables may take.
    pub(super) fn get_or_open(
        &self,
        module: &Module,
        options: &Options,
        budget: &Rc<LineBudget>,
    ) -> Rc<RefCell<Loaded>> {
        let mut files = self.0.borrow_mut();
        let open = || Rc::new(RefCell::new(Loaded::open(module, options, budget)));
        files.entry(FileIdentity::of(module, options)).or_insert_with(open).clone()
    }
}
