//! The unwind tables of a target's modules: which rule holds at an address.
//!
//! A module's file is opened when an address in it is first asked about. Rules are kept.

use std::rc::Rc;

use foldhash::HashMap;
use gimli::{
    BaseAddresses, CieOrFde, DebugFrame, EhFrame, EndianSlice, FrameDescriptionEntry, LittleEndian,
    UnwindContext, UnwindOffset, UnwindSection,
};
use read_rip_files::Module;
use read_rip_symbols::{Options, UnwindIndex, UnwindSections};

use super::rule::{Bytes, Rule, TableId};
use super::stack::Cut;
use crate::target::Memory;

/// The modules of a target, and their unwind tables.
pub(super) struct Tables<'m> {
    memory: &'m dyn Memory,
    options: Options,
    modules: Vec<Entry>,
    rules: HashMap<u64, Result<Rc<Rule>, Cut>>,
    context: UnwindContext<usize>,
}

struct Entry {
    module: Module,
    /// `None` until it is first asked about.
    loaded: Option<Loaded>,
}

#[derive(Default)]
struct Loaded {
    sections: UnwindSections,
    /// Of `.eh_frame`, if it has no index of its own.
    index: Option<Vec<Function>>,
    /// `.debug_frame` and its index. `None` until it is first needed.
    debug_frame: Option<(Vec<u8>, Vec<Function>)>,
}

/// A function by an unwind table: begin, end, and the offset of its entry.
type Function = (u64, u64, usize);

impl<'m> Tables<'m> {
    pub(super) fn new(memory: &'m dyn Memory, modules: &[Module], options: Options) -> Tables<'m> {
        let entry = |module: &Module| Entry { module: module.clone(), loaded: None };
        let mut modules: Vec<Entry> = modules.iter().map(entry).collect();
        modules.sort_by_key(|entry| entry.begin());
        Tables { memory, options, modules, rules: HashMap::default(), context: UnwindContext::new() }
    }

    pub(super) fn rule(&mut self, address: u64) -> Result<Rc<Rule>, Cut> {
        if let Some(known) = self.rules.get(&address) {
            return known.clone();
        }
        let rule = self.find(address).map(Rc::new);
        self.rules.insert(address, rule.clone());
        rule
    }

    /// The bytes that the expressions of a table are in.
    pub(super) fn bytes(&self, table: TableId) -> &[u8] {
        let loaded = self.modules.get(table.module).and_then(|entry| entry.loaded.as_ref());
        let bytes = loaded.and_then(|loaded| {
            if table.is_debug_frame {
                loaded.debug_frame.as_ref().map(|(bytes, _)| &**bytes)
            } else {
                loaded.sections.eh_frame.as_ref().map(|section| &*section.bytes)
            }
        });
        bytes.unwrap_or_default()
    }

    /// The code at an address, from the module's file.
    pub(super) fn code(&mut self, address: u64, len: usize) -> Option<Vec<u8>> {
        let position = self.module_at(address)?;
        let relative = self.modules[position].module.relative(address)?;
        self.load(position).sections.loaded(relative, len as u64)
    }

    /// Whether two addresses are in the same module.
    pub(super) fn are_of_one_module(&self, one: u64, other: u64) -> bool {
        self.module_at(one).is_some_and(|module| self.module_at(other) == Some(module))
    }

    fn module_at(&self, address: u64) -> Option<usize> {
        let after = self.modules.partition_point(|entry| entry.begin() <= address);
        let position = after.checked_sub(1)?;
        self.modules[position].module.relative(address).map(|_| position)
    }

    fn load(&mut self, position: usize) -> &mut Loaded {
        let Tables { memory, options, modules, .. } = self;
        let Entry { module, loaded } = &mut modules[position];
        loaded.get_or_insert_with(|| Loaded::new(*memory, module, options))
    }

    fn find(&mut self, address: u64) -> Result<Rule, Cut> {
        let position = self.module_at(address).ok_or(Cut::NoModule)?;
        self.load(position);
        let Tables { options, modules, context, .. } = self;
        let Entry { module, loaded } = &mut modules[position];
        let (Some(relative), Some(loaded)) = (module.relative(address), loaded) else {
            return Err(Cut::NoModule);
        };
        let table = TableId { module: position, is_debug_frame: false };
        let rule = loaded.in_eh_frame(relative, table, context);
        let rule = rule.or_else(|| loaded.in_debug_frame(relative, table, context, module, options));
        let mut rule = rule.ok_or(Cut::NoTable)?;
        rule.begin = rule.begin.wrapping_add(module.load_bias);
        Ok(rule)
    }
}

impl Entry {
    fn begin(&self) -> u64 {
        self.module.load_bias.wrapping_add(self.module.begin)
    }
}

impl Loaded {
    fn new(memory: &dyn Memory, module: &Module, options: &Options) -> Loaded {
        let read_some = |address, into: &mut [u8]| memory.read_some(address, into);
        let of_file = UnwindSections::of_file(module, options).ok();
        let sections = of_file.or_else(|| UnwindSections::of_memory(&read_some, module));
        Loaded { sections: sections.unwrap_or_default(), ..Loaded::default() }
    }

