//! Values of statements and rows, the same for every database.

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

/// Names of a result's columns, in one allocation, since every query makes them.
#[derive(Clone, Debug, PartialEq)]
pub struct Names(Arc<str>);

/// Terminator of each name.
const END: char = '\0';

impl<'n> FromIterator<&'n str> for Names {
    fn from_iter<I: IntoIterator<Item = &'n str>>(names: I) -> Names {
        let mut text = String::with_capacity(128);
        for name in names {
            text.push_str(name);
            text.push(END);
        }
        Names(text.into())
    }
}

impl Names {
    fn place_of(&self, name: &str) -> Option<usize> {
        self.0.split_terminator(END).position(|known| known == name)
    }

    fn name_at(&self, place: usize) -> &str {
        self.0.split_terminator(END).nth(place).unwrap_or_default()
    }
}

/// A row of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    columns: Names,
    cells: Vec<Cell>,
}

impl Row {
    /// Returns a row of these columns; `cells` has one for each.
    pub fn new(columns: Names, cells: Vec<Cell>) -> Row {
        Row { columns, cells }
    }

    /// Returns the value of a column, by its name or its index from 0: an integer or a text, NULL only as an `Option`.
    pub fn try_get<'r, T: FromCell<'r>, C: Column>(&'r self, column: C) -> Result<T, sqlx::Error> {
        let at = column.place(&self.columns)?;
        let cell =
            self.cells.get(at).ok_or(sqlx::Error::ColumnIndexOutOfBounds { index: at, len: self.cells.len() })?;
        T::from_cell(cell).ok_or_else(|| sqlx::Error::ColumnDecode {
            index: self.columns.name_at(at).to_owned(),
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

/// A way to name a column: its name or its index.
pub trait Column {
    /// Returns its index among `columns`.
    fn place(self, columns: &Names) -> Result<usize, sqlx::Error>;
}

impl Column for usize {
    fn place(self, _: &Names) -> Result<usize, sqlx::Error> {
        Ok(self)
    }
}

impl Column for &str {
    fn place(self, columns: &Names) -> Result<usize, sqlx::Error> {
        columns.place_of(self).ok_or_else(|| sqlx::Error::ColumnNotFound(self.to_owned()))
    }
}

/// A type that a cell can be read as.
pub trait FromCell<'c>: Sized {
    /// Returns the value; `None` when the cell holds something else.
    fn from_cell(cell: &'c Cell) -> Option<Self>;
}

impl<'c> FromCell<'c> for i64 {
    fn from_cell(cell: &'c Cell) -> Option<i64> {
        match cell {
            Cell::Int(value) => *value,
            Cell::Text(_) => None,
        }
    }
}

impl<'c> FromCell<'c> for &'c str {
    fn from_cell(cell: &'c Cell) -> Option<&'c str> {
        match cell {
            Cell::Text(value) => value.as_deref(),
            Cell::Int(_) => None,
        }
    }
}

impl<'c> FromCell<'c> for String {
    fn from_cell(cell: &'c Cell) -> Option<String> {
        <&str>::from_cell(cell).map(str::to_owned)
    }
}

impl<'c, T: FromCell<'c>> FromCell<'c> for Option<T> {
    fn from_cell(cell: &'c Cell) -> Option<Option<T>> {
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
        let row = Row::new(["a", "b", "c"].into_iter().collect(), cells);
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
