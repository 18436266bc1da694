//! Session descriptions (RFC 8866) and the offer/answer model (RFC 3264), for one audio stream a call.
//!
//! Codecs are names with clock rates; their sound is not known here.
//!
//! An offer of the other side, and the answer to it:
//!
//! ```
//! use ringer_sip::sdp::{Codec, Direction, Offer, Session, negotiate};
//!
//! let offer = "v=0\r\no=- 1 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\n\
//!     m=audio 4000 RTP/AVP 18 8 0\r\na=sendonly\r\n";
//! let session = Session::parse(offer)?;
//! assert_eq!(session.media[0].formats, ["18", "8", "0"]);
//!
//! let own = Offer::new("192.0.2.1:6000".parse().expect("an address"), vec![Codec::pcmu(), Codec::pcma()]);
//! let (answer, agreed) = negotiate(offer, &own).expect("two codecs in common");
//! assert_eq!((agreed.codec.as_str(), agreed.payload_type), ("PCMA", 8));
//! assert_eq!(agreed.remote_rtp.to_string(), "192.0.2.9:4000");
//! assert_eq!(agreed.direction, Direction::RecvOnly);
//! assert!(answer.to_string().contains("m=audio 6000 RTP/AVP 8"));
//! # Ok::<(), ringer_sip::ParseError>(())
//! ```

mod crypto;
mod dtls;
mod negotiate;
mod parse;
mod print;
mod protect;

use std::fmt;
use std::net::{IpAddr, SocketAddr};

pub use crypto::{Crypto, CryptoSuite, KeySalt};
pub use dtls::{Dtls, Fingerprint, Handshake, HashFunction, Setup};
pub use negotiate::{negotiate, read_answer};
pub use protect::KeyOrigin;

/// A session description (RFC 8866).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Session id of the `o=` line; stays the same for the session.
    pub id: String,
    /// Session version of the `o=` line; counts the changes.
    pub version: u64,
    /// Address in the `o=` line, as text.
    pub origin: String,
    /// Session-level `c=`, when it has an IP address.
    pub address: Option<IpAddr>,
    /// Session-level `c=`, when it has a host name.
    pub host: Option<String>,
    /// Session-level `a=` lines, in order.
    pub attributes: Vec<Attribute>,
    /// The `m=` sections, in order.
    pub media: Vec<Media>,
}

/// An `a=` line. `Debug` leaves the keys of `a=crypto` out.
#[derive(Clone, PartialEq, Eq)]
pub struct Attribute {
    /// Name: the text before the colon.
    pub name: String,
    /// Value: the text after the colon; `None` for an attribute without one.
    pub value: Option<String>,
}

impl Attribute {
    /// Returns `a=name:value`, or `a=name` for an empty value.
    pub fn new(name: &str, value: impl Into<String>) -> Attribute {
        let value = value.into();
        Attribute { name: name.into(), value: (!value.is_empty()).then_some(value) }
    }
}

impl fmt::Debug for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = if self.name == "crypto" { Some("(masked)") } else { self.value.as_deref() };
        f.debug_struct("Attribute").field("name", &self.name).field("value", &value).finish()
    }
}

/// A media description: an `m=` line and the lines that belong to it (RFC 8866 5.14).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Media {
    /// Kind of media: `audio`, `video` or another name.
    pub kind: String,
    /// RTP port; 0 means refused.
    pub port: u16,
    /// Protocol: `RTP/AVP` or another one.
    pub protocol: String,
    /// Payload types (or other format names), best first.
    pub formats: Vec<String>,
    /// Media-level `c=`, when it has an IP address.
    pub address: Option<IpAddr>,
    /// Media-level `c=`, when it has a host name.
    pub host: Option<String>,
    /// Media-level `a=` lines, in order.
    pub attributes: Vec<Attribute>,
}

impl Media {
    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.attributes.iter().filter(move |a| a.name == name).filter_map(|a| a.value.as_deref())
    }

    fn has(&self, name: &str) -> bool {
        self.attributes.iter().any(|a| a.name == name)
    }
}

/// Direction of a stream, from the point of view of the side that writes it (RFC 3264 5.1).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum Direction {
    /// Both sides send (`sendrecv`); the default.
    #[default]
    SendRecv,
    /// The side that writes it sends only: the other side is on hold.
    SendOnly,
    /// The side that writes it receives only.
    RecvOnly,
    /// Neither side sends (`inactive`).
    Inactive,
}