    fn in_eh_frame(
        &mut self,
        address: u64,
        table: TableId,
        context: &mut UnwindContext<usize>,
    ) -> Option<Rule> {
        let Loaded { sections, index, .. } = self;
        let eh_frame = sections.eh_frame.as_ref()?;
        let bases = BaseAddresses::default().set_eh_frame(eh_frame.address).set_text(sections.text_address);
        let section = EhFrame::new(&eh_frame.bytes, LittleEndian);
        let by_index = sections.eh_frame_hdr.as_ref().and_then(UnwindIndex::new).and_then(|index| {
            let offset = index.entry(address)?.checked_sub(eh_frame.address)? as usize;
            section.fde_from_offset(&bases, offset.into(), EhFrame::cie_from_offset).ok()
        });
        let function = match by_index.filter(|function| function.contains(address)) {
            Some(function) => function,
            None => {
                // The index of a few files lacks functions, and that of others lacks altogether.
                let index = index.get_or_insert_with(|| functions(&section, &bases));
                let offset = find(index, address)?;
                section.fde_from_offset(&bases, offset.into(), EhFrame::cie_from_offset).ok()?
            }
        };
        rule_of(&section, &bases, &function, address, table, context)
    }

    fn in_debug_frame(
        &mut self,
        address: u64,
        table: TableId,
        context: &mut UnwindContext<usize>,
        module: &Module,
        options: &Options,
    ) -> Option<Rule> {
        let bases = BaseAddresses::default();
        let sections = &self.sections;
        let (bytes, index) = self.debug_frame.get_or_insert_with(|| {
            let bytes = sections.debug_frame(module, options).unwrap_or_default();
            let index = functions(&debug_frame(&bytes), &bases);
            (bytes, index)
        });
        let section = debug_frame(bytes);
        let offset = find(index, address)?;
        let function = section.fde_from_offset(&bases, offset.into(), DebugFrame::cie_from_offset).ok()?;
        rule_of(&section, &bases, &function, address, TableId { is_debug_frame: true, ..table }, context)
    }
}

fn debug_frame(bytes: &[u8]) -> DebugFrame<Bytes<'_>> {
    let mut section = DebugFrame::from(EndianSlice::new(bytes, LittleEndian));
    section.set_address_size(8);
    section
}

/// All functions of a table, by address. What follows a damaged entry is left out.
fn functions<'a, S>(section: &S, bases: &BaseAddresses) -> Vec<Function>
where
    S: UnwindSection<Bytes<'a>>,
    S::Offset: UnwindOffset<usize>,
{
    let mut found = Vec::new();
    let mut entries = section.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        if let Ok(function) = partial.parse(S::cie_from_offset) {
            found.push((function.initial_address(), function.end_address(), function.offset()));
        }
    }
    found.sort_unstable();
    found
}

/// The offset of the entry of the function that an address is in.
fn find(functions: &[Function], address: u64) -> Option<usize> {
    let after = functions.partition_point(|&(begin, _, _)| begin <= address);
    let &(_, end, offset) = functions[..after].last()?;
    (address < end).then_some(offset)
}

fn rule_of<'a, S: UnwindSection<Bytes<'a>>>(
    section: &S,
    bases: &BaseAddresses,
    function: &FrameDescriptionEntry<Bytes<'a>>,
    address: u64,
    table: TableId,
    context: &mut UnwindContext<usize>,
) -> Option<Rule> {
    let row = function.unwind_info_for_address(section, bases, context, address).ok()?;
    Some(Rule {
        begin: function.initial_address(),
        is_signal_frame: function.is_signal_trampoline(),
        table,
        encoding: function.cie().encoding(),
        cfa: row.cfa().clone(),
        ra: function.cie().return_address_register().0,
        registers: row.registers().map(|(register, rule)| (*register, rule.clone())).collect(),
    })
}
