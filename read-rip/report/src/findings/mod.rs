//! Findings as text.
//!
//! It decides nothing. A finding is a paragraph:
//!
//! ```text
//! proven deadlock: 2 threads wait for one another, for 12.0 s
//!     saver[123] holds CURRENT for 12.1 s, acquired at transfer bank.rs:34
//!     saver[123] waits for SAVINGS at transfer bank.rs:37
//!     14 more threads are blocked by them
//!     doubt: what limits the confidence
//!     next: acquire these locks in one order everywhere
//! ```

mod snippets;

use std::borrow::Cow;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use read_rip_model::findings::{Confidence, Finding, Outcome, Paragraph, PollFact};
use read_rip_model::locks::{ThreadId, ThreadLocks};
use read_rip_model::threads::ThreadState;

use super::advice::{advice, doubt_text};
use super::balance::balance;
use super::names::LockNames;
use super::printable::plain_lines;
use super::remarks::Checked;
use super::tasks::task;
use super::units::counted;

pub use snippets::Sources;

/// Writes all findings, with the source lines that are at hand; then what else there is to say of the threads, and what
/// the record cannot show.
///
/// # Errors
///
/// Those of `out`.
pub fn findings(
    out: &mut dyn Write,
    findings: &[Finding],
    checked: &Checked,
    names: &LockNames<'_>,
    sources: &Sources,
) -> io::Result<()> {
    for finding in findings {
        let (confidence, kind) = (finding.confidence.name(), finding.kind.name());
        let FindingText { summary, evidence, doubts, premises, advice } = finding_text(finding, names);
        let style = style(finding.confidence);
        writeln!(out, "{style}{confidence} {kind}{style:#}: {summary}")?;
        for line in &evidence {
            writeln!(out, "    {line}")?;
        }
        write!(out, "{}", snippets::snippets(finding, names, sources))?;
        if !doubts.is_empty() {
            writeln!(out, "    doubt: {}", doubts.join("; "))?;
        }
        if !premises.is_empty() {
            writeln!(out, "    assumed: {}", premises.join("; "))?;
        }
        writeln!(out, "    next: {}\n", advice.join("; "))?;
    }
    write_balance(out, checked, findings.is_empty(), names)
}

/// What `check` says besides the findings, as lines. If there are no findings, the first line says so. The others begin
/// with spaces.
pub fn balance_lines(checked: &Checked, is_without_findings: bool, names: &LockNames<'_>) -> Vec<String> {
    let mut text = Vec::new();
    // A vector can be written.
    let _ = write_balance(&mut text, checked, is_without_findings, names);
    plain_lines(&text)
}

fn write_balance(
    out: &mut dyn Write,
    checked: &Checked,
    is_without_findings: bool,
    names: &LockNames<'_>,
) -> io::Result<()> {
    let tasks = &checked.balance.tasks;
    let polls: &[PollFact] = match checked.balance.outcome {
        Outcome::AllWorkersBusy | Outcome::WorkersBusy | Outcome::RareWorkersBusy => &tasks.saturated,
        Outcome::WaitsWithinPoll => &tasks.waiting_within,
        _ => &[],
    };
    let mut polls: Vec<String> = polls.iter().map(|poll| poll.line(names)).collect();
    if checked.balance.outcome == Outcome::RareWorkersBusy {
        let awake = tasks.rarely_awake.iter();
        polls.extend(awake.map(|&of| format!("{} was awake, and polled no recorded task", names.thread(of))));
    }
    let left = match checked.balance.outcome {
        Outcome::ShuttingDown | Outcome::OnlyItself => left_tasks(names),
        _ => Vec::new(),
    };
    polls.extend(left);
    balance(out, checked, is_without_findings, &polls, names)
}

/// So many tasks are listed that are left.
const LEFT_MAX: usize = 5;

/// The tasks of a process that may wait for their ends, those that have been suspended longest first, a line each.
fn left_tasks(names: &LockNames<'_>) -> Vec<String> {
    let of = |(id, thread): (ThreadId, &ThreadLocks)| {
        let task = thread.task.as_deref().filter(|task| task.is_asleep())?;
        (thread.state == ThreadState::Present).then_some((task.since_ns.unwrap_or(u64::MAX), id))
    };
    let mut left: Vec<_> = names.model.threads.iter().enumerate().filter_map(of).collect();
    left.sort_unstable();
    let line = |&(_, id): &(u64, ThreadId)| {
        let mut text = Vec::new();
        task(&mut text, id, names).ok()?;
        plain_lines(&text).into_iter().next()
    };
    let more = left.len().saturating_sub(LEFT_MAX);
    let more = (more > 0).then(|| format!("and {}", counted(more as u64, "more task")));
    left.iter().take(LEFT_MAX).filter_map(line).chain(more).collect()
}

#[derive(Clone, Debug)]
pub struct FindingText {
    pub summary: String,
    /// Why that is so, a line each.
    pub evidence: Vec<String>,
    pub doubts: Vec<Cow<'static, str>>,
    /// What the confidence takes for granted.
    pub premises: Vec<Cow<'static, str>>,
    pub advice: Vec<Cow<'static, str>>,
}

