//! What is wrong: one analysis a file, all with the same trait, over the locks and threads of a ring.
//!
//! They take values and give values: no input, no output, no symbols. Text is made in `report`.

use crate::locks::{LockId, LockModel, ThreadId};
use crate::places::PlaceId;

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// It may be: a pattern that has other explanations too.
    Suspected,
    /// It can happen: the ingredients were seen, not the accident.
    Potential,
    /// It is so: what was recorded admits nothing else.
    Proven,
}

/// What an analysis looks at.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The ring; of a living process the later of two readings.
    pub now: &'a LockModel,
    /// The earlier reading of a living process.
    pub before: Option<&'a LockModel>,
    /// When something counts as long, ns.
    pub threshold_ns: u64,
}

/// One thing that is wrong.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The analysis's name for it, `deadlock` for example: stable, for suppressions and scripts.
    pub kind: &'static str,
    /// How sure it is.
    pub confidence: Confidence,
    /// What, in one sentence that begins small and names threads and locks by evidence below.
    pub summary: Vec<Part>,
    /// Since when, ns since boot, as far as known.
    pub since_ns: Option<u64>,
    /// How many threads suffer; the worst comes first.
    pub threads_hurt: usize,
    /// Why it is so: one line each, in the order of telling.
    pub evidence: Vec<Vec<Part>>,
    /// What cannot be known about it, if that matters.
    pub doubt: Option<String>,
    /// What to do next.
    pub advice: String,
    /// The locks involved.
    pub locks: Vec<LockId>,
    /// The threads involved: those that the evidence names.
    pub threads: Vec<ThreadId>,
    /// The places involved, for suppressions.
    pub places: Vec<PlaceId>,
}

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Text as it stands.
    Text(String),
    /// A thread, shown as `name[tid]`.
    Thread(ThreadId),
    /// A lock, shown by name.
    Lock(LockId),
    /// A place, shown as `function file:line`.
    Place(PlaceId),
    /// A length of time, ns.
    Duration(u64),
    /// A number of threads.
    Threads(usize),
}

/// An analysis.
pub trait Analysis: Sync {
    /// What it is called: `deadlock`.
    fn name(&self) -> &'static str;
    /// Looks, and adds what it finds.
    fn look(&self, view: &View<'_>, found: &mut Vec<Finding>);
}
