//! Resolves module-relative addresses to functions, files and lines.
//!
//! It keeps its answers only for `read-rip save`: other callers ask for each distinct address once.

use std::cell::{Ref, RefCell, RefMut};
use std::collections::HashSet;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use read_rip_files::Module;

use super::answers::Answers;
use super::caller::CallerLine;
use super::frame::Frame;
use super::line_budget::LineBudget;
use super::loaded::Loaded;
use super::locate::Options;
use super::opened::OpenedFiles;
use super::problem::{ModuleProblem, Problem};
use super::whose::Whose;

/// Resolves addresses of the modules of one ring.
pub struct Resolver {
    files: ModuleFiles,
    /// The answers that a saved ring came with, and those that are to be saved.
    answers: Answers,
    keeps_answers: bool,
}

/// The files of the modules, opened when they are first asked about.
struct ModuleFiles {
    modules: Vec<ModuleEntry>,
    options: Options,
    opened: OpenedFiles,
    budget: Rc<LineBudget>,
}

struct ModuleEntry {
    module: Module,
    whose: Whose,
    /// `None` until the module is first asked about.
    loaded: Option<Rc<RefCell<Loaded>>>,
}

impl Resolver {
    /// A resolver for a ring's modules. It does not open files yet.
    pub fn new(modules: &[Module], options: Options) -> Self {
        let entry = |module: &Module| ModuleEntry {
            module: module.clone(),
            whose: Whose::of_module(module),
            loaded: None,
        };
        let modules = modules.iter().map(entry).collect();
        let files = ModuleFiles { modules, options, opened: OpenedFiles::default(), budget: Rc::default() };
        Self { files, answers: Answers::default(), keeps_answers: false }
    }

    /// Uses files that other resolvers have opened, and opens files for them.
    pub fn sharing(mut self, opened: &OpenedFiles) -> Resolver {
        self.files.opened = opened.for_another();
        self
    }

    /// Gives it the answers that a saved ring came with. They precede what the files say.
    pub fn with_answers(self, answers: Answers) -> Resolver {
        Resolver { answers, ..self }
    }

    /// Keeps all answers from now on, for [`Resolver::answers`].
    pub fn keeping_answers(self) -> Resolver {
        Resolver { keeps_answers: true, ..self }
    }

    /// The answers that were given or kept.
    pub fn answers(&self) -> Answers {
        self.answers.clone()
    }

    /// The frames of a module-relative address, innermost (inlined) first. `module` is the module's index.
    ///
    /// The module's files are opened at the first call. The result is empty if nothing is known; then
    /// [`Self::problems`] often says why.
    pub fn resolve(&mut self, module: usize, address: u64) -> Vec<Frame> {
        let find = |files: &mut ModuleFiles| {
            files.load(module).map(|mut loaded| loaded.resolve(address)).unwrap_or_default()
        };
        let mut frames =
            self.answers.frames.get((module, address), self.keeps_answers, || find(&mut self.files));
        for frame in &mut frames {
            frame.whose = self.whose(module, frame.function.as_deref(), frame.file.as_deref());
        }
        frames
    }

    /// Whose code a function of a module is, by its name and by its source file.
    pub fn whose(&mut self, module: usize, function: Option<&str>, file: Option<&str>) -> Whose {
        let whose = Whose::of(function, file, &self.object(module));
        match (function, file) {
            (Some(function), None) => whose.or_of_package(function, || self.packages(module)),
            _ => whose,
        }
    }

    /// The crates of the packages that a module is made of, sorted, as far as its constants tell.
    pub fn packages(&mut self, module: usize) -> Arc<[String]> {
        let find = || self.files.load(module).map(|loaded| loaded.packages()).unwrap_or_default().into();
        self.answers.packages.get(module, true, find).0
    }

    pub fn object(&self, module: usize) -> Whose {
        self.files.modules.get(module).map_or(Whose::Unknown, |entry| entry.whose.clone())
    }

    /// The names of all functions at a module-relative address. There are several if the linker folded equal functions.
    pub fn namesakes(&mut self, module: usize, address: u64) -> Vec<String> {
        let find = |files: &mut ModuleFiles| {
            files.load(module).map(|mut loaded| loaded.symbols().namesakes(address)).unwrap_or_default()
        };
        self.answers.namesakes.get((module, address), self.keeps_answers, || find(&mut self.files))
    }