pub fn finding_text(finding: &Finding, names: &LockNames<'_>) -> FindingText {
    let Paragraph { summary, evidence } = finding.paragraph(names);
    FindingText {
        summary,
        evidence,
        doubts: finding.doubts.iter().map(|&of| doubt_text(of, finding, names).into()).collect(),
        premises: finding.premises.iter().map(|of| of.text().into()).collect(),
        advice: advice(finding, names),
    }
}

pub(super) fn style(confidence: Confidence) -> Style {
    let colour = match confidence {
        Confidence::Proven => AnsiColor::Red,
        Confidence::Potential => AnsiColor::Yellow,
        Confidence::Suspected => AnsiColor::Cyan,
    };
    colour.on_default().bold()
}

#[cfg(test)]
mod tests {
    use read_rip_symbols::{Options, Resolver};

    use super::*;
    use crate::Json;
    use read_rip_model::findings::{
        Advice, Balance, Blocker, Confidence, Doubt, Evidence, HoldFact, Kind, LockEdge, Memo, Mentions,
        Premise, View, WaitCycle, WaitEdge, WaitFact,
    };
    use read_rip_model::locations::{FileNames, Locations};
    use read_rip_model::locks::{Lock, LockModel, LockName};
    use read_rip_ring::Snapshot;

    fn model() -> LockModel {
        let thread = ThreadLocks { slot: Some(0), ..ThreadLocks::unrecorded(7, 12, "evil\x1b[31m".into()) };
        let lock = Lock { name: LockName::Given("CACHE\n".into()), ..Lock::at(7, 0x1234) };
        LockModel {
            pid: 7,
            now_ns: Some(5_000_000_000),
            threads: vec![thread],
            locks: vec![lock],
            ..LockModel::default()
        }
    }

