//! What the kernel and the memory say of a process's threads becomes part of the model.
//!
//! Threads that recorded nothing are added. Each thread's waits by the record and by the kernel are joined:
//!
//! * A thread that is not known to wait, and sleeps at a lock or at the end of another thread, waits from now on.
//! * A thread that waits for a lock by the record, and sleeps in that lock, has one wait: the record says since when
//!   and where, and the kernel that it sleeps. It is steady if the record or the kernel says so.
//! * A recorded lock may be a wrapper with a mutex inside, at another address. If all threads that wait for the wrapper
//!   sleep in one mutex, and nobody waits there for anything else, then the owner of the mutex has the wrapper.
//!
//! What a lock's memory says of its owner is kept beside what is recorded of its holders: [`OwnerInMemory`]. The owner
//! becomes a holder if it is none yet. If another thread is recorded as the holder, both are in the model, and analyses
//! choose the more certain one.
//!
//! A wait that is added here began when its thread ran last, if the kernel says when that was. A hold that is added
//! here has no beginning and no place.

use std::num::NonZeroU64;

use foldhash::{HashMap, HashSet};
use read_rip_evidence::stacks::Stack;
use read_rip_evidence::standing::{Activity, Standing, Standings};
use read_rip_evidence::target::{
    Call, CallKind, DescriptorKind, KernelWait, Need, Needed, Party, RunState, Sleep, Target, Task,
};
use read_rip_evidence::waits::{
    MutexType, Owner, Preference, Presumption, Protocol, Role, UnknownOwner, WaitKind,
};
use read_rip_ring::LockType;

use super::tokio_tasks::{await_circles, end_circles, pool_awaits, used_up_permits};
use super::{
    AbsentOwner, Doing, FormerClients, Halt, Hold, Job, Join, LastCall, Lock, LockId, LockModel, LockName,
    Nature, OwnerInMemory, Ownership, Seen, ThreadId, ThreadLocks, Unserved, Wait, halts, knots_of,
    lost_locks, only_helpers,
};
use crate::locations::{LocationId, Locations};
use crate::threads::ThreadState;

/// Adds what was seen of the processes of a ring to the model of its locks.
pub fn observe_all<'s>(
    model: &mut LockModel,
    seen: impl IntoIterator<Item = &'s Standings>,
    locations: &mut Locations<'_>,
) {
    let seen: Vec<&Standings> = seen.into_iter().collect();
    seen.iter().enumerate().for_each(|(process, seen)| observe(model, process, seen, locations));
    let threads = model.threads.iter().enumerate();
    let ids: HashMap<(usize, usize), ThreadId> = threads
        .filter(|(_, thread)| thread.task.is_none())
        .filter_map(|(id, thread)| thread.seen.map(|seen| ((seen.process as usize, seen.index), id)))
        .collect();
    (model.knots, model.stopped_partners) = knots_of(&seen, |at| ids.get(&at).copied());
}

