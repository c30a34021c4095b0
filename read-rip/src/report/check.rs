//! Findings as text and as JSON.
//!
//! Nothing is judged here. A finding is a paragraph:
//!
//! ```text
//! proven deadlock: 2 threads wait for one another, for 12.0 s
//!     saver[123] waits for SAVINGS (0x55d0c8) at transfer bank.rs:37, which spender[124] has had for 12.1 s, taken at ...
//!     14 more threads wait behind them
//!     doubt: what cannot be known, where that matters
//!     next: take these locks in one order everywhere
//! ```
//!
//! As JSON it is a line of type `finding`:
//!
//! | field | meaning |
//! |---|---|
//! | `kind`, `confidence` | `deadlock`, ...; `proven`, `potential`, `suspected` |
//! | `summary`, `evidence`, `doubt`, `advice` | the text above; `evidence` is a list |
//! | `since_boottime_ns`, `for_ns` | since when, and for how long |
//! | `threads_hurt` | how many threads suffer |
//! | `threads` | those that the evidence names: `name`, `pid`, `tid` |
//! | `locks` | `name`, `pid`, `address` |
//! | `locations` | as everywhere |
//!
//! The last line has type `checked`: `threads`, `locks`, `findings`, `suppressed`, `window_ns`.

use std::collections::HashSet;
use std::io::{self, Write};

use serde::Serialize;

use super::json::{JsonLocation, json_location};
use super::{Json, LockNames, counted, duration};
use crate::findings::{Confidence, Finding, Part};
use crate::locks::{LockId, LockName};
use crate::ring::Snapshot;

/// What was looked at, and what came of it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Checked {
    /// Threads.
    pub threads: usize,
    /// Locks.
    pub locks: usize,
    /// Findings that are reported.
    pub findings: usize,
    /// Findings that are not, because of rules.
    pub suppressed: usize,
    /// The time between two readings of a living process, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<u64>,
}

/// Writes all findings; if there are none, what was looked at.
///
/// # Errors
///
/// Those of `out`.
pub fn findings(
    out: &mut dyn Write,
    findings: &[Finding],
    checked: &Checked,
    names: &LockNames<'_>,
) -> io::Result<()> {
    let bold = anstyle::Style::new().bold();
    for finding in findings {
        let mut named = HashSet::new();
        let (confidence, kind) = (confidence_name(finding.confidence), finding.kind);
        let summary = sentence(&finding.summary, names, &mut named);
        writeln!(out, "{bold}{confidence} {kind}{bold:#}: {summary}")?;
        for line in &finding.evidence {
            writeln!(out, "    {}", sentence(line, names, &mut named))?;
        }
        if let Some(doubt) = &finding.doubt {
            writeln!(out, "    doubt: {doubt}")?;
        }
        writeln!(out, "    next: {}\n", finding.advice)?;
    }
    if findings.is_empty() {
        let (threads, locks) =
            (counted(checked.threads as u64, "thread"), counted(checked.locks as u64, "lock"));
        writeln!(out, "no findings in {threads} and {locks}")?;
    }
    Ok(())
}

/// What a suppression can be about: the finding's locks, functions and lines, by name.
pub fn subjects(finding: &Finding, names: &LockNames<'_>) -> Vec<String> {
    let mut subjects: Vec<String> =
        finding.locks.iter().map(|&lock| names.lock(&names.model.locks[lock])).collect();
    for &location in &finding.locations {
        let location = names.locations.get(location);
        subjects.extend([
            location.function.clone(),
            location.full_function.clone(),
            names.texts.line_of(location),
        ]);
    }
    subjects
}

fn confidence_name(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Proven => "proven",
        Confidence::Potential => "potential",
        Confidence::Suspected => "suspected",
    }
}

/// A sentence; where a lock is named for the first time its address is told.
fn sentence(parts: &[Part], names: &LockNames<'_>, named: &mut HashSet<LockId>) -> String {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Text(words) => text += &super::printable(words),
            Part::Thread(thread) => text += &names.thread(*thread),
            Part::Lock(id) => {
                let lock = &names.model.locks[*id];
                text += &names.lock(lock);
                if named.insert(*id) && lock.name != LockName::None {
                    text += &format!(" ({:#x})", lock.address);
                }
            }
            Part::Location(location) => text += &names.location(*location),
            Part::Duration(duration_ns) => text += &duration(*duration_ns),
            Part::Threads(count) => text += &counted(*count as u64, "thread"),
        }
    }
    text
}

#[derive(Serialize)]
struct JsonFinding<'a> {
    kind: &'a str,
    confidence: &'a str,
    summary: String,
    evidence: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    doubt: Option<&'a str>,
    advice: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    since_boottime_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    for_ns: Option<u64>,
    threads_hurt: usize,
    threads: Vec<JsonThread<'a>>,
    locks: Vec<JsonLock>,
    locations: Vec<JsonLocation<'a>>,
}

#[derive(Serialize)]
struct JsonThread<'a> {
    name: &'a str,
    pid: u32,
    tid: u32,
}

#[derive(Serialize)]
struct JsonLock {
    name: String,
    pid: u32,
    address: String,
}

