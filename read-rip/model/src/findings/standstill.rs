//! Who waits behind whom: each waiting thread is followed to the thread or lock that keeps it waiting.
//!
//! ```text
//! worker 1 --> SESSIONS, held by cleaner --> CACHE, held by flusher, which waits for no lock: the root
//! worker 2 --> CACHE
//! ```
//!
//! Threads with one root are one group. `long_wait`, `convoy` and `idle_pool` judge groups; this file judges nothing.
//! A thread of a cycle has no root: `deadlock` reports cycles. Each thread, wait and step is visited a fixed number of
//! times, however long the queues are.

use foldhash::HashMap;

use super::View;
use crate::locks::{Hold, HoldState, LockId, ThreadId, Wait};
use crate::threads::ThreadState;

/// What keeps a group of threads waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Root {
    /// This thread holds a lock, and does not wait for one itself.
    Holder(ThreadId),
    /// This lock, and no recorded thread is known to hold it.
    Lock(LockId),
}

/// Threads that wait, directly or behind others, for one root.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) root: Root,
    /// The lock that the root keeps and for which most threads wait.
    pub(super) lock: LockId,
    /// All threads that wait.
    pub(super) threads: Vec<ThreadId>,
    /// The locks for which they wait, each once.
    pub(super) locks: Vec<LockId>,
}

impl Group {
    /// How the root holds the lock; `None` if no holder is known.
    pub(super) fn hold<'v>(&self, view: &View<'v>) -> Option<&'v Hold> {
        let Root::Holder(thread) = self.root else { return None };
        let mut holders = view.now.locks[self.lock].holders.iter();
        holders.find(|hold| hold.thread == thread && hold.state == HoldState::Held)
    }

    /// The wait that began first, among those whose beginning is known.
    pub(super) fn first_wait_ns(&self, view: &View<'_>) -> Option<u64> {
        self.threads.iter().filter_map(|&thread| view.wait(thread)?.since_ns).min()
    }
}

/// What is known of a thread while its root is searched.
#[derive(Clone, Copy, PartialEq)]
enum Search {
    New,
    OnPath,
    Done(Option<Root>),
}

/// All groups, in the order of their first thread.
pub(super) fn groups<'v>(view: &'v View<'_>) -> &'v [Group] {
    view.memo.groups.get_or_init(|| find(view))
}

fn find(view: &View<'_>) -> Vec<Group> {
    let holders = chosen_holders(view);
    let mut found = vec![Search::New; view.now.threads.len()];
    let mut groups: Vec<Group> = Vec::new();
    let mut by_root: HashMap<Root, usize> = HashMap::default();
    for start in 0..found.len() {
        let Some(wait) = steady_wait(view, start) else { continue };
        let Some(root) = root_of(view, &holders, &mut found, start) else { continue };
        let at = *by_root.entry(root).or_insert_with(|| {
            groups.push(Group { root, lock: wait.lock, threads: Vec::new(), locks: Vec::new() });
            groups.len() - 1
        });
        groups[at].threads.push(start);
    }
    groups.iter_mut().for_each(|group| complete(view, &holders, group));
    groups
}

/// Follows a waiting thread to its root. `None`: it leads into a cycle, or to a thread that no longer exists.
fn root_of(
    view: &View<'_>,
    holders: &[Option<ThreadId>],
    found: &mut [Search],
    start: ThreadId,
) -> Option<Root> {
    let mut path = Vec::new();
    let mut at = start;
    let root = loop {
        match found[at] {
            Search::Done(root) => break root,
            Search::OnPath => break None,
            Search::New => {}
        }
        // A wait that began between the readings leads on all the same.
        let Some(wait) = view.wait(at) else {
            let is_present = view.now.threads[at].state == ThreadState::Present;
            break is_present.then_some(Root::Holder(at));
        };
        found[at] = Search::OnPath;
        path.push(at);
        match holders[wait.lock] {
            Some(holder) => at = holder,
            None => break Some(Root::Lock(wait.lock)),
        }
    };
    path.into_iter().for_each(|thread| found[thread] = Search::Done(root));
    root
}

