//! What threads need from other processes, by the kernel's account: the edges between processes of a graph of waits.
//!
//! [`Machine`] has the facts of the whole machine that this takes: who has which pipes, sockets and locks on files.
//! Each is read when it is first asked for, and once. So all needs that one `Machine` tells are of about one moment.
//! Whoever wants to be sure takes two, and makes certain that the threads did not run in between.
//!
//! A thread that could go on without another process has no need: one that runs, one with a time limit, one that waits
//! for a terminal, for a connection, or for a peer on another machine.
//!
//! | file | what it has |
//! |---|---|
//! | `ends` | who has pipes, sockets, eventfds and FIFOs open |
//! | `file_locks` | who has locks on files, and who waits for them |
//! | `limits` | how long a socket lets a thread wait |
//! | `many` | waits for one of several descriptors |
//! | `memory` | who has memory that processes share |
//! | `system_v` | who changed a semaphore or a message queue of System V last |

mod ends;
mod file_locks;
mod limits;
mod many;
mod memory;
mod system_v;

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use self::ends::{Ends, Hidden, Holder, Kind, PARTIES_MAX, key_of};
use self::file_locks::{FileLocks, inode_of, lease_owner};
pub(super) use self::many::{event_number, has_plain_events};
use self::memory::SharedMemory;
use super::folder::{Failure, Folder};
use super::sock_diag::SockDiag;
use super::sockets::Sockets;
use super::text::{self, Status};
use super::{LiveTarget, resources_of};
use crate::standing::Standings;
use crate::target::{
    Call, CallKind, Child, FileLockKind, Helper, HelperState, Mapping, MessageQueue, Need, Needed, Others,
    Party, RunState, SharedObject, Sleep, Target, Task,
};
use crate::waits::{FutexWait, Owner, UnknownOwner, WaitKind};

/// The facts of the whole machine. See the [module](self).
#[derive(Debug, Default)]
pub struct Machine {
    /// Whether nobody asks who else may help, nor what the processes are called.
    is_brief: bool,
    ends: OnceCell<Ends>,
    locks: OnceCell<FileLocks>,
    memory: OnceCell<SharedMemory>,
    /// Which processes each thread traces.
    traced: OnceCell<HashMap<u32, Vec<u32>>>,
    unix: OnceCell<SockDiag>,
    /// By network namespace.
    sockets: RefCell<HashMap<Vec<u8>, std::rc::Rc<Sockets>>>,
}

/// A process whose threads are asked what they need.
struct Of<'a> {
    live: &'a LiveTarget,
    status: Status,
    children: OnceCell<Option<Vec<u32>>>,
}

impl Machine {
    /// Nothing is read yet.
    pub fn new() -> Machine {
        Machine::default()
    }

    /// For a first look at many processes: who else may help, and what those are called who can, is left out.
    pub fn brief() -> Machine {
        Machine { is_brief: true, ..Machine::default() }
    }

    /// Goes on after a first look: who else may help, and what those are called who can, is asked too.
    pub fn thorough(self) -> Machine {
        Machine { is_brief: false, ..self }
    }

    /// The threads of a process whose waits one other process alone can end, as far as this reader sees. `needs`: what
    /// its threads need.
    pub fn helpers(&self, live: &LiveTarget, needs: &BTreeMap<usize, Need>) -> BTreeMap<usize, Helper> {
        // The thread that waits does nothing else.
        let has_others = live.tasks.numbers().map_or(true, |tids| tids.len() > 1);
        let counts = |party: &&Party| has_others || party.pid != live.pid;
        let helper = |need: &Need| {
            let mut parties = need.by.iter().chain(&need.also).filter(counts);
            let party = parties.next().filter(|party| party.pid != live.pid)?;
            let is_only = parties.all(|other| other.pid == party.pid) && !need.others.may_be_many();
            is_only.then(|| Some(Helper { party: party.clone(), state: state_of(party.pid)? }))?
        };
        needs.iter().filter_map(|(&at, need)| Some((at, helper(need)?))).collect()
    }

