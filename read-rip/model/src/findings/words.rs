//! The words that the sentences of findings share: names of threads, locks and places, and what happens to them.
//!
//! It makes no finding, and no whole sentence of one: each analysis says its own. What a thread, a lock or a place is
//! called is a question of the output, which answers it as [`Names`].

use std::collections::{HashMap, HashSet};

use read_rip_ring::LockType;

use super::facts::{Asleep, HoldFact, JoinFact, LockHistory, SleepFact, SuspendedFact, WaitFact, Waiters};
use crate::locations::LocationId;
use crate::locks::{Doing, Hold, HoldState, Lock, LockId, LockModel, LockName, Quantiles, ThreadId};
use crate::units::{agree, counted, duration, notable, threads_and_tasks};

/// What threads, locks and places are called, and what the kernel says of threads.
pub trait Names {
    /// The model that has them.
    fn model(&self) -> &LockModel;

    /// A thread or task.
    fn thread(&self, id: ThreadId) -> String;

    /// A lock.
    fn lock(&self, id: LockId) -> String;

    /// The function and the line of a location.
    fn location(&self, id: LocationId) -> String;

    /// A text of unknown origin, as it may be shown.
    fn text(&self, raw: &str) -> String;

    /// A line of a source file.
    fn source(&self, file: &str, line: u32) -> String;

    /// Whether all is to be said: the address of each lock, and each thread of a long cycle.
    fn is_verbose(&self) -> bool;

    /// What a thread does by the kernel and the memory, as a sentence; `None` if that is not known.
    fn doing(&self, thread: ThreadId) -> Option<String>;

    /// What the kernel says that a thread does which waits by the record; `None` where both agree.
    fn contradiction(&self, thread: ThreadId) -> Option<String>;
}

/// The text of a finding, without doubts and advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paragraph {
    /// What is wrong, in one sentence.
    pub summary: String,
    /// Why that is so, a line each.
    pub evidence: Vec<String>,
}

/// What threads, locks and locations are called in the text of one finding.
pub(super) struct Words<'a> {
    names: &'a dyn Names,
    named: HashSet<LockId>,
    /// The locks of this finding that are called like another one of it.
    namesakes: HashSet<LockId>,
    /// Whether the names of two locks end alike.
    is_last_part_shared: bool,
}

impl<'a> Words<'a> {
    /// The words for one finding about these locks, which has named no lock yet.
    pub(super) fn new(names: &'a dyn Names, locks: &[LockId]) -> Words<'a> {
        let mut by_name: HashMap<String, Vec<LockId>> = HashMap::new();
        for &id in locks {
            by_name.entry(names.lock(id)).or_default().push(id);
        }
        let mut last_parts = HashSet::new();
        let is_last_part_shared = by_name.keys().any(|name| !last_parts.insert(last_part(name)));
        let namesakes = by_name.values().filter(|ids| ids.len() > 1).flatten().copied().collect();
        Words { names, named: HashSet::new(), namesakes, is_last_part_shared }
    }

    fn model(&self) -> &'a LockModel {
        self.names.model()
    }

    /// See [`Names::is_verbose`].
    pub(super) fn is_verbose(&self) -> bool {
        self.names.is_verbose()
    }

    pub(super) fn thread(&self, thread: ThreadId) -> String {
        self.names.thread(thread)
    }

    /// A text of unknown origin, as it may be shown.
    pub(super) fn text(&self, raw: &str) -> String {
        self.names.text(raw)
    }

    /// See [`Names::source`].
    pub(super) fn source(&self, file: &str, line: u32) -> String {
        self.names.source(file, line)
    }

    /// The name and the id of a thread, without its process.
    pub(super) fn short_thread(&self, thread: ThreadId) -> String {
        let of = &self.model().threads[thread];
        format!("{}[{}]", of.name, of.tid)
    }

    pub(super) fn location(&self, location: LocationId) -> String {
        self.names.location(location)
    }

    /// How many threads and tasks these are: see [`members`].
    pub(super) fn members(&self, known: &[ThreadId], all: usize) -> String {
        members(self.model(), known, all)
    }

