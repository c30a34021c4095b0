//! The loaded modules, in the order in which the dynamic linker searches them.
//!
//! [`Symbols`] reads a module's tables.

#![allow(unsafe_code, reason = "reads the list of the dynamic linker")]

use core::ffi::{c_char, c_int};
use core::mem::offset_of;

use super::symbols::Symbols;

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

/// The loaded modules, in the order in which the dynamic linker searches them. None in a static program.
///
/// From the list that debuggers read. That takes no call, so it works while a sanitizer that replaces
/// `dl_iterate_phdr` is not ready yet. It takes no lock either: this happens while the program starts.
pub fn modules() -> impl Iterator<Item = Symbols> {
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
