//! One HTML file that shows a process to somebody who has nothing but a browser.
//!
//! It needs no other file and no network, and its policy forbids both. All names come from the recorded program or from
//! whoever wrote the file, and none of them becomes markup or script: `html` escapes what is static, `data` is JSON
//! that cannot end its element, and the script makes text nodes of it.
//!
//! | module | answers |
//! |---|---|
//! | `document` | the file, and all of it that is readable without script: verdict, findings, graph, places, stacks |
//! | `data` | the locks, threads, timelines and events, as JSON for the script |
//! | `graph`, `layout` | who waits for whom, as a drawing |
//! | `html` | text as HTML; the policy, with the hashes of what may run |
//! | `page.css` | how it looks |
//! | `list.js`, `timeline.js`, `page.js` | what it does: lists of any length, timelines, and what is in them |
//!
//! It does no I/O, and chooses nothing: `app::report` says what is part of it.

mod data;
mod document;
mod graph;
mod html;
mod layout;

pub use document::page;

use read_rip_model::findings::Finding;
use read_rip_model::locks::{Record, TaskGroup, ThreadId};
use read_rip_model::log::Span;
use read_rip_model::threads::Group;
use read_rip_report::Picture;
use read_rip_report::{Checked, LockNames};
use read_rip_ring::Snapshot;

use crate::Timeline;

#[expect(missing_debug_implementations, reason = "locations have a resolver")]
pub struct Page<'a> {
    /// `program[pid]`.
    pub process: String,
    /// Threads, locks and locations, and what they are called.
    pub names: &'a LockNames<'a>,
    pub found: &'a [Finding],
    pub checked: &'a Checked,
    /// The verdict, and the rows of locks, threads and tasks.
    pub picture: &'a Picture,
    /// What the histories say of each lock of the picture.
    pub records: Vec<&'a Record>,
    /// Where threads are, the most first.
    pub groups: Vec<Group>,
    /// What tasks do and where, the most first.
    pub task_groups: Vec<TaskGroup>,
    /// What threads and tasks did, those that matter most first.
    pub timelines: &'a [(ThreadId, Timeline)],
    /// The threads and tasks whose timelines are left out.
    pub timelines_left_out: Vec<ThreadId>,
    pub log: &'a Log,
    /// The recorded image.
    pub snapshot: &'a Snapshot,
    /// Stacks: the threads that have one, then a line for each function.
    pub stacks: Vec<Vec<String>>,
    /// What is not shown or not known, a sentence each.
    pub remarks: Vec<String>,
    /// Names and values.
    pub facts: Vec<(String, String)>,
    /// When the machine was started, ns since 1970; `None` if that is not known.
    pub boot_realtime_ns: Option<u64>,
    /// When the page was written, UTC.
    pub written: String,
}

/// What a program said with events and spans.
#[derive(Debug, Default)]
pub struct Log {
    /// The newest ones, in order.
    pub entries: Vec<Entry>,
    /// How many older ones are left out.
    pub left_out: usize,
    pub spans: Vec<Span>,
    /// Whether several processes share the ring, so that threads are named with theirs.
    pub names_process: bool,
}

/// An event, or the begin or end of a span.
#[derive(Debug)]
pub struct Entry {
    /// When, ns since boot; `None` if that is not known.
    pub at_ns: Option<u64>,
    /// Its level, `begin` or `end`.
    pub word: &'static str,
    /// How long a span took, ns.
    pub took_ns: Option<u64>,
    pub thread: String,
    /// The channel; empty if it is in none.
    pub channel: String,
    pub text: String,
    /// `file:line`.
    pub place: String,
}