    /// The only other process that has locks, by `fcntl`, on files which a process has open: for one that waits for
    /// such a lock without a call for it.
    pub fn owner_of_files(&self, live: &LiveTarget) -> Option<Helper> {
        let inode = |number: u32| {
            let is_file = live.thread.link(&format!("fd/{number}")).is_ok_and(|link| link.starts_with(b"/"));
            inode_of(&live.thread.read(&format!("fdinfo/{number}")).ok().filter(|_| is_file)?)
        };
        let numbers = live.thread.folder("fd").and_then(|folder| folder.numbers()).ok()?;
        let inodes: BTreeSet<u64> = numbers.into_iter().filter_map(inode).collect();
        let locks = self.locks.get_or_init(FileLocks::search);
        let owners = locks.owners(&inodes, live.pid);
        let pid = owners.first().copied().filter(|_| owners.len() == 1)?;
        helper_of(pid)
    }

    /// Who has the lease on a file that a thread opens. The wait ends after a time: the kernel takes the lease.
    pub fn owner_of_lease(&self, live: &LiveTarget, task: &Task) -> Option<Helper> {
        let function = live.tasks.read(&format!("{}/wchan", task.tid)).ok()?;
        let table = || Folder::open("/proc").and_then(|processes| processes.read("locks")).ok();
        let table = (&*function == b"__break_lease").then(table)??;
        let pid = lease_owner(&String::from_utf8_lossy(&table), live.pid)?;
        helper_of(pid)
    }

    /// What these threads of a process need from other processes, by their indices.
    pub fn needs(&self, live: &LiveTarget, tasks: &[Task]) -> BTreeMap<usize, Need> {
        let Some(of) = Of::new(live) else { return BTreeMap::new() };
        let needs = tasks.iter().enumerate().filter_map(|(at, task)| Some((at, self.need(&of, task)?)));
        needs.collect()
    }

    /// The same of threads that were examined: what they wait for in memory that processes share is known too.
    pub fn needs_of(&self, live: &LiveTarget, seen: &Standings) -> BTreeMap<usize, Need> {
        let mut needs = self.needs(live, &seen.target.tasks);
        needs.extend(Machine::shared_locks(seen));
        let Some(of) = Of::new(live) else { return needs };
        for (at, thread) in seen.threads.iter().enumerate() {
            let wait = thread.wait.as_ref().filter(|wait| !wait.is_timed && !needs.contains_key(&at));
            let need = wait.and_then(|wait| self.shared_object(&of, &seen.target, wait));
            needs.extend(need.map(|need| (at, need)));
        }
        needs
    }

    /// The processes that have the memory at an address of a process; `None` if processes cannot share it, or if these
    /// are too many to follow.
    pub fn sharers(&self, pid: u32, address: u64) -> Option<Vec<u32>> {
        let file = memory::shared_at(pid, address)?.file?;
        let sharers = self.memory().of(file);
        (sharers.len() <= PARTIES_MAX).then(|| sharers.to_vec())
    }

    /// A thread waits for an object in memory that processes share, and the object does not say who has it. Each
    /// process that has the memory may end the wait.
    fn shared_object(&self, of: &Of<'_>, target: &Target, wait: &FutexWait) -> Option<Need> {
        let object = nameless_object(wait).filter(|_| !wait.is_private)?;
        let mapping = target.mapping_at(wait.address()).filter(|mapping| mapping.is_shared)?;
        let memory = self.memory();
        let sharers = memory.of(mapping.file?);
        if sharers.is_empty() || sharers.len() > PARTIES_MAX {
            return None;
        }
        let by: Vec<Party> = sharers.iter().map(|&pid| self.party(pid, None)).collect();
        let (hidden, strangers) = self.relatives(&memory.hidden, of, &by);
        let by_path = has_name(mapping);
        let others = Others { hidden, strangers, by_path, ..Others::default() };
        let what = Needed::SharedObject { address: wait.address(), object };
        Some(of.interrupted(Need { what, by, also: Vec::new(), others }))
    }

    fn memory(&self) -> &SharedMemory {
        self.memory.get_or_init(SharedMemory::search)
    }

    /// What threads that were examined need to be released in memory that processes share.
    pub fn shared_locks(seen: &Standings) -> BTreeMap<usize, Need> {
        let shared = seen.threads.iter().enumerate().filter_map(|(at, thread)| {
            let wait = thread.wait.as_ref().filter(|wait| !wait.is_timed)?;
            Some((at, shared_lock(&seen.target, wait)?))
        });
        shared.collect()
    }

