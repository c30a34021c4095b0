//! Locks that processes share: several entries of the ledger become one lock.
//!
//! A ledger has a lock for each process and address. A forked child inherits a shared mapping at its address, so a lock
//! that is initialised for several processes, and is at one address in a parent and its child, is one lock. Tables say
//! of each lock that is in use whether it was initialised so. A spin lock does not say that of itself, so all of them
//! count as perhaps shared, and stay apart. Processes that map a lock at different addresses seem to use different
//! locks.

use foldhash::HashMap;
use read_rip_ring::LockType;

use super::{Lock, LockId, LockModel, Nature, Step};

impl Nature {
    /// Whether the lock was initialised for use by several processes.
    pub(crate) fn is_for_processes(&self) -> bool {
        self.is_process_shared && matches!(self.lock_type, LockType::Mutex | LockType::RwLock)
    }
}

/// Makes one lock of all that are the same.
pub(super) fn merge(model: &mut LockModel) {
    // For each address, the first of its locks that is for several processes, in whichever process.
    let mut shared: HashMap<u64, LockId> = HashMap::default();
    for (id, lock) in model.locks.iter().enumerate().filter(|(_, lock)| lock.nature.is_for_processes()) {
        shared.entry(lock.address).or_insert(id);
    }
    if shared.is_empty() {
        return;
    }
    // Another process may have released its lock, so that its table does not say more of it.
    let target = |(id, lock): (LockId, &Lock)| {
        let is_spin = lock.nature.lock_type == LockType::Spin;
        shared.get(&lock.address).copied().filter(|_| !is_spin).unwrap_or(id)
    };
    let targets: Vec<LockId> = model.locks.iter().enumerate().map(target).collect();
    // A target may come after a lock that becomes part of it: the first of them is the place of all.
    let mut places: HashMap<LockId, LockId> = HashMap::default();
    let mut locks: Vec<Lock> = Vec::with_capacity(model.locks.len());
    let mut ids = Vec::with_capacity(targets.len());
    for (lock, target) in std::mem::take(&mut model.locks).into_iter().zip(targets) {
        let place = *places.entry(target).or_insert(locks.len());
        ids.push(place);
        match locks.get_mut(place) {
            Some(known) => join(known, lock),
            None => locks.push(lock),
        }
    }
    model.locks = locks;
    rename(model, &ids);
}

/// Adds to a lock what another process did with it.
fn join(known: &mut Lock, other: Lock) {
    known.holders.extend(other.holders);
    known.possible_holders.extend(other.possible_holders);
    known.waiters.extend(other.waiters);
    known.condition_waiters.extend(other.condition_waiters);
    known.semaphore_waiters.extend(other.semaphore_waiters);
    known.futures_waiting.extend(other.futures_waiting);
    known.initialised_at = known.initialised_at.or(other.initialised_at);
    known.is_handed_over |= other.is_handed_over;
    known.threads_of_round = known.threads_of_round.or(other.threads_of_round);
    let (nature, more) = (&mut known.nature, other.nature);
    nature.is_of_futures |= more.is_of_futures;
    nature.is_process_shared |= more.is_process_shared;
    nature.is_reentrant |= more.is_reentrant;
    nature.is_wrapped &= more.is_wrapped;
    nature.ownership = nature.ownership.min(more.ownership);
    if nature.lock_type == LockType::Unknown {
        nature.lock_type = more.lock_type;
    }
    nature.readers_first = nature.readers_first.or(more.readers_first);
    let (record, more) = (&mut known.record, other.record);
    record.acquisitions += more.acquisitions;
    record.contended += more.contended;
    record.acquired_between += more.acquired_between;
    record.contended_between += more.contended_between;
    record.probably_between.0 += more.probably_between.0;
    record.probably_between.1 += more.probably_between.1;
    record.failed_tries += more.failed_tries;
    record.owners += more.owners;
    for (all, more) in [(&mut record.waits_ns, more.waits_ns), (&mut record.holds_ns, more.holds_ns)] {
        all.extend(more);
        all.sort_unstable();
    }
}

