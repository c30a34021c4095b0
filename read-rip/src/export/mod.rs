//! Files for other programs: what was recorded, in formats that people's viewers read.
//!
//! It writes what it is given, and shortens no list: `app::export` says which threads are part of it. It invents no
//! time. What has only bounds is counted, and not drawn.
//!
//! | module | answers |
//! |---|---|
//! | `timeline` | from when to when did each thread wait for a lock, hold one, or work in a span? |
//! | `graph` | who waits for whom now? |
//! | `chrome` | JSON trace events, for the viewers of Chrome and Perfetto |
//! | `dot` | that graph, for graphviz |
//! | `openmetrics` | numbers for Prometheus |
//! | `tables/` | the record as flat tables, for engines that know SQL |
//! | `folded` | where threads are now, and for what they wait, as lines for flame graphs |

mod chrome;
mod dot;
mod folded;
mod graph;
mod openmetrics;
pub mod tables;
mod timeline;

pub use chrome::chrome;
pub use dot::dot;
pub use folded::folded;
pub use graph::{Edge, EdgeKind, Node, WaitGraph};
pub use openmetrics::openmetrics;
pub use timeline::{Said, SaidKind, Slice, SliceKind, Timeline, of_slot};
