//! Nested reads: a reader acquires a lock again while it reads, and a writer uses the lock too.
//!
//! # Question
//!
//! Could a writer come between two shared acquisitions of one thread, so that both wait for ever?
//!
//! # Method
//!
//! Readers of most readers-writer locks queue after a waiting writer. So a thread that holds such a lock shared and
//! acquires it shared once more gets stuck if a writer has begun to wait in between: the writer waits for the first
//! acquisition, the second acquisition waits for the writer. A history shows such a pair of acquisitions. The finding
//! is suspected if another thread was seen to acquire the lock exclusively, or to wait for that.
//!
//! # Blind spots
//!
//! A cycle that has happened is a deadlock. Tries, locks whose readers pass waiting writers, and acquisitions that say
//! that they do so are left out. So are locks whose writer was overwritten in all histories, and locks of futures that
//! a task acquires: two of its futures may read at once, as in a `join!` or a stream, and neither waits for the other.
//!
//! # Example output
//!
//! ```text
//! suspected nested-read: worker[12] acquired ROUTES shared while it held it shared, and writer[13] acquires it too
//!     worker[12] acquired it at lookup routes.rs:70, after acquiring it at handle routes.rs:40
//!     writer[13] acquired it exclusively at reload routes.rs:90
//! ```

use foldhash::{HashMap, HashSet};
use serde::Serialize;

use super::finding::locks_of;
use super::history::{self, is_acquisition};
use super::{About, Advice, Analysis, Basis, Confidence, Doubt, Finding, Kind, Paragraph, View, Words};
use crate::locations::LocationId;
use crate::locks::{LockId, LockModel, ThreadId};

/// See the file's description.
pub(super) struct NestedRead;

/// A writer of a lock, and where it acquired the lock or waits for it.
type Writer = (ThreadId, LocationId);

/// A lock that a thread acquired shared while it held it shared, and a writer of the lock.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NestedReads {
    /// The thread.
    pub thread: ThreadId,
    /// The lock.
    pub lock: LockId,
    /// Where the thread acquired it first.
    pub first: LocationId,
    /// Where the thread acquired it again.
    pub second: LocationId,
    /// A thread that acquires the lock exclusively.
    pub writer: ThreadId,
    /// Where the writer acquired the lock, or waits for it.
    pub written: LocationId,
}

impl Analysis for NestedRead {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let model = view.now;
        let writers = writers(model);
        if writers.is_empty() {
            return;
        }
        let deadlocked = locks_of(found, &[Kind::Deadlock, Kind::Futurelock]);
        // Once for each pair of locations.
        let mut seen: HashSet<(LocationId, LocationId)> = HashSet::default();
        for (id, thread) in model.threads.iter().enumerate().filter(|&(id, _)| view.is_nesting(id)) {
            let has_branches = |lock: LockId| thread.task.is_some() && model.locks[lock].nature.is_of_futures;
            history::replay(thread, |step, held| {
                let reads = is_acquisition(step) && step.is_shared && !step.is_try && !step.is_readers_first;
                let is_wanted = |&lock: &LockId| reads && !deadlocked.contains(&lock) && !has_branches(lock);
                let Some(lock) = step.lock.filter(is_wanted) else { return };
                let Some(writers) = writers.get(&lock) else { return };
                let Some(first) = held.iter().find(|held| held.lock == lock && held.is_shared) else {
                    return;
                };
                let Some(&(writer, written)) = writers.iter().find(|(writer, _)| *writer != id) else {
                    return;
                };
                if !seen.insert((first.location, step.location)) {
                    return;
                }
                let evidence = NestedReads {
                    thread: id,
                    lock,
                    first: first.location,
                    second: step.location,
                    writer,
                    written,
                };
                let kind = Kind::NestedRead;
                let mut finding = Finding::new(kind, Confidence::Suspected, evidence, Advice::NoNestedReads);
                finding.doubts = vec![Doubt::MaybeNeverConcurrent];
                found.push(finding);
            });
        }
    }
}

