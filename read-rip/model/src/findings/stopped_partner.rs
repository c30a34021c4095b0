//! Threads that wait for a process which does not run.
//!
//! # Question
//!
//! Does a thread wait for a process, or for several, that something has stopped?
//!
//! # Method
//!
//! The kernel says what a thread needs from other processes, and who can bring it, as for a deadlock between processes.
//! If a signal, a tracer or the freezer of control groups keeps all of them from running, nobody can end the wait
//! before somebody lets them run. The kind of the finding is that of what keeps them. None of the threads ran between
//! two readings, and who can help was read in between.
//!
//! # Blind spots
//!
//! A thread that waits for data of a socket is left out: servers wait so for clients, whatever these do. So is the
//! tracer of a child that waits for the child: it is told what becomes of it. That a process waits behind another one
//! is not said.
//!
//! # Example output
//!
//! ```text
//! proven stopped: 1 thread waits for sleep[4712], which is stopped by a signal
//!     backup[4711] waits for the end of its child sleep[4712], at main backup.c:12, for at least 41 s
//!     `kill -CONT 4712` lets sleep[4712] run on
//! ```

use std::collections::HashMap;

use serde::Serialize;

use super::between::{self, ProcessWait, WaitsFor, name_of, process_wait};
use super::{About, Advice, Analysis, Basis, Confidence, Finding, Kind, Paragraph, View, Words};
use crate::locks::{HaltCause, Link, StoppedPartner, StoppedPartners};
use crate::units::{agree, counted};

/// See the file's description.
pub(super) struct WaitForStopped;

/// At most this many threads and processes are listed.
const LISTED_MAX: usize = 5;

/// Threads that wait for processes which do not run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StoppedHelpers {
    /// How many threads wait.
    pub count: usize,
    /// Some of them.
    pub waits: Vec<ProcessWait>,
    /// The processes for which they wait: their pids.
    pub stopped: Vec<u32>,
    #[serde(skip)]
    partners: Vec<StoppedPartner>,
}

impl Analysis for WaitForStopped {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        found.extend(view.now.stopped_partners.iter().filter_map(|of| finding(view, of)));
    }
}

fn finding(view: &View<'_>, of: &StoppedPartners) -> Option<Finding> {
    let what = |link: &Link| WaitsFor::of(link.need.as_ref());
    let links = &of.links;
    let kind = match of.stopped.first()?.cause {
        HaltCause::Freezer(_) => Kind::Frozen,
        HaltCause::Tracer(..) => Kind::Traced,
        HaltCause::Signal | HaltCause::Kernel(_) => Kind::Stopped,
    };
    let waits: Vec<WaitsFor> = links.iter().map(what).collect();
    let evidence = StoppedHelpers {
        count: links.len(),
        waits: links.iter().take(LISTED_MAX).map(|link| process_wait(view, link)).collect(),
        stopped: of.stopped.iter().map(|partner| partner.pid).collect(),
        partners: of.stopped.clone(),
    };
    let doubts = between::doubts(of.others, &waits);
    let confidence = if doubts.is_empty() { Confidence::Proven } else { Confidence::Suspected };
    let mut finding = Finding::new(kind, confidence, evidence, Advice::LetPartnerRun);
    finding.premises = between::premises(of.others, &waits);
    finding.doubts = doubts;
    finding.threads_hurt = links.len();
    Some(finding)
}

/// What keeps a process from running, and the command that lets it run.
fn remedy(of: &StoppedPartner) -> [String; 2] {
    let name = name_of(&of.program, of.pid);
    match &of.cause {
        HaltCause::Signal | HaltCause::Kernel(_) => {
            ["is stopped by a signal".to_owned(), format!("`kill -CONT {}` lets {name} run on", of.pid)]
        }
        HaltCause::Freezer(freezer) => [
            "is frozen by its control group".to_owned(),
            freezer.thaw().map_or_else(String::new, |(switch, text)| {
                format!("`echo {text} > {}` thaws the group of {name}", switch.display())
            }),
        ],
        HaltCause::Tracer(tracer, program) => {
            let tracer = match (tracer, program) {
                (Some(pid), Some(program)) => name_of(program, *pid),
                (Some(pid), None) => format!("process {pid}"),
                (None, _) => "its tracer".to_owned(),
            };
            [
                format!("is stopped by {tracer}, which traces it"),
                format!(
                    "let {tracer} go on (`continue`, or `detach` in gdb), or end it: then {name} runs on"
                ),
            ]
        }
    }
}

impl Basis for StoppedHelpers {
    fn about(&self, all: &mut About<'_>) {
        for wait in &self.waits {
            all.thread(wait.thread, wait.location);
            all.main(wait.location, |words| {
                words.text(&format!("{} waits here", name_of(&wait.program, wait.pid)))
            });
        }
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let names: Vec<String> = self
            .partners
            .iter()
            .take(LISTED_MAX)
            .map(|of| format!("{}, which {}", name_of(&of.program, of.pid), remedy(of)[0]))
            .collect();
        let more = match self.partners.len() - names.len() {
            0 => String::new(),
            more => format!(", or {more} more"),
        };
        let (threads, verb) = (counted(self.count as u64, "thread"), agree(self.count, "waits", "wait"));
        let summary = words.text(&format!("{threads} {verb} for {}{more}", names.join(", or ")));
        let programs: HashMap<u32, &str> = self.partners.iter().map(|of| (of.pid, &*of.program)).collect();
        let waits = self.waits.iter().map(|wait| between::line(wait, &programs, words));
        let mut evidence: Vec<String> = waits.collect();
        evidence.extend(super::words::and_more(self.count, self.waits.len(), "more thread"));
        let remedies = self.partners.iter().take(LISTED_MAX).map(|of| words.text(&remedy(of)[1]));
        evidence.extend(remedies.filter(|remedy| !remedy.is_empty()));
        Paragraph { summary, evidence }
    }
}

#[cfg(test)]
mod tests {
    use read_rip_evidence::target::{Need, Needed, Others};

    use super::*;
    use crate::findings::testing::Scene;

    fn found(what: Needed, cause: HaltCause, others: Others) -> Vec<Finding> {
        let mut scene = Scene::new();
        let need = Need { what, by: Vec::new(), also: Vec::new(), others };
        let link = Link {
            thread: scene.thread("main"),
            pid: 1,
            program: "work".into(),
            threads: 1,
            need: Some(need),
            owner: None,
        };
        let stopped = vec![StoppedPartner { pid: 2, own_pid: 2, program: "sleep".into(), cause }];
        scene.model.stopped_partners.push(StoppedPartners { links: vec![link], stopped, others });
        scene.run(&WaitForStopped)
    }

    #[test]
    fn the_kind_is_that_of_what_keeps_the_partner_from_running() {
        let stopped = found(Needed::EndOfChild, HaltCause::Signal, Others::default());
        assert_eq!((stopped[0].kind, stopped[0].confidence), (Kind::Stopped, Confidence::Proven));
        let traced = HaltCause::Tracer(Some(7), Some("gdb".into()));
        let traced = found(Needed::RoomInPipe, traced, Others { hidden: 1, ..Others::default() });
        assert_eq!((traced[0].kind, traced[0].confidence), (Kind::Traced, Confidence::Suspected));
    }
}