    /// The name of a lock. Its address follows if another lock has the same name, and the first time if all is to be
    /// said.
    pub(super) fn lock(&mut self, id: LockId) -> String {
        let (lock, name) = (self.lock_of(id), self.names.lock(id));
        let is_first = self.named.insert(id);
        let has_address = self.namesakes.contains(&id) || is_first && self.names.is_verbose();
        if has_address && lock.name != LockName::None {
            format!("{name} ({:#x})", lock.address)
        } else {
            name
        }
    }

    /// The name of a lock, for labels: of a static without the modules around it, and with the address only if another
    /// lock of this finding has the same name.
    pub(super) fn short_lock(&self, id: LockId) -> String {
        let (lock, name) = (self.lock_of(id), self.names.lock(id));
        let name = match &lock.name {
            LockName::Symbol(_) if !self.is_last_part_shared => last_part(&name).to_owned(),
            _ => name,
        };
        let is_clear = !self.namesakes.contains(&id) || lock.name == LockName::None;
        if is_clear { name } else { format!("{name} ({:#x})", lock.address) }
    }

    /// What is known of a lock.
    pub(super) fn lock_of(&self, id: LockId) -> &'a Lock {
        &self.model().locks[id]
    }

    /// What its holder does with a lock.
    pub(super) fn verbs(&self, id: LockId) -> Verbs {
        Verbs::of(self.lock_of(id))
    }

    /// Whether it is an initialisation that is done once.
    pub(super) fn is_once(&self, id: LockId) -> bool {
        self.lock_of(id).nature.lock_type == LockType::Once
    }

    /// Whether lengths of time up to the end of the process are lower bounds.
    pub(super) fn is_end_unknown(&self) -> bool {
        self.model().is_end_unknown
    }

    /// A length of time up to the reading, or to the end of the process, after these words; nothing if it is not
    /// known.
    pub(super) fn lasting(&self, before: &str, duration_ns: Option<u64>) -> String {
        let at_least = if self.is_end_unknown() { "at least " } else { "" };
        lasting(&format!("{before}{at_least}"), notable(self.is_end_unknown(), duration_ns))
    }

    /// Like [`lasting`](Words::lasting), for a length that may be too long. A space follows the words before it.
    pub(super) fn lasting_at_most(&self, before: &str, is_at_most: bool, duration_ns: Option<u64>) -> String {
        // It may have been shorter, and if the end of the process is not known, also longer.
        if is_at_most && self.is_end_unknown() {
            return String::new();
        }
        let at_most = if is_at_most && is_known(duration_ns) { " at most" } else { "" };
        self.lasting(&format!("{before}{at_most} "), duration_ns)
    }

    /// `, acquired at LOCATION`; nothing if only the process's memory says that the thread holds the lock. Of a lock
    /// that a child has since its fork, it is the location where its parent's thread acquired it.
    pub(super) fn acquired(&self, hold: &HoldFact) -> String {
        let inherited = if hold.is_inherited { ", inherited by fork" } else { "" };
        let acquired = self.verbs(hold.lock).acquired;
        let at =
            hold.location.map(|location| format!("{inherited}, {acquired} at {}", self.location(location)));
        at.unwrap_or_default()
    }

    /// `THREAD acquired it at LOCATION`; `None` like [`acquired`](Words::acquired).
    pub(super) fn acquired_it(&self, hold: &HoldFact) -> Option<String> {
        let location = self.location(hold.location?);
        Some(format!("{} acquired it at {location}", self.thread(hold.thread)))
    }

    /// `THREAD holds LOCK for 2 s, acquired at LOCATION`.
    pub(super) fn holds(&mut self, hold: &HoldFact) -> String {
        let (lock, lasting) = (self.lock(hold.lock), self.lasting(" for ", hold.for_ns));
        let (thread, verb) = (self.thread(hold.thread), self.verbs(hold.lock).holds);
        let (shared, acquired, but) =
            (in_parentheses(hold.is_shared), self.acquired(hold), self.other_holder(hold));
        format!("{thread} {verb} {lock}{shared}{lasting}{acquired}{but}")
    }

    /// `THREAD has held it for 2 s, acquired at LOCATION`.
    pub(super) fn holder(&self, hold: &HoldFact) -> String {
        let lasting = self.lasting(" for ", hold.for_ns);
        self.holder_for(hold, &lasting)
    }

    /// The same, with these words for how long.
    pub(super) fn holder_for(&self, hold: &HoldFact, lasting: &str) -> String {
        let (thread, acquired) = (self.thread(hold.thread), self.acquired(hold));
        let Verbs { holds, held, .. } = self.verbs(hold.lock);
        let verb = if lasting.is_empty() { holds.to_owned() } else { format!("has {held}") };
        format!("{thread} {verb} it{}{lasting}{acquired}", shared(hold.is_shared))
    }

    /// The recorded lock for which a thread or task waits by blocking its thread, and a holder, as a sentence.
    pub(super) fn awaited(&self, thread: ThreadId) -> Option<String> {
        let wait = self.model().threads[thread].wait.filter(|wait| !wait.is_of_future)?;
        let holder = self.lock_of(wait.lock).holders.iter().find(|hold| hold.state == HoldState::Held);
        let held = holder.map(|hold| format!(", held by {}", self.thread(hold.thread)));
        Some(format!("it waits for {}{}", self.names.lock(wait.lock), held.unwrap_or_default()))
    }

    /// What a thread does by the kernel and the memory, as a sentence; `None` if that is not known.
    pub(super) fn doing(&self, thread: ThreadId) -> Option<String> {
        self.names.doing(thread)
    }

    /// What the kernel says of a thread that waits by the record, after a semicolon; nothing where both agree.
    pub(super) fn contradiction(&self, thread: ThreadId) -> String {
        let said = self.names.contradiction(thread);
        said.map_or_else(String::new, |said| format!("; the kernel says that it is {said}"))
    }

    /// That the record names another holder of a lock than its memory, after a semicolon; nothing where both agree.
    pub(super) fn other_holder(&self, hold: &HoldFact) -> String {
        let lock = self.lock_of(hold.lock);
        let is_by_memory = lock.owner.is_some_and(|owner| owner.thread == hold.thread);
        let is_other = |other: &&Hold| {
            is_by_memory && other.thread != hold.thread && other.location.is_some() && !other.is_shared
        };
        let other = lock.holders.iter().find(is_other);
        other.map_or_else(String::new, |other| {
            format!(", by its memory; the record says that {} holds it", self.thread(other.thread))
        })
    }

    /// A line for the first threads that wait for a lock, for those at one place together, and one for all others.
    pub(super) fn waiters(&self, waiters: &Waiters) -> Vec<String> {
        let mut alike: Vec<(String, Vec<&WaitFact>)> = Vec::new();
        for wait in &waiters.first {
            let (shared, location) = (in_parentheses(wait.is_shared), self.location(wait.location));
            let where_it_waits = format!("for it{shared} at {location}");
            // What the kernel says of one is said of one.
            let is_like = |(at, others): &&mut (String, Vec<&WaitFact>)| {
                *at == where_it_waits && self.names.contradiction(others[0].thread).is_none()
            };
            let is_contradicted = self.names.contradiction(wait.thread).is_some();
            match alike.iter_mut().find(is_like).filter(|_| !is_contradicted) {
                Some((_, others)) => others.push(wait),
                None => alike.push((where_it_waits, vec![wait])),
            }
        }
        let line = |(at, waits): &(String, Vec<&WaitFact>)| {
            let longest = waits.iter().filter_map(|wait| wait.for_ns).max();
            let names: Vec<String> = waits.iter().map(|wait| self.thread(wait.thread)).collect();
            match &names[..] {
                [thread] => {
                    let (lasting, but) =
                        (self.lasting(", for ", longest), self.contradiction(waits[0].thread));
                    format!("{thread} waits {at}{lasting}{but}")
                }
                names => {
                    let (count, lasting) =
                        (self.threads(names.len()), self.lasting(", the longest for ", longest));
                    format!("{count} wait {at}{lasting}: {}", names.join(", "))
                }
            }
        };
        let mut lines: Vec<String> = alike.iter().map(line).collect();
        lines.extend(self.and_more(waiters.count - waiters.first.len()));
        lines
    }

    /// `THREAD waits on a condition variable, with the lock LOCK, at LOCATION, for 2 s`.
    pub(super) fn sleep(&mut self, one: &SleepFact) -> String {
        let (thread, location) = (self.thread(one.thread), self.location(one.location));
        let what = one.what.words(&self.lock(one.lock));
        let comma = if one.what == Asleep::Condition { "," } else { "" };
        format!("{thread} waits {what}{comma} at {location}{}", self.lasting(", for ", one.for_ns))
    }

    /// A thread that waits for the end of another one, where and for how long.
    pub(super) fn join(&self, join: &JoinFact) -> String {
        format!(
            "{} waits for the end of {} at {}{}{}",
            self.thread(join.thread),
            self.thread(join.joined),
            self.location(join.location),
            limit(join.is_timed),
            self.lasting(", for ", join.for_ns)
        )
    }

    /// Who has signalled a condition variable last, when nobody waited.
    pub(super) fn unheard(&self, signaller: ThreadId, at: LocationId) -> String {
        let (thread, location) = (self.thread(signaller), self.location(at));
        format!("{thread} signalled it last at {location}, and no thread waited")
    }

    /// What a task does that holds a lock over an await.
    pub(super) fn suspended(&self, of: &SuspendedFact) -> String {
        let lasting = self.lasting_at_most(" for", of.is_at_most, of.for_ns);
        let at = of.location.map(|location| format!(" at {}", self.location(location)));
        match of.is_await {
            true => {
                let at = at.unwrap_or_default();
                format!("meanwhile it is suspended{at}{lasting}, and holds the lock over that await")
            }
            false => {
                let last = at.map(|at| format!("; it was last{at}"));
                format!("meanwhile it is suspended{lasting}{}", last.unwrap_or_default())
            }
        }
    }

    /// `2 threads`. If the process has tasks, they may be among them: `2 threads or tasks`.
    pub(super) fn threads(&self, count: usize) -> String {
        let (one, several) = match self.model().has_tasks() {
            false => ("thread", "threads"),
            true => ("thread or task", "threads or tasks"),
        };
        format!("{count} {}", agree(count, one, several))
    }

    /// `1 more thread`, `2 more threads`: see [`threads`](Words::threads).
    pub(super) fn more_threads(&self, count: usize) -> String {
        self.threads(count).replacen(' ', " more ", 1)
    }

    /// `and 2 more threads`, unless there are none.
    pub(super) fn and_more(&self, count: usize) -> Option<String> {
        (count > 0).then(|| format!("and {}", self.more_threads(count)))
    }

    /// `41 of 60 known acquisitions by 3 threads came after a wait; waits: p50 80 ms, p90 200 ms`.
    pub(super) fn history(&self, history: &LockHistory) -> String {
        let LockHistory { acquisitions, contended, owners, .. } = history;
        let distribution = |what: &str, quantiles: Option<Quantiles>| {
            quantiles.map_or_else(String::new, |of| {
                format!("; {what}: p50 {}, p90 {}", duration(of.p50_ns), duration(of.p90_ns))
            })
        };
        format!(
            "{contended} of {} by {} came after a wait{}{}",
            counted(*acquisitions, "known acquisition"),
            self.threads(*owners),
            distribution("waits", history.waits),
            distribution("holds", history.holds)
        )
    }
}

