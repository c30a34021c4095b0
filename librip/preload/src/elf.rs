//! This library's place among the loaded modules.

use core::ffi::CStr;

use librip::interpose::{Symbols, modules};

use crate::OWN;

/// The modules that the dynamic linker searches after this one, without other copies of this one.
pub(crate) fn after_this() -> impl Iterator<Item = Symbols> {
    let mut is_after = false;
    modules().filter(move |symbols| match symbols.data(MARK) {
        Some(mark) => {
            is_after |= is_own(mark);
            false
        }
        None => is_after,
    })
}

/// Whether no other copy of this library comes before this one.
pub(crate) fn is_first_copy() -> bool {
    modules().find_map(|symbols| symbols.data(MARK)).is_some_and(is_own)
}

/// Whether the symbol at this address is this copy's.
fn is_own(mark: usize) -> bool {
    // SAFETY: in all copies it is a pointer. If it is not relocated yet, it differs from this copy's.
    let target = unsafe { *core::ptr::with_exposed_provenance::<*const u8>(mark) };
    target == &raw const OWN
}

const MARK: &CStr = c"librip_preload_1";
