//! Replays a thread's events in order: its steps, and what they say of each lock.
//!
//! It does not say which thread holds a lock now: the held-lock tables do. What the known words do not show is not
//! counted.
//!
//! * An `ACQUIRE_BEGIN` of a wrapper becomes a step only if no `TRY_FAILED` of that lock follows. If it is the last
//!   event, or only its `WAIT` follows, the held-lock table decides.
//! * A release whose acquisition was overwritten counts as no acquisition. The times in its event count.
//! * If words in the middle are not known, the steps before them are discarded, because a release may be among the
//!   missing words. The same holds for an event whose meaning is not known.
//! * What a thread records for a future that belongs to no recorded task counts for the lock and is no step of the
//!   thread: what the future did before, and does next, may be in the slots of others.

use foldhash::HashMap;
use read_rip_ring::events::{self, Event};
use read_rip_ring::{self as ring, HeldLock, HeldState, SequenceBits, SiteKind, Slot, SlotState};

use super::between::Before;
use super::ledger::Ledger;
use super::marks::{EventKind, Mark, Marks};
use super::{EndOfCondition, LockId, OfFutures, Signal, Step, StepKind, Steps, ThreadId};
use crate::locations::{self, Guards, LocationId, When};

#[derive(Debug, Default)]
pub(super) struct History {
    /// Oldest first, without gaps.
    pub(super) steps: Steps,
    pub(super) last: Option<LocationId>,
    /// Known words before the steps that were discarded because of a gap.
    pub(super) discarded_words: u64,
    /// The sequence from which on no word is missing, but for those that were just being written.
    pub(super) known_from: u64,
    /// The condition variable on which the thread waits, by its last event about one.
    pub(super) condition: Option<u64>,
    /// The last signal of each condition variable that it signalled.
    pub(super) signals: Vec<Signal>,
    /// The condition variables that it destroyed while a thread waited.
    pub(super) ended: Vec<EndOfCondition>,
    /// The acquisitions and waits of futures that belong to no recorded task.
    pub(super) of_futures: OfFutures,
    /// The sequence of its last wait at a channel before which it noted who uses the other side, and what it noted.
    pub(super) peer: Option<(u64, u64)>,
}

/// An acquisition that has begun and not ended.
#[derive(Clone, Copy, Debug)]
struct Open {
    lock: LockId,
    /// Whether a wrapper acquires the lock. A wrapper records no success.
    is_wrapper: bool,
    /// The index of the `ACQUIRE_BEGIN` step, if there is one.
    begin: Option<usize>,
    /// The index of the last step of the acquisition.
    last: usize,
    wait: Option<WaitBegin>,
    /// The acquisition began after this, ns since boot, as far as known.
    from_ns: Option<u64>,
    /// Whether a mark by hand recorded success.
    is_acquired: bool,
    acquired_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct WaitBegin {
    /// `None` if the time was not recorded.
    since_ns: Option<u64>,
}

/// Memory for the replays of all slots, one after the other. It is empty in between.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    steps: Vec<Step>,
    open: Vec<Open>,
    packed: Steps,
}

/// Replays a slot's events.
pub(super) fn replay(
    slot: &Slot,
    before: Option<&Before<'_>>,
    thread: ThreadId,
    marks: &mut Marks<'_, '_>,
    ledger: &mut Ledger<'_>,
    scratch: &mut Scratch,
) -> History {
    let (events, _) = events::events_with(slot, |pc| {
        let id = marks.find(slot.pid, pc);
        (marks.kind(id).operand_words, id)
    });
    // If all of the time counts, it does not matter when something was.
    let is_limited = ledger.limits.is_limited();
    let all = events.iter().map(|(event, _)| event);
    let whens = is_limited.then(|| locations::whens(slot, all, marks.locations, ledger.horizon));
    let mut whens = whens.into_iter().flatten();
    let mut replay = Replay {
        slot,
        before,
        thread,
        ledger,
        when: When::default(),
        steps: std::mem::take(&mut scratch.steps),
        dropped: Vec::new(),
        of_futures: OfFutures::default(),
        open: std::mem::take(&mut scratch.open),
        condition: None,
        signals: HashMap::default(),
        ended: Vec::new(),
        noted: None,
        peer: None,
    };
    let is_torn = events.is_empty() && slot.torn > 0;
    let known_from = if is_torn { slot.count } else { slot.words_from };
    let mut history = History { known_from, ..History::default() };
    let mut next = None;
    let mut guards = Guards::default();
    for (event, id) in &events {
        let mark = marks.of_event_in_order(slot, event, *id, &mut guards);
        let kind = marks.kind(*id);
        let begin = event.sequence - event.operands.len() as u64;
        replay.when = whens.next().unwrap_or_default();
        if next.unwrap_or(slot.words_from) != begin {
            history.known_from = begin;
        }
        if next.is_some_and(|next| next != begin) {
            replay.gap();
            history.discarded_words = begin - slot.words_from;
        }
        next = Some(event.sequence.wrapping_add(1));
        replay.event(event, kind, &mark);
        if kind.is_ambiguous && !event.operands.is_empty() {
            replay.gap();
            history.discarded_words = event.sequence - slot.words_from + 1;
            history.known_from = event.sequence + 1;
        }
        history.last = Some(mark.location);
    }
    replay.end();
    history.condition = replay.condition;
    history.signals = replay.signals.into_values().collect();
    history.ended = replay.ended;
    history.peer = replay.peer;
    history.of_futures = replay.of_futures;
    history.steps = scratch.packed.packed_anew(&replay.steps);
    (scratch.steps, scratch.open) = (replay.steps, replay.open);
    scratch.steps.clear();
    history
}