/// Adds what was seen of the threads of one of them.
fn observe(model: &mut LockModel, process: usize, seen: &Standings, locations: &mut Locations<'_>) {
    let pid = seen.target.own_pid;
    if model.pid == 0 {
        // There is no ring.
        model.pid = pid;
        model.is_final = seen.is_final;
    }
    model.window_ns = model.window_ns.or(seen.window_ns);
    if pid == model.pid {
        // The process itself says more than the names of its files.
        model.runtime = seen.unseen();
        model.hidden_executor = seen.hidden_executor();
        model.inner_waits = seen.interior.as_ref().map_or_else(Vec::new, |inside| inside.waits.clone());
        model.unserved = Unserved::of(&seen.connections);
        model.former_clients = FormerClients::of(&seen.connections);
        model.knows_awaits = seen.tokio.as_ref().is_some_and(|tasks| !tasks.chains.is_empty());
        model.pool_awaits = pool_awaits(seen);
        model.used_up_permits = used_up_permits(seen);
        // What is recorded of tasks says more.
        if !model.has_tasks() {
            (model.end_circles, model.await_circles) = (end_circles(seen), await_circles(seen));
        }
    } else if model.runtime.is_none() {
        (model.runtime, model.runtime_pid) = (seen.unseen(), Some(pid));
    }
    let mut observer = Observer {
        pid,
        threads: present(model, pid),
        locks: model.locks.iter().enumerate().map(|(id, lock)| ((lock.pid, lock.address), id)).collect(),
        model,
        seen,
        blocked_in_tasks: HashSet::default(),
        inside: HashMap::default(),
        whole: HashMap::default(),
    };
    let places: Vec<_> = seen.stacks.iter().map(|group| locations.place(pid, &group.stack)).collect();
    for (at, task) in seen.target.tasks.iter().enumerate() {
        if matches!(task.state, RunState::Zombie | RunState::Dead) {
            continue;
        }
        let id = observer.thread(task);
        let standing = &seen.threads[at];
        // The record knows the caller of a wrapper, in every build. The stack knows who has called that.
        let recorded = observer.model.threads[id].awaited().and_then(|awaited| awaited.location());
        let recorded = recorded.map(|recorded| {
            let whole = locations.on_stack(pid, recorded, seen.stack(at));
            observer.waits_at(id, recorded, whole);
            whole
        });
        let inner = seen.interior.as_ref().and_then(|inside| inside.thread(task.own_tid));
        let native = recorded.or(places[standing.stack]);
        let place = match inner {
            Some(inner) => locations.of_interior(native, &inner.frames).or(native),
            None => native,
        };
        if let Some(last) = &standing.last_calls {
            let last_call = LastCall { location: locations.place(pid, &last.stack), trying: last.trying };
            observer.model.last_calls.insert(id, last_call);
        }
        let job = standing
            .job
            .and_then(|job| Some(Job { pool: job.pool, at: locations.place(pid, &Stack::at_call(job.at))? }));
        let inward = seen.inward(at);
        let own = &mut observer.model.threads[id];
        own.seen = Some(Seen {
            process: process as u32,
            index: at,
            place,
            doing: doing(seen, at),
            is_still: standing.is_still,
            asleep_ns: standing.asleep_ns.and_then(NonZeroU64::new),
            is_timed: is_timed(seen, at),
            limit_ns: standing.limit_ns.and_then(NonZeroU64::new),
            is_at_timer: standing.is_at_timer,
            is_in_pause: task.is_in_pause(),
            wakes_nobody: standing.wakes_nobody,
            reads_connection: reads_connection(seen, task),
            is_idle: is_idle(standing),
            job,
            worker: standing.worker,
            manager: standing.manager,
            is_in_poll: standing.is_in_poll,
            is_in_epoll: task.is_in_call(CallKind::Epoll),
            is_in_runtime: inward.is_some(),
            // The record says for which lock it waits.
            inward: inward.filter(|_| recorded.is_none()),
            runs_on: standing.runs_on(),
        });
    }
    observer.waiters_at();
    observer.polled_tasks();
    observer.inside = observer.wrapped_mutexes();
    for (at, task) in seen.target.tasks.iter().enumerate() {
        if let Some(&id) = observer.threads.get(&task.own_tid)
            && !observer.blocked_in_tasks.contains(&id)
        {
            observer.wait(at, id, locations);
        }
    }
    observer.left_functions(locations);
    let threads = observer.threads;
    let is_inward = |&id: &ThreadId| model.threads[id].seen.is_some_and(|seen| seen.inward.is_some());
    if pid == model.pid && seen.understands_runtime() && !threads.values().any(is_inward) {
        model.runtime = None;
    }
    let of_task = |at: usize| threads.get(&seen.target.tasks[at].own_tid).copied();
    model.halts.extend(
        halts(seen)
            .into_iter()
            .map(|(cause, tasks)| Halt { cause, threads: tasks.into_iter().filter_map(of_task).collect() }),
    );
    model.lost_locks.extend(lost_locks(seen, of_task));
    model.only_helpers.extend(only_helpers(seen, of_task));
    model.seen.extend(threads.into_iter().filter(|&(_, id)| model.threads[id].seen.is_some()));
    if pid == model.pid {
        // All of them are in the model now.
        model.unrecorded = Some(0);
    }
}

/// Replaces a location, if it is this one, by one that says more.
fn say_whole(location: &mut LocationId, recorded: LocationId, whole: LocationId) {
    if *location == recorded {
        *location = whole;
    }
}

