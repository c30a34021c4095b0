//! A finding; the trait of the analyses that make findings, and that of what findings are based on.
//!
//! It analyses nothing itself.

use foldhash::HashSet;

use super::about::{self, About, Mentions, Role};
use super::named::named;
use super::remarks::{Advice, Doubt, Premise};
use super::view::View;
use super::words::{Names, Paragraph, Words};
use super::{Evidence, Kind};
use crate::locks::{LockId, ThreadId};

named! {
    /// How certain a finding is.
    pub enum Confidence {
        /// It may be so: the pattern has other explanations too.
        Suspected = "suspected",
        /// It can happen: what leads to it was recorded, the problem itself was not.
        Potential = "potential",
        /// It is so: what was recorded allows no other explanation.
        Proven = "proven",
    }
}

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
    pub(super) fn new(
        kind: Kind,
        confidence: Confidence,
        evidence: impl Into<Evidence>,
        advice: Advice,
    ) -> Finding {
        let evidence = evidence.into();
        let mentions = Mentions::of(evidence.basis());
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

    /// Its text, in these names.
    pub fn paragraph(&self, names: &dyn Names) -> Paragraph {
        self.evidence.basis().paragraph(&mut Words::new(names, &self.mentions.locks))
    }

    /// What its threads do at its source lines, in the order of its text.
    pub fn roles(&self, names: &dyn Names) -> Vec<Role> {
        about::roles(self.evidence.basis(), names, &self.mentions.locks)
    }
}

/// What a finding is based on. Each analysis has a type of its own for that, beside it.
pub(super) trait Basis {
    /// Says which threads, locks and locations it has, in the order of the paragraph, and what happens at source lines.
    fn about(&self, all: &mut About<'_>);

    /// The text: what is wrong in one sentence, and why that is so.
    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph;
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
