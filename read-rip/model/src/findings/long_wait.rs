//! Long waits and pile-ups: threads wait for a lock whose ownership stands still.
//!
//! # Question
//!
//! Which threads wait for long, or in a crowd, for a lock that its holder keeps, or that nobody is known to hold?
//!
//! # Method
//!
//! All threads that wait behind one root, through however many locks, are one finding about that root
//! (see `standstill`). It is a *long wait* from
//!
//! * a tenth of the threshold on (1 s), if the root holds the lock and recorded nothing between the readings;
//! * the threshold on (10 s) otherwise: the root works on, the lock changes hands, or no recorded thread holds it.
//!
//! It is a *pile-up* before that time, if the root keeps the lock, at least four threads wait and they are more than
//! half of those that use these locks, and they are sixteen or more, or one of them has waited for 100 ms. Threads
//! that never use the locks do not count.
//!
//! The evidence says what the root does: it waits on a condition variable, semaphore, barrier or
//! channel, for the end of a thread, or for something that is not
//! recorded, or works. Threads that wait on condition variables whose locks the waiting threads have used may wait for
//! those; they are counted too. The first wait bounds the time of the hold from below, unless a history shows a release
//! that may be later.
//!
//! The end of a killed process is not recorded. Lengths of its waits are known from below only, up to the last recorded
//! moment. When somebody looks says nothing, so it decides nothing. A wait that may be short or long is judged by the
//! past of the lock, and reported with a doubt:
//!
//! * Threads may have waited by chance, if the known histories show many short waits for the lock, or that it changed
//!   hands since the first thread began to wait, or that many holds or half of them went on from where the holder was
//!   last, or that eight were there before nobody held it. Sixteen of the threads are a pile-up then, and fewer are no
//!   finding. `balance` says what is known of them.
//! * They are a long wait all the same if holds of the lock have ended, and none of them passed the place where the
//!   holder was last: it was on a way that nobody is known to have left (see `passages`). So they are if the first wait
//!   has lasted for at least 100 ms, and ten times as long as nine in ten of at least ten known waits.
//!
//! The kernel knows more of the holder of a living process: if it was ready to run in most of the time between the two
//! readings, and hardly ran, while it kept the lock and a thread waited for it, that is measured, however short the
//! waits: a `starved-holder`.
//!
//! # Blind spots
//!
//! A slow operation under a lock is a long wait too, so the finding is only suspected. Idle pools look like one: see
//! `idle_pool`.
//!
//! # Example output
//!
//! ```text
//! suspected long-wait: 40 threads wait for CACHE, held by flusher[88], which recorded nothing for 200 ms
//!     flusher[88] has held it for at least 13 s, acquired at flush cache.rs:210, last at sync cache.rs:220
//!     worker[90] waits for it at get cache.rs:91, for 13 s
//! ```

use std::num::NonZeroU64;

use foldhash::HashSet;
use read_rip_ring::{LockType, TaskKind};
use serde::Serialize;

use super::finding::locks_of;
use super::going_on::may_end;
use super::idle_pool::IdlePlaces;
use super::nobody_left::asleep;
use super::passages::AllPassages;
use super::pasts::{HeldSince, Pasts};
use super::standstill::{self, Group, Root};
use super::view::Length;
use super::waits_for::grade_owner;
use super::words::{lasting, limit};
use super::{
    About, Advice, Analysis, Asleep, Basis, Confidence, Doubt, Evidence, Finding, HoldFact, JoinFact, Kind,
    LockHistory, Paragraph, Passages, SuspendedFact, View, Waiters, Words, idle_pool, stall, task_waits,
};
use crate::locations::LocationId;
use crate::locks::{Doing, Hold, LockId, Quantiles, ThreadLocks};
use crate::threads::ThreadState;
use crate::units::{agree, counted, lasted};

/// See the file's description.
pub(super) struct LongWait;

