//! Refuses units of debug information that addr2line could not read safely.

use std::cell::RefCell;

use super::debug_sections::Bytes;
use super::problem::Problem;
use crate::hash::HashMap;

/// addr2line descends into the tree of inlined calls by recursion. A unit whose tree is deeper than any compiler's
/// would overflow the stack, and is refused.
const NESTING_MAX: isize = 1000;

/// Which units of a file were looked at. Only those are in which an address is looked up: to look at all of them would
/// take seconds for a large program.
#[derive(Default)]
pub(super) struct Nesting {
    /// By the unit's offset and, if it is split, its id: whether it is refused.
    known: RefCell<HashMap<(usize, Option<u64>), bool>>,
}

impl Nesting {
    /// Refuses a unit whose entries are nested deeper than [`NESTING_MAX`].
    pub(super) fn check(&self, unit: &gimli::Unit<Bytes>) -> Result<(), Problem> {
        let offset = unit.header.debug_info_offset().map_or(usize::MAX, |offset| offset.0);
        let key = (offset, unit.dwo_id.map(|id| id.0));
        let is_too_deep = *self.known.borrow_mut().entry(key).or_insert_with(|| is_too_deep(unit));
        match is_too_deep {
            true => Err(Problem::Damaged("functions are nested too deeply".to_owned())),
            false => Ok(()),
        }
    }
}

/// A unit that cannot be parsed ends early, here and in addr2line. Neither descends into its rest.
fn is_too_deep(unit: &gimli::Unit<Bytes>) -> bool {
    let Ok(mut entries) = unit.header.entries_raw(&unit.abbreviations, None) else { return false };
    while !entries.is_empty() {
        if entries.next_depth() > NESTING_MAX {
            return true;
        }
        let Ok(abbreviation) = entries.read_abbreviation() else { break };
        let Some(abbreviation) = abbreviation else { continue };
        if entries.skip_attributes(abbreviation.attributes()).is_err() {
            break;
        }
    }
    false
}
