#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | module | answers |
//! |---|---|
//! | [`target`] | what is a process, as values: tasks, calls, mappings, memory, descriptors? |
//! | [`process`] | which processes live, where are their rings, and what do the kernel and the memory say of one? |
//! | [`core`] | the same of a core file |
//! | [`stacks`] | where does each thread stand? |
//! | [`waits`] | for which object does it wait, and who has that? |
//! | [`runtimes`] | which language's runtime does it have, and who knows more of that? |
//! | [`standing`] | all of this for each thread, and whether it moved between two readings |
//! | [`scheduler`] | which thread has which processor, and who wakes whom? |
//! | [`patience`] | what if a process does not answer? |

#![allow(missing_docs, reason = "a name that says it all has no comment")]

pub mod core;
pub mod patience;
pub mod process;
pub mod runtimes;
mod saved_text;
pub mod scheduler;
mod shares;
pub mod stacks;
pub mod standing;
pub mod target;
pub mod waits;
