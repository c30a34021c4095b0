//! Which waits may end in a moment, because whoever can end them goes on by itself. It makes no findings.
//!
//! A core file is one moment. If it has a thread that runs, that thread may be about to release a lock: the threads
//! that wait for it need not be stuck. The same holds for a thread that sleeps for a short time. Where the record has
//! the time at which a wait began, that time decides instead.
//!
//! If the holder of a lock is known, it is the one that has to go on. Otherwise each thread that waits for no lock may
//! be the holder.

use super::View;
use super::idle_pool::IdlePlaces;
use super::standstill::{Group, Root};
use crate::locks::{Doing, Seen, ThreadId};
use crate::threads::ThreadState;

/// A thread that sleeps for at most this time goes on soon, ns.
const SHORT_NS: u64 = 1_000_000_000;

/// Whether a core file is judged: one moment, in which the processors' state says what each thread does.
pub(super) fn is_core(view: &View<'_>) -> bool {
    view.now.is_final && view.now.window_ns.is_none() && view.now.threads.iter().any(|of| of.seen.is_some())
}

/// Whether the waits of a group may end in a moment, as far as this reading shows.
pub(super) fn may_end(view: &View<'_>, group: &Group) -> bool {
    if !is_core(view) || group.first_wait_ns(view).is_some() {
        return false;
    }
    match group.root {
        Root::Holder(holder) => goes_on(view, holder),
        Root::Lock(lock) => {
            let pid = view.now.locks[lock].pid;
            let may_hold = |&id: &ThreadId| view.now.threads[id].pid == pid && view.wait(id).is_none();
            (0..view.now.threads.len()).filter(may_hold).any(|id| goes_on(view, id))
        }
    }
}

/// Whether a thread sleeps, and the time is short after which it goes on.
pub(super) fn sleeps_shortly(seen: &Seen) -> bool {
    seen.limit_ns.is_some_and(|limit_ns| limit_ns.get() <= SHORT_NS)
}

/// Whether a thread goes on without anything that another one has to do.
fn goes_on(view: &View<'_>, id: ThreadId) -> bool {
    let thread = &view.now.threads[id];
    let is_there = thread.state == ThreadState::Present;
    let goes_on = |seen: Seen| matches!(seen.doing, Doing::Runs | Doing::Kernel) || sleeps_shortly(&seen);
    thread.seen.is_some_and(|seen| is_there && goes_on(seen))
}

/// How many threads of a core file wait for locks, and are not the idle part of a pool, without a time at which they
/// began.
pub(super) fn waiting_in_core(view: &View<'_>) -> usize {
    if !is_core(view) {
        return 0;
    }
    let idle = IdlePlaces::of(view);
    let waits = |(id, of): &(ThreadId, &crate::locks::ThreadLocks)| {
        let seen = of.seen.filter(|seen| seen.doing == Doing::WaitsForLock && !idle.has(view, seen));
        seen.is_some() && view.wait(*id).is_none_or(|wait| wait.since_ns.is_none())
    };
    view.now.present().filter(waits).count()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::findings::long_wait::LongWait;
    use crate::findings::stall::Stalled;
    use crate::findings::testing::{Scene, seen};
    use crate::findings::{Balance, Kind, Outcome};

    /// A core file: the first thread does this, and the others wait for a lock, which the first one has if that is
    /// known. Nothing recorded when they began.
    fn core(doing: Doing, is_holder_known: bool) -> Scene {
        let mut scene = Scene::dead();
        let lock = scene.lock("CACHE");
        for index in 0..4 {
            let thread = scene.thread("worker");
            let place = scene.location("cache.c", 10 + u32::from(index > 0));
            scene.locations[place].full_function = if index > 0 { "lookup" } else { "refresh" }.into();
            let what = if index > 0 { Doing::WaitsForLock } else { doing };
            let is_still = what != Doing::Runs;
            scene.model.threads[thread].seen =
                Some(Seen { index, place: Some(place), ..seen(what, is_still) });
            if index > 0 {
                scene.waits_with(thread, lock, |wait| wait.since_ns = None);
            }
        }
        if is_holder_known {
            scene.holds_with(0, lock, |hold| hold.since_ns = None);
        }
        scene
    }

    fn kinds(scene: &Scene) -> Vec<Kind> {
        let found = scene.run(&LongWait);
        let found = if found.is_empty() { scene.run(&Stalled) } else { found };
        found.iter().map(|finding| finding.kind).collect()
    }

    fn outcome(scene: &Scene) -> Outcome {
        scene.with_view(|view| Balance::of(view, &[])).outcome
    }

    #[test]
    fn a_core_file_with_a_holder_that_runs_is_not_judged() {
        for is_holder_known in [false, true] {
            let scene = core(Doing::Runs, is_holder_known);
            assert_eq!(kinds(&scene), [], "{is_holder_known}");
            assert_eq!(outcome(&scene), Outcome::OneMoment);
        }
        let mut other = core(Doing::WaitsOutside, true);
        let busy = other.thread("busy");
        other.model.threads[busy].seen = Some(seen(Doing::Runs, false));
        assert_eq!(kinds(&other), [Kind::LongWait], "the holder waits, and another thread runs");
    }

    #[test]
    fn a_core_file_with_a_holder_that_sleeps_for_a_short_time_is_not_judged() {
        for is_holder_known in [false, true] {
            let mut scene = core(Doing::WaitsOutside, is_holder_known);
            let limit = |scene: &mut Scene, limit_ns| {
                scene.model.threads[0].seen.as_mut().unwrap().limit_ns = NonZeroU64::new(limit_ns);
            };
            limit(&mut scene, SHORT_NS / 2);
            assert_eq!(kinds(&scene), [], "{is_holder_known}");
            limit(&mut scene, 60 * SHORT_NS);
            assert_eq!(kinds(&scene).len(), 1, "{is_holder_known}");
        }
    }

    #[test]
    fn a_core_file_in_which_nobody_goes_on_is_judged() {
        assert_eq!(kinds(&core(Doing::WaitsOutside, true)), [Kind::LongWait]);
        assert_eq!(kinds(&core(Doing::WaitsOutside, false)), [Kind::Stall]);
        assert_eq!(kinds(&core(Doing::WaitsForThread, false)), [Kind::Stall]);
    }

    #[test]
    fn a_recorded_time_decides_also_in_a_core_file() {
        let mut scene = core(Doing::Runs, true);
        scene.waits(3, 0);
        assert_eq!(kinds(&scene), [Kind::LongWait]);
    }
}
