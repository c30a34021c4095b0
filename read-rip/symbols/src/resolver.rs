//! Resolves module-relative addresses to functions, files and lines.
//!
//! It caches files. It keeps its answers only for `read-rip save`: other callers ask for each distinct address once.

use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

use super::answers::{Answers, SavedAnswers};
use super::caller::{self, CallerLine, Relocations};
use super::direct_call::{self, Unwinds};
use super::dwarf::Dwarf;
use super::frame::Frame;
use super::line_budget::LineBudget;
use super::locate::{Files, Options, Search};
use super::problem::{ModuleProblem, Problem};
use super::split::Split;
use super::symbol_table::SymbolTable;
use crate::Module;

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
    /// Files that were opened. Several modules can share one.
    loaded: Vec<Loaded>,
    /// Index in `loaded`, by what identifies a module's file: processes that share a ring load the same libraries at
    /// different addresses.
    by_file: HashMap<FileIdentity, usize>,
    options: Options,
    budget: Rc<LineBudget>,
}

/// Path, build id, whether it is the program, length and modification time.
type FileIdentity = (PathBuf, Vec<u8>, bool, u64, u64);

struct ModuleEntry {
    module: Module,
    /// Index in [`Resolver::loaded`]; `None` until the module is first asked about.
    loaded: Option<usize>,
}

impl Resolver {
    /// A resolver for a ring's modules. It does not open files yet.
    pub fn new(modules: &[Module], options: Options) -> Self {
        let entry = |module: &Module| ModuleEntry { module: module.clone(), loaded: None };
        let files = ModuleFiles {
            modules: modules.iter().map(entry).collect(),
            loaded: Vec::new(),
            by_file: HashMap::new(),
            options,
            budget: Rc::default(),
        };
        Self { files, answers: Answers::default(), keeps_answers: false }
    }

    /// Gives it the answers that a saved ring came with. They precede what the files say.
    pub fn with_answers(self, answers: SavedAnswers) -> Resolver {
        Resolver { answers: answers.into(), ..self }
    }

    /// Keeps all answers from now on, for [`Resolver::answers`].
    pub fn keeping_answers(self) -> Resolver {
        Resolver { keeps_answers: true, ..self }
    }

    /// The answers that were given or kept.
    pub fn answers(&self) -> SavedAnswers {
        SavedAnswers::from(&self.answers)
    }

    /// The frames of a module-relative address, innermost (inlined) first. `module` is the module's index.
    ///
    /// The module's files are opened at the first call. The result is empty if nothing is known; then
    /// [`Self::problems`] often says why.
    pub fn resolve(&mut self, module: usize, address: u64) -> Vec<Frame> {
        let find = |files: &mut ModuleFiles| {
            files.load(module).map(|loaded| loaded.resolve(address)).unwrap_or_default()
        };
        self.answers.frames((module, address), self.keeps_answers, || find(&mut self.files))
    }

    /// The names of all functions at a module-relative address. There are several if the linker folded equal functions.
    pub fn namesakes(&mut self, module: usize, address: u64) -> Vec<String> {
        let find = |files: &mut ModuleFiles| {
            files.load(module).map(|loaded| loaded.symbols().namesakes(address)).unwrap_or_default()
        };
        self.answers.namesakes((module, address), self.keeps_answers, || find(&mut self.files))
    }

    /// The name of the static that covers a module-relative address, and the address's offset in it.
    pub fn static_at(&mut self, module: usize, address: u64) -> Option<(String, u64)> {
        let find = |files: &mut ModuleFiles| files.load(module)?.symbols().static_at(address);
        self.answers.static_at((module, address), self.keeps_answers, || find(&mut self.files))
    }

    /// The caller whose location is at a module-relative address. It comes from the module's own file.
    pub fn caller_line(&mut self, module: usize, address: u64) -> Option<CallerLine> {
        let find = |files: &mut ModuleFiles| files.load(module)?.caller_line(address);
        self.answers.caller_line((module, address), self.keeps_answers, || find(&mut self.files))
    }

    /// The target of the direct call that returns to a module-relative address; `None` if the instruction before the
    /// address is no direct call.
    pub fn call_target(&mut self, module: usize, return_address: u64) -> Option<u64> {
        let find = |files: &mut ModuleFiles| {
            direct_call::target(files.load(module)?.files.own.as_ref()?, return_address)
        };
        self.answers.call_target((module, return_address), self.keeps_answers, || find(&mut self.files))
    }

    /// Where the function begins that a module-relative address is in.
    pub fn function_begin(&mut self, module: usize, address: u64) -> Option<u64> {
        let find = |files: &mut ModuleFiles| files.load(module)?.function_begin(address);
        self.answers.function_begin((module, address), self.keeps_answers, || find(&mut self.files))
    }

    /// Whether the module has debug information.
    pub fn has_debug_info(&mut self, module: usize) -> bool {
        let find = |files: &mut ModuleFiles| files.load(module).is_some_and(|loaded| loaded.dwarf.is_some());
        self.answers.has_debug_info(module, self.keeps_answers, || find(&mut self.files))
    }

    /// The MD5 of a source file as the compiler read it, if the debug information of the code at a module-relative
    /// address has it. Only modules that were asked about before are looked at.
    pub fn source_md5(&self, module: usize, address: u64, file: &str) -> Option<[u8; 16]> {
        let loaded = self.files.loaded.get(self.files.modules.get(module)?.loaded?)?;
        loaded.dwarf.as_ref()?.md5(address, file)
    }