    /// The name of the static that covers a module-relative address, and the address's offset in it.
    pub fn static_at(&mut self, module: usize, address: u64) -> Option<(String, u64)> {
        let find = |files: &mut ModuleFiles| files.load(module)?.symbols().static_at(address);
        self.answers.statics.get((module, address), self.keeps_answers, || find(&mut self.files))
    }

    /// The caller whose location is at a module-relative address. It comes from the module's own file.
    pub fn caller_line(&mut self, module: usize, address: u64) -> Option<CallerLine> {
        let find = |files: &mut ModuleFiles| files.load(module)?.caller_line(address);
        self.answers.caller_lines.get((module, address), self.keeps_answers, || find(&mut self.files))
    }

    /// The target of the direct call that returns to a module-relative address; `None` if the instruction before the
    /// address is no direct call.
    pub fn call_target(&mut self, module: usize, return_address: u64) -> Option<u64> {
        let find = |files: &mut ModuleFiles| files.load(module)?.call_target(return_address);
        self.answers.call_targets.get((module, return_address), self.keeps_answers, || find(&mut self.files))
    }

    /// The demangled name of the function of another module that the call calls which returns to a module-relative
    /// address; `None` if it calls none, or if that is not known.
    pub fn called_import(&mut self, module: usize, return_address: u64) -> Option<String> {
        let find = |files: &mut ModuleFiles| files.load(module)?.called_import(return_address);
        self.answers
            .called_imports
            .get((module, return_address), self.keeps_answers, || find(&mut self.files))
    }

    /// Where the function begins that a module-relative address is in.
    pub fn function_begin(&mut self, module: usize, address: u64) -> Option<u64> {
        let find = |files: &mut ModuleFiles| files.load(module)?.function_begin(address);
        self.answers.function_begins.get((module, address), self.keeps_answers, || find(&mut self.files))
    }

    /// Whether the module has debug information.
    pub fn has_debug_info(&mut self, module: usize) -> bool {
        let find = |files: &mut ModuleFiles| files.load(module).is_some_and(|loaded| loaded.has_debug_info());
        self.answers.debug_info.get(module, self.keeps_answers, || find(&mut self.files))
    }

    /// The MD5 of a source file as the compiler read it, if the debug information of the code at a module-relative
    /// address has it. Only modules that were asked about before are looked at.
    pub fn source_md5(&self, module: usize, address: u64, file: &str) -> Option<[u8; 16]> {
        let loaded = self.files.modules.get(module)?.loaded.as_ref()?.borrow();
        loaded.md5(address, file)
    }

    /// Whether a symbol is in this module of Rust, as `parking_lot::word`. Only the symbol tables that were needed for
    /// answers are looked at.
    pub fn has_path(&self, path: &str) -> bool {
        self.files.loaded().any(|(_, loaded)| loaded.has_path(path))
    }

    /// Why frames of the modules that were asked about are missing or incomplete.
    pub fn problems(&self) -> Vec<ModuleProblem> {
        let of_file = |(module, loaded): (usize, Ref<'_, Loaded>)| {
            let problem = |(path, what): &(PathBuf, Problem)| ModuleProblem {
                module,
                path: path.clone(),
                what: what.clone(),
            };
            loaded.problems().iter().map(problem).collect::<Vec<_>>()
        };
        self.files.loaded().flat_map(of_file).collect()
    }
}

impl ModuleFiles {
    /// The files of a module, which nobody else uses until the result is dropped.
    fn load(&mut self, index: usize) -> Option<RefMut<'_, Loaded>> {
        let entry = self.modules.get_mut(index)?;
        let loaded = entry
            .loaded
            .get_or_insert_with(|| self.opened.get_or_open(&entry.module, &self.options, &self.budget));
        Some(loaded.borrow_mut())
    }

    /// The files that were loaded, once each, with the first module that has them.
    fn loaded(&self) -> impl Iterator<Item = (usize, Ref<'_, Loaded>)> {
        let mut known = HashSet::new();
        let modules = self.modules.iter().enumerate();
        let loaded = modules.filter_map(|(index, entry)| Some((index, entry.loaded.as_ref()?)));
        loaded
            .filter(move |(_, loaded)| known.insert(Rc::as_ptr(loaded)))
            .map(|(index, loaded)| (index, loaded.borrow()))
    }
}
