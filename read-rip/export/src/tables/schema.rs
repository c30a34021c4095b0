//! What a table is: its columns, its rows, and who takes them. It knows no table and no format.

use std::io;

/// A table: its name, what its rows are, and its columns. Those of [`Key`](super::Key) come before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    pub name: &'static str,
    pub about: &'static str,
    /// Its columns, in the order of the cells of a row.
    pub columns: &'static [Column],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    name: &'static str,
    /// What it says.
    pub about: &'static str,
    pub kind: ColumnKind,
    /// Whether a value may be missing: it is not known, or there is none.
    pub is_nullable: bool,
}

impl Column {
    /// A column of a field of this type.
    pub(super) const fn of<T: Field>(name: &'static str, about: &'static str) -> Column {
        Column { name, about, kind: T::KIND, is_nullable: T::IS_NULLABLE }
    }

    /// Its name, as users write it.
    pub fn name(&self) -> &'static str {
        self.name.trim_start_matches("r#")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// UTF-8.
    Text,
    /// 64 bits with a sign: engines know few types without one.
    Integer,
    Truth,
    /// A moment, UTC.
    Moment,
}

impl ColumnKind {
    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            ColumnKind::Text => "text",
            ColumnKind::Integer => "integer",
            ColumnKind::Truth => "boolean",
            ColumnKind::Moment => "timestamp",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    /// It is not known, or there is none.
    Null,
    Text(&'a str),
    Integer(i64),
    Truth(bool),
    /// A moment, µs since 1970.
    Moment(i64),
}

/// A moment, ns since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment(pub u64);

impl Moment {
    /// µs since 1970. All moments of 64 bits fit.
    pub fn micros(self) -> i64 {
        i64::try_from(self.0 / 1000).unwrap_or(i64::MAX)
    }
}

/// A type that a column may have.
pub trait Field {
    const KIND: ColumnKind;
    /// Whether one may be missing.
    const IS_NULLABLE: bool = false;
    fn cell(&self) -> Cell<'_>;
}

impl Field for String {
    const KIND: ColumnKind = ColumnKind::Text;
    fn cell(&self) -> Cell<'_> {
        Cell::Text(self)
    }
}

impl Field for &str {
    const KIND: ColumnKind = ColumnKind::Text;
    fn cell(&self) -> Cell<'_> {
        Cell::Text(self)
    }
}

impl Field for bool {
    const KIND: ColumnKind = ColumnKind::Truth;
    fn cell(&self) -> Cell<'_> {
        Cell::Truth(*self)
    }
}

impl Field for u64 {
    const KIND: ColumnKind = ColumnKind::Integer;
    /// A number of more than 63 bits counts nothing: the ring is damaged.
    const IS_NULLABLE: bool = true;
    fn cell(&self) -> Cell<'_> {
        i64::try_from(*self).map_or(Cell::Null, Cell::Integer)
    }
}

impl Field for usize {
    const KIND: ColumnKind = ColumnKind::Integer;
    fn cell(&self) -> Cell<'_> {
        Cell::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
    }
}

impl Field for u32 {
    const KIND: ColumnKind = ColumnKind::Integer;
    fn cell(&self) -> Cell<'_> {
        Cell::Integer((*self).into())
    }
}

impl Field for i32 {
    const KIND: ColumnKind = ColumnKind::Integer;
    fn cell(&self) -> Cell<'_> {
        Cell::Integer((*self).into())
    }
}

impl Field for Moment {
    const KIND: ColumnKind = ColumnKind::Moment;
    fn cell(&self) -> Cell<'_> {
        Cell::Moment(self.micros())
    }
}

impl<T: Field> Field for Option<T> {
    const KIND: ColumnKind = T::KIND;
    const IS_NULLABLE: bool = true;
    fn cell(&self) -> Cell<'_> {
        self.as_ref().map_or(Cell::Null, T::cell)
    }
}

pub trait Row {
    const TABLE: &'static Table;
    /// Its values, in the order of the columns.
    fn cells(&self) -> Vec<Cell<'_>>;
}

/// Who takes rows: a file of some format.
pub trait Rows {
    /// Takes a row of a table. `key` has the values of the columns that all tables begin with.
    ///
    /// # Errors
    ///
    /// Those of what it writes to.
    fn row(&mut self, table: &'static Table, key: &[Cell<'_>], cells: &[Cell<'_>]) -> io::Result<()>;
}

/// Defines the row of a table, and its columns, from one list.
macro_rules! table {
    (
        $(#[doc = $about:literal])+
        $Row:ident = $name:literal {
            $( $(#[doc = $column:literal])+ $field:ident: $type:ty, )*
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug)]
        pub struct $Row {
            $( $(#[doc = $column])+ pub $field: $type, )*
        }

        impl $crate::tables::schema::Row for $Row {
            const TABLE: &'static $crate::tables::schema::Table = &$crate::tables::schema::Table {
                name: $name,
                about: concat!($($about),+),
                columns: &[$(
                    $crate::tables::schema::Column::of::<$type>(stringify!($field), concat!($($column),+))
                ),*],
            };

            fn cells(&self) -> Vec<$crate::tables::schema::Cell<'_>> {
                vec![$( $crate::tables::schema::Field::cell(&self.$field) ),*]
            }
        }
    };
}
pub(super) use table;
