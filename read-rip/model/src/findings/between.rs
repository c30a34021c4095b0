//! Deadlocks between processes.
//!
//! # Question
//!
//! Which threads of several processes wait for one another, so that none of them ever goes on?
//!
//! # Method
//!
//! The kernel says what a thread needs from other processes, and who can bring it: who has the other end of a pipe or a
//! socket, whose end a parent waits for, who has a lock on a file. Any of these is enough, so a cycle is no deadlock
//! yet: a deadlock is a set of threads where everybody who could end one of their waits is in the set too, and where no
//! thread of a process that could help is outside (see `locks::knots`). None of them ran between two readings, and who
//! can help was read in between.
//!
//! # Blind spots
//!
//! A thread that waits for one of several descriptors counts as one that may go on, unless it does so in `poll` or
//! `epoll` and each of them has an other end on this machine: then the finding is suspected. So does one with a time
//! limit. A descriptor that is on its way in a message, or that io_uring has registered, is not seen. A signal
//! may interrupt a wait: if a process handles those that timers send, the finding is suspected. A handler may also
//! write what others wait for. Servers that have nothing to do look so: their workers wait for data, and they for a
//! signal. So there is no finding if all wait for data or for children, and a process handles a signal that somebody
//! sends. If that is `SIGINT` alone, as in each program in Python, the finding is suspected. A semaphore, a condition
//! variable or a barrier in shared memory does not say who has to end a wait: that all who have the memory wait is
//! suspected, and is no finding if others can find the memory by a name. A semaphore or a message queue of System V
//! says who used it last: that this process waits too, for what the first one used last, is suspected.
//!
//! # Example output
//!
//! ```text
//! proven deadlock: 2 processes wait for one another
//!     build.py[4711] waits for the end of its child generate[4712], at wait build.py:7, for at least 41 s
//!     generate[4712] writes to a pipe that is full, at main generate.c:12; build.py[4711] (descriptor 3) alone can
//!         read from it
//! ```

use std::collections::HashMap;

use read_rip_evidence::target::{MessageQueue, Need, Needed, Others, Party, SharedObject};
use serde::Serialize;

use super::words::{and_more, lasting};
use super::{
    About, Advice, Analysis, Basis, Confidence, Doubt, Finding, Kind, Paragraph, Premise, View, Words,
};
use crate::locations::LocationId;
use crate::locks::{Knot, Link, LockId, ThreadId};
use crate::units::{agree, counted};

/// See the file's description.
pub(super) struct BetweenProcesses;

/// At most this many threads are listed.
const LISTED_MAX: usize = 16;
/// At most this many processes are named that can bring something.
const NAMED_MAX: usize = 4;

/// Threads of several processes that wait for one another.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessCycle {
    /// How many processes they are of.
    pub processes: usize,
    /// How many threads.
    pub count: usize,
    /// The threads, each followed by one for which it waits, as far as that goes.
    pub waits: Vec<ProcessWait>,
    /// Threads that can go on only after one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub behind: Vec<ThreadId>,
}

/// A thread of such a cycle.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessWait {
    /// The thread.
    pub thread: ThreadId,
    /// Its process.
    pub pid: u32,
    /// The name of its program.
    pub program: String,
    /// What it waits for.
    pub waits_for: WaitsFor,
    /// The file, if it has a path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The lock for which it waits, if that is one in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<LockId>,
    /// The processes that can end the wait.
    pub by: Vec<u32>,
    /// Where it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationId>,
    /// For how long it has not run, ns, at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
    /// It waits for the end of a thread of its process.
    #[serde(skip)]
    is_join: bool,
    #[serde(skip)]
    link: Link,
}

/// What a thread waits for that needs another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WaitsFor {
    /// Room in a pipe that is full.
    RoomInPipe,
    /// Data in a pipe that is empty.
    DataInPipe,
    /// Room in a socket that is full.
    RoomInSocket,
    /// Data in a socket.
    DataInSocket,
    /// An eventfd that is 0.
    Event,
    /// One of several descriptors.
    OneOfMany,
    /// The program behind a file system.
    Answer,
    /// Somebody who opens the other end of a FIFO.
    OtherEndOfFifo,
    /// The end of a child process.
    EndOfChild,
    /// A lock on a file.
    FileLock,
    /// A lock in memory that processes share.
    SharedLock,
    /// A semaphore, a condition variable, a barrier or the like in memory that processes share. It names nobody.
    SharedObject,
    /// A semaphore of System V.
    SystemSemaphore,
    /// A message in a queue.
    DataInQueue,
    /// Room in a message queue that is full.
    RoomInQueue,
    /// Another thread of its process.
    OwnProcess,
}

