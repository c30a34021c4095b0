//! Why cycles were slow, in words: what `captures`, `check`, the view and JSON say of it.
//!
//! It decides nothing: `read_rip_model::log` does.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use read_rip_model::locations::Locations;
use read_rip_model::log::{Blame, Cause, CycleStepKind, Holder, SlowCycle, SlowCycles, Usage};
use read_rip_ring::{Snapshot, UsageLevel};
use serde::Serialize;

use super::captures::ShownCapture;
use super::log::thread_of_slot;
use super::names::LockNames;
use super::printable::printable;
use super::units::{counted, duration};

/// The slow cycles that a ring has kept.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KeptCycles {
    /// How many there are.
    pub count: usize,
    /// The name of the one that took the longest.
    pub worst: String,
    /// How long it took, ns.
    pub took_ns: u64,
    /// How long it may take, ns.
    pub limit_ns: u64,
    /// The step that made it slow the most: `span`, `lock` (it waited for a lock), `outside` of its spans, or
    /// `overwritten` (later words have replaced what it recorded then).
    pub step_kind: &'static str,
    /// The name of that span or lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// How long it was in that step, ns.
    pub step_ns: u64,
    /// How long it usually is in that step, ns, if other cycles show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usual_ns: Option<u64>,
    /// Why it was slow, if the kernel was asked: see `SlowCycle`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<&'static str>,
    #[serde(skip)]
    sentence: String,
}

impl KeptCycles {
    /// What other commands than `captures` say of these cycles.
    pub fn of(of: &SlowCycles, locations: &Locations<'_>) -> KeptCycles {
        let SlowCycles { count, thread: (pid, _), worst, usage } = of;
        let blame = &worst.blame;
        let shares = worst.blames().map(|blame| share(worst, blame, *pid, locations));
        let shares = shares.collect::<Vec<String>>().join(" and ");
        let (step_kind, step) = step_name(&blame.kind, *pid, locations);
        let cycles = match count {
            1 => "1 slow cycle was kept; it".to_owned(),
            _ => format!("{count} slow cycles were kept; the worst"),
        };
        let took = duration(worst.took_ns);
        let why = causes_words(&worst.causes, worst.wait().is_some(), usage.as_ref());
        let sentence = format!("{cycles} took {took}: {shares}{why}");
        let &Blame { took_ns: step_ns, usual_ns, .. } = blame;
        let &SlowCycle { took_ns, limit_ns, .. } = worst;
        let (count, causes) = (*count, cause_names(&worst.causes));
        let worst = worst.name.clone();
        KeptCycles { count, worst, took_ns, limit_ns, step_kind, step, step_ns, usual_ns, causes, sentence }
    }

    /// `55 slow cycles were kept; the worst took 341 ms: 98 % in `grow`, 10240 page faults`, and the command that shows
    /// them.
    pub fn line(&self, ring: &str) -> String {
        format!("{}; next: read-rip captures {ring}", self.sentence)
    }
}

/// What JSON calls these causes.
pub(super) fn cause_names(causes: &[Cause]) -> Vec<&'static str> {
    causes.iter().map(|cause| cause_name(*cause)).collect()
}

fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::Lock => "lock",
        Cause::Preempted => "preempted",
        Cause::Blocked => "blocked",
        Cause::Asleep => "asleep",
        Cause::PageFaults => "page_faults",
        Cause::Computed => "computed",
        Cause::Taken => "taken",
        Cause::NotRunning => "not_running",
        Cause::Unclear => "unclear",
    }
}

/// The causes in a word or two each, for a picture: ` (page faults)`. Empty if nothing is known.
pub fn causes_in_short(causes: &[Cause]) -> String {
    let words = |cause: &Cause| {
        Some(match cause {
            Cause::PageFaults => "page faults",
            Cause::NotRunning => "blocked or no processor",
            Cause::Taken => "no processor",
            Cause::Unclear => return None,
            Cause::Lock | Cause::Preempted | Cause::Blocked | Cause::Asleep | Cause::Computed => {
                cause_name(*cause)
            }
        })
    };
    let words: Vec<&str> = causes.iter().filter_map(words).collect();
    if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
}

/// The causes after a comma, in some words. Empty if a step says it, or if nothing is known. `names_lock`: a step says
/// that the thread waited for a lock. `usage` is that of one cycle, if they are its causes.
pub(super) fn causes_words(causes: &[Cause], names_lock: bool, usage: Option<&Usage>) -> String {
    let others = causes.iter().filter(|cause| !names_lock || **cause != Cause::Lock);
    let words: Vec<String> = others.filter_map(|cause| cause_words(*cause, usage)).collect();
    let and = if names_lock { "and " } else { "" };
    if words.is_empty() { String::new() } else { format!(", {and}{}", words.join(" and ")) }
}

