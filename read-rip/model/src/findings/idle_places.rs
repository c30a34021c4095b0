//! Threads that idle in a pool, by where they stand.
//!
//! In many pools one thread at a time waits for work, and the others wait for their turn at a lock: in the function in
//! which the first one waits for work. `idle_pool` knows such pools from the record. Of threads that recorded nothing
//! only their stacks are known.

use foldhash::HashSet;

use super::View;
use crate::locks::{Doing, Seen, ThreadId};
use crate::threads::ThreadState;

/// The functions in which threads wait for what others bring, or what comes from outside.
pub(super) struct IdlePlaces<'v> {
    functions: HashSet<&'v str>,
}

impl<'v> IdlePlaces<'v> {
    pub(super) fn of(view: &'v View<'_>) -> IdlePlaces<'v> {
        let present = view.now.threads.iter().filter(|thread| thread.state == ThreadState::Present);
        let waits_for_work = |seen: &Seen| matches!(seen.doing, Doing::WaitsInside | Doing::WaitsOutside);
        let seen = present.filter_map(|thread| thread.seen).filter(waits_for_work);
        IdlePlaces { functions: seen.filter_map(|seen| function(view, &seen)).collect() }
    }

    /// Whether a thread stands in such a function. Nothing is claimed of a thread that stands in no known function: it
    /// may.
    pub(super) fn has(&self, view: &View<'_>, seen: &Seen) -> bool {
        function(view, seen).is_none_or(|function| self.functions.contains(function))
    }

    /// Whether all of these threads do.
    pub(super) fn has_all(&self, view: &View<'_>, threads: &[ThreadId]) -> bool {
        threads.iter().all(|&id| view.now.threads[id].seen.is_some_and(|seen| self.has(view, &seen)))
    }
}

/// The function in which a thread stands.
fn function<'v>(view: &View<'v>, seen: &Seen) -> Option<&'v str> {
    seen.place.map(|place| &*view.locations[place].full_function)
}