impl WaitsFor {
    pub(super) fn of(need: Option<&Need>) -> WaitsFor {
        match need.map(|need| &need.what) {
            Some(Needed::RoomInPipe) => WaitsFor::RoomInPipe,
            Some(Needed::DataInPipe) => WaitsFor::DataInPipe,
            Some(Needed::RoomInSocket) => WaitsFor::RoomInSocket,
            Some(Needed::DataInSocket) => WaitsFor::DataInSocket,
            Some(Needed::Event) => WaitsFor::Event,
            Some(Needed::OneOfMany(_)) => WaitsFor::OneOfMany,
            Some(Needed::Answer(_)) => WaitsFor::Answer,
            Some(Needed::OpenFifo(_)) => WaitsFor::OtherEndOfFifo,
            Some(Needed::EndOfChild) => WaitsFor::EndOfChild,
            Some(Needed::FileLock(..)) => WaitsFor::FileLock,
            Some(Needed::SharedLock(_) | Needed::LostLock { .. }) => WaitsFor::SharedLock,
            Some(Needed::SharedObject { .. }) => WaitsFor::SharedObject,
            Some(Needed::SystemSemaphore { .. }) => WaitsFor::SystemSemaphore,
            Some(Needed::DataInQueue(_)) => WaitsFor::DataInQueue,
            Some(Needed::RoomInQueue(_)) => WaitsFor::RoomInQueue,
            None => WaitsFor::OwnProcess,
        }
    }

    /// Whether somebody has to write to a pipe or a socket.
    fn is_for_data(&self) -> bool {
        matches!(
            self,
            WaitsFor::DataInPipe
                | WaitsFor::DataInSocket
                | WaitsFor::DataInQueue
                | WaitsFor::OneOfMany
                | WaitsFor::Event
        )
    }

    /// Whether somebody has to read from a pipe, a socket or a message queue.
    fn is_for_room(&self) -> bool {
        matches!(self, WaitsFor::RoomInPipe | WaitsFor::RoomInSocket | WaitsFor::RoomInQueue)
    }

    /// Whether anybody with the rights may end the wait, and who used the object last is a guess.
    fn is_of_last_user(&self) -> bool {
        matches!(self, WaitsFor::SystemSemaphore | WaitsFor::DataInQueue | WaitsFor::RoomInQueue)
    }
}

impl Analysis for BetweenProcesses {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let certain = |knot: &&Knot| knot.sleepers.is_empty() && !may_idle(knot);
        for finding in view.now.knots.iter().filter(certain).map(|knot| finding(view, knot)) {
            found.retain(|known| !says_less(known, &finding));
            if !found.iter().any(|known| says_all(known, &finding)) {
                found.push(finding);
            }
        }
    }
}

/// Whether an earlier finding is a deadlock of some of the same threads, and less certain: the record of the locks
/// alone says less than the record with what the kernel and the memory say.
fn says_less(known: &Finding, finding: &Finding) -> bool {
    let is_among = |thread| finding.mentions.threads.contains(thread);
    known.kind == Kind::Deadlock
        && known.confidence < finding.confidence
        && known.mentions.threads.iter().all(is_among)
}

/// Whether an earlier finding is a deadlock of the same threads, and as certain: the record has the cycle too, with the
/// places at which the locks were acquired.
fn says_all(known: &Finding, finding: &Finding) -> bool {
    let is_among = |thread| known.mentions.threads.contains(thread);
    known.kind == Kind::Deadlock
        && known.confidence >= finding.confidence
        && finding.mentions.threads.iter().all(is_among)
}

/// Whether a thread waits for somebody unknown of its process.
fn is_vague(link: &Link) -> bool {
    link.need.is_none() && link.owner.is_none()
}

