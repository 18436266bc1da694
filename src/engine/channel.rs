//! Channels of live calls: the protocol state of a call with the connection that belongs to it, as one value.
//!
//! An added channel is a variant of [`Channel`] and a file beside this one, which implements [`ChannelSide`].

mod carried;
mod dialogs;
mod keys;
mod pipeline;
mod queues;
mod room;
mod sip;
mod socket;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use ringer_base::clock::Clock;
use ringer_media::call::{Control, Event, Quality};
use ringer_media::frame::Sample;
use ringer_transport::dtls::QueueWriter;
use ringer_transport::incoming::{Incoming, IncomingChannel};
use ringer_transport::path::MediaPath;
use ringer_transport::peer::{AgentError, PeerInfo};
use ringer_transport::sockets::{MediaPorts, Stranger};
use ringer_transport::websocket::dial::Dialer;
use serde_json::Value;

use self::pipeline::PipelineSide;
use self::room::RoomSide;
use self::sip::SipSide;
pub(super) use self::socket::GOODBYE;
use self::socket::SocketSide;
use super::call_state::CallState;
use super::services::{CallPermit, CallServices};
use super::shard::CallNo;
use super::{Destination, PlaceError, Placement};

/// A call that is to be dialled is one that waits.
const NO_ADDRESS: &str = "this call waits for the other side, and dials nobody";

/// Names of the logs of calls over connections of their own, each with its protocol in a word.
pub const CONNECTION_LOGS: [(&str, &str); 3] =
    [(SocketSide::LOG, "WS"), (PipelineSide::LOG, "WEBRTC"), (RoomSide::LOG, "WEBRTC")];

/// Channel of one live call.
pub(super) enum Channel {
    /// SIP dialogs over the sockets that all calls share, and media of its own sockets.
    Sip(Box<Attended<SipSide>>),
    /// One WebSocket of a call.
    Socket(Box<Attended<SocketSide>>),
    /// The peer connection to a voice pipeline.
    Pipeline(Box<Attended<PipelineSide>>),
    /// The room that the agent is in.
    Room(Box<Attended<RoomSide>>),
}

/// Evaluates an expression with the side of a channel, whichever it is.
macro_rules! of_side {
    ($channel:expr, $side:ident => $work:expr) => {
        match $channel {
            Channel::Sip($side) => $work,
            Channel::Socket($side) => $work,
            Channel::Pipeline($side) => $work,
            Channel::Room($side) => $work,
        }
    };
}

/// Side of one call in its channel: its port, and what is needed to carry out the port's actions.
pub(super) trait ChannelSide {
    /// News of the connection.
    type News;

    /// Name of the log of the signalling.
    const LOG: &'static str;

    /// Begins the signalling in the call's task; false where the engine stops and there will be no call.
    async fn begin(&mut self, _call: &mut CallState) -> bool {
        true
    }

    /// Returns the next news; waits for ever after the last. Safe to drop and call again.
    async fn next(&mut self) -> Self::News;

    /// Takes news of the connection.
    async fn follow(&mut self, call: &mut CallState, news: Self::News);

    /// Carries out the port's outputs, in order.
    async fn drain(&mut self, call: &mut CallState);

    /// Takes a control of the Call.
    async fn control(&mut self, call: &mut CallState, control: &Control);

    /// Waits for the end of the connection, and adds its figures and warnings to those of the call.
    async fn close(&mut self, _call: &mut CallState) {}

    /// Takes the frames that the Call has made.
    async fn exchange(&mut self, _call: &mut CallState) {}

    /// Handles RTP that comes from another address than the agreed one.
    async fn take_stranger(&mut self, _call: &mut CallState, _stranger: Stranger) {}

    /// Takes the datagrams of handshakes that wait.
    fn take_handshakes(&mut self, _call: &mut CallState) {}

    /// Takes an event of the call that may be told to the other side.
    async fn own_event(&mut self, _call: &mut CallState, _event: &Event) {}

    /// Returns the events that are open when the call ends at `end`.
    fn last_events(&mut self, _end: Sample) -> Vec<Event> {
        Vec::new()
    }

    /// Returns messages that come after the end of the call, with their times in milliseconds since 1970.
    async fn last_messages(&mut self, _clock: &Clock) -> Vec<(i64, String)> {
        Vec::new()
    }

    /// Returns the other side, as far as it is known.
    fn peer(&self) -> &PeerInfo;

    /// True while the media wait for keys.
    fn awaits_keys(&self) -> bool {
        false
    }

    /// Returns the warning about what the other side sent, at the end of the call.
    fn warning(&self, _quality: &Quality) -> Option<String> {
        None
    }

    /// Returns the errors that the other side told of.
    fn agent_errors(&self) -> Vec<AgentError> {
        Vec::new()
    }

    /// Returns the values that the other side handed over.
    fn variables(&self) -> Option<Value> {
        None
    }
}

/// A side with the news that it has and has not taken yet.
pub(super) struct Attended<S: ChannelSide> {
    side: S,
    news: Option<S::News>,
}

impl<S: ChannelSide> Attended<S> {
    fn new(side: S) -> Box<Attended<S>> {
        Box::new(Attended { side, news: None })
    }

    async fn ready(&mut self) {
        if self.news.is_none() {
            self.news = Some(self.side.next().await);
        }
    }

    async fn follow(&mut self, call: &mut CallState) {
        if let Some(news) = self.news.take() {
            self.side.follow(call, news).await;
        }
    }
}

