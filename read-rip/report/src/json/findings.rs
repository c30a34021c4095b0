//! Findings as JSON. It makes no findings and no sentences.
//!
//! The evidence is written as it is: its threads, locks and locations are numbers, and the lists beside it say what
//! each number stands for. Texts are for people; all that they say is in other fields too.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};

use read_rip_model::findings::{
    Advice, Balance, Confidence, Doubt, Evidence, Finding, Kind, Paragraph, PollFact, Premise,
};
use read_rip_model::locations::LocationId;
use read_rip_model::locks::{LockId, ThreadId};
use read_rip_ring::Snapshot;
use serde::Serialize;

use super::doing::{JsonDoing, json_doing};
use super::location::{JsonLocation, json_location};
use super::values::{Address, JsonThread, LockLabels, Moment};
use super::{Json, Line};
use crate::advice::{advice_text, doubt_text};
use crate::machine::{Examined, Unjudged};
use crate::names::LockNames;
use crate::remarks::Checked;

/// `check`: one thing that is wrong. The most certain and worst finding comes first.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Finding"))]
pub(super) struct JsonFinding<'a> {
    /// What is wrong. Suppression files use these names.
    kind: Kind,
    /// How certain it is.
    confidence: Confidence,
    /// Since when, ns since boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    since_boottime_ns: Option<Moment>,
    /// For how long, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    for_ns: Option<u64>,
    /// How many threads suffer.
    threads_hurt: usize,
    /// What the finding is based on. Its form depends on the kind. Numbers of threads, locks and locations are the `id`
    /// of an element of the lists beside it.
    #[cfg_attr(test, schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    evidence: &'a Evidence,
    /// What limits the confidence.
    doubts: Vec<Coded<Doubt>>,
    /// What the confidence takes for granted although nothing enforces it.
    premises: Vec<Coded<Premise>>,
    /// What to do next.
    advice: Vec<Coded<Advice>>,
    /// The threads that the evidence mentions.
    threads: Vec<MentionedThread<'a>>,
    /// The locks that the evidence mentions.
    locks: Vec<MentionedLock<'a>>,
    /// The locations that the evidence mentions.
    locations: Vec<JsonLocation<'a>>,
    /// The finding in words. All that it says is in other fields too.
    text: Text,
}

/// A stable code, and what it says to people.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "{T}InWords"))]
struct Coded<T> {
    /// Its stable name.
    code: T,
    /// The same in words.
    text: Cow<'static, str>,
}

/// A finding in words.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Text {
    /// What is wrong, in one sentence.
    summary: String,
    /// Why that is so.
    evidence: Vec<String>,
}

/// A thread that evidence mentions.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct MentionedThread<'a> {
    /// The number by which evidence refers to it.
    id: ThreadId,
    #[serde(flatten)]
    thread: JsonThread<'a>,
    /// It is the task with this number.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<u32>,
    /// What it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    doing: Option<JsonDoing<'a>>,
}

/// A lock that evidence mentions.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct MentionedLock<'a> {
    /// The number by which evidence refers to it.
    id: LockId,
    #[serde(flatten)]
    labels: LockLabels<'a>,
    /// Its process.
    pid: u32,
    /// Its address.
    address: Address,
}

/// `check`: the last line of its findings.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Checked"))]
pub(super) struct JsonChecked<'a> {
    #[serde(flatten)]
    checked: &'a Checked,
    /// What the numbers of the balance stand for.
    #[serde(skip_serializing_if = "Option::is_none")]
    mentions: Option<JsonMentions<'a>>,
}

/// What the numbers of the balance stand for.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Mentions"))]
struct JsonMentions<'a> {
    /// The threads that the balance mentions.
    threads: Vec<MentionedThread<'a>>,
    /// The locks that the balance mentions.
    locks: Vec<MentionedLock<'a>>,
    /// The locations that the balance mentions.
    locations: Vec<JsonLocation<'a>>,
}

impl<W: Write> Json<W> {
    /// What `check --all` looked at.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn examined(&mut self, examined: &Examined) -> io::Result<()> {
        self.line(Line::Examined(examined))
    }

    /// A process or a ring that `check --all` could not judge.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn unjudged(&mut self, unjudged: &Unjudged) -> io::Result<()> {
        self.line(Line::Unjudged(unjudged))
    }

    /// All findings, and how much was analysed.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn findings(
        &mut self,
        findings: &[Finding],
        checked: &Checked,
        names: &LockNames<'_>,
        snapshot: &Snapshot,
    ) -> io::Result<()> {
        for finding in findings {
            self.line(Line::Finding(json_finding(finding, names, snapshot)))?;
        }
        self.line(Line::Checked(json_checked(checked, names, snapshot)))
    }
}

