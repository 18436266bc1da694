//! Addresses and names by which an endpoint presents itself, and the Contact made of them.

use std::net::SocketAddr;

use crate::hop::Transport;

/// Addresses and names by which an endpoint presents itself.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Advertised address, for Via and Contact: datagrams are received here.
    pub local: SocketAddr,
    /// Advertised address of TCP; `None`: TCP is not spoken.
    pub tcp: Option<SocketAddr>,
    /// Advertised address of TLS; `None`: TLS is not spoken.
    pub tls: Option<SocketAddr>,
    /// Value of the User-Agent and Server header fields.
    pub user_agent: String,
    /// Seed of tags, branches, Call-IDs, cnonces and nonces: unguessable in production, fixed in a test.
    pub seed: u64,
}

impl EndpointConfig {
    /// True when messages can be sent by this transport.
    pub(crate) fn speaks(&self, transport: Transport) -> bool {
        match transport {
            Transport::Udp => true,
            Transport::Tcp => self.tcp.is_some(),
            Transport::Tls => self.tls.is_some(),
        }
    }

    /// Address at which this side takes messages of this transport.
    pub(crate) fn address(&self, transport: Transport) -> SocketAddr {
        match transport {
            Transport::Udp => self.local,
            Transport::Tcp => self.tcp.unwrap_or(self.local),
            Transport::Tls => self.tls.unwrap_or(self.local),
        }
    }

    /// Returns the Contact of this side for a dialog over this transport. `secure`: the dialog is of a `sips:` address,
    /// and needs no parameter (RFC 3261 8.1.1.8, RFC 5630 5.1.1.1).
    pub(crate) fn contact(&self, user: &str, transport: Transport, secure: bool) -> String {
        let transport = if secure { Transport::Tls } else { transport };
        EndpointConfig::contact_of(self.address(transport), user, transport, secure, "")
    }

    /// Returns the Contact of `user` at an address of this side, with `more` parameters.
    pub(crate) fn contact_of(at: SocketAddr, user: &str, transport: Transport, secure: bool, more: &str) -> String {
        let mark = if user.is_empty() { "" } else { "@" };
        let parameter = match transport {
            Transport::Udp => "",
            Transport::Tcp => ";transport=tcp",
            Transport::Tls => ";transport=tls",
        };
        match secure {
            true => format!("<sips:{user}{mark}{at}{more}>"),
            false => format!("<sip:{user}{mark}{at}{parameter}{more}>"),
        }
    }
}
