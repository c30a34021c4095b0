//! A thread's events, one after the other: the steps it took, and what they say of each lock.
//!
//! It does not say who has a lock now: that is in the tables. What the known words do not show is not counted.
//!
//! * A wrapper's `TAKES` becomes a step only if no `TRY_FAILED` of that lock follows. Where it is the last event (or
//!   only its `WAIT` follows), the table of held locks decides.
//! * A release whose acquisition was overwritten counts as no acquisition; the times that it brings along count.
//! * Where words in the middle are not known, steps before them are left out: a release may be among what is
//!   missing. So may what was done by an event of which it is not known what it means.

use super::ledger::Ledger;
use super::marks::{Mark, Marks};
use super::{LockId, Step, StepKind, ThreadId};
use crate::events::{self, Event};
use crate::ring::{HeldLock, HeldState, SequenceBits, SiteKind, Slot};

/// What became of a thread's events.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Oldest first, without gaps.
    pub(super) steps: Vec<Step>,
    /// Where the thread was last.
    pub(super) last: Option<crate::locations::LocationId>,
    /// Known words before the steps that a gap has made worthless.
    pub(super) given_up: u64,
}

/// An acquisition that has begun.
#[derive(Clone, Copy, Debug)]
struct Open {
    lock: LockId,
    /// By a wrapper, which says nothing when it has got the lock.
    is_wrapper: bool,
    /// Where it began, among the steps, if that is a `TAKES`.
    takes: Option<usize>,
    /// The last step that was about it.
    last: usize,
    /// It waited; since when.
    waited: Option<Option<u64>>,
    /// It has said that it has the lock.
    is_acquired: bool,
    acquired_ns: Option<u64>,
}

/// Replays a slot's events.
pub(super) fn replay(
    slot: &Slot,
    thread: ThreadId,
    marks: &mut Marks<'_, '_>,
    ledger: &mut Ledger<'_>,
) -> History {
    let (events, _) = events::events(slot, |pc| marks.at(slot.pid, pc).operand_words);
    let mut replay = Replay {
        slot,
        thread,
        ledger,
        steps: Vec::with_capacity(events.len()),
        dropped: Vec::new(),
        open: Vec::new(),
    };
    let mut history = History::default();
    let mut next = None;
    for event in &events {
        let mark = marks.of(slot, event);
        let begin = event.sequence - event.operands.len() as u64;
        if next.is_some_and(|next| next != begin) {
            replay.gap();
            history.given_up = begin - slot.words_from;
        }
        next = Some(event.sequence.wrapping_add(1));
        replay.step(event, &mark);
        if mark.is_ambiguous && !event.operands.is_empty() {
            replay.gap();
            history.given_up = event.sequence - slot.words_from + 1;
        }
        history.last = Some(mark.location);
    }
    replay.end();
    history.steps = replay.steps;
    history
}

struct Replay<'r, 'l> {
    slot: &'r Slot,
    thread: ThreadId,
    ledger: &'r mut Ledger<'l>,
    steps: Vec<Step>,
    /// Steps that have turned out to be none.
    dropped: Vec<usize>,
    open: Vec<Open>,
}

impl Replay<'_, '_> {
    fn step(&mut self, event: &Event, mark: &Mark) {
        let operand = |at: Option<u32>| {
            let word = self.slot.words.get(event.operands.start + at? as usize)?;
            Some(word.payload())
        };
        let time = |at| operand(at).and_then(|ticks| self.ledger.time_ns(self.slot, ticks));
        let (time_ns, since_ns) = (time(mark.time), time(mark.since));
        let kind = if mark.is_ambiguous { StepKind::Ambiguous } else { kind(mark.kind) };
        let address = operand(mark.lock).filter(|_| !matches!(kind, StepKind::Snap | StepKind::Progress));
        let lock = address.map(|address| self.ledger.lock(self.slot.pid, address, mark));
        let index = self.steps.len();
        self.steps.push(Step {
            sequence: event.sequence,
            kind,
            lock,
            is_shared: mark.flags.is_shared(),
            is_try: mark.flags.is_try(),
            location: mark.location,
            time_ns,
            since_ns,
        });
        let Some(lock) = lock else { return };
        let begun = Open {
            lock,
            is_wrapper: mark.flags.is_wrapper(),
            takes: None,
            last: index,
            waited: None,
            is_acquired: false,
            acquired_ns: None,
        };
        match kind {
            StepKind::AcquireBegin => self.open.push(Open { is_wrapper: true, takes: Some(index), ..begun }),
            StepKind::Wait => match self.last_open(lock, |open| !open.is_acquired) {
                Some(at) => {
                    let open = &mut self.open[at];
                    open.waited = open.waited.or(Some(time_ns));
                    open.last = index;
                }
                None => self.open.push(Open { waited: Some(time_ns), ..begun }),
            },
            StepKind::Acquired => {
                let at = self.last_open(lock, |open| !open.is_acquired && !open.is_wrapper);
                let at = at.unwrap_or_else(|| {
                    self.open.push(begun);
                    self.open.len() - 1
                });
                let open = &mut self.open[at];
                (open.is_acquired, open.acquired_ns, open.last) = (true, time_ns, index);
                if let (Some(Some(from)), Some(to)) = (open.waited, time_ns) {
                    self.ledger.waited(lock, to.saturating_sub(from));
                }
            }
            StepKind::TryFailed => {
                self.ledger.failed(lock);
                if let Some(at) = self.last_open(lock, |open| !open.is_acquired) {
                    self.dropped.extend(self.open.remove(at).takes);
                }
            }
            StepKind::Released | StepKind::Destroyed => self.release(lock, time_ns, since_ns),
            StepKind::ConditionWait => {
                if let Some(at) = self.last_open(lock, |_| true) {
                    self.open[at].acquired_ns = None;
                }
            }
            StepKind::ConditionWoken | StepKind::Snap | StepKind::Progress | StepKind::Ambiguous => {}
        }
    }