struct Replay<'r, 'l> {
    slot: &'r Slot,
    before: Option<&'r Before<'r>>,
    thread: ThreadId,
    ledger: &'r mut Ledger<'l>,
    /// When the present event was.
    when: When,
    steps: Vec<Step>,
    /// Indices of `ACQUIRE_BEGIN` steps whose acquisition failed, and of steps of futures that belong to no recorded
    /// task.
    dropped: Vec<usize>,
    of_futures: OfFutures,
    open: Vec<Open>,
    condition: Option<u64>,
    signals: HashMap<u64, Signal>,
    ended: Vec<EndOfCondition>,
    /// The sequence of the last event if it says who uses a channel, and what it says.
    noted: Option<(u64, u64)>,
    peer: Option<(u64, u64)>,
}

impl Replay<'_, '_> {
    /// Adds the step of an event, and follows the acquisition that it is about.
    fn event(&mut self, event: &Event, of: &EventKind, mark: &Mark) {
        let operand = |index: Option<u32>| {
            let word = self.slot.words.get(event.operands.start + index? as usize)?;
            Some(word.payload())
        };
        if let (Some(is_heard), Some(condition)) = (of.signal, operand(of.condition)) {
            // It is about no lock, so it is no step.
            self.signals.insert(condition, Signal { condition, is_heard, location: mark.location });
            return;
        }
        if let Some(peer) = of.peer {
            self.noted = operand(Some(peer)).map(|peer| (event.sequence, peer));
            return;
        }
        if let Some((sequence, peer)) = self.noted.take() {
            // It belongs to the wait that follows at once.
            let begin = event.sequence - event.operands.len() as u64;
            self.peer = Some((event.sequence, peer)).filter(|_| begin == sequence + 1).or(self.peer);
        }
        let time = |index| operand(index).and_then(|ticks| self.ledger.time_ns(self.slot, ticks));
        let (time_ns, since_ns) = (time(of.time), time(of.since));
        if let (true, Some(condition)) = (of.ends_condition, operand(of.condition)) {
            self.ended.push(EndOfCondition { condition, at_ns: time_ns, location: mark.location });
            return;
        }
        let kind = match mark.kind {
            _ if of.is_ambiguous => StepKind::Ambiguous,
            _ if of.is_blocked => StepKind::Blocked,
            SiteKind::LockAcquired if of.is_semaphore => StepKind::UnitTaken,
            SiteKind::LockReleased if of.is_semaphore => StepKind::UnitPosted,
            kind => step_kind(kind),
        };
        let address = operand(of.lock).map(|lock| if of.is_call { ring::call_lock(lock) } else { lock });
        let address =
            address.filter(|_| !matches!(kind, StepKind::Snap | StepKind::Blocked | StepKind::Progress));
        let lock = address.map(|address| self.ledger.lock(self.slot.pid, address, mark));
        let step = Step {
            sequence: event.sequence,
            kind,
            lock,
            is_shared: mark.flags.is_shared(),
            is_try: mark.flags.is_try(),
            is_readers_first: mark.flags.is_readers_first(),
            location: mark.location,
            time_ns,
            since_ns,
        };
        if self.slot.task.is_none() && mark.flags.is_of_future() {
            if matches!(kind, StepKind::AcquireBegin | StepKind::Blocked) {
                self.of_futures.add(kind == StepKind::AcquireBegin, mark.location);
            }
            self.dropped.extend(lock.map(|_| self.steps.len()));
        }
        self.steps.push(step);
        match kind {
            StepKind::ConditionWait => self.condition = operand(of.condition),
            StepKind::ConditionWoken => self.condition = None,
            _ => {}
        }
        if let Some(lock) = lock {
            self.follow(&step, lock, mark.flags.is_wrapper());
        }
    }