/// Whether all may have nothing to do: they wait for data, and somebody unknown may write. That is a thread of one of
/// the processes that waits within it, a signal handler, or whoever opens a FIFO by its path.
fn may_idle(knot: &Knot) -> bool {
    let waits: Vec<WaitsFor> = waits_of(knot).collect();
    let is_open = waits.iter().any(WaitsFor::is_for_data) && (knot.others.handler || knot.others.by_path);
    let may_be_idle = |what: &WaitsFor| {
        let waits = [WaitsFor::EndOfChild, WaitsFor::OwnProcess, WaitsFor::SharedObject];
        what.is_for_data() || waits.contains(what)
    };
    let is_open = is_open || is_of_named_memory(knot) || is_loop_alone(knot);
    (is_open || knot.links.iter().any(is_vague)) && waits.iter().all(may_be_idle)
}

/// Whether all is a process with a loop that waits for events, and nobody else brings any, as a child that ends does:
/// what its tasks wait for, this reader does not see.
pub fn is_loop_alone(knot: &Knot) -> bool {
    let is_alone = !knot.others.child
        && knot.sleepers.is_empty()
        && knot.links.iter().all(|link| link.pid == knot.links[0].pid);
    is_alone && waits_of(knot).any(|what| what == WaitsFor::OneOfMany)
}

/// Whether a knot is a reason to say something: its threads do not seem to have nothing to do, or it is not judged.
pub fn tells(knot: &Knot) -> bool {
    !may_idle(knot) || is_of_named_memory(knot) || is_shut(knot)
}

/// Whether threads seem to have nothing to do, and nobody can bring anything, as far as this reader sees: only these
/// threads have what they wait for, and no signal handler may write. An idle server waits for somebody.
fn is_shut(knot: &Knot) -> bool {
    let others = knot.others;
    may_idle(knot)
        && !(others.handler || others.by_path || others.child || others.timer)
        && (knot.links.iter().any(is_vague) || is_loop_alone(knot))
}

/// Whether threads are stuck unless one that sleeps for a time again and again helps them.
pub(super) fn is_undecided(knot: &Knot) -> bool {
    !knot.sleepers.is_empty() && tells(knot)
}

/// Whether all threads of some processes wait for one another, and at least one waits for something in memory that
/// others find by a name: what serves whoever comes looks so.
pub(super) fn may_wait_for_others(view: &View<'_>) -> bool {
    decided(view).any(|knot| may_idle(knot) && is_of_named_memory(knot))
}

/// Whether all threads of some processes wait for data that nobody outside can bring.
pub(super) fn waits_for_nobody(view: &View<'_>) -> bool {
    decided(view).any(is_shut)
}

/// The knots that no thread can undo which sleeps for a time again and again.
fn decided<'v>(view: &'v View<'_>) -> impl Iterator<Item = &'v Knot> {
    view.now.knots.iter().filter(|knot| knot.sleepers.is_empty())
}

/// Whether all threads of the process wait for one another, or for events that it alone brings.
pub(super) fn is_left_to_itself(view: &View<'_>) -> bool {
    let is_own = |link: &Link| view.now.threads[link.thread].pid == view.now.pid;
    view.now.knots.iter().any(|knot| is_loop_alone(knot) && knot.links.iter().all(is_own))
}

/// Whether a thread waits for something in memory that others find by a name.
fn is_of_named_memory(knot: &Knot) -> bool {
    let needs = knot.links.iter().filter_map(|link| link.need.as_ref());
    needs.into_iter().any(|need| matches!(need.what, Needed::SharedObject { .. }) && need.others.by_path)
}

/// What its threads wait for.
fn waits_of(knot: &Knot) -> impl Iterator<Item = WaitsFor> {
    knot.links.iter().map(|link| WaitsFor::of(link.need.as_ref()))
}