impl Asleep {
    /// On what a thread waits: `lock` is the name of that, or of the lock that it has released meanwhile.
    pub(super) fn words(self, lock: &str) -> String {
        match self {
            Asleep::Lock | Asleep::Notification => format!("for {lock}"),
            Asleep::Condition => format!("on a condition variable, with the lock {lock}"),
            Asleep::Semaphore => format!("for a unit of the semaphore {lock}"),
            Asleep::Barrier => format!("at the barrier {lock}"),
            Asleep::Message => format!("for a message, or for room for one, in {lock}"),
            Asleep::Wake => "to be woken by another thread".to_owned(),
            Asleep::Thread => "for the end of a thread".to_owned(),
        }
    }
}

/// What the holder of a lock does with it, in words.
#[derive(Clone, Copy, Debug)]
pub struct Verbs {
    /// The thread does it now.
    pub holds: &'static str,
    /// Its participle.
    pub held: &'static str,
    /// How it began.
    pub acquired: &'static str,
}

impl Verbs {
    /// Those for a lock. A thread does not hold an initialisation but runs it.
    pub fn of(lock: &Lock) -> Verbs {
        match lock.nature.lock_type {
            LockType::Once => Verbs { holds: "runs", held: "run", acquired: "begun" },
            _ if lock.is_holder_presumed() => {
                Verbs { holds: "is presumed to hold", held: "presumably held", acquired: "acquired" }
            }
            _ => Verbs { holds: "holds", held: "held", acquired: "acquired" },
        }
    }
}

