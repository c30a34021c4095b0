//! From module-relative addresses to functions, files and lines: finds each module's file, checks that it is the recorded
//! one, and asks its DWARF and its symbol table.
//!
//! It knows nothing of rings but [`Module`], prints nothing, and caches files but no answers: the caller asks for each
//! distinct address once. Names and paths come from files that anyone may have written: whoever prints them
//! removes control characters. No frames is an answer and not an error; [`Resolver::problems`] says why.
//!
//! | file | question |
//! |---|---|
//! | `path` | how is a path opened that somebody else wrote? |
//! | `elf`, `compressed` | what sections has the file? |
//! | `locate` | which file is the recorded one, and which its debug file? |
//! | `dwarf`, `split` | what frames has the address? |
//! | `symbol_table`, `demangle` | what function or datum covers it, and how was it called in the source? |
//! | `problem` | what was in the way? |

mod compressed;
mod demangle;
mod dwarf;
mod elf;
mod locate;
mod path;
mod problem;
mod split;
mod symbol_table;

use std::path::PathBuf;

pub use problem::{ModuleProblem, Problem};

use crate::ring::Module;
use dwarf::Dwarf;
use locate::{Files, Search};
use split::Split;
use symbol_table::SymbolTable;

/// How files are found.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file to use for the program itself, instead of the recorded path. It may be relative.
    pub executable: Option<PathBuf>,
    /// Directories with separate debug files, as `/usr/lib/debug` is laid out.
    pub debug_dirs: Vec<PathBuf>,
    /// Where the recorded process's root directory is seen, such as `/proc/PID/root`.
    pub root: Option<PathBuf>,
    /// The program as the kernel has it, `/proc/PID/exe` of a living process: for when its path was removed or replaced.
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

/// A function at an address, and where in its source the address is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Demangled; Rust's without their hash.
    pub function: Option<String>,
    /// The full path, as the debug information has it.
    pub file: Option<String>,
    /// From 1.
    pub line: Option<u32>,
    /// From 1.
    pub column: Option<u32>,
    /// Whether it was inlined into the next frame.
    pub is_inlined: bool,
}

/// Resolves addresses of the modules of one ring.
pub struct Resolver {
    modules: Vec<Lazy>,
    /// Files that were opened; several modules can share one.
    loaded: Vec<Loaded>,
    options: Options,
}

struct Lazy {
    module: Module,
    /// Index in [`Resolver::loaded`].
    loaded: Option<usize>,
}

impl Resolver {
    /// A resolver for a ring's modules. It opens nothing yet.
    pub fn new(modules: &[Module], options: Options) -> Self {
        let lazy = |module: &Module| Lazy { module: module.clone(), loaded: None };
        Self { modules: modules.iter().map(lazy).collect(), loaded: Vec::new(), options }
    }

    /// The frames of a module-relative address, innermost (inlined) first, by the module's index.
    ///
    /// Opens the module's files when it is first asked about. Empty if nothing is known, and then
    /// [`Self::problems`] often says why.
    pub fn resolve(&mut self, module: usize, address: u64) -> Vec<Frame> {
        self.load(module).map(|loaded| loaded.resolve(address)).unwrap_or_default()
    }

    /// The names of all functions whose instructions are those at a module-relative address: several where the linker has
    /// folded functions that are equal.
    pub fn namesakes(&mut self, module: usize, address: u64) -> Vec<String> {
        self.load(module).map(|loaded| loaded.symbols().namesakes(address)).unwrap_or_default()
    }

    /// The name of the datum (a static lock, say) that covers a module-relative address.
    pub fn data_symbol(&mut self, module: usize, address: u64) -> Option<String> {
        self.datum(module, address).map(|(name, _)| name)
    }

    /// The same, and how many bytes behind its begin the address is.
    pub fn datum(&mut self, module: usize, address: u64) -> Option<(String, u64)> {
        self.load(module)?.symbols().datum(address)
    }

