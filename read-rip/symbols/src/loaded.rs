//! The opened files of one module, and what they say of its addresses.
//!
//! It chooses among the debug information, the symbol table and the code. It knows no ring and no other module.

use std::path::PathBuf;
use std::rc::Rc;

use read_rip_files::Module;

use super::caller::{self, CallerLine, Relocations};
use super::direct_call::{self, Unwinds};
use super::dwarf::Dwarf;
use super::frame::Frame;
use super::imports::Imports;
use super::line_budget::LineBudget;
use super::locate::{Files, Options, Search};
use super::packages;
use super::problem::Problem;
use super::split::Split;
use super::symbol_table::SymbolTable;

/// The opened files of one module.
pub(super) struct Loaded {
    files: Files,
    dwarf: Option<Dwarf>,
    symbols: Option<SymbolTable>,
    relocations: Option<Relocations>,
    imports: Option<Imports>,
    unwinds: Option<Unwinds>,
    /// Why frames are missing or incomplete, of each kind one, and the file with the problem.
    problems: Vec<(PathBuf, Problem)>,
}

impl Loaded {
    pub(super) fn open(module: &Module, options: &Options, budget: &Rc<LineBudget>) -> Self {
        let search = Search { module, options };
        let mut files = search.files();
        let problems = std::mem::take(&mut files.problems);
        let mut loaded = Self {
            files,
            dwarf: None,
            symbols: None,
            relocations: None,
            imports: None,
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

    pub(super) fn resolve(&mut self, address: u64) -> Vec<Frame> {
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

    pub(super) fn caller_line(&mut self, address: u64) -> Option<CallerLine> {
        let own = self.files.own.as_ref()?;
        let relocations = self.relocations.get_or_insert_with(|| Relocations::read(own));
        caller::caller_line(own, relocations, address)
    }

    pub(super) fn function_begin(&mut self, address: u64) -> Option<u64> {
        if let Some(begin) = self.symbols().function_begin(address) {
            return Some(begin);
        }
        let own = self.files.own.as_ref()?;
        self.unwinds.get_or_insert_with(|| Unwinds::read(own)).begin(address)
    }

    /// The target of the direct call that returns to an address, or of one through a word that only the loader fills
    /// in.
    pub(super) fn call_target(&mut self, return_address: u64) -> Option<u64> {
        let own = self.files.own.as_ref()?;
        if let Some(target) = direct_call::target(own, return_address) {
            return Some(target);
        }
        let slot = direct_call::slot(own, return_address)?;
        self.relocations.get_or_insert_with(|| Relocations::read(own)).word(own, slot)
    }

    /// The demangled name of the function of another module that the call calls which returns to an address.
    pub(super) fn called_import(&mut self, return_address: u64) -> Option<String> {
        let own = self.files.own.as_ref()?;
        let imports = self.imports.get_or_insert_with(|| Imports::read(own));
        imports.called(own, return_address).map(str::to_owned)
    }

    pub(super) fn has_debug_info(&self) -> bool {
        self.dwarf.is_some()
    }

    /// The MD5 of a source file, if the debug information of the code at an address has it.
    pub(super) fn md5(&self, address: u64, file: &str) -> Option<[u8; 16]> {
        self.dwarf.as_ref()?.md5(address, file)
    }

    /// The crates of packages that the module has paths of.
    pub(super) fn packages(&self) -> Vec<String> {
        self.files.own.as_ref().map(packages::of).unwrap_or_default()
    }

    /// Whether a symbol is in this module of Rust. Only a symbol table that was needed for an answer is looked at.
    pub(super) fn has_path(&self, path: &str) -> bool {
        self.symbols.as_ref().is_some_and(|table| table.has_path(path))
    }

    pub(super) fn problems(&self) -> &[(PathBuf, Problem)] {
        &self.problems
    }

    /// How long its files are, bytes.
    pub(super) fn len_bytes(&self) -> u64 {
        self.files.own.iter().chain(&self.files.debug).map(|image| image.len_bytes).sum()
    }

    /// The symbol table, read when it is first needed.
    pub(super) fn symbols(&mut self) -> &SymbolTable {
        self.symbols.get_or_insert_with(|| SymbolTable::of(&self.files))
    }

    /// Adds a problem, unless one of the same kind was added before.
    fn report(&mut self, path: PathBuf, what: Problem) {
        let kind = std::mem::discriminant(&what);
        if self.problems.iter().all(|(_, known)| std::mem::discriminant(known) != kind) {
            self.problems.push((path, what));
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