/// The threads of a process that exist, by their ids.
fn present(model: &LockModel, pid: u32) -> HashMap<u32, ThreadId> {
    let own = model.threads.iter().enumerate();
    let present = own.filter(|(_, thread)| thread.pid == pid && thread.state == ThreadState::Present);
    present.map(|(id, thread)| (thread.tid, id)).collect()
}

struct Observer<'a> {
    pid: u32,
    model: &'a mut LockModel,
    seen: &'a Standings,
    threads: HashMap<u32, ThreadId>,
    locks: HashMap<(u32, u64), LockId>,
    /// Threads in the poll of a task that waits: the record of the task says it.
    blocked_in_tasks: HashSet<ThreadId>,
    /// The recorded locks that are wrappers, by the addresses of their mutexes.
    inside: HashMap<u64, LockId>,
    /// Where threads wait by the record, and the locations that say more.
    whole: HashMap<ThreadId, (LocationId, LocationId)>,
}

impl Observer<'_> {
    /// A task that is polled does what its thread does.
    fn polled_tasks(&mut self) {
        for id in 0..self.model.threads.len() {
            let own = &self.model.threads[id];
            let Some(thread) = own.task.as_ref().filter(|task| task.is_polled).and_then(|task| task.thread)
            else {
                continue;
            };
            if own.wait.as_ref().or(own.sleep.as_deref()).is_some_and(|wait| !wait.is_of_future) {
                self.blocked_in_tasks.insert(thread);
            }
            self.model.threads[id].seen = self.model.threads[thread].seen;
        }
    }

    /// The thread of a task. Adds it if it recorded nothing.
    fn thread(&mut self, task: &Task) -> ThreadId {
        let (pid, threads) = (self.pid, &mut self.model.threads);
        let id = *self.threads.entry(task.own_tid).or_insert_with(|| {
            threads.push(ThreadLocks::unrecorded(pid, task.own_tid, String::new()));
            threads.len() - 1
        });
        let own = &mut threads[id];
        if own.slot.is_none() {
            own.name.clone_from(&task.name);
        }
        id
    }

    /// A thread that waits at a location by the record is at this one, which says more.
    fn waits_at(&mut self, thread: ThreadId, recorded: LocationId, whole: LocationId) {
        if recorded == whole {
            return;
        }
        let own = &mut self.model.threads[thread];
        let waits = own.wait.iter_mut().chain(own.relock.as_deref_mut()).chain(own.sleep.as_deref_mut());
        let of_own =
            waits.map(|wait| &mut wait.location).chain(own.join.as_mut().map(|join| &mut join.location));
        of_own.chain(own.last.as_mut()).for_each(|location| say_whole(location, recorded, whole));
        self.whole.insert(thread, (recorded, whole));
    }

    /// The lists of who waits for a lock say it too.
    fn waiters_at(&mut self) {
        for lock in &mut self.model.locks {
            let blocked = lock.condition_waiters.iter_mut().chain(&mut lock.semaphore_waiters);
            for wait in lock.waiters.iter_mut().chain(blocked) {
                if let Some(&(recorded, whole)) = self.whole.get(&wait.thread) {
                    say_whole(&mut wait.location, recorded, whole);
                }
            }
        }
    }

    /// Joins the wait of a thread by the kernel with that of the record.
    fn wait(&mut self, at: usize, thread: ThreadId, locations: &mut Locations<'_>) {
        let standing = &self.seen.threads[at];
        let Some(wait) = &standing.wait else { return };
        let Some(location) = self.model.threads[thread].seen.and_then(|seen| seen.place) else { return };
        let (is_timed, is_steady) = (wait.is_timed, standing.is_steady);
        let since_ns = self.model.now_ns.zip(standing.asleep_ns);
        let since_ns = since_ns.map(|(now_ns, asleep_ns)| now_ns.saturating_sub(asleep_ns));
        let owner = match wait.owner {
            // It waits until it goes on itself.
            _ if wait.kind == WaitKind::Refused => Some(thread),
            Owner::Tid(tid) => self.threads.get(&tid).copied(),
            Owner::Nobody | Owner::Unknown(_) => None,
        };
        if wait.kind == WaitKind::Join {
            let own = &mut self.model.threads[thread];
            if let (Some(join), Some(joined)) = (&mut own.join, owner) {
                // The record has the time and the place too.
                join.is_steady |= is_steady && join.joined == joined;
                return;
            }
            let join = owner.map(|joined| Join {
                thread,
                joined,
                location,
                since_ns,
                is_timed,
                is_steady,
                is_of_future: false,
            });
            own.join = own.join.take().or(join.map(Box::new));
            return;
        }
        let (Some(address), Some(nature)) = (wait.object, nature(wait)) else { return };
        // All who wait for an initialisation go on after it. That is no mode of it.
        let is_shared = !wait.is_exclusive && nature.lock_type != LockType::Once;
        if wait.kind == WaitKind::RuntimeLock {
            // The record has the condition variable and the mutex that this lock is made of.
            let own = &mut self.model.threads[thread];
            (own.wait, own.sleep, own.relock) = (None, None, None);
            (own.condition_wait, own.condition) = (None, None);
            self.model.locks.iter_mut().for_each(|lock| lock.waiters.retain(|known| known.thread != thread));
        }
        let lock = match self.model.threads[thread].is_blocked() {
            // The record says it, with the time and the place.
            true => {
                let Some(lock) = self.recorded_wait(thread, address) else { return };
                self.confirm(thread, lock, is_steady);
                lock
            }
            false => {
                let name = name_in_runtime(wait);
                let lock = self.lock(address, nature, name, locations);
                let wait = Wait {
                    thread,
                    lock,
                    is_shared,
                    is_upgradable: false,
                    location,
                    since_ns,
                    is_timed,
                    is_relock: false,
                    is_steady,
                    is_of_future: false,
                    is_seen: true,
                };
                self.model.threads[thread].wait = Some(wait);
                self.model.locks[lock].waiters.push(wait);
                lock
            }
        };
        if let Some(tid) = absent_owner(wait).filter(|_| is_steady) {
            self.lost(lock, AbsentOwner { tid, is_of_fork: self.seen.target.is_fork });
        }
        if let Some(thread) = owner {
            let (ownership, presumption) = (nature.ownership, wait.presumption);
            // A holder is presumed only where nothing else names it.
            if presumption.is_some_and(Presumption::is_of_holder) && !self.model.locks[lock].is_from_memory {
                return;
            }
            let Target { pid, own_pid, .. } = self.seen.target;
            let may_be_elsewhere = nature.is_process_shared && pid != own_pid;
            let owner =
                OwnerInMemory { thread, address, ownership, is_steady, presumption, may_be_elsewhere };
            self.own(lock, owner);
            self.acquired_at(thread, lock, wait.futex, locations);
        }
    }

    /// The lock at an address. Adds it if it was not recorded.
    fn lock(
        &mut self,
        address: u64,
        nature: Nature,
        name: Option<LockName>,
        locations: &mut Locations<'_>,
    ) -> LockId {
        if let Some(&wrapper) = self.inside.get(&address) {
            return wrapper;
        }
        let (pid, locks) = (self.pid, &mut self.model.locks);
        *self.locks.entry((pid, address)).or_insert_with(|| {
            let symbol = || locations.symbol_of(pid, address).map(LockName::Symbol);
            let name = name.or_else(symbol).unwrap_or(LockName::None);
            locks.push(Lock { name, nature, is_from_memory: true, ..Lock::at(pid, address) });
            locks.len() - 1
        })
    }

    /// The mutexes inside of recorded locks that are wrappers, by their addresses: all threads that wait for the
    /// wrapper sleep in that mutex, which its owner keeps, and nobody waits for anything else there.
    fn wrapped_mutexes(&self) -> HashMap<u64, LockId> {
        let mut inside: HashMap<u64, Option<LockId>> = HashMap::default();
        let mut mutexes: HashMap<LockId, Option<u64>> = HashMap::default();
        for (at, task) in self.seen.target.tasks.iter().enumerate() {
            let standing = &self.seen.threads[at];
            let Some(wait) = standing.wait.as_ref().filter(|_| standing.is_still != Some(false)) else {
                continue;
            };
            // Whoever is presumed to be an owner is so without the record.
            let (Some(address), Owner::Tid(_), None) = (wait.object, wait.owner, wait.presumption) else {
                continue;
            };
            let recorded = self.threads.get(&task.own_tid).and_then(|&id| self.model.threads[id].wait);
            let (Some(recorded), Some(_)) = (recorded, nature(wait)) else { continue };
            let is_same = |known: &mut Option<LockId>| *known = known.filter(|&lock| lock == recorded.lock);
            inside.entry(address).and_modify(is_same).or_insert(Some(recorded.lock));
            let is_same = |known: &mut Option<u64>| *known = known.filter(|&mutex| mutex == address);
            mutexes.entry(recorded.lock).and_modify(is_same).or_insert(Some(address));
        }
        let is_wrapper = |&(address, lock): &(u64, LockId)| {
            mutexes.get(&lock) == Some(&Some(address)) && !self.locks.contains_key(&(self.pid, address))
        };
        inside.into_iter().filter_map(|(address, lock)| Some((address, lock?))).filter(is_wrapper).collect()
    }

    /// The lock at an address, if the record says that the thread waits for it, or needs it to return from a wait on a
    /// condition variable.
    fn recorded_wait(&self, thread: ThreadId, address: u64) -> Option<LockId> {
        let own = &self.model.threads[thread];
        let of_record = || self.locks.get(&(self.pid, address)).copied();
        let lock = self.inside.get(&address).copied().or_else(of_record)?;
        let mut waits = own.wait.iter().chain(own.relock.as_deref());
        waits.any(|wait| wait.lock == lock).then_some(lock)
    }

    /// The kernel says that a thread sleeps in the lock for which it waits by the record.
    fn confirm(&mut self, thread: ThreadId, lock: LockId, is_steady: bool) {
        let own = self.model.threads[thread].wait.iter_mut();
        let listed = self.model.locks[lock].waiters.iter_mut();
        let is_it = |wait: &&mut Wait| wait.thread == thread && wait.lock == lock;
        for wait in own.chain(listed).filter(is_it).filter(|wait| !wait.is_of_future) {
            wait.is_seen = true;
            wait.is_steady |= is_steady;
        }
    }

    /// A thread owns a lock, by the lock's memory.
    fn own(&mut self, id: LockId, owner: OwnerInMemory) {
        let OwnerInMemory { thread, is_steady, .. } = owner;
        let lock = &mut self.model.locks[id];
        // Each waiter reads the owner anew: one that is steady is enough.
        if !lock.owner.is_some_and(|known| known.is_steady) {
            lock.owner = Some(owner);
        }
        let is_held = |hold: &&mut Hold| hold.thread == thread && hold.lock == id;
        if let Some(hold) = lock.holders.iter_mut().find(is_held) {
            hold.is_steady |= is_steady;
            let is_steady = hold.is_steady;
            if let Some(own) = self.model.threads[thread].holds.iter_mut().find(is_held) {
                own.is_steady = is_steady;
            }
            return;
        }
        let is_recorded = !lock.holders.is_empty() || !lock.possible_holders.is_empty();
        if is_recorded && !is_steady {
            return;
        }
        let hold = Hold { thread, lock: id, is_steady, ..Hold::default() };
        lock.holders.push(hold);
        self.model.threads[thread].holds.push(hold);
    }

    /// The block of its language in which a thread has a lock says where the thread has acquired it.
    fn acquired_at(&mut self, thread: ThreadId, lock: LockId, word: u64, locations: &mut Locations<'_>) {
        let Some(interior) = &self.seen.interior else { return };
        let tid = self.model.threads[thread].tid;
        let hold =
            interior.holds.iter().find(|hold| hold.tid == tid && hold.word == word && hold.at.is_some());
        let Some(at) = hold.and_then(|hold| hold.at.clone()) else { return };
        let location = locations.of_interior(None, &[at]);
        let own = self.model.threads[thread].holds.iter_mut();
        let of_lock = self.model.locks[lock].holders.iter_mut();
        let is_it = |hold: &&mut Hold| (hold.thread, hold.lock, hold.location) == (thread, lock, None);
        own.chain(of_lock).filter(is_it).for_each(|hold| hold.location = location);
    }

    /// A lock names an owner that the process does not have. In a process that is no fork, this thread has ended.
    fn lost(&mut self, id: LockId, owner: AbsentOwner) {
        self.model.locks[id].absent_owner = Some(owner);
        let lock = &self.model.locks[id];
        if owner.is_of_fork == Some(true) || !lock.holders.is_empty() || !lock.possible_holders.is_empty() {
            return;
        }
        let (pid, threads) = (self.pid, &mut self.model.threads);
        let is_it = |own: &ThreadLocks| own.pid == pid && own.tid == owner.tid && own.task.is_none();
        let thread = threads.iter().rposition(is_it).unwrap_or_else(|| {
            let state = ThreadState::Exited;
            threads
                .push(ThreadLocks { state, ..ThreadLocks::unrecorded(pid, owner.tid, "thread".to_owned()) });
            threads.len() - 1
        });
        let ownership = self.model.locks[id].nature.ownership;
        let address = self.model.locks[id].address;
        let (is_steady, presumption, may_be_elsewhere) = (true, None, false);
        self.own(id, OwnerInMemory { thread, address, ownership, is_steady, presumption, may_be_elsewhere });
    }

    /// Finds the holders that have returned from the functions that acquired their locks, of locks that others want.
    /// The stack may be of another moment than the last reading, but the lock was held throughout.
    fn left_functions(&mut self, locations: &mut Locations<'_>) {
        let wanted = self.model.locks.iter().filter(|lock| lock.pid == self.pid && !lock.waiters.is_empty());
        let holds = wanted.flat_map(|lock| &lock.holders);
        let holds = holds.filter(|hold| hold.is_steady && !hold.is_of_future);
        let left = |hold: &Hold| {
            let seen = self.model.threads[hold.thread].seen?;
            let stack = self.seen.stack(seen.index);
            let has_left = stack.is_complete() && !locations.is_within(self.pid, stack, hold.location?);
            has_left.then_some((hold.thread, hold.lock))
        };
        let left: Vec<(ThreadId, LockId)> = holds.filter_map(left).collect();
        for (thread, lock) in left {
            let own = self.model.threads[thread].holds.iter_mut();
            let of_lock = self.model.locks[lock].holders.iter_mut();
            let is_it = |hold: &&mut Hold| (hold.thread, hold.lock) == (thread, lock);
            own.chain(of_lock).filter(is_it).for_each(|hold| hold.has_left = true);
        }
    }
}

