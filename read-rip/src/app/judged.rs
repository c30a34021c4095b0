//! `read-rip export` in the formats that have findings too: a ring is examined as `check` does, and becomes rows of
//! tables, or numbers.
//!
//! It says whose record it is, and where the files go. `export` has the formats.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use read_rip_case::{Case, Reading, Readings, Subject, now_ns};
use read_rip_evidence::process;
use read_rip_export as export;
use read_rip_export::tables::{Key, Moment, Ndjson, Parquet, Record, Table, fill};
use read_rip_model::locks::LockModel;
use read_rip_report::{self as report, hex, printable};

use super::check::{Filter, judge};
use super::error::AppError;
use super::limits::limits;
use super::output::{ERROR, SOUND, output};
use super::timelines::said;
use super::written::{self, Unfinished};
use crate::cli::{Common, ExportArgs};

/// No part of a file's name is longer, in characters.
const NAME_CHARACTERS: usize = 64;

/// A format that has findings.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Judged {
    Ndjson,
    Openmetrics,
    Parquet,
}

/// `read-rip export` in such a format.
pub(super) fn export(
    subject: &Subject,
    format: Judged,
    args: &ExportArgs,
    common: &Common,
) -> Result<u8, AppError> {
    if format == Judged::Parquet && written::target(&args.output).is_none() {
        return Err(AppError::NeedsFolder);
    }
    let options = common.options();
    let mut readings = Readings::of(subject, &options)?;
    let limits = limits(&args.time, &readings.reading)?;
    let said = said(&readings.reading, limits, &options);
    let mut case = Case::of(&mut readings, &options);
    let verdict = judge(&mut case, &Filter::default());
    let texts = case.texts(false);
    let names = case.names(&texts);
    let reading = case.reading;
    let boot_ns = report::realtime_ns(&reading.snapshot, 0);
    let record = Record {
        key: key(reading, names.model, boot_ns),
        names,
        said: &said,
        found: &verdict.found,
        balance: &verdict.checked.balance,
        snapshot: &reading.snapshot,
        liveness: reading.liveness.as_ref(),
        losses: reading.losses,
        limits,
        boot_ns,
    };
    write(&record, format, &reading.program(), args, common)?;
    let status = verdict.finish(&case, common)?;
    // Findings are no failure of an export.
    Ok(if status == ERROR { ERROR } else { SOUND })
}

fn write(
    record: &Record<'_>,
    format: Judged,
    program: &str,
    args: &ExportArgs,
    common: &Common,
) -> Result<(), AppError> {
    let to_stream = |out: &mut dyn Write| match format {
        Judged::Openmetrics => export::openmetrics(out, program, &record.names, record.found, args.locks),
        Judged::Ndjson | Judged::Parquet => fill(record, &mut Ndjson(out)),
    };
    let Some(target) = written::target(&args.output) else {
        let mut out = output(common);
        to_stream(&mut out)?;
        return Ok(out.flush()?);
    };
    match format {
        Judged::Parquet => {
            parquet(record, target).map_err(|source| AppError::Export { path: target.to_owned(), source })?;
        }
        Judged::Ndjson | Judged::Openmetrics => written::file(target, to_stream)?,
    }
    written::remark_of(target);
    Ok(())
}

/// Writes `FOLDER/TABLE/date=DAY/HOST.PROGRAM.PID.MOMENT.parquet`, beside files of other records. Each gets its name
/// when all are complete.
fn parquet(record: &Record<'_>, folder: &Path) -> io::Result<()> {
    let Key { host, program, pid, taken, .. } = &record.key;
    let day = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_nanos(taken.0)).to_string();
    let day = day.split('T').next().unwrap_or_default();
    let file = format!("{}.{}.{pid}.{}.parquet", file_name(host), file_name(program), taken.0);
    let target = |table: &str| folder.join(table).join(format!("date={day}")).join(&file);
    let mut rows = Parquet::new(|table: &'static Table| {
        let target = target(table.name);
        target.parent().map_or(Ok(()), fs::create_dir_all)?;
        Ok(BufWriter::new(Unfinished::new(&target)?))
    });
    fill(record, &mut rows)?;
    let mut files = rows.finish()?;
    for (_, file) in &mut files {
        file.flush()?;
    }
    // Where the process is, all other rows are.
    files.sort_by_key(|(table, _)| *table == "processes");
    for (_, file) in files {
        file.into_inner().map_err(io::IntoInnerError::into_error)?.complete()?;
    }
    Ok(())
}

/// A text of a ring as part of a file's name, on any file system.
fn file_name(text: &str) -> String {
    let letter =
        |letter: char| if letter.is_ascii_alphanumeric() || "-_".contains(letter) { letter } else { '_' };
    text.chars().take(NAME_CHARACTERS).map(letter).collect()
}

/// Whose record it is.
fn key(reading: &Reading, model: &LockModel, boot_ns: Option<u64>) -> Key {
    let header = reading.snapshot.header.as_ref();
    let build_id = reading.snapshot.program().map(|module| hex(&module.build_id));
    // A process without a ring lives on this machine.
    let own = || reading.process().map(|_| process::own_machine()).unwrap_or_default();
    let (host, boot_id) = header.map_or_else(own, |header| (header.host.clone(), header.boot_id));
    let described_ns = model.now_ns.zip(boot_ns).and_then(|(now, boot)| now.checked_add(boot));
    Key {
        host: printable(&host).into_owned(),
        boot_id: Some(boot_id).filter(|id| *id != [0; 16]).map(|id| hex(&id)),
        program: printable(&reading.program()).into_owned(),
        build_id: build_id.filter(|id| !id.is_empty()),
        pid: reading.pid().unwrap_or_default(),
        taken: Moment(described_ns.unwrap_or_else(now_ns)),
    }
}
