//! Rows as lines of JSON, all tables in one file: each line begins with the name of its table. What is missing is left
//! out. Moments are RFC 3339 with microseconds.

use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use serde::Serializer;
use serde::ser::SerializeMap;

use super::rows::Key;
use super::schema::{Cell, Column, Row, Rows, Table};

/// Writes rows as lines of JSON.
pub struct Ndjson<W>(pub W);

impl<W: Write> Rows for Ndjson<W> {
    fn row(&mut self, table: &'static Table, key: &[Cell<'_>], cells: &[Cell<'_>]) -> io::Result<()> {
        let mut json = serde_json::Serializer::new(&mut self.0);
        let mut map = json.serialize_map(None)?;
        map.serialize_entry("table", table.name)?;
        let all = Key::TABLE.columns.iter().zip(key).chain(table.columns.iter().zip(cells));
        for (column, cell) in all {
            entry(&mut map, column, cell)?;
        }
        map.end()?;
        self.0.write_all(b"\n")
    }
}

fn entry<M: SerializeMap>(map: &mut M, column: &Column, cell: &Cell<'_>) -> Result<(), M::Error> {
    match *cell {
        Cell::Null => Ok(()),
        Cell::Text(text) => map.serialize_entry(column.name(), text),
        Cell::Integer(number) => map.serialize_entry(column.name(), &number),
        Cell::Truth(truth) => map.serialize_entry(column.name(), &truth),
        Cell::Moment(us) => {
            let at = UNIX_EPOCH + Duration::from_micros(us.unsigned_abs());
            map.serialize_entry(column.name(), &humantime::format_rfc3339_micros(at).to_string())
        }
    }
}
