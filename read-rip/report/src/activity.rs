//! What a thread does, in words: what it waits for and who has that, or which system call it is in.
//!
//! The words follow a thread or a number of threads: `3 threads, waiting for the mutex CACHE, owned by saver[12]`.

use std::collections::HashMap;

use read_rip_evidence::standing::{Activity, Standings};
use read_rip_evidence::target::{Call, CallKind, Child, Descriptor, DescriptorKind, Peer};
use read_rip_evidence::waits::{FutexWait, MutexType, Owner, Role, UnknownOwner, WaitKind};
use read_rip_model::locks::{LockId, Seen, ThreadId};
use read_rip_model::threads::{Thread, ThreadState};
use read_rip_ring::LockType;

use super::names::{LockNames, ObjectName};
use super::picture::ProcessorUse;
use super::units::{counted, duration};
use crate::printable;

/// A share of a processor within a shorter time says nothing: the kernel counts in ticks.
const SHARE_WINDOW_MIN_NS: u64 = 20_000_000;

/// What the words about a target's threads need.
#[derive(Clone, Copy)]
pub struct ActivityWords<'a> {
    pub seen: &'a Standings,
    /// Names of threads, and of locks that are in the model.
    pub names: &'a LockNames<'a>,
    /// Names of other objects that threads wait for, by their addresses.
    objects: &'a HashMap<u64, ObjectName>,
}

