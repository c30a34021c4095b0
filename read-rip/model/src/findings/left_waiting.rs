//! Who waited, and where, in a dead process that is not judged: by the record alone.

use super::lost_wakeup::last_unheard;
use super::nobody_left::{asleep, sleep_fact};
use super::{JoinFact, Names, SleepFact, View, Words};
use crate::locations::LocationId;
use crate::locks::{Awaited, ThreadId, ThreadLocks, Wait};

/// More threads are not listed.
const LISTED_MAX: usize = 5;

/// Threads that waited when a process died.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeftWaiting {
    first: Vec<Waiting>,
    more: usize,
}

/// A thread that waits.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Waiting {
    /// For a lock, a signal, a message and so on. Who has signalled last, and where, if nobody waited then.
    Sleep(SleepFact, Option<(ThreadId, LocationId)>),
    /// For the end of a thread.
    Join(JoinFact),
}

impl LeftWaiting {
    /// The recorded threads that waited without a time limit. None of a living process: the kernel says more of that.
    pub(super) fn of(view: &View<'_>) -> LeftWaiting {
        if !view.now.is_final || !view.now.seen.is_empty() {
            return LeftWaiting::default();
        }
        let threads = view.now.present().filter(|(_, thread)| thread.task.is_none());
        let sleep = |thread: &ThreadLocks, wait: &Wait| {
            let unheard = thread.condition.and_then(|condition| last_unheard(view.now, condition));
            let fact = || sleep_fact(view, wait, asleep(view.now, thread));
            (!wait.is_timed).then(|| Waiting::Sleep(fact(), unheard))
        };
        let waiting = threads.filter_map(|(_, thread)| match thread.awaited()? {
            Awaited::End(join) => (!join.is_timed).then(|| Waiting::Join(view.join_fact(join))),
            Awaited::Lock(wait) => sleep(thread, wait),
            Awaited::Condition { wait, .. } | Awaited::Unit { wait, .. } => sleep(thread, wait?),
        });
        let mut first: Vec<Waiting> = waiting.collect();
        let more = first.len().saturating_sub(LISTED_MAX);
        first.truncate(LISTED_MAX);
        LeftWaiting { first, more }
    }

    /// A line for each of the first threads.
    pub fn lines(&self, names: &dyn Names) -> Vec<String> {
        let locks = self.first.iter().filter_map(|one| match one {
            Waiting::Sleep(sleep, _) => Some(sleep.lock),
            Waiting::Join(_) => None,
        });
        let mut words = Words::new(names, &locks.collect::<Vec<_>>());
        let mut lines: Vec<String> = Vec::new();
        for one in &self.first {
            match one {
                Waiting::Sleep(sleep, unheard) => {
                    lines.push(words.sleep(sleep));
                    lines.extend(unheard.map(|(thread, at)| words.unheard(thread, at)));
                }
                Waiting::Join(join) => lines.push(words.join(join)),
            }
        }
        lines.extend(words.and_more(self.more));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::Scene;

    #[test]
    fn the_threads_of_a_dead_process_that_waited_are_listed() {
        let mut scene = Scene::killed();
        let lock = scene.lock("QUEUE");
        let threads: Vec<usize> = (0..7).map(|_| scene.thread("worker")).collect();
        threads[..6].iter().for_each(|&thread| scene.waits_on_condition(thread, lock));
        scene.joins(threads[6], threads[0], |_| ());
        let of = scene.with_view(LeftWaiting::of);
        assert_eq!((of.first.len(), of.more), (5, 2));
        scene.model.threads[0].sleep.as_mut().unwrap().is_timed = true;
        assert_eq!(scene.with_view(LeftWaiting::of).more, 1, "it wakes by itself");
        scene.model.is_final = false;
        assert_eq!(scene.with_view(LeftWaiting::of), LeftWaiting::default(), "the kernel says more");
    }
}