fn cause_words(cause: Cause, usage: Option<&Usage>) -> Option<String> {
    let faults = |usage: &Usage| {
        if usage.major_faults > 0 {
            format!("{} that read from a disk", counted(usage.major_faults, "page fault"))
        } else {
            counted(usage.minor_faults, "page fault")
        }
    };
    Some(match cause {
        Cause::Unclear => return None,
        Cause::Lock => "waiting for locks".to_owned(),
        Cause::Preempted => "off the processor without waiting (preempted)".to_owned(),
        Cause::Blocked => "in a blocking call".to_owned(),
        Cause::PageFaults => usage.map_or_else(|| "page faults".to_owned(), faults),
        Cause::Computed => "merely computed longer".to_owned(),
        Cause::Taken => "without the processor, which an interrupt or the hypervisor had".to_owned(),
        Cause::Asleep => "asleep for a lock or in a blocking call".to_owned(),
        Cause::NotRunning => "in a blocking call, or ready and without a processor".to_owned(),
    })
}

/// What a step is, as JSON names it, and the name of its span or lock.
pub(super) fn step_name(
    kind: &CycleStepKind,
    pid: u32,
    locations: &Locations<'_>,
) -> (&'static str, Option<String>) {
    match kind {
        CycleStepKind::Span(name) => ("span", Some(name.clone())),
        CycleStepKind::Wait(lock) => ("lock", Some(lock_name(pid, *lock, locations))),
        CycleStepKind::Outside => ("outside", None),
        CycleStepKind::Overwritten => ("overwritten", None),
    }
}

/// What a lock is called by its address.
fn lock_name(pid: u32, lock: u64, locations: &Locations<'_>) -> String {
    locations
        .lock_name(pid, lock)
        .map_or_else(|| format!("lock {lock:#x}"), |name| printable(name).into_owned())
}

/// What a thread does in a step: `in `grow``.
fn step_words(kind: &CycleStepKind, pid: u32, locations: &Locations<'_>) -> String {
    match kind {
        CycleStepKind::Span(name) => format!("in `{}`", printable(name)),
        CycleStepKind::Wait(lock) => format!("waiting for {}", lock_name(pid, *lock, locations)),
        CycleStepKind::Outside => "outside of its spans".to_owned(),
        CycleStepKind::Overwritten => "at its beginning, whose words were overwritten".to_owned(),
    }
}

/// The step that is to blame, with the span around a wait.
fn blamed(blame: &Blame, pid: u32, locations: &Locations<'_>) -> String {
    let words = step_words(&blame.kind, pid, locations);
    let within = blame.within.as_ref().map_or_else(String::new, |name| format!(" in `{}`", printable(name)));
    format!("{words}{within}")
}

/// How much of a cycle a step took.
fn share(cycle: &SlowCycle, blame: &Blame, pid: u32, locations: &Locations<'_>) -> String {
    format!("{} % {}", blame.percent(cycle), blamed(blame, pid, locations))
}

/// Cycles of one name that were slow in the same steps for the same reasons.
struct Culprit<'c> {
    name: &'c str,
    /// The causes of the worst one of them.
    causes: &'c [Cause],
    cycles: Cycles<'c>,
}

type Cycles<'c> = Vec<(&'c ShownCapture<'c>, &'c SlowCycle)>;

/// Writes what made the cycles slow: the steps that are to blame, why, and in how many of them they are, the most
/// frequent ones first. It writes nothing if there are no slow cycles.
///
/// # Errors
///
/// Those of `out`.
pub fn culprits(
    out: &mut dyn Write,
    shown: &[ShownCapture<'_>],
    names: &LockNames<'_>,
    snapshot: &Snapshot,
) -> io::Result<()> {
    type Key<'c> = (&'c str, BTreeSet<String>, BTreeSet<Cause>);
    let mut groups: BTreeMap<Key<'_>, Cycles<'_>> = BTreeMap::new();
    for of in shown {
        if let Some(cycle) = &of.capture.cycle {
            let steps = cycle.blames().map(|blame| blamed(blame, of.slot.pid, names.locations)).collect();
            let causes = cycle.causes.iter().copied().collect();
            groups.entry((&cycle.name, steps, causes)).or_default().push((of, cycle));
        }
    }
    let mut culprits: Vec<Culprit<'_>> = groups
        .into_iter()
        .filter_map(|((name, ..), cycles)| {
            let (_, worst) = cycles.iter().max_by_key(|(_, cycle)| cycle.took_ns)?;
            Some(Culprit { name, causes: &worst.causes, cycles })
        })
        .collect();
    culprits.sort_by_key(|culprit| std::cmp::Reverse(culprit.cycles.len()));
    let has_unknown = culprits.iter().any(|culprit| culprit.causes.is_empty() && !culprit.is_wait());
    for culprit in culprits {
        culprit.write(out, names, snapshot)?;
    }
    if has_unknown {
        writeln!(out, "{}", how_to_know(snapshot))?;
    }
    of_lost(out, shown, snapshot)
}

