//! librip for C and C++: `librip.h`, and the library behind it.
//!
//! Here is nothing but the making of `librip.so` and `librip.a`; the functions are those of `librip::c`, and
//! `librip.h` describes them. `scripts/install-c` installs the header, both libraries and a file for pkg-config.
//!
//! A Rust program with parts in C depends on this package, says `use rip as _;` somewhere, and compiles its C
//! sources in a build script with the directory in `DEP_RIP_INCLUDE` among the include directories. It needs no
//! other library: the functions are linked into the program, where the marks of both languages share one ring.

pub use librip::c::*;