    /// Why frames are missing, or less than they could be; of modules that were asked about.
    pub fn problems(&self) -> impl Iterator<Item = &ModuleProblem> {
        self.loaded.iter().flat_map(|loaded| &loaded.problems)
    }

    fn load(&mut self, index: usize) -> Option<&mut Loaded> {
        let position = match self.modules.get(index)?.loaded {
            Some(position) => position,
            None => {
                let position = self.twin(index).unwrap_or_else(|| {
                    self.loaded.push(Loaded::new(index, &self.modules[index].module, &self.options));
                    self.loaded.len() - 1
                });
                self.modules[index].loaded = Some(position);
                position
            }
        };
        self.loaded.get_mut(position)
    }

    /// What was loaded for the same file: processes that share a ring have the same libraries at other addresses.
    fn twin(&self, index: usize) -> Option<usize> {
        let identity = |module: &Module| {
            let Module { path, build_id, is_executable, file_len_bytes, modified_ns, .. } = module.clone();
            (path, build_id, is_executable, file_len_bytes, modified_ns)
        };
        let wanted = identity(&self.modules.get(index)?.module);
        self.modules.iter().filter(|other| identity(&other.module) == wanted).find_map(|other| other.loaded)
    }
}

/// One module's files, opened.
struct Loaded {
    module: usize,
    files: Files,
    dwarf: Option<Dwarf>,
    symbols: Option<SymbolTable>,
    problems: Vec<ModuleProblem>,
}

impl Loaded {
    fn new(index: usize, module: &Module, options: &Options) -> Self {
        let search = Search { module, options };
        let mut files = search.files();
        let problems = std::mem::take(&mut files.problems);
        let mut loaded = Self { module: index, files, dwarf: None, symbols: None, problems: Vec::new() };
        let files = &loaded.files;
        match files.debug.iter().chain(&files.own).find(|image| image.has_debug_info()) {
            Some(image) => {
                let supplementary = search.supplementary(image);
                let split = Split::new(files, options.root.as_deref(), image.is_little_endian);
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
        // Symbols know the outermost function only: what is inlined has none.
        if frames.last().is_none_or(|outermost| outermost.function.as_deref().is_none_or(is_short))
            && let Some(symbol) = self.symbols().function(address)
        {
            match frames.last_mut() {
                Some(outermost) => match &mut outermost.function {
                    Some(function) if !is_path_to(&symbol, function) => {}
                    function => *function = Some(symbol),
                },
                None => frames.push(Frame { function: Some(symbol), ..Frame::default() }),
            }
        }
        frames
    }

    /// The symbol table, read when it is first needed.
    fn symbols(&mut self) -> &SymbolTable {
        let images = || self.files.own.iter().chain(&self.files.debug);
        let read =
            || images().find_map(SymbolTable::full).or_else(|| images().find_map(SymbolTable::exported));
        self.symbols.get_or_insert_with(|| read().unwrap_or_default())
    }

    /// Adds a problem, the first of each kind.
    fn report(&mut self, path: PathBuf, what: Problem) {
        let kind = std::mem::discriminant(&what);
        if self.problems.iter().all(|known| std::mem::discriminant(&known.what) != kind) {
            self.problems.push(ModuleProblem { module: self.module, path, what });
        }
    }
}

/// Whether a function's name comes without the modules, namespaces or types that it is in.
fn is_short(function: &str) -> bool {
    !function.contains("::")
}

/// Whether a symbol's name ends in a function's short name: line tables without further debug information have
/// `clone` where the symbol is `<prog::Cache as core::clone::Clone>::clone`.
fn is_path_to(symbol: &str, function: &str) -> bool {
    let name = function.split('<').next().unwrap_or_default();
    let rest = symbol.rsplit_once("::").map(|(_, last)| last).and_then(|last| last.strip_prefix(name));
    !name.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['(', '<', '[']))
}