/// The properties of a lock that a thread waits for; `None` if it is no lock.
fn nature(wait: &read_rip_evidence::waits::FutexWait) -> Option<Nature> {
    let of = |lock_type, ownership| Nature { lock_type, ownership, is_wrapped: true, ..Nature::default() };
    Some(match wait.kind {
        WaitKind::Mutex { of_type, is_robust, protocol, is_shared } => {
            let is_plain = matches!(of_type, MutexType::Normal | MutexType::Adaptive);
            let is_enforced = !is_plain || is_robust || protocol == Protocol::Inherit;
            let ownership = if is_enforced { Ownership::Enforced } else { Ownership::ByRule };
            Nature {
                is_reentrant: of_type == MutexType::Recursive,
                is_process_shared: is_shared,
                ..of(LockType::Mutex, ownership)
            }
        }
        WaitKind::ReadWriteLock { preference, .. } => {
            let readers_first = preference.map(|preference| preference != Preference::Writers);
            Nature { readers_first, ..of(LockType::RwLock, Ownership::ByRule) }
        }
        WaitKind::Once => of(LockType::Once, Ownership::Enforced),
        WaitKind::Opaque if is_initialisation(wait) => of(LockType::Once, Ownership::Enforced),
        WaitKind::PiFutex | WaitKind::RuntimeLock => of(LockType::Mutex, Ownership::Enforced),
        WaitKind::Refused => Nature { is_refused: true, ..of(LockType::Mutex, Ownership::Enforced) },
        WaitKind::LibraryLock => Nature { is_of_library: true, ..of(LockType::Mutex, Ownership::ByRule) },
        WaitKind::Opaque if is_lock(wait) => of(LockType::Unknown, Ownership::Anyone),
        // A lock of a language that is made of these.
        WaitKind::Semaphore { .. } | WaitKind::Condition { .. }
            if is_lock(wait) && matches!(wait.owner, Owner::Tid(_)) =>
        {
            let is_stored = wait.presumption.is_none();
            let ownership = if is_stored { Ownership::Enforced } else { Ownership::Anyone };
            Nature { is_reentrant: is_stored, ..of(LockType::Mutex, ownership) }
        }
        _ => return None,
    })
}

