//! The program `read-rip`: the command line, the commands, and the live screen.
//!
//! `main` calls [`app::main`]. Tools that want the answers and not the program use `read-rip-case`.
//!
//! | module | contents |
//! |---|---|
//! | [`cli`] | arguments and help texts |
//! | [`app`] | each command, from its arguments to its exit status |
//! | [`top`] | the live screen without input and output: pictures and keys become frames |

#![allow(missing_docs, reason = "a name that says it all has no comment")]

pub mod app;
pub mod cli;
#[cfg(feature = "top")]
pub mod top;
