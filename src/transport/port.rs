//! The port of a call: the protocol state of its channel, without sockets. A driver (live or in virtual time) feeds it with
//! that which arrives and with the [`Control`]s of the Call, and carries out its outputs in order.
//!
//! What an added channel implements: a variant of [`Port`] with `control` and `poll`, an input for that which arrives, and
//! [`PeerInfo`]. Nothing behind it (engine, jobs, API) knows the protocol.

use std::net::SocketAddr;

use ringer_media::call::{Control, Signal};
use ringer_media::leg::MediaParams;

use super::dtls::Expected;
use super::pipeline::Order;
use super::pipeline::answered::IncomingPipeline;
use super::pipeline::port::PipelinePort;
use super::room::{self, port::RoomPort};
use super::sip::address::Address;
use super::sip::driver::IncomingDialog;
use super::sip::port::{SipOrder, SipPort};
use super::sip::transfer::TargetCall;
use super::websocket::listen::IncomingSocket;
use super::websocket::port::{SocketOrder, WebSocketPort};

/// Channel of one call.
#[derive(Debug)]
pub enum Port {
    /// SIP dialogs over the socket that all calls share.
    Sip(Box<SipPort>),
    /// One WebSocket of a call.
    WebSocket(Box<WebSocketPort>),
    /// The peer connection to a voice pipeline.
    Pipeline(Box<PipelinePort>),
    /// The room that the agent is in.
    Room(Box<RoomPort>),
}

/// Action that a driver carries out.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a media plan comes a few times in a call, and is carried out at once")]
pub enum PortOutput {
    /// Order to the other side.
    Send(ToPeer),
    /// Media goes there from now on; stands before the signal that says so.
    Media(MediaPlan),
    /// Signal for the Call.
    Signal(Signal),
    /// Look up this host, which media go to, and tell [`SipPort::media_found`]; nothing is signalled before.
    LocateMedia(String),
    /// Look this address up, and tell whoever waits for it.
    Locate(Address, Lookup),
    /// Call this target of a transfer beside the call: a second dialog, of which [`SipPort::receive_target`] hears.
    Dial(Box<TargetCall>),
    /// The dialog with the target is the one of the call from now on; what happens in the old one is no news any more.
    Switch,
    /// Audio of the other side at the leg's rate, behind that which came before.
    Frames(Vec<i16>),
    /// Audio of the other side that was not heard yet is to be dropped.
    ClearFrames,
    /// A line of the log of the channel, with milliseconds since 1970.
    Log(i64, String),
    /// Warning for the user of the result.
    Warning(String),
}

/// A message to the other side, in the words of its protocol.
#[derive(Clone, Debug, PartialEq)]
pub enum ToPeer {
    /// Order to the SIP endpoint.
    Sip(SipOrder),
    /// Order to the SIP endpoint about the dialog with the target of a transfer.
    Target(SipOrder),
    /// Order to the task of a WebSocket.
    WebSocket(SocketOrder),
    /// Order to the task of the connection to a voice pipeline.
    Pipeline(Order),
    /// For the task of a room's connections.
    Room(room::Order),
}

/// Purposes of an address that is looked up.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The call was redirected there: [`SipOrder::Resolved`] takes it.
    Redirect,
    /// The call to the target of a transfer was redirected there: [`SipOrder::Resolved`] takes it, in that dialog.
    TargetRedirect,
    /// The other side asks for a transfer there: [`SipPort::take_address`] takes it.
    Transfer,
}

/// Addresses and form of the media of a call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct MediaPlan {
    /// Parameters of the leg.
    pub media: MediaParams,
    /// Address that RTP goes to and comes from.
    pub rtp: SocketAddr,
    /// Address that RTCP goes to and comes from. It is `rtp` where both share a port (RFC 5761).
    pub rtcp: SocketAddr,
    /// The handshake that the keys come from; `None`: there is none.
    pub handshake: Option<Expected>,
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
    /// Profile of the media: `RTP/AVP`, `RTP/SAVP` with keys, or `UDP/TLS/RTP/SAVP` with those of a handshake (RFC 3551, 3711, 5764).
    pub profile: Option<&'static str>,
}

/// A call that came in, not answered yet.
#[derive(Debug)]
pub struct Incoming {
    /// Name that is called: the user part of the Request-URI.
    pub called: String,
    /// Address of the caller, as it names itself.
    pub from: String,
    /// Address that the caller wanted to reach.
    pub to: String,
    /// Network address of the caller.
    pub source: SocketAddr,
    /// Header fields of the request, in order, without credentials.
    pub headers: Vec<(String, String)>,
    /// Name of the call in its protocol.
    pub call_id: String,
    /// The protocol's own part.
    pub(crate) channel: IncomingChannel,
}

/// The protocol's own part of a call that came in.
#[derive(Debug)]
pub(crate) enum IncomingChannel {
    Sip(IncomingDialog),
    WebSocket(Box<IncomingSocket>),
    Pipeline(Box<IncomingPipeline>),
}

impl Incoming {
    /// Waits until the caller gives up; events before that are passed over. Calls over WebSockets are answered at once, and never ring.
    pub async fn given_up(&mut self) {
        match &mut self.channel {
            IncomingChannel::Sip(dialog) => dialog.given_up().await,
            IncomingChannel::WebSocket(_) => std::future::pending().await,
            IncomingChannel::Pipeline(line) => line.given_up().await,
        }
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
}

impl PeerInfo {
    /// Returns protocol and profile: `SIP/UDP, RTP/AVP`, without the profile where no media was agreed on.
    pub fn transport(&self) -> String {
        [Some(self.protocol), self.profile].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl Port {
    /// Takes a control of the Call.
    pub fn control(&mut self, control: &Control) {
        match self {
            Port::Sip(port) => port.control(control),
            Port::WebSocket(port) => port.control(control),
            Port::Pipeline(port) => port.control(control),
            Port::Room(port) => port.control(control),
        }
    }

    /// Returns the next output; `None` when there is nothing more.
    pub fn poll(&mut self) -> Option<PortOutput> {
        match self {
            Port::Sip(port) => port.poll(),
            Port::WebSocket(port) => port.poll(),
            Port::Pipeline(port) => port.poll(),
            Port::Room(port) => port.poll(),
        }
    }

    /// Returns the other side, as far as it is known.
    pub fn peer(&self) -> &PeerInfo {
        match self {
            Port::Sip(port) => port.peer(),
            Port::WebSocket(port) => port.peer(),
            Port::Pipeline(port) => port.peer(),
            Port::Room(port) => port.peer(),
        }
    }
}