/// The owner of a lock of this process alone that is no thread of the process. If the lock is robust, or hands its
/// owner's priority on, the kernel knows that the owner has ended.
fn absent_owner(wait: &read_rip_evidence::waits::FutexWait) -> Option<u32> {
    let Owner::Unknown(UnknownOwner::NotHere(tid)) = wait.owner else { return None };
    let is_plain = match wait.kind {
        WaitKind::Mutex { is_robust, protocol, is_shared, .. } => {
            !is_robust && !is_shared && protocol != Protocol::Inherit
        }
        WaitKind::ReadWriteLock { .. } => true,
        _ => false,
    };
    (is_plain && wait.is_private).then_some(tid)
}

/// Whether a thread of a forked process waits for a lock whose memory names an owner that the process does not have.
pub fn waits_for_nobody(seen: &Standings) -> bool {
    let is_lost = |wait: &read_rip_evidence::waits::FutexWait| absent_owner(wait).is_some();
    seen.target.is_fork == Some(true)
        && seen.threads.iter().any(|thread| thread.is_steady && thread.wait.as_ref().is_some_and(is_lost))
}

/// The name of a lock of a language's runtime, of which there is one.
fn name_in_runtime(wait: &read_rip_evidence::waits::FutexWait) -> Option<LockName> {
    let name = wait.construct.filter(|_| wait.kind == WaitKind::RuntimeLock)?.name;
    Some(LockName::Given(name.to_string()))
}

