//! Attributes of instances of Python's classes, from 3.11 on.
//!
//! An instance has the values of its attributes in an array, in the order of the names that its class keeps for all
//! instances, until something asks for its dictionary. The names are compared, so a wrong offset finds nothing.

use super::layout::{AttributesAt, Blocks};
use super::objects::{Objects, TYPE};

/// In `PyTypeObject`: its name, a text that ends with a zero.
const TYPE_NAME: u64 = 24;
/// In `PyDictObject`: its keys, and the values if other dictionaries have the same keys.
const KEYS: u64 = 32;
const VALUES: u64 = 40;
/// In `PyDictKeysObject`: how long its index is, what its entries are, how many, and where the index begins.
const INDEX_LOG_BYTES: u64 = 9;
const KIND: u64 = 10;
const ENTRIES_LEN: u64 = 24;
const INDEX: u64 = 32;
/// The entries of dictionaries with other keys than strings have a hash too.
const KIND_GENERAL: u8 = 0;
/// Instances with more attributes are not searched.
const ATTRIBUTES_MAX: u64 = 256;
/// No name of a type is longer, in bytes.
const TYPE_NAME_MAX: usize = 64;

impl Objects<'_> {
    /// What the type of an object is called, as `_thread.lock`.
    pub(super) fn type_name(&self, object: u64) -> Option<String> {
        let of_type = self.pointer(object, TYPE)?;
        let name = self.pointer(of_type, TYPE_NAME)?;
        let mut bytes = [0; TYPE_NAME_MAX];
        let len = self.memory.read_some(name, &mut bytes);
        let end = bytes[..len].iter().position(|&byte| byte == 0)?;
        std::str::from_utf8(&bytes[..end]).ok().map(str::to_owned)
    }

    /// The attribute of this name that an instance has itself.
    pub(super) fn attribute(&self, object: u64, name: &str) -> Option<u64> {
        let at = self.layout.blocks?;
        let word = |before: u64| self.pointer(object.checked_sub(8 * before)?, 0);
        let of_class = |values: u64| self.among_values(object, values, at, name);
        match (at.attributes, word(3)) {
            (AttributesAt::Apart, Some(dictionary)) => self.in_dictionary(dictionary, at, name),
            (AttributesAt::Apart, None) => of_class(word(4)?),
            (AttributesAt::Tagged, Some(values)) if values & 1 == 1 => of_class(values + 1),
            (AttributesAt::Tagged | AttributesAt::Inline, Some(dictionary)) => {
                self.in_dictionary(dictionary, at, name)
            }
            (AttributesAt::Tagged, None) => None,
            (AttributesAt::Inline, None) => of_class(object.checked_add(16)?),
        }
    }

    /// The value in an array for the names that the class of an instance keeps.
    fn among_values(&self, object: u64, values: u64, at: Blocks, name: &str) -> Option<u64> {
        let keys = self.pointer(self.pointer(object, TYPE)?, at.keys)?;
        let (index, _) = self.entry(keys, name)?;
        self.value(values, index, at)
    }

    fn in_dictionary(&self, dictionary: u64, at: Blocks, name: &str) -> Option<u64> {
        let (index, value) = self.entry(self.pointer(dictionary, KEYS)?, name)?;
        match self.pointer(dictionary, VALUES) {
            Some(values) => self.value(values, index, at),
            None => self.pointer(value, 0),
        }
    }

    fn value(&self, values: u64, index: u64, at: Blocks) -> Option<u64> {
        let head_bytes = if at.attributes == AttributesAt::Inline { 8 } else { 0 };
        self.pointer(values, head_bytes + 8 * index)
    }

    /// The position of a name among keys, and where the value beside it is.
    fn entry(&self, keys: u64, name: &str) -> Option<(u64, u64)> {
        let [log_bytes, kind] = self.memory.bytes(keys.checked_add(INDEX_LOG_BYTES)?).ok()?;
        const { assert!(KIND == INDEX_LOG_BYTES + 1) };
        let len =
            self.memory.u64(keys.checked_add(ENTRIES_LEN)?).ok().filter(|&len| len <= ATTRIBUTES_MAX)?;
        let first = keys.checked_add(INDEX)?.checked_add(1_u64.checked_shl(log_bytes.into())?)?;
        let (entry_bytes, key_at) = if kind == KIND_GENERAL { (24, 8) } else { (16, 0) };
        let key = |index: u64| first.checked_add(entry_bytes * index + key_at);
        let is_it = |&index: &u64| {
            let text = key(index).and_then(|at| self.text(self.pointer(at, 0)?));
            text.is_some_and(|text| text == name)
        };
        let index = (0..len).find(is_it)?;
        Some((index, key(index)?.checked_add(8)?))
    }
}
