//! Errors of the services, with the texts that users see. The API maps each variant to its status; nothing here knows
//! HTTP.

use std::fmt;
use std::sync::Arc;

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
    /// As many requests of this kind run as may.
    Busy(String),
    /// The call runs on another engine, which cannot be reached.
    NotReachable(String),
    /// The request is not possible now (draining, no language model).
    Unavailable(String),
    /// An engine fault; its text is for the log, not for the user.
    Internal(Fault),
}

/// Failure of a provider. Holds no secret and no speech.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Stable, lower case with underscores, for example `synthesizer_missing`.
    pub code: &'static str,
    /// Explanation for display; names the package or setting that mends it.
    pub message: String,
}

/// An engine fault with the errors that led to it. Equal faults have equal texts.
#[derive(Clone)]
pub struct Fault {
    text: String,
    cause: Arc<Cause>,
    is_outage: bool,
}

/// Answer while the database cannot be reached.
pub const DATABASE_AWAY: &str = "The database does not answer";

/// The error behind a fault.
type Cause = dyn std::error::Error + Send + Sync;

/// Returns a text with those of an error and its causes after it, as far as they say something else.
fn with_causes(text: String, cause: &Cause) -> String {
    let mut message = text;
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(cause);
    while let Some(error) = cause {
        let text = error.to_string();
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        cause = error.source();
    }
    message
}

impl Fault {
    /// True for [`Error::outage`]: the same request may succeed later.
    pub fn is_outage(&self) -> bool {
        self.is_outage
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

impl PartialEq for Fault {
    fn eq(&self, other: &Fault) -> bool {
        self.text == other.text
    }
}

impl Eq for Fault {}

/// True for an input or output error of a machine that has no file, port or memory left: not the other side's fault.
pub fn is_out_of_resources(error: &std::io::Error) -> bool {
    const OWN: [i32; 6] = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM, libc::EADDRNOTAVAIL, libc::ENOSPC];
    error.raw_os_error().is_some_and(|code| OWN.contains(&code))
}

impl Error {
    /// Returns a fault of the engine: a failed statement, a full disk. A text is a fault without a cause.
    pub fn internal(cause: impl Into<Box<Cause>>) -> Error {
        let cause: Arc<Cause> = cause.into().into();
        Error::Internal(Fault { text: with_causes(cause.to_string(), &*cause), cause, is_outage: false })
    }

    /// Returns a fault of the engine with a text of its own, and the error that led to it.
    pub fn internal_by(text: impl fmt::Display, cause: impl Into<Box<Cause>>) -> Error {
        let cause: Arc<Cause> = cause.into().into();
        Error::Internal(Fault { text: with_causes(text.to_string(), &*cause), cause, is_outage: false })
    }

    /// Returns the fault of a database that cannot be reached, before anything of the request was begun there.
    pub fn outage(cause: impl Into<Box<Cause>>) -> Error {
        let cause: Arc<Cause> = cause.into().into();
        Error::Internal(Fault { text: with_causes(DATABASE_AWAY.to_owned(), &*cause), cause, is_outage: true })
    }

    /// Returns a fault of the engine with a text that says all, and keeps the error that led to it.
    pub fn internal_as(text: impl fmt::Display, cause: impl Into<Box<Cause>>) -> Error {
        Error::Internal(Fault { text: text.to_string(), cause: cause.into().into(), is_outage: false })
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
            | Error::Busy(text)
            | Error::NotReachable(text)
            | Error::Unavailable(text) => f.write_str(text),
            Error::Internal(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    /// Returns the error behind an engine fault. Its text stands in the fault's own.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Internal(fault) => Some(&*fault.cause),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    /// An error with the error behind it, whose text may repeat that one's.
    #[derive(Debug)]
    struct Outer(&'static str, std::io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl std::error::Error for Outer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.1)
        }
    }

    #[test]
    fn a_fault_keeps_its_causes_and_tells_each_once() {
        let full = || std::io::Error::other("the disk is full");
        for (error, text) in [
            (Error::internal("nothing was tried"), "nothing was tried"),
            (Error::internal(full()), "the disk is full"),
            (Error::internal(Outer("no page was written", full())), "no page was written: the disk is full"),
            (Error::internal(Outer("no page: the disk is full", full())), "no page: the disk is full"),
            (Error::internal_by("the key file", Outer("unread", full())), "the key file: unread: the disk is full"),
        ] {
            assert_eq!(error.to_string(), text);
            assert_eq!(error, Error::internal(text), "by the text");
        }
        let error = Error::internal(Outer("no page was written", full()));
        let cause = error.source().and_then(|cause| cause.downcast_ref::<Outer>()).expect("the error that was given");
        assert_eq!(cause.1.kind(), std::io::ErrorKind::Other);
        assert!(Error::Refused("no".to_owned()).source().is_none());
    }
}
