//! Peer connections of WebRTC (RFC 8825): one microphone track of Opus, data channels, and nothing else. [`MediaPeer`]
//! is all that the rest of the package knows of them; [`peer`], [`tap`], [`keys`] and [`ports`] alone name the library
//! behind it.
//!
//! Media cross the border as RTP packets with the times at which they arrived, not as PCM: so
//! [`ringer_media::leg::RtpLeg`] does for them what it does for packets of SIP (jitter buffer, concealment, reports,
//! figures).
//!
//! The library sets connections up, keeps the other side's consent and carries data channels. Once a connection is up,
//! its media leave the library: [`direct`] seals, opens, sends and receives them in the media thread, with the keys of
//! the library's handshake ([`keys`]) and a socket of its own ([`ports`]).

mod candidate;
mod description;
mod direct;
mod keys;
mod peer;
mod ports;
mod pump;
mod sources;
mod tap;
mod voices;

use std::fmt;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use futures_util::future::BoxFuture;
use ringer_base::config;
use ringer_base::config::Secret;
use ringer_base::guard::Guard;
use ringer_base::tasks::Tasks;
use ringer_media::codec::opus::Opus;
use ringer_media::leg::MediaParams;
use ringer_media::time::Time;
use tokio::sync::{mpsc, watch};

pub use self::candidate::{Admission, Ignored, Tally};
pub use self::description::{Kind, Remote, read_description};
pub use self::direct::{Direct, MAX_BATCHES, PeerMedia, PeerWay, Role, peer_media};
pub use self::peer::Peer;
pub use self::pump::{Bell, Hearing, Lines, Pump, PumpFigures};
pub(crate) use self::voices::{Track, Tracks, Voices};

/// Bytes of the longest session description that is read.
pub const MAX_SDP: usize = 64 << 10;

/// Candidates of the other side that are used in one negotiation; further ones are counted and left alone.
pub const MAX_CANDIDATES: usize = 20;

/// Data channels that the other side may open; further ones are closed at once.
pub const MAX_CHANNELS: usize = 8;

/// Bytes of the longest message of a data channel, in both directions.
pub const MAX_MESSAGE: usize = 64 << 10;

/// Bytes that may wait to be sent on a data channel.
pub const MAX_UNSENT: usize = 1 << 20;

/// Time without an answered check after which the other side has withdrawn its consent (RFC 7675 5.1) and the
/// connection has failed.
pub const CONSENT: Duration = Duration::from_secs(10);

/// Longest wait for local candidates before an offer or an answer goes out without the missing ones.
pub const GATHERING: Duration = Duration::from_secs(2);

/// The same where candidates may follow by themselves: those of this machine are there by then.
pub const GATHERING_FIRST: Duration = Duration::from_millis(20);

/// Reason for which a peer connection does not come about, or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerFault {
    /// The description is longer than [`MAX_SDP`]; its length in bytes.
    TooLong(usize),
    /// The description cannot be read; what is wrong with it.
    Malformed(String),
    /// The description has no audio that is accepted.
    NoAudio,
    /// The description has more than one accepted audio section; their number.
    ManyAudio(usize),
    /// The audio has no Opus.
    NoOpus,
    /// The description names no certificate (RFC 8122 5): nobody could tell who the other side is.
    NoFingerprint,
    /// Every fingerprint of the description has another hash function than SHA-256, which alone is compared; the first
    /// function.
    OtherHash(String),
    /// The description has no ICE credentials (RFC 8839 5.4).
    NoIce,
    /// No candidate can be used, and the other side does not look for one itself.
    NoCandidate(Tally),
    /// No relay gave this side an address within [`GATHERING`], and no other may be told.
    NoRelay,
    /// The other side came from an address that it had not named and that is not allowed.
    NotAllowed(IpAddr),
    /// The library refused a step; its words.
    Refused(String),
    /// The connection did not come about within this time.
    NotConnected(Duration),
    /// A path was found, but the DTLS handshake did not come to its end: as with a certificate that is not the
    /// announced one.
    Handshake,
    /// The connection failed: no path, or consent that ran out.
    Failed,
    /// The connection did not come about for this reason, and some candidates of the other side were not used.
    Unreached(Box<PeerFault>, Tally),
    /// The connection was closed.
    Closed,
    /// A data channel took no more, or is not open.
    Channel(&'static str),
}

