//! Peers: who uses the other sides of the channels at which threads and tasks wait.
//!
//! A wait notes that in an event of its own: see `librip_format::peer`. `replay` finds the event of a wait. Here the
//! notes of all waits are brought together.

use foldhash::HashMap;

use super::{LockId, ThreadId, ThreadLocks};
use crate::threads::ThreadState;

/// The other side of a channel at which a thread or task waits, as it was when the last wait there began. Each use of
/// that side since then has ended a wait there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The id of the thread or task that alone has used the only end of that side; `None` if there are several ends or
    /// users, or none is known.
    pub user: Option<u32>,
    /// That thread or task, if it exists.
    pub present: Option<ThreadId>,
    /// How many ends that side has.
    pub ends: u64,
    pub receives: bool,
    /// Whether nobody has used that side, and the user is who alone receives what the waiting thread or task has sent
    /// since it made the channel.
    pub is_presumed: bool,
}

impl Peer {
    /// What an operand says. Who the user is, is not known yet.
    pub(super) fn of(operand: u64) -> Peer {
        Peer {
            user: Some(librip_format::peer_user(operand)).filter(|&user| user != 0),
            present: None,
            ends: librip_format::peer_ends(operand),
            receives: operand & librip_format::PEER_RECEIVES != 0,
            is_presumed: operand & librip_format::PEER_PRESUMED != 0,
        }
    }
}

/// Finds who uses the other sides of the channels at which threads and tasks wait.
pub(super) fn find_peers(threads: &mut [ThreadLocks]) {
    let has_peer = |thread: &ThreadLocks| thread.peer.as_ref().is_some_and(|peer| peer.user.is_some());
    if !threads.iter().any(has_peer) {
        return;
    }
    believe_newest(threads);
    let present = threads.iter().enumerate().filter(|(_, thread)| thread.state == ThreadState::Present);
    let by_id: HashMap<(u32, u32), ThreadId> =
        present.map(|(id, thread)| ((thread.pid, thread.tid), id)).collect();
    for thread in threads {
        if let Some(peer) = &mut thread.peer {
            peer.present = peer.user.and_then(|user| by_id.get(&(thread.pid, user)).copied());
        }
    }
}

/// If several wait on one side of a channel, what the last of them has noted counts for all: a use of the other side
/// ended only the first wait of that time.
fn believe_newest(threads: &mut [ThreadLocks]) {
    let mut newest: HashMap<LockId, (Option<u64>, Option<Peer>)> = HashMap::default();
    let waits = |thread: &ThreadLocks| {
        let sleep = thread.sleep.as_deref().filter(|_| thread.state == ThreadState::Present)?;
        (thread.semaphore_wait == Some(sleep.lock)).then_some((sleep.lock, sleep.since_ns))
    };
    for thread in &*threads {
        let Some((channel, since_ns)) = waits(thread) else { continue };
        let newest = newest.entry(channel).or_insert((since_ns, thread.peer.as_deref().copied()));
        // Who came last is not known, or it has noted nothing.
        *newest = match (newest.0, since_ns) {
            (Some(last), Some(since)) if since > last => (since_ns, thread.peer.as_deref().copied()),
            (Some(last), Some(since)) if since < last => *newest,
            _ if newest.1.as_ref() == thread.peer.as_deref() => *newest,
            _ => (newest.0.max(since_ns), None),
        };
    }
    for thread in threads {
        let known = waits(thread).and_then(|(channel, _)| newest.get(&channel)?.1);
        let is_known = |known: &Peer| thread.peer.as_ref().is_some_and(|own| own.receives == known.receives);
        thread.peer = known.filter(is_known).map(Box::new);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Wait;
    use super::*;

    const CHANNEL: LockId = 3;

    /// A thread that waits at the channel since then, and has noted this.
    fn waits(tid: u32, since_ns: Option<u64>, noted: Option<Peer>) -> ThreadLocks {
        let sleep = Wait { lock: CHANNEL, since_ns, is_steady: true, is_of_future: true, ..Wait::default() };
        ThreadLocks {
            semaphore_wait: Some(CHANNEL),
            sleep: Some(Box::new(sleep)),
            peer: noted.map(Box::new),
            ..ThreadLocks::unrecorded(1, tid, String::new())
        }
    }

    fn receiver(user: Option<u32>) -> Option<Peer> {
        Some(Peer { user, present: None, ends: 1, receives: true, is_presumed: false })
    }

    fn users(mut threads: Vec<ThreadLocks>) -> Vec<Option<u32>> {
        find_peers(&mut threads);
        threads.iter().map(|thread| thread.peer.as_ref()?.user).collect()
    }

    #[test]
    fn a_user_that_exists_is_found_and_one_that_has_ended_is_not() {
        let mut threads = vec![waits(7, Some(10), receiver(Some(8))), waits(8, None, None)];
        threads[1].semaphore_wait = None;
        find_peers(&mut threads);
        assert_eq!(threads[0].peer.as_ref().unwrap().present, Some(1));
        threads[1].state = ThreadState::Exited;
        find_peers(&mut threads);
        assert_eq!(threads[0].peer.as_ref().unwrap().present, None);
    }

    #[test]
    fn what_the_last_wait_has_noted_counts_for_all() {
        let [early, late] = [Some(10), Some(20)];
        let waits_of = |first, second| vec![waits(7, early, first), waits(8, late, second)];
        assert_eq!(users(waits_of(receiver(Some(5)), receiver(Some(5)))), [Some(5), Some(5)]);
        // Somebody else has received since, or nothing is known of it.
        assert_eq!(users(waits_of(receiver(Some(5)), receiver(None))), [None, None]);
        assert_eq!(users(waits_of(receiver(Some(5)), receiver(Some(6)))), [Some(6), Some(6)]);
        assert_eq!(users(waits_of(receiver(Some(5)), None)), [None, None]);
        // Who came last is not known.
        let unknown = vec![waits(7, None, receiver(Some(5))), waits(8, late, receiver(Some(6)))];
        assert_eq!(users(unknown), [None, None]);
    }
}
