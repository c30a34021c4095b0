//! Threads as JSON: by function, and one by one with their histories. It computes nothing.

use std::io::{self, Write};

use read_rip_model::locations::{Dated, Locations};
use read_rip_model::log;
use read_rip_model::log::{Blame, Usage};
use read_rip_model::threads::{Group, Thread, ThreadState};
use read_rip_ring::{Slot, Snapshot};
use serde::{Serialize, Serializer};

use super::doing::{JsonDoing, json_doing};
use super::location::{JsonLocation, json_location};
use super::values::{Address, JsonThread, Moment};
use super::{Json, Line};
use crate::captures::ShownCapture;
use crate::cycles::{cause_names, held_ns, step_name};
use crate::log::realtime_ns;
use crate::{ActivityWords, LockNames};

/// A function in which threads and tasks of a process are: the view without options.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Function<'a> {
    /// The process, as in `ring`: a ring may have several.
    pid: u32,
    /// Its name, without type arguments.
    function: &'a str,
    /// How many threads and tasks.
    threads: usize,
    /// The marks that they passed last.
    locations: Vec<LocationThreads<'a>>,
}

/// A mark, and the threads that passed it last.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LocationThreads<'a> {
    /// Where it is.
    location: JsonLocation<'a>,
    /// How many threads and tasks.
    threads: usize,
    /// Their thread ids, and the numbers of tasks, from 2^31 on.
    tids: &'a [u32],
}

/// A thread and its history: `-t`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ThreadHistory<'a> {
    #[serde(flatten)]
    thread: JsonThread<'a>,
    /// present: it exists, or did when its process ended; abandoned: it disappeared without exiting.
    #[cfg_attr(test, schemars(extend("enum" = thread_states())))]
    state: &'a str,
    /// How many threads used the slot, including this one.
    generation: u32,
    /// Older words of its history that newer ones have replaced.
    overwritten: u64,
    /// Its history, oldest first.
    #[cfg_attr(test, schemars(with = "Vec<JsonEvent<'_>>"))]
    events: JsonEvents<'a>,
    /// What it does now.
    #[serde(skip_serializing_if = "Option::is_none")]
    doing: Option<JsonDoing<'a>>,
}

/// A mark that was passed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Event"))]
struct JsonEvent<'a> {
    /// Its number in the history of the thread.
    sequence: u64,
    /// The lock that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    lock: Option<Address>,
    /// The name that its process gave to the lock, or the static that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    lock_name: Option<&'a str>,
    /// Its time, ns since boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    boottime_ns: Option<Moment>,
    /// If it has no time: it was not before this, ns since boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    after_boottime_ns: Option<Moment>,
    /// If it has no time: it was not after this, ns since boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    before_boottime_ns: Option<Moment>,
    /// The values in their format, or the name of the span.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Where the mark is.
    location: JsonLocation<'a>,
}

/// `captures`: what a thread had recorded when the program kept it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Capture"))]
pub(super) struct JsonCapture<'a> {
    #[serde(flatten)]
    thread: JsonThread<'a>,
    /// When it was kept, ns since boot.
    kept_boottime_ns: Moment,
    /// When it was kept, ns since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_realtime_ns: Option<Moment>,
    /// Older words that newer ones had replaced.
    overwritten: u64,
    /// The cycle that took too long, if that is why it was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    slow_cycle: Option<JsonSlowCycle<'a>>,
    /// The cycle that was not slow, if it was kept for comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    usual_cycle: Option<&'a str>,
    /// What the thread used in the cycle, if the kernel was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<JsonUsage>,
    /// What it had recorded, oldest first.
    #[cfg_attr(test, schemars(with = "Vec<JsonEvent<'_>>"))]
    events: JsonEvents<'a>,
}

