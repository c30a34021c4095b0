//! Captures: what a thread had recorded when the program kept it, as events and as lengths of time.
//!
//! # Question
//!
//! Which cycles took too long, and in which step did each one spend its time?
//!
//! # Method
//!
//! The last event of a slow cycle says how long it took. Its steps are its spans that have ended, and its waits for
//! locks. Each step has the time that no step within it has. The rest of the cycle's time is outside of its spans.
//!
//! A step is to blame if it took the most beyond its usual time, which is the median of the other kept cycles of the
//! same name that were not slow, or of the slow ones if none of those was kept. If medians of slow ones together are
//! longer than a cycle may take, they are not those of normal cycles, and the
//! shortest times stand for them. If those are too long as well, or if there is no other cycle, the usual time is not
//! known, and the longest step is named. Other steps are named beside it if each of them took a great part of the time
//! beyond the usual one.
//!
//! If a cycle has recorded more than its thread's history has words, the first ones are replaced. A step whose end is
//! left has its time. What else lies before the first time that is left is a step of its own.
//!
//! # Blind spots
//!
//! What happened within a step without a mark: a step may have computed, been preempted, or waited for something that
//! is not recorded. What happened within a step before the first word that is left.

use std::collections::BTreeMap;

use read_rip_ring::events::{self, Event};
use read_rip_ring::{OperandType, SiteKind, Slot, Snapshot, Value};

use super::cause::{self, Cause, Measured, SPINS_NS, Scale};
use super::{EntryKind, Usage, kind_of};
use crate::locations::{LocationId, Locations, history};

/// What the format of the event ends with that a slow cycle leaves, in Rust and in C.
const CYCLE_FORMATS: [&str; 2] =
    [": a cycle took {} us, more than {} us", ": a cycle took %lu us, more than %lu us"];

/// The event of a slow cycle has whole microseconds, and its time is a little later than the end of the cycle. If the
/// first event of the capture is earlier than the begin that follows by less than this, the cycle began there.
const ROUNDED_NS: u64 = 1_000_000;

/// A capture.
#[derive(Clone, Debug)]
pub struct Capture {
    /// Its index among those of the snapshot.
    pub index: usize,
    /// The cycle that took too long, if it is why the capture was made.
    pub cycle: Option<SlowCycle>,
    /// The name of the cycle, if it was not slow: it was kept so that slow ones can be compared with it.
    pub usual: Option<String>,
    /// What the thread used in the cycle, if the kernel was asked.
    pub usage: Option<Usage>,
    /// Its steps that have times, by their begins. Of two that begin together, the longer one comes first.
    pub steps: Vec<CycleStep>,
    /// Whether it has waits that are no steps: on a condition variable, or without an end or a time.
    pub has_other_waits: bool,
}

/// A cycle that took too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowCycle {
    /// Its name.
    pub name: String,
    /// How long it took, ns.
    pub took_ns: u64,
    /// How long it may take, ns.
    pub limit_ns: u64,
    /// When it began and when it ended, ns since boot; `None` if that is not known.
    pub times_ns: Option<(u64, u64)>,
    /// The step that made it slow.
    pub blame: Blame,
    /// Other steps that took long, the longest beyond its usual time first.
    pub also: Vec<Blame>,
    /// How much of it was before the first time that is left of its record, ns; 0 if no word was replaced.
    pub lost_ns: u64,
    /// Why it was slow, the greatest cause first; empty if the kernel was not asked what the thread used.
    pub causes: Vec<Cause>,
}

/// A step of a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CycleStep {
    /// What the thread did.
    pub kind: CycleStepKind,
    /// From when on, ns since boot.
    pub begin_ns: u64,
    /// Until when, ns since boot.
    pub end_ns: u64,
    /// How many steps it lies within.
    pub depth: usize,
    /// How much of its time lies in no step within it, ns.
    pub own_ns: u64,
    /// The event that ended a span, or began a wait.
    pub event: Event,
}

/// What a thread does in a step of a cycle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CycleStepKind {
    /// It is in a span of this name.
    Span(String),
    /// It waits for the lock at this address.
    Wait(u64),
    /// It is in no span of the cycle.
    Outside,
    /// What it does is not known: its words were replaced by later ones.
    Overwritten,
}