/// If the holder does nothing, one part in this many of the threshold is long.
const SILENT_PART: u64 = 10;
/// Minimum number of waiting threads of a pile-up.
const CROWD_MIN: usize = 4;
/// From this number on, the length of the waits does not matter.
const CROWD_MANY: usize = 16;
/// The first wait of a smaller pile-up is at least this long, ns.
const CROWD_WAIT_NS: u64 = 100_000_000;
/// A wait that has lasted for this many times as long as nine in ten others is out of the ordinary.
const UNUSUAL_FACTOR: u64 = 10;
/// Fewer known waits do not say how long nine in ten are.
const WAITS_MIN: usize = 10;
/// If so many acquisitions are known and nobody holds the lock, it may have been released a moment before.
const ACQUIRED_MANY: u64 = 8;
/// One in this many known acquisitions came after a wait: a thread that waits for this lock is nothing unusual.
const USUAL_PART: u64 = 16;
/// At most this many findings: those that most threads suffer from.
const FINDINGS_MAX: usize = 50;

/// Threads that wait for a lock whose ownership stands still.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Standstill {
    /// The lock.
    pub lock: LockId,
    /// The threads that wait for this very lock.
    pub waiters: Waiters,
    /// How many threads wait for it, or for locks that those threads hold, and so on.
    pub blocked: usize,
    /// For how many locks they wait.
    pub locks: usize,
    /// How many more threads wait on condition variables whose locks these threads have used.
    pub on_conditions: usize,
    /// For how long the first of all these threads has waited, ns. If the end of the process is not known: at least.
    #[serde(rename = "longest_wait_ns", skip_serializing_if = "Option::is_none")]
    pub longest_ns: Option<u64>,
    /// The holder; `None`: no recorded thread is known to hold the lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<StandingHolder>,
    /// The future that holds the lock, if it belongs to no recorded task: the hold has the thread that polled it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub future: Option<Box<HoldFact>>,
    /// The known acquisitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<Box<LockHistory>>,
    /// How many more groups of waiting threads no finding describes. Only the last finding counts them.
    pub unlisted: usize,
}

/// A holder that keeps its lock, and what it does.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StandingHolder {
    /// The hold.
    pub hold: HoldFact,
    /// It has returned from the function that acquired the lock, and that elsewhere releases it.
    #[serde(rename = "left_function", skip_serializing_if = "std::ops::Not::not")]
    pub has_left: bool,
    /// For how long at least it has held the lock, ns: since the first of the threads that wait for it began to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_at_least_ns: Option<u64>,
    /// Whether it held the lock at both readings, and in between; `None` without two.
    #[serde(rename = "held_throughout", skip_serializing_if = "Option::is_none")]
    pub is_steady: Option<bool>,
    /// How many words it recorded between two readings; `None` without two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words_recorded: Option<u64>,
    /// The time between the two readings, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<u64>,
    /// If it recorded nothing between the readings: for how long it has recorded nothing, ns, at least. A thread that
    /// does not run records nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent_ns: Option<u64>,
    /// Where it was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LocationId>,
    /// The condition variable, semaphore, barrier or channel on which it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleep: Option<HolderSleep>,
    /// The thread whose end it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join: Option<JoinFact>,
    /// It is a task that is suspended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended: Option<Box<SuspendedFact>>,
    /// The known holds that have ended, and how many of them passed the place where the holder was last. Absent unless
    /// the process died at an unknown moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passages: Option<Passages>,
}

/// A wait of a holder on a condition variable, semaphore, barrier or channel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HolderSleep {
    /// The lock that it has released for the condition variable; or the semaphore, barrier or channel.
    pub lock: LockId,
    /// On what it waits.
    pub what: Asleep,
    /// Where it waits.
    pub location: LocationId,
    /// The wait ends by itself after a time.
    #[serde(rename = "timed")]
    pub is_timed: bool,
    /// For how long; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
}

/// A lock that a thread of a living process keeps, while others have waited for it for long, and not yet for the
/// threshold. The holder goes on meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeptLock {
    /// The lock.
    pub lock: LockId,
    /// The hold.
    pub hold: HoldFact,
    /// Where the holder is, or was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<LocationId>,
    /// How many threads wait for it, or for locks that those threads hold, and so on.
    pub waiting: usize,
    /// For how long the first of them has waited, ns.
    pub for_ns: u64,
    /// The wait from which on this is a finding, ns.
    pub limit_ns: u64,
}

impl KeptLock {
    /// The one for which threads have waited longest, if no finding explains a wait.
    pub(super) fn of(view: &View<'_>) -> Option<KeptLock> {
        view.now.window_ns.filter(|_| !view.now.is_final)?;
        let passages = &AllPassages::of(view, std::iter::empty());
        let groups = unexplained(view, &[]).into_iter();
        let judges = groups.map(|group| Judge { view, group, pasts: view.pasts(), passages });
        judges.filter_map(|judge| judge.kept_lock()).max_by_key(|kept| kept.for_ns)
    }
}

