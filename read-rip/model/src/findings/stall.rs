//! Stalls: no thread of a process moves, and threads wait for locks or for one another.
//!
//! # Question
//!
//! Is the process stuck, although no other analysis can say why?
//!
//! # Method
//!
//! The kernel says of each thread whether it was given a processor between the two readings, and what it sleeps in. If
//! no thread was, one of two things makes that a stall:
//!
//! * threads wait for locks, and are not the idle part of a pool. A thread that idles in a pool waits for a lock in the
//!   function in which another thread of the pool waits for work, or the record shows the pool (see `idle_pool`);
//! * all threads wait for what only a thread of the process can bring: locks, conditions, semaphores, the end of a
//!   thread. None waits for input, for a time or for a signal. And one of them waits for a certain thread: if all
//!   wait on conditions, a signal handler may be what they wait for, as a program does whose main thread parks.
//!
//! It is reported only where no other finding explains why threads wait.
//!
//! # Blind spots
//!
//! A process that stands still for a moment, because the holder of a lock waits for a disk or for another process,
//! looks the same: a longer `--window` tells them apart. Other processes, timers and signal handlers may wake a thread.
//! So the finding is only suspected. A process that does anything at all meanwhile is no stall: `long_wait` finds what
//! is stuck in it.
//!
//! # Example output
//!
//! ```text
//! suspected stall: no thread moved for 200 ms, and 40 of 42 threads wait for locks
//!     worker[12] waits for a lock at Sessions::lookup server.rs:42; 39 more threads wait there
//!     janitor[13] waits for what comes from outside, at Sessions::expire server.rs:77
//! ```

use std::num::NonZeroU64;

use foldhash::HashMap;
use serde::Serialize;

use super::going_on;
use super::idle_pool::{IdlePlaces, pools, threads_of_pools};
use super::nobody_left::is_explained;
use super::words::lasting;
use super::{
    About, Advice, Analysis, Basis, Confidence, Doubt, Finding, Kind, LATELY_NS, Paragraph, View, Words,
    doing,
};
use crate::locations::LocationId;
use crate::locks::{Doing, Seen, ThreadId};
use crate::units::agree;

/// See the file's description.
pub(super) struct Stalled;

/// At most this many groups of threads are listed.
const LISTED_MAX: usize = 6;

/// A process in which no thread moves, and threads wait for locks or for one another.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stall {
    /// How many threads the process has.
    pub threads: usize,
    /// How many of them wait for locks.
    pub on_locks: usize,
    /// How many wait for the end of a thread, or for an initialisation.
    pub on_threads: usize,
    /// How many wait for what only another thread can bring, as a signal on a condition variable.
    pub inside: usize,
    /// For how long none of them moved, ns, at least; `None`: the process is dead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub still_ns: Option<u64>,
    /// Threads that do the same at the same place, those that wait for locks first. Of many groups the first ones.
    pub first: Vec<StandingFact>,
}

/// Threads that do the same at the same place.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StandingFact {
    /// One of them.
    pub thread: ThreadId,
    /// How many they are.
    pub count: usize,
    /// What they do.
    pub doing: Doing,
    /// Where they stand in the program; `None`: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationId>,
}

impl Analysis for Stalled {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let explains = |finding: &Finding| {
            matches!(finding.kind, Kind::LockLine | Kind::StarvedRuntime | Kind::LongPoll | Kind::DiskSleep)
        };
        if is_explained(found) || found.iter().any(explains) {
            return;
        }
        if let Some(threads) = stalled(view) {
            found.push(finding(view, &threads));
        }
    }
}

/// The threads of a process that stands still although threads wait for locks or for one another.
pub(super) fn stalled(view: &View<'_>) -> Option<Vec<(ThreadId, Seen)>> {
    let threads = all_still(view)?;
    let count = |doing| threads.iter().filter(|(_, seen)| seen.doing == doing).count();
    let for_threads = count(Doing::WaitsForThread);
    let inside = for_threads + count(Doing::WaitsForLock) + count(Doing::WaitsInside);
    // A pool that idles waits inside too, and so may the thread that made it.
    let are_all_inside = for_threads > 0 && inside == threads.len() && pools(view).is_empty();
    let is_stuck = wait_for_locks(view, &threads) || are_all_inside;
    is_stuck.then_some(threads)
}