/// The step that made a cycle slow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blame {
    /// What the thread did.
    pub kind: CycleStepKind,
    /// The name of the span around a wait.
    pub within: Option<String>,
    /// How long it took in this cycle, without the steps within it, ns.
    pub took_ns: u64,
    /// How long it usually takes, ns; `None` if that is not known.
    pub usual_ns: Option<u64>,
    /// The longest of its steps, as an index into those of the capture; `None` if it is outside of them.
    pub step: Option<usize>,
}

impl SlowCycle {
    /// The steps that made it slow, the worst one first.
    pub fn blames(&self) -> impl Iterator<Item = &Blame> {
        std::iter::once(&self.blame).chain(&self.also)
    }

    /// The step in which it waited for a lock, if that made it slow.
    pub fn wait(&self) -> Option<&Blame> {
        self.blames().find(|blame| matches!(blame.kind, CycleStepKind::Wait(_)))
    }
}

impl Blame {
    /// The part of the cycle that the step took, in percent.
    pub fn percent(&self, cycle: &SlowCycle) -> u64 {
        let percent = u128::from(self.took_ns) * 100 / u128::from(cycle.took_ns.max(1));
        u64::try_from(percent).unwrap_or(100).min(100)
    }
}

/// The slow cycles that a ring has kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowCycles {
    /// How many there are.
    pub count: usize,
    /// The process and the thread of the worst one.
    pub thread: (u32, u32),
    /// The one that took the longest.
    pub worst: SlowCycle,
    /// What the thread used in it, if the kernel was asked.
    pub usage: Option<Usage>,
}

impl SlowCycles {
    /// Those among these captures; `None` if there are none.
    pub fn of(captures: &[Capture], snapshot: &Snapshot) -> Option<SlowCycles> {
        let cycles = || captures.iter().filter_map(|of| Some((of, of.cycle.as_ref()?)));
        let (of, worst) = cycles().max_by_key(|(_, cycle)| cycle.took_ns)?;
        let slot = &snapshot.captures[of.index];
        Some(SlowCycles {
            count: cycles().count(),
            thread: (slot.pid, slot.tid),
            worst: worst.clone(),
            usage: of.usage,
        })
    }
}

/// The captures of a snapshot, by the times at which they were made. The names of the locks for which they wait are
/// looked up. `now_ns` is the time of the reading or of the process's end.
pub fn captures(snapshot: &Snapshot, locations: &mut Locations<'_>, now_ns: Option<u64>) -> Vec<Capture> {
    let slots = snapshot.captures.iter().enumerate();
    let mut all: Vec<Capture> = slots.map(|(index, slot)| capture(index, slot, locations, now_ns)).collect();
    all.sort_by_key(|of| snapshot.captures[of.index].exited_boottime_ns);
    blame(&mut all, snapshot.header.as_ref().and_then(|header| header.fault_ns));
    all
}

