//! When processes ended that this one waited for. It waits for none itself.

use std::collections::HashMap;
use std::time::Instant;

/// When processes ended, or at least when they still lived.
#[derive(Clone, Debug, Default)]
pub struct Ends {
    /// `None`: two processes had this pid, one after the other.
    by_pid: HashMap<u32, Option<Instant>>,
    /// When a process that made a ring was last seen alive.
    alive: HashMap<u32, Instant>,
}

impl Ends {
    /// Notes the end of a process.
    pub fn note(&mut self, pid: u32, at: Instant) {
        self.by_pid.entry(pid).and_modify(|known| *known = None).or_insert(Some(at));
    }

    /// Notes that a process was seen alive. Who notes it asks about one ring only, so that the pid is not another
    /// process's.
    pub fn note_alive(&mut self, pid: u32, at: Instant) {
        self.alive.insert(pid, at);
    }

    /// When a process was last seen alive.
    pub fn alive_at(&self, pid: u32) -> Option<Instant> {
        self.alive.get(&pid).copied()
    }

    /// When the last process of a ring ended; `None`: not known. `maker` made the ring, and the others recorded in it.
    ///
    /// The others that outlived their parents became children of this process, so their ends are known.
    /// Whoever is not known here ended before its parent did.
    pub fn last_of(&self, maker: u32, others: impl Iterator<Item = u32>) -> Option<Instant> {
        let mut last = (*self.by_pid.get(&maker)?)?;
        for end in others.filter_map(|pid| self.by_pid.get(&pid)) {
            last = last.max((*end)?);
        }
        Some(last)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_ring_ends_with_the_last_of_its_processes() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut ends = Ends::default();
        assert_eq!(ends.last_of(1, [].into_iter()), None);
        ends.note(1, after(1));
        ends.note(2, after(3));
        ends.note(3, after(2));
        assert_eq!(ends.last_of(1, [].into_iter()), Some(after(1)));
        assert_eq!(ends.last_of(1, [1, 2, 3, 4].into_iter()), Some(after(3)));
        assert_eq!(ends.last_of(4, [1].into_iter()), None, "it is not known when its maker ended");
    }

    #[test]
    fn a_pid_of_two_processes_says_nothing() {
        let mut ends = Ends::default();
        ends.note(1, Instant::now());
        ends.note(2, Instant::now());
        ends.note(2, Instant::now());
        assert_eq!(ends.last_of(2, [].into_iter()), None);
        assert_eq!(ends.last_of(1, [2].into_iter()), None);
    }
}
