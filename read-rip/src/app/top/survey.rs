//! Looks at all processes of this machine, again and again: those that have rings, and those that look stuck.
//!
//! The ring of a dead process does not change, so it is read once. Thousands of them are read in slices, so that the
//! living are looked at in between.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use read_rip_evidence::process::Found;
use read_rip_report::{self as report, Looked, counted, printable};
use read_rip_report::{Machine, ProcessRow, Severity};
use read_rip_ring::FileId;
use read_rip_symbols::OpenedFiles;

use super::picture::severity;
use crate::app::check::{Manner, Readings, judge};
use crate::app::error::AppError;
use crate::app::machine::{self, names_of};
use crate::app::reading::Reading;
use crate::app::verdict::sentence;
use crate::cli::{CheckArgs, Common, RingArgs};

/// How long rings of dead processes are read before the living are looked at again.
const SLICE: Duration = Duration::from_secs(1);

/// What was found so far.
#[derive(Default)]
pub(super) struct Survey {
    opened: OpenedFiles,
    /// Of dead processes.
    dead: HashMap<RingId, ProcessRow>,
}

/// Path, file, and when the ring was made, ns since 1970.
type RingId = (PathBuf, Option<FileId>, u64);

fn id(ring: &Found) -> RingId {
    let file = ring.header.read_from.map(|file| file.id);
    (ring.path.clone(), file, ring.header.created_realtime_ns)
}

impl Survey {
    /// The processes with findings first, the most certain ones on top, and then all others that have rings. With how
    /// many rings of dead processes have not been read yet.
    pub(super) fn look(&mut self, wanted: &Common, window: Duration) -> Result<(Machine, usize), AppError> {
        let args = CheckArgs { window, ..CheckArgs::of(RingArgs::default()) };
        let mut machine =
            machine::Machine { args: &args, wanted, opened: self.opened.clone(), looked: Looked::default() };
        let mut rows = Vec::new();
        let dead = machine.read_living(&mut |path, _, readings| {
            rows.push(row(path, readings, &args, wanted));
            Ok(())
        })?;
        let (began, mut before) = (Instant::now(), std::mem::take(&mut self.dead));
        let mut left = 0;
        for ring in dead {
            let id = id(&ring);
            let known = before.remove(&id);
            let row = match known {
                Some(known) => {
                    machine.looked.rings += 1;
                    known
                }
                None if began.elapsed() < SLICE => {
                    let (path, _, readings) = machine.read_dead(ring);
                    row(path, readings, &args, wanted)
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
        report::looked(&mut text, &Looked { stuck, ..machine.looked })?;
        let mut looked = report::plain_lines(&text);
        if left > 0 {
            looked.push(format!("Not read yet: {} of dead processes.", counted(left as u64, "ring")));
        }
        Ok((Machine { rows, looked }, left))
    }
}

/// What is said of a process or a ring.
fn row(path: PathBuf, readings: Result<Readings, AppError>, args: &CheckArgs, wanted: &Common) -> ProcessRow {
    let mut made = None;
    let judged = readings.and_then(|readings| {
        judge(readings, args, &[], wanted, Manner::Screen, &mut |found, checked, names, reading| {
            let (process, name) = names_of(reading);
            let text = sentence(&checked.balance, found, names);
            made = Some(ProcessRow {
                name,
                program: printable(&process).into_owned(),
                severity: severity(found),
                text: text.unwrap_or_else(|| state(reading)),
            });
            Ok(())
        })
    });
    let unread = |text: String| {
        let program = path.file_name().unwrap_or_default().to_string_lossy();
        ProcessRow {
            name: path.to_string_lossy().into_owned(),
            program: printable(&program).into_owned(),
            severity: Severity::None,
            text,
        }
    };
    match judged {
        Err(error) => unread(error.sentence()),
        Ok(_) => made.unwrap_or_else(|| unread(String::new())),
    }
}

/// What is said of a process of which nothing is recorded that could be judged.
fn state(reading: &Reading) -> String {
    if reading.is_final() {
        "dead; no lock is in its record".to_owned()
    } else {
        "no lock is in its record".to_owned()
    }
}
