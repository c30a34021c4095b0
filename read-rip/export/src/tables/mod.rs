//! The record as flat tables, for engines that know SQL. Each row says whose record it is of, so rows of many processes
//! and hosts go into one table.
//!
//! | module | answers |
//! |---|---|
//! | `schema` | what a table, a column and a row are |
//! | `rows` | which tables there are, and what each column says |
//! | `fill` | which rows does a record have? |
//! | `ndjson` | rows as lines of JSON |
//! | `parquet` | the rows of each table as a Parquet file |

mod fill;
mod ndjson;
#[cfg(feature = "parquet")]
mod parquet;
mod rows;
mod schema;

pub use fill::{Record, fill};
pub use ndjson::Ndjson;
#[cfg(feature = "parquet")]
pub use parquet::Parquet;
pub use rows::{
    EventRow, FindingRow, HoldRow, Key, LockRow, ModuleRow, ProcessRow, SpanRow, TABLES, TaskRow, ThreadRow,
    WaitRow,
};
pub use schema::{Cell, Column, ColumnKind, Field, Moment, Row, Rows, Table};
