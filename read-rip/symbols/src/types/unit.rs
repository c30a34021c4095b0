//! One compilation unit: its functions, its types, and the namespaces around them.
//!
//! It opens no files, but for split debug information.

use std::sync::Arc;

use gimli::{AttributeValue, DebuggingInformationEntry, EntriesRaw, Reader, UnitHeader, UnitOffset};

use super::{Debug, Member, Type, TypeId, Variant, Variants};
use crate::debug_sections::Bytes;
use crate::split::Split;

/// No more members of a type, or variants, are read.
const MEMBERS_MAX: usize = 4096;
/// No longer name is read.
const NAME_MAX_BYTES: usize = 16 << 10;
/// No more entries are in one another.
const NESTING_MAX: usize = 64;
/// A type whose number is not known yet.
const UNKNOWN: TypeId = TypeId(u32::MAX);

type Entry = DebuggingInformationEntry<Bytes>;

/// Where an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reference {
    /// The unit, by its position.
    pub(super) unit: usize,
    /// Where in the unit.
    pub(super) offset: usize,
}

pub(super) struct Unit {
    at: usize,
    dwarf: Arc<gimli::Dwarf<Bytes>>,
    unit: gimli::Unit<Bytes>,
    /// If it is in a file of its own: what the program has of it, with the names of source files. It refers to no other
    /// unit.
    skeleton: Option<(Arc<gimli::Dwarf<Bytes>>, gimli::Unit<Bytes>)>,
    /// Namespaces and types, by where they are, with what is around each.
    scopes: Vec<(usize, Option<u32>)>,
    /// Functions that begin at addresses: the address, and where the function is.
    functions: Vec<(u64, usize)>,
    /// Where variables are that are in nothing else. Tables of functions are among them.
    outer_variables: Vec<usize>,
}

/// Whether a unit has code at any of these addresses, which are in order. In doubt, it has.
pub(super) fn has_any(dwarf: &gimli::Dwarf<Bytes>, header: &UnitHeader<Bytes>, addresses: &[u64]) -> bool {
    let Ok(unit) = dwarf.unit(header.clone()) else { return false };
    let Ok(mut ranges) = dwarf.unit_ranges(&unit) else { return true };
    while let Ok(Some(range)) = ranges.next() {
        let first = addresses.partition_point(|&address| address < range.begin);
        if addresses.get(first).is_some_and(|&address| address < range.end) {
            return true;
        }
    }
    false
}

/// Whether a unit is of a crate.
pub(super) fn has_name(dwarf: &gimli::Dwarf<Bytes>, header: &UnitHeader<Bytes>, name: &str) -> bool {
    let Ok(unit) = dwarf.unit(header.clone()) else { return false };
    unit.name.as_ref().is_some_and(|of| of.to_string_lossy().is_ok_and(|of| of.contains(name)))
}

impl Unit {
    /// Reads a unit, if it is not longer than this.
    pub(super) fn read(
        at: usize,
        header: UnitHeader<Bytes>,
        dwarf: &Arc<gimli::Dwarf<Bytes>>,
        split: &Split,
        len_max_bytes: usize,
    ) -> Option<Unit> {
        let skeleton = dwarf.unit(header).ok()?;
        let other = skeleton.dwo_id.and_then(|dwo_id| {
            let name = skeleton.dwo_name().ok()??;
            let path = dwarf.attr_string(&skeleton, name).ok()?;
            let comp_dir = skeleton.comp_dir.clone();
            let wanted =
                addr2line::SplitDwarfLoad { dwo_id, comp_dir, path: Some(path), parent: dwarf.clone() };
            let dwarf = split.load(&wanted)?;
            let mut unit = dwarf.unit(dwarf.units().next().ok()??).ok()?;
            unit.copy_relocated_attributes(&skeleton);
            Some((dwarf, unit))
        });
        let (dwarf, unit, skeleton) = match other {
            Some((of, unit)) => (of, unit, Some((dwarf.clone(), skeleton))),
            None => (dwarf.clone(), skeleton, None),
        };
        let (scopes, functions, outer_variables) = (Vec::new(), Vec::new(), Vec::new());
        let mut read = Unit { at, dwarf, unit, skeleton, scopes, functions, outer_variables };
        if read.len_bytes() > len_max_bytes {
            return None;
        }
        // What is damaged ends early.
        let _ = read.scan();
        Some(read)
    }

