//! A shared library with marks, which a program loads with `dlopen`.
//!
//! It creates no ring. Like each `cdylib` with marks it contains a copy of librip, and that copy joins the program's
//! ring when the library is loaded. `benches/marks.rs` of librip measures the cost of a mark here.

#![allow(unsafe_code, reason = "the function is exported under a plain name, for dlsym")]

use librip::rip_snap;

/// Executes four marks, `rounds` times.
// SAFETY: no other function of this name is linked into the library, and callers look it up by the library's handle.
#[unsafe(no_mangle)]
pub extern "C" fn librip_plugin_marks(rounds: u64) {
    for _ in 0..rounds {
        rip_snap!();
        rip_snap!();
        rip_snap!();
        rip_snap!();
    }
}
