//! Pools of threads with no free thread: all workers wait within jobs, for what only other threads can bring.
//!
//! If what they wait for is the work of jobs of the same pool, no thread is left to run these, and the workers wait for
//! ever. But another thread may bring it, as one that reads the answers of a server. What a job waits for is not known,
//! so this accuses nobody. It says that the process is not judged.

use std::num::NonZeroU64;

use foldhash::HashMap;
use serde::Serialize;

use super::{LATELY_NS, View};
use crate::locations::LocationId;
use crate::locks::{Doing, Job, Seen, ThreadId};

/// A pool of threads that has no free thread: all of them wait within jobs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitingJobs {
    /// How many threads.
    pub threads: usize,
    /// Where the pool runs its jobs.
    pub pool: LocationId,
    /// The thread that has waited longest.
    pub first: ThreadId,
    /// Where it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationId>,
    /// What it does.
    pub doing: Doing,
    /// For how long all of them have waited, ns, at least; `None`: the process is dead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
}

impl WaitingJobs {
    /// The largest such pool.
    pub(super) fn of(view: &View<'_>) -> Option<WaitingJobs> {
        // A pool is the function that runs its jobs, in a process. It may call them in several places.
        let mut pools: HashMap<(u32, u64), Vec<Worker>> = HashMap::default();
        for (id, seen) in view.now.present().filter_map(|(id, thread)| Some((id, thread.seen?))) {
            if let Some(job) = seen.job {
                pools.entry((seen.process, job.pool)).or_default().push((id, seen, job));
            }
        }
        let found = pools.into_values().filter_map(|workers| waiting(view, &workers));
        found.max_by_key(|pool| (pool.threads, std::cmp::Reverse(pool.first)))
    }
}

/// A thread of a pool, and the job that it is in.
type Worker = (ThreadId, Seen, Job);

/// The workers of a pool, if all of them wait for what other threads bring, and have done so for long.
fn waiting(view: &View<'_>, workers: &[Worker]) -> Option<WaitingJobs> {
    let waits = |(_, seen, _): &Worker| {
        let is_long = seen.asleep_ns.is_some_and(|asleep_ns| asleep_ns.get() >= LATELY_NS);
        let is_inside =
            matches!(seen.doing, Doing::WaitsForLock | Doing::WaitsForThread | Doing::WaitsInside);
        is_inside && seen.is_still == Some(true) && (is_long || view.now.is_final)
    };
    // Whoever waits for a certain thread alone waits for that, whatever the pool does.
    let is_any_open = workers.iter().any(|(_, seen, _)| seen.doing == Doing::WaitsInside);
    if !is_any_open || !workers.iter().all(waits) {
        return None;
    }
    let open = workers.iter().filter(|(_, seen, _)| seen.doing == Doing::WaitsInside);
    let &(first, seen, job) = open.max_by_key(|(id, seen, _)| (seen.asleep_ns, std::cmp::Reverse(*id)))?;
    let for_ns = workers.iter().filter_map(|(_, seen, _)| seen.asleep_ns).min().map(NonZeroU64::get);
    let Seen { place: location, doing, .. } = seen;
    Some(WaitingJobs { threads: workers.len(), pool: job.at, first, location, doing, for_ns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{SECOND, Scene, seen};
    use crate::findings::{Balance, Outcome};

    /// Two workers that wait within jobs, and a thread that waits for connections.
    fn scene(change: impl FnOnce(&mut Scene)) -> Balance {
        let mut scene = Scene::new();
        let server = scene.thread("server");
        scene.model.threads[server].seen = Some(seen(Doing::WaitsOutside, true));
        // The pool calls its jobs at two places.
        let places = [30, 40].map(|line| scene.location("pool.c", line));
        for at in places {
            let worker = scene.thread("worker");
            let asleep_ns = NonZeroU64::new(3 * SECOND);
            scene.model.threads[worker].seen = Some(Seen {
                job: Some(Job { pool: 0x1000, at }),
                asleep_ns,
                ..seen(Doing::WaitsInside, true)
            });
        }
        change(&mut scene);
        scene.with_view(|view| Balance::of(view, &[]))
    }

    #[test]
    fn a_pool_without_a_free_worker_is_not_called_sound() {
        let of = scene(|_| {});
        let jobs = of.waiting_jobs.expect("a pool");
        assert_eq!((of.outcome, jobs.threads, jobs.first), (Outcome::WaitingJobs, 2, 1));
        assert_eq!(jobs.for_ns, Some(3 * SECOND));
    }

    #[test]
    fn a_pool_that_may_go_on_is() {
        type Change = fn(&mut Seen);
        let changes: [(&str, Change); 4] = [
            ("a job reads", |seen| seen.doing = Doing::WaitsOutside),
            ("a job has just begun to wait", |seen| seen.asleep_ns = NonZeroU64::new(SECOND / 2)),
            ("a job moved", |seen| seen.is_still = Some(false)),
            ("a job runs", |seen| (seen.doing, seen.is_still) = (Doing::Runs, Some(false))),
        ];
        for (what, change) in changes {
            let of = scene(|scene| change(scene.model.threads[2].seen.as_mut().unwrap()));
            assert_eq!(of.outcome, Outcome::NothingFound, "{what}");
        }
        let of = scene(|scene| {
            for worker in [1, 2] {
                scene.model.threads[worker].seen.as_mut().unwrap().doing = Doing::WaitsForThread;
            }
        });
        assert_eq!(of.outcome, Outcome::NothingFound, "they wait for certain threads");
    }
}
