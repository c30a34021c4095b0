//! The forked children of a process that can never go on, because a thread of the process held a lock at the fork:
//! whoever asks about the process is told of them too. So it is with children that may be stuck so, and are not judged,
//! because the locks of their language store no owner.
//!
//! A look at what their threads sleep in says which may be so. These are inspected as the process itself is. Children
//! that record in the ring of the process are inspected with it already.

use std::collections::HashSet;

use read_rip_evidence::process::live::LiveTarget;
use read_rip_evidence::standing::{Inward, Standings};
use read_rip_evidence::target::{RunState, Sleep, Task};
use read_rip_model::locks::waits_for_nobody;

use crate::partners::{inspect, told_apart};
use crate::{Options, Reading};

/// No more children are looked at.
const LOOKED_AT_MAX: usize = 256;
/// No more of them are inspected.
const INSPECTED_MAX: usize = 8;

impl Reading {
    /// Adds the forks of the process, and theirs, that wait for a lock which nobody there holds.
    pub(crate) fn add_stuck_forks(&mut self, options: &Options) {
        let Some(own) = self.seen.as_ref().filter(|_| self.process().is_some()) else { return };
        let known: HashSet<u32> = self.standings().map(|seen| seen.target.pid).collect();
        let mut forks = may_wait_for_nobody(own);
        forks.retain(|pid| !known.contains(pid));
        forks.truncate(INSPECTED_MAX);
        let stuck: Vec<Standings> = match forks.is_empty() {
            true => return,
            false => inspect(&forks, options).into_iter().filter(matters).collect(),
        };
        let stuck = told_apart(own, stuck);
        stuck.into_iter().for_each(|fork| self.add_seen(fork));
    }
}

/// The forks of a process, and theirs, where a thread sleeps as one does that waits for a lock.
fn may_wait_for_nobody(parent: &Standings) -> Vec<u32> {
    let Ok(live) = LiveTarget::open_here(parent.target.pid) else { return Vec::new() };
    let tids = parent.target.tasks.iter().map(|task| task.tid);
    let mut children: Vec<u32> = tids.flat_map(|tid| live.children_of(tid)).collect();
    let (mut at, mut found) = (0, Vec::new());
    while let Some(&pid) = children.get(at).filter(|_| at < LOOKED_AT_MAX) {
        at += 1;
        let live = LiveTarget::open_here(pid).ok().filter(|live| live.is_fork() && live.hidden().is_none());
        let Some((live, tasks)) = live.and_then(|live| live.tasks().ok().map(|tasks| (live, tasks))) else {
            continue;
        };
        children.extend(tasks.iter().flat_map(|task| live.children_of(task.tid)));
        found.extend(tasks.iter().any(may_wait_for_lock).then_some(pid));
    }
    found
}

/// Whether a fork waits for a lock that nobody there holds, or whose holder its language does not tell.
fn matters(fork: &Standings) -> bool {
    let waits_within = |thread| fork.inward(thread) == Some(Inward::WaitsForLock);
    waits_for_nobody(fork) || (0..fork.threads.len()).any(waits_within)
}

/// Whether a thread sleeps in memory that only its process has, with no limit of time.
fn may_wait_for_lock(task: &Task) -> bool {
    let futex = match task.sleep {
        Some(Sleep::Call(call)) if task.state == RunState::Sleeping => call.futex(),
        _ => None,
    };
    futex.is_some_and(|futex| futex.is_private && !futex.is_timed)
}
