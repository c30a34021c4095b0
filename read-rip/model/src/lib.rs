#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! A module imports only those above it.
//!
//! | module | answers |
//! |---|---|
//! | [`units`] | how are counts and lengths of time written? |
//! | [`locations`] | which function and line is an address, and what does its mark mean? |
//! | [`threads`] | which threads exist, and where do they pile up? |
//! | [`locks`] | who holds and awaits each lock, and what does each thread and task do? |
//! | [`log`] | what did threads say with values, in one order? |
//! | [`findings`] | what is wrong? |

#![allow(missing_docs, reason = "a name that says it all has no comment")]

pub mod findings;
pub mod locations;
pub mod locks;
pub mod log;
pub mod threads;
pub mod units;