impl Analysis for LongWait {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let groups = unexplained(view, found);
        let pasts = view.pasts();
        let at_death = groups.iter().filter(|_| view.now.is_end_unknown);
        let passages = &AllPassages::of(view, at_death.filter_map(|group| group.hold(view)));
        let mut judges: Vec<(Judge<'_, '_>, Verdict)> = groups
            .into_iter()
            .map(|group| Judge { view, group, pasts, passages })
            .filter_map(|judge| Some((judge, judge.verdict()?)))
            .collect();
        judges.sort_by_key(|(judge, _)| std::cmp::Reverse(judge.group.threads.len()));
        let unlisted = judges.len().saturating_sub(FINDINGS_MAX);
        judges.truncate(FINDINGS_MAX);
        let mut new: Vec<Finding> = judges.iter().map(|(judge, verdict)| judge.finding(verdict)).collect();
        if let Some(Evidence::Standstill(last)) = new.last_mut().map(|finding| &mut finding.evidence) {
            last.unlisted = unlisted;
        }
        found.extend(new);
    }
}

/// The groups that no finding explains, and no idle pool.
fn unexplained<'v>(view: &'v View<'_>, found: &[Finding]) -> Vec<&'v Group> {
    let kinds =
        [Kind::Deadlock, Kind::Futurelock, Kind::NeverWoken, Kind::Unreleased, Kind::LostOwner, Kind::Convoy];
    let mut explained = locks_of(found, &kinds);
    explained.extend(overtaken(view, found));
    let is_new = |group: &Group| !group.locks.iter().any(|lock| explained.contains(lock));
    let judged = standstill::groups(view).iter().zip(idle_pool::which_are_pools(view));
    let judged = judged.filter(|&(group, &is_pool)| !is_pool && is_new(group) && !may_end(view, group));
    let (idle, is_stalled) = (IdlePlaces::of(view), stall::stalled(view).is_some());
    // Without a record, it is only known where threads wait, and since when.
    let is_recorded =
        |group: &Group| group.first_wait_ns(view).is_some() && !view.now.locks[group.lock].is_from_memory;
    let is_unexplained = |group: &&Group| {
        is_recorded(group)
            || !(idle.has_all(view, &group.threads) || is_stalled && group.hold(view).is_none())
    };
    judged.map(|(group, _)| group).filter(is_unexplained).collect()
}

/// The locks whose waiting threads are overtaken by others, or most of them. If a few are, the others wait for
/// something else: a holder that has kept the lock since.
fn overtaken(view: &View<'_>, found: &[Finding]) -> impl Iterator<Item = LockId> {
    found.iter().filter_map(|finding| match &finding.evidence {
        Evidence::Overtaken(starved) if 2 * starved.threads > view.waits(starved.lock).count() => {
            Some(starved.lock)
        }
        _ => None,
    })
}

/// What a group is.
#[derive(Clone, Copy)]
struct Verdict {
    kind: Kind,
    /// How long its first wait is.
    length: Length,
    /// The holder keeps the lock and recorded nothing between the readings.
    is_silent: bool,
}

/// Judges one group.
#[derive(Clone, Copy)]
struct Judge<'j, 'v> {
    view: &'j View<'v>,
    group: &'j Group,
    pasts: &'j Pasts,
    passages: &'j AllPassages,
}