impl Direction {
    /// Returns the name of the attribute in SDP.
    pub fn as_str(self) -> &'static str {
        match self {
            Direction::SendRecv => "sendrecv",
            Direction::SendOnly => "sendonly",
            Direction::RecvOnly => "recvonly",
            Direction::Inactive => "inactive",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Direction> {
        let all = [Direction::SendRecv, Direction::SendOnly, Direction::RecvOnly, Direction::Inactive];
        all.into_iter().find(|d| d.as_str() == name)
    }

    fn new(sends: bool, receives: bool) -> Direction {
        match (sends, receives) {
            (true, true) => Direction::SendRecv,
            (true, false) => Direction::SendOnly,
            (false, true) => Direction::RecvOnly,
            (false, false) => Direction::Inactive,
        }
    }

    /// True when the side that writes it sends.
    pub fn sends(self) -> bool {
        matches!(self, Direction::SendRecv | Direction::SendOnly)
    }

    /// True when the side that writes it receives.
    pub fn receives(self) -> bool {
        matches!(self, Direction::SendRecv | Direction::RecvOnly)
    }

    /// Returns the direction of the same stream from the point of view of the other side.
    pub fn reverse(self) -> Direction {
        Direction::new(self.receives(), self.sends())
    }
}

/// A codec in SDP's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Codec {
    /// Encoding name (`PCMU`); compares without case.
    pub name: String,
    /// RTP payload type, 0 to 127.
    pub payload_type: u8,
    /// RTP clock, hertz (8000 for G722 too, RFC 3551 4.5.2).
    pub clock_rate_hz: u32,
    /// Number of audio channels, 1 or 2.
    pub channels: u8,
    /// Parameters of `a=fmtp`; empty for none.
    pub fmtp: String,
}

impl Codec {
    /// Returns a codec without parameters, with one channel.
    pub fn new(name: &str, payload_type: u8, clock_rate_hz: u32) -> Codec {
        Codec { name: name.into(), payload_type, clock_rate_hz, channels: 1, fmtp: String::new() }
    }

    /// Returns G.711 mu-law, payload type 0.
    pub fn pcmu() -> Codec {
        Codec::new("PCMU", 0, 8000)
    }

    /// Returns G.711 A-law, payload type 8.
    pub fn pcma() -> Codec {
        Codec::new("PCMA", 8, 8000)
    }

    /// Returns G.722, payload type 9.
    pub fn g722() -> Codec {
        Codec::new("G722", 9, 8000)
    }

    /// Returns telephone events 0-15 (RFC 4733), for audio with this RTP clock.
    pub fn events(payload_type: u8, clock_rate_hz: u32) -> Codec {
        Codec { fmtp: "0-15".into(), ..Codec::new("telephone-event", payload_type, clock_rate_hz) }
    }

    /// True when both mean the same encoding, clock rate and channels; payload types may differ.
    pub fn same(&self, other: &Codec) -> bool {
        self.name.eq_ignore_ascii_case(&other.name)
            && self.clock_rate_hz == other.clock_rate_hz
            && self.channels == other.channels
    }
}

/// Abilities of this side: its offer, or the choices for its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Address at which RTP is expected. RTCP is expected one port above, or on the same port with `rtcp_mux`.
    pub rtp: SocketAddr,
    /// Codecs, the preferred one first.
    pub codecs: Vec<Codec>,
    /// Telephone events (see [`Codec::events`]), one for each RTP clock among the codecs; none to leave them out.
    pub events: Vec<Codec>,
    /// Packet length asked for, milliseconds.
    pub ptime_ms: u32,
    /// Direction that this side wants.
    pub direction: Direction,
    /// True to ask for RTCP on the RTP port (RFC 5761); used when the other side agrees.
    pub rtcp_mux: bool,
    /// Number of the `o=` line.
    pub session_id: u64,
    /// Ways to protect the stream (RFC 4568), best first, with this side's keys; empty: plain RTP alone.
    pub crypto: Vec<Crypto>,
    /// True when plain RTP is not allowed, so that RTP/SAVP is offered. Otherwise RTP/AVP is, and a side that
    /// understands `crypto` may use it.
    pub crypto_required: bool,
    /// This side's part in a DTLS handshake, another way to keys; `None`: there is none.
    pub dtls: Option<Dtls>,
    /// Kind of keys that an offer with `crypto_required` asks for, and that is taken where an offer has both. An offer
    /// that leaves plain RTP open has both.
    pub key_origin: KeyOrigin,
}

