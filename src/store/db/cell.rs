//! Values as they go into statements and come out of rows, the same for every database.

use std::sync::Arc;

use uuid::Uuid;

/// A value given to a statement or read from a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// An integer or NULL.
    Int(Option<i64>),
    /// A text or NULL.
    Text(Option<String>),
}

impl From<i64> for Cell {
    fn from(value: i64) -> Cell {
        Cell::Int(Some(value))
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Cell {
        Cell::Int(Some(i64::from(value)))
    }
}

impl From<Option<i64>> for Cell {
    fn from(value: Option<i64>) -> Cell {
        Cell::Int(value)
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Cell {
        Cell::Text(Some(value.to_owned()))
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Cell {
        Cell::Text(Some(value))
    }
}

impl From<Option<String>> for Cell {
    fn from(value: Option<String>) -> Cell {
        Cell::Text(value)
    }
}

impl From<Uuid> for Cell {
    fn from(value: Uuid) -> Cell {
        Cell::Text(Some(value.to_string()))
    }
}

impl From<Option<Uuid>> for Cell {
    fn from(value: Option<Uuid>) -> Cell {
        Cell::Text(value.map(|id| id.to_string()))
    }
}

/// A row of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    columns: Arc<[String]>,
    cells: Vec<Cell>,
}

impl Row {
    /// A row of these columns; `cells` has one for each.
    pub fn new(columns: Arc<[String]>, cells: Vec<Cell>) -> Row {
        Row { columns, cells }
    }

    /// The value of a column, by its name or its place from 0. An integer or a text; NULL only as an `Option`.
    pub fn try_get<T: FromCell, C: Column>(&self, column: C) -> Result<T, sqlx::Error> {
        let at = column.place(&self.columns)?;
        let cell =
            self.cells.get(at).ok_or(sqlx::Error::ColumnIndexOutOfBounds { index: at, len: self.cells.len() })?;
        T::from_cell(cell).ok_or_else(|| sqlx::Error::ColumnDecode {
            index: self.columns[at].clone(),
            source: format!("{} is not what was asked for", kind(cell)).into(),
        })
    }
}

fn kind(cell: &Cell) -> &'static str {
    match cell {
        Cell::Int(Some(_)) => "an integer",
        Cell::Text(Some(_)) => "a text",
        Cell::Int(None) | Cell::Text(None) => "NULL",
    }
}

/// What names a column.
pub trait Column {
    /// Its place among `columns`.
    fn place(self, columns: &[String]) -> Result<usize, sqlx::Error>;
}

impl Column for usize {
    fn place(self, _: &[String]) -> Result<usize, sqlx::Error> {
        Ok(self)
    }
}

impl Column for &str {
    fn place(self, columns: &[String]) -> Result<usize, sqlx::Error> {
        columns.iter().position(|name| name == self).ok_or_else(|| sqlx::Error::ColumnNotFound(self.to_owned()))
    }
}

/// What a cell can be read as.
pub trait FromCell: Sized {
    /// The value; `None` when the cell holds something else.
    fn from_cell(cell: &Cell) -> Option<Self>;
}

impl FromCell for i64 {
    fn from_cell(cell: &Cell) -> Option<i64> {
        match cell {
            Cell::Int(value) => *value,
            Cell::Text(_) => None,
        }
    }
}

impl FromCell for String {
    fn from_cell(cell: &Cell) -> Option<String> {
        match cell {
            Cell::Text(value) => value.clone(),
            Cell::Int(_) => None,
        }
    }
}

impl<T: FromCell> FromCell for Option<T> {
    fn from_cell(cell: &Cell) -> Option<Option<T>> {
        match cell {
            Cell::Int(None) | Cell::Text(None) => Some(None),
            _ => T::from_cell(cell).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cell, Row};

    #[test]
    fn a_cell_is_read_as_what_it_is() {
        let cells = vec![Cell::Int(Some(7)), Cell::Text(Some("t".into())), Cell::Int(None)];
        let row = Row::new(["a", "b", "c"].map(str::to_owned).into(), cells);
        assert_eq!(row.try_get::<i64, _>("a").ok(), Some(7));
        assert_eq!(row.try_get::<Option<String>, _>(1).ok(), Some(Some("t".to_owned())));
        assert_eq!(row.try_get::<Option<String>, _>("c").ok(), Some(None), "NULL has no kind");
        for (text, error) in [
            ("text as integer", row.try_get::<i64, _>("b").map(drop)),
            ("NULL as integer", row.try_get::<i64, _>("c").map(drop)),
            ("integer as text", row.try_get::<String, _>("a").map(drop)),
            ("no such column", row.try_get::<i64, _>("d").map(drop)),
            ("no such place", row.try_get::<i64, _>(3).map(drop)),
        ] {
            assert!(error.is_err(), "{text}");
        }
    }
}