impl Channel {
    /// Returns the name of the log of the signalling.
    pub(crate) fn log(&self) -> &'static str {
        fn log_of<S: ChannelSide>(_: &Attended<S>) -> &'static str {
            S::LOG
        }
        of_side!(self, at => log_of(at))
    }

    /// Waits for news, for ever after the last. Safe to drop and call again.
    pub(crate) async fn ready(&mut self) {
        of_side!(self, at => at.ready().await);
    }

    /// Handles the news that [`Channel::ready`] waited for.
    pub(crate) async fn follow(&mut self, call: &mut CallState) {
        of_side!(self, at => at.follow(call).await);
    }

    /// Begins the signalling in the call's task; false where the engine stops and there will be no call.
    pub(crate) async fn begin(&mut self, call: &mut CallState) -> bool {
        of_side!(self, at => at.side.begin(call).await)
    }

    /// Carries out the port's outputs, in order.
    pub(crate) async fn drain(&mut self, call: &mut CallState) {
        of_side!(self, at => at.side.drain(call).await);
    }

    /// Takes a control of the Call.
    pub(crate) async fn control(&mut self, call: &mut CallState, control: &Control) {
        of_side!(self, at => at.side.control(call, control).await);
    }

    /// Waits for the end of the connection, and adds its figures and warnings to those of the call.
    pub(crate) async fn close(&mut self, call: &mut CallState) {
        of_side!(self, at => at.side.close(call).await);
    }

    /// Takes the frames that the Call has made.
    pub(crate) async fn exchange(&mut self, call: &mut CallState) {
        of_side!(self, at => at.side.exchange(call).await);
    }

    /// Handles RTP that comes from another address than the agreed one.
    pub(crate) async fn take_stranger(&mut self, call: &mut CallState, stranger: Stranger) {
        of_side!(self, at => at.side.take_stranger(call, stranger).await);
    }

    /// Takes the datagrams of handshakes that wait.
    pub(crate) fn take_handshakes(&mut self, call: &mut CallState) {
        of_side!(self, at => at.side.take_handshakes(call));
    }

    /// Takes an event of the call that may be told to the other side.
    pub(crate) async fn own_event(&mut self, call: &mut CallState, event: &Event) {
        of_side!(self, at => at.side.own_event(call, event).await);
    }

    /// Returns the events that are open when the call ends at `end`.
    pub(crate) fn last_events(&mut self, end: Sample) -> Vec<Event> {
        of_side!(self, at => at.side.last_events(end))
    }

    /// Returns messages that come after the end of the call, with their times in milliseconds since 1970.
    pub(crate) async fn last_messages(&mut self, clock: &Clock) -> Vec<(i64, String)> {
        of_side!(self, at => at.side.last_messages(clock).await)
    }

    /// Returns the other side, as far as it is known.
    pub(crate) fn peer(&self) -> &PeerInfo {
        of_side!(self, at => at.side.peer())
    }

    /// True while the media wait for keys.
    pub(crate) fn awaits_keys(&self) -> bool {
        of_side!(self, at => at.side.awaits_keys())
    }

    /// Returns the warning about what the other side sent, at the end of the call.
    pub(crate) fn warning(&self, quality: &Quality) -> Option<String> {
        of_side!(self, at => at.side.warning(quality))
    }

    /// Returns the errors that the other side told of.
    pub(crate) fn agent_errors(&self) -> Vec<AgentError> {
        of_side!(self, at => at.side.agent_errors())
    }

    /// Returns the values that the other side handed over.
    pub(crate) fn variables(&self) -> Option<Value> {
        of_side!(self, at => at.side.variables())
    }
}

/// Parts of an engine that calls are begun with.
pub(super) struct Means<'e> {
    pub services: &'e Arc<CallServices>,
    pub ports: &'e MediaPorts,
    /// Way to agents that are reached by a WebSocket.
    pub dialer: &'e Dialer,
    /// Number of the next call.
    pub next: &'e AtomicU64,
}

impl Means<'_> {
    /// Returns a number that no other call of the engine has.
    fn next_no(&self) -> CallNo {
        CallNo(self.next.fetch_add(1, Ordering::Relaxed))
    }
}

/// A channel whose call can begin.
pub(super) struct Opening {
    pub no: CallNo,
    pub permit: CallPermit,
    pub channel: Channel,
    pub media: MediaPath,
    /// Way of the datagrams of handshakes to the channel, where they may bring keys of the media.
    pub handshakes: Option<QueueWriter>,
    /// Task that carries the connections, with its name.
    pub carrier: Option<(&'static str, BoxFuture<'static, ()>)>,
    /// True if the call's task moves audio itself.
    pub moves_audio: bool,
}

/// Opens the channel of a call that this side dials.
///
/// # Errors
/// See [`PlaceError`].
pub(super) async fn dial(means: Means<'_>, placement: &mut Placement) -> Result<Opening, PlaceError> {
    match &placement.destination {
        Destination::Sip(dial) => sip::dial(means, dial.clone(), placement).await,
        Destination::WebSocket(dial) => socket::dial(means, dial, placement),
        Destination::Pipeline(dial) => pipeline::dial(means, dial),
        Destination::Room(dial) => room::dial(means, dial),
        Destination::Incoming(_) => Err(PlaceError::BadTarget(NO_ADDRESS.to_owned())),
    }
}

/// Opens the channel of a call that came in.
///
/// # Errors
/// See [`PlaceError`]; a call by SIP was then refused with 488 or 486.
pub(super) async fn answer(
    means: Means<'_>,
    incoming: Incoming,
    placement: &mut Placement,
) -> Result<Opening, PlaceError> {
    let Incoming { called, call_id, source, channel, .. } = incoming;
    match channel {
        IncomingChannel::Sip(dialog) => sip::answer(means, dialog, (called, call_id, source), placement).await,
        IncomingChannel::WebSocket(socket) => socket::answer(means, socket, placement),
        IncomingChannel::Pipeline(line) => pipeline::answer(means, line),
    }
}