impl Offer {
    /// Returns an offer of 20 ms packets both ways, telephone events of 8000 Hz at 101, RTCP on its own port, plain
    /// RTP.
    pub fn new(rtp: SocketAddr, codecs: Vec<Codec>) -> Offer {
        Offer {
            rtp,
            codecs,
            events: vec![Codec::events(101, 8000)],
            ptime_ms: 20,
            direction: Direction::SendRecv,
            rtcp_mux: false,
            session_id: 1,
            crypto: Vec::new(),
            crypto_required: false,
            dtls: None,
            key_origin: KeyOrigin::Sdes,
        }
    }
}

/// Result of an offer and its answer, from this side's point of view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// Encoding name as this side writes it (`PCMU`).
    pub codec: String,
    /// RTP clock rate in hertz.
    pub clock_rate_hz: u32,
    /// RTP payload type to send.
    pub payload_type: u8,
    /// RTP payload type that the other side sends (RFC 3264 lets the two differ for dynamic ones).
    pub receive_payload_type: u8,
    /// Parameters of the codec (`a=fmtp`) as the other side gives them, for what it receives.
    pub fmtp: String,
    /// Payload type of telephone events to send, when both sides have them: with the codec's RTP clock (RFC 4733 2.1),
    /// else with 8000 Hz.
    pub event_payload_type: Option<u8>,
    /// Payload type of telephone events that the other side sends.
    pub receive_event_payload_type: Option<u8>,
    /// RTP clock of the telephone events, hertz; the codec's where there are none.
    pub event_clock_rate_hz: u32,
    /// Packet length to send, milliseconds.
    pub ptime_ms: u32,
    /// Address that RTP goes to. With `remote_host` the address is 0.0.0.0, and only the port counts.
    pub remote_rtp: SocketAddr,
    /// Address that RTCP goes to, with the same rule as `remote_rtp`.
    pub remote_rtcp: SocketAddr,
    /// Host name that the other side gave in place of an address: nothing can be sent before it is resolved.
    pub remote_host: Option<String>,
    /// True when RTP and RTCP share a port.
    pub rtcp_mux: bool,
    /// Direction from this side's point of view.
    pub direction: Direction,
    /// True when the other side does not want to receive: it sends only, is inactive, or gave the address 0.0.0.0.
    pub on_hold: bool,
    /// Protection of both directions by keys in the descriptions; `None`: they have none.
    pub crypto: Option<Protection>,
    /// Handshake that brings the keys; `None`: there is none. Without it and without `crypto`: plain RTP.
    pub dtls: Option<Handshake>,
}

/// One suite for both directions, with the key of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protection {
    /// Suite that both sides use.
    pub suite: CryptoSuite,
    /// Key of the packets that this side sends.
    pub send: KeySalt,
    /// Key of the packets that the other side sends.
    pub receive: KeySalt,
}

/// Reason why no answer can be given or used. The call is refused with 488, or ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Text that cannot be read as SDP; the line at fault.
    Malformed(usize),
    /// No audio stream over RTP that this side supports, or its port is 0.
    NoAudio,
    /// Encryption that one side asks for and the other does not give: no suite in common, no key, or one that cannot be
    /// read.
    NoCrypto,
    /// No codec that both sides have.
    NoCodec,
    /// No address to send to.
    NoAddress,
    /// An address that media may not be sent to.
    NotAllowed,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Malformed(line) => write!(f, "line {line} of the session description cannot be read"),
            Refusal::NoAudio => f.write_str("no audio stream over RTP"),
            Refusal::NoCrypto => f.write_str("no usable encryption of the audio stream (a=crypto, a=fingerprint)"),
            Refusal::NoCodec => f.write_str("no common codec"),
            Refusal::NoAddress => f.write_str("no address to send media to"),
            Refusal::NotAllowed => f.write_str("the media address is not allowed"),
        }
    }
}
