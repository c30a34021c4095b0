//! Looks at all processes of this machine, again and again: those that have rings, and those that look stuck.
//!
//! The ring of a dead process does not change, so it is read once. Thousands of them are read in slices, so that the
//! living are looked at in between.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use read_rip_case::{Case, Options, Readings};
use read_rip_evidence::process::Found;
use read_rip_report::{self as report, Examined, counted, printable};
use read_rip_report::{ProcessRow, ProcessTable, Severity};
use read_rip_ring::FileId;

use crate::app::check::{Filter, judge};
use crate::app::error::AppError;
use crate::app::machine::{self, names_of};
use crate::app::picture::severity;
use crate::cli::Common;

/// How long rings of dead processes are read before the living are looked at again.
const SLICE: Duration = Duration::from_secs(1);

/// What was found so far.
#[derive(Default)]
pub(super) struct Processes {
    dead: HashMap<RingId, ProcessRow>,
}

/// Path, file, and when the ring was made, ns since 1970.
type RingId = (PathBuf, Option<FileId>, u64);

fn id(ring: &Found) -> RingId {
    let file = ring.header.read_from.map(|file| file.id);
    (ring.path.clone(), file, ring.header.created_realtime_ns)
}

impl Processes {
    /// The processes with findings first, the most certain ones on top, and then all others that have rings. With how
    /// many rings of dead processes have not been read yet.
    pub(super) fn read(
        &mut self,
        common: &Common,
        options: &Options,
    ) -> Result<(ProcessTable, usize), AppError> {
        let mut machine = machine::Scan::new(None, options, common);
        let mut rows = Vec::new();
        let dead = machine.read_living(&mut |path, _, readings| {
            rows.push(row(path, readings, options));
            Ok(())
        })?;
        let (began, mut before) = (Instant::now(), std::mem::take(&mut self.dead));
        let mut left = 0;
        for ring in dead {
            let id = id(&ring);
            let known = before.remove(&id);
            let row = match known {
                Some(known) => {
                    machine.examined.rings += 1;
                    known
                }
                None if began.elapsed() < SLICE => {
                    let (path, _, readings) = machine.read_dead(ring);
                    row(path, readings, options)
                }
                None => {
                    left += 1;
                    continue;
                }
            };
            rows.push(row.clone());
            self.dead.insert(id, row);
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.severity));
        let stuck = rows.iter().filter(|row| row.severity != Severity::None).count();
        let mut text = Vec::new();
        let unjudged = rows.iter().filter(|row| row.is_unjudged).count() + machine.unseen.len();
        report::unjudged(&mut text, &machine.unseen)?;
        report::examined(&mut text, &Examined { stuck, unjudged, ..machine.examined })?;
        let mut examined = report::plain_lines(&text);
        if left > 0 {
            examined.push(format!(
                "read-rip has not read {} of dead processes yet.",
                counted(left as u64, "ring")
            ));
        }
        Ok((ProcessTable { rows, examined }, left))
    }
}

/// What is said of a process or a ring.
fn row(path: PathBuf, readings: Result<Readings, AppError>, options: &Options) -> ProcessRow {
    let mut readings = match readings {
        Ok(readings) => readings,
        Err(error) => {
            let program = path.file_name().unwrap_or_default().to_string_lossy();
            return ProcessRow {
                name: path.to_string_lossy().into_owned(),
                program: printable(&program).into_owned(),
                severity: Severity::None,
                is_unjudged: false,
                text: error.sentence(),
            };
        }
    };
    let mut case = Case::of(&mut readings, options);
    let verdict = judge(&mut case, &Filter::default());
    let texts = case.texts(false);
    let (process, name) = names_of(case.reading);
    let text = report::verdict(&verdict.checked.balance, &verdict.found, &case.names(&texts));
    let severity = severity(&verdict.found);
    let is_unjudged = verdict.found.is_empty() && !verdict.checked.balance.outcome.is_judged();
    ProcessRow { name, program: printable(&process).into_owned(), severity, is_unjudged, text }
}