type Threads = [(ThreadId, Seen)];

/// For how long none of these threads moved, at least.
fn still_ns(view: &View<'_>, threads: &Threads) -> Option<u64> {
    let asleep_ns = threads.iter().map(|(_, seen)| seen.asleep_ns).min().flatten();
    asleep_ns.map(NonZeroU64::get).max(view.now.window_ns)
}

/// All threads of the process that exist. `None` if one of them moved, or if the kernel was not asked about one. A
/// thread that a tracer or a signal has stopped counts as one that may move, and so does one that sleeps for a time and
/// ran a moment ago.
fn all_still(view: &View<'_>) -> Option<Vec<(ThreadId, Seen)>> {
    let ran_lately = |seen: &Seen| {
        seen.doing.is_outside() && seen.asleep_ns.is_some_and(|asleep_ns| asleep_ns.get() < LATELY_NS)
    };
    // In a core file, nobody has looked whether the sleep ended.
    let is_short = |seen: &Seen| going_on::is_core(view) && going_on::sleeps_shortly(seen);
    let still = |seen: &Seen| {
        let may_move = matches!(seen.doing, Doing::Stopped | Doing::Unknown);
        seen.is_still == Some(true) && !may_move && !ran_lately(seen) && !is_short(seen)
    };
    view.now.present().map(|(id, thread)| Some((id, thread.seen.filter(still)?))).collect()
}

/// Whether threads wait for locks that are not the idle part of a pool.
fn wait_for_locks(view: &View<'_>, threads: &Threads) -> bool {
    let (idle, of_pools) = (IdlePlaces::of(view), threads_of_pools(view));
    let is_idle = |id: ThreadId, seen: &Seen| idle.has(view, seen) || of_pools.contains(&id);
    threads.iter().any(|(id, seen)| seen.doing == Doing::WaitsForLock && !is_idle(*id, seen))
}

fn finding(view: &View<'_>, threads: &Threads) -> Finding {
    let mut groups: HashMap<(Doing, Option<LocationId>), (ThreadId, usize)> = HashMap::default();
    for (id, seen) in threads {
        groups.entry((seen.doing, seen.place)).or_insert((*id, 0)).1 += 1;
    }
    let fact = |((doing, location), (thread, count))| StandingFact { thread, count, doing, location };
    let mut first: Vec<StandingFact> = groups.into_iter().map(fact).collect();
    // What waits for locks says most.
    first.sort_by_key(|fact| (fact.doing, std::cmp::Reverse(fact.count), fact.thread));
    first.truncate(LISTED_MAX);
    let count = |doing| threads.iter().filter(|(_, seen)| seen.doing == doing).count();
    let evidence = Stall {
        threads: threads.len(),
        on_locks: count(Doing::WaitsForLock),
        on_threads: count(Doing::WaitsForThread),
        inside: count(Doing::WaitsInside),
        still_ns: still_ns(view, threads),
        first,
    };
    let mut finding = Finding::new(Kind::Stall, Confidence::Suspected, evidence, Advice::ShowStacks);
    finding.doubts = vec![Doubt::UnrecordedWaker];
    // Threads that wait for one another alone wait for ever, also in a core file.
    let is_outside = threads.iter().any(|(_, seen)| seen.doing.is_outside() || seen.doing == Doing::Kernel);
    finding.doubts.extend((going_on::is_core(view) && is_outside).then_some(Doubt::OneMoment));
    finding.threads_hurt = threads.len();
    finding
}