    fn with_names<T>(model: &LockModel, use_names: impl FnOnce(&LockNames<'_>, &Snapshot) -> T) -> T {
        let snapshot = Snapshot::of_modules(Vec::new());
        let mut locations = Locations::new(&snapshot, Resolver::new(&[], Options::default()));
        locations.find_in(7, 0x1000);
        let files = FileNames::default();
        let texts = crate::location_texts(&locations, files, false);
        use_names(&LockNames { model, locations: &locations, texts: &texts, seen: None }, &snapshot)
    }

    fn finding() -> Finding {
        let wait = WaitFact {
            thread: 0,
            lock: 0,
            location: 0,
            is_shared: false,
            is_timed: true,
            is_relock: false,
            for_ns: Some(3_000_000_000),
        };
        let hold = HoldFact {
            thread: 0,
            lock: 0,
            location: Some(0),
            is_shared: true,
            for_ns: None,
            is_inherited: false,
        };
        Finding {
            kind: Kind::Deadlock,
            confidence: Confidence::Potential,
            since_ns: Some(2_000_000_000),
            for_ns: Some(3_000_000_000),
            threads_hurt: 3,
            evidence: Evidence::WaitCycle(WaitCycle {
                threads: 1,
                for_ns: Some(3_000_000_000),
                edges: vec![WaitEdge::Lock(LockEdge { wait, blocker: Blocker::Holder(hold) })],
                also_blocked: 2,
            }),
            doubts: vec![Doubt::TimedWait, Doubt::MarkedByHand],
            premises: vec![Premise::OwnerReleases],
            advice: vec![Advice::ReleaseBeforeCall, Advice::EndTheProcess],
            mentions: Mentions { threads: vec![0], locks: vec![0], locations: vec![0] },
        }
    }

    fn checked() -> Checked {
        let (model, memo) = (model(), Memo::default());
        let view = View { now: &model, before: None, locations: &[], threshold_ns: u64::MAX, memo };
        Checked {
            tasks: 0,
            threads: 1,
            locks: 1,
            findings: 1,
            balance: Balance::of(&view, &[]),
            suppressed: 0,
            not_matching: 0,
            window_ns: None,
            one_reading: None,
            is_up_to_last_time: false,
            held_overflowed: 0,
            releases_unmatched: 0,
            longer_slot_words: Some(256),
            is_order_search_cut: false,
            slow_cycles: None,
            ring: String::new(),
        }
    }

    #[test]
    fn a_finding_is_a_paragraph_that_no_name_can_break() -> io::Result<()> {
        let mut out = Vec::new();
        with_names(&model(), |names, _| {
            findings(&mut out, &[finding()], &checked(), names, &Sources::default())
        })?;
        let out = anstream::adapter::strip_bytes(&out).into_vec();
        let text = String::from_utf8_lossy(&out);
        let lines: Vec<&str> = text.lines().collect();
        let name = "evil\\u{1b}[31m[12]";
        assert_eq!(
            lines[0],
            format!("potential deadlock: {name} waits for a lock that it holds itself, for 3.0 s")
        );
        assert_eq!(lines[1], format!("    {name} holds CACHE\\n (shared), acquired at unknown 0x1000"));
        assert_eq!(lines[2], format!("    {name} waits for CACHE\\n at unknown 0x1000, with a time limit"));
        let lines = &lines[1..];
        assert_eq!(lines[2], "    2 more threads are blocked by it");
        let doubts = [Doubt::TimedWait, Doubt::MarkedByHand].map(Doubt::text).join("; ");
        assert_eq!(lines[3], format!("    doubt: {doubts}"));
        assert_eq!(lines[4], format!("    assumed: {}", Premise::OwnerReleases.text()));
        assert!(lines[5].starts_with("    next: release the lock before the call"), "{}", lines[5]);
        assert_eq!((lines[6], lines.len()), ("", 7));
        Ok(())
    }

    #[test]
    fn a_lock_that_a_child_has_since_its_fork_is_called_inherited() -> io::Result<()> {
        let mut finding = finding();
        if let Evidence::WaitCycle(WaitCycle { edges, .. }) = &mut finding.evidence
            && let [WaitEdge::Lock(LockEdge { blocker: Blocker::Holder(hold), .. })] = &mut edges[..]
        {
            hold.is_inherited = true;
        }
        let mut out = Vec::new();
        with_names(&model(), |names, _| {
            findings(&mut out, &[finding], &checked(), names, &Sources::default())
        })?;
        let text = String::from_utf8_lossy(&out);
        assert!(text.contains("holds CACHE\\n (shared), inherited by fork, acquired at "), "{text}");
        Ok(())
    }

    #[test]
    fn locks_of_one_name_always_have_their_addresses() -> io::Result<()> {
        use read_rip_model::findings::{Acquisition, OrderCycle, OrderEdge};
        let mut model = model();
        model.locks.push(Lock { address: 0x5678, ..model.locks[0].clone() });
        let at = |lock| Acquisition { lock, location: 0, is_shared: false };
        let edge = |held, acquired| OrderEdge { thread: 0, held: at(held), acquired: at(acquired) };
        let cycle = OrderCycle { edges: vec![edge(0, 1), edge(1, 0)], similar: 0, unlisted: 0 };
        let evidence = Evidence::OrderCycle(cycle);
        let mentions = Mentions { locks: vec![0, 1], ..Mentions::default() };
        let finding = Finding { kind: Kind::LockOrder, evidence, mentions, ..finding() };
        let mut out = Vec::new();
        with_names(&model, |names, _| {
            findings(&mut out, &[finding], &checked(), names, &Sources::default())
        })?;
        let text = String::from_utf8_lossy(&out);
        assert_eq!((text.matches("(0x1234)").count(), text.matches("(0x5678)").count()), (2, 2), "{text}");
        Ok(())
    }

    #[test]
    fn without_findings_it_says_what_was_analysed() -> io::Result<()> {
        let mut out = Vec::new();
        with_names(&model(), |names, _| findings(&mut out, &[], &checked(), names, &Sources::default()))?;
        assert_eq!(String::from_utf8_lossy(&out), "no findings in 1 thread and 1 lock\n");
        Ok(())
    }

    #[test]
    fn the_advice_on_histories_fits_the_ring() -> io::Result<()> {
        let mut model = model();
        model.locks.push(Lock { address: 0x5678, ..model.locks[0].clone() });
        for (longer_slot_words, end) in [
            (Some(256), "earlier orders of locks are not known; RIP_WORDS=256 keeps more\n"),
            (None, "earlier orders of locks are not known\n"),
        ] {
            let balance = Balance { overwritten: 1, ..checked().balance };
            let checked = Checked { longer_slot_words, balance, ..checked() };
            let mut out = Vec::new();
            with_names(&model, |names, _| findings(&mut out, &[], &checked, names, &Sources::default()))?;
            let text = String::from_utf8_lossy(&out);
            assert!(text.ends_with(end), "{text}");
        }
        Ok(())
    }

    #[test]
    fn a_finding_is_a_line_of_json() -> io::Result<()> {
        let mut out = Vec::new();
        with_names(&model(), |names, snapshot| {
            Json(&mut out).findings(&[finding()], &checked(), names, snapshot)
        })?;
        let text = String::from_utf8_lossy(&out);
        let lines: Vec<serde_json::Value> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["type"], "finding");
        let data = &lines[0]["data"];
        assert_eq!((&data["kind"], &data["confidence"]), (&"deadlock".into(), &"potential".into()));
        assert_eq!(
            (&data["since_boottime_ns"], &data["for_ns"]),
            (&"2000000000".into(), &3_000_000_000u64.into())
        );
        assert_eq!(data["evidence"]["edges"][0]["wait"]["timed"], true);
        assert_eq!(data["evidence"]["edges"][0]["holder"]["shared"], true);
        assert_eq!(data["doubts"][0]["code"], "timed-wait");
        assert_eq!(data["advice"][1]["code"], "end-the-process");
        assert_eq!((&data["locks"][0]["id"], &data["locks"][0]["address"]), (&0.into(), &"0x1234".into()));
        assert_eq!(lines[1]["data"]["findings"], 1);
        Ok(())
    }
}
