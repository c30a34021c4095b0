//! The files of `read-rip export --format parquet`: where they go and what they are called.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use read_rip_export::tables::{Key, Parquet, Record, Table, fill};

use super::written::Unfinished;

/// No part of a file's name is longer, in characters.
const NAME_CHARACTERS: usize = 64;

/// Writes `FOLDER/TABLE/date=DAY/HOST.PROGRAM.PID.MOMENT.parquet`, beside files of other records. Each gets its name
/// when all are complete.
pub(super) fn write(record: &Record<'_>, folder: &Path) -> io::Result<()> {
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
