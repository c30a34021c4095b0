//! A case is judged: which findings are reported, and the exit status that follows. `collect` has the commands.
//!
//! It analyses nothing itself: `findings` does.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use read_rip_case::{Case, Judgement, Reading};
use read_rip_model::findings::{Confidence, Finding, Limit, Suppression};
use read_rip_report::ci::{CaseFinding, TestCase};
use read_rip_report::{self as report, Checked, Json, KeptCycles, LockNames, Sources};
use read_rip_ring::Header;
use regex::Regex;

use super::error::AppError;
use super::matching::Matching;
use super::output::{FINDINGS, SOUND, UNJUDGED, is_terminal, prose};
use super::remarks;
use super::source::sources;
use crate::cli::{Common, MinConfidence, SourceArgs, THRESHOLD};

/// What to do about a line that is not a rule.
const RULE_HINT: &str = "each line is KIND or KIND:REGEX; a line that begins with # is a comment";

pub(super) struct Filter {
    /// A wait or a hold is long from here on.
    pub(super) threshold: Duration,
    /// Those that are at least this certain.
    pub(super) min_confidence: Confidence,
    /// Those to which none of these rules applies.
    pub(super) rules: Vec<Suppression>,
    /// Those that mention something that matches.
    pub(super) pattern: Option<Regex>,
}

impl Default for Filter {
    fn default() -> Filter {
        let min_confidence = Confidence::Suspected;
        Filter { threshold: THRESHOLD, min_confidence, rules: Vec::new(), pattern: None }
    }
}

pub(super) struct Verdict {
    pub(super) found: Vec<Finding>,
    pub(super) checked: Checked,
}

/// Finds what is wrong, and keeps what the filter lets through.
pub(super) fn judge(case: &mut Case<'_>, filter: &Filter) -> Verdict {
    let Judgement { findings: mut found, balance, limits } = case.judge(filter.threshold);
    found.retain(|finding| finding.confidence >= filter.min_confidence);
    let suppressed = case.suppress(&mut found, &filter.rules);
    let matching = found.len();
    if let Some(pattern) = &filter.pattern {
        let texts = case.texts(false);
        let names = case.names(&texts);
        let matching = Matching::new(pattern, &names);
        found.retain(|finding| matching.has_finding(finding));
    }
    let slow_cycles = slow_cycles(case);
    let (model, reading) = (&case.model, case.reading);
    let checked = Checked {
        threads: model.threads.iter().filter(|thread| !thread.is_named_by_memory_alone()).count()
            - model.tasks,
        tasks: model.tasks,
        locks: model.locks.len(),
        findings: found.len(),
        balance,
        suppressed,
        not_matching: matching - found.len(),
        window_ns: model.window_ns,
        one_reading: case.one_reading,
        is_up_to_last_time: reading.now_ns.is_none() && model.now_ns.is_some(),
        held_overflowed: report::remarks::overflowed(model),
        releases_unmatched: model.releases_unmatched,
        longer_slot_words: reading.snapshot.header.as_ref().and_then(Header::longer_slot_words),
        is_order_search_cut: limits.contains(&Limit::LockOrders),
        slow_cycles,
        ring: reading.path.to_string_lossy().into_owned(),
    };
    Verdict { found, checked }
}

/// What is said of the slow cycles that the ring has kept.
pub(super) fn slow_cycles(case: &mut Case<'_>) -> Option<KeptCycles> {
    case.slow_cycles().map(|cycles| KeptCycles::of(&cycles, &case.locations))
}

impl Verdict {
    /// The exit status. Parts that could not be read may hide findings, so the status of the reading comes first.
    pub(super) fn status(&self, of_reading: u8) -> u8 {
        match self.checked.balance.outcome {
            _ if of_reading != SOUND => of_reading,
            _ if !self.found.is_empty() => FINDINGS,
            outcome if outcome.is_judged() => SOUND,
            _ => UNJUDGED,
        }
    }

    /// Notes for CI whose findings these are.
    pub(super) fn note(&self, test: &mut TestCase, names: &LockNames<'_>, reading: &Reading) {
        (test.program, test.pid) = (reading.program(), reading.pid());
        test.findings = self.found.iter().map(|finding| CaseFinding::of(finding, names)).collect();
    }

    /// Writes the remarks, and returns the exit status.
    pub(super) fn finish(&self, case: &Case<'_>, common: &Common) -> Result<u8, AppError> {
        let of_check = report::remarks::of_check(&case.model, &self.checked);
        Ok(self.status(remarks::write_after_verdict(case.reading, common, &case.locations, &of_check)?))
    }

    /// Shows the findings, with the source lines that the user may see.
    pub(super) fn show(
        &self,
        names: &LockNames<'_>,
        reading: &Reading,
        source: &SourceArgs,
        common: &Common,
    ) -> Result<(), AppError> {
        let mut out = prose(common);
        if common.json {
            self.write_json(&mut out, names, reading)?;
        } else {
            writeln!(out, "{}", reading.heading(&reading.threads()))?;
            let sources = if is_terminal() && !source.no_source {
                sources(&self.found, names.locations, reading, source)
            } else {
                Sources::default()
            };
            report::findings(&mut out, &self.found, &self.checked, names, &sources)?;
        }
        Ok(out.flush()?)
    }

    /// The findings of a ring or a process as lines of JSON.
    pub(super) fn write_json(
        &self,
        out: &mut dyn Write,
        names: &LockNames<'_>,
        reading: &Reading,
    ) -> io::Result<()> {
        let mut json = Json(out);
        reading.write_ring(&mut json)?;
        reading.write_core(&mut json)?;
        json.tokio_groups(names)?;
        json.findings(&self.found, &self.checked, names, &reading.snapshot)
    }
}

/// The rules in these files.
pub(super) fn suppressions(files: &[PathBuf]) -> Result<Vec<Suppression>, AppError> {
    let mut rules = Vec::new();
    for path in files {
        let bad = |why: String, hint| AppError::Suppressions { path: path.clone(), why, hint };
        let text = fs::read_to_string(path).map_err(|error| bad(error.to_string(), "check the path"))?;
        rules.extend(Suppression::parse(&text).map_err(|error| bad(error.to_string(), RULE_HINT))?);
    }
    Ok(rules)
}

impl From<MinConfidence> for Confidence {
    fn from(least: MinConfidence) -> Confidence {
        match least {
            MinConfidence::Suspected => Confidence::Suspected,
            MinConfidence::Potential => Confidence::Potential,
            MinConfidence::Proven => Confidence::Proven,
        }
    }
}