/// Fills in the locks of a group.
fn complete(view: &View<'_>, holders: &[Option<ThreadId>], group: &mut Group) {
    let waits = group.threads.iter().filter_map(|&thread| view.wait(thread));
    let mut waited: Vec<LockId> = waits.map(|wait| wait.lock).collect();
    waited.sort_unstable();
    let is_kept = |lock: LockId| match group.root {
        Root::Holder(thread) => holders[lock] == Some(thread),
        Root::Lock(root) => lock == root,
    };
    let kept = waited.chunk_by(|one, other| one == other).filter(|waits| is_kept(waits[0]));
    if let Some(waits) = kept.max_by_key(|waits| (waits.len(), std::cmp::Reverse(waits[0]))) {
        group.lock = waits[0];
    }
    waited.dedup();
    group.locks = waited;
}

/// A thread's wait, if it lasted from one reading to the other.
fn steady_wait<'v>(view: &'v View<'v>, thread: ThreadId) -> Option<&'v Wait> {
    view.wait(thread).filter(|wait| wait.is_steady || view.now.window_ns.is_none())
}

/// For each lock with waiters, the holder that is followed: the one that the lock's memory names. If several
/// readers hold it: one that waits itself, or else one that recorded nothing.
fn chosen_holders(view: &View<'_>) -> Vec<Option<ThreadId>> {
    let rank = |hold: &&Hold| {
        let thread = &view.now.threads[hold.thread];
        (view.wait(hold.thread).is_some(), thread.advanced != Some(0), hold.thread)
    };
    let chosen = |lock: &crate::locks::Lock| {
        if let Some(owner) = lock.holders.iter().find(|hold| lock.is_owner_in_memory(hold)) {
            return Some(owner.thread);
        }
        let held = lock.holders.iter().filter(|hold| hold.state == HoldState::Held);
        let (waiting, others): (Vec<_>, Vec<_>) = held.partition(|hold| rank(hold).0);
        let of = if waiting.is_empty() { others } else { waiting };
        of.into_iter().min_by_key(rank).map(|hold| hold.thread)
    };
    let locks = view.now.locks.iter();
    locks.map(|lock| if lock.waiters.is_empty() { None } else { chosen(lock) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::Scene;

    fn found(scene: &Scene) -> Vec<Group> {
        scene.with_view(find)
    }

    #[test]
    fn a_chain_of_waits_has_one_root() {
        let mut scene = Scene::new();
        let root = scene.thread("root");
        let mut before = root;
        for at in 0..5 {
            let (lock, thread) = (scene.lock(&format!("LOCK_{at}")), scene.thread("link"));
            scene.holds(before, lock);
            scene.waits(thread, lock);
            before = thread;
        }
        let groups = found(&scene);
        assert_eq!((groups.len(), groups[0].root), (1, Root::Holder(root)));
        assert_eq!((groups[0].threads.len(), groups[0].lock), (5, 0));
        assert_eq!(groups[0].locks, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_cycle_and_what_waits_behind_it_has_no_root() {
        let mut scene = Scene::of_two_threads_and_a_lock();
        let other = scene.lock("OTHER");
        (0..2).for_each(|at| scene.holds(at, [0, other][at]));
        (0..2).for_each(|at| scene.waits(at, [other, 0][at]));
        let behind = scene.thread("behind");
        scene.waits(behind, 0);
        assert!(found(&scene).is_empty());
    }

    #[test]
    fn forty_thousand_threads_at_one_lock_are_one_group() {
        let mut scene = Scene::new();
        let (owner, lock) = (scene.thread("owner"), scene.lock("CACHE"));
        scene.holds(owner, lock);
        for _ in 0..40_000 {
            let thread = scene.thread("worker");
            scene.waits(thread, lock);
        }
        let groups = found(&scene);
        assert_eq!((groups.len(), groups[0].threads.len()), (1, 40_000));
    }

    #[test]
    fn a_lock_without_a_known_holder_is_a_root() {
        let mut scene = Scene::of_two_threads_and_a_lock();
        scene.waits(0, 0);
        assert_eq!(found(&scene)[0].root, Root::Lock(0));
    }
}