impl Judge<'_, '_> {
    /// What the group is; `None` if it is no finding.
    fn verdict(&self) -> Option<Verdict> {
        let (view, group) = (self.view, self.group);
        let hold = group.hold(view);
        let keeps = hold.is_some_and(|hold| self.is_kept(hold));
        let holder = hold.map(|hold| &view.now.threads[hold.thread]);
        let silence_ns = view.threshold_ns / SILENT_PART;
        // Nothing records whether it released the lock before it fell asleep last.
        let has_run_lately = |holder: &ThreadLocks| {
            let seen = holder.seen.filter(|_| holder.slot.is_none());
            seen.is_some_and(|seen| match seen.is_still {
                Some(true) => seen.asleep_ns.is_some_and(|asleep_ns| asleep_ns.get() < silence_ns),
                Some(false) => seen.doing != Doing::Runs,
                None => false,
            })
        };
        // After a death, nothing shows that the holder has kept the lock since.
        let may_have_moved = || self.pasts.get(group.lock).is_some_and(|past| past.has_undated_release);
        let is_silent = keeps
            && !(view.now.is_end_unknown && may_have_moved())
            && holder.is_some_and(|holder| {
                holder.advanced.is_none_or(|words| words == 0) && !has_run_lately(holder)
            });
        let limit_ns = if is_silent { silence_ns } else { view.threshold_ns };
        let still_ns = self.still_since_ns();
        let length = view.length(still_ns, limit_ns);
        let is_crowd = keeps && self.is_crowd(hold, still_ns);
        // What a future of no task does with the lock is not known: it may hold it for a moment.
        let is_unheld = || {
            let has_future = view.now.locks[group.lock].holds_of_futures().next().is_some();
            // The last holder has just released it, and a thread that waits is about to acquire it.
            let is_on_its_way = view.now.is_end_unknown && view.now.has_all_holds_of(group.lock);
            hold.is_none() && !has_future && !is_on_its_way
        };
        let kind = match length {
            _ if self.is_starved(hold, holder) => Kind::StarvedHolder,
            Length::Long => Kind::LongWait,
            Length::Unknown if (keeps || is_unheld()) && !self.may_be_chance(hold) => Kind::LongWait,
            _ if is_crowd => Kind::PileUp,
            _ => return None,
        };
        Some(Verdict { kind, length, is_silent })
    }

    fn finding(&self, &Verdict { kind, length, is_silent }: &Verdict) -> Finding {
        let (view, group) = (self.view, self.group);
        let hold = group.hold(view);
        let holder = hold.map(|hold| &view.now.threads[hold.thread]);
        let first_ns = group.first_wait_ns(view);
        let evidence = self.evidence(hold, first_ns);
        let advice = self.advice(hold, holder, is_silent, &evidence);
        let sleeps = evidence.holder.as_ref().and_then(|holder| holder.sleep.as_ref());
        let is_nested_monitor = sleeps.is_some_and(|sleep| sleep.what == Asleep::Condition);
        let mut finding = Finding::new(kind, Confidence::Suspected, evidence, advice);
        // Whoever should signal may need the lock that the holder keeps meanwhile: a nested monitor.
        finding.advice.extend(is_nested_monitor.then_some(Advice::NoLocksInWait));
        finding.since_ns = first_ns;
        finding.threads_hurt = group.threads.len();
        finding.doubts = self.doubts(kind, length, holder);
        finding
    }

    /// Whether one thread kept the lock: from one reading to the other, or in a dead process, as far as the record
    /// shows nothing else.
    fn is_kept(&self, hold: &Hold) -> bool {
        if self.view.now.window_ns.is_some() && !self.view.now.is_final {
            return hold.is_steady;
        }
        if self.view.now.is_end_unknown {
            return true;
        }
        let first_ns = self.group.first_wait_ns(self.view);
        let released_ns = self.pasts.get(hold.lock).and_then(|past| past.released_ns);
        match (hold.since_ns, released_ns, first_ns) {
            (Some(since_ns), _, Some(first_ns)) => since_ns <= first_ns,
            (None, Some(released_ns), Some(first_ns)) => released_ns <= first_ns,
            _ => true,
        }
    }

    /// The lock of the group, if its holder has kept it for long.
    fn kept_lock(&self) -> Option<KeptLock> {
        let Judge { view, group, .. } = *self;
        let hold = group.hold(view).filter(|hold| self.is_kept(hold))?;
        let for_ns = view.ago_ns(group.first_wait_ns(view))?;
        let limit_ns = view.threshold_ns;
        let holder = &view.now.threads[hold.thread];
        (for_ns >= limit_ns / SILENT_PART).then(|| KeptLock {
            lock: group.lock,
            hold: view.hold_fact(hold),
            at: holder.last.or_else(|| holder.seen?.place),
            waiting: group.threads.len(),
            for_ns,
            limit_ns,
        })
    }

    /// The moment from which threads have waited and the lock has not changed hands, as far as is known, ns since boot.
    /// Before a death at an unknown moment, that is the last known change of hands, if it came after the first wait.
    fn still_since_ns(&self) -> Option<u64> {
        let first_ns = self.group.first_wait_ns(self.view)?;
        let moved_ns = self.pasts.get(self.group.lock).and_then(|past| past.moved_ns);
        Some(first_ns.max(moved_ns.filter(|_| self.view.now.is_end_unknown).unwrap_or(first_ns)))
    }

