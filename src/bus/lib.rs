//! Messages between engines that share a database. They are news that may be lost: truth is in the database, and who
//! misses news asks for it.
//!
//! [`LiveBus`] carries bytes: [`LocalBus`] inside a process, [`NatsBus`] through a server of NATS. A [`Channel`] is
//! what the rest of the program uses: it signs each message with a key that engines of one database have, and drops
//! what is forged, old or repeated.

mod channel;
mod envelope;
mod local;
mod nats;
mod window;

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, watch};

pub use self::channel::{AGAIN, Asker, Channel, Listener, Received, Terms};
pub use self::local::LocalBus;
pub use self::nats::{NatsBus, check};

/// Longest message in bytes. Servers of NATS take 1 MiB unless they are told otherwise.
pub const MESSAGE_BYTES: usize = 900 << 10;

/// State of the connection to other engines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// Messages go out and come in.
    Up,
    /// There is no connection now; the text says why, without secrets.
    Away(String),
}

impl Link {
    /// True if messages go out and come in.
    pub fn is_up(&self) -> bool {
        *self == Link::Up
    }
}

/// A way for messages. A subject is words with points between them.
#[async_trait]
pub trait LiveBus: Send + Sync {
    /// Sends a message to all who listen to its subject, without waiting. It is lost when there is no connection.
    fn publish(&self, subject: String, bytes: Vec<u8>);

    /// Returns the messages on subjects that fit a pattern, from now on. `*` in a pattern stands for one word.
    async fn subscribe(&self, pattern: String) -> Subscription;

    /// Asks those who listen to a subject and returns the first answer; `None`: none came in time.
    async fn request(&self, subject: String, bytes: Vec<u8>, within: Duration) -> Option<Vec<u8>>;

    /// Returns the state of the connection, and its changes.
    fn link(&self) -> watch::Receiver<Link>;
}

/// A message as it came.
pub struct Message {
    /// Subject that it was sent to.
    pub subject: String,
    /// Content of the message.
    pub bytes: Vec<u8>,
    /// Way to answer; `None`: nobody waits for an answer.
    pub reply: Option<Reply>,
}

/// Way to answer one message.
pub struct Reply(Box<dyn FnOnce(Vec<u8>) + Send + Sync>);

impl Reply {
    /// Sends the answer, without waiting.
    pub fn send(self, bytes: Vec<u8>) {
        (self.0)(bytes);
    }
}

/// Messages that come in. What comes while too many wait is lost. Dropping it ends them.
pub struct Subscription(Inner);

enum Inner {
    Local(mpsc::Receiver<Message>),
    Nats(Box<nats::Incoming>),
    /// No message will come.
    Silent,
}

impl Subscription {
    /// Returns the next message; `None`: there will be none.
    pub async fn next(&mut self) -> Option<Message> {
        match &mut self.0 {
            Inner::Local(messages) => messages.recv().await,
            Inner::Nats(messages) => messages.next().await,
            Inner::Silent => None,
        }
    }
}
