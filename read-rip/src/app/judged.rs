//! `read-rip export` in the formats that have findings too: a ring is examined as `check` does, and becomes rows of
//! tables, or numbers.
//!
//! It says whose record it is, and where the files go. `export` has the formats.

use std::io::Write;

use read_rip_case::{Case, Reading, Readings, Subject, now_ns};
use read_rip_evidence::process;
use read_rip_export as export;
use read_rip_export::tables::{Key, Moment, Ndjson, Record, fill};
use read_rip_model::locks::LockModel;
use read_rip_report::{self as report, hex, printable};

use super::check::{Filter, judge};
use super::error::AppError;
use super::limits::within;
use super::output::{ERROR, SOUND, output};
use super::timelines::logged;
use super::written;
use crate::cli::{Common, ExportArgs};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Judged {
    Ndjson,
    Openmetrics,
    #[cfg(feature = "parquet")]
    Parquet,
}

/// `read-rip export` in such a format.
pub(super) fn export(
    subject: &Subject,
    format: Judged,
    args: &ExportArgs,
    common: &Common,
) -> Result<u8, AppError> {
    #[cfg(feature = "parquet")]
    if format == Judged::Parquet && written::target(&args.output).is_none() {
        return Err(AppError::NeedsFolder);
    }
    let options = common.options();
    let read = |subject: &Subject| Ok(Readings::of(subject, &options)?);
    // What follows joins the words of this time to those of the image, of which the findings are.
    let (mut readings, limits) = within(subject, &args.time, (true, None), read, |of| &of.reading)?;
    let logged = logged(&readings.reading, limits, &options);
    let mut case = Case::of(&mut readings, &options);
    let verdict = judge(&mut case, &Filter::default());
    let texts = case.texts(false);
    let names = case.names(&texts);
    let reading = case.reading;
    let boot_ns = report::realtime_ns(&reading.snapshot, 0);
    let record = Record {
        key: key(reading, names.model, boot_ns),
        names,
        logged: &logged,
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
        Judged::Openmetrics => {
            export::openmetrics(out, program, &record.names, record.found, record.snapshot, args.locks)
        }
        _ => fill(record, &mut Ndjson(out)),
    };
    let Some(target) = written::target(&args.output) else {
        let mut out = output(common);
        to_stream(&mut out)?;
        return Ok(out.flush()?);
    };
    match format {
        #[cfg(feature = "parquet")]
        Judged::Parquet => super::parquet::write(record, target)
            .map_err(|source| AppError::Export { path: target.to_owned(), source })?,
        Judged::Ndjson | Judged::Openmetrics => written::file(target, to_stream)?,
    }
    written::remark_of(target);
    Ok(())
}

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