    /// Whether the holder kept the lock between the readings, threads waited for it meanwhile, and the kernel gave the
    /// holder hardly any processor.
    fn is_starved(&self, hold: Option<&Hold>, holder: Option<&ThreadLocks>) -> bool {
        let view = self.view;
        let starves = holder.and_then(|holder| holder.seen).is_some_and(|seen| seen.doing == Doing::Starves);
        let is_steady = |hold: &Hold| {
            let waiters = &view.now.locks[hold.lock].waiters;
            hold.is_steady && waiters.iter().any(|wait| wait.is_steady)
        };
        starves && view.now.window_ns.is_some() && hold.is_some_and(is_steady)
    }

    /// Whether the group is a pile-up, if its lock is kept.
    fn is_crowd(&self, hold: Option<&Hold>, still_ns: Option<u64>) -> bool {
        let count = self.group.threads.len();
        let is_long = || match self.view.length(still_ns, CROWD_WAIT_NS) {
            Length::Long => true,
            Length::Short => false,
            Length::Unknown => !self.may_be_chance(hold),
        };
        count >= CROWD_MIN && count * 2 > self.users() && (count >= CROWD_MANY || is_long())
    }

    /// How many threads use the locks of the group.
    fn users(&self) -> usize {
        let users = self.group.locks.iter().filter_map(|&lock| self.pasts.get(lock)).map(|past| &past.users);
        match self.group.locks.len() {
            1 => users.map(Vec::len).sum(),
            _ => users.flatten().collect::<HashSet<_>>().len(),
        }
    }

    /// Whether threads that wait for the lock for a time that is not known may do so by chance.
    fn may_be_chance(&self, hold: Option<&Hold>) -> bool {
        let passages = hold.and_then(|hold| self.passages.get(hold.lock)).unwrap_or_default();
        let is_familiar = match hold {
            Some(_) => passages.is_usual(),
            None => self.view.now.locks[self.group.lock].record.acquisitions >= ACQUIRED_MANY,
        };
        !passages.is_new()
            && (self.is_usual() || self.has_moved() || is_familiar)
            && !self.is_out_of_the_ordinary()
    }

    /// Whether the lock is known to have changed hands since the first of the threads began to wait.
    fn has_moved(&self) -> bool {
        self.still_since_ns() > self.group.first_wait_ns(self.view)
    }

    /// Whether the first wait has lasted for long, and far longer than the known waits for the lock.
    fn is_out_of_the_ordinary(&self) -> bool {
        let known_ns = &self.view.now.locks[self.group.lock].record.waits_ns;
        let waits = Quantiles::of(known_ns).filter(|_| known_ns.len() >= WAITS_MIN);
        let waited_ns = self.view.ago_ns(self.still_since_ns());
        waits.zip(waited_ns).is_some_and(|(waits, waited_ns)| {
            waited_ns >= CROWD_WAIT_NS.max(waits.p90_ns.saturating_mul(UNUSUAL_FACTOR))
        })
    }

    /// Whether short waits for the lock are nothing unusual.
    fn is_usual(&self) -> bool {
        let record = &self.view.now.locks[self.group.lock].record;
        let is_short = Quantiles::of(&record.waits_ns)
            .is_none_or(|waits| waits.p90_ns < self.view.threshold_ns / SILENT_PART);
        is_short && record.contended >= 2 && record.contended * USUAL_PART >= record.acquisitions
    }

    fn evidence(&self, hold: Option<&Hold>, first_ns: Option<u64>) -> Standstill {
        let (view, group) = (self.view, self.group);
        let direct = view.waiters(group.lock);
        Standstill {
            lock: group.lock,
            waiters: direct,
            blocked: group.threads.len(),
            locks: group.locks.len(),
            on_conditions: self.on_conditions(),
            longest_ns: view.ago_ns(first_ns),
            holder: hold.map(|hold| self.holder(hold)),
            future: self.future().filter(|_| hold.is_none()).map(Box::new),
            history: view.lock_history(group.lock).map(Box::new),
            unlisted: 0,
        }
    }

