//! Reads the rings that librip leaves, and says where every thread is.
//!
//! The layers, each of which knows only those before it:
//!
//! ```text
//! ring (bytes -> Snapshot)  ->  decode (words -> events)  ->  resolve (PC -> frames)  ->  analyse  ->  report
//! ```
//!
//! `ring` knows bytes, `resolve` knows ELF and DWARF, `analyse` does no I/O, `report` computes nothing.
//! `process` asks the running system which processes are alive, for those layers that need to know.

pub mod ring;
pub mod resolve;