/// What a number of threads do.
pub fn doing(what: Doing, count: usize) -> &'static str {
    match what {
        Doing::Runs => agree(count, "runs", "run"),
        Doing::Starves => agree(
            count,
            "is ready to run and gets hardly any processor",
            "are ready to run and get hardly any processor",
        ),
        Doing::WaitsForLock => agree(count, "waits for a lock", "wait for locks"),
        Doing::WaitsForThread => agree(count, "waits for another thread", "wait for other threads"),
        Doing::WaitsInside => agree(
            count,
            "waits for a signal or a message of another thread",
            "wait for signals or messages of other threads",
        ),
        Doing::WaitsForCalls => agree(
            count,
            "waits for calls on the pool of an executor that ends",
            "wait for calls on pools of executors that end",
        ),
        Doing::WaitsForObject => agree(
            count,
            "waits for an object of a pool, with a time limit",
            "wait for objects of pools, with a time limit",
        ),
        Doing::WaitsForManagedLock => {
            agree(count, "waits for a lock of a database", "wait for locks of a database")
        }
        Doing::WaitsForChild => agree(count, "waits for a child process", "wait for child processes"),
        Doing::WaitsForProcess => {
            agree(count, "waits for a lock of another process", "wait for locks of other processes")
        }
        Doing::WaitsInSharedMemory => agree(
            count,
            "waits for a semaphore or the like that processes share",
            "wait for semaphores or the like that processes share",
        ),
        Doing::WaitsForFileLock => agree(count, "waits for a lock on a file", "wait for locks on files"),
        Doing::WaitsForData => {
            agree(count, "waits for data in a pipe or a socket", "wait for data in pipes or sockets")
        }
        Doing::WaitsToWrite => agree(
            count,
            "waits for room in a pipe or a socket that is full",
            "wait for room in pipes or sockets that are full",
        ),
        Doing::WaitsToOpen => agree(
            count,
            "waits for somebody to open the other end of a FIFO",
            "wait for somebody to open the other ends of FIFOs",
        ),
        Doing::WaitsToConnect => agree(count, "waits for a connection", "wait for connections"),
        Doing::WaitsOutside => agree(
            count,
            "waits for input, a time or a signal from outside",
            "wait for input, a time or a signal from outside",
        ),
        Doing::Kernel => agree(count, "waits for the kernel", "wait for the kernel"),
        Doing::Stopped => agree(count, "is stopped", "are stopped"),
        Doing::Unknown => agree(count, "is in an unknown state", "are in an unknown state"),
    }
}