/// Says of cycles whose first words were replaced how long a history keeps them.
fn of_lost(out: &mut dyn Write, shown: &[ShownCapture<'_>], snapshot: &Snapshot) -> io::Result<()> {
    let lost = shown.iter().filter(|of| of.capture.cycle.as_ref().is_some_and(|cycle| cycle.lost_ns > 0));
    let words = |of: &ShownCapture<'_>| of.slot.count.saturating_sub(of.slot.first_sequence);
    let Some((longest, header)) = lost.clone().map(words).max().zip(snapshot.header.as_ref()) else {
        return Ok(());
    };
    let count = counted(lost.count() as u64, "cycle");
    let left = header.slot_words;
    write!(out, "{count} recorded up to {longest} words, and the last {left} are left.")?;
    match longest.checked_next_power_of_two() {
        Some(words) if words <= u64::from(librip_format::SLOT_WORDS_MAX) => {
            writeln!(out, " RIP_WORDS={words} keeps them all.")
        }
        _ => writeln!(out),
    }
}

/// How the reason of slow cycles gets known.
fn how_to_know(snapshot: &Snapshot) -> &'static str {
    match snapshot.header.as_ref().map(|header| header.usage_level) {
        Some(UsageLevel::Off) | None => {
            "Why is not known: the kernel was not asked. With RIP_USAGE=delays it is: preempted, blocked, page faults, or \
             computed."
        }
        Some(UsageLevel::Counts | UsageLevel::Delays) => {
            "Why is not known where the kernel did not answer, or the answer found no room (RIP_WORDS)."
        }
    }
}