fn capture(index: usize, slot: &Slot, locations: &mut Locations<'_>, now_ns: Option<u64>) -> Capture {
    let (events, _) = events::events(slot, |pc| locations.operand_words(slot.pid, pc));
    let mut steps = Vec::new();
    let (mut waits, mut begun_waits) = (BTreeMap::new(), 0);
    for event in &events {
        let meaning = locations.meaning(slot.pid, event.pc).and_then(|meaning| meaning.kind);
        begun_waits += usize::from(matches!(meaning, Some(SiteKind::LockWait | SiteKind::ConditionWait)));
        let time_ns = locations.time_of(slot, event, now_ns);
        let (kind, begin_ns, end_ns, of) = match kind_of(slot, event, locations, time_ns, now_ns) {
            Some(EntryKind::End(took_ns)) => {
                let Some((end_ns, took_ns)) = time_ns.zip(took_ns) else { continue };
                (CycleStepKind::Span(name_of(slot, event, locations)), end_ns - took_ns, end_ns, event)
            }
            Some(_) => continue,
            None => {
                let wait = wait_of(slot, event, locations, now_ns, &mut waits);
                let Some((lock, (begin_ns, begin), end_ns)) = wait else { continue };
                locations.find_lock(slot, event);
                (CycleStepKind::Wait(lock), begin_ns, end_ns, begin)
            }
        };
        if begin_ns <= end_ns {
            steps.push(CycleStep { kind, begin_ns, end_ns, depth: 0, own_ns: 0, event: of.clone() });
        }
    }
    let ended_waits = steps.iter().filter(|step: &&CycleStep| matches!(step.kind, CycleStepKind::Wait(_)));
    let has_other_waits = begun_waits > ended_waits.count();
    let mut cycle = events.last().and_then(|event| cycle_of(slot, event, locations, now_ns));
    // A slow cycle's event comes after that of its usage.
    let event_of_usage = events.iter().rev().nth(usize::from(cycle.is_some()));
    // Before that may be the usage of a span, if the kernel did not say that of the cycle.
    let (usual, usage) = match (event_of_usage, events.last(), &cycle) {
        (Some(event), Some(end), Some(cycle)) => {
            (None, Usage::of_named(slot, event, (&cycle.name, end), locations))
        }
        (Some(event), ..) => {
            Usage::of(slot, event, locations).map(|(name, of)| (name.to_owned(), of)).unzip()
        }
        _ => (None, None),
    };
    if let Some((begun_ns, _)) = cycle.as_mut().and_then(|cycle| cycle.times_ns.as_mut()) {
        let first_ns = events.iter().find_map(|event| locations.time_of(slot, event, now_ns));
        if let Some(first_ns) = first_ns.filter(|first_ns| begun_ns.saturating_sub(*first_ns) < ROUNDED_NS) {
            *begun_ns = first_ns.min(*begun_ns);
        }
        // A capture of a forked child may have what was before its cycle.
        steps.retain(|step: &CycleStep| step.end_ns >= *begun_ns);
    }
    nest(&mut steps);
    if let Some(cycle) = &mut cycle
        && let Some((begun_ns, _)) = cycle.times_ns
        && slot.overwritten() > 0
    {
        let first_ns = events.iter().find_map(|event| locations.time_of(slot, event, now_ns));
        let lost_ns = first_ns.map_or(cycle.took_ns, |first_ns| first_ns.saturating_sub(begun_ns));
        // The times in a damaged record may be in any order.
        cycle.lost_ns = lost_ns.min(cycle.took_ns);
    }
    Capture { index, cycle, usual, usage, steps, has_other_waits }
}

/// The name of an event's span.
fn name_of(slot: &Slot, event: &Event, locations: &Locations<'_>) -> String {
    let site = locations.site_at(slot.pid, event.pc);
    site.map_or_else(String::new, |site| locations.site(site).label.to_string())
}

