//! The names of functions by their addresses, from symbol tables alone.
//!
//! It is for those who need names and no lines: debug information, which takes long to read, is not read.

use read_rip_files::Module;

use super::locate::{Options, Search};
use super::symbol_table::SymbolTable;

/// The names of the functions of some modules.
pub struct FunctionNames {
    options: Options,
    /// Each with its table once it was asked about.
    modules: Vec<(Module, Option<SymbolTable>)>,
    /// The modules by their first address, as the process has them.
    by_address: Vec<(u64, usize)>,
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
        }
    }

    /// The demangled name of the function at an actual address; `None` if no symbol covers it.
    pub fn at(&mut self, address: u64) -> Option<String> {
        let before = self.by_address.partition_point(|&(begin, _)| begin <= address);
        let &(_, index) = self.by_address.get(before.checked_sub(1)?)?;
        let (module, table) = &mut self.modules[index];
        let relative = module.relative(address)?;
        let search = Search { module, options: &self.options };
        let table = table.get_or_insert_with(|| SymbolTable::of(&search.files()));
        table.function(relative)
    }
}
