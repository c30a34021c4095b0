//! What the end-to-end tests share: an independent reader of rings, and the means to run a program that dies.
//!
//! The tests themselves are in `die`, `threads`, `locks`, `harm` and `build` beside this directory; the program they
//! run is `src/bin/victim`.

pub mod harness;
pub mod oracle;
pub mod progress;
