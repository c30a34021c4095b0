//! The remarks about a reading: what its result leaves out, and what is damaged.
//!
//! `report::remarks` has the sentences.

use std::io::Write;

use read_rip_case::Reading;
use read_rip_model::locations::Locations;
use read_rip_report::{self as report, Json, printable};
use read_rip_symbols::ModuleProblem;

use super::error::AppError;
use super::output::{ERROR, SOUND, output, remark};
use crate::cli::Common;

/// Writes to standard error what the result does not show. Returns the exit status that follows from it.
pub(super) fn write(
    reading: &Reading,
    common: &Common,
    locations: &Locations<'_>,
    remarks: &[String],
) -> Result<u8, AppError> {
    write_with(reading, common, locations, remarks, false)
}

/// The same below a verdict, which has said why a process without a ring may not be looked into.
pub(super) fn write_after_verdict(
    reading: &Reading,
    common: &Common,
    locations: &Locations<'_>,
    remarks: &[String],
) -> Result<u8, AppError> {
    write_with(reading, common, locations, remarks, reading.unrecorded().is_some())
}

fn write_with(
    reading: &Reading,
    common: &Common,
    locations: &Locations<'_>,
    remarks: &[String],
    is_hidden_said: bool,
) -> Result<u8, AppError> {
    if common.json {
        let mut out = output(common);
        let of_modules = locations.resolver().problems().into_iter().map(of_module);
        for (about, what, hint) in of_modules.chain(warnings(reading, common, locations, false)) {
            Json(&mut out).problem(&about, &what, Some(&hint))?;
        }
        out.flush()?;
    } else {
        remarks.iter().chain(&besides(reading, common, locations, is_hidden_said)).for_each(remark);
    }
    report_defects(reading, common)
}

/// What every result leaves out, in sentences: what was lost, and warnings with their hints.
pub(super) fn besides(
    reading: &Reading,
    common: &Common,
    locations: &Locations<'_>,
    is_hidden_said: bool,
) -> Vec<String> {
    let mut lines = report::remarks::of_recording(&reading.snapshot);
    if reading.unrecorded().is_none() {
        lines.push(report::remarks::of_losses(&reading.losses, &reading.snapshot));
    }
    lines.extend(report::remarks::of_refused(&reading.snapshot));
    lines.extend(report::remarks::of_unpatched(locations));
    let problems = locations.resolver().problems();
    lines.extend(report::remarks::of_debug_info(&problems));
    let of_modules = problems.into_iter().filter(|problem| !problem.is_about_debug_info()).map(of_module);
    for (_, what, hint) in of_modules.chain(warnings(reading, common, locations, is_hidden_said)) {
        lines.push(format!("Warning: {}", printable(&what)));
        if !hint.is_empty() {
            lines.push(format!("Hint: {hint}"));
        }
    }
    lines
}

/// What could not be read or named: about which file, what it is, and what to do.
type Warning = (String, String, String);

fn of_module(problem: ModuleProblem) -> Warning {
    let about = problem.path.to_string_lossy().into_owned();
    (about, report::remarks::of_module(&problem), problem.hint().to_owned())
}

/// The warnings that are about no module.
fn warnings(
    reading: &Reading,
    common: &Common,
    locations: &Locations<'_>,
    is_hidden_said: bool,
) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = Vec::new();
    let own = reading.path.to_string_lossy().into_owned();
    if reading.snapshot.header.is_none() && reading.seen.is_none() && common.exe.is_none() {
        let (what, hint) = report::remarks::UNNAMED_PROGRAM;
        warnings.push((own.clone(), what.to_owned(), hint.to_owned()));
    }
    let hidden = reading.seen.as_ref().and_then(|seen| seen.target.hidden.as_ref());
    if let Some(hidden) = hidden.filter(|_| !is_hidden_said) {
        let what = format!("memory, stacks and system calls are not shown: {hidden}");
        warnings.push((own.clone(), what, hidden.remedy().unwrap_or_default().to_owned()));
    }
    if let Some(unstopped) = reading.seen.as_ref().and_then(|seen| seen.unstopped.as_ref()) {
        warnings.push((own.clone(), unstopped.to_string(), unstopped.remedy().to_owned()));
    }
    for gap in reading.core.iter().flat_map(|core| &core.gaps).filter(|gap| !gap.is_damage()) {
        warnings.push((own.clone(), gap.to_string(), gap.hint().to_owned()));
    }
    if let Some((what, hint)) = report::remarks::of_ambiguous(locations) {
        warnings.push((own, what, hint.to_owned()));
    }
    warnings
}

/// What is damaged, each with a hint.
pub(super) fn damage(reading: &Reading) -> Vec<(String, &'static str)> {
    let of_ring = reading.snapshot.defects.iter().map(|defect| (defect.to_string(), defect.hint()));
    let gaps = reading.core.iter().flat_map(|core| &core.gaps).filter(|gap| gap.is_damage());
    of_ring.chain(gaps.map(|gap| (gap.to_string(), gap.hint()))).collect()
}

/// Writes what is damaged to standard error, or as JSON. Returns the exit status.
pub(super) fn report_defects(reading: &Reading, common: &Common) -> Result<u8, AppError> {
    let about = reading.path.to_string_lossy();
    let mut hints = Vec::new();
    let all = damage(reading);
    for (what, hint) in &all {
        if common.json {
            let mut out = output(common);
            Json(&mut out).problem(&about, what, Some(hint))?;
            out.flush()?;
        } else {
            remark(format_args!("Damaged: {}", printable(what)));
            if !hints.contains(hint) {
                hints.push(hint);
            }
        }
    }
    hints.iter().for_each(|hint| remark(format_args!("Hint: {hint}")));
    Ok(if all.is_empty() { SOUND } else { ERROR })
}