/// Follows waits for locks: the lock, and the begin and the end of a wait that this event shows to be over.
fn wait_of<'e>(
    slot: &Slot,
    event: &'e Event,
    locations: &Locations<'_>,
    now_ns: Option<u64>,
    waits: &mut BTreeMap<u64, (u64, &'e Event)>,
) -> Option<(u64, (u64, &'e Event), u64)> {
    let meaning = locations.meaning(slot.pid, event.pc).filter(|meaning| !meaning.is_ambiguous())?;
    let lock = locations.lock_of(slot, event)?;
    let time_ns = || locations.time_of(slot, event, now_ns);
    let end_ns = match meaning.kind? {
        SiteKind::LockWait => {
            if let Some(time_ns) = time_ns() {
                waits.entry(lock).or_insert((time_ns, event));
            }
            return None;
        }
        SiteKind::LockAcquired | SiteKind::LockTryFailed => time_ns(),
        SiteKind::LockReleased => {
            let since = locations.operand(slot, event, OperandType::Since);
            since.and_then(|ticks| locations.moment(slot, ticks, now_ns))
        }
        _ => return None,
    };
    let begin = waits.remove(&lock)?;
    Some((lock, begin, end_ns?))
}

/// The cycle that the last event of a capture says to be too long.
fn cycle_of(slot: &Slot, event: &Event, locations: &Locations<'_>, now_ns: Option<u64>) -> Option<SlowCycle> {
    let site = locations.site(locations.site_at(slot.pid, event.pc)?);
    let name = CYCLE_FORMATS.iter().find_map(|format| site.format.strip_suffix(format))?;
    let values = slot.values(event.operands.clone())?.values;
    let [Value::Unsigned(took_us), Value::Unsigned(limit_us)] = values[..] else { return None };
    let ns = |us: u128| u64::try_from(us).ok()?.checked_mul(1000);
    let took_ns = ns(took_us.into())?;
    let blame = Blame { kind: CycleStepKind::Outside, within: None, took_ns, usual_ns: None, step: None };
    Some(SlowCycle {
        name: name.to_owned(),
        took_ns,
        limit_ns: ns(limit_us.into())?,
        times_ns: locations
            .time_of(slot, event, now_ns)
            .and_then(|ended_ns| Some((ended_ns.checked_sub(took_ns)?, ended_ns))),
        blame,
        also: Vec::new(),
        lost_ns: 0,
        causes: Vec::new(),
    })
}

/// Orders steps, and finds which lie within which. A step that ends after the one in which it begins is taken to end
/// with that one.
fn nest(steps: &mut [CycleStep]) {
    steps.sort_by_key(|step| (step.begin_ns, std::cmp::Reverse(step.end_ns)));
    let mut around: Vec<usize> = Vec::new();
    for at in 0..steps.len() {
        while around.last().is_some_and(|&outer| steps[outer].end_ns <= steps[at].begin_ns) {
            around.pop();
        }
        steps[at].depth = around.len();
        steps[at].own_ns = steps[at].end_ns - steps[at].begin_ns;
        if let Some(&outer) = around.last() {
            let within_ns = steps[at].end_ns.min(steps[outer].end_ns) - steps[at].begin_ns;
            steps[outer].own_ns = steps[outer].own_ns.saturating_sub(within_ns);
        }
        around.push(at);
    }
}

/// The time of each kind of step of a cycle, and the rest of the cycle.
type Times<'a> = BTreeMap<&'a CycleStepKind, u64>;

fn times(took_ns: u64, steps: &[CycleStep], lost: Option<(u64, u64)>) -> Times<'_> {
    let mut times = Times::new();
    for step in steps {
        *times.entry(&step.kind).or_default() += step.own_ns;
    }
    let inside_ns: u64 = times.values().sum();
    let outside_ns = took_ns.saturating_sub(inside_ns);
    let lost_ns = lost.map_or(0, |(begin_ns, end_ns)| {
        let known = steps.iter().filter(|step| step.depth == 0);
        let known = known.map(|step| step.end_ns.min(end_ns).saturating_sub(step.begin_ns.max(begin_ns)));
        (end_ns - begin_ns).saturating_sub(known.sum()).min(outside_ns)
    });
    times.insert(&CycleStepKind::Overwritten, lost_ns);
    times.insert(&CycleStepKind::Outside, outside_ns - lost_ns);
    times
}

/// The times of a slow cycle.
fn times_of<'a>(cycle: &SlowCycle, steps: &'a [CycleStep]) -> Times<'a> {
    let lost = cycle.times_ns.map(|(begun_ns, _)| (begun_ns, begun_ns.saturating_add(cycle.lost_ns)));
    times(cycle.took_ns, steps, lost)
}

