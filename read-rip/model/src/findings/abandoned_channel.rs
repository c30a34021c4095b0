//! Full channels whose receiver nobody uses any more.
//!
//! # Question
//!
//! Which tasks wait for room in a channel although who received from it has ended?
//!
//! # Method
//!
//! Who waits for room has recorded which task or thread alone has used the receiver. If that one has ended, and the
//! wait has lasted for the threshold, then the receiver was neither dropped, which would end the wait, nor used: it was
//! leaked, or is in a value that outlived its task. Other branches of the task that waits do not matter: the message
//! does not get through.
//!
//! # Blind spots
//!
//! The receiver may be with another task, which has not used it yet, or which is slow while several wait. So the
//! finding is suspected. A receiver that several tasks have used is not looked at. An empty channel whose sender has
//! ended is no finding: a server may be idle.
//!
//! # Example output
//!
//! ```text
//! suspected abandoned-channel: 2 tasks wait for room in a channel whose receiver has ended, for 41 s
//!     writer[task 7] waits for room in JOBS at queue.rs:20, for 41 s
//!     task 4, which alone had received, has ended
//! ```

use std::collections::BTreeMap;

use read_rip_ring::task_number;
use serde::Serialize;

use super::nobody_left::sleep_fact;
use super::{
    About, Advice, Analysis, Asleep, Basis, Confidence, Doubt, Finding, Kind, Paragraph, SleepFact, View,
    Words,
};
use crate::locks::{LockId, ThreadId, Wait};
use crate::threads::ThreadState;
use crate::units::agree;

/// See the file's description.
pub(super) struct AbandonedChannel;

/// At most this many waits are listed.
const LISTED_MAX: usize = 5;

/// Tasks that wait for room in a channel, whose receiver nobody uses any more.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FullChannel {
    /// The channel.
    pub lock: LockId,
    /// The id of the task or thread that alone has received, and has ended.
    pub receiver: u32,
    /// How many wait.
    pub waiting: usize,
    /// The first of them, those that have waited longest first.
    pub first: Vec<SleepFact>,
}

impl Analysis for AbandonedChannel {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let mut waiting: BTreeMap<(LockId, u32), Vec<&Wait>> = BTreeMap::new();
        for id in 0..view.now.threads.len() {
            if let Some((receiver, wait)) = abandoned_wait(view, id) {
                waiting.entry((wait.lock, receiver)).or_default().push(wait);
            }
        }
        for ((lock, receiver), mut waits) in waiting {
            waits.sort_by_key(|wait| wait.since_ns);
            let first = waits.iter().take(LISTED_MAX).map(|wait| sleep_fact(view, wait, Asleep::Message));
            let evidence = FullChannel { lock, receiver, waiting: waits.len(), first: first.collect() };
            let mut finding =
                Finding::new(Kind::AbandonedChannel, Confidence::Suspected, evidence, Advice::KeepReceiving);
            finding.doubts.push(Doubt::EndMayMove);
            finding.threads_hurt = waits.len();
            finding.since_ns = waits.first().and_then(|wait| wait.since_ns);
            found.push(finding);
        }
    }
}

/// The wait of a thread or task for room that nobody makes, and the id of who received.
fn abandoned_wait<'v>(view: &'v View<'_>, id: ThreadId) -> Option<(u32, &'v Wait)> {
    let thread = &view.now.threads[id];
    let is_there = thread.state == ThreadState::Present;
    let peer = thread.peer.as_deref().filter(|peer| is_there && peer.receives && peer.present.is_none())?;
    let wait = thread.sleep.as_deref().filter(|wait| wait.is_steady && !wait.is_timed)?;
    let is_long = view.ago_ns(wait.since_ns).is_some_and(|for_ns| for_ns >= view.threshold_ns);
    peer.user.filter(|_| is_long).map(|user| (user, wait))
}

impl Basis for FullChannel {
    fn about(&self, all: &mut About<'_>) {
        for one in &self.first {
            all.thread_and_lock(one.thread, one.lock, [one.location]);
            all.main(one.location, |words| {
                let (task, lock) = (words.thread(one.thread), words.short_lock(one.lock));
                format!("{task} waits for room in {lock} here")
            });
        }
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let longest = self.first.first().and_then(|first| first.for_ns);
        let summary = format!(
            "{} {} for room in a channel whose receiver has ended{}",
            words.threads(self.waiting),
            agree(self.waiting, "waits", "wait"),
            words.lasting(", for ", longest)
        );
        let line = |one: &SleepFact| {
            let (thread, lock) = (words.thread(one.thread), words.lock(one.lock));
            let (at, lasting) = (words.location(one.location), words.lasting(", for ", one.for_ns));
            format!("{thread} waits for room in {lock} at {at}{lasting}")
        };
        let mut evidence: Vec<String> = self.first.iter().map(line).collect();
        evidence.extend(words.and_more(self.waiting.saturating_sub(self.first.len())));
        let who = match task_number(self.receiver) {
            Some(number) => format!("task {number}"),
            None => format!("thread {}", self.receiver),
        };
        evidence.push(format!("only {who} received from it, and has ended"));
        Paragraph { summary, evidence }
    }
}