/// What a thread used in a cycle or span, and in a time around it, as the kernel counts it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Usage"))]
pub(super) struct JsonUsage {
    /// How long the cycle or span took, ns.
    took_ns: u64,
    /// How long the thread was not in it, ns, while the kernel counted what follows.
    around_ns: u64,
    /// How long it ran on a processor, ns.
    on_cpu_ns: u64,
    /// How much of that it was in the kernel, ns.
    system_ns: u64,
    /// How long it was ready and had no processor, ns, if the kernel was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    ready_ns: Option<u64>,
    /// How often it gave up its processor.
    voluntary_switches: u64,
    /// How often its processor was taken from it.
    involuntary_switches: u64,
    /// Page faults without reading from a disk.
    minor_faults: u64,
    /// Page faults with reading from a disk.
    major_faults: u64,
}

impl From<&Usage> for JsonUsage {
    fn from(of: &Usage) -> JsonUsage {
        JsonUsage {
            took_ns: of.took_ns,
            around_ns: of.around_ns,
            on_cpu_ns: of.on_cpu_ns,
            system_ns: of.system_ns,
            ready_ns: of.ready_ns,
            voluntary_switches: of.voluntary,
            involuntary_switches: of.involuntary,
            minor_faults: of.minor_faults,
            major_faults: of.major_faults,
        }
    }
}

/// A cycle that took too long, and the step that made it slow.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "SlowCycle"))]
struct JsonSlowCycle<'a> {
    /// Its name.
    name: &'a str,
    /// How long it took, ns.
    took_ns: u64,
    /// How long it may take, ns.
    limit_ns: u64,
    /// The step that made it slow the most.
    #[serde(flatten)]
    step: JsonStep<'a>,
    /// Other steps that made it slow, the worst one first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    other_steps: Vec<JsonStep<'a>>,
    /// How much of it was before the first time that is left of its record, ns: later words have replaced earlier ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_ns: Option<u64>,
    /// Why it was slow, the greatest cause first, if the kernel was asked: `lock` (it waited for one), `preempted` (it
    /// was ready and had no processor), `blocked` (it slept, and waited for no recorded lock), `asleep` (it
    /// slept, for a lock or something else: later words have replaced what it recorded then), `page_faults`, `computed`
    /// (it merely ran longer), `taken` (an interrupt or the hypervisor had the processor), `not_running` (blocked, or
    /// without a processor: the kernel was not asked for how long it was ready), or `unclear` (nothing stands out).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<&'static str>,
    /// Who held the lock meanwhile, if that is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<JsonThread<'a>>,
    /// For how long the holder had it, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_ns: Option<u64>,
}

/// A step that made a cycle slow.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "SlowStep"))]
struct JsonStep<'a> {
    /// `span`, `lock` (it waited for a lock), `outside` of its spans, or `overwritten` (later words have replaced what
    /// it recorded then).
    step_kind: &'static str,
    /// The name of that span or lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    /// The span around a wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    within: Option<&'a str>,
    /// How long it was in that step, ns.
    step_ns: u64,
    /// How long it usually is in that step, ns, if other cycles show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    usual_ns: Option<u64>,
}

impl JsonStep<'_> {
    fn of<'a>(blame: &'a Blame, pid: u32, locations: &Locations<'_>) -> JsonStep<'a> {
        let (step_kind, step) = step_name(&blame.kind, pid, locations);
        let &Blame { took_ns: step_ns, usual_ns, .. } = blame;
        JsonStep { step_kind, step, within: blame.within.as_deref(), step_ns, usual_ns }
    }
}

