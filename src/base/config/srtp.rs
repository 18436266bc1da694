//! Use of secure RTP, by calls and by trunks.

use serde::Serialize;

/// Use of secure RTP in calls.
///
/// Its keys come in the session description (RFC 4568), and are then as secret as the signalling, or from a DTLS
/// handshake (RFC 5763).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Encryption {
    /// Plain RTP, never encrypted.
    #[default]
    Off,
    /// RTP/AVP is offered with keys of both kinds: the other side may use them or not. Every kind of offer is answered.
    Optional,
    /// Secure RTP is offered, as [`SrtpKeys`] says, and there is no call without keys.
    Required,
}

/// Kind of keys that `sip.srtp = "required"` offers, and that is chosen from an offer with both. An offer with one kind
/// is answered in that kind.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SrtpKeys {
    /// Keys in the session description: RTP/SAVP with `a=crypto` (RFC 4568).
    #[default]
    Sdes,
    /// A DTLS handshake: UDP/TLS/RTP/SAVP with `a=fingerprint` (RFC 5763).
    Dtls,
    /// RTP/SAVP with both, of which the other side chooses; of its offers the handshake is taken.
    Any,
}

impl Encryption {
    /// Text of the words that [`Encryption::parse`] knows.
    pub(super) const WORDS: &str = "one of off, optional, required";

    pub(super) fn parse(text: &str) -> Option<Encryption> {
        match text {
            "off" => Some(Encryption::Off),
            "optional" => Some(Encryption::Optional),
            "required" => Some(Encryption::Required),
            _ => None,
        }
    }
}
