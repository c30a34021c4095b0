//! The names of functions by their addresses, from symbol tables alone.
//!
//! It is for those who need names and no lines: debug information, which takes long to read, is not read.

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::ops::Range;

use read_rip_files::Module;

use super::imports::Imports;
use super::locate::{Options, Search};
use super::packages;
use super::symbol_table::SymbolTable;
use super::types::Types;

/// The names of the functions of some modules.
pub struct FunctionNames {
    options: Options,
    /// Each with its table once it was asked about.
    modules: Vec<(Module, Option<SymbolTable>)>,
    /// The modules by their first address, as the process has them.
    by_address: Vec<(u64, usize)>,
    /// The functions of other modules that modules use, by the indices of these.
    imports: BTreeMap<usize, Imports>,
}

impl FunctionNames {
    /// Opens no files yet.
    pub fn new(modules: &[Module], options: Options) -> FunctionNames {
        let begin = |module: &Module| module.load_bias.wrapping_add(module.begin);
        let mut by_address: Vec<(u64, usize)> =
            modules.iter().enumerate().map(|(index, module)| (begin(module), index)).collect();
        by_address.sort_unstable();
        FunctionNames {
            options,
            modules: modules.iter().map(|module| (module.clone(), None)).collect(),
            by_address,
            imports: BTreeMap::new(),
        }
    }

    /// The demangled name of the function of another module whose address the loader fills in, or will, at an actual
    /// address.
    pub fn imported_at(&mut self, word: u64) -> Option<String> {
        let (index, relative) = self.module(word)?;
        let imports = self.imports.entry(index).or_insert_with(|| {
            let files = Search { module: &self.modules[index].0, options: &self.options }.files();
            files.own.as_ref().map(Imports::read).unwrap_or_default()
        });
        imports.at(relative).map(str::to_owned)
    }

    /// The demangled name of the function at an actual address; `None` if no symbol covers it.
    pub fn at(&mut self, address: u64) -> Option<String> {
        let (table, relative) = self.table(address)?;
        table.function(relative)
    }

    /// The demangled name of the function at an actual address, and the actual addresses of its code.
    pub fn function(&mut self, address: u64) -> Option<(String, Range<u64>)> {
        let (table, relative) = self.table(address)?;
        let name = table.function(relative)?;
        Some((name, self.extent(address)?))
    }

    /// The actual addresses of the function or the static variable that has an actual address.
    pub fn extent(&mut self, address: u64) -> Option<Range<u64>> {
        let (table, relative) = self.table(address)?;
        let range = table.function_range(relative).or_else(|| table.variable_range(relative))?;
        let actual = |of: u64| address.wrapping_sub(relative).wrapping_add(of);
        Some(actual(range.start)..actual(range.end)).filter(|range| !range.is_empty())
    }

    /// Whether the program has a package, by the paths among its constants. Its functions may have no names.
    pub fn has_package(&mut self, package: &str) -> bool {
        self.of_program(|_, has_package| has_package(package))
    }

    /// Whether a function of the program is in this module of Rust, or of this type, as `tokio::task::local`.
    pub fn has_path(&mut self, path: &str) -> bool {
        self.of_program(|table, _| table.has_path(path))
    }

    /// What is so of the program's symbols, and of the packages of which its constants have paths. Nothing is without a
    /// program.
    fn of_program(&mut self, is_so: impl FnOnce(&SymbolTable, &dyn Fn(&str) -> bool) -> bool) -> bool {
        let Some((module, table)) = self.modules.iter_mut().find(|(module, _)| module.is_executable) else {
            return false;
        };
        let files = LazyCell::new(|| Search { module, options: &self.options }.files());
        let table = table.get_or_insert_with(|| SymbolTable::of(&files));
        let has_package = |package: &str| {
            let is_among =
                |own| packages::of(own).binary_search_by(|known| known.as_str().cmp(package)).is_ok();
            files.own.as_ref().is_some_and(is_among)
        };
        is_so(table, &has_package)
    }

    /// The types of the same modules. Debug information is read once they are asked for.
    pub fn types(&self) -> Types {
        Types::new(self.modules.iter().map(|(module, _)| module.clone()).collect(), self.options.clone())
    }

    /// The index of the module that has an address, and the address in it.
    fn module(&self, address: u64) -> Option<(usize, u64)> {
        let before = self.by_address.partition_point(|&(begin, _)| begin <= address);
        let &(_, index) = self.by_address.get(before.checked_sub(1)?)?;
        Some((index, self.modules[index].0.relative(address)?))
    }

    /// The symbols of the module that has an address, and the address in it.
    fn table(&mut self, address: u64) -> Option<(&SymbolTable, u64)> {
        let (index, relative) = self.module(address)?;
        let (module, table) = &mut self.modules[index];
        let search = Search { module, options: &self.options };
        Some((table.get_or_insert_with(|| SymbolTable::of(&search.files())), relative))
    }
}
