//! Who created and who joined whom, and what that orders.
//!
//! What a thread did before it created another one, it did before all that the other one did, and before all that the
//! threads did that the other one created. What it did after it had joined a thread, it did after all that the thread
//! did, and after all that the threads did that were joined by that thread.
//!
//! It does not combine the two. If a thread joined one thread and then created another, the two did not run at the same
//! time either. But they may be of the same kind, and a program that starts them at the same time may exist.

use foldhash::HashMap;
use read_rip_ring::Position;

use crate::locks::{LockModel, ThreadId, ThreadLocks};

/// See the file's description.
pub(super) struct Kin<'a> {
    threads: &'a [ThreadLocks],
    /// The last owner of each slot.
    owners: HashMap<u64, ThreadId>,
    /// How far each slot had come when its owners created and joined others, sorted.
    links: HashMap<u64, Vec<u64>>,
}

/// A damaged ring may have threads that created one another.
const GENERATIONS_MAX: usize = 64;

impl<'a> Kin<'a> {
    pub(super) fn of(model: &'a LockModel) -> Kin<'a> {
        let threads = model.threads.as_slice();
        let is_linked = threads.iter().any(|thread| thread.creator.is_some() || thread.joiner.is_some());
        // A thread that recorded nothing has no slot, and no index of one.
        let has_slot = |(_, thread): &(ThreadId, &ThreadLocks)| thread.slot.is_some();
        let linked = threads.iter().enumerate().filter(|_| is_linked).filter(has_slot);
        let mut links: HashMap<u64, Vec<u64>> = HashMap::default();
        for Position { index, count } in
            threads.iter().flat_map(|thread| [thread.creator, thread.joiner]).flatten()
        {
            links.entry(index).or_default().push(count);
        }
        links.values_mut().for_each(|counts| counts.sort_unstable());
        Kin { threads, links, owners: linked.map(|(id, thread)| (thread.slot_index, id)).collect() }
    }

    /// Whether a thread wrote its word of this sequence before it created another thread, or the creator of that one.
    pub(super) fn is_before_creation(&self, thread: ThreadId, sequence: u64, created: ThreadId) -> bool {
        self.link(created, thread, |thread| thread.creator).is_some_and(|count| sequence < count)
    }

    /// Whether a thread wrote its word of this sequence after it had joined another thread, or the joiner of that one.
    pub(super) fn is_after_join(&self, thread: ThreadId, sequence: u64, joined: ThreadId) -> bool {
        self.link(joined, thread, |thread| thread.joiner).is_some_and(|count| sequence >= count)
    }

    /// How many threads a thread had created and joined at this sequence.
    pub(super) fn stretch(&self, thread: ThreadId, sequence: u64) -> usize {
        let links = self.links.get(&self.threads[thread].slot_index);
        links.map_or(0, |counts| counts.partition_point(|&count| count <= sequence))
    }

    /// Follows creators, or joiners, from one thread to another. Returns the count of the latter at the last link.
    fn link(
        &self,
        from: ThreadId,
        to: ThreadId,
        next: impl Fn(&ThreadLocks) -> Option<Position>,
    ) -> Option<u64> {
        let mut at = from;
        for _ in 0..GENERATIONS_MAX {
            let Position { index, count } = next(&self.threads[at])?;
            at = *self.owners.get(&index)?;
            // The slot's last owner came later than the one that is meant: all its words have higher sequences.
            if count <= self.threads[at].first_sequence {
                return None;
            }
            if at == to {
                return Some(count);
            }
        }
        None
    }
}