/// Finds which steps made each cycle slow, and why.
fn blame(all: &mut [Capture], fault_ns: Option<u64>) {
    let cycles = all.iter().enumerate().filter_map(|(at, of)| Some((at, of.cycle.as_ref()?, &of.steps)));
    let cycles: Vec<(usize, &SlowCycle, Times<'_>)> =
        cycles.map(|(at, cycle, steps)| (at, cycle, times_of(cycle, steps))).collect();
    let blamed: Vec<(usize, Vec<Blame>, Vec<Cause>)> = cycles
        .iter()
        .map(|(at, cycle, times)| {
            let usual = usual(cycle, &not_slow(all, &cycle.name), || {
                let others = cycles.iter().filter(|(other, of, _)| other != at && of.name == cycle.name);
                others.map(|(_, _, times)| times.clone()).collect()
            });
            let blames = blames(cycle, &all[*at].steps, times, usual.as_ref());
            (*at, blames, causes_of(all, *at, cycle, fault_ns))
        })
        .collect();
    for (at, blames, causes) in blamed {
        if let Some(cycle) = &mut all[at].cycle {
            let mut blames = blames.into_iter();
            if let Some(worst) = blames.next() {
                cycle.blame = worst;
            }
            cycle.also = blames.collect();
            cycle.causes = causes;
        }
    }
}

/// The steps that made a cycle slow, the worst one first.
fn blames(
    cycle: &SlowCycle,
    steps: &[CycleStep],
    times: &Times<'_>,
    usual: Option<&Times<'_>>,
) -> Vec<Blame> {
    let usual_of = |kind: &CycleStepKind| usual.map(|of| of.get(kind).copied().unwrap_or(0));
    let rest = |(kind, took_ns): (&&CycleStepKind, &u64)| took_ns.saturating_sub(usual_of(kind).unwrap_or(0));
    let all_ns = times.iter().map(rest).fold(0, u64::saturating_add);
    let mut worst: Vec<(&CycleStepKind, u64, u64)> =
        times.iter().map(|of| (*of.0, *of.1, rest(of))).collect();
    worst.sort_by_key(|(_, _, rest_ns)| std::cmp::Reverse(*rest_ns));
    let first = worst.iter().take(1);
    // Without a usual time, a long step may be one that always takes so long.
    let is_known = usual.is_some();
    let others = worst.iter().skip(1).filter(|of| is_known && cause::is_great(of.2, all_ns, cycle.limit_ns));
    let blame = |&(kind, took_ns, _): &(&CycleStepKind, u64, u64)| {
        let of_kind = steps.iter().enumerate().filter(|(_, step)| step.kind == *kind);
        let step = of_kind.max_by_key(|(_, step)| step.own_ns).map(|(index, _)| index);
        let within = step.and_then(|step| around(&steps[step], steps));
        Blame { kind: kind.clone(), within, took_ns, usual_ns: usual_of(kind), step }
    };
    first.chain(others).map(blame).collect()
}

/// Why a cycle was slow.
fn causes_of(all: &[Capture], at: usize, cycle: &SlowCycle, fault_ns: Option<u64>) -> Vec<Cause> {
    let usual = all.iter().filter(|of| is_usual(of, &cycle.name));
    let usual: Vec<Measured> = usual.filter_map(measured).collect();
    let scale = Scale { limit_ns: cycle.limit_ns, fault_ns };
    measured(&all[at]).map_or_else(Vec::new, |slow| cause::causes(&slow, &usual, scale))
}

fn is_usual(of: &Capture, name: &str) -> bool {
    of.usual.as_ref().is_some_and(|usual| usual == name)
}

/// What the thread used in a cycle, and its waits for locks.
fn measured(of: &Capture) -> Option<Measured> {
    let waits = of.steps.iter().filter(|step| matches!(step.kind, CycleStepKind::Wait(_)));
    Some(Measured {
        usage: of.usage?,
        waited_ns: waits.clone().fold(0, |sum, wait| sum.saturating_add(wait.own_ns)),
        long_waits: waits.filter(|wait| wait.own_ns > SPINS_NS).count() as u64,
        lost_ns: of.cycle.as_ref().map_or(0, |cycle| cycle.lost_ns),
    })
}

/// The times of the kept cycles of this name that were not slow.
fn not_slow<'a>(all: &'a [Capture], name: &str) -> Vec<Times<'a>> {
    let usual = all.iter().filter(|of| is_usual(of, name));
    usual.filter_map(|of| Some(times(of.usage?.took_ns, &of.steps, None))).collect()
}

