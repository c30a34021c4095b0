//! Looks at all processes of this machine: those that have rings, and those that look stuck.

use std::time::Duration;

use super::picture::severity;
use crate::app::check::{Manner, judge};
use crate::app::error::AppError;
use crate::app::machine::{names_of, read};
use crate::app::reading::Reading;
use crate::app::verdict::sentence;
use crate::cli::{CheckArgs, Common, RingArgs};
use crate::report::{self, Looked, printable};
use crate::top::{Machine, ProcessRow, Severity};

/// The processes with findings first, the most certain ones on top, and then all others that have rings.
pub(super) fn survey(wanted: &Common, window: Duration) -> Result<Machine, AppError> {
    let args = CheckArgs { window, ..CheckArgs::of(RingArgs::default()) };
    let mut rows = Vec::new();
    let mut unread = Vec::new();
    let mut looked = Looked::default();
    read(&args, wanted, &mut looked, &mut |path, _, readings| {
        let program = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let judged = readings.and_then(|readings| {
            judge(readings, &args, &[], wanted, Manner::Screen, &mut |found, checked, names, reading| {
                let (process, name) = names_of(reading);
                let text = sentence(checked.balance.outcome, found, names);
                rows.push(ProcessRow {
                    name,
                    program: printable(&process).into_owned(),
                    severity: severity(found),
                    text: text.unwrap_or_else(|| state(reading)),
                });
                Ok(())
            })
        });
        if let Err(error) = judged {
            let program = printable(&program).into_owned();
            let name = path.to_string_lossy().into_owned();
            unread.push(ProcessRow { name, program, severity: Severity::None, text: error.sentence() });
        }
        Ok(())
    })?;
    rows.sort_by_key(|row| std::cmp::Reverse(row.severity));
    looked.stuck = rows.iter().filter(|row| row.severity != Severity::None).count();
    rows.extend(unread);
    let mut text = Vec::new();
    report::looked(&mut text, &looked)?;
    Ok(Machine { rows, looked: report::plain_lines(&text) })
}

/// What is said of a process of which nothing is recorded that could be judged.
fn state(reading: &Reading) -> String {
    if reading.is_final() {
        "dead; no lock is in its record".to_owned()
    } else {
        "no lock is in its record".to_owned()
    }
}
