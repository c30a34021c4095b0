#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | module | answers |
//! |---|---|
//! | `timeline` | when did each thread or task wait for a lock, hold one, or work in a span; what does a task do? |
//! | `graph` | who waits for whom now? |
//! | `uses` | which threads and tasks held and awaited each lock, and which release ended which wait? |
//! | `scene` | what is a viewer shown? |
//! | `chrome` | JSON trace events, for Chrome's viewer and others that read them |
//! | `perfetto/` | Perfetto traces, for its viewer, and its trace processor with SQL |
//! | `firefox` | profiles for the Firefox Profiler |
//! | `ctf/` | each event of each history, as a trace of babeltrace2 |
//! | `dot` | that graph, for graphviz |
//! | `openmetrics` | numbers for Prometheus |
//! | `tables/` | the record as flat tables, for engines that know SQL |
//! | `folded` | where threads and tasks are now, and for what they wait, as lines for flame graphs |

#![allow(missing_docs, reason = "a name that says it all has no comment")]

mod chrome;
mod ctf;
mod dot;
mod firefox;
mod folded;
mod graph;
mod openmetrics;
pub mod page;
mod perfetto;
mod scene;
pub mod tables;
mod timeline;
mod uses;

use std::io::{self, Write};

pub use chrome::chrome;
pub use ctf::ctf;
pub use dot::dot;
pub use firefox::firefox;
pub use folded::folded;
pub use graph::{Edge, EdgeKind, Node, WaitGraph};
pub use openmetrics::openmetrics;
pub use perfetto::perfetto;
pub use scene::Scene;
pub use timeline::{Logged, LoggedKind, Slice, SliceKind, Timeline, of_slot};
pub use uses::Contention;

/// Where an export of several files writes them.
pub trait Files {
    /// Writes a file of this name, with what `content` writes.
    ///
    /// # Errors
    ///
    /// Those of the file, and of `content`.
    fn write(
        &mut self,
        name: &str,
        content: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()>;
}