    /// Whether a thread in this call may need another process.
    pub fn may_need(call: Call) -> bool {
        let is_kind = matches!(
            call.kind,
            CallKind::WaitChild
                | CallKind::Spawn
                | CallKind::Epoll
                | CallKind::Poll
                | CallKind::Select
                | CallKind::FileLock
                | CallKind::File
                | CallKind::Read
                | CallKind::Write
                | CallKind::Receive
                | CallKind::Send
                | CallKind::Semaphore
                | CallKind::MessageQueue
        );
        call.is_timed() != Some(true) && (is_kind || call.futex().is_some())
    }

    fn need(&self, of: &Of<'_>, task: &Task) -> Option<Need> {
        let Some(Sleep::Call(call)) = task.sleep else { return None };
        if matches!(task.state, RunState::Sleeping | RunState::DiskSleep)
            && let Some(need) = self.answer(of, task, call)
        {
            return Some(need);
        }
        if task.state != RunState::Sleeping || call.is_timed() == Some(true) {
            return None;
        }
        let need = match call.kind {
            CallKind::WaitChild => self.with_traced(of, call, of.child(call)),
            CallKind::Spawn => of.child(call),
            CallKind::Semaphore => self.system_semaphore(of, call),
            CallKind::MessageQueue => self.message_queue(of, call),
            CallKind::Epoll | CallKind::Poll | CallKind::Select => self.one_of_many(of, call),
            CallKind::FileLock => self.file_lock(of, call),
            CallKind::File => of.fifo(task, call),
            CallKind::Read | CallKind::Write | CallKind::Receive | CallKind::Send => {
                self.transfer(of, task, call)
            }
            _ => None,
        }?;
        Some(of.interrupted(need))
    }

    /// A thread reads or writes, and sleeps. Where a process that can help has an `io_uring`, the kernel may do it for
    /// the process at any time. Nothing shows that before, so there is no need then.
    fn transfer(&self, of: &Of<'_>, task: &Task, call: Call) -> Option<Need> {
        let need = self.transfer_of(of, task, call)?;
        let has_ring = |party: &Party| {
            let process = Folder::open(&format!("/proc/{}", party.pid));
            process.is_ok_and(|process| many::may_have(&process, &|link| link == b"anon_inode:[io_uring]"))
        };
        (self.is_brief || !need.by.iter().any(has_ring)).then_some(need)
    }

    fn transfer_of(&self, of: &Of<'_>, task: &Task, call: Call) -> Option<Need> {
        // Those that move data between two descriptors may wait for either.
        if matches!(call.name?, "splice" | "tee" | "vmsplice" | "sendfile" | "recvmmsg" | "sendmmsg") {
            return None;
        }
        let reads = matches!(call.kind, CallKind::Read | CallKind::Receive);
        let link = of.live.thread.link(&format!("fd/{}", call.descriptor()?)).ok()?;
        match key_of(&link) {
            Some((Kind::Pipe, inode)) => {
                let by = self.ends().of_pipe(inode, reads)?;
                let what = if reads { Needed::DataInPipe } else { Needed::RoomInPipe };
                Some(self.by_holders(of, what, by))
            }
            Some((Kind::Socket, inode)) => {
                let mut need = self.socket(of, inode, reads)?;
                // A first look leaves the socket alone: it is asked once it seems to matter.
                if !self.is_brief {
                    let has_limit = limits::has_limit(of.live.pid, call.descriptor()?, reads);
                    if has_limit == Some(true) {
                        return None;
                    }
                    need.others.limit = has_limit.is_none();
                }
                Some(need)
            }
            None if link == EVENTFD && reads => {
                let information = of.live.thread.read(&format!("fdinfo/{}", call.descriptor()?)).ok()?;
                let writers = self.writers_of_event(event_number(&information)?)?;
                Some(self.by_holders(of, Needed::Event, writers.to_vec()))
            }
            None if link.starts_with(b"/") => self.named_fifo(of, task, &link, reads),
            Some((Kind::Event, _)) | None => None,
        }
    }