impl fmt::Display for PeerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerFault::TooLong(bytes) => write!(f, "the description has {bytes} bytes, more than {MAX_SDP}"),
            PeerFault::Malformed(why) => write!(f, "the description cannot be read: {why}"),
            PeerFault::NoAudio => f.write_str("the description accepts no audio"),
            PeerFault::ManyAudio(count) => write!(f, "the description has {count} audio sections, one is supported"),
            PeerFault::NoOpus => f.write_str("the audio of the description is not Opus"),
            PeerFault::NoFingerprint => f.write_str("the description has no fingerprint of a certificate"),
            PeerFault::OtherHash(function) => {
                write!(f, "the description's fingerprint is of {function:?}; only sha-256 can be compared")
            }
            PeerFault::NoIce => f.write_str("the description has no ICE credentials"),
            PeerFault::NoCandidate(tally) => write!(f, "the description has no usable candidate: {tally}"),
            PeerFault::NoRelay => {
                let within = GATHERING.as_secs();
                write!(f, "no relay of webrtc.turn gave an address within {within} s, and webrtc.relay_only is set")
            }
            PeerFault::NotAllowed(address) => write!(f, "the other side is at {address}, which is not allowed"),
            PeerFault::Refused(why) => write!(f, "the description was refused: {why}"),
            PeerFault::NotConnected(within) => write!(f, "no connection within {} s", within.as_secs()),
            PeerFault::Handshake => {
                f.write_str("the DTLS handshake did not come to its end; the certificate may not be the announced one")
            }
            PeerFault::Failed => f.write_str("the connection failed"),
            PeerFault::Unreached(fault, tally) => write!(f, "{fault}; candidates of the other side: {tally}"),
            PeerFault::Closed => f.write_str("the connection was closed"),
            PeerFault::Channel(why) => write!(f, "the data channel {why}"),
        }
    }
}

impl std::error::Error for PeerFault {}

impl PeerFault {
    /// Returns the same fault, where it names a time as one of `within`.
    #[must_use]
    pub fn within(self, within: Duration) -> PeerFault {
        match self {
            PeerFault::NotConnected(_) => PeerFault::NotConnected(within),
            PeerFault::Unreached(fault, tally) => PeerFault::Unreached(Box::new(fault.within(within)), tally),
            fault => fault,
        }
    }
}

/// A server that helps to find a path, from the settings: STUN (RFC 8489) or TURN (RFC 8656).
#[derive(Clone, Debug, Default)]
pub struct IceServer {
    /// `stun:host:port`, `turn:host:port?transport=udp` (RFC 7064, RFC 7065).
    pub urls: Vec<String>,
    /// Name at a TURN server.
    pub username: String,
    /// Password at a TURN server.
    pub credential: Option<Secret>,
}

/// Terms of peer connections that come from the settings.
#[derive(Clone, Debug, Default)]
pub struct PeerTerms {
    /// Servers that help to find a path.
    pub ice_servers: Vec<IceServer>,
    /// True: media go through relays alone, and no other address of this side is told.
    pub relay_only: bool,
    /// Local addresses to bind; empty: every interface, and loopback where the guard lets it be reached.
    pub bind: Vec<IpAddr>,
}

impl From<&config::WebRtc> for PeerTerms {
    fn from(settings: &config::WebRtc) -> PeerTerms {
        let stun = IceServer { urls: settings.stun.clone(), ..IceServer::default() };
        let turn = IceServer {
            urls: settings.turn.clone(),
            username: settings.turn_username.clone().unwrap_or_default(),
            credential: settings.turn_credential.clone(),
        };
        let ice_servers = [stun, turn].into_iter().filter(|server| !server.urls.is_empty()).collect();
        PeerTerms { ice_servers, relay_only: settings.relay_only, bind: settings.bind.clone() }
    }
}

impl PeerTerms {
    /// Returns the settings of a connection whose other side `guard` judges.
    pub fn settings(&self, guard: Guard, tasks: Tasks) -> PeerSettings {
        let all = PeerSettings::new(guard, tasks);
        let bind = if self.bind.is_empty() { all.bind } else { self.bind.clone() };
        PeerSettings { bind, relay_only: self.relay_only, ice_servers: self.ice_servers.clone(), ..all }
    }
}

/// Surroundings of a peer connection.
#[derive(Clone)]
pub struct PeerSettings {
    /// Decides which addresses of the other side are sent to.
    pub guard: Guard,
    /// Servers that help to find a path.
    pub ice_servers: Vec<IceServer>,
    /// True: media go through relays alone, and no other address of this side is told.
    pub relay_only: bool,
    /// Local addresses to bind; the unspecified one stands for every interface but loopback.
    pub bind: Vec<IpAddr>,
    /// Group of the tasks that a connection starts.
    pub tasks: Tasks,
    /// Library that codes Opus where tracks are mixed.
    pub opus: Opus,
}

impl PeerSettings {
    /// Returns settings without servers that bind all interfaces, and loopback where the guard lets it be reached. Opus
    /// is coded by the port in Rust.
    pub fn new(guard: Guard, tasks: Tasks) -> PeerSettings {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        let mut bind = vec![IpAddr::from([0, 0, 0, 0])];
        bind.extend(guard.allows(loopback).then_some(loopback));
        PeerSettings { guard, ice_servers: Vec::new(), relay_only: false, bind, tasks, opus: Opus::default() }
    }
}

