//! Threads that wait for locks which a database keeps in structures of its own: in this process, or in the server for
//! which it waits. It is no finding: such a wait may be long and right, and the database alone knows who has the lock.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use read_rip_evidence::standing::{ServerWaits, Standings};
use read_rip_evidence::waits::LockManager;
use serde::Serialize;

use super::{LATELY_NS, View};
use crate::locations::LocationId;
use crate::locks::{Seen, ThreadId, ThreadLocks};

/// Threads that have waited for locks of a database for a second or longer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ManagedLock {
    /// How many threads.
    pub threads: usize,
    /// The one that has waited longest.
    pub first: ThreadId,
    /// What it waits for: `a lock of PostgreSQL`.
    pub waits_for: &'static str,
    /// Where it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationId>,
    /// For how long it has waited, ns, at least; missing if it wakes from time to time to look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
    /// What keeps the lock.
    #[serde(skip)]
    pub manager: LockManager,
}

impl ManagedLock {
    /// The longest wait of a thread of the living process.
    pub(super) fn of(view: &View<'_>) -> Option<ManagedLock> {
        let wait = |(first, thread): (ThreadId, &ThreadLocks)| {
            let Seen { manager, asleep_ns, place, .. } = thread.seen?;
            let for_ns = lasting(manager?, asleep_ns.map(NonZeroU64::get), view.now.window_ns)?;
            let (manager, waits_for) = (manager?, manager?.awaited());
            Some(ManagedLock { threads: 1, first, waits_for, location: place, for_ns, manager })
        };
        let waits: Vec<ManagedLock> = view.now.present().filter_map(wait).collect();
        let threads = waits.len();
        let longest = waits.into_iter().max_by_key(|wait| wait.for_ns)?;
        Some(ManagedLock { threads, ..longest })
    }
}

/// What threads of a server wait for in locks of its own; `None` if none has done so for a second.
pub fn server_waits(seen: &Standings) -> Option<ServerWaits> {
    let mut counts: BTreeMap<LockManager, usize> = BTreeMap::new();
    for thread in &seen.threads {
        let Some(manager) = thread.manager else { continue };
        let lasts = lasting(manager, thread.asleep_ns, seen.window_ns).is_some();
        *counts.entry(manager).or_default() += usize::from(lasts);
    }
    let threads = counts.values().sum();
    let (&manager, _) = counts.iter().max_by_key(|&(_, count)| count).filter(|_| threads > 0)?;
    Some(ServerWaits { own_pid: seen.target.own_pid, manager, threads, of: seen.threads.len() })
}

/// For how long such a wait has lasted; `None` if it may end in a moment, as waits in a busy database do. A thread that
/// wakes from time to time to look may have waited for longer than it has slept.
fn lasting(manager: LockManager, asleep_ns: Option<u64>, window_ns: Option<u64>) -> Option<Option<u64>> {
    if manager.polls() {
        return Some(None);
    }
    let for_ns = asleep_ns.max(window_ns)?;
    (for_ns >= LATELY_NS).then_some(Some(for_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{SECOND, Scene, seen};
    use crate::findings::{Balance, Outcome};
    use crate::locks::Doing;

    fn outcome(scene: &Scene) -> Balance {
        scene.with_view(|view| Balance::of(view, &[]))
    }

    fn backend(scene: &mut Scene, manager: LockManager, asleep_ns: u64) -> ThreadId {
        let thread = scene.thread("postgres");
        scene.model.threads[thread].seen = Some(Seen {
            manager: Some(manager),
            asleep_ns: NonZeroU64::new(asleep_ns),
            ..seen(Doing::WaitsForManagedLock, true)
        });
        thread
    }

    #[test]
    fn a_process_that_waits_for_a_lock_of_a_database_for_a_second_is_not_judged() {
        let mut scene = Scene::new();
        backend(&mut scene, LockManager::PostgreSql, SECOND / 2);
        assert_eq!(outcome(&scene).outcome, Outcome::NothingFound, "a busy database");
        let longest = backend(&mut scene, LockManager::PostgreSql, 3 * SECOND);
        let of = outcome(&scene);
        let lock = of.managed_lock.unwrap();
        assert_eq!((of.outcome, lock.first, lock.threads), (Outcome::ManagedLock, longest, 1));
        assert_eq!((lock.for_ns, lock.waits_for), (Some(3 * SECOND), "a lock of PostgreSQL"));
    }

    #[test]
    fn who_looks_from_time_to_time_whether_a_lock_is_free_has_waited_for_an_unknown_time() {
        let mut scene = Scene::new();
        backend(&mut scene, LockManager::Sqlite, SECOND / 100);
        let of = outcome(&scene);
        assert_eq!((of.outcome, of.managed_lock.unwrap().for_ns), (Outcome::ManagedLock, None));
    }
}