    pub(super) fn len_bytes(&self) -> usize {
        self.unit.header.length_including_self()
    }

    fn scan(&mut self) -> gimli::Result<()> {
        let mut entries = self.unit.entries_raw(None)?;
        let mut around: Vec<(isize, u32)> = Vec::new();
        while !entries.is_empty() {
            let (offset, depth) = (entries.next_offset().0, entries.next_depth());
            let Some(abbreviation) = entries.read_abbreviation()? else { continue };
            while around.last().is_some_and(|&(of, _)| of >= depth) {
                around.pop();
            }
            match abbreviation.tag() {
                gimli::DW_TAG_namespace
                | gimli::DW_TAG_structure_type
                | gimli::DW_TAG_union_type
                | gimli::DW_TAG_enumeration_type => {
                    self.scopes.push((offset, around.last().map(|&(_, scope)| scope)));
                    if abbreviation.has_children() && around.len() < NESTING_MAX {
                        around.push((depth, (self.scopes.len() - 1) as u32));
                    }
                    entries.skip_attributes(abbreviation.attributes())?;
                }
                gimli::DW_TAG_subprogram => {
                    for &attribute in abbreviation.attributes() {
                        let attribute = entries.read_attribute(attribute)?;
                        if attribute.name() == gimli::DW_AT_low_pc
                            && let Ok(Some(begin)) = self.dwarf.attr_address(&self.unit, attribute.value())
                        {
                            self.functions.push((begin, offset));
                        }
                    }
                }
                gimli::DW_TAG_variable if depth == 1 => {
                    self.outer_variables.push(offset);
                    entries.skip_attributes(abbreviation.attributes())?;
                }
                _ => entries.skip_attributes(abbreviation.attributes())?,
            }
        }
        self.functions.sort_unstable();
        Ok(())
    }

    /// The types of a variable in the functions that begin at these addresses.
    pub(super) fn variables(&self, addresses: &[u64], variable: &str, of: &Debug) -> Vec<(u64, Reference)> {
        let functions = self.functions.iter().filter(|(begin, _)| addresses.binary_search(begin).is_ok());
        let found = functions
            .filter_map(|&(begin, offset)| Some((begin, self.variable(offset, variable, of).ok()??)));
        found.collect()
    }

    /// The tables of functions of a `dyn`: where each is, and the type of the values that it is of.
    pub(super) fn vtables(&self, of: &Debug) -> Vec<(u64, Reference)> {
        let found = self.outer_variables.iter().filter_map(|&offset| {
            let variable = self.unit.entry(UnitOffset(offset)).ok()?;
            let table = self.type_of(&variable, of).filter(|table| table.unit == self.at)?;
            let table = self.unit.entry(UnitOffset(table.offset)).ok()?;
            let concrete = self.reference(table.attr_value(gimli::DW_AT_containing_type)?, of)?;
            let mut place = variable.attr_value(gimli::DW_AT_location)?.exprloc_value()?.0;
            let address = match gimli::Operation::parse(&mut place, self.unit.encoding()).ok()? {
                gimli::Operation::Address { address } => address,
                gimli::Operation::AddressIndex { index } => self.dwarf.address(&self.unit, index).ok()?,
                _ => return None,
            };
            Some((address, concrete))
        });
        found.collect()
    }

    fn variable(&self, function: usize, variable: &str, of: &Debug) -> gimli::Result<Option<Reference>> {
        let mut found = None;
        self.below(function, |_, _, entry| {
            let is_wanted = entry.tag() == gimli::DW_TAG_variable && self.text(entry) == variable;
            if is_wanted && found.is_none() {
                found = self.type_of(entry, of);
            }
            found.is_none()
        })?;
        Ok(found)
    }

