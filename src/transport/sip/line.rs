//! Messages between a connection and the table of connections.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use parking_lot::Mutex;
use ringer_base::error::is_out_of_resources;
use ringer_sip::{CallEnd, ConnectionId, EndKind, Hop};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Connections of one host from which no message came yet.
pub const MAX_NEWCOMERS: usize = 20;
/// Event on a connection.
#[derive(Debug)]
pub enum StreamNews {
    /// A whole message has come.
    Message {
        /// Connection, with the other side.
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
        /// Reason, for a person.
        why: String,
    },
    /// No connection came about; what was to go by it is lost.
    Unreachable {
        /// Place of its other side.
        to: Hop,
        /// Reason, and whose it is.
        why: NotConnected,
    },
}

/// Reason why a connection did not come about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotConnected {
    /// Text for a person.
    pub why: String,
    /// True if this machine lacks a file, port or memory for it.
    pub is_own: bool,
}

impl NotConnected {
    /// Returns the reason that the operating system gives for a place that cannot be reached.
    pub(super) fn of(place: impl std::fmt::Display, error: &std::io::Error) -> NotConnected {
        let is_own = is_out_of_resources(error);
        let lack = if is_own { "this machine has no socket left: " } else { "" };
        NotConnected { why: format!("{place} cannot be connected to: {lack}{error}"), is_own }
    }

    /// Tells the reason in the end of a call that the transport brought about.
    pub(super) fn tell(&self, end: &mut CallEnd) {
        if end.kind == EndKind::NotReachable {
            end.text.clone_from(&self.why);
            if self.is_own {
                end.kind = EndKind::NoSocket;
            }
        }
    }
}

impl From<String> for NotConnected {
    fn from(why: String) -> NotConnected {
        NotConnected { why, is_own: false }
    }
}

/// News of the tasks of connections and listeners.
pub(super) enum Event {
    News(StreamNews),
    Accepted(Line),
    /// A connection that was up ended for this reason, or none came about.
    Ended {
        connection: ConnectionId,
        end: Result<String, NotConnected>,
    },
}

/// One connection, as the table knows it.
pub(super) struct Line {
    pub hop: Hop,
    pub queue: mpsc::Sender<Vec<u8>>,
    pub queued: Arc<AtomicUsize>,
    pub held: Arc<()>,
    /// Ends it at once.
    pub cut: CancellationToken,
}

/// Numbers of connections by host (of IPv6: by network of 64 bits).
pub(super) type HostCounts = Arc<Mutex<HashMap<IpAddr, usize>>>;

/// A connection of a host; counted until it is dropped.
pub(super) struct HostCount(HostCounts, IpAddr);

impl HostCount {
    /// Counts a connection of a host; `None`: the host has `most` already.
    pub(super) fn new(all: &HostCounts, host: IpAddr, most: usize) -> Option<HostCount> {
        let host = match host {
            IpAddr::V4(_) => host,
            IpAddr::V6(address) => Ipv6Addr::from(address.to_bits() >> 64 << 64).into(),
        };
        let mut counts = all.lock();
        let count = counts.entry(host).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(HostCount(all.clone(), host))
    }
}

impl Drop for HostCount {
    fn drop(&mut self) {
        let mut counts = self.0.lock();
        if let Some(count) = counts.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_as_many_connections_as_it_may() {
        let counts = HostCounts::default();
        let taken = |host: &str| HostCount::new(&counts, host.parse().expect("an address"), 2);
        let (first, second) = (taken("192.0.2.1"), taken("192.0.2.1"));
        assert!(first.is_some() && second.is_some() && taken("192.0.2.1").is_none() && taken("192.0.2.2").is_some());
        drop(first);
        assert!(taken("192.0.2.1").is_some());
        let (first, second) = (taken("2001:db8::1"), taken("2001:db8::2:1"));
        assert!(
            first.is_some() && second.is_some() && taken("2001:db8::3").is_none() && taken("2001:db8:0:1::1").is_some()
        );
        drop((first, second));
        assert!(counts.lock().len() <= 1);
    }
}
