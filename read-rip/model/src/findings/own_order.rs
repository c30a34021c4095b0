//! Both orders in one thread: a lock-order inversion of which only one side ran at a time.
//!
//! # Question
//!
//! Did one thread acquire two locks in both orders, and is there another thread of its kind, so that two such threads
//! could get stuck?
//!
//! # Method
//!
//! A thread cannot wait for itself in this way. But the threads of a pool run the same code. So each pair of locks that
//! a thread acquired in both orders is suspected, if another thread with the same name, apart from digits, has used
//! both locks too; or another task that the program made at the same place. The main thread is the only one of its
//! kind. It is no finding if the thread held a common gate lock both times, the modes let both in, one of the
//! acquisitions was a try, or a finding about two threads names the same locks. The return from a wait on a condition
//! variable acquires its lock again: a thread that keeps another lock meanwhile takes part in both orders. Pairs of
//! locks with the same names are one finding.
//!
//! # Blind spots
//!
//! A test with one worker sees both orders in that one, and no other thread of the kind. Cycles of three and more locks
//! are left to `lock_order`, which needs a thread for each. If a thread holds very many locks, only the innermost ones
//! are compared.
//!
//! # Example output
//!
//! ```text
//! suspected lock-order: a thread acquires two locks in opposite orders
//!     worker[12] acquired SAVINGS at transfer bank.rs:37 while it held CURRENT, acquired at transfer bank.rs:35
//!     worker[12] acquired CURRENT at transfer bank.rs:37 while it held SAVINGS, acquired at transfer bank.rs:35
//!     doubt: one thread did both ...
//! ```

use std::collections::BTreeMap;

use foldhash::{HashMap, HashSet};

use super::finding::locks_of;
use super::history::{self, Held};
use super::idle_pool::stem;
use super::lock_order::{Acquisition, OrderCycle, OrderEdge, group_name};
use super::replaced::replaced;
use super::{Advice, Analysis, Confidence, Doubt, Finding, Kind, View};
use crate::locks::{LockId, Step, StepKind, ThreadId, ThreadLocks};

/// See the file's description.
pub(super) struct OwnOrder;

/// At most this many of the locks that a thread holds are compared with one that it acquires.
const HELD_MAX: usize = 32;
/// At most this many occurrences of a pair are kept; they differ in gates and modes.
const OCCURRENCES_MAX: usize = 4;
/// At most this many pairs of one thread are kept.
const PAIRS_MAX: usize = 4096;
/// At most this many findings are made.
const FINDINGS_MAX: usize = 10;

/// A thread acquired one lock while it held another.
#[derive(Clone, Debug)]
struct Occurrence {
    held: Acquisition,
    acquired: Acquisition,
    /// All that it held, and whether shared.
    gates: Vec<(LockId, bool)>,
}

/// What one thread did with a pair of locks: held, acquired.
type Pairs = HashMap<(LockId, LockId), Vec<Occurrence>>;

impl Analysis for OwnOrder {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let known = locks_of(found, &[Kind::Deadlock, Kind::Futurelock, Kind::LockOrder]);
        let ended = replaced(view);
        let mut users = Users::default();
        // The first inversion of each pair of names, and how many pairs of locks have these names.
        let mut groups: BTreeMap<[String; 2], (OrderCycle, HashSet<[LockId; 2]>)> = BTreeMap::new();
        let threads = view.now.threads.iter().enumerate().filter(|(_, thread)| history::is_complete(thread));
        for (id, thread) in threads.filter(|&(id, _)| view.is_nesting(id)) {
            let mut add = |first: &Occurrence, second: &Occurrence| {
                let locks = [first.held.lock, first.acquired.lock];
                if locks.iter().any(|lock| ended.contains(lock))
                    || locks.iter().all(|lock| known.contains(lock))
                    || !users.has_another_of_kind(view, id, locks)
                {
                    return;
                }
                let edge = |of: &Occurrence| OrderEdge { thread: id, held: of.held, acquired: of.acquired };
                let new = || OrderCycle { edges: vec![edge(first), edge(second)], similar: 0, unlisted: 0 };
                let mut names = locks.map(|lock| group_name(view, lock));
                names.sort_unstable();
                let (_, pairs) = groups.entry(names).or_insert_with(|| (new(), HashSet::default()));
                pairs.insert([locks[0].min(locks[1]), locks[0].max(locks[1])]);
            };
            inversions(thread, &mut add);
        }
        let all = groups.len();
        for (at, (mut cycle, pairs)) in groups.into_values().take(FINDINGS_MAX).enumerate() {
            cycle.similar = pairs.len() - 1;
            cycle.unlisted = if at + 1 == FINDINGS_MAX { all - FINDINGS_MAX } else { 0 };
            let mut finding = Finding::new(Kind::LockOrder, Confidence::Suspected, cycle, Advice::OneOrder);
            finding.doubts = vec![Doubt::OneThread];
            found.push(finding);
        }
    }
}

