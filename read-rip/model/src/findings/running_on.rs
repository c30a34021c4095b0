//! Threads that run without pause, while all others wait for one another.
//!
//! A thread that waits in a loop (a spin lock of the program, `try_lock` again and again) looks to the kernel like one
//! that computes: its registers are not known while it runs. So this accuses nobody. It says that the process is not
//! judged, where only those threads can bring what the others wait for.
//!
//! A thread for which the kernel counts page faults, or calls that read or write, does something, and so does one whose
//! marks advance.

use std::num::NonZeroU64;

use read_rip_evidence::standing::Standings;
use read_rip_evidence::waits::Trying;
use serde::Serialize;

use super::{LATELY_NS, View};
use crate::locations::LocationId;
use crate::locks::{Doing, Seen, ThreadId, doing};

/// Threads that run without pause, in a process in which all others wait for one another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunningOn {
    /// How many threads.
    pub threads: usize,
    /// One of them.
    pub first: ThreadId,
    /// Where it was; `None`: not known, because no thread was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationId>,
    /// Where it made its last call, as its stack shows. It may have returned from there since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_call: Option<LocationId>,
    /// That call waits for a spin lock in a loop of its own.
    pub is_at_spin_lock: bool,
    /// How many other threads wait for one another.
    pub others: usize,
    /// For how long all of this has lasted, ns, at least.
    pub for_ns: u64,
}

impl RunningOn {
    pub(super) fn of(view: &View<'_>) -> Option<RunningOn> {
        RunningOn::beside(view, |_| false)
    }

    /// The same beside other threads, if these may be there.
    pub(super) fn beside(view: &View<'_>, may_be: impl Fn(&Seen) -> bool) -> Option<RunningOn> {
        let threads = view.now.present().filter(|(_, thread)| thread.task.is_none());
        let mut running = Vec::new();
        let mut others = Vec::new();
        for (id, thread) in threads {
            let seen = thread.seen?;
            if may_be(&seen) {
                continue;
            }
            match does(seen.doing, seen.runs_on, seen.is_still, seen.asleep_ns)? {
                Does::RunsOn if thread.advanced.is_none_or(|words| words == 0) => running.push((id, seen)),
                Does::RunsOn => return None,
                Does::Waits(for_ns) => others.push((seen.doing, for_ns)),
            }
        }
        let &(first, seen) = running.first()?;
        let last = view.now.last_calls.get(&first).copied().unwrap_or_default();
        let waiting: Vec<Doing> = others.iter().map(|&(doing, _)| doing).collect();
        let for_ns = others.iter().filter_map(|&(_, for_ns)| for_ns).min().or(view.now.window_ns)?;
        is_suspicious(running.len(), &waiting).then_some(RunningOn {
            threads: running.len(),
            first,
            location: seen.place,
            last_call: last.location,
            is_at_spin_lock: last.trying == Some(Trying::SpinLock),
            others: others.len(),
            for_ns,
        })
    }
}

/// How many threads of a process run without pause, if all others wait for one another, or come to no code that wakes
/// one.
pub fn run_on(seen: &Standings) -> Option<usize> {
    let mut running = 0;
    let mut waiting = Vec::new();
    for (at, thread) in seen.threads.iter().enumerate() {
        let (doing, asleep_ns) = (doing(seen, at), thread.asleep_ns.and_then(NonZeroU64::new));
        if thread.wakes_nobody && doing.is_outside() {
            continue;
        }
        match does(doing, thread.runs_on(), thread.is_still, asleep_ns)? {
            Does::RunsOn => running += 1,
            Does::Waits(_) => waiting.push(doing),
        }
    }
    is_suspicious(running, &waiting).then_some(running)
}

/// What a thread of such a process does.
enum Does {
    /// It runs without pause.
    RunsOn,
    /// It waits for another thread, and has done so for this long, ns, if that is known.
    Waits(Option<u64>),
}

/// `None`: it does something else, or waits for what may come from outside, or has only just begun to wait.
fn does(doing: Doing, runs_on: bool, is_still: Option<bool>, asleep_ns: Option<NonZeroU64>) -> Option<Does> {
    match doing {
        Doing::Runs | Doing::Starves => runs_on.then_some(Does::RunsOn),
        Doing::WaitsForLock | Doing::WaitsForThread | Doing::WaitsInside if is_still == Some(true) => {
            let asleep_ns = asleep_ns.map(NonZeroU64::get);
            asleep_ns.is_none_or(|asleep_ns| asleep_ns >= LATELY_NS).then_some(Does::Waits(asleep_ns))
        }
        _ => None,
    }
}

/// Whether somebody waits for threads that run on, or these may wait for one another: one thread that computes while
/// the others are idle is nothing to speak of.
fn is_suspicious(running: usize, waiting: &[Doing]) -> bool {
    let is_for_thread = |doing: &Doing| matches!(doing, Doing::WaitsForLock | Doing::WaitsForThread);
    running >= 2 || running == 1 && waiting.iter().any(is_for_thread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{SECOND, Scene, seen};

    /// Threads that do this; those that run do so without pause, the others have waited for two seconds.
    fn scene(threads: &[Doing]) -> Scene {
        let mut scene = Scene::new();
        for &doing in threads {
            let id = scene.thread("worker");
            let is_running = doing == Doing::Runs;
            let asleep_ns = NonZeroU64::new(2 * SECOND).filter(|_| !is_running);
            scene.model.threads[id].seen =
                Some(Seen { runs_on: is_running, asleep_ns, ..seen(doing, !is_running) });
        }
        scene
    }

    fn running_on(scene: &Scene) -> Option<(usize, usize, u64)> {
        let of = scene.with_view(RunningOn::of)?;
        Some((of.threads, of.others, of.for_ns))
    }

    #[test]
    fn threads_that_run_on_while_all_others_wait_for_them_are_told() {
        let spinning = scene(&[Doing::WaitsForThread, Doing::Runs, Doing::WaitsForLock]);
        assert_eq!(running_on(&spinning), Some((1, 2, 2 * SECOND)));
        let two = scene(&[Doing::WaitsInside, Doing::Runs, Doing::Runs]);
        assert_eq!(running_on(&two), Some((2, 1, 2 * SECOND)));
    }

    #[test]
    fn a_process_that_something_may_come_to_or_that_works_is_not() {
        for other in [Doing::WaitsOutside, Doing::Kernel, Doing::Stopped, Doing::Unknown] {
            assert_eq!(running_on(&scene(&[Doing::WaitsForThread, Doing::Runs, other])), None, "{other:?}");
        }
        assert_eq!(running_on(&scene(&[Doing::WaitsInside, Doing::Runs])), None, "an idle pool");
        assert_eq!(running_on(&scene(&[Doing::Runs])), None, "a thread alone");
        let threads = [Doing::WaitsForThread, Doing::Runs];
        let mut works = scene(&threads);
        works.model.threads[1].seen.as_mut().unwrap().runs_on = false;
        assert_eq!(running_on(&works), None);
        let mut marks = scene(&threads);
        marks.model.threads[1].advanced = Some(3);
        assert_eq!(running_on(&marks), None, "its marks advance");
        let mut young = scene(&threads);
        young.model.threads[0].seen.as_mut().unwrap().asleep_ns = NonZeroU64::new(SECOND / 2);
        assert_eq!(running_on(&young), None, "the other has only just begun to wait");
    }
}
