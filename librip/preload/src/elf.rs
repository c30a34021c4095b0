//! The loaded modules, in the order in which the dynamic linker searches them, and this library's place among them.
//!
//! The tables of symbols are read by [`Symbols`].

use core::ffi::{CStr, c_char, c_int};
use core::mem::offset_of;

use librip::interpose::Symbols;

use crate::OWN;

/// What the dynamic linker shows to debuggers: the beginning of `struct r_debug` of `link.h`.
#[repr(C)]
struct Debug {
    version: c_int,
    first: *const Module,
}

/// A loaded module: `struct link_map`, the public part of it.
#[repr(C)]
struct Module {
    bias: usize,
    name: *const c_char,
    dynamic: *const [u64; 2],
    next: *const Module,
}

unsafe extern "C" {
    /// The dynamic linker changes it, so it is only read through a raw pointer.
    static mut _r_debug: Debug;
}

/// The loaded modules, in the order in which the dynamic linker searches them.
///
/// From the list that debuggers read. That takes no call, so it works while a sanitizer that replaces
/// `dl_iterate_phdr` is not ready yet. It takes no lock either: this happens while the program starts.
fn modules() -> impl Iterator<Item = Symbols> {
    let first = (&raw const _r_debug).wrapping_byte_add(offset_of!(Debug, first)).cast::<*const Module>();
    // SAFETY: the dynamic linker fills it before any other code runs. An aligned word is read whole, whoever changes
    // it.
    let first = unsafe { first.read_volatile() };
    // SAFETY: the dynamic linker keeps the list in order: the first module, and each one links to the next or to null.
    let first = unsafe { first.as_ref() };
    // SAFETY: as above.
    let modules = core::iter::successors(first, |module| unsafe { module.next.as_ref() });
    // SAFETY: as above: the dynamic linker keeps the address of the section, and the program starts or looks up a
    // symbol that it uses.
    modules.filter_map(|module| unsafe { Symbols::new(module.bias, module.dynamic) })
}

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
