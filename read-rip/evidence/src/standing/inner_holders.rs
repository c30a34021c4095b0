//! Which thread has a lock of a language that stores no owner, by the functions that the threads are in.
//!
//! A thread in a `with` block on a lock of Python has that lock, unless it has released the lock within the block. So
//! holders are named only where all of them wait for one another: each for a lock whose holder is one of them, or for
//! the end of one of them. A holder that works, or waits for anything else, is not named: it goes on.

use foldhash::HashMap;

use super::Standings;
use super::inward::is_for_inner_lock;
use crate::waits::{FutexWait, Owner, Presumption, WaitKind};

impl Standings {
    /// The waits of threads that wait for one another, each with the thread for which it is, by their indices.
    pub(super) fn inner_waits(&self) -> Vec<(usize, FutexWait)> {
        let Some(interior) = self.interior.as_ref() else { return Vec::new() };
        if interior.holds.is_empty() {
            return Vec::new();
        }
        let tasks = self.target.tasks.iter().enumerate();
        let indices: HashMap<u32, usize> = tasks.map(|(at, task)| (task.own_tid, at)).collect();
        let blocked = |at: usize| {
            let standing = self.threads.get(at).filter(|standing| standing.is_still == Some(true))?;
            let wait = standing.wait.as_ref().filter(|wait| !wait.is_timed)?;
            let joins = || interior.thread(self.target.tasks[at].own_tid)?.joins;
            let wait = match (wait.owner, wait.kind) {
                (Owner::Tid(_), _) => wait.clone(),
                (_, WaitKind::Semaphore { .. } | WaitKind::Condition { .. }) => {
                    if let Some(hold) = interior.holder(wait.futex).filter(|_| is_for_inner_lock(wait)) {
                        let presumption = (!hold.is_stored).then_some(Presumption::InBlock);
                        FutexWait { owner: Owner::Tid(hold.tid), presumption, ..wait.clone() }
                    } else {
                        FutexWait { owner: Owner::Tid(joins()?), kind: WaitKind::Join, ..wait.clone() }
                    }
                }
                _ => return None,
            };
            let Owner::Tid(owner) = wait.owner else { return None };
            Some((*indices.get(&owner)?, wait))
        };
        wait_for_one_another((0..self.threads.len()).map(blocked).collect())
    }
}

/// The waits of threads, each with the thread for which it is, that lead to no thread that goes on. By the indices of
/// the threads.
pub(super) fn wait_for_one_another(mut waits: Vec<Option<(usize, FutexWait)>>) -> Vec<(usize, FutexWait)> {
    // Leaves out who waits for a thread that may go on, and then who waits for that one, and so on.
    let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); waits.len()];
    for (at, wait) in waits.iter().enumerate() {
        if let Some((owner, _)) = wait {
            waiting[*owner].push(at);
        }
    }
    let mut going: Vec<usize> = (0..waits.len()).filter(|&at| waits[at].is_none()).collect();
    while let Some(at) = going.pop() {
        let behind = std::mem::take(&mut waiting[at]);
        behind.iter().for_each(|&at| waits[at] = None);
        going.extend(behind);
    }
    waits.into_iter().enumerate().filter_map(|(at, wait)| Some((at, wait?.1))).collect()
}
