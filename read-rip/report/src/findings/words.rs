//! The words that sentences of findings share: names of threads, locks and locations, numbers and lengths of time.
//!
//! It makes no sentences: the files by topic do.

use std::collections::{HashMap, HashSet};

use read_rip_model::findings::{HoldFact, LockHistory, Waiters};
use read_rip_model::locations::LocationId;
use read_rip_model::locks::{HoldState, LockId, LockName, Quantiles, ThreadId};

use crate::activity::ActivityWords;
use crate::names::{LockNames, Verbs};
pub(super) use crate::units::agree;
use crate::units::{counted, duration};
use read_rip_ring::LockType;

/// The text of a finding, without doubts and advice.
pub(crate) struct Paragraph {
    /// What is wrong, in one sentence.
    pub(crate) summary: String,
    /// Why that is so, a line each.
    pub(crate) evidence: Vec<String>,
}

/// What threads, locks and locations are called in the text of one finding.
pub(super) struct Words<'a> {
    names: &'a LockNames<'a>,
    named: HashSet<LockId>,
    /// The locks of this finding that are called like another one of it.
    namesakes: HashSet<LockId>,
    /// Whether the names of two locks end alike.
    is_last_part_shared: bool,
}

impl<'a> Words<'a> {
    /// Whether nobody can hold a lock where that is not recorded.
    pub(super) fn is_held_where_recorded(&self, lock: LockId) -> bool {
        self.names.model.locks[lock].is_held_where_recorded()
    }

