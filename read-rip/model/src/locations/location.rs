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
    /// Where the compiled code begins, relative to the module, if the function has no name of its own, or the one into
    /// which it was inlined has none. All closures of a function may have one name.
    pub code_begin: Option<u64>,
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

    /// The module and the function that was compiled, the one into which the others were inlined: its name, and where
    /// its code begins if others have that name. `None` if nothing names it, or if the linker folded several functions.
    pub fn compiled_function(&self) -> Option<(usize, Arc<str>, Option<u64>)> {
        if self.has_no_function() || !self.folded.is_empty() || self.is_in_wrapper {
            return None;
        }
        let outermost = self.outermost()?;
        let is_known = !is_shared_name(outermost) || self.code_begin.is_some();
        is_known.then(|| Some((self.module?, outermost.clone(), self.code_begin)))?
    }

    /// The function, for comparisons: its name, and where its code begins if others may have that name.
    pub fn identity(&self) -> (&str, Option<u64>) {
        (&self.full_function, self.code_begin.filter(|_| is_shared_name(&self.full_function)))
    }

    /// Whether another location may be in the same function.
    pub fn may_be_in_function_of(&self, other: &Location) -> bool {
        let ((own, begin), (name, of_other)) = (self.identity(), other.identity());
        own == name && begin.zip(of_other).is_none_or(|(begin, of_other)| begin == of_other)
    }

    /// Whether others may have the name of the function, or of the one into which it was inlined.
    pub(super) fn has_shared_name(&self) -> bool {
        is_shared_name(&self.full_function) || self.outermost().is_some_and(|name| is_shared_name(name))
    }

    fn outermost(&self) -> Option<&Arc<str>> {
        self.callers.last().map_or(Some(&self.full_function), |caller| caller.function.as_ref())
    }
}

/// Whether several functions may have this name: it is that of a closure or of an async block. The older mangling of
/// Rust does not number them, and debug information does not say which function they are in.
pub fn is_shared_name(name: &str) -> bool {
    name.ends_with("{{closure}}") || name.starts_with("{closure#")
}

/// Whether this stands for a function that nothing names.
pub fn is_no_function(name: &str) -> bool {
    matches!(name, "" | UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, code_begin: u64) -> Location {
        let (function, code_begin) = (Arc::from(name), Some(code_begin));
        Location {
            module: Some(0),
            full_function: Arc::clone(&function),
            function,
            code_begin,
            ..Location::default()
        }
    }

    #[test]
    fn closures_of_one_function_are_different_functions() {
        for name in ["app::main::{{closure}}", "{closure#0}"] {
            let (one, other) = (function(name, 0x10), function(name, 0x20));
            assert_ne!(one.identity(), other.identity());
            assert_ne!(one.compiled_function(), other.compiled_function());
            assert!(!one.may_be_in_function_of(&other) && one.may_be_in_function_of(&one.clone()));
            let unknown = Location { code_begin: None, ..one.clone() };
            assert_eq!(unknown.compiled_function(), None, "it may be any of them");
            assert!(one.may_be_in_function_of(&unknown));
        }
        for name in ["app::work", "app::main::{closure#0}", "<app::Pool>::run::{closure#1}"] {
            assert_eq!(function(name, 0x10).identity(), function(name, 0x20).identity(), "it is unique");
        }
    }

    #[test]
    fn a_function_inlined_into_a_closure_is_itself() {
        let closure = Frame { function: Some("std::thread::spawn::{{closure}}".into()), ..Frame::default() };
        let inlined = |begin| Location { callers: vec![closure.clone()], ..function("app::work", begin) };
        let (one, other) = (inlined(0x10), inlined(0x20));
        assert_eq!(one.identity(), other.identity());
        assert_ne!(one.compiled_function(), other.compiled_function());
    }
}