impl<W: Write> Json<W> {
    /// A group of the condensed view, of threads of a process.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn group(
        &mut self,
        pid: u32,
        group: &Group,
        locations: &Locations<'_>,
        snapshot: &Snapshot,
    ) -> io::Result<()> {
        let entries = group.locations.iter().map(|at| LocationThreads {
            location: json_location(locations.get(at.location), locations, snapshot),
            threads: at.tids.len(),
            tids: &at.tids,
        });
        let locations = entries.collect();
        let (function, threads) = (&*group.function, group.threads);
        self.line(Line::Function(Function { pid, function, threads, locations }))
    }

    /// A thread and its history.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn thread(
        &mut self,
        thread: &Thread<'_>,
        events: &[Dated],
        names: &LockNames<'_>,
        snapshot: &Snapshot,
        now_ns: Option<u64>,
    ) -> io::Result<()> {
        let seen = ActivityWords::new(names).and_then(|words| words.seen_thread(thread));
        self.line(Line::Thread(ThreadHistory {
            thread: thread.slot.into(),
            state: thread_state_name(thread.state),
            generation: thread.slot.generation,
            overwritten: thread.slot.overwritten(),
            events: JsonEvents { slot: thread.slot, events, locations: names.locations, snapshot, now_ns },
            doing: seen.and_then(|seen| json_doing(seen, names, snapshot)),
        }))
    }

    /// What a thread had recorded when the program kept it.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn capture(
        &mut self,
        shown: &ShownCapture<'_>,
        names: &LockNames<'_>,
        snapshot: &Snapshot,
        now_ns: Option<u64>,
    ) -> io::Result<()> {
        let &ShownCapture { slot, events, capture, holder } = shown;
        let slow_cycle = capture.cycle.as_ref().map(|cycle| {
            let step_of = |blame| JsonStep::of(blame, slot.pid, names.locations);
            JsonSlowCycle {
                name: &cycle.name,
                took_ns: cycle.took_ns,
                limit_ns: cycle.limit_ns,
                step: step_of(&cycle.blame),
                other_steps: cycle.also.iter().map(step_of).collect(),
                lost_ns: Some(cycle.lost_ns).filter(|ns| *ns > 0),
                causes: cause_names(&cycle.causes),
                holder: holder.map(|holder| (&snapshot.slots[holder.slot]).into()),
                held_ns: holder.map(held_ns),
            }
        });
        self.line(Line::Capture(JsonCapture {
            thread: slot.into(),
            kept_boottime_ns: Moment(slot.exited_boottime_ns),
            kept_realtime_ns: realtime_ns(snapshot, slot.exited_boottime_ns).map(Moment),
            overwritten: slot.overwritten(),
            slow_cycle,
            usual_cycle: capture.usual.as_deref(),
            usage: capture.usage.as_ref().map(JsonUsage::from),
            events: JsonEvents { slot, events, locations: names.locations, snapshot, now_ns },
        }))
    }
}

/// A history. Its events become text one after the other, because there may be many.
struct JsonEvents<'a> {
    slot: &'a Slot,
    events: &'a [Dated],
    locations: &'a Locations<'a>,
    snapshot: &'a Snapshot,
    now_ns: Option<u64>,
}

impl Serialize for JsonEvents<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.events.iter().map(|dated| self.event(dated)))
    }
}

impl JsonEvents<'_> {
    fn event(&self, dated: &Dated) -> JsonEvent<'_> {
        let JsonEvents { slot, locations, snapshot, now_ns, .. } = *self;
        let Dated { event, location, when } = dated;
        let lock = locations.lock_of(slot, event);
        let location = locations.get(*location);
        let (after_ns, before_ns) = when.bounds();
        JsonEvent {
            sequence: event.sequence & snapshot.sequence_mask,
            lock: lock.map(Address),
            lock_name: lock.and_then(|lock| locations.lock_name(slot.pid, lock)),
            boottime_ns: when.time_ns.map(Moment),
            after_boottime_ns: after_ns.map(Moment),
            before_boottime_ns: before_ns.map(Moment),
            text: log::kind_of(slot, event, locations, None, now_ns)
                .map(|kind| log::text(kind, slot, event, location, locations)),
            location: json_location(location, locations, snapshot),
        }
    }
}

/// What a thread is: `present`, `exited` or `abandoned`.
pub fn thread_state_name(state: ThreadState) -> &'static str {
    match state {
        ThreadState::Present => "present",
        ThreadState::Exited => "exited",
        ThreadState::Abandoned => "abandoned",
    }
}

/// All names of states.
#[cfg(test)]
pub(super) fn thread_states() -> [&'static str; 3] {
    [ThreadState::Present, ThreadState::Exited, ThreadState::Abandoned].map(thread_state_name)
}
