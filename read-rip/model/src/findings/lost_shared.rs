//! Locks in shared memory whose owner has ended.
//!
//! # Question
//!
//! Which threads wait for a lock that processes share, and that nobody will release, because its owner was killed?
//!
//! # Method
//!
//! The memory of the lock names its owner, and no thread of the machine has that id, or one that has ended. A lock that
//! is robust is handed on by the kernel, and is left out. Memory without a file can only be that of forks, and these
//! have the ids of one PID namespace: then it is proven.
//!
//! # Blind spots
//!
//! Another process may have got the id of the owner: then nothing is said. If the memory has a file, the owner may be
//! in another container, where ids differ: then it is suspected.
//!
//! # Example output
//!
//! ```text
//! proven unreleased: 1 thread waits for a lock in shared memory whose owner has ended
//!     worker[4711] waits for the lock 0x7fd2fa at main shm.c:12, for at least 41 s; thread 4712 has it, and has ended
//! ```

use serde::Serialize;

use super::words::lasting;
use super::{
    About, Advice, Analysis, Basis, Confidence, Doubt, Finding, Kind, Paragraph, Premise, View, Words,
};
use crate::locations::LocationId;
use crate::locks::{LostLock, ThreadId};
use crate::units::{agree, counted};

/// See the file's description.
pub(super) struct LostShared;

/// At most this many threads are listed.
const LISTED_MAX: usize = 5;

/// Threads that wait for a lock in shared memory whose owner has ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnerEnded {
    /// The id of the owner.
    pub owner: u32,
    /// How many threads wait.
    pub count: usize,
    /// Some of them.
    pub first: Vec<LostWait>,
    #[serde(skip)]
    address: u64,
}

/// One of these threads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LostWait {
    /// It.
    pub thread: ThreadId,
    /// Where it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationId>,
    /// For how long it has not run, ns, at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
}

impl Analysis for LostShared {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        found.extend(view.now.lost_locks.iter().map(|lost| finding(view, lost)));
    }
}

fn finding(view: &View<'_>, lost: &LostLock) -> Finding {
    let wait = |&thread: &ThreadId| {
        let seen = view.now.threads[thread].seen;
        let asleep_ns = seen.and_then(|seen| seen.asleep_ns).map(std::num::NonZeroU64::get);
        let location = seen.and_then(|seen| seen.place);
        LostWait { thread, location, for_ns: asleep_ns.max(view.now.window_ns) }
    };
    let first = lost.threads.iter().take(LISTED_MAX).map(wait).collect();
    let evidence = OwnerEnded { owner: lost.owner, count: lost.threads.len(), first, address: lost.address };
    let confidence = if lost.of_forks { Confidence::Proven } else { Confidence::Suspected };
    let mut finding = Finding::new(Kind::Unreleased, confidence, evidence, Advice::RobustMutex);
    finding.doubts.extend((!lost.of_forks).then_some(Doubt::OwnerElsewhere));
    finding.premises = vec![Premise::OwnerReleases, Premise::MemoryIntact];
    finding.threads_hurt = lost.threads.len();
    finding
}

impl Basis for OwnerEnded {
    fn about(&self, all: &mut About<'_>) {
        for wait in &self.first {
            all.thread(wait.thread, wait.location);
            all.main(wait.location, |words| {
                format!("{} waits here for a lock whose owner has ended", words.thread(wait.thread))
            });
        }
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let summary = format!(
            "{} {} for a lock in shared memory whose owner has ended",
            counted(self.count as u64, "thread"),
            agree(self.count, "waits", "wait")
        );
        let line = |wait: &LostWait| {
            let at = wait.location.map_or_else(String::new, |at| format!(" at {}", words.location(at)));
            let lasting = lasting(", for at least ", wait.for_ns);
            let (thread, address, owner) = (words.thread(wait.thread), self.address, self.owner);
            format!(
                "{thread} waits for the lock {address:#x}{at}{lasting}; thread {owner} has it, and has ended"
            )
        };
        Paragraph { summary, evidence: self.first.iter().map(line).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::Scene;

    #[test]
    fn a_lock_of_forks_is_lost_for_certain_and_another_one_perhaps() {
        for (of_forks, confidence) in [(true, Confidence::Proven), (false, Confidence::Suspected)] {
            let mut scene = Scene::new();
            let threads = vec![scene.thread("worker")];
            scene.model.lost_locks.push(LostLock { address: 0x1000, owner: 7, of_forks, threads });
            let found = scene.run(&LostShared);
            assert_eq!((found[0].kind, found[0].confidence), (Kind::Unreleased, confidence));
        }
    }
}
