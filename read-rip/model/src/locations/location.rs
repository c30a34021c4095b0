//! A location: where a PC is in the source.
//!
//! It looks nothing up.

use std::sync::Arc;

use read_rip_symbols::{Frame, Whose};

/// What stands for a function that nothing names.
pub(super) const UNKNOWN: &str = "unknown";

/// An index into [`Locations`](super::Locations).
pub type LocationId = usize;

/// Where a PC is.
#[derive(Clone, Debug, Default)]
pub struct Location {
    /// Actual address, as it was recorded.
    pub pc: u64,
    /// Index of the module; `None` if no module is known.
    pub module: Option<usize>,
    /// The name of the module's file.
    pub module_name: Option<Arc<str>>,
    /// Module-relative address; the actual address if no module is known.
    pub address: u64,
    /// Indices of the sites at this address, one for each different site. There are several if the linker folded
    /// functions with equal instructions. If there are more than [`MARKS_MAX`](super::MARKS_MAX), the list is
    /// incomplete.
    pub sites: Vec<usize>,
    /// The innermost function around the mark, without type arguments. If the linker folded several functions: all that
    /// symbols name, or one of them.
    pub function: Arc<str>,
    /// The function with its type arguments.
    pub full_function: Arc<str>,
    /// Source file and line.
    pub source: Option<(Arc<str>, u32)>,
    /// The column of the source, from 1; `None`: not known.
    pub column: Option<u32>,
    /// Source file and line of other marks that the linker folded into this one. Which of the marks was passed is
    /// not known.
    pub folded: Vec<(Arc<str>, u32)>,
    /// Whether the folded marks differ in meaning, so that the meaning of an event is not known.
    pub is_ambiguous: bool,
    /// The functions into which the function was inlined, innermost first.
    pub callers: Vec<Frame>,
    /// The calls further out that the stack of the thread shows, innermost first, each with what it was inlined into.
    pub outer: Vec<Frame>,
    /// The module and the address of the call among these that is the user's line; `None` if that is not further out.
    pub users_call: Option<(usize, u64)>,
    /// Whose code the function is.
    pub whose: Whose,
    /// Whether the source is that of a wrapper, because the wrapper's caller is not known.
    pub is_in_wrapper: bool,
}

impl Location {
    /// A location in no known module.
    pub(super) fn unknown(pc: u64) -> Location {
        let function: Arc<str> = UNKNOWN.into();
        Location { pc, address: pc, full_function: function.clone(), function, ..Location::default() }
    }

    /// Whether nothing names the function.
    pub fn has_no_function(&self) -> bool {
        is_no_function(&self.function)
    }

    /// The module and the function that was compiled: the one into which the others were inlined. `None` if nothing
    /// names it, or if the linker folded several functions.
    pub fn compiled_function(&self) -> Option<(usize, Arc<str>)> {
        if self.has_no_function() || !self.folded.is_empty() || self.is_in_wrapper {
            return None;
        }
        let outermost =
            self.callers.last().map_or(Some(&self.full_function), |caller| caller.function.as_ref());
        Some((self.module?, outermost?.clone()))
    }
}

/// Whether this stands for a function that nothing names.
pub fn is_no_function(name: &str) -> bool {
    matches!(name, "" | UNKNOWN)
}