impl Basis for Stall {
    fn about(&self, all: &mut About<'_>) {
        for fact in &self.first {
            all.thread(fact.thread, fact.location);
            all.main(fact.location, |words| {
                format!("{} {} here", words.thread(fact.thread), doing(fact.doing, 1))
            });
        }
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let kinds = [
            (self.on_locks, Doing::WaitsForLock),
            (self.on_threads, Doing::WaitsForThread),
            (self.inside, Doing::WaitsInside),
        ];
        let kinds = kinds.into_iter().filter(|&(count, _)| count > 0);
        let parts: Vec<String> =
            kinds.map(|(count, kind)| format!("{count} {}", doing(kind, count))).collect();
        let lasting = lasting(", for at least ", self.still_ns);
        let (threads, parts) = (words.threads(self.threads), parts.join(", "));
        let line = |fact: &StandingFact| {
            let place =
                fact.location.map_or_else(String::new, |place| format!(" at {}", words.location(place)));
            let others = match fact.count - 1 {
                0 => String::new(),
                others => format!("; so {} {}", agree(others, "does", "do"), words.more_threads(others)),
            };
            format!("{} {}{place}{others}", words.thread(fact.thread), doing(fact.doing, 1))
        };
        Paragraph {
            summary: format!("no thread moves{lasting}; of {threads}, {parts}"),
            evidence: self.first.iter().map(line).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Evidence;
    use crate::findings::testing::{Scene, seen};

    /// Threads that stand still at these places, and do this.
    fn scene(threads: &[(&str, Doing)]) -> Scene {
        let mut scene = Scene::new();
        for (index, &(file, doing)) in threads.iter().enumerate() {
            let id = scene.thread("worker");
            let place = scene.location(file, 1);
            scene.locations[place].full_function = file.into();
            scene.model.threads[id].seen = Some(Seen { index, place: Some(place), ..seen(doing, true) });
        }
        scene.model.window_ns = Some(200_000_000);
        scene
    }

    fn is_stall(scene: &Scene) -> bool {
        let found = scene.run(&Stalled);
        assert!(found.iter().all(|finding| finding.confidence == Confidence::Suspected));
        !found.is_empty()
    }

    #[test]
    fn threads_that_wait_for_a_lock_while_nobody_moves_are_a_stall() {
        let threads = [("lookup.c", Doing::WaitsForLock), ("expire.c", Doing::WaitsOutside)];
        let mut scene = scene(&threads);
        let found = scene.run(&Stalled);
        let Evidence::Stall(stall) = &found[0].evidence else { panic!("{found:?}") };
        assert_eq!((stall.threads, stall.on_locks, stall.first.len()), (2, 1, 2));
        assert_eq!(stall.first[0].doing, Doing::WaitsForLock);
        // One of them runs: the process may be slow, and is not stuck.
        scene.model.threads[1].seen.as_mut().unwrap().is_still = Some(false);
        assert!(!is_stall(&scene));
        scene.model.threads[1].seen = None;
        assert!(!is_stall(&scene), "of one of them nothing is known");
    }

    #[test]
    fn threads_that_wait_for_one_another_are_a_stall_unless_something_may_come_from_outside() {
        let mut threads = vec![("main.c", Doing::WaitsForThread), ("queue.c", Doing::WaitsInside)];
        assert!(is_stall(&scene(&threads)));
        threads.push(("signals.c", Doing::WaitsOutside));
        assert!(!is_stall(&scene(&threads)));
        assert!(!is_stall(&scene(&[("main.c", Doing::WaitsInside)])), "a thread of its own that sleeps");
    }

    #[test]
    fn idle_pools_are_no_stall() {
        let pool = [
            ("take.c", Doing::WaitsForLock),
            ("take.c", Doing::WaitsInside),
            ("main.c", Doing::WaitsOutside),
        ];
        assert!(!is_stall(&scene(&pool)));
        let parked = [pool[0], pool[1], ("main.c", Doing::WaitsInside)];
        assert!(!is_stall(&scene(&parked)), "the thread that made the pool parks");
        let leader = [("serve.c", Doing::WaitsForLock), ("serve.c", Doing::WaitsOutside)];
        assert!(!is_stall(&scene(&leader)), "one of them accepts connections");
        let idle = [("pool.c", Doing::WaitsInside), ("main.c", Doing::WaitsOutside)];
        assert!(!is_stall(&scene(&idle)));
    }

    #[test]
    fn what_is_explained_is_not_reported_again() {
        let scene = scene(&[("lookup.c", Doing::WaitsForLock), ("expire.c", Doing::WaitsOutside)]);
        for kind in [Kind::Deadlock, Kind::LongPoll] {
            let explained = crate::findings::testing::finding_about(kind, &[]);
            assert!(scene.run_after(&Stalled, vec![explained]).is_empty(), "{kind:?}");
        }
    }
}