    /// Updates the open acquisitions of a lock after the last step.
    fn follow(&mut self, step: &Step, lock: LockId, is_wrapper: bool) {
        let last = self.steps.len() - 1;
        let wait = WaitBegin { since_ns: step.time_ns };
        let begun = Open {
            lock,
            is_wrapper,
            begin: None,
            last,
            wait: None,
            from_ns: self.when.after_ns,
            is_acquired: false,
            acquired_ns: None,
        };
        match step.kind {
            StepKind::AcquireBegin => {
                self.open.push(Open { is_wrapper: true, begin: Some(last), ..begun });
            }
            StepKind::Wait => match self.last_open(lock, |open| !open.is_acquired) {
                Some(at) => {
                    let open = &mut self.open[at];
                    open.wait = open.wait.or(Some(wait));
                    open.last = last;
                }
                None => self.open.push(Open { wait: Some(wait), ..begun }),
            },
            StepKind::Acquired => self.acquired(&begun, step.time_ns),
            StepKind::TryFailed => {
                let open = self.last_open(lock, |open| !open.is_acquired).map(|at| self.open.remove(at));
                let from_ns = open.map_or(self.when.after_ns, |open| open.from_ns);
                if self.ledger.limits.overlap(from_ns, self.when.before_ns) {
                    self.ledger.failed(lock);
                }
                self.dropped.extend(open.and_then(|open| open.begin));
            }
            StepKind::Released | StepKind::Destroyed => self.release(lock, step.time_ns, step.since_ns),
            StepKind::Initialised => {
                // What the thread did before was about another lock, which it never released.
                while let Some(at) = self.last_open(lock, |_| true) {
                    let open = self.open.remove(at);
                    self.count(&open, self.when.before_ns);
                }
                self.ledger.initialised(lock, step.location);
            }
            StepKind::ConditionWait => {
                // The hold is interrupted, so its length is not that from the acquisition to the release.
                if let Some(at) = self.last_open(lock, |_| true) {
                    self.open[at].acquired_ns = None;
                }
            }
            StepKind::UnitTaken
            | StepKind::UnitPosted
            | StepKind::ConditionWoken
            | StepKind::Snap
            | StepKind::Blocked
            | StepKind::Progress
            | StepKind::Ambiguous => {}
        }
    }

    /// A mark by hand records the success of an acquisition, which may have had no begin.
    fn acquired(&mut self, begun: &Open, time_ns: Option<u64>) {
        let at = self.last_open(begun.lock, |open| !open.is_acquired && !open.is_wrapper);
        let at = at.unwrap_or_else(|| {
            self.open.push(*begun);
            self.open.len() - 1
        });
        let open = &mut self.open[at];
        (open.is_acquired, open.acquired_ns, open.last) = (true, time_ns, begun.last);
        let open = *open;
        self.waited(&open, time_ns);
    }

    /// The last open acquisition of a lock that satisfies a condition.
    fn last_open(&self, lock: LockId, is_wanted: impl Fn(&Open) -> bool) -> Option<usize> {
        self.open.iter().rposition(|open| open.lock == lock && is_wanted(open))
    }

    fn release(&mut self, lock: LockId, time_ns: Option<u64>, since_ns: Option<u64>) {
        // Another future of a task may wait for it.
        let at =
            self.last_open(lock, |open| !self.waits_now(open)).or_else(|| self.last_open(lock, |_| true));
        let open = at.map(|at| self.open.remove(at));
        let since = since_ns.or(open.and_then(|open| open.acquired_ns));
        if let (Some(from), Some(to)) = (since, time_ns) {
            self.ledger.held(lock, from, to);
        }
        let Some(open) = open else { return };
        self.count(&open, self.when.before_ns);
        // The release event of a wrapper says when the wait ended and the hold began.
        if open.is_wrapper {
            self.waited(&open, since_ns);
        }
    }

