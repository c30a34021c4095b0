//! Rows as Parquet, a file for each table, compressed with Snappy.
//!
//! It keeps at most [`GROUP_ROWS`] rows of a table in memory: those of a row group.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use super::rows::{Key, TABLES};
use super::schema::{Cell, Column, ColumnKind, Row, Rows, Table};

/// The rows of a row group: what an engine reads at once.
const GROUP_ROWS: usize = 100_000;

/// Writes a Parquet file for each table. One without rows has columns: engines fail if a table has no file at all.
pub struct Parquet<W: Write + Send, F> {
    /// Makes the file of a table.
    make: F,
    files: BTreeMap<&'static str, TableFile<W>>,
}

struct TableFile<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Values>,
    rows: usize,
}

/// The values of a column that are not written yet. The levels say of each row whether it has one.
struct Values {
    known: Known,
    levels: Option<Vec<i16>>,
}

enum Known {
    Texts(Vec<ByteArray>),
    Integers(Vec<i64>),
    Truths(Vec<bool>),
}

impl<W: Write + Send, F: FnMut(&'static Table) -> io::Result<W>> Parquet<W, F> {
    /// `make` makes the file of a table, at the latest when all are completed.
    pub fn new(make: F) -> Parquet<W, F> {
        Parquet { make, files: BTreeMap::new() }
    }

    /// Completes all files. Returns them by the names of their tables.
    ///
    /// # Errors
    ///
    /// Those of the files.
    pub fn finish(mut self) -> io::Result<Vec<(&'static str, W)>> {
        TABLES.iter().try_for_each(|table| self.file(table).map(drop))?;
        let finished = self.files.into_iter().map(|(name, mut file)| {
            file.write_group().map_err(io_error)?;
            Ok((name, file.writer.into_inner().map_err(io_error)?))
        });
        finished.collect()
    }
}

impl<W: Write + Send, F: FnMut(&'static Table) -> io::Result<W>> Parquet<W, F> {
    /// The file of a table; makes it the first time.
    fn file(&mut self, table: &'static Table) -> io::Result<&mut TableFile<W>> {
        Ok(match self.files.entry(table.name) {
            Entry::Occupied(made) => made.into_mut(),
            Entry::Vacant(missing) => {
                missing.insert(TableFile::new((self.make)(table)?, table).map_err(io_error)?)
            }
        })
    }
}

impl<W: Write + Send, F: FnMut(&'static Table) -> io::Result<W>> Rows for Parquet<W, F> {
    fn row(&mut self, table: &'static Table, key: &[Cell<'_>], cells: &[Cell<'_>]) -> io::Result<()> {
        let file = self.file(table)?;
        for (column, cell) in file.columns.iter_mut().zip(key.iter().chain(cells)) {
            column.add(cell);
        }
        file.rows += 1;
        if file.rows == GROUP_ROWS { file.write_group().map_err(io_error) } else { Ok(()) }
    }
}

fn columns(table: &'static Table) -> impl Iterator<Item = &'static Column> {
    Key::TABLE.columns.iter().chain(table.columns)
}

impl<W: Write + Send> TableFile<W> {
    fn new(out: W, table: &'static Table) -> Result<TableFile<W>, ParquetError> {
        let fields = columns(table).map(|column| field(column).map(Arc::new));
        let fields = fields.collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder(table.name).with_fields(fields).build()?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
        Ok(TableFile { writer, columns: columns(table).map(Values::of).collect(), rows: 0 })
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        self.columns.iter_mut().try_for_each(|column| column.write(&mut group))?;
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

impl Values {
    fn of(column: &'static Column) -> Values {
        let known = match column.kind {
            ColumnKind::Text => Known::Texts(Vec::new()),
            ColumnKind::Integer | ColumnKind::Moment => Known::Integers(Vec::new()),
            ColumnKind::Truth => Known::Truths(Vec::new()),
        };
        Values { known, levels: column.is_nullable.then(Vec::new) }
    }

    fn add(&mut self, cell: &Cell<'_>) {
        if let Some(levels) = &mut self.levels {
            levels.push((*cell != Cell::Null).into());
        }
        match (&mut self.known, *cell) {
            (_, Cell::Null) => {}
            (Known::Texts(texts), Cell::Text(text)) => texts.push(text.into()),
            (Known::Integers(integers), Cell::Integer(integer) | Cell::Moment(integer)) => {
                integers.push(integer)
            }
            (Known::Truths(truths), Cell::Truth(truth)) => truths.push(truth),
            // A field has one kind, and its cells are of that kind.
            _ => unreachable!("a cell of another kind than its column"),
        }
    }

    /// Writes the values into the next column of a row group, and forgets them.
    fn write<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        let Some(mut column) = group.next_column()? else { return Ok(()) };
        let levels = self.levels.as_deref();
        match &self.known {
            Known::Texts(texts) => column.typed::<ByteArrayType>().write_batch(texts, levels, None)?,
            Known::Integers(integers) => column.typed::<Int64Type>().write_batch(integers, levels, None)?,
            Known::Truths(truths) => column.typed::<BoolType>().write_batch(truths, levels, None)?,
        };
        column.close()?;
        match &mut self.known {
            Known::Texts(texts) => texts.clear(),
            Known::Integers(integers) => integers.clear(),
            Known::Truths(truths) => truths.clear(),
        }
        self.levels.iter_mut().for_each(Vec::clear);
        Ok(())
    }
}

fn field(column: &Column) -> Result<Type, ParquetError> {
    let (physical, logical) = match column.kind {
        ColumnKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        ColumnKind::Integer => (Physical::INT64, None),
        ColumnKind::Truth => (Physical::BOOLEAN, None),
        ColumnKind::Moment => {
            let moment = LogicalType::timestamp(true, TimeUnit::MICROS);
            (Physical::INT64, Some(moment))
        }
    };
    let repetition = if column.is_nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    Type::primitive_type_builder(column.name(), physical)
        .with_logical_type(logical)
        .with_repetition(repetition)
        .build()
}

/// The error of a file comes back as it was.
fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(inner) => io::Error::other(inner),
        },
        error => io::Error::other(error),
    }
}
