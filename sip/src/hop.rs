//! Places that messages go to and come from: a transport, an address and, for streams, a connection (RFC 3261 18, RFC
//! 3263 4).

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// Transport protocol of SIP messages.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// Datagrams (RFC 3261 18).
    #[default]
    Udp,
    /// Streams, framed by Content-Length (RFC 3261 18.3).
    Tcp,
    /// Streams over TLS (RFC 3261 26.2, RFC 5630).
    Tls,
}

impl Transport {
    /// All transports, UDP first.
    pub const ALL: [Transport; 3] = [Transport::Udp, Transport::Tcp, Transport::Tls];

    /// Returns the name in a Via header field: `UDP`, `TCP` or `TLS`.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Udp => "UDP",
            Transport::Tcp => "TCP",
            Transport::Tls => "TLS",
        }
    }

    /// Returns the transport of this name, in any case; `None` for others.
    pub fn from_name(name: &str) -> Option<Transport> {
        Transport::ALL.into_iter().find(|transport| transport.name().eq_ignore_ascii_case(name))
    }

    /// True where the transport itself repeats what was lost, so that requests are not retransmitted (RFC 3261
    /// 17.1.1.2).
    pub fn is_reliable(self) -> bool {
        self != Transport::Udp
    }

    /// Returns the port that is used where none is named (RFC 3261 19.1.2).
    pub fn default_port(self) -> u16 {
        if self == Transport::Tls { 5061 } else { 5060 }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Name of one stream connection of this process; never used again.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// Next place that a message goes to, or the last one that it came from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Hop {
    /// Transport protocol of the next message.
    pub transport: Transport,
    /// Address and port of the other side.
    pub address: SocketAddr,
    /// Domain that its certificate has to name (RFC 5922 7); `None`: its address.
    pub server_name: Option<Arc<str>>,
    /// Connection that the message came by. A message that goes out prefers it while it is open, and needs none.
    pub connection: Option<ConnectionId>,
}

impl Hop {
    /// Returns the hop to `address` by `transport`, over any connection.
    pub fn new(transport: Transport, address: SocketAddr) -> Hop {
        Hop { transport, address, server_name: None, connection: None }
    }

    /// Returns the hop to `address` by datagrams.
    pub fn udp(address: SocketAddr) -> Hop {
        Hop::new(Transport::Udp, address)
    }

    /// Takes the connection that a message came by, when it is one of the same transport.
    pub(crate) fn follow(&mut self, from: &Hop) {
        if from.transport == self.transport && from.connection.is_some() {
            self.connection = from.connection;
        }
    }

    /// Removes the connection when it is this closed one, and returns true when it was.
    pub(crate) fn forget(&mut self, connection: ConnectionId) -> bool {
        self.connection.take_if(|named| *named == connection).is_some()
    }
}

impl fmt::Display for Hop {
    /// Writes transport and address, as in `TLS 192.0.2.1:5061`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.transport, self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_any_case() {
        for transport in Transport::ALL {
            assert_eq!(Transport::from_name(&transport.name().to_lowercase()), Some(transport));
        }
        assert_eq!(Transport::from_name("SCTP"), None);
        assert!(!Transport::Udp.is_reliable() && Transport::Tls.is_reliable());
        assert_eq!((Transport::Tcp.default_port(), Transport::Tls.default_port()), (5060, 5061));
    }

    #[test]
    fn a_hop_tells_transport_and_address() {
        let hop = Hop::new(Transport::Tls, "192.0.2.1:5061".parse().unwrap());
        assert_eq!(hop.to_string(), "TLS 192.0.2.1:5061");
    }
}