    /// A future that holds the lock throughout, and belongs to no recorded task.
    fn future(&self) -> Option<HoldFact> {
        let hold = self.view.now.locks[self.group.lock].holds_of_futures().find(|hold| hold.is_steady)?;
        Some(self.view.hold_fact(hold))
    }

    fn holder(&self, hold: &Hold) -> StandingHolder {
        let view = self.view;
        let thread = &view.now.threads[hold.thread];
        let bound_ns = match self.pasts.held_since(view.now, hold) {
            Some(HeldSince::OrEarlier(since_ns)) => Some(since_ns),
            Some(HeldSince::About(_)) | None => None,
        };
        StandingHolder {
            hold: view.hold_fact(hold),
            has_left: idle_pool::has_left(view, hold),
            held_at_least_ns: view.ago_ns(hold.since_ns.or(bound_ns)),
            is_steady: (view.now.window_ns.is_some() && !view.now.is_final).then_some(hold.is_steady),
            words_recorded: thread.advanced,
            window_ns: view.now.window_ns,
            silent_ns: thread.advanced.filter(|&words| words == 0).and(
                thread.seen.and_then(|seen| seen.asleep_ns).map(NonZeroU64::get).max(view.now.window_ns),
            ),
            last: thread.last,
            passages: self.passages.get(hold.lock).filter(|of| of.ended > 0),
            suspended: task_waits::suspended(view, hold.thread)
                .filter(|_| thread.sleep.is_none())
                .map(Box::new),
            join: view.join(hold.thread).map(|join| view.join_fact(join)),
            sleep: thread.sleep.as_ref().map(|sleep| HolderSleep {
                lock: sleep.lock,
                what: asleep(view.now, thread),
                location: sleep.location,
                is_timed: sleep.is_timed,
                for_ns: view.ago_ns(sleep.since_ns),
            }),
        }
    }

    /// How many threads wait on condition variables whose locks the blocked threads have used.
    fn on_conditions(&self) -> usize {
        let view = self.view;
        let threads = self.group.threads.iter().map(|&thread| &view.now.threads[thread]);
        let used = threads.flat_map(|thread| {
            let holds = thread.holds.iter().map(|hold| hold.lock);
            thread.steps.iter().filter_map(|step| step.lock).chain(holds)
        });
        let used: HashSet<LockId> = used.collect();
        let waiters = used.iter().flat_map(|&lock| &view.now.locks[lock].condition_waiters);
        let is_other = |thread: &ThreadLocks| thread.state == ThreadState::Present && thread.wait.is_none();
        let root = match self.group.root {
            Root::Holder(thread) => Some(thread),
            Root::Lock(_) => None,
        };
        let threads = waiters.map(|wait| wait.thread);
        threads.filter(|&thread| Some(thread) != root && is_other(&view.now.threads[thread])).count()
    }

    fn advice(
        &self,
        hold: Option<&Hold>,
        holder: Option<&ThreadLocks>,
        is_silent: bool,
        evidence: &Standstill,
    ) -> Advice {
        let task = |hold: &Hold| self.view.now.threads[hold.thread].task.as_deref();
        let is_future = |hold: &Hold| task(hold).is_some_and(|task| task.kind != TaskKind::Coroutine);
        match (hold, &evidence.holder) {
            // The guard of a lock of threads, in a task that is suspended. The locks of coroutines are marked as those
            // of threads are.
            (Some(hold), _)
                if !hold.is_of_future
                    && is_future(hold)
                    && task_waits::suspended(self.view, hold.thread).is_some() =>
            {
                return Advice::NoThreadLocksOverAwait;
            }
            (Some(_), Some(holder)) if holder.sleep.is_some() => return Advice::CheckSignal,
            (Some(_), Some(holder)) if holder.join.is_some() => return Advice::JoinUnlocked,
            (Some(_), Some(holder)) if holder.suspended.is_some() => return Advice::ReleaseBeforeAwait,
            _ => {}
        }
        let is_once = self.view.now.locks[self.group.lock].nature.lock_type == LockType::Once;
        if !is_once && evidence.holder.as_ref().is_some_and(|holder| holder.has_left) {
            return Advice::CheckExits;
        }
        let waits = |doing: Doing| {
            doing.is_outside() || matches!(doing, Doing::WaitsForThread | Doing::WaitsInside | Doing::Kernel)
        };
        match holder.and_then(|holder| holder.seen).map(|seen| seen.doing) {
            Some(Doing::Starves) => return Advice::GiveProcessor,
            Some(Doing::Stopped) => return Advice::LetRun,
            _ if is_once && hold.is_some() => return Advice::ShortenInitialiser,
            Some(doing) if is_silent && waits(doing) => return Advice::WaitUnlocked,
            Some(Doing::Runs) => return Advice::ShortenHold,
            _ => {}
        }
        match (hold, &evidence.holder) {
            (Some(_), _) if is_silent => Advice::CheckSilentHolder,
            (Some(_), _) => Advice::ShortenHold,
            (None, _) if self.view.now.locks[self.group.lock].is_from_memory => Advice::ShowStacks,
            (None, _) => Advice::FindHolder,
        }
    }