/// See [`threads_and_tasks`]. `all` is how many there are, of which these are known.
pub fn members(model: &LockModel, known: &[ThreadId], all: usize) -> String {
    let tasks = known.iter().filter(|&&id| model.threads[id].task.is_some()).count();
    threads_and_tasks(all.saturating_sub(tasks) as u64, tasks as u64)
}

/// A name without the modules before it.
fn last_part(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

/// ` shared` after a verb.
pub(super) fn shared(is_shared: bool) -> &'static str {
    if is_shared { " shared" } else { "" }
}

/// ` (shared)` after a lock.
pub(super) fn in_parentheses(is_shared: bool) -> &'static str {
    if is_shared { " (shared)" } else { "" }
}

/// `, with a time limit`.
pub(super) fn limit(is_timed: bool) -> &'static str {
    if is_timed { ", with a time limit" } else { "" }
}

/// `and 2 more tasks`, if not all are listed.
pub(super) fn and_more(all: usize, listed: usize, thing: &str) -> Option<String> {
    let unlisted = all.saturating_sub(listed);
    (unlisted > 0).then(|| format!("and {}", counted(unlisted as u64, thing)))
}

fn is_known(duration_ns: Option<u64>) -> bool {
    duration_ns.is_some_and(|duration_ns| duration_ns > 0)
}

/// A length of time after these words, or nothing if it is not known.
pub(super) fn lasting(before: &str, duration_ns: Option<u64>) -> String {
    let known = duration_ns.filter(|_| is_known(duration_ns));
    known.map_or_else(String::new, |duration_ns| format!("{before}{}", duration(duration_ns)))
}
