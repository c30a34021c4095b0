//! Types and their layouts, as the debug information of a program describes them: for those who read its memory.
//!
//! It starts at a function, by its address, and follows types from there. Compilation units that nobody needs are not
//! looked at, and a unit is read when a type of it is asked for. It reads no memory, and gives no type a meaning.
//!
//! # Invariants
//!
//! Debug information may be damaged, or made to harm. No more than [`SCANNED_MAX_BYTES`] of entries are looked at for a
//! program, nothing is recursive, and all numbers are only what the information says: whoever uses them checks them.
//!
//! | file | what it has |
//! |---|---|
//! | `unit` | one compilation unit: its functions, its types, what surrounds them |

mod unit;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use gimli::{DebugInfoOffset, UnitHeader};
use read_rip_files::Module;

use super::debug_sections::{Bytes, empty, section};
use super::line_budget::LineBudget;
use super::locate::{Options, Search};
use super::problem::Problem;
use super::split::Split;
use unit::{Reference, Unit};

/// So much of a program's debug information is looked at.
const SCANNED_MAX_BYTES: usize = 160 << 20;
/// No more compilation units are told apart.
const UNITS_MAX: usize = 1 << 18;
/// So much of it is looked at to find which type a table of functions is of.
const SCANNED_FOR_VTABLES_BYTES: usize = SCANNED_MAX_BYTES / 2;
/// No more types are read.
const TYPES_MAX: usize = 1 << 16;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Type {
    /// Its name with the namespaces around it: `shop::transfer::{async_fn_env#0}`. Empty for a pointer, mostly.
    pub name: String,
    /// How long a value is, bytes.
    pub len_bytes: u64,
    pub members: Vec<Member>,
    /// If values are of one of several variants: these.
    pub variants: Option<Variants>,
    pub pointee: Option<TypeId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    /// Where it begins in the value, bytes.
    pub offset: u64,
    pub of: TypeId,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variants {
    /// The number that tells the variant; `None` if there is one variant.
    pub discriminant: Option<Member>,
    pub variants: Vec<Variant>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The number that tells it; `None` for the one that all other numbers tell.
    pub value: Option<u64>,
    pub member: Member,
    /// The source file, if there is one.
    pub file: Option<Arc<str>>,
    pub line: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeId(u32);

impl Type {
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }
}

impl Variants {
    /// The variant that a number of so many bytes tells.
    pub fn of_value(&self, value: u64, len_bytes: u64) -> Option<&Variant> {
        let mask = if len_bytes < 8 { (1 << (8 * len_bytes)) - 1 } else { u64::MAX };
        let tells = |variant: &&Variant| variant.value.is_some_and(|of| of & mask == value & mask);
        let exact = self.variants.iter().find(tells);
        exact.or_else(|| self.variants.iter().find(|variant| variant.value.is_none()))
    }
}

/// Types that were read: plain values, without the files.
#[derive(Clone, Debug, Default)]
pub struct KnownTypes {
    types: Vec<Option<Arc<Type>>>,
    vtables: HashMap<u64, Option<TypeId>>,
}

impl From<u32> for TypeId {
    /// The type at this position of [`KnownTypes`].
    fn from(position: u32) -> TypeId {
        TypeId(position)
    }
}

impl FromIterator<Type> for KnownTypes {
    fn from_iter<I: IntoIterator<Item = Type>>(types: I) -> KnownTypes {
        let types = types.into_iter().map(|of| Some(Arc::new(of))).collect();
        KnownTypes { types, ..KnownTypes::default() }
    }
}

impl KnownTypes {
    /// A type, if it was read.
    pub fn get(&self, id: TypeId) -> Option<Arc<Type>> {
        self.types.get(id.0 as usize)?.clone()
    }

    /// The type that a table of functions is of, if that was asked for.
    pub fn of_vtable(&self, address: u64) -> Option<TypeId> {
        self.vtables.get(&address).copied().flatten()
    }
}

pub struct Types {
    options: Options,
    /// Each with its debug information once it was asked about.
    modules: Vec<(Module, Option<Option<Debug>>)>,
    /// Where each type is described: module, unit, entry.
    places: Vec<(usize, Reference)>,
    ids: HashMap<(usize, Reference), TypeId>,
    /// Those that were asked for; `None` within if there is no such type.
    read: Vec<Option<Option<Arc<Type>>>>,
    /// The types of the tables of functions that were asked for, by actual address.
    vtables: HashMap<u64, Option<TypeId>>,
}

struct Debug {
    dwarf: Arc<gimli::Dwarf<Bytes>>,
    split: Split,
    headers: Vec<UnitHeader<Bytes>>,
    units: HashMap<usize, Option<Rc<Unit>>>,
    scanned_bytes: usize,
    /// The types of tables of functions, by relative address, once one was asked for.
    vtables: Option<HashMap<u64, Reference>>,
}

impl Types {
    /// Opens no files yet.
    pub(super) fn new(modules: Vec<Module>, options: Options) -> Types {
        let modules = modules.into_iter().map(|module| (module, None)).collect();
        let (ids, vtables) = (HashMap::new(), HashMap::new());
        Types { options, modules, places: Vec::new(), ids, read: Vec::new(), vtables }
    }

    /// The types that the local variable `variable` has in the functions that begin at these actual addresses.
    pub fn of_variable(&mut self, functions: &[u64], variable: &str) -> Vec<Option<TypeId>> {
        let mut found = vec![None; functions.len()];
        for module in 0..self.modules.len() {
            let of = &self.modules[module].0;
            // By the relative address, where in the result.
            let relative =
                functions.iter().enumerate().filter_map(|(at, &address)| Some((of.relative(address)?, at)));
            let wanted: HashMap<u64, usize> = relative.collect();
            if wanted.is_empty() {
                continue;
            }
            let Some(debug) = self.debug(module) else { continue };
            for (address, reference) in debug.variables(&wanted, variable) {
                if let Some(&at) = wanted.get(&address) {
                    found[at] = self.id(module, reference);
                }
            }
            // Several functions may have one address.
            for (at, &address) in functions.iter().enumerate() {
                let of = &self.modules[module].0;
                let same = of.relative(address).and_then(|relative| wanted.get(&relative));
                if let Some(&same) = same {
                    found[at] = found[same];
                }
            }
        }
        found
    }

    /// A type; `None` if it is not described.
    pub fn get(&mut self, id: TypeId) -> Option<Arc<Type>> {
        let at = id.0 as usize;
        if let Some(known) = self.read.get(at)? {
            return known.clone();
        }
        let (module, reference) = self.places[at];
        let found = self.debug(module).and_then(|debug| {
            let unit = debug.unit(reference.unit)?;
            unit.read_type(reference.offset, debug)
        });
        let found = found.map(|(mut read, references)| {
            let mut ids = references.into_iter().map(|reference| self.id(module, reference));
            read.resolve(&mut ids);
            Arc::new(read)
        });
        self.read[at] = Some(found.clone());
        found
    }

    /// The type of the values that this table of functions, at its actual address, is of: what a `dyn` is.
    pub fn of_vtable(&mut self, address: u64) -> Option<TypeId> {
        if let Some(&known) = self.vtables.get(&address) {
            return known;
        }
        let found = (0..self.modules.len()).find_map(|module| {
            let relative = self.modules[module].0.relative(address)?;
            let &reference = self.debug(module)?.vtables().get(&relative)?;
            self.id(module, reference)
        });
        if self.vtables.len() < TYPES_MAX {
            self.vtables.insert(address, found);
        }
        found
    }

    /// Whether the module that has an address brings along what ends a panic by unwinding: then it is not built to
    /// abort.
    pub fn unwinds(&mut self, address: u64) -> bool {
        let module = self.modules.iter().position(|(module, _)| module.relative(address).is_some());
        module.and_then(|module| self.debug(module)).is_some_and(|debug| debug.has_unit_of("panic_unwind"))
    }

    /// What was read, without the files.
    pub fn known(self) -> KnownTypes {
        KnownTypes { types: self.read.into_iter().map(Option::flatten).collect(), vtables: self.vtables }
    }

    fn id(&mut self, module: usize, reference: Reference) -> Option<TypeId> {
        if let Some(&known) = self.ids.get(&(module, reference)) {
            return Some(known);
        }
        if self.places.len() >= TYPES_MAX {
            return None;
        }
        let id = TypeId(self.places.len() as u32);
        self.places.push((module, reference));
        self.read.push(None);
        self.ids.insert((module, reference), id);
        Some(id)
    }

    fn debug(&mut self, module: usize) -> Option<&mut Debug> {
        let (of, debug) = &mut self.modules[module];
        debug.get_or_insert_with(|| Debug::open(of, &self.options)).as_mut()
    }
}

impl Debug {
    fn open(module: &Module, options: &Options) -> Option<Debug> {
        let files = Search { module, options }.files();
        let image = files.debug.iter().chain(&files.own).find(|image| image.has_debug_info())?;
        let load = |id: gimli::SectionId| {
            if is_wanted(id) { section(image, id.name()) } else { Ok(empty(image)) }
        };
        let dwarf = gimli::Dwarf::load(load).map_err(|_: Problem| ()).ok()?;
        let budget = Rc::new(LineBudget::default());
        let split = Split::new(&files, options.root.as_deref(), image.endian, budget);
        let mut headers = Vec::new();
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            if headers.len() >= UNITS_MAX {
                break;
            }
            headers.push(header);
        }
        let dwarf = Arc::new(dwarf);
        Some(Debug { dwarf, split, headers, units: HashMap::new(), scanned_bytes: 0, vtables: None })
    }

    /// The types of a variable in the functions at these relative addresses.
    fn variables(&mut self, wanted: &HashMap<u64, usize>, variable: &str) -> Vec<(u64, Reference)> {
        let mut sorted: Vec<u64> = wanted.keys().copied().collect();
        sorted.sort_unstable();
        let has_code: Vec<usize> = (0..self.headers.len())
            .filter(|&at| unit::has_any(&self.dwarf, &self.headers[at], &sorted))
            .collect();
        let mut found = Vec::new();
        for at in has_code {
            let Some(unit) = self.unit(at) else { continue };
            found.extend(unit.variables(&sorted, variable, self));
        }
        found
    }

    /// The types of the tables of functions that units describe. A table may be in the unit of any function that makes
    /// a `dyn` of the type.
    fn vtables(&mut self) -> &HashMap<u64, Reference> {
        let known = self.vtables.take().unwrap_or_else(|| {
            let mut found = HashMap::new();
            for at in 0..self.headers.len() {
                let is_read = self.units.contains_key(&at);
                if is_read || self.scanned_bytes < SCANNED_FOR_VTABLES_BYTES {
                    found.extend(self.unit(at).iter().flat_map(|unit| unit.vtables(self)));
                }
            }
            found
        });
        self.vtables.insert(known)
    }

    /// A compilation unit, read when it is first needed; of split debug information, the one in the other file.
    fn unit(&mut self, at: usize) -> Option<Rc<Unit>> {
        if let Some(known) = self.units.get(&at) {
            return known.clone();
        }
        let left = SCANNED_MAX_BYTES.saturating_sub(self.scanned_bytes);
        let unit = self.headers.get(at).and_then(|header| {
            let unit = Unit::read(at, header.clone(), &self.dwarf, &self.split, left)?;
            self.scanned_bytes += unit.len_bytes();
            Some(Rc::new(unit))
        });
        self.units.insert(at, unit.clone());
        unit
    }

    /// The unit that has an entry, and where in it.
    fn reference(&self, offset: DebugInfoOffset) -> Option<Reference> {
        let begin =
            |header: &UnitHeader<Bytes>| header.debug_info_offset().map_or(usize::MAX, |begin| begin.0);
        let after = self.headers.partition_point(|header| begin(header) <= offset.0);
        let unit = after.checked_sub(1)?;
        let of = offset.to_unit_offset(&self.headers[unit])?;
        Some(Reference { unit, offset: of.0 })
    }

    /// Whether code of a crate was linked.
    fn has_unit_of(&self, name: &str) -> bool {
        self.headers.iter().any(|header| unit::has_name(&self.dwarf, header, name))
    }
}

/// Whether types need a section.
fn is_wanted(id: gimli::SectionId) -> bool {
    use gimli::SectionId as Id;
    matches!(
        id,
        Id::DebugAbbrev
            | Id::DebugAddr
            | Id::DebugInfo
            | Id::DebugLine
            | Id::DebugLineStr
            | Id::DebugRanges
            | Id::DebugRngLists
            | Id::DebugStr
            | Id::DebugStrOffsets
    )
}

#[cfg(test)]
mod tests;