fn finding(view: &View<'_>, knot: &Knot) -> Finding {
    let mut pids: Vec<u32> = knot.links.iter().map(|link| link.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    let waits: Vec<ProcessWait> =
        knot.links.iter().take(LISTED_MAX).map(|link| process_wait(view, link)).collect();
    let since = |wait: &ProcessWait| wait.for_ns;
    let for_ns = waits.iter().filter_map(since).min();
    let since_ns = view.now.now_ns.zip(for_ns).and_then(|(now, for_ns)| now.checked_sub(for_ns));
    let all: Vec<WaitsFor> = waits_of(knot).collect();
    let mut doubts = doubts(knot.others, &all);
    // A signal handler of the process may wake who waits for an unknown thread of it.
    doubts.extend(knot.links.iter().any(is_vague).then_some(Doubt::UnrecordedWaker));
    let confidence = if doubts.is_empty() { Confidence::Proven } else { Confidence::Suspected };
    let evidence =
        ProcessCycle { processes: pids.len(), count: knot.links.len(), waits, behind: knot.behind.clone() };
    let mut finding = Finding::new(Kind::Deadlock, confidence, evidence, advice(view, knot, &all));
    finding.doubts = doubts;
    finding.premises = premises(knot.others, &all);
    let rests_on_memory = |link: &Link| {
        waits_for_own_lock(view, link)
            || matches!(link.need.as_ref().map(|need| &need.what), Some(Needed::SharedLock(_)))
    };
    finding.premises.extend(knot.links.iter().any(rests_on_memory).then_some(Premise::MemoryIntact));
    finding.since_ns = since_ns;
    finding.threads_hurt = knot.links.len() + knot.behind.len();
    finding
}

/// What limits the confidence of what follows from such waits.
pub(super) fn doubts(others: Others, all: &[WaitsFor]) -> Vec<Doubt> {
    let may_write = all.iter().any(WaitsFor::is_for_data) && (others.handler || others.interrupt);
    let doubts = [
        (others.hidden > 0, Doubt::HiddenHolders),
        (others.by_path && !all.iter().any(WaitsFor::is_of_last_user), Doubt::OpenedByPath),
        (all.iter().any(WaitsFor::is_of_last_user), Doubt::LastUser),
        (all.contains(&WaitsFor::SharedObject), Doubt::NamesNobody),
        (all.contains(&WaitsFor::OneOfMany), Doubt::EventLoop),
        (all.contains(&WaitsFor::Event), Doubt::EventOfKernel),
        (others.timer, Doubt::TimerSignal),
        (others.limit, Doubt::SocketLimit),
        (may_write, Doubt::SignalHandler),
    ];
    doubts.into_iter().filter(|&(is_so, _)| is_so).map(|(_, doubt)| doubt).collect()
}

/// What is taken for granted of such waits.
pub(super) fn premises(others: Others, all: &[WaitsFor]) -> Vec<Premise> {
    let is_at_an_end = |what: &WaitsFor| what.is_for_data() || what.is_for_room();
    let premises = [
        (all.iter().any(is_at_an_end), Premise::NoEndOnItsWay),
        (others.strangers, Premise::NobodyHidden),
        (others.container, Premise::NobodyOutside),
    ];
    premises.into_iter().filter(|&(is_so, _)| is_so).map(|(_, premise)| premise).collect()
}

pub(super) fn process_wait(view: &View<'_>, link: &Link) -> ProcessWait {
    let seen = view.now.threads[link.thread].seen;
    let need = link.need.as_ref().map(|need| &need.what);
    let is_for_lock = match need {
        Some(what) => matches!(what, Needed::SharedLock(_)),
        None => link.owner.is_some(),
    };
    let wait = view.now.threads[link.thread].wait.as_ref().filter(|_| is_for_lock);
    let path = match need {
        Some(Needed::FileLock(path, _) | Needed::OpenFifo(path) | Needed::Answer(path)) => {
            Some(path.display().to_string())
        }
        _ => None,
    };
    ProcessWait {
        thread: link.thread,
        pid: link.pid,
        program: link.program.clone(),
        waits_for: WaitsFor::of(link.need.as_ref()),
        path,
        lock: wait.map(|wait| wait.lock),
        by: link.need.iter().flat_map(|need| &need.by).map(|party| party.pid).collect(),
        location: seen.and_then(|seen| seen.place),
        for_ns: seen.and_then(|seen| seen.asleep_ns).map(std::num::NonZeroU64::get).max(view.now.window_ns),
        is_join: joins(view, link),
        link: link.clone(),
    }
}

/// Whether a thread waits for a lock on a file that its process has, and nobody else.
fn has_lock_itself(link: &Link) -> bool {
    let need = link.need.as_ref().filter(|need| matches!(need.what, Needed::FileLock(..)));
    need.is_some_and(|need| need.by.iter().all(|party| party.pid == link.pid))
}

/// Whether a thread waits for a lock of its process, and not for the end of a thread.
fn waits_for_own_lock(view: &View<'_>, link: &Link) -> bool {
    link.owner.is_some() && !joins(view, link)
}

fn joins(view: &View<'_>, link: &Link) -> bool {
    view.now.threads[link.thread].join.is_some()
}

/// What to do, by what they wait for.
fn advice(view: &View<'_>, knot: &Knot, all: &[WaitsFor]) -> Advice {
    let has = |what: WaitsFor| all.contains(&what);
    let only = |these: &[WaitsFor]| all.iter().all(|what| these.contains(what));
    let (for_room, for_data) = (all.iter().any(WaitsFor::is_for_room), all.iter().any(WaitsFor::is_for_data));
    let is_one_process = knot.links.iter().all(|link| link.pid == knot.links[0].pid);
    let for_own_lock = knot.links.iter().any(|link| waits_for_own_lock(view, link));
    let for_end = knot.links.iter().any(|link| joins(view, link));
    let for_lock = has(WaitsFor::FileLock) || has(WaitsFor::SharedLock) || has(WaitsFor::SystemSemaphore);
    if has(WaitsFor::Answer) {
        Advice::EndServer
    } else if knot.links.iter().any(has_lock_itself) {
        Advice::OneDescriptor
    } else if has(WaitsFor::SharedObject) {
        Advice::FindPoster
    } else if for_lock && (has(WaitsFor::EndOfChild) || for_data) {
        Advice::ReleaseBeforeWait
    } else if has(WaitsFor::Event) && !for_own_lock {
        Advice::WriteEvent
    } else if has(WaitsFor::EndOfChild) && for_room {
        Advice::ReadBeforeWait
    } else if has(WaitsFor::EndOfChild) && for_data {
        Advice::CloseBeforeWait
    } else if only(&[WaitsFor::FileLock, WaitsFor::SharedLock, WaitsFor::SystemSemaphore]) {
        Advice::OneOrder
    } else if only(&[WaitsFor::OtherEndOfFifo]) {
        Advice::OpenInOneOrder
    } else if all.iter().all(WaitsFor::is_for_data) {
        match all {
            [_] => Advice::CloseOwnEnd,
            _ => Advice::WriteFirst,
        }
    } else if for_room {
        Advice::ReadWhileWriting
    } else if is_one_process && for_own_lock {
        Advice::WaitUnlocked
    } else if is_one_process && for_end && for_data {
        Advice::CloseBeforeJoin
    } else if is_one_process {
        Advice::EndTheProcess
    } else {
        Advice::EndOneProcess
    }
}

impl Basis for ProcessCycle {
    fn about(&self, all: &mut About<'_>) {
        for wait in &self.waits {
            all.thread(wait.thread, wait.location);
            wait.lock.into_iter().for_each(|lock| all.lock(lock));
            all.main(wait.location, |words| {
                words.text(&format!("{} waits here", name_of(&wait.program, wait.pid)))
            });
        }
        self.behind.iter().for_each(|&thread| all.thread(thread, None));
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let summary = match (self.processes, self.count) {
            (1, 1) => "a process waits for itself".to_owned(),
            (1, count) => format!("{count} threads of a process wait for one another"),
            (processes, _) => format!("{processes} processes wait for one another"),
        };
        let programs: HashMap<u32, &str> =
            self.waits.iter().map(|wait| (wait.pid, wait.program.as_str())).collect();
        let mut evidence: Vec<String> = self.waits.iter().map(|wait| line(wait, &programs, words)).collect();
        evidence.extend(and_more(self.count, self.waits.len(), "more thread"));
        let behind = self.behind.len();
        if behind > 0 {
            let verb = if behind == 1 { "waits" } else { "wait" };
            let names: Vec<String> =
                self.behind.iter().take(NAMED_MAX).map(|&thread| words.thread(thread)).collect();
            let more = if behind > NAMED_MAX { ", ..." } else { "" };
            evidence.push(format!(
                "{} {verb} behind them: {}{more}",
                counted(behind as u64, "more thread"),
                names.join(", ")
            ));
        }
        Paragraph { summary, evidence }
    }
}

pub(super) fn name_of(program: &str, pid: u32) -> String {
    format!("{program}[{pid}]")
}

/// What one thread waits for, and who can bring it.
pub(super) fn line(wait: &ProcessWait, programs: &HashMap<u32, &str>, words: &mut Words<'_>) -> String {
    let link = &wait.link;
    let process = name_of(&link.program, link.pid);
    let who = match words.short_thread(wait.thread) {
        _ if link.threads == 1 => process,
        thread if thread == process => process,
        // They are all of one process.
        thread if programs.len() == 1 && programs.contains_key(&link.pid) => thread,
        thread => format!("{thread} in {process}"),
    };
    let place = wait.location.map_or_else(String::new, |at| format!(", at {}", words.location(at)));
    let lasting = lasting(", for at least ", wait.for_ns);
    let (does, who_can) = what(wait, programs, words);
    let who_can = who_can.map_or_else(String::new, |who_can| format!("; {who_can}"));
    words.text(&format!("{who} {does}{place}{lasting}{who_can}"))
}

/// What a thread waits for, and who can end the wait.
fn what(
    wait: &ProcessWait,
    programs: &HashMap<u32, &str>,
    words: &mut Words<'_>,
) -> (String, Option<String>) {
    let link = &wait.link;
    let Some(need) = &link.need else {
        return match (link.owner, wait.lock) {
            (Some(owner), Some(lock)) => {
                let owner = words.thread(owner);
                (format!("waits for {}, which {owner} has", words.lock(lock)), None)
            }
            (Some(owner), None) if wait.is_join => {
                (format!("waits for the end of {}", words.thread(owner)), None)
            }
            (Some(owner), None) => (format!("waits for what {} has", words.thread(owner)), None),
            (None, _) => ("waits for another thread of its process".to_owned(), None),
        };
    };
    let by = parties(link.pid, programs, &need.by);
    let can = if need.by.len() == 1 { "alone can" } else { "can" };
    let has = agree(need.by.len(), "has", "have");
    let (does, who_can) = match &need.what {
        Needed::RoomInPipe => {
            ("writes to a pipe that is full".to_owned(), format!("{by} {can} read from it"))
        }
        Needed::DataInPipe => {
            ("reads from a pipe that is empty".to_owned(), format!("{by} {can} write to it"))
        }
        Needed::RoomInSocket => {
            ("writes to a socket that is full".to_owned(), format!("{by} {can} read at its other end"))
        }
        Needed::DataInSocket => {
            ("reads from a socket".to_owned(), format!("{by} {can} write at its other end"))
        }
        Needed::Event => ("reads from an eventfd that is 0".to_owned(), format!("{by} {can} write to it")),
        Needed::OneOfMany(count) => (
            format!("waits for one of {}", counted(u64::from(*count), "descriptor")),
            format!("{by} {can} make one of them ready"),
        ),
        Needed::SystemSemaphore { set, number } => (
            format!("waits for semaphore {number} of set {set} of System V"),
            format!("{by} changed it last"),
        ),
        Needed::DataInQueue(queue) => (
            format!("waits for a message in {}", queue_name(queue)),
            match queue {
                MessageQueue::SystemV(_) => format!("{by} sent to it last"),
                MessageQueue::Posix(_) => format!("{by} {has} it open"),
            },
        ),
        Needed::RoomInQueue(queue) => (
            format!("sends to {}, which is full", queue_name(queue)),
            match queue {
                MessageQueue::SystemV(_) => format!("{by} received from it last"),
                MessageQueue::Posix(_) => format!("{by} {has} it open"),
            },
        ),
        Needed::Answer(path) => (format!("waits for an answer of the file system at {}", path.display()), {
            format!("{by} {} for it", agree(need.by.len(), "answers", "answer"))
        }),
        Needed::OpenFifo(path) => (
            format!("opens the FIFO {}, and nobody opens its other end", path.display()),
            format!("{by} waits in the same way"),
        ),
        Needed::EndOfChild if need.by.len() == 1 => {
            return (format!("waits for the end of its child {by}"), None);
        }
        Needed::EndOfChild => return (format!("waits for the end of one of its children {by}"), None),
        Needed::FileLock(path, _) => {
            (format!("waits for a lock on {}", path.display()), format!("{by} {has} it"))
        }
        Needed::SharedObject { address, object } => {
            let object = match object {
                SharedObject::Semaphore => "the semaphore",
                SharedObject::Condition => "the condition variable",
                SharedObject::Barrier => "the barrier",
                SharedObject::ReadWriteLock => "the readers-writer lock",
                SharedObject::Word => "a change of the word",
            };
            (format!("waits for {object} {address:#x} in shared memory"), format!("{by} {has} this memory"))
        }
        Needed::SharedLock(address) | Needed::LostLock { address, .. } => {
            (format!("waits for the lock {address:#x} in shared memory"), format!("{by} {has} it"))
        }
    };
    (does, Some(who_can))
}

fn queue_name(queue: &MessageQueue) -> String {
    match queue {
        MessageQueue::SystemV(id) => format!("message queue {id} of System V"),
        MessageQueue::Posix(name) => format!("the message queue {name}"),
    }
}

/// Who can bring something.
fn parties(own: u32, programs: &HashMap<u32, &str>, by: &[Party]) -> String {
    let name = |party: &Party| {
        let descriptor =
            party.descriptor.map_or_else(String::new, |number| format!(" (descriptor {number})"));
        match party.pid == own {
            true => format!("the process itself{descriptor}"),
            false => {
                let program = programs.get(&party.pid).copied().unwrap_or(&party.name);
                format!("{}{descriptor}", name_of(program, party.pid))
            }
        }
    };
    let mut names: Vec<String> = by.iter().take(NAMED_MAX).map(name).collect();
    if by.len() > NAMED_MAX {
        names.push(format!("{} more", by.len() - NAMED_MAX));
    }
    match names.as_slice() {
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
        [] => "nobody".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Evidence;
    use crate::findings::testing::{Scene, finding_about};

    /// A thread of another process each, with what it needs; `None`: it waits for somebody unknown of its own process.
    fn knot(scene: &mut Scene, needs: &[Option<Needed>]) -> Knot {
        let need = |what| Need { what, by: Vec::new(), also: Vec::new(), others: Others::default() };
        let link = |(at, what): (usize, &Option<Needed>)| Link {
            thread: scene.thread("worker"),
            pid: at as u32,
            program: "work".into(),
            threads: 1,
            need: what.clone().map(need),
            owner: None,
        };
        let links = needs.iter().enumerate().map(link).collect();
        Knot { links, behind: Vec::new(), others: Others::default(), sleepers: Vec::new() }
    }

    fn found(needs: &[Option<Needed>]) -> Vec<Finding> {
        let mut scene = Scene::new();
        let knot = knot(&mut scene, needs);
        scene.model.knots.push(knot);
        scene.run(&BetweenProcesses)
    }

    /// A thread waits for room in a pipe under a lock, and the one that would read wants the lock.
    fn locked(scene: &mut Scene) -> Knot {
        let (writer, reader, lock) = (scene.thread("writer"), scene.thread("reader"), scene.lock("STDOUT"));
        scene.holds(writer, lock);
        scene.waits(reader, lock);
        let need = |what| Need { what, by: Vec::new(), also: Vec::new(), others: Others::default() };
        let link = |thread, need, owner| {
            let program = "work".to_owned();
            Link { thread, pid: 7, program, threads: 2, need, owner }
        };
        let links =
            vec![link(reader, None, Some(writer)), link(writer, Some(need(Needed::RoomInPipe)), None)];
        Knot { links, behind: Vec::new(), others: Others::default(), sleepers: Vec::new() }
    }

    #[test]
    fn a_lock_within_a_process_is_named_and_no_other_finding_is_about_it() {
        let mut scene = Scene::new();
        let knot = locked(&mut scene);
        scene.model.knots.push(knot);
        let found = scene.run(&BetweenProcesses);
        assert_eq!(found[0].mentions.locks, [0]);
        let Evidence::ProcessCycle(cycle) = &found[0].evidence else { panic!("{found:?}") };
        assert_eq!((cycle.waits[0].lock, cycle.waits[1].lock), (Some(0), None));
    }

    #[test]
    fn who_joins_a_reader_is_told_to_write_and_nothing_of_locks() {
        let with = |what: Needed| {
            let mut scene = Scene::new();
            let mut knot = locked(&mut scene);
            scene.model.threads[1].wait = None;
            scene.joins(1, 0, |_| {});
            knot.links[1].need.as_mut().unwrap().what = what;
            scene.model.knots.push(knot);
            let found = scene.run(&BetweenProcesses);
            assert!(!found[0].premises.contains(&Premise::MemoryIntact), "{found:?}");
            found[0].advice.clone()
        };
        assert_eq!(with(Needed::DataInPipe), [Advice::CloseBeforeJoin]);
        assert_eq!(with(Needed::Event), [Advice::WriteEvent]);
        let child_reads = found(&[Some(Needed::Event), Some(Needed::EndOfChild)]);
        assert_eq!(child_reads[0].advice, [Advice::WriteEvent]);
    }

    #[test]
    fn a_loop_alone_leaves_its_own_process_to_itself_and_no_other_one() {
        let is_left = |change: fn(&mut Scene, &mut Knot)| {
            let mut scene = Scene::new();
            let thread = scene.thread("driver");
            let by = vec![Party { pid: 70, name: "driver".into(), descriptor: Some(5), tid: None }];
            let (what, others) = (Needed::OneOfMany(1), Others::default());
            let need = Some(Need { what, by, also: Vec::new(), others });
            let link = Link { thread, pid: 70, program: "work".into(), threads: 1, need, owner: None };
            let mut knot = Knot { links: vec![link], behind: Vec::new(), others, sleepers: Vec::new() };
            change(&mut scene, &mut knot);
            scene.model.knots.push(knot);
            scene.with_view(is_left_to_itself)
        };
        assert!(is_left(|_, _| {}));
        assert!(!is_left(|scene, _| scene.model.threads[0].pid += 1), "another process is");
        assert!(!is_left(|_, knot| knot.others.child = true), "a child may end");
    }

    #[test]
    fn a_deadlock_is_told_once_by_whichever_is_more_certain() {
        let mut scene = Scene::new();
        let knot = locked(&mut scene);
        scene.model.knots.push(knot);
        let of_record = |confidence, threads: &[ThreadId]| {
            let mut known = finding_about(Kind::Deadlock, &[0]);
            (known.confidence, known.mentions.threads) = (confidence, threads.to_vec());
            let mut found = vec![known];
            scene.with_view(|view| BetweenProcesses.run(view, &mut found));
            found.len()
        };
        assert_eq!(of_record(Confidence::Suspected, &[0, 1]), 1);
        assert_eq!(
            of_record(Confidence::Proven, &[0, 1]),
            1,
            "the record has the places of the acquisitions too"
        );
        assert_eq!(of_record(Confidence::Proven, &[0, 7]), 2, "another deadlock");
    }

    #[test]
    fn who_waits_for_data_that_nobody_outside_can_bring_is_not_judged() {
        let waits = |change: fn(&mut Others), needs: &[Option<Needed>]| {
            let mut scene = Scene::new();
            let mut knot = knot(&mut scene, needs);
            change(&mut knot.others);
            knot.links.iter_mut().for_each(|link| link.pid = 70);
            scene.model.knots.push(knot);
            scene.with_view(waits_for_nobody)
        };
        let unknown = [Some(Needed::DataInPipe), None];
        assert!(waits(|_| {}, &unknown));
        assert!(waits(|_| {}, &[Some(Needed::OneOfMany(1))]), "a loop alone");
        assert!(!waits(|others| others.handler = true, &unknown), "a handler may write");
        assert!(!waits(|others| others.by_path = true, &unknown));
        assert!(!waits(|others| others.timer = true, &unknown));
        assert!(!waits(|_| {}, &[Some(Needed::RoomInPipe), None]), "a finding");
    }

    #[test]
    fn what_may_idle_is_no_deadlock_and_what_waits_for_room_may_be_one() {
        let proven = found(&[Some(Needed::RoomInPipe), Some(Needed::EndOfChild)]);
        assert_eq!((proven[0].kind, proven[0].confidence), (Kind::Deadlock, Confidence::Proven));
        assert_eq!(proven[0].advice, [Advice::ReadBeforeWait]);
        let suspected = found(&[Some(Needed::RoomInPipe), Some(Needed::EndOfChild), None]);
        assert_eq!(
            (suspected[0].confidence, &*suspected[0].doubts),
            (Confidence::Suspected, &[Doubt::UnrecordedWaker][..])
        );
        assert_eq!(
            found(&[Some(Needed::DataInPipe), Some(Needed::DataInPipe)])[0].confidence,
            Confidence::Proven
        );
        assert!(found(&[Some(Needed::DataInPipe), Some(Needed::DataInPipe), None]).is_empty());
        // Two processes, and one with a loop of its own.
        assert_eq!(
            found(&[Some(Needed::OneOfMany(1)), Some(Needed::DataInPipe)])[0].confidence,
            Confidence::Suspected
        );
        assert!(found(&[Some(Needed::OneOfMany(1))]).is_empty());
    }
}