    /// Whether a symbol is in this module of Rust, as `parking_lot::word`. Only the symbol tables that were needed for
    /// answers are looked at.
    pub fn has_path(&self, path: &str) -> bool {
        let mut tables = self.files.loaded.iter().filter_map(|loaded| loaded.symbols.as_ref());
        tables.any(|table| table.has_path(path))
    }

    /// Why frames of the modules that were asked about are missing or incomplete.
    pub fn problems(&self) -> impl Iterator<Item = &ModuleProblem> {
        self.files.loaded.iter().flat_map(|loaded| &loaded.problems)
    }
}

impl ModuleFiles {
    fn load(&mut self, index: usize) -> Option<&mut Loaded> {
        let position = match self.modules.get(index)?.loaded {
            Some(position) => position,
            None => {
                let module = &self.modules[index].module;
                let position = *self.by_file.entry(identity(module)).or_insert_with(|| {
                    self.loaded.push(Loaded::new(index, module, &self.options, &self.budget));
                    self.loaded.len() - 1
                });
                self.modules[index].loaded = Some(position);
                position
            }
        };
        self.loaded.get_mut(position)
    }
}

fn identity(module: &Module) -> FileIdentity {
    let Module { path, build_id, is_executable, file_len_bytes, modified_ns, .. } = module;
    (path.clone(), build_id.clone(), *is_executable, *file_len_bytes, *modified_ns)
}

/// The opened files of one module.
struct Loaded {
    module: usize,
    files: Files,
    dwarf: Option<Dwarf>,
    symbols: Option<SymbolTable>,
    relocations: Option<Relocations>,
    unwinds: Option<Unwinds>,
    problems: Vec<ModuleProblem>,
}

impl Loaded {
    fn new(index: usize, module: &Module, options: &Options, budget: &Rc<LineBudget>) -> Self {
        let search = Search { module, options };
        let mut files = search.files();
        let problems = std::mem::take(&mut files.problems);
        let mut loaded = Self {
            module: index,
            files,
            dwarf: None,
            symbols: None,
            relocations: None,
            unwinds: None,
            problems: Vec::new(),
        };
        let files = &loaded.files;
        match files.debug.iter().chain(&files.own).find(|image| image.has_debug_info()) {
            Some(image) => {
                let supplementary = search.supplementary(image);
                let split = Split::new(files, options.root.as_deref(), image.endian, budget.clone());
                let path = image.path.clone();
                match Dwarf::read(image, supplementary.as_ref(), split) {
                    Ok(dwarf) => loaded.dwarf = Some(dwarf),
                    Err(problem) => loaded.report(path, problem),
                }
            }
            None => {
                if let Some(path) = files.own.as_ref().map(|own| own.path.clone()) {
                    let functions_from_symbols = loaded.symbols().has_functions();
                    loaded.report(path, Problem::NoDebugInfo { functions_from_symbols });
                }
            }
        }
        for (path, problem) in problems {
            loaded.report(path, problem);
        }
        loaded
    }

    fn resolve(&mut self, address: u64) -> Vec<Frame> {
        let mut frames = Vec::new();
        let mut problem = None;
        if let Some(dwarf) = &self.dwarf {
            (frames, problem) = dwarf.frames(address);
            if let Some(path) = dwarf.split.missing() {
                self.report(path, Problem::MissingSplit);
            }
        }
        if let Some(problem) = problem {
            let image = self.files.debug.as_ref().or(self.files.own.as_ref());
            let path = image.map(|image| image.path.clone()).unwrap_or_default();
            self.report(path, problem);
        }
        // A symbol names the outermost function: inlined functions have no symbols.
        if frames.last().is_none_or(|outermost| outermost.function.as_deref().is_none_or(is_short))
            && let Some(symbol) = self.symbols().function(address)
        {
            match frames.last_mut() {
                Some(outermost) => match &mut outermost.function {
                    Some(function) if !is_path_to(&symbol, function) => {}
                    function => *function = Some(symbol.into()),
                },
                None => frames.push(Frame { function: Some(symbol.into()), ..Frame::default() }),
            }
        }
        frames
    }

    fn caller_line(&mut self, address: u64) -> Option<CallerLine> {
        let own = self.files.own.as_ref()?;
        let relocations = self.relocations.get_or_insert_with(|| Relocations::read(own));
        caller::caller_line(own, relocations, address)
    }

    fn function_begin(&mut self, address: u64) -> Option<u64> {
        if let Some(begin) = self.symbols().function_begin(address) {
            return Some(begin);
        }
        let own = self.files.own.as_ref()?;
        self.unwinds.get_or_insert_with(|| Unwinds::read(own)).begin(address)
    }

    /// The symbol table, read when it is first needed.
    fn symbols(&mut self) -> &SymbolTable {
        self.symbols.get_or_insert_with(|| SymbolTable::of(&self.files))
    }

    /// Adds a problem, unless one of the same kind was added before.
    fn report(&mut self, path: PathBuf, what: Problem) {
        let kind = std::mem::discriminant(&what);
        if self.problems.iter().all(|known| std::mem::discriminant(&known.what) != kind) {
            self.problems.push(ModuleProblem { module: self.module, path, what });
        }
    }
}

/// Whether a function's name lacks the modules, namespaces or types around it.
fn is_short(function: &str) -> bool {
    !function.contains("::")
}

/// Whether a symbol's name ends in a function's short name. Debug information with line tables only has `clone` for
/// the symbol `<prog::Cache as core::clone::Clone>::clone`.
fn is_path_to(symbol: &str, function: &str) -> bool {
    let name = function.split('<').next().unwrap_or_default();
    let rest = symbol.rsplit_once("::").map(|(_, last)| last).and_then(|last| last.strip_prefix(name));
    !name.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['(', '<', '[']))
}
