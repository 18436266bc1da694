//! A table of typed columns, and its text forms: CSV (RFC 4180), and JSON with an object a line.

use std::io;

use ringer_base::error::{Error, Result};
use serde::Serialize;
use serde_json::{Map, Value};

/// First characters by which spreadsheets recognise a formula.
const FORMULA: [char; 7] = ['=', '+', '-', '@', '\t', '\r', '\n'];

/// Type of the values of a column; each may be null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Whole numbers of 64 bits.
    Integer,
    /// Numbers in double precision.
    Number,
    /// Values that are true or false.
    Truth,
    /// Values that are texts.
    Text,
    /// Type that the values of the column show: all numbers, all true or false, else texts.
    Any,
}

/// One column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// Name, which no other column of the table has.
    pub name: String,
    /// Type of its values.
    pub kind: Kind,
}

impl Column {
    /// Returns a column with this name.
    pub(super) fn of(name: &str, kind: Kind) -> Column {
        Column { name: name.to_owned(), kind }
    }
}

/// Rows of cells, each with as many as there are columns.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Table {
    /// Columns in their order.
    pub columns: Vec<Column>,
    /// Cells of each row.
    pub rows: Vec<Vec<Value>>,
}

impl Table {
    /// Returns the table as CSV (RFC 4180), the names of the columns first.
    ///
    /// # Errors
    /// A row has another number of cells.
    pub(super) fn csv(&self) -> io::Result<Vec<u8>> {
        let mut table = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
        table.write_record(self.columns.iter().map(|column| cell(&Value::from(column.name.as_str()))))?;
        for row in &self.rows {
            table.write_record(row.iter().map(cell))?;
        }
        table.into_inner().map_err(|error| error.into_error())
    }

    /// Returns each row as an object with the columns as members.
    pub(super) fn objects(&self) -> Vec<Map<String, Value>> {
        let names = || self.columns.iter().map(|column| column.name.clone());
        self.rows.iter().map(|row| names().zip(row.iter().cloned()).collect()).collect()
    }

    /// Returns the type that the values of a column have.
    pub(super) fn kind_of(&self, at: usize) -> Kind {
        let kind = self.columns[at].kind;
        if kind != Kind::Any {
            return kind;
        }
        let values = || self.rows.iter().map(|row| &row[at]).filter(|value| !value.is_null());
        match () {
            // A metric without any value is a number too, so that files of several runs fit to each other.
            () if values().all(Value::is_number) => Kind::Number,
            () if values().all(Value::is_boolean) => Kind::Truth,
            () => Kind::Text,
        }
    }
}

/// Returns values as JSON, one a line.
pub(super) fn lines<T: Serialize>(values: &[T]) -> Result<Vec<u8>> {
    let mut lines = Vec::new();
    for value in values {
        serde_json::to_writer(&mut lines, value).map_err(Error::internal)?;
        lines.push(b'\n');
    }
    Ok(lines)
}

/// Returns a value as the text of a cell. One that a spreadsheet would take for a formula begins with an apostrophe.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.starts_with(FORMULA) => format!("'{text}"),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
