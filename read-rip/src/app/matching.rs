//! `--match`: which locks and findings are shown.
//!
//! It reads the names that the text output shows, and full function names. It knows nothing about threads' histories:
//! `show` selects threads.

use regex::Regex;

use crate::findings::Finding;
use crate::locations::LocationId;
use crate::locks::{LockId, Summary, ThreadId};
use crate::report::LockNames;

/// A pattern, and the names that it is looked for in.
pub(super) struct Matching<'a> {
    pub(super) pattern: &'a Regex,
    pub(super) names: &'a LockNames<'a>,
}

impl Matching<'_> {
    /// Whether a finding mentions something that matches.
    pub(super) fn has_finding(&self, finding: &Finding) -> bool {
        let about = &finding.mentions;
        about.locks.iter().any(|&id| self.has_lock(id))
            || about.threads.iter().any(|&id| self.has_thread(id))
            || about.locations.iter().any(|&id| self.has_location(id))
    }

    /// Whether a lock, one of its holders or one of its waiters matches.
    pub(super) fn has_use(&self, lock: &Summary) -> bool {
        let of = |threads: &[ThreadId], location: Option<LocationId>| {
            location.is_some_and(|location| self.has_location(location))
                || threads.iter().any(|&id| self.has_thread(id))
        };
        self.has_lock(lock.lock)
            || lock.holders.iter().any(|group| of(&group.threads, group.location))
            || lock.waiters.iter().any(|group| of(&group.threads, Some(group.location)))
    }

    fn has_lock(&self, id: LockId) -> bool {
        self.pattern.is_match(&self.names.lock(&self.names.model.locks[id]))
    }

    fn has_thread(&self, id: ThreadId) -> bool {
        self.pattern.is_match(&self.names.thread(id))
    }

    fn has_location(&self, id: LocationId) -> bool {
        let location = self.names.locations.get(id);
        self.pattern.is_match(&location.full_function)
            || self.pattern.is_match(&self.names.texts.of(location))
    }
}