    /// A thread reads from a socket, or writes to it, and sleeps. A process that has this end may shut it down, so it
    /// counts too.
    fn socket(&self, of: &Of<'_>, inode: u64, reads: bool) -> Option<Need> {
        let peer = self.peer(of, inode, reads)?;
        let ends = self.ends();
        if ends.of_socket(peer).len() + ends.of_socket(inode).len() > PARTIES_MAX {
            return None;
        }
        let what = if reads { Needed::DataInSocket } else { Needed::RoomInSocket };
        let mut need = self.by_holders(of, what, ends.of_socket(peer).to_vec());
        need.also = self.parties(ends.of_socket(inode));
        need.also.retain(|party| party.pid != of.live.pid);
        Some(need)
    }

    /// The inode of the other end of a connection of this machine.
    fn peer(&self, of: &Of<'_>, inode: u64, reads: bool) -> Option<u64> {
        let namespace = of.live.thread.link("ns/net").ok()?;
        let is_own =
            Folder::open("/proc/thread-self").and_then(|own| own.link("ns/net")) == Ok(namespace.clone());
        let sockets = std::rc::Rc::clone(
            self.sockets
                .borrow_mut()
                .entry(namespace)
                .or_insert_with(|| std::rc::Rc::new(Sockets::of(&of.live.thread))),
        );
        if let Some(peer) = sockets.other_end(inode, reads) {
            return Some(peer);
        }
        // The kernel tells the other ends of the unix sockets in this reader's namespace alone.
        let unix = self.unix.get_or_init(SockDiag::new);
        is_own.then(|| unix.unix_peer_of_connection(inode)).flatten()
    }

    /// A thread reads from a FIFO with a path, or writes to it, and sleeps.
    fn named_fifo(&self, of: &Of<'_>, task: &Task, link: &[u8], reads: bool) -> Option<Need> {
        let function = of.live.tasks.read(&format!("{}/wchan", task.tid)).ok()?;
        if !matches!(
            &*function,
            b"pipe_read"
                | b"pipe_write"
                | b"fifo_pipe_read"
                | b"fifo_pipe_write"
                | b"anon_pipe_read"
                | b"anon_pipe_write"
                | b"pipe_wait"
                | b"pipe_wait_readable"
                | b"pipe_wait_writable"
        ) {
            return None;
        }
        let by = self.ends().of_path(link, reads)?;
        let what = if reads { Needed::DataInPipe } else { Needed::RoomInPipe };
        let mut need = self.by_holders(of, what, by);
        need.others.by_path = true;
        Some(need)
    }

    /// A thread waits for the program behind a FUSE file system.
    fn answer(&self, of: &Of<'_>, task: &Task, call: Call) -> Option<Need> {
        let is_of_file = matches!(
            call.kind,
            CallKind::File | CallKind::Exec | CallKind::Read | CallKind::Write | CallKind::Sync
        );
        let function = of.live.tasks.read(&format!("{}/wchan", task.tid)).ok().filter(|_| is_of_file)?;
        if !matches!(&*function, b"request_wait_answer" | b"fuse_get_req") {
            return None;
        }
        let path = match call.descriptor() {
            Some(number) => {
                PathBuf::from(OsString::from_vec(of.live.thread.link(&format!("fd/{number}")).ok()?))
            }
            None => {
                let memory = of.live.memory(&of.live.mappings());
                super::kernel::path(&of.live.thread, call, &memory)?
            }
        };
        let mount = super::kernel::mount_of(&of.live.thread.read("mountinfo").ok()?, &path)?;
        let connection = u64::from(mount.connection?);
        let all = self.ends().of_path(b"/dev/fuse", true)?;
        let servers: Vec<Holder> = match all.as_slice() {
            &[only] if ends::fuse_connection(only).is_none() => vec![only],
            all => all
                .iter()
                .copied()
                .filter(|&server| ends::fuse_connection(server) == Some(connection))
                .collect(),
        };
        let need = self.by_holders(of, Needed::Answer(mount.point), servers);
        (!need.by.is_empty()).then_some(need)
    }