impl<W: Write> Json<W> {
    /// All findings, and what was looked at.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn findings(
        &mut self,
        findings: &[Finding],
        checked: &Checked,
        names: &LockNames<'_>,
        snapshot: &Snapshot,
    ) -> io::Result<()> {
        let model = names.model;
        for finding in findings {
            let mut named = HashSet::new();
            let mut text = |parts: &[Part]| sentence(parts, names, &mut named);
            let threads = finding.threads.iter().map(|&id| &model.threads[id]);
            let locks = finding.locks.iter().map(|&id| &model.locks[id]);
            let locations = finding.locations.iter().map(|&id| names.locations.get(id));
            let data = JsonFinding {
                kind: finding.kind,
                confidence: confidence_name(finding.confidence),
                summary: text(&finding.summary),
                evidence: finding.evidence.iter().map(|line| text(line)).collect(),
                doubt: finding.doubt.as_deref(),
                advice: &finding.advice,
                since_boottime_ns: finding.since_ns,
                for_ns: model
                    .now_ns
                    .zip(finding.since_ns)
                    .and_then(|(now_ns, since_ns)| now_ns.checked_sub(since_ns)),
                threads_hurt: finding.threads_hurt,
                threads: threads
                    .map(|thread| JsonThread { name: &thread.name, pid: thread.pid, tid: thread.tid })
                    .collect(),
                locks: locks
                    .map(|lock| JsonLock {
                        name: names.lock(lock),
                        pid: lock.pid,
                        address: format!("{:#x}", lock.address),
                    })
                    .collect(),
                locations: locations
                    .map(|location| json_location(location, names.locations, snapshot))
                    .collect(),
            };
            self.line("finding", data)?;
        }
        self.line("checked", checked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locations::{FileNames, Locations};
    use crate::locks::{Lock, LockModel, ThreadLocks};
    use crate::symbols::{Options, Resolver};

    fn model() -> LockModel {
        let thread = ThreadLocks {
            slot: 0,
            pid: 7,
            tid: 12,
            name: "evil\x1b[31m".into(),
            state: crate::threads::ThreadState::Present,
            holds: Vec::new(),
            wait: None,
            condition_wait: None,
            semaphore_wait: None,
            overflowed: 0,
            in_flux: 0,
            last: None,
            steps: Vec::new(),
            overwritten: 0,
            advanced: None,
        };
        let lock = Lock {
            pid: 7,
            address: 0x1234,
            name: LockName::Given("CACHE\n".into()),
            nature: Default::default(),
            holders: Vec::new(),
            possible_holders: Vec::new(),
            waiters: Vec::new(),
            condition_waiters: Vec::new(),
            semaphore_waiters: Vec::new(),
            record: Default::default(),
        };
        LockModel {
            pid: 7,
            now_ns: Some(5_000_000_000),
            threads: vec![thread],
            locks: vec![lock],
            ..LockModel::default()
        }
    }

    fn with_names<T>(model: &LockModel, use_names: impl FnOnce(&LockNames<'_>, &Snapshot) -> T) -> T {
        let snapshot = Snapshot {
            header: None,
            modules: Vec::new(),
            sites: Vec::new(),
            slots: Vec::new(),
            lock_names: Default::default(),
            defects: Vec::new(),
            sequence_mask: u64::MAX,
        };
        let locations = Locations::new(&snapshot, Resolver::new(&[], Options::default()));
        let files = FileNames::default();
        let texts = crate::report::location_texts(&locations, &files, false);
        use_names(&LockNames { model, locations: &locations, texts: &texts }, &snapshot)
    }

    fn finding() -> Finding {
        Finding {
            kind: "deadlock",
            confidence: Confidence::Proven,
            summary: vec![Part::Threads(1), Part::Text(" waits".into())],
            since_ns: Some(2_000_000_000),
            threads_hurt: 1,
            evidence: vec![vec![
                Part::Thread(0),
                Part::Text(" waits for ".into()),
                Part::Lock(0),
                Part::Text(", for ".into()),
                Part::Duration(3_000_000_000),
                Part::Text("; ".into()),
                Part::Lock(0),
            ]],
            doubt: Some("who knows".into()),
            advice: "do better".into(),
            locks: vec![0],
            threads: vec![0],
            locations: Vec::new(),
        }
    }

    const CHECKED: Checked = Checked { threads: 1, locks: 1, findings: 1, suppressed: 0, window_ns: None };

    #[test]
    fn a_finding_is_a_paragraph_that_no_name_can_break() -> io::Result<()> {
        let mut out = Vec::new();
        with_names(&model(), |names, _| findings(&mut out, &[finding()], &CHECKED, names))?;
        let out = anstream::adapter::strip_bytes(&out).into_vec();
        assert_eq!(
            String::from_utf8_lossy(&out),
            "proven deadlock: 1 thread waits\n    evil\\u{1b}[31m[12] waits for CACHE\\n (0x1234), for 3.0 s; CACHE\\n\n    \
             doubt: who knows\n    next: do better\n\n"
        );
        Ok(())
    }

    #[test]
    fn no_findings_say_what_was_looked_at() -> io::Result<()> {
        let mut out = Vec::new();
        with_names(&model(), |names, _| findings(&mut out, &[], &CHECKED, names))?;
        assert_eq!(String::from_utf8_lossy(&out), "no findings in 1 thread and 1 lock\n");
        Ok(())
    }

    #[test]
    fn a_finding_is_a_line_of_json() -> io::Result<()> {
        let mut out = Vec::new();
        with_names(&model(), |names, snapshot| {
            Json(&mut out).findings(&[finding()], &CHECKED, names, snapshot)
        })?;
        let text = String::from_utf8_lossy(&out);
        let lines: Vec<serde_json::Value> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["type"], "finding");
        assert_eq!(lines[0]["data"]["for_ns"], 3_000_000_000u64);
        assert_eq!(lines[0]["data"]["locks"][0]["address"], "0x1234");
        assert_eq!(lines[1]["data"]["findings"], 1);
        Ok(())
    }
}
