//! Mail that comes in: an SMTP listener (RFC 5321), and a mailbox that is read by IMAP (RFC 3501). Both give what came
//! to a [`Postbox`], which knows the conversations; nothing is decided here, and no mail is passed on to others.

mod listener;
mod mailbox;
mod smtp;
mod sources;

use std::net::IpAddr;

use async_trait::async_trait;

pub use self::listener::{ListenerSettings, SmtpListener};
pub use self::mailbox::{Mailbox, MailboxFault};
pub use self::smtp::{Command, Session, SessionLimits};

/// A mail that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Address that it came from; `None`: it was read from a mailbox.
    pub source: Option<IpAddr>,
    /// Sender of the envelope; empty: the null sender, or not known.
    pub envelope_from: String,
    /// Recipients that were accepted.
    pub recipients: Vec<String>,
    /// The whole mail as bytes.
    pub raw: Vec<u8>,
}

/// Answer of a postbox to a mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// It is kept, and not lost any more.
    Kept,
    /// It can never be taken, for this reason.
    Refused(&'static str),
    /// It cannot be taken now.
    Later,
}

/// Store of mails that came in.
#[async_trait]
pub trait Postbox: Send + Sync {
    /// Returns true if mail to an address is taken; `None`: that cannot be told now.
    async fn knows(&self, address: &str) -> Option<bool>;

    /// Keeps a mail that came in.
    async fn store(&self, arrival: Arrival) -> Stored;
}