    /// The wait of an acquisition ended with the lock.
    fn waited(&mut self, open: &Open, end_ns: Option<u64>) {
        if let (Some(from_ns), Some(to_ns)) = (open.wait.and_then(|wait| wait.since_ns), end_ns) {
            self.ledger.waited(open.lock, from_ns, to_ns);
        }
    }

    /// Counts an acquisition that did not fail, if a part of its use is in the time that counts: from its beginning to
    /// the release, which was not after `end_ns`.
    fn count(&mut self, open: &Open, end_ns: Option<u64>) {
        if (open.is_acquired || open.is_wrapper) && self.ledger.limits.overlap(open.from_ns, end_ns) {
            let is_new = self.before.is_some_and(|before| {
                let lock = self.ledger.locks[open.lock].address;
                let [begin, last] =
                    [open.begin.unwrap_or(open.last), open.last].map(|step| self.steps[step].sequence);
                before.is_new(lock, begin, last, open.is_acquired)
            });
            self.ledger.acquired(open.lock, self.thread, open.wait.is_some(), is_new);
        }
    }

    /// Discards the steps before missing words, or before an event whose meaning is not known.
    fn gap(&mut self) {
        let last = self.steps.len().wrapping_sub(1);
        let mut left = std::mem::take(&mut self.open);
        for open in left.drain(..) {
            // Whether the last attempt failed may be among the missing words.
            if open.is_acquired || open.last != last {
                self.count(&open, self.when.before_ns);
            }
        }
        self.open = left;
        self.steps.clear();
        self.dropped.clear();
    }

    fn end(&mut self) {
        let last = self.steps.len().wrapping_sub(1);
        let mut left = std::mem::take(&mut self.open);
        for open in left.drain(..) {
            // If another step of the thread follows, the attempt has not failed. A task may wait in another future.
            let is_over = open.last != last && !self.waits_now(&open);
            if open.is_acquired || is_over || self.holds_now(&open) {
                self.count(&open, None);
            } else {
                self.dropped.extend(open.begin);
            }
        }
        self.open = left;
        if !self.dropped.is_empty() {
            self.dropped.sort_unstable();
            let mut index = 0..;
            let dropped = &self.dropped;
            self.steps.retain(|_| index.next().is_none_or(|index| dropped.binary_search(&index).is_err()));
        }
    }

    /// Whether the held-lock table says that this attempt of a task goes on.
    fn waits_now(&self, open: &Open) -> bool {
        let address = self.ledger.locks[open.lock].address;
        let is_of_attempt = |sequence| {
            [open.begin.unwrap_or(open.last), open.last]
                .iter()
                .any(|&step| SequenceBits::of(self.steps[step].sequence) == sequence)
        };
        let mut waits = self.slot.held.iter().filter(|held| held.state == HeldState::Waiting);
        self.slot.task.is_some() && waits.any(|held| held.lock == address && is_of_attempt(held.sequence))
    }

    /// Whether the held-lock table says that this attempt has succeeded. The thread may hold the lock since an earlier
    /// acquisition too.
    fn holds_now(&self, open: &Open) -> bool {
        let address = self.ledger.locks[open.lock].address;
        let sequence = open.begin.map(|begin| SequenceBits::of(self.steps[begin].sequence));
        let is_of_attempt = |held: &&HeldLock| {
            held.lock == address && sequence.is_none_or(|sequence| held.sequence == sequence)
        };
        let mut states = self.slot.held.iter().filter(is_of_attempt).map(|held| held.state).peekable();
        if states.peek().is_none() {
            // Another thread has released the lock, and freed the entry. Only for a moment is there no entry because
            // the attempt failed, and its event does not follow yet.
            return self.slot.state == SlotState::Exited || self.ledger.locks[open.lock].is_handed_over;
        }
        states.all(|state| !matches!(state, HeldState::Acquiring | HeldState::Waiting))
    }
}

/// The step that an event is. An event of an unknown kind is a plain mark.
fn step_kind(kind: SiteKind) -> StepKind {
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
        SiteKind::LockInitialised => StepKind::Initialised,
        SiteKind::Snap
        | SiteKind::ConditionSignalled
        | SiteKind::ConditionUnheard
        | SiteKind::ConditionDestroyed
        | SiteKind::Event
        | SiteKind::SpanBegin
        | SiteKind::SpanEnd
        | SiteKind::ChannelPeer
        | SiteKind::Unknown(_) => StepKind::Snap,
    }
}