fn json_checked<'a>(checked: &'a Checked, names: &LockNames<'a>, snapshot: &'a Snapshot) -> JsonChecked<'a> {
    let Balance {
        pools,
        tasks,
        held_at_end: held,
        empty_pool,
        suspended_tasks,
        managed_lock,
        running_on,
        waiting_jobs,
        beside_timers,
        kept_lock,
        unrecorded_futures,
        ..
    } = &checked.balance;
    let polls = || tasks.saturated.iter().chain(&tasks.waiting_within);
    let mut locations: BTreeSet<LocationId> = pools.iter().map(|pool| pool.location).collect();
    locations.extend(polls().filter_map(PollFact::place));
    locations.extend(held.iter().flat_map(|held| [held.hold.location, held.last]).flatten());
    locations.extend(unrecorded_futures.iter().filter_map(|of| of.last));
    locations.extend(empty_pool.iter().filter_map(|of| of.location));
    locations.extend(managed_lock.iter().filter_map(|of| of.location));
    locations.extend(running_on.iter().flat_map(|of| [of.location, of.last_call]).flatten());
    locations.extend(suspended_tasks.iter().map(|of| of.made_at));
    locations.extend(waiting_jobs.iter().flat_map(|of| [Some(of.pool), of.location]).flatten());
    locations.extend(beside_timers.iter().filter_map(|of| of.location));
    locations.extend(kept_lock.iter().flat_map(|of| [of.hold.location, of.at]).flatten());
    let mut threads: BTreeSet<ThreadId> = pools.iter().map(|pool| pool.holder).collect();
    threads.extend(polls().flat_map(|poll| [Some(poll.task), poll.thread]).flatten());
    threads.extend(&tasks.rarely_awake);
    threads.extend(held.iter().map(|held| held.hold.thread));
    threads.extend(empty_pool.iter().map(|of| of.first));
    threads.extend(managed_lock.iter().map(|of| of.first));
    threads.extend(running_on.iter().map(|of| of.first));
    threads.extend(suspended_tasks.iter().map(|of| of.first));
    threads.extend(waiting_jobs.iter().map(|of| of.first));
    threads.extend(beside_timers.iter().flat_map(|of| [of.first, of.timer]));
    threads.extend(kept_lock.iter().map(|of| of.hold.thread));
    threads.extend(tasks.silent.iter().map(|of| of.first));
    let mut locks: BTreeSet<LockId> = pools.iter().map(|pool| pool.lock).collect();
    locks.extend(held.iter().map(|held| held.lock));
    locks.extend(kept_lock.iter().map(|of| of.lock));
    let location = |id| json_location(names.locations.get(id), names.locations, snapshot).with_id(id);
    let mentions = !threads.is_empty() || !locations.is_empty();
    let mentions = mentions.then(|| JsonMentions {
        threads: threads.into_iter().map(|id| json_thread(id, names, snapshot)).collect(),
        locks: locks.into_iter().map(|id| json_lock(id, names)).collect(),
        locations: locations.into_iter().map(location).collect(),
    });
    JsonChecked { checked, mentions }
}

fn json_thread<'a>(id: ThreadId, names: &LockNames<'a>, snapshot: &'a Snapshot) -> MentionedThread<'a> {
    let thread = &names.model.threads[id];
    let doing = json_doing(id, names, snapshot);
    let task = thread.task.as_ref().map(|task| task.number);
    let thread = JsonThread { name: &thread.name, pid: thread.pid, tid: thread.tid };
    MentionedThread { id, thread, task, doing }
}

fn json_lock<'a>(id: LockId, names: &LockNames<'a>) -> MentionedLock<'a> {
    let lock = &names.model.locks[id];
    let labels = LockLabels::of(lock, names);
    MentionedLock { id, labels, pid: lock.pid, address: Address(lock.address) }
}

fn json_finding<'a>(finding: &'a Finding, names: &LockNames<'a>, snapshot: &'a Snapshot) -> JsonFinding<'a> {
    let Paragraph { summary, evidence } = finding.paragraph(names);
    JsonFinding {
        kind: finding.kind,
        confidence: finding.confidence,
        since_boottime_ns: finding.since_ns.map(Moment),
        for_ns: finding.for_ns,
        threads_hurt: finding.threads_hurt,
        evidence: &finding.evidence,
        doubts: finding
            .doubts
            .iter()
            .map(|&code| Coded { code, text: doubt_text(code, finding, names).into() })
            .collect(),
        premises: finding.premises.iter().map(|&code| Coded { code, text: code.text().into() }).collect(),
        advice: finding
            .advice
            .iter()
            .map(|&code| Coded { code, text: advice_text(code, finding, names) })
            .collect(),
        threads: finding.mentions.threads.iter().map(|&id| json_thread(id, names, snapshot)).collect(),
        locks: finding.mentions.locks.iter().map(|&id| json_lock(id, names)).collect(),
        locations: finding
            .mentions
            .locations
            .iter()
            .map(|&id| json_location(names.locations.get(id), names.locations, snapshot).with_id(id))
            .collect(),
        text: Text { summary, evidence },
    }
}
