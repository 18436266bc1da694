//! Errors of the services, with the texts that users see. The API maps each variant to its status; nothing here knows
//! HTTP.

use std::fmt;

/// The result of everything that a service does.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of a request that was not carried out. Texts are final: they are shown to the user as they stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No such row in this organization; the word is the resource (`Agent`, `Simulation run`). Text: `WORD not found`.
    NotFound(&'static str),
    /// A part of a found resource is not there yet (`Recording not available`).
    NotAvailable(String),
    /// The caller may not do this.
    Forbidden(String),
    /// A business rule says no.
    Refused(String),
    /// The state of the resource says no.
    Conflict(String),
    /// The resource was changed since it was read.
    Outdated(String),
    /// The request is not possible now (draining, no language model).
    Unavailable(String),
    /// An engine fault; the text is for the log, not for the user.
    Internal(String),
}

/// Failure of a provider. Holds no secret and no speech.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Stable, lower case with underscores, for example `synthesizer_missing`.
    pub code: &'static str,
    /// Explanation for display; names the package or setting that mends it.
    pub message: String,
}

/// True for an input or output error of a machine that has no file, port or memory left: not the other side's fault.
pub fn is_out_of_resources(error: &std::io::Error) -> bool {
    const OWN: [i32; 6] = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM, libc::EADDRNOTAVAIL, libc::ENOSPC];
    error.raw_os_error().is_some_and(|code| OWN.contains(&code))
}

impl Error {
    /// Returns a fault of the engine: a failed statement, a full disk.
    pub fn internal(cause: impl fmt::Display) -> Error {
        Error::Internal(cause.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotFound(word) => write!(f, "{word} not found"),
            Error::NotAvailable(text)
            | Error::Forbidden(text)
            | Error::Refused(text)
            | Error::Conflict(text)
            | Error::Outdated(text)
            | Error::Unavailable(text)
            | Error::Internal(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}