/// Which threads use each lock, in the order of their ids. It is found out once, and only if a thread has both orders.
#[derive(Default)]
struct Users(Option<HashMap<LockId, Vec<ThreadId>>>);

impl Users {
    /// Whether another thread of the same kind uses both locks.
    fn has_another_of_kind(&mut self, view: &View<'_>, id: ThreadId, locks: [LockId; 2]) -> bool {
        let users = self.0.get_or_insert_with(|| Users::find(view));
        let of = |lock: LockId| users.get(&lock).map_or(&[][..], |users| users);
        let own = &view.now.threads[id];
        let uses_other = |user: &ThreadId| of(locks[1]).binary_search(user).is_ok();
        let mut others = of(locks[0]).iter().filter(|&&user| user != id);
        others.any(|user| are_of_one_kind(own, &view.now.threads[*user]) && uses_other(user))
    }

    fn find(view: &View<'_>) -> HashMap<LockId, Vec<ThreadId>> {
        let mut users: HashMap<LockId, Vec<ThreadId>> = HashMap::default();
        for (id, thread) in view.now.threads.iter().enumerate() {
            let acquired = thread.steps.iter().filter(|step| acquired(step).is_some());
            let present = thread.holds.iter().map(|hold| hold.lock).chain(thread.wait.map(|wait| wait.lock));
            for lock in acquired.filter_map(|step| step.lock).chain(present) {
                let users = users.entry(lock).or_default();
                if users.last() != Some(&id) {
                    users.push(id);
                }
            }
        }
        users
    }
}

/// Whether two threads, or two tasks, run the same code, as far as their names or places say.
fn are_of_one_kind(one: &ThreadLocks, other: &ThreadLocks) -> bool {
    match (&one.task, &other.task) {
        (Some(one), Some(other)) => one.made_at.is_some() && one.made_at == other.made_at,
        (None, None) => {
            let is_main = |thread: &ThreadLocks| thread.tid == thread.pid;
            !is_main(one) && !is_main(other) && stem(&one.name).eq(stem(&other.name))
        }
        _ => false,
    }
}

/// Calls `add` with the two sides of each inversion within a thread.
fn inversions(thread: &ThreadLocks, add: &mut impl FnMut(&Occurrence, &Occurrence)) {
    let mut pairs = Pairs::default();
    history::replay(thread, |step, held| {
        let Some(acquired) = acquired(step) else { return };
        let others = || held.iter().filter(|held| held.lock != acquired.lock && !held.is_in_condition_wait);
        let has_it = held.iter().any(|held| held.lock == acquired.lock && !held.is_in_condition_wait);
        if has_it {
            // A thread that holds the lock already adds no order when it acquires it again.
            return;
        }
        let gates: Vec<(LockId, bool)> = others().map(|held| (held.lock, held.is_shared)).collect();
        for from in others().rev().take(HELD_MAX) {
            note(&mut pairs, from, acquired, &gates, add);
        }
    });
}

/// Notes an occurrence. If the thread has acquired the locks in the other order too, calls `add` with both.
fn note(
    pairs: &mut Pairs,
    from: &Held,
    acquired: Acquisition,
    gates: &[(LockId, bool)],
    add: &mut impl FnMut(&Occurrence, &Occurrence),
) {
    let (pair, is_full) = ((from.lock, acquired.lock), pairs.len() >= PAIRS_MAX);
    if is_full && !pairs.contains_key(&pair) {
        return;
    }
    let is_same = |of: &Occurrence| {
        of.gates == gates
            && (of.held.is_shared, of.acquired.is_shared) == (from.is_shared, acquired.is_shared)
    };
    let known = pairs.entry(pair).or_default();
    if known.len() >= OCCURRENCES_MAX || known.iter().any(is_same) {
        return;
    }
    let held = Acquisition { lock: from.lock, location: from.location, is_shared: from.is_shared };
    let occurrence = Occurrence { held, acquired, gates: gates.to_vec() };
    known.push(occurrence.clone());
    let reverse = pairs.get(&(acquired.lock, from.lock)).into_iter().flatten();
    for other in reverse.filter(|other| excludes(other, &occurrence)) {
        add(other, &occurrence);
    }
}

/// What a step acquires, and waits for if it is taken.
fn acquired(step: &Step) -> Option<Acquisition> {
    let blocks = history::is_acquisition(step) && !step.is_try;
    let is_shared = blocks && step.is_shared;
    let is_acquired = blocks || step.kind == StepKind::ConditionWoken;
    let lock = step.lock.filter(|_| is_acquired)?;
    Some(Acquisition { lock, location: step.location, is_shared })
}

