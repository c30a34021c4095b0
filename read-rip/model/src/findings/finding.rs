//! A finding, and the trait of the analyses that make findings.
//!
//! It analyses nothing itself.

use foldhash::HashSet;

use super::evidence::Evidence;
use super::kind::{Confidence, Kind};
use super::mentions::Mentions;
use super::remarks::{Advice, Doubt, Premise};
use super::view::View;
use crate::locks::{LockId, ThreadId};

/// One thing that is wrong.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What is wrong.
    pub kind: Kind,
    /// How certain that is.
    pub confidence: Confidence,
    /// Since when, ns since boot, as far as known.
    pub since_ns: Option<u64>,
    /// For how long, ns, as far as known.
    pub for_ns: Option<u64>,
    /// How many threads suffer.
    pub threads_hurt: usize,
    /// What it is based on.
    pub evidence: Evidence,
    /// What limits the confidence.
    pub doubts: Vec<Doubt>,
    /// What the confidence takes for granted.
    pub premises: Vec<Premise>,
    /// What to do next.
    pub advice: Vec<Advice>,
    /// The threads, locks and locations that the evidence mentions.
    pub mentions: Mentions,
}

impl Finding {
    /// A finding without doubts that hurts the threads that it mentions.
    pub(super) fn new(kind: Kind, confidence: Confidence, evidence: Evidence, advice: Advice) -> Finding {
        let mentions = Mentions::of(&evidence);
        Finding {
            kind,
            confidence,
            since_ns: None,
            for_ns: None,
            threads_hurt: mentions.threads.len(),
            evidence,
            doubts: Vec::new(),
            premises: Vec::new(),
            advice: vec![advice],
            mentions,
        }
    }
}

/// An analysis.
pub trait Analysis: Sync {
    /// Adds its findings to `found`, which contains those of the analyses before it in the list.
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>);

    /// Like `run`. Returns the limit that it reached, if it had to leave something out.
    fn run_bounded(&self, view: &View<'_>, found: &mut Vec<Finding>) -> Option<Limit> {
        self.run(view, found);
        None
    }
}

/// Something that an analysis did not do completely, because that could take too long or too much memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Not all orders of acquisition were compared.
    LockOrders,
}

/// The locks of findings of these kinds.
pub(super) fn locks_of(found: &[Finding], kinds: &[Kind]) -> HashSet<LockId> {
    let of_kind = found.iter().filter(|finding| kinds.contains(&finding.kind));
    of_kind.flat_map(|finding| finding.mentions.locks.iter().copied()).collect()
}

/// The threads of findings of these kinds.
pub(super) fn threads_of(found: &[Finding], kinds: &[Kind]) -> HashSet<ThreadId> {
    let of_kind = found.iter().filter(|finding| kinds.contains(&finding.kind));
    of_kind.flat_map(|finding| finding.mentions.threads.iter().copied()).collect()
}
