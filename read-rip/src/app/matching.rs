//! `--match`: which locks and findings are shown.
//!
//! It reads the names that the text output shows, and full function names. Where several processes share a ring, a
//! thread or a lock also has the name of its process, `process PID`.

use std::fmt::Write;

use read_rip_model::findings::Finding;
use read_rip_model::locations::{LocationId, Locations};
use read_rip_model::locks::{LockId, Summary, ThreadId, task_place};
use read_rip_report::{LocationTexts, LockNames, who};
use read_rip_ring::Slot;
use regex::Regex;

/// A pattern, and the names that it is looked for in.
#[derive(Clone, Copy)]
pub(super) struct Pattern<'a> {
    pub(super) pattern: &'a Regex,
    /// Whether several processes share the ring.
    pub(super) names_process: bool,
}

impl Pattern<'_> {
    /// Whether a thread matches, or the location of its last mark.
    pub(super) fn has_slot(
        &self,
        slot: &Slot,
        last: Option<LocationId>,
        locations: &Locations<'_>,
        texts: &LocationTexts,
    ) -> bool {
        self.has_thread(&slot.name, slot.tid, slot.pid)
            || last.is_some_and(|location| {
                let location = locations.get(location);
                self.pattern.is_match(&location.function)
                    || self.pattern.is_match(&location.users_function())
                    || self.pattern.is_match(&texts.of(location))
            })
    }

    /// Whether a thread matches: its `name[tid]`, and its process if there are several.
    pub(super) fn has_thread_of(&self, slot: &Slot) -> bool {
        self.has_thread(&slot.name, slot.tid, slot.pid)
    }

    /// The same by name and ids.
    fn has_thread(&self, name: &str, tid: u32, pid: u32) -> bool {
        let mut text = who(name, tid);
        if self.names_process {
            // A string takes all text.
            let _ = write!(text, " of process {pid}");
        }
        self.pattern.is_match(&text)
    }

    fn has_process(&self, pid: u32) -> bool {
        self.names_process && self.pattern.is_match(&format!("process {pid}"))
    }
}

/// A pattern, and the locks and threads among which it selects.
pub(super) struct Matching<'a> {
    pattern: Pattern<'a>,
    names: &'a LockNames<'a>,
}

impl<'a> Matching<'a> {
    pub(super) fn new(pattern: &'a Regex, names: &'a LockNames<'a>) -> Matching<'a> {
        let names_process = names.model.threads.iter().any(|thread| thread.pid != names.model.pid);
        Matching { pattern: Pattern { pattern, names_process }, names }
    }

    /// Whether a finding mentions something that matches.
    pub(super) fn has_finding(&self, finding: &Finding) -> bool {
        let about = &finding.mentions;
        about.locks.iter().any(|&id| self.has_lock(id))
            || about.threads.iter().any(|&id| self.has_thread(id))
            || about.locations.iter().any(|&id| self.has_location(id))
    }

    /// Whether a lock, one of its holders or one of its waiters matches. So do those on conditions and for units.
    pub(super) fn has_use(&self, lock: &Summary) -> bool {
        let of = |threads: &[ThreadId], location: Option<LocationId>| {
            location.is_some_and(|location| self.has_location(location))
                || threads.iter().any(|&id| self.has_thread(id))
        };
        self.has_lock(lock.lock)
            || lock.holders.iter().any(|group| of(&group.threads, group.location))
            || [&lock.waiters, &lock.condition_waiters, &lock.semaphore_waiters, &lock.futures_waiting]
                .into_iter()
                .flatten()
                .any(|group| of(&group.threads, Some(group.location)))
    }

    /// Whether a task matches, or the place where it is.
    pub(super) fn has_task(&self, id: ThreadId) -> bool {
        let thread = &self.names.model.threads[id];
        let place = thread.task.as_deref().and_then(|task| task_place(thread, task).location);
        self.has_thread(id) || place.is_some_and(|place| self.has_location(place))
    }

    fn has_lock(&self, id: LockId) -> bool {
        let lock = &self.names.model.locks[id];
        self.pattern.has_process(lock.pid) || self.pattern.pattern.is_match(&self.names.lock(lock))
    }

    fn has_thread(&self, id: ThreadId) -> bool {
        let thread = &self.names.model.threads[id];
        self.pattern.has_thread(&thread.name, thread.tid, thread.pid)
    }

    fn has_location(&self, id: LocationId) -> bool {
        let location = self.names.locations.get(id);
        let pattern = self.pattern.pattern;
        pattern.is_match(&location.full_function)
            || pattern.is_match(&location.users_function())
            || pattern.is_match(&self.names.texts.of(location))
    }
}