/// Whether the stack says that a thread waits for an initialisation, and it is known which.
fn is_initialisation(wait: &read_rip_evidence::waits::FutexWait) -> bool {
    let is_one = wait.construct.is_some_and(|construct| construct.role == Role::Initialisation);
    is_one && matches!(wait.owner, Owner::Tid(_))
}

/// Whether the stack says that a thread wants a lock, or threads use what it wants as one.
fn is_lock(wait: &read_rip_evidence::waits::FutexWait) -> bool {
    wait.presumption == Some(Presumption::HasTaken)
        || wait.construct.is_some_and(|construct| construct.role == Role::Lock)
}

/// Whether a thread has nothing to do, by the function of the library in which it waits, or by its call.
fn is_idle(standing: &Standing) -> bool {
    let construct = standing.wait.as_ref().and_then(|wait| wait.construct);
    standing.is_in_silent_call
        || standing.waits_for_turn
        || construct.is_some_and(|construct| construct.role == Role::Idle)
}

/// Whether the sleep of a thread ends by itself after a time, as far as its call says so.
fn is_timed(seen: &Standings, at: usize) -> bool {
    match seen.activity(at) {
        Activity::Waits(wait) => wait.is_timed,
        Activity::Calls(call) => call.is_timed() == Some(true),
        _ => false,
    }
}

