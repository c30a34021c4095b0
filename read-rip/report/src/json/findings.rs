//! Findings as JSON. It makes no findings and no sentences.
//!
//! The evidence is written as it is: its threads, locks and locations are numbers, and the lists beside it say what
//! each number stands for. Texts are for people; all that they say is in other fields too.

use std::collections::BTreeSet;
use std::io::{self, Write};

use read_rip_model::findings::{Confidence, Evidence, Finding, Kind, Paragraph, PollFact};
use read_rip_model::locks::{LockId, ThreadId};
use read_rip_ring::Snapshot;
use serde::Serialize;

use super::doing::{JsonDoing, json_doing};
use super::location::{JsonLocation, json_location};
use super::writer::{Json, moment};
use crate::machine::Looked;
use crate::names::LockNames;
use crate::remarks::Checked;

#[derive(Serialize)]
struct JsonFinding<'a> {
    kind: Kind,
    confidence: Confidence,
    #[serde(skip_serializing_if = "Option::is_none")]
    since_boottime_ns: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    for_ns: Option<u64>,
    threads_hurt: usize,
    evidence: &'a Evidence,
    doubts: Vec<Coded>,
    premises: Vec<Coded>,
    advice: Vec<Coded>,
    threads: Vec<JsonThread<'a>>,
    locks: Vec<JsonLock<'a>>,
    locations: Vec<JsonLocation<'a>>,
    text: Text,
}

/// A stable code, and what it says to people.
#[derive(Serialize)]
struct Coded {
    code: &'static str,
    text: &'static str,
}

#[derive(Serialize)]
struct Text {
    summary: String,
    evidence: Vec<String>,
}

#[derive(Serialize)]
struct JsonThread<'a> {
    id: ThreadId,
    name: &'a str,
    pid: u32,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    doing: Option<JsonDoing<'a>>,
}

#[derive(Serialize)]
struct JsonLock<'a> {
    id: LockId,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name_from: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'a str>,
    pid: u32,
    address: String,
}

#[derive(Serialize)]
struct JsonChecked<'a> {
    #[serde(flatten)]
    checked: &'a Checked,
    #[serde(skip_serializing_if = "Option::is_none")]
    mentions: Option<JsonMentions<'a>>,
}

/// What the numbers of the balance stand for.
#[derive(Serialize)]
struct JsonMentions<'a> {
    threads: Vec<JsonThread<'a>>,
    locks: Vec<JsonLock<'a>>,
    locations: Vec<JsonLocation<'a>>,
}

impl<W: Write> Json<W> {
    /// What `check --all` looked at.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn looked(&mut self, looked: &Looked) -> io::Result<()> {
        self.line("looked", looked)
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
            self.line("finding", json_finding(finding, names, snapshot))?;
        }
        self.line("checked", json_checked(checked, names, snapshot))
    }
}

fn json_checked<'a>(checked: &'a Checked, names: &LockNames<'a>, snapshot: &'a Snapshot) -> JsonChecked<'a> {
    let (pools, polls) = (&checked.balance.pools, &checked.balance.tasks.saturated);
    let held = &checked.balance.held_at_end;
    let mentions = (!pools.is_empty() || !polls.is_empty() || held.is_some()).then(|| {
        let of_polls = polls.iter().filter_map(PollFact::place);
        let of_held = held.iter().flat_map(|held| [held.hold.location, held.last]).flatten();
        let locations: BTreeSet<_> =
            pools.iter().map(|pool| pool.location).chain(of_polls).chain(of_held).collect();
        let of_polls = polls.iter().flat_map(|poll| [Some(poll.task), poll.thread]).flatten();
        let of_held = held.iter().map(|held| held.hold.thread);
        let threads: BTreeSet<_> =
            pools.iter().map(|pool| pool.holder).chain(of_polls).chain(of_held).collect();
        let locks: BTreeSet<_> =
            pools.iter().map(|pool| pool.lock).chain(held.iter().map(|held| held.lock)).collect();
        let location = |id| json_location(names.locations.get(id), names.locations, snapshot).with_id(id);
        JsonMentions {
            threads: threads.into_iter().map(|id| json_thread(id, names, snapshot)).collect(),
            locks: locks.into_iter().map(|id| json_lock(id, names)).collect(),
            locations: locations.into_iter().map(location).collect(),
        }
    });
    JsonChecked { checked, mentions }
}

fn json_thread<'a>(id: ThreadId, names: &LockNames<'a>, snapshot: &'a Snapshot) -> JsonThread<'a> {
    let thread = &names.model.threads[id];
    let doing = json_doing(id, names, snapshot);
    let task = thread.task.as_ref().map(|task| task.number);
    JsonThread { id, name: &thread.name, pid: thread.pid, tid: thread.tid, task, doing }
}

fn json_lock<'a>(id: LockId, names: &LockNames<'a>) -> JsonLock<'a> {
    let lock = &names.model.locks[id];
    let (name, name_from) = names.origin(&lock.name).unzip();
    let class = lock.class.as_deref();
    JsonLock { id, name, name_from, class, pid: lock.pid, address: format!("{:#x}", lock.address) }
}

fn json_finding<'a>(finding: &'a Finding, names: &LockNames<'a>, snapshot: &'a Snapshot) -> JsonFinding<'a> {
    let Paragraph { summary, evidence } = finding.paragraph(names);
    JsonFinding {
        kind: finding.kind,
        confidence: finding.confidence,
        since_boottime_ns: finding.since_ns.map(moment),
        for_ns: finding.for_ns,
        threads_hurt: finding.threads_hurt,
        evidence: &finding.evidence,
        doubts: finding.doubts.iter().map(|&of| Coded { code: of.name(), text: of.text() }).collect(),
        premises: finding.premises.iter().map(|&of| Coded { code: of.name(), text: of.text() }).collect(),
        advice: finding.advice.iter().map(|&of| Coded { code: of.name(), text: of.text() }).collect(),
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
