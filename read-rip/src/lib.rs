//! Reads the rings that librip leaves, and says where every thread is.
//!
//! The layers, each of which knows only those before it:
//!
//! ```text
//! ring (bytes -> Snapshot)  ->  decode (words -> events)  ->  places (PC -> function, line)  ->  analyse  ->  report
//!                                                               |  \ locks (holders, waiters)  ->  findings  /
//!                                                               resolve (ELF and DWARF)
//! ```
//!
//! `ring` knows bytes, `resolve` knows ELF, `analyse`, `locks` and `findings` do no I/O, `report` computes nothing. `process` asks the
//! running system which processes are alive and where rings are. `app` puts them together for each command.
//!
//! # Examples
//!
//! ```no_run
//! let snapshot = read_rip::ring::read("/dev/shm/rip.server.1234.3c88d".as_ref())?;
//! println!("{} threads", snapshot.slots.len());
//! # Ok::<(), read_rip::ring::Error>(())
//! ```

pub mod app;
pub mod cli;
pub mod events;
pub mod findings;
pub mod locations;
pub mod locks;
pub mod printable;
pub mod process;
pub mod report;
pub mod ring;
pub mod symbols;
pub mod threads;