impl Culprit<'_> {
    fn blames(&self) -> impl Iterator<Item = &Blame> {
        self.cycles.iter().flat_map(|(_, cycle)| cycle.blames())
    }

    /// The greatest of these numbers of the cycles, if any is known.
    fn most(&self, of: impl Fn(&Usage) -> Option<u64>) -> Option<u64> {
        self.cycles.iter().filter_map(|(shown, _)| of(shown.capture.usage.as_ref()?)).max()
    }

    /// The steps, the worst one first: what each is, how long it took at most, and how long it usually takes.
    fn steps(&self, locations: &Locations<'_>) -> Vec<(String, String)> {
        let mut steps: BTreeMap<String, (u64, Option<u64>)> = BTreeMap::new();
        for (of, cycle) in &self.cycles {
            for blame in cycle.blames() {
                let step = steps.entry(blamed(blame, of.slot.pid, locations)).or_default();
                *step = (blame.took_ns.max(step.0), blame.usual_ns.max(step.1));
            }
        }
        let mut steps: Vec<_> = steps.into_iter().collect();
        steps.sort_by_key(|(_, (took_ns, usual_ns))| {
            std::cmp::Reverse(took_ns.saturating_sub(usual_ns.unwrap_or(0)))
        });
        let lengths = |(took_ns, usual_ns): (u64, Option<u64>)| {
            let usual = usual_ns.map_or_else(String::new, |ns| format!(", usually {}", duration(ns)));
            format!("up to {}{usual}", duration(took_ns))
        };
        steps.into_iter().map(|(step, of)| (step, lengths(of))).collect()
    }

    fn write(&self, out: &mut dyn Write, names: &LockNames<'_>, snapshot: &Snapshot) -> io::Result<()> {
        let bold = anstyle::Style::new().bold();
        let count = counted(self.cycles.len() as u64, "slow cycle");
        let name = printable(self.name);
        let why = causes_words(self.causes, self.is_wait(), None);
        let steps = self.steps(names.locations);
        write!(out, "{bold}{count}{bold:#} of {name}: ")?;
        if let [(step, lengths)] = &steps[..] {
            writeln!(out, "{step}{why}, {lengths}")?;
        } else {
            let all: Vec<&str> = steps.iter().map(|(step, _)| &step[..]).collect();
            writeln!(out, "{}{why}", all.join(", and "))?;
            for (step, lengths) in &steps {
                writeln!(out, "  {step}: {lengths}")?;
            }
        }
        if self.causes.is_empty() {
            self.write_unknown(out)?;
        }
        for evidence in self.causes.iter().filter_map(|cause| self.evidence(*cause)) {
            writeln!(out, "  {evidence}")?;
        }
        self.holders(out, names, snapshot)
    }

    /// What the record alone says.
    fn write_unknown(&self, out: &mut dyn Write) -> io::Result<()> {
        let is_lost = self.cycles.iter().any(|(_, cycle)| cycle.lost_ns > 0);
        match (self.is_wait() || is_lost, self.has_other_waits()) {
            (true, _) => Ok(()),
            (false, true) => writeln!(out, "  some of them wait in other ways: see their events"),
            (false, false) => {
                writeln!(
                    out,
                    "  no wait is recorded there: it ran longer, or waited for something unrecorded"
                )
            }
        }
    }

    fn is_wait(&self) -> bool {
        self.blames().any(|blame| matches!(blame.kind, CycleStepKind::Wait(_)))
    }

    fn has_other_waits(&self) -> bool {
        self.cycles.iter().any(|(of, _)| of.capture.has_other_waits)
    }

    /// What speaks for a cause.
    fn evidence(&self, cause: Cause) -> Option<String> {
        let most = |of: fn(&Usage) -> u64| self.most(|usage| Some(of(usage))).unwrap_or(0);
        let switches =
            || format!("{} voluntary and {} involuntary", most(|of| of.voluntary), most(|of| of.involuntary));
        let ran = || {
            let (ran, system) = (duration(most(|of| of.on_cpu_ns)), duration(most(|of| of.system_ns)));
            format!("up to {ran} on a processor, {system} of it in the kernel")
        };
        let ready_ns = self.most(|of| of.ready_ns);
        Some(match cause {
            Cause::Lock => return None,
            Cause::Preempted => match ready_ns {
                Some(ns) => format!("it was ready for up to {}, and others had the processors", duration(ns)),
                None => format!("it never waited: up to {} switches", switches()),
            },
            Cause::Blocked if self.has_other_waits() => {
                "it slept; some of these cycles wait in ways that are recorded: see their events".to_owned()
            }
            Cause::Blocked => "it slept, and no wait for a lock is recorded there".to_owned(),
            Cause::Asleep => "it slept; what it recorded then was overwritten".to_owned(),
            Cause::PageFaults => {
                let (minor, major) = (most(|of| of.minor_faults), most(|of| of.major_faults));
                let minor = counted(minor, "page fault");
                format!("up to {minor}, and {major} that read from a disk; {}", ran())
            }
            Cause::Computed => ran(),
            Cause::Taken => "it neither slept nor lost its processor to another thread".to_owned(),
            Cause::NotRunning => {
                format!("up to {} switches: RIP_USAGE=delays tells which took long", switches())
            }
            Cause::Unclear => "nothing stands out: see the numbers of each cycle".to_owned(),
        })
    }

    /// Who held the locks for which the cycles waited.
    fn holders(&self, out: &mut dyn Write, names: &LockNames<'_>, snapshot: &Snapshot) -> io::Result<()> {
        let mut holders: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for holder in self.cycles.iter().filter_map(|(of, _)| of.holder) {
            let who = thread_of_slot(&snapshot.slots[holder.slot], false);
            let line = names.texts.line_of(names.locations.get(holder.location));
            let (times, longest_ns) = holders.entry(format!("{who}, {line}")).or_default();
            *times += 1;
            *longest_ns = held_ns(holder).max(*longest_ns);
        }
        for (holder, (times, longest_ns)) in holders {
            let times = counted(times, "time");
            writeln!(out, "  held meanwhile by {holder}: {times}, for up to {}", duration(longest_ns))?;
        }
        let is_unknown =
            |(of, cycle): &(&ShownCapture<'_>, &SlowCycle)| of.holder.is_none() && cycle.wait().is_some();
        let unknown = self.cycles.iter().filter(|of| is_unknown(of)).count() as u64;
        if unknown > 0 {
            let times = counted(unknown, "time");
            writeln!(
                out,
                "  who held it is not recorded, or no longer: {times}. See RIP_CLOCK=all, RIP_WORDS"
            )?;
        }
        Ok(())
    }
}

/// For how long a holder had a lock, ns.
pub(super) fn held_ns(holder: &Holder) -> u64 {
    holder.until_ns.saturating_sub(holder.since_ns)
}