/// What a thread does, as far as analyses want to know it.
pub fn doing(seen: &Standings, at: usize) -> Doing {
    if seen.is_frozen() {
        return Doing::Stopped;
    }
    // Whoever alone brings itself events may wait for anything.
    let is_own_loop = |need: &&Need| {
        let is_own = |party: &Party| party.pid == seen.target.pid;
        matches!(need.what, Needed::OneOfMany(_)) && need.by.iter().chain(&need.also).all(is_own)
    };
    let needed = seen.needs.get(&at).filter(|need| !is_own_loop(need)).map(|need| &need.what);
    match seen.activity(at) {
        Activity::Waits(_) | Activity::Calls(_) if seen.threads[at].manager.is_some() => {
            Doing::WaitsForManagedLock
        }
        Activity::Waits(_) if matches!(needed, Some(Needed::SharedLock(_))) => Doing::WaitsForProcess,
        Activity::Waits(wait) => {
            let memory = seen.target.mapping_at(wait.address());
            of_wait(wait, !wait.is_private && memory.is_some_and(|mapping| mapping.is_shared))
        }
        Activity::Calls(_) if seen.threads[at].is_in_silent_call => Doing::WaitsInside,
        Activity::Calls(_)
            if matches!(
                needed,
                Some(Needed::DataInPipe | Needed::DataInSocket | Needed::OneOfMany(_) | Needed::Event)
            ) =>
        {
            Doing::WaitsForData
        }
        Activity::Calls(call) => of_call(seen, at, call),
        Activity::Faults | Activity::DiskSleep(_) => Doing::Kernel,
        Activity::Runs => Doing::Runs,
        Activity::Starves => Doing::Starves,
        Activity::IsStopped | Activity::IsTraced(_) => Doing::Stopped,
        Activity::Sleeps | Activity::HasEnded | Activity::Unknown => Doing::Unknown,
    }
}

