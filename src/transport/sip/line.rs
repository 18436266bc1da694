//! What a connection and the table of connections tell each other.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use ringer_sip::framing::Opened;
use ringer_sip::{ConnectionId, Hop};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Connections of one host from which no message came yet.
pub const MAX_NEWCOMERS: usize = 20;
/// Something that happened on a connection.
#[derive(Debug)]
pub enum StreamNews {
    /// A whole message has come.
    Message {
        /// Its connection and the other side.
        from: Hop,
        /// The message in clear, also of TLS.
        bytes: Vec<u8>,
    },
    /// A connection is gone; what was not written is lost.
    Lost {
        /// Name of the connection.
        connection: ConnectionId,
        /// Place of its other side.
        hop: Hop,
        /// True where this side opened it, so that messages without a connection went by it.
        is_ours: bool,
        /// Reason, for a person.
        why: String,
    },
    /// No connection came about; what was to go by it is lost.
    Unreachable {
        /// Place of its other side.
        to: Hop,
        /// Reason, for a person.
        why: String,
    },
}

/// News of the tasks of connections and listeners.
pub(super) enum Event {
    News(StreamNews),
    Accepted(Line),
    Ended { connection: ConnectionId, is_up: bool, why: String },
}

/// One connection, as the table knows it.
pub(super) struct Line {
    pub hop: Hop,
    pub opened: Opened,
    pub queue: mpsc::Sender<Vec<u8>>,
    pub queued: Arc<AtomicUsize>,
    pub held: Arc<()>,
    /// Ends it at once.
    pub cut: CancellationToken,
}

/// Numbers of connections from which no message came yet, by host.
pub(super) type Newcomers = Arc<Mutex<HashMap<IpAddr, usize>>>;

/// A connection from which no message came yet; counted until it is dropped.
pub(super) struct Newcomer(Newcomers, IpAddr);

impl Newcomer {
    /// `None`: the host has as many as it may have.
    pub fn new(all: &Newcomers, host: IpAddr) -> Option<Newcomer> {
        let mut counts = all.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(host).or_default();
        if *count >= MAX_NEWCOMERS {
            return None;
        }
        *count += 1;
        Some(Newcomer(all.clone(), host))
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.1);
            }
        }
    }
}