    /// Calls `each` for an entry, and for those in it, with its depth, until that is false.
    fn below(&self, offset: usize, mut each: impl FnMut(isize, usize, &Entry) -> bool) -> gimli::Result<()> {
        let mut entries: EntriesRaw<'_, Bytes> = self.unit.entries_raw(Some(UnitOffset(offset)))?;
        let mut entry = Entry::null();
        while !entries.is_empty() {
            let (offset, depth) = (entries.next_offset().0, entries.next_depth());
            if !entries.read_entry(&mut entry)? {
                if entries.next_depth() <= 0 {
                    break;
                }
                continue;
            }
            if !each(depth, offset, &entry) || entries.next_depth() <= 0 {
                break;
            }
        }
        Ok(())
    }

    /// A type, and what its members' types are, in the order of [`Type::resolve`].
    pub(super) fn read_type(&self, offset: usize, of: &Debug) -> Option<(Type, Vec<Reference>)> {
        let (mut read, mut references) = (Type::default(), Vec::new());
        let mut is_type = false;
        let mut discriminant: Option<usize> = None;
        let mut variant: Option<Option<u64>> = None;
        let mut variants = Vec::new();
        let (mut of_discriminant, mut of_variants) = (None, Vec::new());
        let walked = self.below(offset, |depth, at, entry| {
            let within = |tag| entry.tag() == tag;
            if depth == 0 {
                is_type = !within(gimli::DW_TAG_subprogram);
                read.len_bytes = number(entry, gimli::DW_AT_byte_size).unwrap_or(0);
                read.name = self.name(offset, entry);
                if within(gimli::DW_TAG_pointer_type) || within(gimli::DW_TAG_reference_type) {
                    if let Some(reference) = self.type_of(entry, of) {
                        read.pointee = Some(UNKNOWN);
                        references.push(reference);
                    }
                    return false;
                }
                return is_type;
            }
            if read.members.len() + variants.len() >= MEMBERS_MAX {
                return false;
            }
            match (depth, entry.tag()) {
                (1, gimli::DW_TAG_member) => {
                    if let Some((member, reference)) = self.member(entry, of) {
                        read.members.push(member);
                        references.push(reference);
                    }
                }
                (1, gimli::DW_TAG_variant_part) => {
                    discriminant = match entry.attr_value(gimli::DW_AT_discr) {
                        Some(AttributeValue::UnitRef(at)) => Some(at.0),
                        _ => None,
                    };
                    read.variants = Some(Variants { discriminant: None, variants: Vec::new() });
                }
                (2, gimli::DW_TAG_member) if discriminant == Some(at) => {
                    if let (Some(variants), Some((member, reference))) =
                        (&mut read.variants, self.member(entry, of))
                    {
                        variants.discriminant = Some(member);
                        of_discriminant = Some(reference);
                    }
                }
                (2, gimli::DW_TAG_variant) => variant = Some(number(entry, gimli::DW_AT_discr_value)),
                (3, gimli::DW_TAG_member) => {
                    if let (Some(value), Some((member, reference))) = (variant, self.member(entry, of)) {
                        let line = number(entry, gimli::DW_AT_decl_line);
                        let line = line.and_then(|line| u32::try_from(line).ok()).filter(|&line| line > 0);
                        variants.push(Variant { value, member, file: self.file(entry), line });
                        of_variants.push(reference);
                    }
                }
                _ => {}
            }
            true
        });
        walked.ok()?;
        if let Some(of) = &mut read.variants {
            of.variants = variants;
            references.extend(of_discriminant.into_iter().chain(of_variants));
        }
        is_type.then_some((read, references))
    }

    fn member(&self, entry: &Entry, of: &Debug) -> Option<(Member, Reference)> {
        let offset = number(entry, gimli::DW_AT_data_member_location).unwrap_or(0);
        let reference = self.type_of(entry, of)?;
        Some((Member { name: self.text(entry), offset, of: UNKNOWN }, reference))
    }