    /// The words for one finding about these locks, which has named no lock yet.
    pub(super) fn new(names: &'a LockNames<'a>, locks: &[LockId]) -> Words<'a> {
        let mut by_name: HashMap<String, Vec<LockId>> = HashMap::new();
        for &id in locks {
            by_name.entry(names.lock(&names.model.locks[id])).or_default().push(id);
        }
        let mut last_parts = HashSet::new();
        let is_last_part_shared = by_name.keys().any(|name| !last_parts.insert(last_part(name)));
        let namesakes = by_name.values().filter(|ids| ids.len() > 1).flatten().copied().collect();
        Words { names, named: HashSet::new(), namesakes, is_last_part_shared }
    }

    pub(super) fn thread(&self, thread: ThreadId) -> String {
        self.names.thread(thread)
    }

    /// How many threads and tasks these are: see [`LockNames::members`].
    pub(super) fn members(&self, known: &[ThreadId], all: usize) -> String {
        self.names.members(known, all)
    }

    pub(super) fn location(&self, location: LocationId) -> String {
        self.names.location(location)
    }

    /// The name of a lock. Its address follows the first time, and each time if another lock has the same name.
    pub(super) fn lock(&mut self, id: LockId) -> String {
        let lock = &self.names.model.locks[id];
        let name = self.names.lock(lock);
        let is_first = self.named.insert(id);
        let is_clear = !is_first && !self.namesakes.contains(&id);
        if !is_clear && lock.name != LockName::None { format!("{name} ({:#x})", lock.address) } else { name }
    }

    /// What its holder does with a lock.
    pub(super) fn verbs(&self, id: LockId) -> Verbs {
        Verbs::of(&self.names.model.locks[id])
    }

    /// Whether it is an initialisation that is done once.
    pub(super) fn is_once(&self, id: LockId) -> bool {
        self.names.model.locks[id].nature.lock_type == LockType::Once
    }

    /// Whether it stands for a lock that the kernel has refused to a thread.
    pub(super) fn is_refused(&self, id: LockId) -> bool {
        self.names.model.locks[id].nature.is_refused
    }

    /// Whether only the process's memory says anything of a lock.
    pub(super) fn is_from_memory(&self, id: LockId) -> bool {
        self.names.model.locks[id].is_from_memory
    }

    /// Whether lengths of time up to the end of the process are lower bounds.
    pub(super) fn is_end_unknown(&self) -> bool {
        self.names.model.is_end_unknown
    }

    /// A length of time up to the reading, or to the end of the process, after these words; nothing if it is not
    /// known.
    pub(super) fn lasting(&self, before: &str, duration_ns: Option<u64>) -> String {
        let at_least = if self.is_end_unknown() { "at least " } else { "" };
        lasting(&format!("{before}{at_least}"), duration_ns)
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

    /// The name of a lock, for labels: of a static without the modules around it, and with the address only if another
    /// lock of this finding has the same name.
    pub(super) fn short_lock(&self, id: LockId) -> String {
        let lock = &self.names.model.locks[id];
        let name = self.names.lock(lock);
        let name = match &lock.name {
            LockName::Symbol(_) if !self.is_last_part_shared => last_part(&name).to_owned(),
            _ => name,
        };
        let is_clear = !self.namesakes.contains(&id) || lock.name == LockName::None;
        if is_clear { name } else { format!("{name} ({:#x})", lock.address) }
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

    /// `THREAD has held it for 2 s, acquired at LOCATION`.
    pub(super) fn holder(&self, hold: &HoldFact) -> String {
        let (thread, acquired) = (self.thread(hold.thread), self.acquired(hold));
        let Verbs { holds, held, .. } = self.verbs(hold.lock);
        let verb = if is_known(hold.for_ns) { format!("has {held}") } else { holds.to_owned() };
        let (shared, lasting) = (shared(hold.is_shared), self.lasting(" for ", hold.for_ns));
        format!("{thread} {verb} it{shared}{lasting}{acquired}")
    }

    /// The recorded lock for which a thread or task waits by blocking its thread, and a holder, as a sentence.
    pub(super) fn awaited(&self, thread: ThreadId) -> Option<String> {
        let wait = self.names.model.threads[thread].wait.filter(|wait| !wait.is_of_future)?;
        let lock = &self.names.model.locks[wait.lock];
        let holder = lock.holders.iter().find(|hold| hold.state == HoldState::Held);
        let held = holder.map(|hold| format!(", held by {}", self.names.thread(hold.thread)));
        Some(format!("it waits for {}{}", self.names.lock(lock), held.unwrap_or_default()))
    }

    /// What a thread does by the kernel and the memory, as a sentence; `None` if that is not known.
    pub(super) fn doing(&self, thread: ThreadId) -> Option<String> {
        ActivityWords::new(self.names)?.sentence(thread)
    }

    /// What the kernel says of a thread that waits by the record, after a semicolon; nothing where both agree.
    pub(super) fn contradiction(&self, thread: ThreadId) -> String {
        let said = ActivityWords::new(self.names).and_then(|words| words.contradiction(thread));
        said.map_or_else(String::new, |said| format!("; the kernel says that it is {said}"))
    }

    /// A line for each of the first threads that wait for a lock, and one for all others.
    pub(super) fn waiters(&self, waiters: &Waiters) -> Vec<String> {
        let line = |wait: &read_rip_model::findings::WaitFact| {
            let (thread, location) = (self.thread(wait.thread), self.location(wait.location));
            let (shared, lasting) = (in_parentheses(wait.is_shared), self.lasting(", for ", wait.for_ns));
            let but = self.contradiction(wait.thread);
            format!("{thread} waits for it{shared} at {location}{lasting}{but}")
        };
        let mut lines: Vec<String> = waiters.first.iter().map(line).collect();
        lines.extend(self.and_more(waiters.count - waiters.first.len()));
        lines
    }

    /// `2 threads`. If the process has tasks, they may be among them: `2 threads or tasks`.
    pub(super) fn threads(&self, count: usize) -> String {
        let (one, several) = match self.names.model.has_tasks() {
            false => ("thread", "threads"),
            true => ("thread or task", "threads or tasks"),
        };
        format!("{count} {}", agree(count, one, several))
    }

    /// `1 more thread`, `2 more threads`: see [`threads`](Words::threads).
    pub(super) fn more_threads(&self, count: usize) -> String {
        self.threads(count).replacen(' ', " more ", 1)
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

    /// `and 2 more threads`, unless there are none.
    pub(super) fn and_more(&self, count: usize) -> Option<String> {
        (count > 0).then(|| format!("and {}", self.more_threads(count)))
    }
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

pub(super) fn is_known(duration_ns: Option<u64>) -> bool {
    duration_ns.is_some_and(|duration_ns| duration_ns > 0)
}

/// A length of time after these words, or nothing if it is not known.
pub(super) fn lasting(before: &str, duration_ns: Option<u64>) -> String {
    let known = duration_ns.filter(|_| is_known(duration_ns));
    known.map_or_else(String::new, |duration_ns| format!("{before}{}", duration(duration_ns)))
}