/// Gives all locks that the model mentions their new numbers.
fn rename(model: &mut LockModel, ids: &[LockId]) {
    for (id, lock) in model.locks.iter_mut().enumerate() {
        lock.holders.iter_mut().chain(&mut lock.possible_holders).for_each(|hold| hold.lock = id);
        let on_objects = lock.condition_waiters.iter_mut().chain(&mut lock.semaphore_waiters);
        let on_objects = on_objects.chain(&mut lock.futures_waiting);
        lock.waiters.iter_mut().chain(on_objects).for_each(|wait| wait.lock = id);
    }
    for thread in &mut model.threads {
        thread.holds.iter_mut().for_each(|hold| hold.lock = ids[hold.lock]);
        if let Some(task) = thread.task.as_deref_mut() {
            task.waits.iter_mut().for_each(|wait| wait.wait.lock = ids[wait.wait.lock]);
            for own in &mut task.holds {
                own.lock = ids[own.lock];
                own.hold.lock = own.lock;
            }
        }
        let boxed = [&mut thread.relock, &mut thread.sleep].into_iter().flatten().map(|wait| &mut **wait);
        let waits = thread.wait.iter_mut().chain(boxed);
        waits.for_each(|wait| wait.lock = ids[wait.lock]);
        for lock in thread.condition_wait.iter_mut().chain(&mut thread.semaphore_wait) {
            *lock = ids[*lock];
        }
        let renamed = |step: Step| Step { lock: step.lock.map(|lock| ids[lock]), ..step };
        thread.steps = thread.steps.iter().map(renamed).collect();
    }
    model.incidents.iter_mut().for_each(|incident| incident.lock = ids[incident.lock]);
}

#[cfg(test)]
mod tests {
    use super::super::{Hold, Record, TaskFacts, TaskHold, TaskWait, ThreadLocks, Wait};
    use super::*;

    fn wait(thread: usize, lock: LockId) -> Wait {
        Wait { thread, lock, ..Wait::default() }
    }

    fn lock(pid: u32, address: u64, lock_type: LockType, is_process_shared: bool) -> Lock {
        let nature = Nature { lock_type, is_process_shared, is_wrapped: true, ..Nature::default() };
        Lock {
            nature,
            condition_waiters: vec![wait(pid as usize, 0)],
            record: Record { acquisitions: 1, ..Record::default() },
            ..Lock::at(pid, address)
        }
    }

    fn merged(locks: Vec<Lock>) -> Vec<(u64, Vec<usize>, u64)> {
        let mut model = LockModel { locks, ..LockModel::default() };
        merge(&mut model);
        let waiters = |lock: &Lock| lock.condition_waiters.iter().map(|wait| wait.thread).collect();
        let of = |lock: Lock| (lock.address, waiters(&lock), lock.record.acquisitions);
        model.locks.into_iter().map(of).collect()
    }

    #[test]
    fn locks_of_several_processes_at_one_address_are_one_if_processes_share_them() {
        let locks = vec![
            lock(1, 0x20, LockType::Mutex, false),
            lock(1, 0x10, LockType::Mutex, false),
            lock(2, 0x10, LockType::Mutex, true),
            lock(2, 0x20, LockType::Mutex, false),
            lock(3, 0x10, LockType::Unknown, false),
        ];
        let expected = [(0x20, vec![1], 1), (0x10, vec![1, 2, 3], 3), (0x20, vec![2], 1)];
        assert_eq!(merged(locks), expected);
    }

    #[test]
    fn what_the_futures_of_a_task_wait_for_and_hold_gets_its_new_number_too() {
        let mut facts = TaskFacts::suspended(1, 0);
        facts.waits.push(TaskWait {
            wait: wait(0, 2),
            is_polled: None,
            is_direct: true,
            is_for_lock: true,
            future: None,
            entry: 0,
        });
        let hold = Hold { lock: 2, is_of_future: true, ..Hold::default() };
        facts.holds.push(TaskHold { lock: 2, hold, future: None });
        let mut task = ThreadLocks::unrecorded(1, 1, String::new());
        task.task = Some(Box::new(facts));
        let locks = [(1, 0x10), (2, 0x10), (1, 0x30)]
            .map(|(pid, address)| lock(pid, address, LockType::Mutex, pid == 2));
        let mut model = LockModel { locks: locks.into(), threads: vec![task], ..LockModel::default() };
        merge(&mut model);
        let task = model.threads[0].task.as_deref().unwrap();
        let numbers = [task.waits[0].wait.lock, task.holds[0].lock, task.holds[0].hold.lock];
        assert_eq!((model.locks.len(), numbers), (2, [1; 3]));
    }

    #[test]
    fn spin_locks_do_not_say_that_they_are_shared() {
        let locks = vec![lock(1, 0x10, LockType::Spin, true), lock(2, 0x10, LockType::Spin, true)];
        assert_eq!(merged(locks).len(), 2);
    }
}