    /// A thread that waits for a child learns of the processes that it traces too.
    fn with_traced(&self, of: &Of<'_>, call: Call, need: Option<Need>) -> Option<Need> {
        // A first look leaves out who else may help.
        if self.is_brief {
            return need;
        }
        let which = call.child()?;
        let traced = self.traced.get_or_init(traced_processes);
        let own = of.live.tasks.numbers().ok()?;
        let mut all = need.map_or_else(Vec::new, |need| need.by);
        for &pid in own.iter().filter_map(|tid| traced.get(tid)).flatten() {
            let is_wanted = match which {
                Child::Process(wanted) => wanted == pid,
                Child::Descriptor(_) => false,
                Child::Any | Child::Group(_) | Child::OwnGroup => true,
            };
            if is_wanted && all.iter().all(|party| party.pid != pid) {
                all.push(self.party(pid, None));
            }
        }
        (!all.is_empty()).then(|| Need {
            what: Needed::EndOfChild,
            by: all,
            also: Vec::new(),
            others: Others::default(),
        })
    }

    /// A thread waits for a semaphore of System V. Who changed it last may have what is missing.
    fn system_semaphore(&self, of: &Of<'_>, call: Call) -> Option<Need> {
        if !of.has_same_ipc() {
            return None;
        }
        let [set, operations, count, ..] = call.arguments;
        let memory = of.live.memory(&of.live.mappings());
        let awaited = system_v::awaited(set, operations, count, &memory)?;
        let what = Needed::SystemSemaphore { set: u32::try_from(set).ok()?, number: awaited.number };
        self.by_last_user(of, what, awaited.changed_by?)
    }

    /// A thread sends to a message queue that is full, or receives from an empty one.
    fn message_queue(&self, of: &Of<'_>, call: Call) -> Option<Need> {
        let receives = matches!(call.name?, "msgrcv" | "mq_timedreceive");
        let what = if receives { Needed::DataInQueue } else { Needed::RoomInQueue };
        let Some(number) = call.descriptor() else {
            let user = system_v::last_user(call.arguments[0], !receives).filter(|_| of.has_same_ipc())?;
            let queue = MessageQueue::SystemV(u32::try_from(call.arguments[0]).ok()?);
            return self.by_last_user(of, what(queue), user);
        };
        let link = of.live.thread.link(&format!("fd/{number}")).ok()?;
        let by = self.ends().of_path(&link, receives)?;
        let queue = MessageQueue::Posix(String::from_utf8_lossy(&link).into_owned());
        let mut need = self.by_holders(of, what(queue), by);
        need.others.by_path = true;
        Some(need)
    }

    /// What the last user of an object alone is known to bring, though anybody may.
    fn by_last_user(&self, of: &Of<'_>, what: Needed, user: u32) -> Option<Need> {
        let is_other = user != of.live.pid && state_of(user).is_some();
        let others = Others { by_path: true, ..Others::default() };
        is_other.then(|| Need { what, by: vec![self.party(user, None)], also: Vec::new(), others })
    }

    fn file_lock(&self, of: &Of<'_>, call: Call) -> Option<Need> {
        let number = call.descriptor()?;
        let inode = inode_of(&of.live.thread.read(&format!("fdinfo/{number}")).ok()?)?;
        let link = of.live.thread.link(&format!("fd/{number}")).ok()?;
        let is_flock = call.name == Some("flock");
        let locks = self.locks.get_or_init(FileLocks::search);
        let (kind, holders) = locks.blockers(of.live.pid, inode, is_flock)?;
        let path = PathBuf::from(OsString::from_vec(link));
        let by = self.parties(&holders);
        // The owner of such a lock alone can release it, and the table names him.
        let (hidden, strangers) = match kind {
            FileLockKind::Posix => (0, false),
            _ => self.relatives(&locks.hidden, of, &by),
        };
        let others = Others { hidden, strangers, ..Others::default() };
        Some(Need { what: Needed::FileLock(path, kind), by, also: Vec::new(), others })
    }

    /// How many relatives of these processes were not searched, and whether others were not.
    fn relatives(&self, hidden: &Hidden, of: &Of<'_>, by: &[Party]) -> (usize, bool) {
        if self.is_brief { (0, false) } else { hidden.relatives_of(&of.with(by)) }
    }

    /// Each process once, with its lowest descriptor.
    fn parties(&self, holders: &[Holder]) -> Vec<Party> {
        let mut by: BTreeMap<u32, u32> = BTreeMap::new();
        for holder in holders {
            let lowest = by.entry(holder.pid).or_insert(holder.descriptor);
            *lowest = holder.descriptor.min(*lowest);
        }
        by.into_iter().map(|(pid, descriptor)| self.party(pid, Some(descriptor))).collect()
    }