impl fmt::Debug for PeerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerSettings").field("bind", &self.bind).finish_non_exhaustive()
    }
}

/// Use of a peer connection, by which media sections differ.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// One call: the microphone track is sent, one track of the other side is received.
    #[default]
    Call,
    /// The microphone track goes to a server, which sends nothing by this connection.
    Publisher,
    /// Tracks of a server are received, which makes the offers; nothing is sent.
    Subscriber,
    /// The microphone track goes to a server, and its tracks are received; this side makes the offers.
    Joint,
}

/// A track of Opus that the other side sends, by its description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteTrack {
    /// Name of its section.
    pub mid: String,
    /// Name of its stream (RFC 8830), empty where there is none.
    pub stream: String,
    /// Name of the track within the stream.
    pub id: String,
    /// Synchronization sources that were announced for it.
    pub sources: Vec<u32>,
    /// Payload type of its packets.
    pub payload_type: u8,
}

/// State of a peer connection.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum PeerState {
    /// The connection has not begun.
    #[default]
    New,
    /// Media and data flow.
    Connected,
    /// Checks are no longer answered; it may still come back.
    Quiet,
    /// The connection has failed for good.
    Failed,
    /// The connection was closed by either side.
    Closed,
}

/// A candidate as the signalling carries it (RFC 8839 5.1, RFC 8840 4.4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// The attribute's value, `candidate:...`.
    pub line: String,
    /// Name of the section.
    pub mid: Option<String>,
    /// Number of the section.
    pub section: Option<u16>,
}

/// An RTP or RTCP packet that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Time at which the socket gave it.
    pub at: Time,
    /// True for a report (RTCP).
    pub is_report: bool,
    /// The packet as decrypted.
    pub bytes: Vec<u8>,
}

/// Name of a data channel within its connection: the number of its stream.
pub type ChannelId = usize;

/// Delivery of a data channel (RFC 8832 5.1).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// In order and without loss.
    Reliable,
    /// In any order, without retransmission.
    Lossy,
}

/// An event of a data channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelNews {
    /// The channel can be written to.
    Open {
        /// Number of the channel.
        id: ChannelId,
        /// Name that its maker gave it.
        label: String,
    },
    /// A message of the other side.
    Message {
        /// Number of the channel.
        id: ChannelId,
        /// True for text, false for bytes.
        is_text: bool,
        /// Bytes of the message; text that is not UTF-8 is possible.
        bytes: Vec<u8>,
    },
    /// The channel is closed by either side.
    Closed {
        /// Number of the channel.
        id: ChannelId,
    },
}

/// Everything that a peer connection tells. Each queue has a limit: what comes beyond it is
/// dropped and counted.
#[derive(Debug)]
pub struct PeerStreams {
    /// State of the connection.
    pub state: watch::Receiver<PeerState>,
    /// Local candidates in the order in which they were found.
    pub candidates: mpsc::Receiver<Candidate>,
    /// Media of the other side.
    pub packets: mpsc::Receiver<Arrived>,
    /// News of data channels.
    pub channels: mpsc::Receiver<ChannelNews>,
}

/// Media as a media thread takes them over, and the addresses of their path, this side's first.
pub type TakenOver = (Box<Direct>, (SocketAddr, SocketAddr));

/// Path of the media of a peer connection.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum MediaRoute {
    /// From a port of this side to an address that is allowed.
    Direct(SocketAddr, SocketAddr),
    /// By a relay of this side (RFC 8656).
    Relayed,
    /// There is a path, and its port on this side is not known.
    Unknown,
    /// There is no path, or none that is allowed: nothing may be sent.
    Lost,
}

/// Figures of a peer connection since it began.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct PeerFigures {
    /// Round trip of the last answered check of the path in use, in milliseconds.
    pub round_trip_ms: Option<f64>,
    /// RTP packets that came.
    pub received: u64,
    /// Arrival of the first RTP packet.
    pub first_at: Option<Time>,
    /// RTP packets that were sent.
    pub sent: u64,
    /// Packets of either kind that came and did not fit.
    pub dropped: u64,
    /// Data channels of the other side that were one too many.
    pub refused_channels: u64,
    /// Messages that came and did not fit.
    pub dropped_messages: u64,
    /// Messages that were longer than [`MAX_MESSAGE`] and were dropped.
    pub long_messages: u64,
    /// Candidates of the other side.
    pub candidates: Tally,
    /// Address of this side and that of the other one on the path in use.
    pub path: Option<(SocketAddr, SocketAddr)>,
}

