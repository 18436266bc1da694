//! Errors of the SQLite driver as errors of this program.

use ringer_base::error::Error;

/// Returns the error of a database that was closed.
pub(crate) fn closed_error() -> Error {
    Error::internal("the database is closed")
}

/// Converts an error of the driver, with SQLite's own text.
pub(crate) fn fault(error: rusqlite::Error) -> Error {
    Error::internal_as(error.to_string(), error)
}
