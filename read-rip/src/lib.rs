//! Reads the rings that librip leaves, and reports where every thread is and which locks it holds.
//!
//! Data flows down. A module imports only modules above it, and no two files import each other:
//!
//! ```text
//!           ring ----------------- process         bytes -> Snapshot: header, sites, slots, words | living processes
//!             |                       |
//!          events                     |            words -> events
//!             |                       |
//!         locations                   |            PCs -> file, line and function
//!             |                       |
//!          threads                    |            slots -> threads, and the locations where they pile up
//!             |                       |
//!           locks                     |            events and held-lock tables -> holders and waiters
//!             |                       |
//!         findings                    |            locks -> deadlocks, contention and other findings
//!             |                       |
//!             +------- report --------+            values -> text and JSON
//!                         |
//!                      export                      values -> files for other programs
//!                         |
//!                        top                       pictures of a process, keys -> frames of a live screen
//!                         |
//!                       page                       values -> one HTML file
//!                         |
//!               cli ---> app                       the commands
//! ```
//!
//! `ring` decodes the numbers of the format; the others see types. The crate [`symbols`] stands below all of them: it
//! alone knows ELF and DWARF, but for unwind tables: `stacks` applies them to the memory of a `target`, which is a
//! process without a ring, as values. `waits` alone knows the C libraries' objects: it says which one a thread of a
//! `target` waits for, and who has it. `process` alone asks the running system, and `core` alone knows core files: both
//! make a `target`. `threads`, `locks` and `findings` do no input or output. `report` computes nothing. `printable`,
//! which escapes text for a terminal, `hash`, whose tables are fast, `saved_text`, which helps serde, and `shares`,
//! which works on several processors, import nothing.
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
pub mod core;
pub mod events;
pub mod export;
pub mod findings;
pub mod locations;
pub mod locks;
pub mod log;
pub mod page;
pub mod patience;
pub mod printable;
pub mod process;
pub mod report;
pub mod ring;
mod saved_text;
mod shares;
pub mod stacks;
pub mod standing;
pub mod target;
pub mod threads;
pub mod top;
pub mod waits;

pub use read_rip_symbols as symbols;
