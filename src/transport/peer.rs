//! The other side of a call as each port tells of it, and the outputs that all ports share.
//!
//! A port is the protocol state of one call's channel, without sockets. A driver (live or in virtual time) feeds it
//! with what arrives and with the controls of the Call, and carries out its outputs in order.

use ringer_media::call::Signal;

/// Output of a port; `A` are the actions of its own channel.
#[derive(Clone, Debug, PartialEq)]
pub enum PortOutput<A> {
    /// Action that the driver of this channel carries out.
    Act(A),
    /// Signal for the Call.
    Signal(Signal),
    /// A line of the log of the channel, with milliseconds since 1970.
    Log(i64, String),
    /// Warning for the user of the result.
    Warning(String),
}

/// The other side and the way to it, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerInfo {
    /// Protocol of the signalling, for example `SIP/UDP`.
    pub protocol: &'static str,
    /// Name of the call in that protocol: the Call-ID of SIP.
    pub call_id: String,
    /// Address of the media of the other side.
    pub address: Option<String>,
    /// Name of the codec.
    pub codec: Option<&'static str>,
    /// Profile of the media: `RTP/AVP`, `RTP/SAVP` with keys, or `UDP/TLS/RTP/SAVP` with those of a handshake (RFC
    /// 3551, 3711, 5764).
    pub profile: Option<&'static str>,
}

impl PeerInfo {
    /// Returns protocol and profile: `SIP/UDP, RTP/AVP`, without the profile where no media was agreed on.
    pub fn transport(&self) -> String {
        [Some(self.protocol), self.profile].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Reason why a call that came in is not taken.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No place is free.
    Busy,
    /// The source of the call may not call.
    Forbidden,
    /// The number is unknown.
    NotFound,
    /// The call is not answered.
    NoAnswer,
    /// No codec in common.
    NoMedia,
    /// A fault of this side.
    Failure,
    /// This side takes no calls for now; another one may.
    Draining,
}

/// An error that the other side told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentError {
    /// Code of the error.
    pub code: String,
    /// Message of the error.
    pub message: String,
    /// Time of it in milliseconds since 1970.
    pub at_ms: i64,
}

/// Returns an address without user, password, query and fragment, which may be secret.
pub fn without_secrets(url: &str) -> String {
    let plain = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = plain.split_once("://") else { return plain.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}
