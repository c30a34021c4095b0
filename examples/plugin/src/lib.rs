//! A shared library with marks, to be loaded with `dlopen` into a program that may have marks of its own.
//!
//! It makes no ring: like every `cdylib` with marks it has a copy of librip, which joins the program's ring
//! when the library is loaded. `benches/marks.rs` of librip measures what a mark costs here.

#![allow(unsafe_code, reason = "exported under a plain name, for dlsym")]

use librip::rip_snap;

/// Passes `rounds` times over four marks.
// SAFETY: no other function of this name is linked into the library, and those who load it ask it by handle.
#[unsafe(no_mangle)]
pub extern "C" fn librip_plugin_marks(rounds: u64) {
    for _ in 0..rounds {
        rip_snap!();
        rip_snap!();
        rip_snap!();
        rip_snap!();
    }
}