/// A peer connection with one microphone track of Opus. Dropping it closes it.
pub trait MediaPeer: Send + Sync {
    /// Makes an offer with the candidates that were found within [`GATHERING`], or [`GATHERING_FIRST`] for a room.
    /// `restart`: new ICE credentials and sockets.
    ///
    /// # Errors
    /// The library's.
    fn offer(&self, restart: bool) -> BoxFuture<'_, Result<String, PeerFault>>;

    /// Takes the answer to the last offer.
    ///
    /// # Errors
    /// What is wrong with it; the connection stays as it was.
    fn accept<'a>(&'a self, answer: &'a str) -> BoxFuture<'a, Result<(), PeerFault>>;

    /// Takes an offer and makes the answer to it.
    ///
    /// # Errors
    /// What is wrong with the offer.
    fn answer<'a>(&'a self, offer: &'a str) -> BoxFuture<'a, Result<String, PeerFault>>;

    /// Takes a candidate of the other side that came by itself. One that is not used is counted, which is no error.
    ///
    /// # Errors
    /// The library's; there is no description of the other side yet.
    fn add_candidate<'a>(&'a self, candidate: &'a Candidate) -> BoxFuture<'a, Result<Admission, PeerFault>>;

    /// Waits until it is connected, at most `within`.
    ///
    /// # Errors
    /// It failed, was closed, or takes too long.
    fn wait_connected(&self, within: Duration) -> BoxFuture<'_, Result<(), PeerFault>>;

    /// Judges the address of the path in use, which a check may have taught (RFC 8445 7.3.1.3). Closes nothing; safe to
    /// drop.
    ///
    /// # Errors
    /// The address is not allowed.
    fn judge_path(&self) -> BoxFuture<'_, Result<(), PeerFault>>;

    /// Returns what was settled for the audio; `None` before both descriptions are there.
    fn media(&self) -> Option<MediaParams>;

    /// Returns the tracks that the other side's last description has.
    fn tracks(&self) -> Vec<RemoteTrack>;

    /// Has the next offer ask for tracks of the other side, this many more.
    ///
    /// # Errors
    /// The library's.
    fn expect_tracks(&self, count: u32) -> BoxFuture<'_, Result<(), PeerFault>>;

    /// Returns the synchronization source of the packets that are sent (RFC 3550 5.1).
    fn ssrc(&self) -> u32;

    /// Sends an RTP packet, of [`MediaPeer::ssrc`] and the payload type that was settled; before it is connected
    /// nothing is sent.
    ///
    /// # Errors
    /// It cannot be read as RTP, or the connection is closed.
    fn send_packet<'a>(&'a self, rtp: &'a [u8]) -> BoxFuture<'a, Result<(), PeerFault>>;

    /// Sends reports (RTCP).
    ///
    /// # Errors
    /// As [`MediaPeer::send_packet`].
    fn send_report<'a>(&'a self, rtcp: &'a [u8]) -> BoxFuture<'a, Result<(), PeerFault>>;

    /// Makes a data channel; before the first offer, so that the offer has a section for it.
    ///
    /// # Errors
    /// The library's.
    fn open_channel<'a>(&'a self, label: &'a str, delivery: Delivery) -> BoxFuture<'a, Result<ChannelId, PeerFault>>;

    /// Sends text on a data channel.
    ///
    /// # Errors
    /// It is too long, the channel is not open, or [`MAX_UNSENT`] bytes wait on it.
    fn send_text<'a>(&'a self, channel: ChannelId, text: &'a str) -> BoxFuture<'a, Result<(), PeerFault>>;

    /// Sends bytes on a data channel.
    ///
    /// # Errors
    /// As [`MediaPeer::send_text`].
    fn send_bytes<'a>(&'a self, channel: ChannelId, bytes: &'a [u8]) -> BoxFuture<'a, Result<(), PeerFault>>;

    /// Returns the path of the media.
    fn route(&self) -> BoxFuture<'_, MediaRoute>;

    /// Returns the media as a media thread takes them over, once, and the addresses of their path. `leg` is the source
    /// of the call's leg, if it is known. `None` as long as the library has to carry them. From then on
    /// [`MediaPeer::send_packet`] and [`MediaPeer::send_report`] are for packets from before alone.
    fn take_over(&self, leg: Option<[u8; 4]>) -> BoxFuture<'_, Option<TakenOver>>;

    /// Returns another socket for media that were taken over, on the port of this address; `None` if it has none.
    fn media_socket(&self, here: SocketAddr) -> Option<UdpSocket>;

    /// Waits until media that were taken over may have to take another path.
    fn path_change(&self) -> BoxFuture<'_, ()>;

    /// Returns the figures up to now.
    fn figures(&self) -> BoxFuture<'_, PeerFigures>;

    /// Closes it: the other side is told.
    fn close(&self) -> BoxFuture<'_, ()>;
}