impl<'a> ActivityWords<'a> {
    /// The words for the threads that were seen; `None` if the kernel was not asked.
    pub fn new(names: &'a LockNames<'a>) -> Option<ActivityWords<'a>> {
        names.seen.map(|seen| ActivityWords { seen: seen.standings, names, objects: seen.objects })
    }

    pub fn of_process(&self, seen: &Seen) -> ActivityWords<'a> {
        ActivityWords { seen: self.names.seen.map_or(self.seen, |names| names.of(seen)), ..*self }
    }

    /// The thread of a slot in the model, if it exists and the kernel was asked about it.
    pub(super) fn seen_thread(&self, thread: &Thread<'_>) -> Option<ThreadId> {
        let id = *self.names.model.seen.get(&thread.slot.tid)?;
        let is_of_process = self.names.model.threads[id].pid == thread.slot.pid;
        (is_of_process && thread.state == ThreadState::Present).then_some(id)
    }

    /// What a thread of the model does, with where it stands if addresses are shown too; `None` if that is not known.
    pub(super) fn now(&self, thread: ThreadId) -> Option<String> {
        let seen = self.names.model.threads[thread].seen?;
        let own = self.of_process(&seen);
        if matches!(own.seen.activity(seen.index), Activity::HasEnded | Activity::Unknown) {
            return None;
        }
        let place = seen.place.filter(|_| self.names.texts.is_verbose);
        let place = place.map_or_else(String::new, |place| format!(", at {}", self.names.location(place)));
        Some(own.of(seen.index) + &place)
    }

    /// What the kernel says of a thread that the record has waiting, where that is no wait; `None` where both agree, or
    /// may be of different moments.
    pub(super) fn contradiction(&self, thread: ThreadId) -> Option<String> {
        let known = &self.names.model.threads[thread];
        let (wait, seen) = (known.wait.filter(|_| known.slot.is_some())?, known.seen?);
        let is_same_moment = wait.is_steady || seen.is_still == Some(true);
        let spins = self.names.model.locks[wait.lock].nature.lock_type == LockType::Spin;
        let own = self.of_process(&seen);
        let is_another = match own.seen.activity(seen.index) {
            Activity::Runs | Activity::Starves => !spins,
            Activity::Calls(call) => call.kind != CallKind::Restarted && call.futex().is_none(),
            Activity::DiskSleep(_) | Activity::IsStopped | Activity::IsTraced(_) => true,
            Activity::Waits(at) => self.is_at_another_lock(at, wait.lock),
            Activity::Faults | Activity::Sleeps | Activity::HasEnded | Activity::Unknown => false,
        };
        (is_same_moment && is_another).then(|| own.of(seen.index))
    }

    /// Whether a thread sleeps in a lock whose owner is known, and which is neither this one nor inside of it.
    fn is_at_another_lock(&self, at: &FutexWait, lock: LockId) -> bool {
        let lock = &self.names.model.locks[lock];
        let known = [Some(lock.address), lock.owner.map(|owner| owner.address)];
        let is_known = matches!(at.owner, Owner::Tid(_)) && at.presumption.is_none();
        is_known && at.object.is_some() && !known.contains(&at.object)
    }

    /// A sentence on what a thread of the model does, with where it stands, and for how long it is known to do it.
    /// `None` if that is not known.
    pub(super) fn sentence(&self, thread: ThreadId) -> Option<String> {
        let seen = self.names.model.threads[thread].seen?;
        let own = self.of_process(&seen);
        let activity = own.seen.activity(seen.index);
        if matches!(activity, Activity::Sleeps | Activity::HasEnded | Activity::Unknown) {
            return None;
        }
        let (name, doing) = (self.names.thread(thread), own.of(seen.index));
        let place =
            seen.place.map_or_else(String::new, |place| format!(", at {}", self.names.location(place)));
        // The words about a thread that runs have the time already.
        let is_running = matches!(activity, Activity::Runs | Activity::Starves);
        let asleep_ns = own.seen.threads[seen.index].asleep_ns.max(own.seen.window_ns);
        let still_ns = asleep_ns.filter(|_| seen.is_still == Some(true) && !is_running);
        Some(match still_ns {
            Some(window_ns) => format!("{name} has been {doing}{place} for at least {}", duration(window_ns)),
            None => format!("{name} is {doing}{place}"),
        })
    }

    /// What a thread does, by its index among those that were seen.
    pub fn of(&self, thread: usize) -> String {
        match self.seen.activity(thread) {
            Activity::Waits(wait) => self.wait(wait),
            Activity::Calls(call) => self.call(call),
            Activity::Faults => "waiting for a page of memory".to_owned(),
            Activity::Sleeps => self.sleeping(thread),
            Activity::DiskSleep(call) => match call {
                Some(call) => format!("in disk sleep (state D), {}", self.call(call)),
                None => "in disk sleep (state D)".to_owned(),
            },
            Activity::Runs => self.running(thread),
            Activity::Starves => self.starving(thread),
            Activity::IsStopped => "stopped by a signal".to_owned(),
            Activity::IsTraced(Some(tracer)) => format!("stopped by its tracer, {}", self.tracer(tracer)),
            Activity::IsTraced(None) => "stopped by its tracer".to_owned(),
            Activity::HasEnded => "ended".to_owned(),
            Activity::Unknown => "in an unknown state".to_owned(),
        }
    }

    /// What is left without the rights to see the system call.
    fn sleeping(&self, thread: usize) -> String {
        let task = &self.seen.target.tasks[thread];
        match &task.wchan {
            Some(function) => format!("sleeping in {} of the kernel", printable(function)),
            None if task.hidden => "sleeping".to_owned(),
            None => "sleeping in an unknown call".to_owned(),
        }
    }

    /// The same for a view that shows the share of a processor elsewhere.
    pub fn without_share(&self, thread: usize) -> String {
        match self.seen.activity(thread) {
            Activity::Runs => "running".to_owned(),
            _ => self.of(thread),
        }
    }

    fn running(&self, thread: usize) -> String {
        match self.share(thread) {
            Some(share) => format!("running, {share}"),
            None => "running".to_owned(),
        }
    }

    /// What a thread had of the processors between two readings; `None` if that is not known.
    pub fn processor(&self, thread: usize) -> Option<ProcessorUse> {
        let (percent, _) = self.percent(thread)?;
        let last = self.seen.target.tasks[thread].processor.and_then(|number| u16::try_from(number).ok());
        Some(ProcessorUse { percent: percent.round() as u16, last })
    }

    /// Its share of one processor, percent, and the time in which it had that, ns.
    fn percent(&self, thread: usize) -> Option<(f64, u64)> {
        let window_ns = self.seen.window_ns.filter(|&window_ns| window_ns >= SHARE_WINDOW_MIN_NS)?;
        // The kernel's account may be ahead of the reader's clock.
        let ran_ns = self.seen.threads[thread].scheduled?.ran_ns.min(window_ns);
        Some((100.0 * ran_ns as f64 / window_ns as f64, window_ns))
    }

    /// `with 12 % of a processor in 200 ms`.
    fn share(&self, thread: usize) -> Option<String> {
        let (percent, window_ns) = self.percent(thread)?;
        let percent = match percent {
            0.0 => "0".to_owned(),
            ..0.1 => "less than 0.1".to_owned(),
            ..10.0 => format!("{percent:.1}"),
            _ => format!("{percent:.0}"),
        };
        Some(format!("with {percent} % of a processor in {}", duration(window_ns)))
    }

    /// `gdb[4711]`.
    fn tracer(&self, pid: u32) -> String {
        match self.seen.tracers.get(&pid) {
            Some(name) => format!("{}[{pid}]", printable(name)),
            None => format!("process {pid}"),
        }
    }

    fn starving(&self, thread: usize) -> String {
        let nice = self.seen.target.tasks[thread].nice.filter(|&nice| nice != 0);
        let nice = nice.map(|nice| format!("nice {nice}"));
        let load = self.seen.load.map(|load| {
            let threads = counted(load.ready, "thread");
            format!(
                "{threads} of the machine are ready to run, for {}",
                counted(load.processors, "processor")
            )
        });
        let why: Vec<String> = nice.into_iter().chain(load).collect();
        let why = if why.is_empty() { String::new() } else { format!(" ({})", why.join("; ")) };
        let share = self.share(thread).map_or_else(String::new, |share| format!(" {share}"));
        format!("ready to run{share}{why}")
    }

    fn wait(&self, wait: &FutexWait) -> String {
        let limit = if wait.is_timed { ", with a time limit" } else { "" };
        if wait.kind == WaitKind::Join {
            return format!("waiting for the end of {}{limit}", self.joined(wait.owner));
        }
        if wait.kind == WaitKind::Refused {
            return format!("sleeping for good in a mutex that the kernel has refused{limit}");
        }
        format!("waiting {}{}{limit}", self.object(wait), self.owner(wait))
    }

    fn joined(&self, owner: Owner) -> String {
        match owner {
            Owner::Tid(tid) => self.thread(tid),
            _ => "a thread".to_owned(),
        }
    }

    /// `for the mutex CACHE`.
    fn object(&self, wait: &FutexWait) -> String {
        let mode = if wait.is_exclusive { "" } else { " (shared)" };
        let construct = wait.construct.map(|construct| construct.name);
        if let Some(name) = construct.as_ref().filter(|_| wait.kind == WaitKind::RuntimeLock) {
            // A runtime has one such lock.
            return format!("for {name}");
        }
        let what = match wait.kind {
            WaitKind::Mutex { of_type, is_robust, .. } => {
                let of_type = match of_type {
                    MutexType::Normal | MutexType::Adaptive => "",
                    MutexType::Recursive => "recursive ",
                    MutexType::ErrorChecking => "error-checking ",
                };
                let robust = if is_robust { "robust " } else { "" };
                format!("for the {robust}{of_type}mutex ")
            }
            WaitKind::ReadWriteLock { .. } => "for the readers-writer lock ".to_owned(),
            WaitKind::Condition { .. } => {
                match wait.construct.map(|construct| (construct.role, construct.name)) {
                    Some((Role::Lock, name)) => format!("for {name}, on the condition variable "),
                    Some((Role::Park, name)) => format!("to be woken ({name}), on the condition variable "),
                    Some((Role::Idle, name)) => format!("for work ({name}), on the condition variable "),
                    _ => "on the condition variable ".to_owned(),
                }
            }
            WaitKind::Semaphore { .. } => match wait.construct {
                Some(of) if of.role == Role::Lock => format!("for a {}, on the semaphore ", of.name),
                _ => "for the semaphore ".to_owned(),
            },
            WaitKind::Barrier { arrived: Some((arrived, needed)) } => {
                return format!(
                    "at the barrier {}, where {arrived} of {needed} threads are",
                    self.name(wait.address())
                );
            }
            WaitKind::Barrier { arrived: None } => "at the barrier ".to_owned(),
            WaitKind::Once => "for an initialisation by another thread, ".to_owned(),
            WaitKind::Join => "for the end of a thread, ".to_owned(),
            WaitKind::LibraryLock => match construct {
                Some(name) => format!("for a lock of the C library ({name}) "),
                None => "for a lock of the C library ".to_owned(),
            },
            WaitKind::PiFutex | WaitKind::Refused => "for a lock with priority inheritance ".to_owned(),
            WaitKind::Opaque | WaitKind::RuntimeLock => {
                match wait.construct.map(|construct| (construct.role, construct.name)) {
                    Some((Role::Idle, name)) => return format!("for work ({name})"),
                    Some((Role::Park, name)) => return format!("to be woken ({name})"),
                    Some((Role::Join, name)) => return format!("for threads to end ({name})"),
                    Some((Role::Calls, name)) => {
                        return format!("for calls on the pool of a runtime that ends ({name})");
                    }
                    Some((Role::Pool, name)) => return format!("for an object of a pool ({name})"),
                    Some((_, name)) => format!("for {name} "),
                    None => "for ".to_owned(),
                }
            }
            WaitKind::Unknown => return format!("for a futex at {}", self.name(wait.futex)),
        };
        match wait.object {
            Some(object) => format!("{what}{}{mode}", self.name(object)),
            None => format!("{}{mode}", what.trim_end_matches([' ', ','])),
        }
    }

    fn owner(&self, wait: &FutexWait) -> String {
        let readers = match wait.kind {
            WaitKind::ReadWriteLock { readers, .. } => readers,
            _ => 0,
        };
        match wait.owner {
            Owner::Tid(tid) => {
                let presumed = wait.presumption.filter(|why| why.is_of_holder());
                let presumably = presumed.map_or("", |_| "presumably ");
                format!(", {presumably}owned by {}", self.thread(tid))
            }
            Owner::Unknown(UnknownOwner::Readers(_)) => {
                format!(", held by {} that it does not name", counted(readers.into(), "reader"))
            }
            Owner::Unknown(UnknownOwner::NotHere(tid)) => {
                format!(", owned by thread {tid}, which is not in this process")
            }
            Owner::Unknown(UnknownOwner::Changing) => ", which is changing hands".to_owned(),
            Owner::Unknown(UnknownOwner::NotStored)
                if matches!(wait.kind, WaitKind::Mutex { .. })
                    || wait.construct.is_some_and(|of| of.role == Role::Lock) =>
            {
                ", which does not store its holder".to_owned()
            }
            Owner::Nobody | Owner::Unknown(_) => String::new(),
        }
    }

    fn call(&self, call: Call) -> String {
        let name = call.name.map_or_else(|| format!("system call {}", call.number), str::to_owned);
        let limit = if call.is_timed() == Some(true) && call.kind != CallKind::Sleep {
            ", with a time limit"
        } else {
            ""
        };
        match (call.kind, call.child(), call.descriptor()) {
            (CallKind::Sleep, ..) => format!("sleeping for a time ({name})"),
            (_, Some(child), _) => format!("waiting for {} ({name})", child_words(child)),
            (CallKind::SignalWait, ..) => format!("waiting for a signal ({name}){limit}"),
            (CallKind::Restarted, ..) => {
                "in a call that was interrupted and goes on (restart_syscall)".to_owned()
            }
            (CallKind::Spawn, ..) => format!("starting a process or thread ({name})"),
            (CallKind::Semaphore, ..) => {
                format!("waiting for a semaphore of set {} of System V ({name}){limit}", call.arguments[0])
            }
            (CallKind::MessageQueue, _, None) => {
                let queue = call.arguments[0];
                match name.as_str() {
                    "msgrcv" => format!("waiting for a message in queue {queue} of System V ({name})"),
                    _ => format!("sending to queue {queue} of System V, which is full ({name})"),
                }
            }
            (_, _, Some(number)) => {
                let what =
                    self.seen.descriptors.get(&number).map(|found| format!(" ({})", self.descriptor(found)));
                format!("in {name} on descriptor {number}{}{limit}", what.unwrap_or_default())
            }
            _ => format!("in {name}{limit}"),
        }
    }

    fn descriptor(&self, of: &Descriptor) -> String {
        match &of.kind {
            DescriptorKind::File(path) => printable(&path.to_string_lossy()).into_owned(),
            DescriptorKind::Tcp { local, peer: None, .. } => format!("TCP, listening at {local}"),
            DescriptorKind::Tcp { peer: Some(peer), state, .. } => format!("TCP to {peer}, {state}"),
            DescriptorKind::Udp { local, peer: None } => format!("UDP at {local}"),
            DescriptorKind::Udp { peer: Some(peer), .. } => format!("UDP to {peer}"),
            DescriptorKind::Unix { name, peers, .. } => {
                let name = name.as_deref().map_or_else(String::new, |name| format!(" {}", printable(name)));
                format!("unix socket{name}{}", self.peers(peers))
            }
            DescriptorKind::Socket(inode) => format!("socket {inode}"),
            DescriptorKind::Pipe { peers, .. } => format!("pipe{}", self.peers(peers)),
            DescriptorKind::Epoll { watched } => {
                format!("epoll of {}", counted(watched.len() as u64, "descriptor"))
            }
            DescriptorKind::Process { pid: Some(pid) } => format!("process {pid}"),
            DescriptorKind::Process { pid: None } => "a process".to_owned(),
            DescriptorKind::Anonymous(kind) => printable(kind).into_owned(),
            DescriptorKind::Unknown => "not known".to_owned(),
        }
    }

    /// Who has the other end: another process, if there is one.
    fn peers(&self, peers: &[Peer]) -> String {
        let own = self.seen.target.pid;
        let Some(named) = peers.iter().find(|peer| peer.pid != own).or(peers.first()) else {
            return String::new();
        };
        let more = match peers.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        match named.pid == own {
            true => format!(" to descriptor {} of this process{more}", named.descriptor),
            false => {
                let name = printable(&named.name);
                format!(" to {name}[{}], descriptor {}{more}", named.pid, named.descriptor)
            }
        }
    }

    /// A thread, by its id in its own PID namespace.
    fn thread(&self, tid: u32) -> String {
        let found = self.names.model.seen.get(&tid);
        found.map_or_else(|| format!("thread {tid}"), |&id| self.names.thread(id))
    }

    fn name(&self, address: u64) -> String {
        match self.objects.get(&address) {
            Some(ObjectName::Symbol { name, has_namesakes })
                if *has_namesakes || self.names.texts.is_verbose =>
            {
                format!("{} ({address:#x})", printable(name))
            }
            Some(ObjectName::Symbol { name, .. }) => printable(name).into_owned(),
            Some(ObjectName::Region(region)) => format!("{address:#x} ({})", region.name()),
            None => format!("{address:#x}"),
        }
    }
}

fn child_words(child: Child) -> String {
    match child {
        Child::Any => "any child process".to_owned(),
        Child::Process(pid) => format!("the child process {pid}"),
        Child::Group(group) => format!("a child of process group {group}"),
        Child::OwnGroup => "a child of its process group".to_owned(),
        Child::Descriptor(number) => format!("the process of descriptor {number}"),
    }
}