/// How long each step takes in a cycle that is not slow; `None` if that is not known.
/// Cycles that were not slow show it. If there are none, the other slow ones may.
fn usual<'a>(
    cycle: &SlowCycle,
    not_slow: &[Times<'a>],
    slow: impl FnOnce() -> Vec<Times<'a>>,
) -> Option<Times<'a>> {
    let others = if not_slow.is_empty() { &slow() } else { not_slow };
    let mut all: BTreeMap<&CycleStepKind, Vec<u64>> = BTreeMap::new();
    for times in others {
        times.iter().for_each(|(kind, took_ns)| all.entry(kind).or_default().push(*took_ns));
    }
    for times in all.values_mut() {
        // A cycle without the step has spent no time in it.
        times.resize(others.len(), 0);
        times.sort_unstable();
    }
    let at = |index: usize| all.iter().map(|(kind, times)| (*kind, times[index])).collect::<Times<'_>>();
    let is_normal = |times: &Times<'_>| {
        times.values().fold(0u64, |sum, took_ns| sum.saturating_add(*took_ns)) <= cycle.limit_ns
    };
    let last = others.len().checked_sub(1)?;
    [last / 2, 0].into_iter().map(at).find(is_normal)
}

/// The innermost span around a wait.
fn around(wait: &CycleStep, steps: &[CycleStep]) -> Option<String> {
    if !matches!(wait.kind, CycleStepKind::Wait(_)) {
        return None;
    }
    let around = steps.iter().filter(|step| step.begin_ns <= wait.begin_ns && wait.end_ns <= step.end_ns);
    let mut spans = around.filter_map(|step| match &step.kind {
        CycleStepKind::Span(name) => Some(name.clone()),
        _ => None,
    });
    spans.next_back()
}

/// Who held a lock while a thread waited for it in a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The slot of the holder, as an index into what the snapshot has recorded.
    pub slot: usize,
    /// From when on it held the lock, ns since boot.
    pub since_ns: u64,
    /// Until when, ns since boot.
    pub until_ns: u64,
    /// Where it acquired the lock, or released it if that is not known.
    pub location: LocationId,
}

/// Who held the lock for which a thread waited, for the longest part of the wait: by the times that the holder has
/// recorded when it released the lock. `None` if no history has them: nothing is concluded from anything else.
pub fn holder(
    snapshot: &Snapshot,
    waiter: &Slot,
    wait: &CycleStep,
    locations: &mut Locations<'_>,
    now_ns: Option<u64>,
) -> Option<Holder> {
    let CycleStepKind::Wait(lock) = wait.kind else { return None };
    let mut longest: Option<(u64, usize, u64, u64, u64)> = None;
    for index in 0..snapshot.slots.len() {
        let slot = &snapshot.slots[index];
        if slot.pid != waiter.pid || slot.tid == waiter.tid {
            continue;
        }
        let (events, _) = events::events(slot, |pc| locations.operand_words(slot.pid, pc));
        for event in &events {
            let Some((since_ns, until_ns)) = hold_of(slot, event, lock, locations, now_ns) else { continue };
            let part_ns = until_ns.min(wait.end_ns).saturating_sub(since_ns.max(wait.begin_ns));
            if part_ns > 0 && longest.is_none_or(|(part, ..)| part < part_ns) {
                longest = Some((part_ns, index, event.sequence, since_ns, until_ns));
            }
        }
    }
    let (_, slot, sequence, since_ns, until_ns) = longest?;
    let (events, _) = history(&snapshot.slots[slot], locations);
    let (_, location) = events.into_iter().find(|(event, _)| event.sequence == sequence)?;
    Some(Holder { slot, since_ns, until_ns, location })
}

/// From when to when a thread held this lock, if the event is its release and has both times.
fn hold_of(
    slot: &Slot,
    event: &Event,
    lock: u64,
    locations: &Locations<'_>,
    now_ns: Option<u64>,
) -> Option<(u64, u64)> {
    let meaning = locations.meaning(slot.pid, event.pc).filter(|meaning| !meaning.is_ambiguous())?;
    if meaning.kind != Some(SiteKind::LockReleased) || locations.lock_of(slot, event) != Some(lock) {
        return None;
    }
    let since = locations.operand(slot, event, OperandType::Since)?;
    Some((locations.moment(slot, since, now_ns)?, locations.time_of(slot, event, now_ns)?))
}