    /// The last acquisition of a lock that has begun and not ended.
    fn last_open(&self, lock: LockId, is_meant: impl Fn(&Open) -> bool) -> Option<usize> {
        self.open.iter().rposition(|open| open.lock == lock && is_meant(open))
    }

    fn release(&mut self, lock: LockId, time_ns: Option<u64>, since_ns: Option<u64>) {
        let open = self.last_open(lock, |_| true).map(|at| self.open.remove(at));
        let since = since_ns.or(open.and_then(|open| open.acquired_ns));
        if let (Some(from), Some(to)) = (since, time_ns) {
            self.ledger.held(lock, to.saturating_sub(from));
        }
        let Some(open) = open else { return };
        self.count(&open);
        if let (true, Some(Some(from)), Some(to)) = (open.is_wrapper, open.waited, since_ns) {
            self.ledger.waited(lock, to.saturating_sub(from));
        }
    }

    /// An acquisition that did not fail.
    fn count(&mut self, open: &Open) {
        if open.is_acquired || open.is_wrapper {
            self.ledger.acquired(open.lock, self.thread, open.waited.is_some());
        }
    }

    /// Words are missing, or what they mean: what happened is not known.
    fn gap(&mut self) {
        let last = self.steps.len().wrapping_sub(1);
        for open in std::mem::take(&mut self.open) {
            // Whether the last one failed is among what is missing.
            if open.is_acquired || open.last != last {
                self.count(&open);
            }
        }
        self.steps.clear();
        self.dropped.clear();
    }

    fn end(&mut self) {
        let last = self.steps.len().wrapping_sub(1);
        for open in std::mem::take(&mut self.open) {
            // After any other step of the thread, the attempt has not failed.
            if open.is_acquired || open.last != last || self.has_now(&open) {
                self.count(&open);
            } else {
                self.dropped.extend(open.takes);
            }
        }
        if !self.dropped.is_empty() {
            self.dropped.sort_unstable();
            let mut index = 0..;
            let dropped = &self.dropped;
            self.steps.retain(|_| index.next().is_none_or(|index| dropped.binary_search(&index).is_err()));
        }
    }

    /// Whether the table says that this attempt has succeeded. The thread may have the lock from before, too.
    fn has_now(&self, open: &Open) -> bool {
        let address = self.ledger.locks[open.lock].address;
        let sequence = open.takes.map(|takes| SequenceBits::of(self.steps[takes].sequence));
        let is_meant = |held: &&HeldLock| {
            held.lock == address && sequence.is_none_or(|sequence| held.sequence == sequence)
        };
        let mut states = self.slot.held.iter().filter(is_meant).map(|held| held.state).peekable();
        states.peek().is_some()
            && states.all(|state| !matches!(state, HeldState::Acquiring | HeldState::Waiting))
    }
}

/// What kind of step an event is; kinds of later versions are plain marks.
fn kind(kind: SiteKind) -> StepKind {
    match kind {
        SiteKind::Progress => StepKind::Progress,
        SiteKind::LockWait => StepKind::Wait,
        SiteKind::LockAcquired => StepKind::Acquired,
        SiteKind::LockReleased => StepKind::Released,
        SiteKind::LockTryFailed => StepKind::TryFailed,
        SiteKind::LockAcquireBegin => StepKind::AcquireBegin,
        SiteKind::ConditionWait => StepKind::ConditionWait,
        SiteKind::ConditionWoken => StepKind::ConditionWoken,
        SiteKind::LockDestroyed => StepKind::Destroyed,
        SiteKind::Snap | SiteKind::Unknown(_) => StepKind::Snap,
    }
}
