//! Notices a program that ends without `exit`, as shells do: the ring is kept or removed as at any other end.

use core::ffi::c_int;

use crate::real;

/// Runs before `_exit` and `_Exit`. On the section, see `librip::process::fork`.
#[unsafe(link_section = ".text_of_forks")]
pub(crate) extern "C" fn before_exit(status: c_int) {
    real::find_once();
    librip::interpose::process_ends(status);
}
