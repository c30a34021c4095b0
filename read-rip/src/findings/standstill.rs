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

pub(super) use super::group::{Group, Root};
use super::view::View;
use crate::hash::HashMap;
use crate::locks::{Hold, HoldState, LockId, StepKind, ThreadId, Wait};
use crate::threads::ThreadState;

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
    let mut waiters: HashMap<LockId, usize> = HashMap::default();
    for &thread in &group.threads {
        if let Some(wait) = view.wait(thread) {
            *waiters.entry(wait.lock).or_default() += 1;
        }
    }
    let is_kept = |lock: LockId| match group.root {
        Root::Holder(thread) => holders[lock] == Some(thread),
        Root::Lock(root) => lock == root,
    };
    let kept = waiters.iter().filter(|&(&lock, _)| is_kept(lock));
    if let Some((&lock, _)) = kept.max_by_key(|&(&lock, &count)| (count, std::cmp::Reverse(lock))) {
        group.lock = lock;
    }
    group.locks = waiters.into_keys().collect();
    group.locks.sort_unstable();
}

/// A thread's wait, if it lasted from one reading to the other.
fn steady_wait<'v>(view: &'v View<'v>, thread: ThreadId) -> Option<&'v Wait> {
    view.wait(thread).filter(|wait| wait.is_steady || view.now.window_ns.is_none())
}

/// For each lock with waiters, the holder that is followed: of several readers one that waits itself, or else one
/// that recorded nothing.
fn chosen_holders(view: &View<'_>) -> Vec<Option<ThreadId>> {
    let rank = |hold: &&Hold| {
        let thread = &view.now.threads[hold.thread];
        (view.wait(hold.thread).is_some(), thread.advanced != Some(0), hold.thread)
    };
    let chosen = |lock: &crate::locks::Lock| {
        let held = lock.holders.iter().filter(|hold| hold.state == HoldState::Held);
        let (waiting, others): (Vec<_>, Vec<_>) = held.partition(|hold| rank(hold).0);
        let of = if waiting.is_empty() { others } else { waiting };
        of.into_iter().min_by_key(rank).map(|hold| hold.thread)
    };
    let locks = view.now.locks.iter();
    locks.map(|lock| if lock.waiters.is_empty() { None } else { chosen(lock) }).collect()
}

/// What the known histories say of a lock's changes of hands and of its users.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// The last release with a known time, ns since boot.
    pub(super) released_ns: Option<u64>,
    /// A release without a time, by a thread of which nothing later has a time: it may be recent.
    pub(super) has_undated_release: bool,
    /// The threads that are known to have acquired the lock, or wait for it, each once.
    pub(super) users: Vec<ThreadId>,
}

/// The pasts of some locks.
#[derive(Debug)]
pub(super) struct Pasts {
    pasts: Vec<Past>,
    /// For each lock, 0, or the index of its past plus 1.
    of_lock: Vec<u32>,
}

impl Pasts {
    /// The past of a lock; `None` if it was not asked for.
    pub(super) fn get(&self, lock: LockId) -> Option<&Past> {
        self.pasts.get((self.of_lock[lock] as usize).checked_sub(1)?)
    }

    fn get_mut(&mut self, lock: LockId) -> Option<&mut Past> {
        self.pasts.get_mut((self.of_lock[lock] as usize).checked_sub(1)?)
    }

    /// The locks were released at this time at the latest.
    fn release_until(&mut self, locks: &mut Vec<LockId>, time_ns: u64) {
        for lock in locks.drain(..) {
            if let Some(past) = self.get_mut(lock) {
                past.released_ns = past.released_ns.max(Some(time_ns));
            }
        }
    }
}

/// The past of these locks, from one pass over all histories.
pub(super) fn pasts(view: &View<'_>, locks: impl IntoIterator<Item = LockId>) -> Pasts {
    let mut pasts = Pasts { pasts: Vec::new(), of_lock: vec![0; view.now.locks.len()] };
    for lock in locks {
        if pasts.of_lock[lock] == 0 {
            pasts.pasts.push(Past::default());
            pasts.of_lock[lock] = u32::try_from(pasts.pasts.len()).unwrap_or(0);
        }
    }
    if pasts.pasts.is_empty() {
        return pasts;
    }
    // Releases without a time, and after the last step with one.
    let mut undated: Vec<LockId> = Vec::new();
    for (id, thread) in view.now.threads.iter().enumerate() {
        for step in &thread.steps {
            if let Some(time_ns) = step.time_ns {
                // They came before this.
                pasts.release_until(&mut undated, time_ns);
            }
            let Some(lock) = step.lock else { continue };
            let Some(past) = pasts.get_mut(lock) else { continue };
            past.is_used_by(id);
            if matches!(step.kind, StepKind::Released | StepKind::ConditionWait) {
                match step.time_ns {
                    Some(time_ns) => past.released_ns = past.released_ns.max(Some(time_ns)),
                    None => undated.push(lock),
                }
            }
        }
        // A wait that goes on came after all steps.
        let waits = [thread.wait, thread.sleep].into_iter().flatten();
        if let Some(since_ns) = waits.filter_map(|wait| wait.since_ns).min() {
            pasts.release_until(&mut undated, since_ns);
        }
        for lock in undated.drain(..) {
            if let Some(past) = pasts.get_mut(lock) {
                past.has_undated_release = true;
            }
        }
        for lock in thread.holds.iter().map(|hold| hold.lock).chain(thread.wait.map(|wait| wait.lock)) {
            if let Some(past) = pasts.get_mut(lock) {
                past.is_used_by(id);
            }
        }
    }
    pasts
}

impl Past {
    /// Notes that a thread uses the lock. Threads come one after the other.
    fn is_used_by(&mut self, thread: ThreadId) {
        if self.users.last() != Some(&thread) {
            self.users.push(thread);
        }
    }

    /// Whether the lock was certainly not released after this moment, as far as histories show.
    pub(super) fn is_kept_since(&self, since_ns: u64) -> bool {
        !self.has_undated_release && self.released_ns.is_none_or(|released_ns| released_ns <= since_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{NOW, SECOND, Scene};

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

    #[test]
    fn an_undated_release_may_be_recent_unless_the_thread_waits_since() {
        let mut scene = Scene::of_two_threads_and_a_lock();
        scene.step(0, StepKind::Released, 0).time_ns = None;
        let past = |scene: &Scene| scene.with_view(|view| pasts(view, [0]).pasts.remove(0));
        assert!(past(&scene).has_undated_release);
        scene.waits(0, 0);
        assert!(!past(&scene).has_undated_release);
        assert!(
            past(&scene).is_kept_since(NOW - 12 * SECOND) && !past(&scene).is_kept_since(NOW - 13 * SECOND)
        );
    }
}
