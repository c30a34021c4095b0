//! Looks at a living ring several times a second, between two readings of it.

use std::time::Instant;

use foldhash::HashMap;
use read_rip_case::{Subject, now_ns};
use read_rip_report::{LockKey, ThreadKey};
use read_rip_ring::{self as ring, HeldLock, HeldState, Progress, Source};

use crate::top::Update;

/// A ring that is looked at again and again.
pub(super) struct Watch {
    source: Source,
    /// Only this process of the ring.
    pid: Option<u32>,
    /// When it was looked at last, and what was seen.
    last: Option<(Instant, Counts)>,
}

/// How far each slot's owner has come, by the slot and how many owners it has had.
type Counts = HashMap<(u64, u32), u64>;

impl Watch {
    /// `None` if this is no ring that a living process writes to.
    pub(super) fn of(subject: &Subject) -> Option<Watch> {
        let Subject::Ring { path, process } = subject else { return None };
        let source = Source::open(path).ok().filter(Source::may_change)?;
        ring::present_header(&source).ok()?;
        Some(Watch { source, pid: *process, last: None })
    }

    /// Looks at the ring now; `None` if it cannot be read any more.
    pub(super) fn update(&mut self) -> Option<Update> {
        let header = ring::present_header(&self.source).ok()?;
        let mut seen = ring::progress(&self.source, &header).ok()?;
        let taken = Instant::now();
        seen.retain(|of| self.pid.is_none_or(|pid| of.pid == pid));
        let mut update = Update { taken_ns: now_ns(), ..Update::default() };
        for of in &seen {
            add_locks(&mut update, of);
        }
        if let Some((at, counts)) = &self.last {
            let period_ns = u64::try_from(taken.duration_since(*at).as_nanos()).unwrap_or(u64::MAX);
            update.period_ns = Some(period_ns);
            for of in &seen {
                let before = counts.get(&(of.index, of.generation));
                let advanced = before.map_or(0, |before| of.count.saturating_sub(*before));
                if advanced > 0 {
                    *update.advanced.entry(key(of)).or_default() += advanced;
                }
            }
        }
        let counts = seen.iter().map(|of| ((of.index, of.generation), of.count));
        self.last = Some((taken, counts.collect()));
        Some(update)
    }
}

fn key(of: &Progress) -> ThreadKey {
    ThreadKey { pid: of.pid, tid: of.tid }
}

fn add_locks(update: &mut Update, of: &Progress) {
    let (mut is_waiting, mut is_holding) = (false, false);
    for (index, held) in of.held.iter().enumerate() {
        let of_lock = || LockKey { pid: of.pid, address: held.lock };
        match held.state {
            HeldState::Waiting => {
                is_waiting = true;
                // Several futures of a task may wait for one lock.
                let is_same = |other: &HeldLock| (other.state, other.lock) == (held.state, held.lock);
                let is_counted = of.held[..index].iter().any(is_same);
                update.locks.entry(of_lock()).or_default().waiters += usize::from(!is_counted);
            }
            HeldState::Held => {
                is_holding = true;
                update.locks.entry(of_lock()).or_default().holder.get_or_insert(key(of));
            }
            _ => {}
        }
    }
    update.waiting += usize::from(is_waiting);
    update.holding += usize::from(is_holding);
}

#[cfg(test)]
#[path = "update_tests.rs"]
mod tests;
