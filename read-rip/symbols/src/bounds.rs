//! Refuses debug information that gimli or addr2line could not read safely.

use super::debug_sections::Bytes;
use super::line_budget::LineBudget;
use super::problem::Problem;

/// addr2line descends into the tree of inlined calls by recursion. A file whose tree is deeper than any compiler's
/// would overflow the stack, and is refused.
const NESTING_MAX: isize = 1000;

/// Refuses what would take too much stack, memory or time.
pub(super) fn check(dwarf: &gimli::Dwarf<Bytes>, budget: &LineBudget) -> Result<(), Problem> {
    check_nesting(dwarf)?;
    budget.spend(dwarf)
}

/// Refuses entries that are nested deeper than [`NESTING_MAX`].
///
/// A unit that cannot be parsed ends early, here and in addr2line. Neither descends into its rest.
fn check_nesting(dwarf: &gimli::Dwarf<Bytes>) -> Result<(), Problem> {
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let Ok(abbreviations) = dwarf.abbreviations(&header) else { continue };
        let Ok(mut entries) = header.entries_raw(&abbreviations, None) else { continue };
        while !entries.is_empty() {
            if entries.next_depth() > NESTING_MAX {
                return Err(Problem::Damaged("functions are nested too deeply".to_owned()));
            }
            let Ok(abbreviation) = entries.read_abbreviation() else { break };
            let Some(abbreviation) = abbreviation else { continue };
            if entries.skip_attributes(abbreviation.attributes()).is_err() {
                break;
            }
        }
    }
    Ok(())
}
