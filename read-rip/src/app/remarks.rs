//! The remarks about a reading: what its result leaves out, and what is damaged.
//!
//! `report::remarks` has the sentences.

use std::io::Write;

use read_rip_model::locations::Locations;
use read_rip_report::{self as report, Json, printable};

use super::error::AppError;
use super::output::{ERROR, SOUND, output, remark};
use super::reading::Reading;
use crate::cli::Common;

impl Reading {
    /// Writes to standard error what the result does not show. Returns the exit status that follows from it.
    pub(super) fn remarks(
        &self,
        wanted: &Common,
        locations: &Locations<'_>,
        remarks: &[String],
    ) -> Result<u8, AppError> {
        if wanted.json {
            let mut out = output(wanted);
            for (about, what, hint) in &self.warnings(wanted, locations, true) {
                Json(&mut out).problem(about, what, Some(hint))?;
            }
            out.flush()?;
        } else {
            remarks.iter().chain(&self.besides(wanted, locations)).for_each(remark);
        }
        self.report_defects(wanted)
    }

    /// What every result leaves out, in sentences: what was lost, and warnings with their hints.
    pub(super) fn besides(&self, wanted: &Common, locations: &Locations<'_>) -> Vec<String> {
        let mut lines = report::remarks::of_recording(&self.snapshot);
        if self.bare().is_none() {
            lines.push(report::remarks::of_losses(&self.losses));
        }
        lines.extend(report::remarks::of_refused(&self.snapshot));
        lines.extend(report::remarks::of_unpatched(locations));
        for (_, what, hint) in self.warnings(wanted, locations, false) {
            lines.push(format!("Warning: {}", printable(&what)));
            if !hint.is_empty() {
                lines.push(format!("Hint: {hint}"));
            }
        }
        lines
    }

    /// What could not be read or named: about which file, what it is, and what to do. `is_alone`: nothing else says why
    /// a process may not be looked into.
    fn warnings(
        &self,
        wanted: &Common,
        locations: &Locations<'_>,
        is_alone: bool,
    ) -> Vec<(String, String, String)> {
        let mut warnings: Vec<(String, String, String)> = Vec::new();
        let own = self.path.to_string_lossy().into_owned();
        if self.snapshot.header.is_none() && self.seen.is_none() && wanted.exe.is_none() {
            let (what, hint) = report::remarks::UNNAMED_PROGRAM;
            warnings.push((own.clone(), what.to_owned(), hint.to_owned()));
        }
        for problem in locations.resolver().problems() {
            let about = problem.path.to_string_lossy().into_owned();
            warnings.push((about, report::remarks::of_module(&problem), problem.hint().to_owned()));
        }
        let is_said = !is_alone && self.bare().is_some();
        if let Some(hidden) =
            self.seen.as_ref().and_then(|seen| seen.target.hidden.as_ref()).filter(|_| !is_said)
        {
            let what = format!("memory, stacks and system calls are not shown: {hidden}");
            warnings.push((own.clone(), what, hidden.remedy().unwrap_or_default().to_owned()));
        }
        if let Some(unstopped) = self.seen.as_ref().and_then(|seen| seen.unstopped.as_ref()) {
            warnings.push((own.clone(), unstopped.to_string(), unstopped.remedy().to_owned()));
        }
        for gap in self.core.iter().flat_map(|core| &core.gaps).filter(|gap| !gap.is_damage()) {
            warnings.push((own.clone(), gap.to_string(), gap.hint().to_owned()));
        }
        if let Some((what, hint)) = report::remarks::of_ambiguous(locations) {
            warnings.push((own, what, hint.to_owned()));
        }
        warnings
    }

    /// What is damaged, each with a hint.
    pub(super) fn damage(&self) -> Vec<(String, &'static str)> {
        let of_ring = self.snapshot.defects.iter().map(|defect| (defect.to_string(), defect.hint()));
        let gaps = self.core.iter().flat_map(|core| &core.gaps).filter(|gap| gap.is_damage());
        of_ring.chain(gaps.map(|gap| (gap.to_string(), gap.hint()))).collect()
    }

    /// Writes what is damaged to standard error, or as JSON. Returns the exit status.
    pub(super) fn report_defects(&self, wanted: &Common) -> Result<u8, AppError> {
        let about = self.path.to_string_lossy();
        let mut hints = Vec::new();
        let all = self.damage();
        for (what, hint) in &all {
            if wanted.json {
                let mut out = output(wanted);
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
}