    /// A process, with its name unless nobody asks for that.
    fn party(&self, pid: u32, descriptor: Option<u32>) -> Party {
        match self.is_brief {
            true => Party { pid, name: String::new(), descriptor, tid: None },
            false => party(pid, descriptor),
        }
    }

    fn ends(&self) -> &Ends {
        self.ends.get_or_init(Ends::search)
    }

    fn by_holders(&self, of: &Of<'_>, what: Needed, holders: Vec<Holder>) -> Need {
        let by = self.parties(&holders);
        let (hidden, strangers) = self.relatives(&self.ends().hidden, of, &by);
        let others = Others { hidden, strangers, container: is_in_container(), ..Others::default() };
        Need { what, by, also: Vec::new(), others }
    }
}

impl<'a> Of<'a> {
    fn new(live: &'a LiveTarget) -> Option<Of<'a>> {
        Some(Of { live, status: live.thread.status().ok()?, children: OnceCell::new() })
    }

    /// Its children; `None` if not all are known.
    fn children(&self) -> Option<&[u32]> {
        self.children.get_or_init(|| self.live.children()).as_deref()
    }

    /// Whether its objects of System V are those that this reader sees.
    fn has_same_ipc(&self) -> bool {
        let own = Folder::open("/proc/thread-self").and_then(|own| own.link("ns/ipc"));
        own.is_ok_and(|own| self.live.thread.link("ns/ipc") == Ok(own))
    }

    /// A need of a thread that a handler of a signal may interrupt, or bring itself.
    fn interrupted(&self, mut need: Need) -> Need {
        need.others.timer = self.status.handles_timers();
        need.others.interrupt = self.status.handles_interrupt();
        need.others.child = self.hears_of_children(&need);
        need.others.handler = self.status.handles_others() || need.others.child;
        need
    }

    /// Whether it handles the signal of a child that may end by itself: another one than those for which a thread
    /// waits, and than those that have ended. If its children are not known, it may have such a child.
    fn hears_of_children(&self, need: &Need) -> bool {
        let is_awaited = |pid: u32| need.by.iter().chain(&need.also).any(|party| party.pid == pid);
        let is_silent = |&pid: &u32| is_awaited(pid) || has_ended(pid) == Some(true);
        self.status.handles_children() && !self.children().is_some_and(|all| all.iter().all(is_silent))
    }

    /// The process, and those that can bring something.
    fn with(&self, by: &[Party]) -> BTreeSet<u32> {
        by.iter().map(|party| party.pid).chain([self.live.pid]).collect()
    }

    /// A thread waits for a child, or for one of several.
    fn child(&self, call: Call) -> Option<Need> {
        let which = match call.kind {
            CallKind::Spawn => Child::Any,
            _ => call.child()?,
        };
        let depth = self.status.ids.len().checked_sub(1)?;
        // One that is not known may end.
        let all = self.children().filter(|all| all.len() <= PARTIES_MAX)?;
        let mut children = Vec::new();
        for &pid in all {
            // The parent is about to learn of it.
            if has_ended(pid)? {
                return None;
            }
            children.push((pid, Folder::open(&format!("/proc/{pid}")).ok()?.status().ok()?));
        }
        let is_one = |status: &Status, wanted: u32| status.ids.get(depth) == Some(&wanted);
        match which {
            Child::Process(wanted) => children.retain(|(_, status)| is_one(status, wanted)),
            Child::Descriptor(number) => {
                let kind = self.live.descriptors().get(number)?.kind;
                let crate::target::DescriptorKind::Process { pid } = kind else { return None };
                children.retain(|&(child, _)| Some(child) == pid);
            }
            // These are some of them. If none of all can end, none of these can.
            Child::Any | Child::Group(_) | Child::OwnGroup => {}
        }
        let by: Vec<Party> = children.into_iter().map(|(pid, _)| party(pid, None)).collect();
        (!by.is_empty()).then_some(Need {
            what: Needed::EndOfChild,
            by,
            also: Vec::new(),
            others: Others::default(),
        })
    }

    /// A thread opens a FIFO, and waits for somebody who opens the other end. Nobody has it. Those may do so that are
    /// forks of the same program, or of its parent, and open a FIFO themselves: who else may is not known.
    fn fifo(&self, task: &Task, call: Call) -> Option<Need> {
        let function = self.live.tasks.read(&format!("{}/wchan", task.tid)).ok()?;
        if &*function != b"wait_for_partner" {
            return None;
        }
        let memory = self.live.memory(&self.live.mappings());
        let path = super::kernel::path(&self.live.thread, call, &memory)?;
        let own = text::stat(&self.live.thread.read("stat").ok()?)?;
        let own_line = self.live.command_line();
        let opens = |pid: u32| {
            let folder = Folder::open(&format!("/proc/{pid}")).ok()?;
            let function = folder.read(&format!("task/{pid}/wchan")).ok()?;
            let live = LiveTarget::open_here(pid).ok()?;
            (&*function == b"wait_for_partner" && live.command_line() == own_line).then(|| party(pid, None))
        };
        let children = self.children().unwrap_or_default().iter().copied();
        let siblings = LiveTarget::open_here(own.parent).ok().and_then(|parent| parent.children());
        let siblings = siblings.into_iter().flatten().filter(|&pid| pid != self.live.pid);
        let relatives = [own.parent].into_iter().chain(children).chain(siblings).take(PARTIES_MAX);
        let by: Vec<Party> = relatives.filter_map(opens).collect();
        let others = Others { by_path: true, ..Others::default() };
        (!by.is_empty()).then_some(Need { what: Needed::OpenFifo(path), by, also: Vec::new(), others })
    }
}

/// Whether all threads of a process have ended; `None` if that is not known.
fn has_ended(pid: u32) -> Option<bool> {
    match resources_of(pid) {
        Ok(_) => Some(false),
        Err(Failure::Gone) => Some(true),
        Err(_) => None,
    }
}

/// The eventfds that a process alone has, by their numbers. It takes a search through all processes.
pub(super) fn own_events(pid: u32) -> HashSet<u64> {
    Ends::search().own_events(pid)
}

/// What the kernel calls an eventfd.
const EVENTFD: &[u8] = b"anon_inode:[eventfd]";

/// What the kernel calls shared memory that has no file: forks have it, and nobody else.
const FORKED_MEMORY: &str = "/dev/zero";

/// Whether a process that does not have memory can find it by a name.
fn has_name(memory: &Mapping) -> bool {
    let Some(path) = memory.path.as_deref() else { return false };
    let bytes = path.as_os_str().as_encoded_bytes();
    // The kernel calls memory of System V so, with its key, and removed. Without a key it has no name.
    match bytes.strip_prefix(b"/SYSV") {
        Some(key) => key.iter().any(|&digit| digit != b'0'),
        None => path.is_absolute() && !memory.is_deleted && !bytes.starts_with(b"/memfd:"),
    }
}

/// What a thread waits for, if that is an object that names nobody; `None` too if the wait is about to end.
fn nameless_object(wait: &FutexWait) -> Option<SharedObject> {
    let names_nobody = match wait.owner {
        Owner::Tid(_) | Owner::Unknown(UnknownOwner::Changing | UnknownOwner::NotHere(_)) => false,
        Owner::Nobody | Owner::Unknown(_) => true,
    };
    let object = match wait.kind {
        WaitKind::Semaphore { value: 0 } => SharedObject::Semaphore,
        WaitKind::Condition { .. } => SharedObject::Condition,
        WaitKind::Barrier { .. } => SharedObject::Barrier,
        WaitKind::ReadWriteLock { .. } => SharedObject::ReadWriteLock,
        WaitKind::Opaque | WaitKind::Unknown => SharedObject::Word,
        _ => return None,
    };
    names_nobody.then_some(object)
}

/// Whether there are processes that this reader does not see, because it is in a PID namespace of its own.
fn is_in_container() -> bool {
    /// What the kernel calls the first PID namespace: `PROC_PID_INIT_INO`.
    const FIRST: &[u8] = b"pid:[4026531836]";
    let own = Folder::open("/proc/thread-self").and_then(|own| own.link("ns/pid"));
    own.is_ok_and(|own| own != FIRST)
}

/// Who has the lock in shared memory that a thread waits for, by the lock's memory: a thread of another process. It
/// counts if its process has the same memory.
fn shared_lock(target: &Target, wait: &FutexWait) -> Option<Need> {
    let Owner::Unknown(UnknownOwner::NotHere(tid)) = wait.owner else { return None };
    // The memory has ids of the process's own PID namespace.
    let mapping = target.mapping_at(wait.address()).filter(|mapping| mapping.is_shared)?;
    let file = mapping.file.filter(|_| target.own_pid == target.pid)?;
    let Some(owner) = process_of(tid)? else {
        // A robust one is handed on by the kernel.
        let is_robust = matches!(wait.kind, WaitKind::Mutex { is_robust: true, .. });
        let of_forks = mapping.is_deleted && mapping.path.as_deref() == Some(Path::new(FORKED_MEMORY));
        let what = Needed::LostLock { address: wait.address(), owner: tid, of_forks };
        let (by, also, others) = (Vec::new(), Vec::new(), Others::default());
        return (!is_robust).then_some(Need { what, by, also, others });
    };
    let live = LiveTarget::open_here(owner).ok()?;
    let has_it = live.mappings().iter().any(|other| other.is_shared && other.file == Some(file));
    let by = vec![Party { tid: Some(tid), ..party(owner, None) }];
    has_it.then_some(Need {
        what: Needed::SharedLock(wait.address()),
        by,
        also: Vec::new(),
        others: Others::default(),
    })
}

/// What the threads of a process do; `None` if it has ended.
fn state_of(pid: u32) -> Option<HelperState> {
    let tasks = Folder::open(&format!("/proc/{pid}/task")).ok()?;
    let states = tasks.numbers().ok()?.into_iter().filter_map(|tid| {
        let stat = text::stat(&tasks.read(&format!("{tid}/stat")).ok()?)?;
        (!stat.has_ended()).then_some(RunState::from(stat.state))
    });
    let states: Vec<RunState> = states.collect();
    let is_stopped = |state: &RunState| matches!(state, RunState::Stopped | RunState::Traced);
    match () {
        () if states.is_empty() => None,
        () if states.contains(&RunState::Running) => Some(HelperState::Runs),
        () if states.iter().all(is_stopped) => Some(HelperState::Stopped),
        () if waits_for_itself(pid) == Some(true) => Some(HelperState::WaitsForItself),
        () => Some(HelperState::Sleeps),
    }
}

/// See [`HelperState::WaitsForItself`].
fn waits_for_itself(pid: u32) -> Option<bool> {
    let live = LiveTarget::open_here(pid).ok()?;
    let is_inside = |task: &Task| match task.sleep {
        Some(Sleep::Call(call)) => call.futex().is_some_and(|futex| futex.is_private && !futex.is_timed),
        _ => matches!(task.state, RunState::Zombie | RunState::Dead),
    };
    Some(live.thread.status().ok()?.handles_nothing() && live.tasks().ok()?.iter().all(is_inside))
}

/// Which processes each thread of this machine traces, by the tracers' ids.
fn traced_processes() -> HashMap<u32, Vec<u32>> {
    let mut traced: HashMap<u32, Vec<u32>> = HashMap::new();
    for pid in super::processes() {
        let tracer = Folder::open(&format!("/proc/{pid}")).and_then(|folder| folder.status());
        if let Some(tracer) = tracer.ok().map(|status| status.tracer).filter(|&tracer| tracer != 0) {
            traced.entry(tracer).or_default().push(pid);
        }
    }
    traced
}

/// The process of a thread; `Some(None)` if the thread has ended, and `None` if nothing is known of it. A first thread
/// that has ended keeps its id until its parent has waited for the process.
fn process_of(tid: u32) -> Option<Option<u32>> {
    let read = || -> Result<Option<u32>, Failure> {
        let thread = Folder::open(&format!("/proc/{tid}/task/{tid}"))?;
        let has_ended = text::stat(&thread.read("stat")?).is_some_and(|stat| stat.has_ended());
        Ok(if has_ended { None } else { Some(thread.status()?.tgid) })
    };
    match read() {
        Ok(process) => Some(process),
        Err(Failure::Gone) => Some(None),
        Err(_) => None,
    }
}

/// A process that can end a wait; `None` if it has ended.
fn helper_of(pid: u32) -> Option<Helper> {
    Some(Helper { party: party(pid, None), state: state_of(pid)? })
}

fn party(pid: u32, descriptor: Option<u32>) -> Party {
    let name = crate::process::thread_name(pid, pid).unwrap_or_default();
    Party { pid, name, descriptor, tid: None }
}