fn reads_connection(seen: &Standings, task: &Task) -> bool {
    let Some(Sleep::Call(call)) = task.sleep else { return false };
    let descriptor = call.descriptor().and_then(|number| seen.descriptors.get(&number));
    matches!(call.kind, CallKind::Read | CallKind::Receive)
        && descriptor.is_some_and(|descriptor| descriptor.kind.is_connection())
}

/// `is_shared`: other processes have the memory, and may do there what the thread waits for.
fn of_wait(wait: &read_rip_evidence::waits::FutexWait, is_shared: bool) -> Doing {
    if wait.is_timed {
        let is_for_object = wait.construct.is_some_and(|construct| construct.role == Role::Pool);
        return if is_for_object { Doing::WaitsForObject } else { Doing::WaitsOutside };
    }
    match of_kind(wait) {
        Doing::WaitsInside | Doing::Unknown if is_shared => Doing::WaitsInSharedMemory,
        doing => doing,
    }
}

fn of_kind(wait: &read_rip_evidence::waits::FutexWait) -> Doing {
    match wait.kind {
        WaitKind::Mutex { .. }
        | WaitKind::ReadWriteLock { .. }
        | WaitKind::PiFutex
        | WaitKind::Refused
        | WaitKind::RuntimeLock
        | WaitKind::LibraryLock => Doing::WaitsForLock,
        WaitKind::Once | WaitKind::Join => Doing::WaitsForThread,
        // A lock of a language that is made of a condition variable.
        WaitKind::Condition { .. } if is_lock(wait) => Doing::WaitsForLock,
        WaitKind::Semaphore { .. } if is_lock(wait) && matches!(wait.owner, Owner::Tid(_)) => {
            Doing::WaitsForLock
        }
        WaitKind::Condition { .. } | WaitKind::Semaphore { .. } | WaitKind::Barrier { .. } => {
            Doing::WaitsInside
        }
        WaitKind::Opaque if is_lock(wait) => Doing::WaitsForLock,
        WaitKind::Opaque => match wait.construct.map(|construct| construct.role) {
            Some(Role::Lock | Role::Allocator | Role::Stream | Role::Loader | Role::Lifecycle) => {
                Doing::WaitsForLock
            }
            Some(Role::Initialisation | Role::Join) => Doing::WaitsForThread,
            Some(Role::Calls) => Doing::WaitsForCalls,
            Some(_) => Doing::WaitsInside,
            None => of_futex(wait),
        },
        WaitKind::Unknown => of_futex(wait),
    }
}

/// A wait for a word of memory, whatever that means to the program.
fn of_futex(wait: &read_rip_evidence::waits::FutexWait) -> Doing {
    if wait.is_private { Doing::WaitsInside } else { Doing::Unknown }
}

fn of_call(seen: &Standings, at: usize, call: Call) -> Doing {
    let descriptor = || Some(&seen.descriptors.get(&call.descriptor()?)?.kind);
    let kernel = seen.kernel.get(&at);
    match call.kind {
        CallKind::WaitChild | CallKind::Spawn => Doing::WaitsForChild,
        CallKind::FileLock => Doing::WaitsForFileLock,
        CallKind::Semaphore => Doing::WaitsInSharedMemory,
        CallKind::Connect => Doing::WaitsToConnect,
        // A write to a file or a device waits for the kernel, or for whoever is behind the device.
        CallKind::Write | CallKind::Send
            if !matches!(descriptor(), Some(DescriptorKind::File(_) | DescriptorKind::Anonymous(_))) =>
        {
            Doing::WaitsToWrite
        }
        CallKind::File if kernel.is_some_and(KernelWait::is_fifo_open) => Doing::WaitsToOpen,
        _ if kernel.is_some_and(KernelWait::awaits_server) => Doing::Kernel,
        CallKind::Exit => Doing::Unknown,
        CallKind::Futex | CallKind::FutexMany | CallKind::Restarted | CallKind::Other => Doing::Unknown,
        CallKind::Memory | CallKind::File | CallKind::Sync | CallKind::Exec => Doing::Kernel,
        _ => Doing::WaitsOutside,
    }
}