/// Whether two threads that do this could wait for one another: the modes exclude, and no gate keeps one of them out.
fn excludes(one: &Occurrence, other: &Occurrence) -> bool {
    let waits =
        |waiter: &Occurrence, holder: &Occurrence| !(waiter.acquired.is_shared && holder.held.is_shared);
    let is_gate = |(gate, is_shared): &(LockId, bool)| {
        other.gates.iter().any(|(same, shared)| same == gate && !(*is_shared && *shared))
    };
    waits(one, other) && waits(other, one) && !one.gates.iter().any(is_gate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Evidence;
    use crate::findings::testing::{Scene, finding_about};

    /// A worker, three locks, and another worker that uses them one by one.
    fn scene() -> Scene {
        let mut scene = Scene::new();
        scene.thread("worker 1");
        let other = scene.thread("worker 2");
        for name in ["SAVINGS", "CURRENT", "JOURNAL"] {
            let lock = scene.lock(name);
            scene.nests(other, &[lock]);
        }
        scene
    }

    fn both_orders() -> Scene {
        let mut scene = scene();
        for _ in 0..3 {
            scene.nests(0, &[0, 1]);
            scene.nests(0, &[1, 0]);
        }
        scene
    }

    #[test]
    fn both_orders_in_one_thread_are_suspected_once() {
        let found = both_orders().run(&OwnOrder);
        assert_eq!((found.len(), found[0].confidence, found[0].threads_hurt), (1, Confidence::Suspected, 1));
        assert_eq!(found[0].doubts, [Doubt::OneThread]);
        let Evidence::OrderCycle(cycle) = &found[0].evidence else { panic!("{found:?}") };
        assert_eq!((cycle.edges.len(), cycle.similar), (2, 0));
    }

    #[test]
    fn both_orders_of_a_thread_that_is_the_only_one_of_its_kind_are_no_finding() {
        let mut other_kind = both_orders();
        other_kind.model.threads[1].name = "flusher 2".into();
        assert!(other_kind.run(&OwnOrder).is_empty());
        let mut main = both_orders();
        main.model.threads[0].tid = main.model.threads[0].pid;
        assert!(main.run(&OwnOrder).is_empty());
        let mut unused = both_orders();
        unused.model.threads[1].steps = Default::default();
        unused.nests(1, &[0]);
        assert!(unused.run(&OwnOrder).is_empty(), "the other one uses one of the locks");
    }

    #[test]
    fn one_order_a_try_a_gate_and_readers_are_no_finding() {
        let mut one = scene();
        (0..3).for_each(|_| one.nests(0, &[0, 1, 2]));
        assert!(one.run(&OwnOrder).is_empty(), "one order");
        let mut gate = scene();
        gate.nests(0, &[2, 0, 1]);
        gate.nests(0, &[2, 1, 0]);
        assert!(gate.run(&OwnOrder).is_empty(), "a gate");
        let mut tried = both_orders();
        tried.steps(0).iter_mut().for_each(|step| step.is_try = true);
        assert!(tried.run(&OwnOrder).is_empty(), "tries");
        let mut readers = both_orders();
        readers.steps(0).iter_mut().for_each(|step| step.is_shared = true);
        assert!(readers.run(&OwnOrder).is_empty(), "readers");
    }

    #[test]
    fn a_thread_that_keeps_a_lock_while_it_waits_on_a_condition_takes_part_in_both_orders() {
        let mut scene = scene();
        scene.step(0, StepKind::AcquireBegin, 0);
        scene.step(0, StepKind::AcquireBegin, 1);
        scene.step(0, StepKind::ConditionWait, 0);
        scene.step(0, StepKind::ConditionWoken, 0);
        assert_eq!(scene.run(&OwnOrder).len(), 1);
    }

    #[test]
    fn what_others_have_explained_or_cannot_be_known_is_not_reported() {
        let scene = both_orders();
        let explained = vec![finding_about(Kind::LockOrder, &[0, 1])];
        assert!(scene.run_after(&OwnOrder, explained).is_empty());
        let mut unknown = both_orders();
        unknown.model.threads[0].overflowed = 1;
        assert!(unknown.run(&OwnOrder).is_empty());
        let mut ended = both_orders();
        ended.step(0, StepKind::Destroyed, 1);
        assert!(ended.run(&OwnOrder).is_empty());
    }

    #[test]
    fn locks_of_the_same_names_are_one_finding() {
        let mut scene = Scene::new();
        scene.thread("worker");
        let other = scene.thread("worker");
        for _ in 0..6 {
            let lock = scene.lock("ACCOUNT");
            scene.nests(other, &[lock]);
        }
        for low in [0, 2, 4] {
            scene.nests(0, &[low, low + 1]);
            scene.nests(0, &[low + 1, low]);
        }
        let found = scene.run(&OwnOrder);
        let Evidence::OrderCycle(cycle) = &found[0].evidence else { panic!("{found:?}") };
        assert_eq!((found.len(), cycle.similar), (1, 2));
    }
}