    fn type_of(&self, entry: &Entry, of: &Debug) -> Option<Reference> {
        self.reference(entry.attr_value(gimli::DW_AT_type)?, of)
    }

    fn reference(&self, value: AttributeValue<Bytes>, of: &Debug) -> Option<Reference> {
        match value {
            AttributeValue::UnitRef(offset) => Some(Reference { unit: self.at, offset: offset.0 }),
            AttributeValue::DebugInfoRef(offset) if self.skeleton.is_none() => of.reference(offset),
            _ => None,
        }
    }

    fn text(&self, entry: &Entry) -> String {
        let text = entry.attr_value(gimli::DW_AT_name);
        let text = text.and_then(|text| self.dwarf.attr_string(&self.unit, text).ok());
        let text = text.filter(|text| text.len() <= NAME_MAX_BYTES);
        text.and_then(|text| Some(text.to_string_lossy().ok()?.into_owned())).unwrap_or_default()
    }

    /// The name of a type with what is around it.
    fn name(&self, offset: usize, entry: &Entry) -> String {
        let mut parts = vec![self.text(entry)];
        let scope = self.scopes.binary_search_by_key(&offset, |&(at, _)| at);
        let mut around = scope.ok().and_then(|scope| self.scopes[scope].1);
        while let Some(scope) = around.filter(|_| parts.len() <= NESTING_MAX) {
            let (at, next) = self.scopes[scope as usize];
            if let Ok(entry) = self.unit.entry(UnitOffset(at)) {
                parts.push(self.text(&entry));
            }
            around = next;
        }
        parts.reverse();
        parts.join("::")
    }

    /// The source file that an entry names.
    fn file(&self, entry: &Entry) -> Option<Arc<str>> {
        let index = match entry.attr_value(gimli::DW_AT_decl_file)? {
            AttributeValue::FileIndex(index) => index,
            other => other.udata_value()?,
        };
        let skeleton = self.skeleton.as_ref().map(|(dwarf, unit)| (dwarf, unit));
        let (dwarf, unit) = skeleton.unwrap_or((&self.dwarf, &self.unit));
        let program = unit.line_program.as_ref()?;
        let header = program.header();
        let file = header.file(index)?;
        let text = |value| {
            let text = dwarf.attr_string(unit, value).ok()?;
            Some(text)
                .filter(|text| text.len() <= NAME_MAX_BYTES)?
                .to_string_lossy()
                .ok()
                .map(|text| text.into_owned())
        };
        let name = text(file.path_name())?;
        if name.starts_with('/') {
            return Some(name.into());
        }
        let directory = file.directory(header).and_then(text).unwrap_or_default();
        let path = if directory.is_empty() { name } else { format!("{directory}/{name}") };
        if path.starts_with('/') {
            return Some(path.into());
        }
        let whole = unit.comp_dir.as_ref().and_then(|of| of.to_string_lossy().ok());
        Some(whole.map_or(path.clone(), |whole| format!("{whole}/{path}")).into())
    }
}

impl Type {
    /// Puts in the numbers of the types that it refers to, in the order in which `read_type` found them. A member
    /// without a number is left out.
    pub(super) fn resolve(&mut self, ids: &mut dyn Iterator<Item = Option<TypeId>>) {
        if self.pointee.is_some() {
            self.pointee = ids.next().flatten();
            return;
        }
        let mut put = |member: &mut Member| {
            member.of = ids.next().flatten().unwrap_or(UNKNOWN);
            member.of != UNKNOWN
        };
        self.members.retain_mut(&mut put);
        // Without the number, nothing tells the variant.
        let has_number = |of: &mut Variants| of.discriminant.as_mut().is_none_or(&mut put);
        self.variants = self.variants.take_if(has_number);
        if let Some(of) = &mut self.variants {
            of.variants.retain_mut(|variant| put(&mut variant.member));
        }
    }
}

fn number(entry: &Entry, name: gimli::DwAt) -> Option<u64> {
    let value = entry.attr_value(name)?;
    value.udata_value().or_else(|| value.sdata_value().map(|value| value as u64))
}