/// For each lock whose readers may queue: at most two threads that acquired it exclusively or wait for that.
fn writers(model: &LockModel) -> HashMap<LockId, Vec<Writer>> {
    let mut writers: HashMap<LockId, Vec<Writer>> = HashMap::default();
    let queues = |lock: LockId| model.locks[lock].nature.readers_first == Some(false);
    if !(0..model.locks.len()).any(queues) {
        return writers;
    }
    let mut add = |lock: LockId, writer: Writer| {
        let known = writers.entry(lock).or_default();
        if known.len() < 2 && known.iter().all(|(thread, _)| *thread != writer.0) {
            known.push(writer);
        }
    };
    for (id, thread) in model.threads.iter().enumerate() {
        let writes = thread.steps.iter().filter(|step| is_acquisition(step) && !step.is_shared);
        let steps = writes.filter_map(|step| Some((step.lock?, step.location)));
        let holds = thread.holds.iter().filter(|hold| !hold.is_shared);
        let holds = holds.filter_map(|hold| Some((hold.lock, hold.location?)));
        let wait = thread.wait.iter().filter(|wait| !wait.is_shared).map(|wait| (wait.lock, wait.location));
        for (lock, location) in steps.chain(holds).chain(wait).filter(|(lock, _)| queues(*lock)) {
            add(lock, (id, location));
        }
    }
    writers
}

impl Basis for NestedReads {
    fn about(&self, all: &mut About<'_>) {
        all.thread_and_lock(self.thread, self.lock, [self.second, self.first]);
        all.thread(self.writer, [self.written]);
        all.other(self.first, |words| {
            format!("{} acquires {} shared here", words.thread(self.thread), words.short_lock(self.lock))
        });
        all.main(self.second, |_| "and again here".to_owned());
        all.other(self.written, |words| {
            format!("{} acquires it exclusively here", words.thread(self.writer))
        });
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let (thread, writer) = (words.thread(self.thread), words.thread(self.writer));
        let [first, second, written] =
            [self.first, self.second, self.written].map(|location| words.location(location));
        let lock = words.lock(self.lock);
        Paragraph {
            summary: format!(
                "{thread} acquired {lock} shared while it held it shared, and {writer} writes to it"
            ),
            evidence: vec![
                format!("{thread} acquired it at {second}, after acquiring it at {first}"),
                format!(
                    "{writer} acquires it exclusively at {written}: if it waits in between, both wait for ever"
                ),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::Scene;
    use crate::locks::StepKind;

    /// A thread that reads twice, and another thread that writes.
    fn scene(readers_first: Option<bool>) -> Scene {
        let mut scene = Scene::new();
        scene.thread("reader");
        scene.thread("writer");
        let lock = scene.rwlock("ROUTES", readers_first);
        for kind in [StepKind::AcquireBegin, StepKind::AcquireBegin, StepKind::Released, StepKind::Released] {
            scene.step(0, kind, lock).is_shared = true;
        }
        scene.nests(1, &[lock]);
        scene
    }

    #[test]
    fn a_reader_that_reads_again_and_a_writer_are_suspected() {
        let found = scene(Some(false)).run(&NestedRead);
        assert_eq!((found.len(), found[0].confidence), (1, Confidence::Suspected));
        assert_eq!(found[0].mentions.threads, [0, 1]);
    }

    #[test]
    fn two_futures_of_a_task_may_read_at_once() {
        let mut scene = scene(Some(false));
        scene.model.locks[0].nature.is_of_futures = true;
        assert_eq!(scene.run(&NestedRead).len(), 1, "a thread reads twice, and blocks");
        let task = scene.task("request");
        scene.model.threads[0].task = scene.model.threads[task].task.take();
        assert!(scene.run(&NestedRead).is_empty());
    }

    #[test]
    fn locks_whose_readers_pass_writers_tries_and_locks_without_a_writer_are_no_finding() {
        for readers_first in [Some(true), None] {
            assert!(scene(readers_first).run(&NestedRead).is_empty());
        }
        let mut tried = scene(Some(false));
        tried.steps(0)[1].is_try = true;
        assert!(tried.run(&NestedRead).is_empty(), "a try does not wait");
        let mut passes = scene(Some(false));
        passes.steps(0)[1].is_readers_first = true;
        assert!(passes.run(&NestedRead).is_empty(), "a recursive read does not queue");
        let mut alone = scene(Some(false));
        alone.model.threads[1].steps = Default::default();
        assert!(alone.run(&NestedRead).is_empty(), "no writer");
        alone.waits(1, 0);
        assert_eq!(alone.run(&NestedRead).len(), 1, "a writer waits");
    }

    #[test]
    fn a_thread_is_no_writer_between_its_own_reads() {
        let mut scene = scene(Some(false));
        scene.model.threads[1].steps = Default::default();
        scene.nests(0, &[0]);
        assert!(scene.run(&NestedRead).is_empty());
    }
}