    fn doubts(&self, kind: Kind, length: Length, holder: Option<&ThreadLocks>) -> Vec<Doubt> {
        let lock = &self.view.now.locks[self.group.lock];
        let is_in_memory = self.group.hold(self.view).is_some_and(|hold| lock.is_owner_in_memory(hold));
        let is_unknown = length == Length::Unknown;
        let end_unknown = is_unknown && self.view.now.is_end_unknown;
        let is_recorded = !lock.is_from_memory;
        let no_times = if is_recorded { Doubt::NoTimes } else { Doubt::ShortWindow };
        [
            (kind == Kind::LongWait && end_unknown).then_some(Doubt::EndUnknown),
            (is_unknown && !self.view.now.is_end_unknown).then_some(no_times),
            (kind == Kind::PileUp && end_unknown).then_some(Doubt::MovementUnknown),
            // The kernel says whether a thread is busy, if it was asked.
            holder
                .is_some_and(|holder| holder.sleep.is_none() && !holder.is_doing_known())
                .then_some(Doubt::UnmarkedWork),
            (!lock.nature.is_wrapped && !is_in_memory).then_some(Doubt::MarkedByHand),
            grade_owner(lock).1.filter(|_| lock.is_holder_presumed()),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl Basis for Standstill {
    fn about(&self, all: &mut About<'_>) {
        all.lock(self.lock);
        if let Some(holder) = &self.holder {
            let thread = holder.hold.thread;
            all.hold(&holder.hold);
            all.mentions.locations.extend(holder.last);
            match (&holder.sleep, &holder.join) {
                (Some(sleep), join) => {
                    all.thread_and_lock(thread, sleep.lock, [sleep.location]);
                    all.asleep(thread, sleep.what, sleep.lock, sleep.location);
                    join.iter().for_each(|join| all.threads_of_join(join));
                }
                (None, Some(join)) => all.join(join),
                (None, None) => all.last(thread, holder.last),
            }
        }
        all.waiters(&self.waiters);
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let direct = self.waiters.count;
        let lock = words.lock(self.lock);
        let behind = self.blocked.saturating_sub(direct);
        let and_behind = match behind {
            0 => String::new(),
            _ => format!(", and {} behind {}", words.more_threads(behind), agree(direct, "it", "them")),
        };
        let who = match &self.holder {
            Some(holder) => {
                let does = if words.is_once(self.lock) { "runs" } else { holder.keeps() };
                format!(", which {} {does}", words.thread(holder.hold.thread))
            }
            None => match &self.future {
                Some(hold) => format!(", which a future polled by {} keeps", words.thread(hold.thread)),
                None if words.lock_of(self.lock).is_from_memory => ", whose holder is not known".to_owned(),
                None => ", which no recorded thread is known to hold".to_owned(),
            },
        };
        // How long the first of the threads has waited.
        let first = if direct == 1 { "" } else { "the longest " };
        let longest = lasted(words.is_end_unknown(), self.longest_ns);
        let longest = longest.map_or_else(String::new, |longest| format!(", {first}{longest}"));
        let (threads, wait) = (words.threads(direct), agree(direct, "waits", "wait"));
        let summary = format!("{threads} {wait} for {lock}{who}{longest}{and_behind}");
        let mut evidence = Vec::new();
        if let Some(holder) = &self.holder {
            evidence.push(holder.line(words));
            evidence.extend(holder.left(words));
            evidence.extend(holder.meanwhile(words));
            let passages = holder.passages.zip(holder.last);
            evidence.extend(passages.map(|(passages, last)| passed(passages, &words.location(last))));
        }
        evidence.extend(self.future.as_ref().map(|hold| {
            let (acquired, lasting) = (words.acquired(hold), words.lasting(" for ", hold.for_ns));
            format!("the future has held it{lasting}{acquired}, and belongs to no recorded task")
        }));
        evidence.extend(words.waiters(&self.waiters));
        if behind > 0 {
            let locks = self.locks.saturating_sub(1).max(1);
            evidence.push(format!(
                "{} {} for {} that {} to threads behind it",
                words.more_threads(behind),
                agree(behind, "waits", "wait"),
                counted(locks as u64, "lock"),
                agree(locks, "belongs", "belong"),
            ));
        }
        if self.on_conditions > 0 {
            evidence.push(format!(
                "{} {} on condition variables whose locks these threads use, perhaps for them",
                words.more_threads(self.on_conditions),
                agree(self.on_conditions, "waits", "wait")
            ));
        }
        evidence
            .extend(self.history.as_ref().filter(|of| of.contended > 0).map(|known| words.history(known)));
        if self.unlisted > 0 {
            let are = agree(self.unlisted, "lock like this is", "locks like this are");
            evidence.push(format!("{} more {are} not listed", self.unlisted));
        }
        Paragraph { summary, evidence }
    }
}

/// What earlier holds of the lock say of the place where the holder was last.
fn passed(Passages { ended, passed }: Passages, place: &str) -> String {
    match (ended, passed) {
        (1, 0) => format!("the only earlier hold that is known did not pass {place}"),
        (ended, 0) => format!("none of the {ended} earlier holds that are known passed {place}"),
        (ended, passed) => format!("{passed} of the {ended} earlier holds that are known passed {place}"),
    }
}

impl StandingHolder {
    /// What it does with its lock.
    fn keeps(&self) -> &'static str {
        match (self.is_steady, self.words_recorded) {
            (Some(false), _) => "holds now",
            (_, Some(0) | None) => "keeps",
            (_, Some(_)) => "keeps while it works",
        }
    }

    fn line(&self, words: &Words<'_>) -> String {
        // The time of a hold is exact, if it has one, unless the end of the process is not known.
        let bound = match self.hold.for_ns {
            Some(_) => words.lasting(" for ", self.hold.for_ns),
            None => lasting(" for at least ", self.held_at_least_ns),
        };
        let mut line = words.holder_for(&self.hold, &bound);
        match self.words_recorded {
            // Below, it is said how long a task is suspended.
            Some(0) if self.suspended.is_some() => {}
            Some(0) => line += &lasting("; it recorded nothing for ", self.silent_ns),
            Some(count) => line += &format!("; it recorded {count} words between the readings"),
            None => {}
        }
        line += &words.other_holder(&self.hold);
        // The place of the acquisition is in the line already.
        let is_shown = |last| Some(last) != self.hold.location && self.suspended.is_none();
        if let Some(last) = self.last.filter(|&last| is_shown(last)) {
            line += &format!(", last at {}", words.location(last));
        }
        line
    }

    /// That it took another way out of the function than those that release the lock.
    fn left(&self, words: &Words<'_>) -> Option<String> {
        let thread = words.thread(self.hold.thread);
        let why = "has returned from the function that acquired it, and that otherwise releases it";
        self.has_left.then(|| format!("{thread} {why}"))
    }

    /// What it does while the others wait.
    fn meanwhile(&self, words: &mut Words<'_>) -> Option<String> {
        if let Some(sleep) = &self.sleep {
            let what = sleep.what.words(&words.lock(sleep.lock));
            let (location, limit) = (words.location(sleep.location), limit(sleep.is_timed));
            let lasting = words.lasting(", for ", sleep.for_ns);
            return Some(format!("meanwhile it waits {what}, at {location}{limit}{lasting}"));
        }
        if let Some(join) = &self.join {
            let (joined, location) = (words.thread(join.joined), words.location(join.location));
            let (limit, lasting) = (limit(join.is_timed), words.lasting(", for ", join.for_ns));
            return Some(format!(
                "meanwhile it waits for the end of {joined}, at {location}{limit}{lasting}"
            ));
        }
        match &self.suspended {
            Some(suspended) => Some(words.suspended(suspended)),
            None => words.doing(self.hold.thread),
        }
    }
}

#[cfg(test)]
#[path = "long_wait_tests.rs"]
mod tests;
